"""Execute a study: hand groups to worker processes, append what they report."""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from mdec.datasets import fetch_dataset
from mdec.experiments.plan import Group, plan_groups
from mdec.experiments.process import Worker
from mdec.experiments.records import (
    OK,
    DatasetRecord,
    Journal,
    RunRecord,
    Store,
    run_key,
    same_data,
)
from mdec.experiments.study import Study
from mdec.experiments.worker import dataset_record

Notify = Callable[["Progress"], None]


@dataclass
class Progress:
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
        Datasets that could not be had, and why.
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
) -> Progress:
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
        Called with the `Progress` after each run.

    Returns
    -------
    Progress
        The state at the end.

    Notes
    -----
    ``limits.seconds_per_run`` bounds the making of an ensemble and each method;
    ``limits.seconds_total`` bounds the call, after which it can be called again;
    ``limits.memory_gb`` bounds what a worker allocates, on Linux.
    """
    target = Path(path)
    progress = Progress()
    with Journal(target) as journal:
        store = journal.store
        found = _find_data(study, progress, offline=offline)
        _refuse_mixing(study, found, store, target)
        if store.study != study.text:
            journal.append({"record": "study", "study": study.text})
        for record in found:
            if record["dataset"] not in store.datasets:
                journal.append(record)
        done = {
            key for key, run in store.runs.items() if run["status"] == OK or not retry
        }
        groups = [
            group
            for group in plan_groups(study)
            if group.dataset.name not in progress.unavailable
        ]
        progress.n_runs = sum(len(group.runs) for group in groups)
        pending = [left for g in groups if (left := _pending(g, done)).runs]
        progress.n_done = progress.n_runs - sum(len(g.runs) for g in pending)
        _Dispatcher(study, pending, journal, progress, notify).work(n_jobs)
    return progress


def _find_data(
    study: Study, progress: Progress, *, offline: bool
) -> list[DatasetRecord]:
    """Return the records of the datasets that can be had, as they are now."""
    found = []
    for spec in study.datasets:
        try:
            if spec.kind != "file":
                fetch_dataset(spec.source, download=not offline)
            found.append(dataset_record(spec))
        except (OSError, ValueError, ImportError) as error:
            progress.unavailable[spec.name] = str(error)
    return found


def _refuse_mixing(
    study: Study, found: list[DatasetRecord], store: Store, path: Path
) -> None:
    """Raise if the records are of another study or of other data."""
    if store.study and store.study["name"] != study.name:
        raise ValueError(
            f"{os.fspath(path)!r} holds records of the study {store.study['name']!r}, "
            f"whose seeds are not those of {study.name!r}; give another file."
        )
    changed = [
        record["dataset"]
        for record in found
        if (known := store.datasets.get(record["dataset"])) is not None
        and not same_data(known, record)
    ]
    if changed:
        raise ValueError(
            f"the data of {', '.join(changed)} have changed since the runs in "
            f"{os.fspath(path)!r}; give another file of records, or the old data."
        )


def _pending(group: Group, done: set[str]) -> Group:
    left = (run for run in group.runs if run_key(group.record(run)) not in done)
    return replace(group, runs=tuple(left))


@dataclass
class _Dispatcher:
    """Feeds workers, one thread each, and writes what they send."""

    study: Study
    groups: list[Group]
    journal: Journal
    progress: Progress
    notify: Notify | None

    def __post_init__(self) -> None:
        self.groups = list(reversed(self.groups))
        self._lock = threading.Lock()
        self._workers: list[Worker] = []
        self._spent: defaultdict[str, list[float]] = defaultdict(list)
        self._stopped = False
        total = self.study.limits.seconds_total
        self._end = time.monotonic() + total if total else float("inf")

    def work(self, n_jobs: int) -> None:
        n_workers = max(1, min(n_jobs, len(self.groups)))
        with ThreadPoolExecutor(n_workers) as pool:
            served = [pool.submit(self._serve, n_workers) for _ in range(n_workers)]
            try:
                for future in served:
                    future.result()
            finally:  # an interrupt ends the workers too
                self._stopped = True
                for worker in self._workers:
                    worker.kill()

    def _serve(self, n_workers: int) -> None:
        worker = Worker(self.study)
        with self._lock:
            self._workers.append(worker)
        try:
            while (group := self._next()) is not None:
                worker.ensure_started()
                start = time.monotonic()
                while group.runs:
                    group = self._execute(worker, group)
                with self._lock:
                    self._spent[group.dataset.name].append(time.monotonic() - start)
                    self.progress.eta = self._remaining() / n_workers
        finally:
            worker.close()

    def _next(self) -> Group | None:
        with self._lock:
            late = time.monotonic() > self._end
            if not self.groups or self._stopped or late:
                return None
            return self.groups.pop()

    def _execute(self, worker: Worker, group: Group) -> Group:
        """Run a group; return what is left of it if the worker had to be ended."""
        stage: int | str = "generation"
        for answer in worker.execute(group):
            if isinstance(answer, int | str):
                stage = answer
            else:
                self._take(answer)
        if stage == "done" or self._stopped:
            return replace(group, runs=())
        status, reason = worker.cause_of_death()
        hit = group.runs if stage == "generation" else group.runs[int(stage) :][:1]
        for run in hit:
            self._take(group.record(run, status, reason))
        left = () if stage == "generation" else group.runs[int(stage) + 1 :]
        return replace(group, runs=left)

    def _take(self, record: RunRecord) -> None:
        with self._lock:
            self.journal.append(record)
            self.progress.n_done += 1
            self.progress.n_failed += record["status"] != OK
            self.progress.last = (
                f"{record['dataset']} {record['method']} "
                f"#{record['repetition'] + 1}: {record['status']}"
            )
            if self.notify is not None:
                self.notify(self.progress)

    def _remaining(self) -> float:
        """Return the expected work of the waiting groups, by dataset where known."""
        means = {name: sum(s) / len(s) for name, s in self._spent.items()}
        overall = sum(means.values()) / len(means)
        return sum(means.get(g.dataset.name, overall) for g in self.groups)
