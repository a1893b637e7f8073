"""Run a study: hand groups to worker processes and append their records.

Runs are executed in processes of their own, which the one that writes records can
therefore end when a run takes too long or too much memory.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import platform
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, lru_cache, partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from mdec._support.memory import available_memory
from mdec._support.optional import versions
from mdec._support.parallel import single_threaded_blas
from mdec.bench.baselines import BASELINES, generate_kmeans_ensemble
from mdec.bench.datasets import Dataset, fetch_dataset, load_dataset
from mdec.bench.methods import resolve, scanpy_leiden
from mdec.bench.records import (
    FAILED,
    MISSING,
    OK,
    OUT_OF_MEMORY,
    TIMEOUT,
    Record,
    Records,
    encode_labels,
    open_journal,
    run_key,
    same_data,
)
from mdec.bench.study import DatasetSpec, Group, Study, plan_groups
from mdec.ensemble import Ensemble
from mdec.estimator import MDEC

_STOPPED = "stopped"
_CACHED_DATASETS = 32
_PACKAGES = ("mdec", "numpy", "scipy", "scikit-learn", "numba")
# What a worker process executes; its arguments are those of `serve`.
_SERVE = "from mdec.bench.run import serve; serve()"

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
        found = _find_data(study, progress, offline=offline)
        _refuse_mixing(study, found, records, os.fspath(path))
        if records.study != study.text:
            write({"record": "study", "study": study.text})
        for record in found:
            if record["dataset"] not in records.datasets:
                write(record)
        done = {
            key for key, run in records.runs.items() if run["status"] == OK or not retry
        }
        pending = []
        for group in plan_groups(study):
            if group.dataset.name in progress.unavailable:
                continue
            left = [run for run in group.runs if run_key(run) not in done]
            progress.n_runs += len(group.runs)
            progress.n_done += len(group.runs) - len(left)
            if left:
                pending.append(replace(group, runs=tuple(left)))

        def append(record: Record) -> None:
            write(record)
            progress.n_done += 1
            progress.n_failed += record["status"] != OK
            name = f"{record['dataset']} {record['method']}"
            progress.last = f"{name} #{record['repetition'] + 1}: {record['status']}"
            if notify is not None:
                notify(progress)

        _run_groups(study, pending, n_jobs, append, progress)
    return progress


def _find_data(study: Study, progress: StudyProgress, *, offline: bool) -> list[Record]:
    """Return the records of the available datasets as they are now."""
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
    study: Study, found: list[Record], records: Records, path: str
) -> None:
    """Raise if the records are of another study or of other data."""
    name = records.study.get("name", study.name)
    if name != study.name:
        raise ValueError(
            f"{path!r} holds records of the study {name!r}, whose seeds are not those "
            f"of {study.name!r}; give another file."
        )
    changed = [
        new["dataset"]
        for new in found
        if (old := records.datasets.get(new["dataset"])) and not same_data(old, new)
    ]
    if changed:
        raise ValueError(
            f"the data of {', '.join(changed)} have changed since the runs in "
            f"{path!r}; give another file of records, or the old data."
        )


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
            status, message = self._cause_of_death()
            left = group.runs[max(n_answers - 1, 0) :]
            # Without the ensemble there is none of the runs.
            n_hit = 1 if n_answers else len(left)
            for run in left[:n_hit]:
                yield {**run, "status": status, "message": message}
            group = replace(group, runs=left[n_hit:])

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

    def _cause_of_death(self) -> tuple[str, str]:
        """Return the status and the reason of a process that has ended."""
        code, message, end = self._process.wait(), self._last_line(), self._end
        self.close()
        self._end = ""
        if end == TIMEOUT:
            limit = self._study.limits["seconds_per_run"]
            return TIMEOUT, f"took more than {limit:g} seconds."
        if code == -signal.SIGKILL:
            return OUT_OF_MEMORY, "was ended by the system, which had no memory left."
        return FAILED, f"the process ended with code {code}: {message}"

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
        self._process = None


def _run_groups(
    study: Study,
    groups: list[Group],
    n_jobs: int,
    append: Callable[[Record], None],
    progress: StudyProgress,
) -> None:
    """Run groups in worker processes, one thread each, and append their records."""
    lock, waiting = threading.Lock(), groups[::-1]
    end = time.monotonic() + (study.limits.get("seconds_total") or float("inf"))
    seconds: defaultdict[str, list[float]] = defaultdict(list)
    workers = [_Worker(study) for _ in range(max(1, min(n_jobs, len(groups))))]

    def next_group() -> Group | None:
        with lock:
            return waiting.pop() if waiting and time.monotonic() <= end else None

    def serve(worker: _Worker) -> None:
        with closing(worker):
            while (group := next_group()) is not None:
                worker.start()
                start = time.monotonic()
                for record in worker.run(group):
                    with lock:
                        append(record)
                with lock:
                    seconds[group.dataset.name].append(time.monotonic() - start)
                    means = {name: fmean(each) for name, each in seconds.items()}
                    rest = fmean(means.values())
                    left = [means.get(g.dataset.name, rest) for g in waiting]
                    progress.eta = sum(left) / len(workers)

    with ThreadPoolExecutor(len(workers)) as pool:
        try:
            for future in [pool.submit(serve, worker) for worker in workers]:
                future.result()
        finally:  # an interrupt ends the workers too
            waiting.clear()
            for worker in workers:
                worker.kill(_STOPPED)


@lru_cache(maxsize=_CACHED_DATASETS)
def _load(spec: DatasetSpec) -> Dataset:
    return load_dataset(spec.source, target=spec.target, download=False)


def dataset_record(spec: DatasetSpec) -> Record:
    """Return the record of a dataset: its shape, its bytes' checksum, its classes."""
    dataset = _load(spec)
    if dataset.target is None:
        raise ValueError(
            f"{spec.source} names no classes to score against; give the column that "
            "holds them as target."
        )
    data = np.ascontiguousarray(dataset.data)
    return {
        "record": "dataset",
        "dataset": spec.name,
        "n_samples": data.shape[0],
        "n_features": data.shape[1],
        "n_clusters": len(dataset.target_names),
        "dtype": str(data.dtype),
        "sha256": hashlib.sha256(data.tobytes()).hexdigest(),
        "classes": encode_labels(dataset.target),
    }


@cache
def commit() -> str:
    """Return the commit of the checkout that this code runs from; empty without one."""
    here = Path(__file__)
    git = ["git", "-C", str(here.parent)]
    tracked = [*git, "ls-files", "--error-unmatch", here.name]
    head = [*git, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        # Installed code may lie below a checkout of something else.
        subprocess.run(tracked, check=True, capture_output=True)
        answer = subprocess.run(head, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return answer.stdout.strip()


@cache
def machine() -> Record:
    """Return the facts about the machine that timings depend on."""
    processor = _system_value("/proc/cpuinfo", "model name")
    return {
        "system": platform.platform(terse=True),
        "processor": processor or platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "available_memory": available_memory(),
    }


def _system_value(path: str, name: str) -> str:
    """Return the value of a name in a file of the system; empty except on Linux."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:  # not Linux
        return ""
    values = [line.split(":", 1)[1] for line in lines if line.startswith(name)]
    return values[0].strip() if values else ""


def _process_bytes(name: str) -> int:
    value = _system_value("/proc/self/status", name)
    return int(value.split()[0]) * 1024 if value else 0


def measure(
    call: Callable[[], Any], before: Record | None = None
) -> tuple[Any, Record]:
    """Make a call on one BLAS thread; return its result and what to record of it.

    Its status, a message, its costs and its warnings: a failure is a status, not an
    exception. Where the record `before`, of what the call needs, is of a failure, this
    is what is recorded.
    """
    if before is not None and before["status"] != OK:
        return None, before
    result, status, message = None, OK, ""
    with suppress(OSError):  # not Linux: the peak is that of the process so far
        Path("/proc/self/clear_refs").write_text("5")
    wall, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings(record=True) as caught, single_threaded_blas():
        warnings.simplefilter("always")
        try:
            result = call()
        except MemoryError as error:
            status, message = OUT_OF_MEMORY, str(error)
        except ImportError as error:
            status, message = MISSING, str(error)
        # A method may fail in any way; the study goes on and the record says how.
        except Exception as error:  # noqa: BLE001
            status, message = FAILED, f"{type(error).__name__}: {error}"
    costs = {
        "seconds": round(time.perf_counter() - wall, 4),
        "cpu_seconds": round(time.process_time() - cpu, 4),
        "peak_bytes": _peak(),
    }
    messages = {str(entry.message) for entry in caught}
    notes = {"status": status, "message": message, "costs": costs}
    return result, {**notes, "warnings": messages}


def _peak() -> int:
    if peak := _process_bytes("VmHWM"):
        return peak
    try:
        import resource
    except ImportError:  # Windows
        return 0
    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale


def limit_memory(n_bytes: int) -> None:
    """Make allocations beyond what is used now plus `n_bytes` fail, on Linux."""
    if sys.platform == "linux":
        import resource

        most = _process_bytes("VmData") + n_bytes
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def execute(group: Group) -> Iterator[Record | None]:
    """Make the ensemble of a group, then apply its methods one after the other.

    Yields None after the ensemble, and the record of each run after it.
    """
    dataset, before = measure(partial(_load, group.dataset))
    data, generation = measure(partial(_generate, dataset, group), before)
    yield None
    for run in group.runs:
        call = partial(_apply, group.functions[run["method"]], data, dataset, run)
        labels, consensus = measure(call, generation)
        record = {
            **run,
            "status": consensus["status"],
            "message": consensus["message"],
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": versions(*_PACKAGES),
            "commit": commit(),
            "machine": machine(),
            "generation": generation["costs"],
            "consensus": consensus["costs"],
            "warnings": sorted(generation["warnings"] | consensus["warnings"]),
        }
        if consensus["status"] == OK:
            record["labels"] = encode_labels(np.asarray(labels))
            record["n_found"] = int(np.unique(labels).size)
        yield record


def _generate(dataset: Dataset, group: Group) -> Any:
    if group.function is None:
        return np.asarray(dataset.data, dtype=np.float64)
    generate = resolve(group.function)
    return generate(dataset.data, random_state=group.seed, **group.parameters)


def _apply(function: str, data: Any, dataset: Dataset, run: Record) -> Any:
    if isinstance(data, Ensemble):
        data = data[: run["generator_parameters"].get("ensemble_size")]
    labels = resolve(function)(
        data, len(dataset.target_names), random_state=run["seed"], **run["parameters"]
    )
    if np.shape(labels) != (len(dataset.data),):
        raise ValueError(
            f"the method gave labels of shape {np.shape(labels)} for "
            f"{len(dataset.data)} samples."
        )
    return labels


def _warm_up(generators: list[str]) -> None:
    """Load the compiled loops, which belongs to no run's time."""
    X = np.random.default_rng(0).normal(size=(1200, 8))
    if not {"mdec", "prepared"}.isdisjoint(generators):
        for dtype in (np.float32, np.float64):
            model = MDEC(3, ensemble_size=3, random_state=0)
            model.fit(X[:400].astype(dtype))
            for consensus in ("spectral", "bipartite"):
                model.recluster(consensus=consensus)
    if not {"kmeans", "stratified"}.isdisjoint(generators):
        for data in (X, X[:60]):  # large data are clustered in float32
            ensemble = generate_kmeans_ensemble(data, ensemble_size=5, random_state=0)
        for name in ("KCC", "PTGP", "SEC", "LWGP", "SPCE"):
            BASELINES[name](ensemble, 2, random_state=0)
    if "components" in generators:
        with suppress(ImportError):
            scanpy_leiden(X[:60], 2, random_state=0)


def serve() -> None:
    """Serve groups from standard input until it closes.

    The first argument of the process limits its memory in GB, 0 being no limit; the
    others name the generators whose compiled loops are loaded first.
    """
    memory_gb, generators = float(sys.argv[1]), sys.argv[2:]
    # Methods may print; only records go to the reader.
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    groups: queue.SimpleQueue[Group] = queue.SimpleQueue()

    def listen() -> None:
        try:
            while True:
                groups.put(pickle.load(sys.stdin.buffer))
        finally:
            # Whoever reads the records is gone: end in the middle of a run as well.
            os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    _warm_up(generators)
    if memory_gb:
        limit_memory(int(memory_gb * 1e9))
    output.write(b"\n")  # ready
    output.flush()
    while True:
        for answer in execute(groups.get()):
            pickle.dump(answer, output)
            output.flush()
