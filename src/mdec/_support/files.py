"""Files that are whole or absent, and on the disk once they have their name."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

# What systems answer that cannot write through a folder or lock a file, or may not.
_CANNOT = {errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.ENOLCK, errno.EACCES}


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
            file.flush()
            # Else a power cut may leave the name with nothing behind it.
            os.fsync(file.fileno())
        temporary.replace(target)
        sync_folder(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a whole file, or nothing."""
    with atomic_file(path) as file:
        file.write(content)


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Write the names in a folder through to the disk, where the system can."""
    if os.name == "nt":  # opens no folders
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT:
            raise


def try_lock(file: IO[bytes]) -> bool | None:
    """Lock an open file; the system lets go when it is closed or the process ends.

    Parameters
    ----------
    file : file
        Open for writing.

    Returns
    -------
    bool or None
        Whether this is the one holder now; None where the system has no locks.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _CANNOT:
            raise
        return None
    return True
