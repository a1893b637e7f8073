"""Run a study: hand groups to worker processes and append their records.

Runs are executed in processes of their own, which the one that writes records can
therefore end when a run takes too long or too much memory.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mdec.bench.datasets import fetch_dataset
from mdec.bench.records import (
    FAILED,
    OK,
    OUT_OF_MEMORY,
    TIMEOUT,
    Record,
    Records,
    decode_labels,
    open_journal,
    run_key,
)
from mdec.bench.study import Group, Study, plan_groups
from mdec.bench.worker import dataset_record

_STOPPED = "stopped"
# What a worker process executes; its arguments are those of `serve`.
_SERVE = "from mdec.bench.worker import serve; serve()"

Notify = Callable[["StudyProgress"], None]


@dataclass
class StudyProgress:
    """How far a study is.

    Attributes
    ----------
    n_runs, n_done : int
        Runs of the study, and those with a record.
    n_failed : int
        Runs of this session that gave no labels.
    last : str
        The latest run, in words.
    eta : float or None
        Seconds to the end at the present pace.
    unavailable : dict
        Datasets that are not available, and why.
    """

    n_runs: int = 0
    n_done: int = 0
    n_failed: int = 0
    last: str = ""
    eta: float | None = None
    unavailable: dict[str, str] = field(default_factory=dict)


def run_study(
    study: Study,
    path: str | os.PathLike[str],
    *,
    n_jobs: int = 1,
    retry: bool = False,
    offline: bool = False,
    notify: Notify | None = None,
) -> StudyProgress:
    """Run what a study asks for and the records do not hold yet.

    Parameters
    ----------
    study : Study
        From `read_study`.
    path : path-like
        File of records; it grows by one line for each run. One of another study, or
        of data that have changed, is refused.
    n_jobs : int, default=1
        Groups executed at the same time, each in a process of its own; changes no
        label.
    retry : bool, default=False
        Repeat runs whose record holds no labels.
    offline : bool, default=False
        Use only datasets that are on disk.
    notify : callable, default=None
        Called with the `StudyProgress` after each run.

    Returns
    -------
    StudyProgress
        The state at the end.

    Notes
    -----
    ``limits.seconds_per_run`` bounds the generation of an ensemble and each method;
    ``limits.seconds_total`` bounds the call, after which it can be called again;
    ``limits.memory_gb`` bounds what a worker allocates, on Linux.
    """
    progress = StudyProgress()
    with open_journal(Path(path)) as (records, write):
        found = _find_data(study, records, progress, os.fspath(path), offline=offline)
        if records.study != study.text:
            write({"record": "study", "study": study.text})
        for record in found:
            if record["dataset"] not in records.datasets:
                write(record)
        runs = records.runs.items()
        done = {key for key, run in runs if run["status"] == OK or not retry}
        pending = []
        for group in plan_groups(study):
            if group.dataset.name in progress.unavailable:
                continue
            left = [run for run in group.runs if run_key(run) not in done]
            progress.n_runs += len(group.runs)
            progress.n_done += len(group.runs) - len(left)
            if left:
                pending.append(group._replace(runs=tuple(left)))
        start, n_before = time.monotonic(), progress.n_done

        def append(record: Record) -> None:
            write(record)
            progress.n_done += 1
            pace = (time.monotonic() - start) / (progress.n_done - n_before)
            progress.eta = pace * (progress.n_runs - progress.n_done)
            progress.n_failed += record["status"] != OK
            name = f"{record['dataset']} {record['method']}"
            progress.last = f"{name} #{record['repetition'] + 1}: {record['status']}"
            if notify is not None:
                notify(progress)

        _run_groups(study, pending, n_jobs, append)
    return progress


def _find_data(
    study: Study, records: Records, progress: StudyProgress, path: str, *, offline: bool
) -> list[Record]:
    """Return the records of the available datasets as they are now.

    Raises if the records that there are already are of another study or of other data.
    """
    name = records.study.get("name", study.name)
    if name != study.name:
        raise ValueError(
            f"{path!r} holds records of the study {name!r}, whose seeds are not those "
            f"of {study.name!r}; give another file."
        )
    found, changed = [], []
    for spec in study.datasets:
        try:
            if spec.kind != "file":
                fetch_dataset(spec.source, download=not offline)
            found.append(dataset_record(spec))
        except (OSError, ValueError, ImportError) as error:
            progress.unavailable[spec.name] = str(error)
            continue
        old, new = records.datasets.get(spec.name, found[-1]), found[-1]
        # Unpacked: another compressor may pack the same classes otherwise.
        a, b = (decode_labels(each["classes"]) for each in (old, new))
        facts = ("n_samples", "n_features", "dtype", "sha256")
        if any(old[f] != new[f] for f in facts) or not np.array_equal(a, b):
            changed.append(spec.name)
    if changed:
        raise ValueError(
            f"the data of {', '.join(changed)} have changed since the runs in "
            f"{path!r}; give another file of records, or the old data."
        )
    return found


class _Worker:
    """A worker process: started when needed, and ended at its limits."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._process: Any = None
        self._stderr: Any = None
        self._end = ""  # why we have ended the process

    def run(self, group: Group) -> Iterator[Record]:
        """Yield the record of each run; a process that ends on the way is replaced."""
        limit = self._study.limits.get("seconds_per_run") or threading.TIMEOUT_MAX
        while group.runs:
            process, n_answers = self.start(), 0
            with suppress(BrokenPipeError, EOFError, pickle.UnpicklingError):
                pickle.dump(group, process.stdin)
                process.stdin.flush()
                # One answer for the ensemble, and a record for each run.
                while n_answers <= len(group.runs):
                    timer = threading.Timer(limit, self.kill, [TIMEOUT])
                    timer.start()
                    try:
                        answer = pickle.load(process.stdout)
                    finally:
                        timer.cancel()
                    n_answers += 1
                    if answer is not None:
                        yield answer
                return
            if self._end == _STOPPED:
                return
            status, message = FAILED, f"the process ended with code {process.wait()}: "
            if self._end == TIMEOUT:
                status, message = TIMEOUT, f"took more than {limit:g} seconds."
            elif process.returncode == -signal.SIGKILL:
                status = OUT_OF_MEMORY
                message = "was ended by the system, which had no memory left."
            else:
                message += self._last_line()
            self.close()
            left = group.runs[max(n_answers - 1, 0) :]
            # Without the ensemble there is none of the runs.
            n_hit = 1 if n_answers else len(left)
            for run in left[:n_hit]:
                yield {**run, "status": status, "message": message}
            group = group._replace(runs=left[n_hit:])

    def start(self) -> Any:
        """Return the process, ready for its first group."""
        if self._process is not None:
            return self._process
        memory = self._study.limits.get("memory_gb") or 0
        generators = [m.generator or "" for m in self._study.methods.values()]
        folders = [self._study.folder, os.environ.get("PYTHONPATH", "")]
        # Closed with the process.
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVE, str(memory), *generators],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))},
        )
        if not self._process.stdout.read(1) and self._end != _STOPPED:
            raise RuntimeError(f"a worker could not start: {self._last_line()}")
        return self._process

    def _last_line(self) -> str:
        self._stderr.seek(0)
        text = self._stderr.read().decode(errors="replace").strip()
        return text.splitlines()[-1][:300] if text else "it left no message."

    def kill(self, reason: str) -> None:
        """End the process; its reader sees the end of its output."""
        if self._end != _STOPPED:
            self._end = reason
        if (process := self._process) is not None:
            process.kill()

    def close(self) -> None:
        """End the process and close its streams."""
        if self._process is not None:
            with suppress(BrokenPipeError), self._stderr, self._process:
                self._process.kill()
        self._process, self._end = None, ""


def _run_groups(
    study: Study, groups: list[Group], n_jobs: int, append: Callable[[Record], None]
) -> None:
    """Run groups in worker processes, one thread each, and append their records."""
    lock, waiting = threading.Lock(), groups[::-1]
    end = time.monotonic() + (study.limits.get("seconds_total") or float("inf"))
    workers = [_Worker(study) for _ in range(max(1, min(n_jobs, len(groups))))]

    def serve(worker: _Worker) -> None:
        with closing(worker):
            while True:
                with lock:
                    if not waiting or time.monotonic() > end:
                        return
                    group = waiting.pop()
                for record in worker.run(group):
                    with lock:
                        append(record)

    with ThreadPoolExecutor(len(workers)) as pool:
        try:
            list(pool.map(serve, workers))
        finally:  # an interrupt ends the workers too
            waiting.clear()
            for worker in workers:
                worker.kill(_STOPPED)
