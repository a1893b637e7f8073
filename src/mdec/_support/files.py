"""Files and folders of results that are whole or absent, each written by one run.

A file takes its name only once all of it is on the disk. The new files of a folder are
written into a hidden folder inside. Then the old ones are moved out and the new ones
in, so that at no time a new file lies beside an old one. A run that is killed in
between leaves the rest to the next one. The folder itself is never replaced: it may be
a mount point or the place where a user works, and it holds other files of theirs.

What lies in a folder may come from strangers: names are names and never lead out of it,
and links in the places of our own files are refused.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import socket
import stat
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from itertools import product
from pathlib import Path
from typing import IO

# How systems answer that cannot write through a folder, or do not allow it.
_CANNOT = {errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EACCES}

_SOFT = "-soft"
_LOCK = ".mdec-lock"
_SOFT_LOCK = f"{_LOCK}{_SOFT}"
_HOLDER = ".mdec-run"
_BUILDING = ".mdec-building"
# Whole from the moment it has this name; it counts as long as it exists.
_NEW = ".mdec-new"
_OLD = ".mdec-old"
# Beside new files: the names of old ones that are removed without a successor.
_GONE = ".mdec-gone"
_OWN = (_LOCK, _SOFT_LOCK, _HOLDER, _BUILDING, _NEW, _OLD)


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file that takes its name only when the block has ended well.

    Parameters
    ----------
    path : path-like
        The file; an old one is replaced at the end, and the new one has its
        permissions. A link is replaced too, and what is not a file, such as a pipe or
        /dev/null, is written to as it is.
    """
    target = Path(path)
    if target.exists() and not (target.is_file() or target.is_dir()):
        with target.open("wb") as stream:
            yield stream
        return
    # The files of tempfile can be read by their owner only, for ever.
    temporary = target.parent / f".mdec-{secrets.token_hex(8)}"
    try:
        with temporary.open("xb") as file:
            copy_permissions(target, temporary)
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


def check_not_replaced(
    read: Iterable[str | os.PathLike[str]], written: Iterable[str | os.PathLike[str]]
) -> None:
    """Raise if a file that is read would be replaced, under whatever name.

    Parameters
    ----------
    read, written : iterable of path-like
        Files; those that do not exist are none of each other.
    """
    for source, target in product(map(Path, read), map(Path, written)):
        if source.exists() and target.exists() and source.samefile(target):
            raise ValueError(
                f"{os.fspath(source)!r} is read, and the result would replace it; "
                "write the result to another place."
            )


def check_files(paths: Iterable[Path]) -> None:
    """Raise before the work if files cannot be written."""
    for path in paths:
        if path.is_dir():
            raise ValueError(f"{str(path)!r} is a folder; name a file.")
        if not path.parent.is_dir():
            raise ValueError(f"{str(path.parent)!r} is not a folder; make it first.")


def copy_permissions(old: Path, new: Path) -> None:
    """Let a new file be read and written by those who may do so with the old one.

    Parameters
    ----------
    old : Path
        The file that is replaced; if there is none, the new one stays as it is.
    new : Path
        The file that takes its place.
    """
    if old.is_file():
        new.chmod(stat.S_IMODE(old.stat().st_mode))


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


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold a lock that the system releases if the process is killed.

    Parameters
    ----------
    path : Path
        File of the lock, which nothing else is kept in; removed at the end.

    Raises
    ------
    BlockingIOError
        If someone else holds it.
    """
    import filelock

    lock: filelock.BaseFileLock = filelock.FileLock(path)
    held: AbstractContextManager[object]
    try:
        try:
            held = lock.acquire(timeout=0)
        except filelock.Timeout:
            raise
        except (OSError, NotImplementedError):
            # The file system has no locks; then the existence of a file is one.
            lock = filelock.SoftFileLock(f"{os.fspath(path)}{_SOFT}")
            held = lock.acquire(timeout=0)
    except filelock.Timeout as error:
        raise BlockingIOError(f"{lock.lock_file!r} is locked.") from error
    with held:
        try:
            yield
        finally:
            # While it is locked: whoever has opened it meanwhile finds it gone. Where
            # open files cannot be deleted, filelock does it.
            with suppress(OSError):
                path.unlink()


@contextmanager
def claim_folder(folder: Path) -> Iterator[None]:
    """Reserve a folder for this run; a second run is refused.

    Parameters
    ----------
    folder : Path
        Created if it does not exist, and removed again if it stays empty.
    """
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{os.fspath(folder)!r} is a file; give a folder.")
    created = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for name in _OWN:
        _refuse_link(folder / name)
    holder = folder / _HOLDER
    with ExitStack() as stack:
        stack.callback(_remove_empty, created)
        try:
            stack.enter_context(hold_lock(folder / _LOCK))
        except BlockingIOError as error:
            name = "just begun"
            with suppress(OSError):
                name = holder.read_text(encoding="utf-8", errors="replace")[:200]
            cure, soft = "wait for its end, or give another folder", folder / _SOFT_LOCK
            if soft.exists():
                cure += f"; if that run is gone, delete {os.fspath(soft)!r}"
            raise BlockingIOError(
                f"{os.fspath(folder)!r} is busy: another run ({name}) writes to it; "
                f"{cure}."
            ) from error
        stack.callback(holder.unlink, missing_ok=True)
        who = f"process {os.getpid()} on {socket.gethostname()}"
        holder.write_bytes(who.encode())
        _recover(folder)
        yield


def _refuse_link(path: Path) -> None:
    """Raise if a name of ours leads to a file that may be someone else's."""
    with suppress(FileNotFoundError):
        found = path.lstat()
        second = stat.S_ISREG(found.st_mode) and found.st_nlink > 1
        if stat.S_ISLNK(found.st_mode) or second:
            raise FileExistsError(
                f"{os.fspath(path)!r} is a link, and mdec keeps files of its own under "
                "that name; remove the link, or give another folder."
            )


def _remove_empty(folders: list[Path]) -> None:
    with suppress(OSError):  # one of them is not empty
        for each in folders:
            each.rmdir()


@contextmanager
def replace_together(folder: Path, gone: Iterable[str] = ()) -> Iterator[Path]:
    """Yield a folder for new files, which take their places together at the end.

    Parameters
    ----------
    folder : Path
        The folder of results, see `claim_folder`. Files of the same names are
        replaced, everything else in it is left alone. After an error it is as before.
    gone : iterable of str
        Names of files that are removed in the same step unless a new one replaces them.
    """
    building = folder / _BUILDING
    try:
        # What replaces a private file is private from its first byte on.
        building.mkdir(mode=0o700, parents=True)
        yield building
        for name in _names(building):
            copy_permissions(folder / name, building / name)
        left = [name for name in sorted(gone) if not (building / name).exists()]
        if left:
            (building / _GONE).write_bytes("\n".join(left).encode())
        for each in sorted(building.iterdir()):
            if (folder / each.name).is_dir():
                raise ValueError(
                    f"{os.fspath(folder / each.name)!r} is a folder where a file of "
                    "the results belongs; move it away, or give another folder."
                )
            with each.open("rb+") as file:
                os.fsync(file.fileno())
        sync_folder(building)
        with ExitStack() as unless_all_went_well:
            unless_all_went_well.callback(_undo, folder, _names(building))
            building.rename(folder / _NEW)
            sync_folder(folder)
            _put_in_place(folder)
            unless_all_went_well.pop_all()
        # The new files are in place; what cannot be removed now, the next run removes.
        with suppress(OSError):
            _forget_old(folder)
    except OSError as error:
        raise OSError(
            f"the results could not be written to {os.fspath(folder)!r}, which keeps "
            f"what it had ({error.strerror or error}); make room, or give another "
            "folder."
        ) from error
    finally:
        shutil.rmtree(building, ignore_errors=True)


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
    """Return the names of the files in a folder of ours, which are files indeed."""
    names = sorted(each.name for each in folder.iterdir())
    for name in names:
        _refuse_link(folder / name)
    return names


def _gone_names(new: Path) -> list[str]:
    """Return the names of old files that go, none of which leads out of the folder."""
    if not (new / _GONE).exists():
        return []
    names = (new / _GONE).read_bytes().decode(errors="replace").split("\n")
    for name in names:
        # Of both kinds of systems: drives, streams and separators.
        if name in ("", ".", "..") or any(sign in name for sign in "/\\:\0"):
            raise ValueError(
                f"{os.fspath(new / _GONE)!r} names {name[:80]!r}, which is not a file "
                f"of this folder and not from mdec; delete {os.fspath(new)!r}."
            )
    return names


def _put_in_place(folder: Path) -> None:
    new, old = folder / _NEW, folder / _OLD
    gone = _gone_names(new)
    names = [name for name in _names(new) if name != _GONE]
    old.mkdir(exist_ok=True)
    for name in [*names, *gone]:
        if os.path.lexists(folder / name):
            (folder / name).replace(old / name)
    for name in names:
        (new / name).replace(folder / name)
    sync_folder(folder)


def _put_back(folder: Path) -> None:
    old = folder / _OLD
    if not old.exists():
        return
    for each in sorted(old.iterdir()):
        if os.path.lexists(folder / each.name):
            raise FileExistsError(
                f"{os.fspath(each)!r} was left by a run that was stopped, and there is "
                f"another {each.name!r} in its place; delete one of them."
            )
        each.replace(folder / each.name)
    old.rmdir()


def _forget_old(folder: Path) -> None:
    # In this order: old files without new ones are put back by the next run.
    shutil.rmtree(folder / _OLD)
    (folder / _NEW / _GONE).unlink(missing_ok=True)
    (folder / _NEW).rmdir()


def _recover(folder: Path) -> None:
    """Finish what a killed run has begun."""
    if (folder / _NEW).exists():
        _put_in_place(folder)
        _forget_old(folder)
    else:
        _put_back(folder)
    shutil.rmtree(folder / _BUILDING, ignore_errors=True)
