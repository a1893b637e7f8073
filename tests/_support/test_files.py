"""Files that are whole or absent, and written through before they take their name."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO, Any

import pytest

from mdec._support.files import atomic_file, hold_lock, sync_folder, write_atomically

posix = pytest.mark.skipif(os.name == "nt", reason="needs a POSIX system")


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What reaches the disk, in order: files, folders, and names."""
    seen: list[str] = []
    fsync, replace = os.fsync, os.replace

    def noted_fsync(descriptor: int) -> None:
        mode = os.fstat(descriptor)
        seen.append("folder" if stat.S_ISDIR(mode.st_mode) else f"{mode.st_size} bytes")
        fsync(descriptor)

    def noted_replace(source: Any, target: Any) -> None:
        seen.append("name")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)
    return seen


@posix
def test_content_then_name_then_folder(tmp_path: Path, steps: list[str]) -> None:
    """All bytes are on the disk before the name, and the name before the return."""
    write_atomically(tmp_path / "a", b"seven..")
    assert steps == ["7 bytes", "name", "folder"]


@pytest.mark.parametrize("size", [1, 100_000])
def test_an_error_leaves_the_old_file(tmp_path: Path, size: int) -> None:
    write_atomically(tmp_path / "a", b"old")

    def stop(file: IO[bytes]) -> None:
        file.write(b"n" * size)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"), atomic_file(tmp_path / "a") as file:
        stop(file)
    assert [each.name for each in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


def test_a_full_disk_that_shows_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many systems take bytes that they cannot keep, and say so when asked."""
    write_atomically(tmp_path / "a", b"old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(tmp_path / "a", b"new")
    assert [each.name for each in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


@posix
@pytest.mark.parametrize(("number", "raised"), [("EINVAL", False), ("EIO", True)])
def test_folders_that_cannot_be_written_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: str, raised: bool
) -> None:
    def refuse(_: int) -> None:
        raise OSError(getattr(errno, number), number)

    monkeypatch.setattr(os, "fsync", refuse)
    if raised:
        with pytest.raises(OSError, match="EIO"):
            sync_folder(tmp_path)
    else:
        sync_folder(tmp_path)


def test_one_holder_of_a_lock(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with hold_lock(lock):
        with pytest.raises(BlockingIOError, match="lock' is locked"), hold_lock(lock):
            pass
        assert lock.exists()
    with hold_lock(lock):
        pass
    assert not lock.exists()


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_file_keeps_its_permissions(tmp_path: Path, mode: int) -> None:
    """From the first byte on: a model holds the rows that it was fitted to."""
    path = tmp_path / "model.npz"
    path.write_bytes(b"old")
    path.chmod(mode)
    with atomic_file(path) as file:
        file.write(b"new")
        assert os.fstat(file.fileno()).st_mode & 0o777 == mode
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == mode


@posix
def test_a_new_file_follows_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        write_atomically(tmp_path / "a", b"new")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600


@posix
@pytest.mark.parametrize("linked", [False, True])
def test_a_pipe_is_written_to_and_stays(tmp_path: Path, linked: bool) -> None:
    """``--out /dev/null`` of an administrator once made a file of the device."""
    pipe = path = tmp_path / "pipe"
    os.mkfifo(pipe)
    if linked:
        path = tmp_path / "link"
        path.symlink_to(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_atomically(path, b"new")
        assert os.read(reader, 100) == b"new"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert path.is_symlink() == linked
