"""A worker process seen from outside: started when needed, ended at its limits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import IO

from mdec.experiments.plan import Group
from mdec.experiments.records import FAILED, OUT_OF_MEMORY, TIMEOUT, RunRecord
from mdec.experiments.study import Study

# A worker tells the stage it is at, then the record of what it did there.
Answer = str | int | RunRecord


class Worker:
    """A process that executes groups; started when needed, ended at its limits."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._process: subprocess.Popen[str] | None = None
        self._complaints: IO[str] | None = None
        self._late = False

    def execute(self, group: Group) -> Iterator[Answer]:
        """Yield the answers to a group; fewer than expected if the process ends."""
        process = self.ensure_started()
        limit = self._study.limits.seconds_per_run
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(group.to_json() + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            return
        while True:
            timer = threading.Timer(limit, self._kill_late) if limit else None
            if timer is not None:
                timer.start()
            line = process.stdout.readline()
            if timer is not None:
                timer.cancel()
            if not line.endswith("\n"):
                return
            answer: Answer = json.loads(line)
            yield answer
            if answer == "done":
                return

    def ensure_started(self) -> subprocess.Popen[str]:
        """Return the process, ready for its first group."""
        if self._process is not None:
            return self._process
        memory = self._study.limits.memory_gb or 0
        generators = [m.generator or "" for m in self._study.methods.values()]
        command = "from mdec.experiments.worker import serve; serve()"
        folders = [self._study.folder, os.environ.get("PYTHONPATH", "")]
        self._late = False
        # Closed with the process.
        self._complaints = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-c", command, str(memory), *generators],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))},
        )
        assert self._process.stdout is not None
        if not self._process.stdout.readline():  # its sign of being ready
            raise RuntimeError(f"a worker could not start: {self._last_words()}")
        return self._process

    def _kill_late(self) -> None:
        self._late = True
        self.kill()

    def _last_words(self) -> str:
        assert self._complaints is not None
        self._complaints.seek(0)
        lines = [line.strip() for line in self._complaints if line.strip()]
        return lines[-1][:300] if lines else "it left no message."

    def cause_of_death(self) -> tuple[str, str]:
        """Return the status and the sentence for a process that ended by itself."""
        assert self._process is not None
        code, words = self._process.wait(), self._last_words()
        self.close()
        if self._late:
            limit = self._study.limits.seconds_per_run
            return TIMEOUT, f"took more than {limit:g} seconds."
        if code == -signal.SIGKILL:
            return OUT_OF_MEMORY, "was ended by the system, which had no memory left."
        return FAILED, f"the process ended with code {code}: {words}"

    def kill(self) -> None:
        """End the process; its reader sees the end of its output."""
        process = self._process
        if process is not None:
            process.kill()

    def close(self) -> None:
        """End the process and let go of its streams."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, self._complaints):
            if stream is not None:
                stream.close()
