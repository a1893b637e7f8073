"""The process that executes runs: groups come in, records go out."""

from __future__ import annotations

import hashlib
import os
import pickle
import platform
import queue
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from mdec._support.memory import available_memory
from mdec._support.optional import versions
from mdec._support.parallel import single_threaded_blas
from mdec.bench.baselines import BASELINES, generate_kmeans_ensemble
from mdec.bench.datasets import Dataset, load_dataset
from mdec.bench.methods import resolve, scanpy_leiden
from mdec.bench.records import FAILED, MISSING, OK, OUT_OF_MEMORY, Record, encode_labels
from mdec.bench.study import DatasetSpec, Group
from mdec.ensemble import Ensemble
from mdec.estimator import MDEC

_PACKAGES = ("mdec", "numpy", "scipy", "scikit-learn", "numba")


@lru_cache(maxsize=32)
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
    with suppress(OSError):  # not Linux
        for line in Path(path).read_text().splitlines():
            if line.startswith(name):
                return line.partition(":")[2].strip()
    return ""


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
    if peak := _system_value("/proc/self/status", "VmHWM"):
        return int(peak.split()[0]) * 1024
    try:
        import resource
    except ImportError:  # Windows
        return 0
    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale


def execute(group: Group) -> Iterator[Record | None]:
    """Make the ensemble of a group, then apply its methods one after the other.

    Yields None after the ensemble, and the record of each run after it.
    """

    def generate() -> Any:
        if group.function is None:
            return np.asarray(dataset.data, dtype=np.float64)
        function = resolve(group.function)
        return function(dataset.data, random_state=group.seed, **group.parameters)

    def apply(run: Record) -> Any:
        shared = data
        if isinstance(data, Ensemble):
            shared = data[: run["generator_parameters"].get("ensemble_size")]
        function = resolve(group.methods[run["method"]].function)
        options = {"random_state": run["seed"], **run["parameters"]}
        labels = function(shared, len(dataset.target_names), **options)
        if np.shape(labels) != (len(dataset.data),):
            raise ValueError(
                f"the method gave labels of shape {np.shape(labels)} for "
                f"{len(dataset.data)} samples."
            )
        return labels

    dataset, before = measure(partial(_load, group.dataset))
    data, generation = measure(generate, before)
    yield None
    for run in group.runs:
        labels, consensus = measure(partial(apply, run), generation)
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


def _warm_up(generators: set[str]) -> None:
    """Load the compiled loops, which belongs to no run's time."""
    X = np.random.default_rng(0).normal(size=(1200, 8))
    if generators & {"mdec", "prepared"}:
        for dtype in (np.float32, np.float64):
            model = MDEC(3, ensemble_size=3, random_state=0)
            model.fit(X[:400].astype(dtype))
            for consensus in ("spectral", "bipartite"):
                model.recluster(consensus=consensus)
    if generators & {"kmeans", "stratified"}:
        ensemble = generate_kmeans_ensemble(X[:60], ensemble_size=5, random_state=0)
        for name in ("PTGP", "LWGP", "SPCE"):
            BASELINES[name](ensemble, 2, random_state=0)
    if "components" in generators:
        with suppress(ImportError):
            scanpy_leiden(X[:60], 2, random_state=0)


def serve() -> None:
    """Serve groups from standard input until it closes.

    The first argument of the process limits in GB, on Linux, what is allocated beyond
    what is used at the start, 0 being no limit; the others name the generators whose
    compiled loops are loaded first.
    """
    memory_gb, generators = float(sys.argv[1]), set(sys.argv[2:])
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
    if memory_gb and sys.platform == "linux":
        process = psutil.Process()
        most = process.memory_info().data + int(memory_gb * 1e9)
        process.rlimit(psutil.RLIMIT_DATA, (most, most))
    output.write(b"\n")  # ready
    output.flush()
    while True:
        for answer in execute(groups.get()):
            pickle.dump(answer, output)
            output.flush()
