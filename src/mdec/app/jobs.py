"""Runs in line, one at a time: each `mdec fit` in a child process with a checkpoint."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any

# What a run that is told to stop has for it, in seconds.
PATIENCE = 20.0
_LONGEST = 4000
_OPEN = ("waiting", "running", "stopping")


@dataclass(frozen=True)
class Job:
    """A run: waiting, running, stopping, done, stopped or failed.

    `words` are the arguments of `mdec`, `folder` is where its result goes, and `left`
    the seconds that the step still takes, if that is known.
    """

    number: int
    words: tuple[str, ...]
    folder: str
    state: str = "waiting"
    step: str = ""
    done: int = 0
    total: int = 0
    left: float | None = None
    message: str = ""


class Jobs:
    """The runs of one page.

    Parameters
    ----------
    root : Path
        The folder in which they run.
    """

    def __init__(self, root: Path) -> None:
        self.root, self.version = root, 0
        self._jobs: dict[int, Job] = {}
        self._changed = threading.Condition()
        self._process: subprocess.Popen[str] | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def snapshot(self) -> list[dict[str, Any]]:
        """Return all runs, the newest first, and the place of those that wait."""
        with self._changed:
            jobs = list(self._jobs.values())
        ahead, rows = 0, []
        for job in jobs:
            rows.append({**asdict(job), "ahead": ahead})
            ahead += job.state in _OPEN
        return rows[::-1]

    def submit(self, words: list[str], folder: str) -> int:
        """Put a run in line and return its number."""
        with self._changed:
            for job in self._jobs.values():
                if job.folder == folder and job.state in _OPEN:
                    raise ValueError(
                        f"run {job.number} already writes to {folder!r}; give the "
                        "result another name, or wait."
                    )
            number = len(self._jobs) + 1
            self._jobs[number] = Job(number, tuple(words), folder)
            self._note()
        return number

    def stop(self, number: int) -> None:
        """Stop a run; its checkpoint stays."""
        with self._changed:
            job = self._find(number)
            if job.state == "waiting":
                self._set(job, state="stopped", message="Taken out of the line.")
            elif job.state == "running":
                self._set(job, state="stopping", message="")
                process = self._process
                if process is not None and process.stdin is not None:
                    with suppress(OSError):
                        process.stdin.close()
                    threading.Thread(
                        target=_end, args=(process, PATIENCE), daemon=True
                    ).start()

    def resume(self, number: int) -> None:
        """Put a run that was stopped, or has failed, in line again."""
        with self._changed:
            job = self._find(number)
            if job.state not in ("stopped", "failed"):
                raise ValueError(
                    f"run {number} is {job.state}; there is no more to do."
                )
            del self._jobs[number]
            self._jobs[number] = job
            self._set(job, state="waiting", message="", step="", left=None)

    def close(self) -> None:
        """Stop all runs and wait for their end; nothing is left half-written."""
        with self._changed:
            self._closed = True
            numbers = [j.number for j in self._jobs.values() if j.state in _OPEN]
            self._changed.notify_all()
        for number in numbers:
            self.stop(number)
        self._thread.join(PATIENCE + 5.0)

    def _find(self, number: int) -> Job:
        if number not in self._jobs:
            raise ValueError(f"there is no run {number}; reload the page.")
        return self._jobs[number]

    def _set(self, job: Job, **new: Any) -> None:
        self._jobs[job.number] = replace(self._jobs[job.number], **new)
        self._note()

    def _note(self) -> None:
        self.version += 1
        self._changed.notify_all()

    def _work(self) -> None:
        """Take one run after another from the line."""
        while True:
            with self._changed:
                while not (waiting := self._next()) and not self._closed:
                    self._changed.wait()
                if self._closed or waiting is None:
                    return
                self._set(waiting, state="running", step="starting", done=0, total=0)
            try:
                self._run(waiting)
            except (OSError, ValueError) as error:
                with self._changed:
                    self._set(waiting, state="failed", message=f"{error}")

    def _next(self) -> Job | None:
        waiting = (job for job in self._jobs.values() if job.state == "waiting")
        return next(waiting, None)

    def _run(self, job: Job) -> None:
        program = [sys.executable, "-m", "mdec.app.worker", *job.words]
        with (
            tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said,
            subprocess.Popen(
                program,
                cwd=self.root,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,  # Ctrl-C is for the page, which tells the run
            ) as process,
        ):
            with self._changed:
                self._process = process
                if self._jobs[job.number].state == "stopping" and process.stdin:
                    process.stdin.close()
            assert process.stdout is not None
            for line in process.stdout:
                self._hear(job, line)
            code = process.wait()
            with self._changed:
                self._process = None
                asked = self._jobs[job.number].state == "stopping"
                state, message = _judge(code, asked=asked, words=_last_words(said))
                self._set(job, state=state, message=message, left=None)

    def _hear(self, job: Job, line: str) -> None:
        with suppress(ValueError):
            heard = json.loads(line)
            new = {"left": None, "done": 0, "total": 0, **heard}
            with self._changed:
                self._set(job, **new)


def _end(process: subprocess.Popen[str], seconds: float) -> None:
    """Kill a process that does not end by itself."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()


def _last_words(file: IO[str]) -> str:
    file.seek(0)
    return file.read()[-_LONGEST:].strip().removeprefix("mdec: ")


def _judge(code: int, *, asked: bool, words: str) -> tuple[str, str]:
    """Return the state that a run ends in, and one sentence about it.

    Examples
    --------
    >>> _judge(-9, asked=False, words="")[1][:37]
    'the run was ended from outside (SIGKI'
    """
    if code == 0:
        return "done", ""
    if asked:
        return "stopped", "Stopped; finished base clusterings are kept."
    if code == 2 and words:
        return "failed", words
    if code < 0:
        with suppress(ValueError):
            words = signal.Signals(-code).name
        return "failed", (
            f"the run was ended from outside ({words or -code}), as systems do when "
            "memory runs out; what is finished is kept, and Resume goes on from there."
        )
    last = words.splitlines()[-1] if words else f"exit code {code}"
    return "failed", f"mdec made a mistake ({last}); please report it."
