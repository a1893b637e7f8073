"""The folder that the page may see: its tables, its results, and files that arrive."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from mdec._support.files import atomic_file
from mdec._support.memory import MAX_BYTES
from mdec.engines.checkpoint import HEADER
from mdec.results import SUMMARY, own_files
from mdec.tables.budget import ending_of
from mdec.tables.reading import ENDINGS

UPLOADS = "mdec-uploads"

# What is answered with one sentence.
ERRORS = (ValueError, LookupError, TypeError, OSError, MemoryError, ImportError)

# Files and folders that are listed, and what is no part of a new name.
_MOST = 200
_ODD = re.compile(r"[^\w.()+ -]+")


class Folder:
    """A folder that nothing leads out of, neither names nor links.

    A file that arrives and takes more than `max_bytes` is refused.
    """

    def __init__(self, root: Path, max_bytes: int = MAX_BYTES) -> None:
        self.root, self.max_bytes = root.resolve(strict=True), max_bytes
        self.writing = threading.Lock()  # for what is written in results

    def path(self, name: object) -> Path:
        """Return the place of a name in the folder; raise if it leads elsewhere."""
        given = Path(str(name))
        path = self.root / given
        hidden = any(part.startswith(".mdec-") for part in given.parts)
        if not given.parts or "\0" in str(name) or ".." in given.parts or hidden:
            path = self.root.parent
        # Links and drives lead elsewhere as well.
        if not path.is_relative_to(self.root) or path.resolve() != path:
            raise ValueError(
                f"{str(name)[:80]!r} is not a file in {str(self.root)!r}, or a link; "
                "start mdec app in the folder that holds it."
            )
        return path

    def name(self, path: Path) -> str:
        """Return how a path of the folder is written on a command line."""
        name = path.relative_to(self.root).as_posix()
        return f"./{name}" if name.startswith("-") else name

    def tables(self) -> list[str]:
        """Return the files that can be read, those that arrived included."""
        found: list[str] = []
        for place in (self.root, self.root / UPLOADS):
            if place.is_dir() and not place.is_symlink():
                inside = [each for each in place.iterdir() if not each.is_symlink()]
                found += [self.name(each) for each in inside if each.is_file()]
        readable = (each for each in found if ending_of(Path(each))[0] in ENDINGS)
        return sorted(readable)[:_MOST]

    def results(self) -> list[dict[str, Any]]:
        """Return the results in the folder, the newest first, and runs that stopped."""
        found: list[dict[str, Any]] = []
        for each in os.scandir(self.root):
            if not each.is_dir(follow_symlinks=False) or each.name.startswith("."):
                continue
            about = {"name": each.name, "time": each.stat().st_mtime}
            if summary := read_summary(Path(each.path)):
                names = "n_samples", "n_clusters"
                found.append(about | {name: summary.get(name) for name in names})
            elif any(Path(each.path, "checkpoint").glob(f"**/{HEADER}")):
                found.append(about | {"stopped": True})
        return sorted(found, key=lambda row: row["time"], reverse=True)[:_MOST]

    def free_name(self, stem: str) -> str:
        """Return a name for the folder of a new result."""
        return _free(self.root, clean(stem) or "table", "{}-result{}")

    async def receive(self, name: str, chunks: AsyncIterator[bytes]) -> str:
        """Write a file that arrives under a name that is free, and return that name.

        A file that breaks off, or is too large, leaves nothing behind.
        """
        stem, dot, ending = clean(Path(name.replace("\\", "/")).name).partition(".")
        if ending_of(Path(f"x.{ending}"))[0] not in ENDINGS:
            raise ValueError(
                f"{name[:80]!r} has no ending that mdec reads; use one of "
                f"{', '.join(ENDINGS)}."
            )
        place = self.path(UPLOADS)
        place.mkdir(exist_ok=True)
        target = place / _free(place, stem or "table", f"{{}}{{}}{dot}{ending}")
        size = 0
        try:
            with atomic_file(target) as file:
                async for chunk in chunks:
                    size += len(chunk)
                    self.check_size(size)
                    file.write(chunk)
        except OSError as error:
            raise OSError(
                f"{name[:80]!r} could not be kept ({error.strerror or error}); make "
                "room on the disk, or give its path."
            ) from error
        return self.name(target)

    def check_size(self, size: int) -> None:
        """Raise if a file takes more than it may."""
        if size > self.max_bytes:
            raise ValueError(
                f"the file takes more than {self.max_bytes / 2**30:g} GB; give its "
                "path, or start mdec app with a larger --max-gb."
            )


def clean(name: str) -> str:
    """Return a name that every system takes."""
    return _ODD.sub("-", name)[-80:].strip(" .-")


def _free(place: Path, stem: str, form: str) -> str:
    """Return the first name of a form that nothing in a folder has."""
    number, name = 2, form.format(stem, "")
    while os.path.lexists(place / name):
        number, name = number + 1, form.format(stem, f"-{number}")
    return name


def read_summary(folder: Path) -> dict[str, Any]:
    """Return the summary of a result; nothing if the folder holds none."""
    if (folder / SUMMARY).is_symlink() or not own_files(folder):
        return {}
    content: dict[str, Any] = json.loads((folder / SUMMARY).read_bytes())
    return content
