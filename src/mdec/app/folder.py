"""The folder that the page may see: its tables, its results, and files that arrive."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from mdec._support.archives import DAMAGED
from mdec._support.files import atomic_file
from mdec._support.memory import MAX_BYTES
from mdec.engines.checkpoint import HEADER
from mdec.results import SUMMARY, own_files
from mdec.tables.budget import ending_of
from mdec.tables.reading import ENDINGS

UPLOADS = "mdec-uploads"

# Files and folders that are listed.
_MOST = 200
_NAME = re.compile(r"[^\w.()+ -]+")


class Folder:
    """A folder that nothing leads out of: neither names nor links.

    Parameters
    ----------
    root : Path
        The folder.
    max_bytes : int
        A file that arrives and takes more is refused.
    """

    def __init__(self, root: Path, max_bytes: int = MAX_BYTES) -> None:
        self.root, self.max_bytes = root.resolve(strict=True), max_bytes

    def path(self, name: Any) -> Path:
        """Return the place of a name in the folder; raise if it leads elsewhere."""
        text = str(name)
        parts = Path(text).parts
        bad = not parts or "\0" in text or ".." in parts or Path(text).is_absolute()
        if bad or any(part.startswith(".mdec-") for part in parts):
            raise ValueError(
                f"{text[:80]!r} is no place in {str(self.root)!r}; start mdec app in "
                "the folder that holds it."
            )
        path = self.root
        for part in parts:
            path = path / part
            if path.is_symlink() or not _is_plain(path):
                raise ValueError(
                    f"{text[:80]!r} is a link or no plain file, which the page does "
                    "not follow; copy the file here."
                )
        return path

    def name(self, path: Path) -> str:
        """Return how a path of the folder is written on a command line."""
        name = path.relative_to(self.root).as_posix()
        return f"./{name}" if name.startswith("-") else name

    def tables(self) -> list[str]:
        """Return the files that can be read, those that arrived included."""
        found = []
        for place in (self.root, self.root / UPLOADS):
            if place.is_dir() and not place.is_symlink():
                found += [
                    self.name(Path(each.path))
                    for each in os.scandir(place)
                    if each.is_file(follow_symlinks=False)
                    and ending_of(Path(each.name))[0] in ENDINGS
                ]
        return sorted(found)[:_MOST]

    def results(self) -> list[dict[str, Any]]:
        """Return the results in the folder, the newest first, and runs that stopped."""
        found: list[dict[str, Any]] = []
        for each in os.scandir(self.root):
            place = Path(each.path)
            if not each.is_dir(follow_symlinks=False) or each.name.startswith("."):
                continue
            if summary := read_summary(place):
                settings = summary.get("parameters") or {}
                found.append(
                    {
                        "name": each.name,
                        "n_samples": summary.get("n_samples"),
                        "n_clusters": summary.get("n_clusters"),
                        "file": str(settings.get("file", "")),
                        "time": (place / SUMMARY).stat().st_mtime,
                    }
                )
            elif any((place / "checkpoint").glob(f"**/{HEADER}")):
                time = place.stat().st_mtime
                found.append({"name": each.name, "stopped": True, "time": time})
        found.sort(key=lambda row: row["time"], reverse=True)
        return found[:_MOST]

    def free_name(self, stem: str) -> str:
        """Return a name for the folder of a new result."""
        base = f"{_NAME.sub('-', stem)[:60].strip(' .-') or 'table'}-result"
        name, number = base, 2
        while os.path.lexists(self.root / name):
            name, number = f"{base}-{number}", number + 1
        return name

    async def receive(self, name: str, chunks: AsyncIterator[bytes]) -> str:
        """Write a file that arrives; return its name, which no other file had.

        A file that breaks off, or is too large, leaves nothing behind.
        """
        clean = _NAME.sub("-", Path(name.replace("\\", "/")).name)[-80:].strip(" .-")
        if not clean or ending_of(Path(clean))[0] not in ENDINGS:
            raise ValueError(
                f"{name[:80]!r} has no ending that mdec reads; use one of "
                f"{', '.join(ENDINGS)}."
            )
        place = self.root / UPLOADS
        if place.is_symlink():
            raise ValueError(f"{UPLOADS!r} is a link; remove it first.")
        place.mkdir(exist_ok=True)
        size, target = 0, place / clean
        number = 2
        while os.path.lexists(target):
            target, number = place / f"{number}-{clean}", number + 1
        try:
            with atomic_file(target) as file:
                async for chunk in chunks:
                    size += len(chunk)
                    if size > self.max_bytes:
                        raise ValueError(
                            f"{clean!r} takes more than {self.max_bytes / 2**30:g} GB; "
                            "give its path instead, or start mdec app with a larger "
                            "--max-gb."
                        )
                    file.write(chunk)
        except OSError as error:
            raise OSError(
                f"{clean!r} could not be kept ({error.strerror or error}); make room "
                "on the disk, or give its path."
            ) from error
        return self.name(target)


def _is_plain(path: Path) -> bool:
    """Tell whether a path is a file or folder, or is not there yet."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return True
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


def read_summary(folder: Path) -> dict[str, Any]:
    """Return the summary of a result; nothing if the folder holds none."""
    path = folder / SUMMARY
    if path.is_symlink() or not own_files(folder):
        return {}
    try:
        content = json.loads(path.read_bytes())
    except (OSError, *DAMAGED):
        return {}
    return content if isinstance(content, dict) else {}
