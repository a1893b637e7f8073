"""Files that are whole or absent."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file that takes its name only when the block has ended well.

    Parameters
    ----------
    path : path-like
        The file; an old one is replaced at the end.
    """
    target = Path(path)
    # Made by hand: the files of tempfile are closed to everyone else for ever.
    temporary = target.parent / f".mdec-{secrets.token_hex(8)}"
    try:
        with temporary.open("xb") as file:
            yield file
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a whole file, or nothing."""
    with atomic_file(path) as file:
        file.write(content)
