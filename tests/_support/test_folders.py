"""Folders of results: one run at a time, all of the new files or none of them."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import filelock
import pytest

from mdec._support.files import (
    claim_folder,
    replace_together,
    write_atomically,
)

NAMES = ("labels.csv", "report.html", "summary.json")
# Everything that can be refused while a folder is changed.
EVENTS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir"}

_refuse: Callable[[str], None] | None = None


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _refuse is not None and event in EVENTS and ".mdec-" in str(arguments):
        _refuse(event)


# Cannot be taken off again, and does nothing without `_refuse`.
sys.addaudithook(_hook)


def write_results(folder: Path, word: str) -> None:
    with claim_folder(folder), replace_together(folder) as new:
        for name in NAMES:
            write_atomically(new / name, word.encode())


@contextmanager
def nth_step_fails(n: int, error: BaseException) -> Iterator[Iterator[int]]:
    """Let the n-th opening, renaming, making or removing fail; yield their counter."""
    global _refuse
    calls = iter(range(1, 1000))

    def fail(_: str) -> None:
        if next(calls) == n:
            raise error

    _refuse = fail
    try:
        yield calls
    finally:
        _refuse = None


def results(folder: Path) -> list[str]:
    return [(folder / name).read_text() for name in NAMES]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with results, and with what is the user's."""
    place = tmp_path / "out"
    write_results(place, "old")
    (place / "notes.txt").write_text("mine")
    (place / "checkpoint").mkdir()
    (place / "checkpoint" / "member-000000.npz").write_text("kept")
    return place


def check_rest(folder: Path) -> None:
    assert (folder / "notes.txt").read_text() == "mine"
    assert (folder / "checkpoint" / "member-000000.npz").read_text() == "kept"
    names = {each.name for each in folder.iterdir()}
    assert names == {*NAMES, "notes.txt", "checkpoint"}


def test_new_results_replace_old_ones_and_nothing_else(folder: Path) -> None:
    before = folder.stat().st_ino
    write_results(folder, "new")
    assert results(folder) == ["new"] * 3
    check_rest(folder)
    # Whoever works in the folder, or has mounted it, still does.
    assert folder.stat().st_ino == before


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_an_error_at_any_step_leaves_old_or_new(
    folder: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    """For every step."""
    outcomes = []
    monkeypatch.setattr(os, "fsync", lambda _: None)  # slow, and of no matter here
    for n in range(1, 200):
        write_results(folder, "old")
        failed = True
        full = error(errno.ENOSPC, "No space left on device")
        with nth_step_fails(n, full) as calls, suppress(error):
            write_results(folder, "new")
            failed = False
        assert results(folder) in (["old"] * 3, ["new"] * 3), n
        outcomes.append((failed, results(folder)[0]))
        if next(calls) <= n:
            break
    else:
        pytest.fail("the steps do not end")
    assert outcomes[-1] == (False, "new")
    assert outcomes.count((True, "old")) > 10
    write_results(folder, "old")
    check_rest(folder)


def test_a_file_without_a_successor_goes_with_the_others(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever step fails, it is there beside the old results only."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    for n in range(1, 200):
        write_results(folder, "old")
        (folder / "model.npz").write_text("old")
        full = OSError(errno.ENOSPC, "No space left on device")
        with (
            nth_step_fails(n, full) as calls,
            suppress(OSError),
            claim_folder(folder),
            replace_together(folder, gone=["model.npz", "never.txt"]) as new,
        ):
            for name in NAMES:
                write_atomically(new / name, b"new")
        assert results(folder) in (["old"] * 3, ["new"] * 3), n
        assert (folder / "model.npz").exists() == (results(folder)[0] == "old"), n
        if next(calls) <= n:
            break
    assert results(folder) == ["new"] * 3
    with claim_folder(folder):
        pass
    check_rest(folder)


def test_a_disk_that_fills_at_any_time_leaves_the_old_results(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync = os.fsync
    for n in range(1, 100):
        calls = iter(range(1, 1000))

        def full(descriptor: int, n: int = n, calls: Iterator[int] = calls) -> None:
            if next(calls) == n:
                raise OSError(errno.ENOSPC, "No space left on device")
            fsync(descriptor)

        monkeypatch.setattr(os, "fsync", full)
        try:
            write_results(folder, "new")
        except OSError as error:
            words = str(error)
            assert words.startswith("the results could not be written to ")
            assert "keeps what it had (No space left on device)" in words
            assert results(folder) == ["old"] * 3
            check_rest(folder)
        else:
            break
    monkeypatch.undo()
    assert n > 2 * len(NAMES)
    assert results(folder) == ["new"] * 3
    check_rest(folder)


KILLED = """
import os, sys
from pathlib import Path
from mdec._support.files import claim_folder, replace_together, write_atomically

os.fsync = lambda _: None
EVENTS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir"}
folder, names = Path(sys.argv[1]), sys.argv[2:]

def write(word):
    with claim_folder(folder), replace_together(folder) as new:
        for name in names:
            write_atomically(new / name, word.encode())

def seen():
    return {(folder / n).read_text() for n in names if (folder / n).exists()}

def run_and_die(n):
    left = [n]
    def hook(event, arguments):
        if event in EVENTS and ".mdec-" in str(arguments):
            left[0] -= 1
            if left[0] == 0:
                os._exit(9)
    sys.addaudithook(hook)
    write("new")
    os._exit(0)

for n in range(1, 200):
    write("old")
    child = os.fork()
    if child == 0:
        run_and_die(n)
    status = os.waitpid(child, 0)[1]
    mixed = len(seen()) > 1
    with claim_folder(folder):
        pass
    whole = all((folder / name).exists() for name in names) and len(seen()) == 1
    print(n, "mixed" if mixed else "apart", "whole" if whole else "lost", *seen())
    if status == 0:
        break
"""


def test_a_kill_at_any_step_mixes_and_loses_nothing(folder: Path) -> None:
    """What the next run finds is brought to its end, forwards or backwards."""
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    command = [sys.executable, "-W", "ignore", "-c", KILLED, str(folder), *NAMES]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = [line.split() for line in ended.stdout.splitlines()]
    assert len(lines) > 15
    assert {tuple(words[1:3]) for words in lines} == {("apart", "whole")}
    # Once the new results are whole they count, and never again the old ones.
    kept = [words[3] for words in lines]
    assert kept == sorted(kept, reverse=True)
    assert {"old", "new"} == set(kept)
    check_rest(folder)


def test_a_folder_in_the_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "report.html").mkdir()
    with pytest.raises(ValueError, match=r"report.html' is a folder where a file"):
        write_results(tmp_path, "new")
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(OSError, match="is a file; give a folder"):
        write_results(tmp_path / "out", "new")
    assert (tmp_path / "out").read_text() == "mine"


def test_a_run_that_comes_to_nothing_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no"), claim_folder(tmp_path / "a" / "b"):
        raise ValueError("no")
    assert list(tmp_path.iterdir()) == []


def test_a_link_to_a_folder_stays_a_link(folder: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(folder)
    write_results(link, "new")
    assert link.is_symlink()
    assert results(folder) == ["new"] * 3


def test_a_busy_folder_says_who_is_in_it(folder: Path) -> None:
    who = rf"another run \(process {os.getpid()} on {socket.gethostname()}\)"
    with claim_folder(folder):
        with pytest.raises(OSError, match=f"is busy: {who} writes to it; wait"):
            write_results(folder, "new")
        assert results(folder) == ["old"] * 3
    write_results(folder, "new")
    check_rest(folder)


HOLDS = """
import sys, time
from pathlib import Path
from mdec._support.files import claim_folder
with claim_folder(Path(sys.argv[1])):
    print("in", flush=True)
    time.sleep(600)
"""


def test_the_lock_of_a_killed_run_is_taken_over(folder: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(folder)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "in\n"
        with pytest.raises(OSError, match=rf"busy: another run \(process {holder.pid}"):
            write_results(folder, "new")
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    assert (folder / ".mdec-lock").exists()
    write_results(folder, "new")
    assert results(folder) == ["new"] * 3
    check_rest(folder)


def test_without_locks_a_file_is_the_lock(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(filelock.FileLock, "acquire", refuse)
    busy = r"is busy: .*if that run is gone, delete .*\.mdec-lock-soft"
    with claim_folder(folder), pytest.raises(OSError, match=busy):
        write_results(folder, "new")
    write_results(folder, "new")
    check_rest(folder)


def test_files_are_on_the_disk_before_they_count(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However the block has written them."""
    steps: list[str | int] = []
    fsync, rename = os.fsync, os.rename

    def noted_fsync(descriptor: int) -> None:
        steps.append(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    def noted_rename(source: Path, target: Path) -> None:
        steps.append("rename")
        rename(source, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "rename", noted_rename)
    with claim_folder(folder), replace_together(folder) as new:
        for name in NAMES:
            (new / name).write_text("new")
        made = new.stat().st_ino
    written = [(folder / name).stat().st_ino for name in NAMES]
    assert steps[:5] == [*written, made, "rename"]
    assert folder.stat().st_ino in steps[5:]


OWN = [".mdec-lock", ".mdec-lock-soft", ".mdec-run"]
OWN_FOLDERS = [".mdec-building", ".mdec-new", ".mdec-old"]


@pytest.mark.parametrize("name", OWN + OWN_FOLDERS)
def test_a_link_in_the_place_of_our_files_is_refused(
    folder: Path, tmp_path: Path, name: str
) -> None:
    """Whatever it points to stays as it is."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    target = mine / "thesis.txt" if name in OWN else mine
    (folder / name).symlink_to(target)
    with pytest.raises(OSError, match=rf"{name}' is a link, .*; remove the link"):
        write_results(folder, "new")
    assert (mine / "thesis.txt").read_text() == "years of work"
    assert [each.name for each in mine.iterdir()] == ["thesis.txt"]
    (folder / name).unlink()
    assert results(folder) == ["old"] * 3
    check_rest(folder)


@pytest.mark.parametrize("name", OWN)
def test_a_second_name_of_a_file_is_no_file_of_ours(
    folder: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    (folder / name).hardlink_to(tmp_path / "thesis.txt")
    with pytest.raises(OSError, match="is a link"):
        write_results(folder, "new")
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


@pytest.mark.parametrize(
    "name", ["../thesis.txt", "/etc/thesis.txt", "..", ".", "a/b", "C:x", "..\\x", ""]
)
def test_a_name_never_leads_out_of_the_folder(
    folder: Path, tmp_path: Path, name: str
) -> None:
    """Of a folder that a killed run is said to have left."""
    (tmp_path / "thesis.txt").write_text("years of work")
    (folder / ".mdec-new").mkdir()
    (folder / ".mdec-new" / ".mdec-gone").write_text(f"model.npz\n{name}\nlabels.csv")
    with pytest.raises(ValueError, match="which is not a file of this folder"):
        write_results(folder, "new")
    assert (tmp_path / "thesis.txt").read_text() == "years of work"
    assert results(folder) == ["old"] * 3


def test_a_link_among_new_files_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    (folder / ".mdec-new").mkdir()
    (folder / ".mdec-new" / "labels.csv").symlink_to(tmp_path / "thesis.txt")
    with pytest.raises(OSError, match="is a link"):
        write_results(folder, "new")
    assert results(folder) == ["old"] * 3


def test_what_is_put_back_replaces_nothing(folder: Path) -> None:
    (folder / ".mdec-old").mkdir()
    (folder / ".mdec-old" / "notes.txt").write_text("not mine")
    with pytest.raises(OSError, match=r"another 'notes.txt' in its place; delete one"):
        write_results(folder, "new")
    assert (folder / "notes.txt").read_text() == "mine"


@pytest.mark.skipif(os.name == "nt", reason="needs permissions of POSIX")
def test_results_keep_their_permissions(folder: Path) -> None:
    """And new files follow the umask, whatever the folder that they are made in."""
    (folder / "labels.csv").chmod(0o600)
    (folder / "summary.json").unlink()
    before = os.umask(0o027)
    try:
        with claim_folder(folder), replace_together(folder) as new:
            assert new.stat().st_mode & 0o077 == 0
            for name in NAMES:
                write_atomically(new / name, b"new")
    finally:
        os.umask(before)
    assert (folder / "labels.csv").stat().st_mode & 0o777 == 0o600
    assert (folder / "summary.json").stat().st_mode & 0o777 == 0o640
