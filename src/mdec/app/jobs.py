"""Runs in line, one at a time: each `mdec fit` in a child process with a checkpoint.

The child is this module as well. It tells how far it is in lines of JSON on standard
output, and stops when its standard input ends, as it does when the page's own process
ends in whatever way.
"""

from __future__ import annotations

import _thread
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, Any

from mdec import cli
from mdec._support.progress import progress_to

# What a run has for stopping when it is asked to, in seconds.
PATIENCE = 20.0
_LONGEST = 4000


class Jobs:
    """The runs in a folder: waiting, running, stopping, done, stopped or failed.

    Of each, `words` are the arguments of `mdec`, and `folder` is where its result goes.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._jobs: dict[int, dict[str, Any]] = {}
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.RLock()
        self._line = ThreadPoolExecutor(1)

    def snapshot(self) -> list[dict[str, Any]]:
        """Return all runs, the last one first, and how many each waits for."""
        ahead, rows = 0, []
        with self._lock:
            for number, job in self._jobs.items():
                rows.append({"number": number, **job, "ahead": ahead})
                ahead += job["state"] in ("waiting", "running", "stopping")
        return rows[::-1]

    def submit(self, words: list[str], folder: str) -> int:
        """Put a run in line and return its number."""
        with self._lock:
            number = len(self._jobs) + 1
            self._jobs[number] = {"words": words, "folder": folder}
            self._wait(number)
        return number

    def resume(self, number: int) -> None:
        """Put a run that was stopped, or has failed, at the end of the line."""
        with self._lock:
            if self._jobs[number]["state"] not in ("stopped", "failed"):
                raise ValueError(f"run {number} is not stopped.")
            self._jobs[number] = self._jobs.pop(number)
            self._wait(number)

    def _wait(self, number: int) -> None:
        self._set(number, state="waiting", step="", done=0, total=0, message="")
        self._line.submit(self._work, number)

    def stop(self, number: int) -> None:
        """Stop a run; its checkpoint stays."""
        with self._lock:
            if self._jobs[number]["state"] == "waiting":
                self._set(number, state="stopped", message="Removed from the queue.")
            elif self._jobs[number]["state"] == "running":
                self._set(number, state="stopping")
                self._tell_to_stop()

    def close(self) -> None:
        """Stop all runs and wait for their end; nothing is left half-written."""
        for number in list(self._jobs):
            self.stop(number)
        self._line.shutdown()

    def _set(self, number: int, **new: Any) -> None:
        with self._lock:
            self._jobs[number] |= new

    def _tell_to_stop(self) -> None:
        """Let the process of the run end, and kill it if it does not."""
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
            timer = threading.Timer(PATIENCE, self._process.kill)
            timer.daemon = True
            timer.start()

    def _work(self, number: int) -> None:
        """Do a run whose turn it is, unless it was taken out of the line."""
        with self._lock:
            if self._jobs[number]["state"] != "waiting":
                return
            self._set(number, state="running", step="starting")
        try:
            code, words = self._run(number)
        except OSError as error:
            code, words = 2, str(error)
        with self._lock:
            asked = self._jobs[number]["state"] == "stopping"
            state, message = judge_end(code, words, asked=asked)
            self._set(number, state=state, message=message)

    def _run(self, number: int) -> tuple[int, str]:
        """Run a process, and return how it ended and what it said last."""
        with (
            tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said,
            subprocess.Popen(
                [sys.executable, "-m", "mdec.app.jobs", *self._jobs[number]["words"]],
                cwd=self.root,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,  # Ctrl-C is for the page, which tells the run
            ) as process,
        ):
            with self._lock:
                self._process = process
                if self._jobs[number]["state"] == "stopping":
                    self._tell_to_stop()
            for line in process.stdout or ():
                self._set(number, **json.loads(line))
            code = process.wait()
            said.seek(0)
            return code, said.read()[-_LONGEST:].strip().removeprefix("mdec: ")


def judge_end(code: int, words: str, *, asked: bool) -> tuple[str, str]:
    """Return the state that a run ends in, and one sentence about it."""
    if code == 0:
        return "done", ""
    if asked:
        return "stopped", "Stopped; finished base clusterings are kept."
    if code == 2 and words:
        return "failed", words
    if code < 0:
        return "failed", (
            f"The system ended the run ({signal.Signals(-code).name}), as "
            "happens when memory runs out; Resume continues with what is finished."
        )
    last = words.splitlines()[-1] if words else f"exit code {code}"
    return "failed", f"This is a bug in mdec ({last}); please report it."


def work(words: list[str]) -> None:
    """Run a command of `mdec` in this process, resumably, and tell how far it is."""
    sys.argv = ["mdec", *words]  # the result tells by which command it was made
    # A shell that starts the app in the background lets its processes ignore this.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=_stop_with_parent, daemon=True).start()
    _tell(sys.stdout, "reading the table")
    with progress_to(
        members=partial(_tell, sys.stdout, "base clusterings"),
        null=partial(_tell, sys.stdout, "testing whether there are groups"),
    ):
        cli.main([*words, "--quiet", "--resume"])


def _stop_with_parent() -> None:
    while os.read(0, 4096):  # a buffered file would not let Python end
        pass
    _thread.interrupt_main()


def _tell(out: IO[str], step: str, done: int = 0, total: int = 0) -> None:
    if total and done == total:
        step, done, total = "consensus and report", 0, 0
    out.write(json.dumps({"step": step, "done": done, "total": total}) + "\n")
    out.flush()


if __name__ == "__main__":
    work(sys.argv[1:])
