"""Folders of results: one run at a time, and changed as a whole.

The new files are made in a hidden folder inside. Then the old ones are moved out and
the new ones in, so that at no time a new file lies beside an old one. A run that is
killed in between leaves the rest to the next one. The folder itself is never replaced:
it may be a mount point or the place where a user works, and holds what is theirs.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from mdec._support.files import sync_folder, try_lock

_LOCK = ".mdec-lock"
_BUILDING = ".mdec-building"
# Whole from the moment it has this name; it counts as long as it exists.
_NEW = ".mdec-new"
_OLD = ".mdec-old"
# Beside new files: the names of old ones that go without a successor.
_GONE = ".mdec-gone"


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Keep a folder to this run; a second one is told that it is busy.

    Parameters
    ----------
    folder : Path
        Made if it does not exist, and removed if nothing comes of it.
    """
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{os.fspath(folder)!r} is a file; give a folder.")
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with _lock(folder):
            try:
                _recover(folder)
                yield
            finally:
                # Before it is let go: whoever has opened it meanwhile finds it gone.
                with suppress(OSError):  # one that is left over is taken over
                    (folder / _LOCK).unlink()
    finally:
        with suppress(OSError):  # there is something in it
            for each in made:
                each.rmdir()


def _lock(folder: Path) -> IO[bytes]:
    path = folder / _LOCK
    while True:
        file = path.open("a+b", buffering=0)
        with ExitStack() as unless_held:
            unless_held.callback(file.close)
            file.seek(0)
            holder = file.read().decode(errors="replace").strip()
            cure = "wait for its end, or give another folder"
            held = try_lock(file)
            if held is None:
                # Without locks the word of the file counts; of two runs that start in
                # the same moment both may go on.
                held = not _lives(holder)
                cure += f"; if that run is gone, delete {os.fspath(path)!r}"
            if not held:
                raise BlockingIOError(
                    f"{os.fspath(folder)!r} is busy: another run "
                    f"({holder or 'just begun'}) writes to it; {cure}."
                )
            if _is_open_at(path, file):
                file.truncate(0)
                file.write(f"process {os.getpid()} on {socket.gethostname()}".encode())
                unless_held.pop_all()
                return file
        # Else the last holder removed it between our two steps.


def _is_open_at(path: Path, file: IO[bytes]) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _lives(holder: str) -> bool:
    """Whether the process that a lock names may still run."""
    words = holder.split()
    if len(words) != 4 or not words[1].isdecimal():
        return False
    # What runs on another machine cannot be seen, and Windows has no signal 0.
    if words[3] != socket.gethostname() or os.name == "nt":
        return True
    try:
        os.kill(int(words[1]), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # someone else's
        return True
    return True


@contextmanager
def replaced_together(folder: Path, gone: Sequence[str] = ()) -> Iterator[Path]:
    """Yield a folder for new files, which take their places together at the end.

    Parameters
    ----------
    folder : Path
        The folder of results, `claimed` by this run. Files of the same names are
        replaced, everything else in it is left alone. After an error it is as before.
    gone : sequence of str
        Names of files that go in the same step if no new one takes their place.
    """
    building = folder / _BUILDING
    try:
        building.mkdir(parents=True)
        yield building
        left = [name for name in gone if not (building / name).exists()]
        if left:
            (building / _GONE).write_text("\n".join(left))
        for each in sorted(building.iterdir()):
            if (folder / each.name).is_dir():
                raise ValueError(
                    f"{os.fspath(folder / each.name)!r} is a folder where a file of "
                    "the results belongs; move it away, or give another folder."
                )
            with each.open("rb+") as file:
                os.fsync(file.fileno())
        sync_folder(building)
        _commit(folder)
    except OSError as error:
        raise OSError(
            f"the results could not be written to {os.fspath(folder)!r}, which keeps "
            f"what it had ({error.strerror or error}); make room, or give another "
            "folder."
        ) from error
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _commit(folder: Path) -> None:
    building, new = folder / _BUILDING, folder / _NEW
    names = _names(building)
    with ExitStack() as unless_all_went_well:
        unless_all_went_well.callback(_undo, folder, names)
        building.rename(new)
        sync_folder(folder)
        _put_in_place(folder)
        unless_all_went_well.pop_all()
    # The new files are in place; what cannot be removed now, the next run removes.
    with suppress(OSError):
        _forget_old(folder)


def _undo(folder: Path, names: list[str]) -> None:
    """Take new files out of their places, and put the old ones back."""
    building, new = folder / _BUILDING, folder / _NEW
    if new.exists():
        for name in names:
            if not (new / name).exists():
                (folder / name).replace(new / name)
        new.rename(building)
    _put_back(folder)


def _names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def _put_in_place(folder: Path) -> None:
    new, old = folder / _NEW, folder / _OLD
    old.mkdir(exist_ok=True)
    gone = (new / _GONE).read_text().splitlines() if (new / _GONE).exists() else []
    names = [name for name in _names(new) if name != _GONE]
    for name in [*names, *gone]:
        if os.path.lexists(folder / name):
            (folder / name).replace(old / name)
    for name in names:
        (new / name).replace(folder / name)
    sync_folder(folder)


def _put_back(folder: Path) -> None:
    old = folder / _OLD
    if old.exists():
        for name in _names(old):
            (old / name).replace(folder / name)
        old.rmdir()


def _forget_old(folder: Path) -> None:
    # In this order: old files without new ones are put back by the next run.
    shutil.rmtree(folder / _OLD)
    (folder / _NEW / _GONE).unlink(missing_ok=True)
    (folder / _NEW).rmdir()


def _recover(folder: Path) -> None:
    """Bring to its end what a killed run has left."""
    if (folder / _NEW).exists():
        _put_in_place(folder)
        _forget_old(folder)
    else:
        _put_back(folder)
    shutil.rmtree(folder / _BUILDING, ignore_errors=True)
