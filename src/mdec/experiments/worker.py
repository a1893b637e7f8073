"""The process that executes runs: a group comes in as JSON, records go out.

It lives apart from the one that writes records, which can therefore end it when a run
takes too long or too much memory.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import queue
import sys
import threading
import time
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache, lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from mdec._support.memory import available_memory
from mdec._support.parallel import single_threaded_blas
from mdec.datasets import Dataset, load_dataset
from mdec.ensemble import Ensemble
from mdec.experiments.methods import resolve
from mdec.experiments.records import (
    FAILED,
    MISSING,
    OK,
    OUT_OF_MEMORY,
    Record,
    encode_labels,
)

Emit = Callable[[Record], None]

_CACHED_DATASETS = 32
_PACKAGES = ("mdec", "numpy", "scipy", "scikit-learn", "numba")


@lru_cache(maxsize=_CACHED_DATASETS)
def _load(source: str, target: str | None) -> Dataset:
    return load_dataset(source, target=target, download=False)


def dataset_record(name: str, source: str, target: str | None) -> Record:
    """Return the record of a dataset: its shape, its bytes' checksum, its classes."""
    dataset = _load(source, target)
    if dataset.target is None:
        raise ValueError(
            f"{source} names no classes to score against; give the column that holds "
            "them as target."
        )
    data = np.ascontiguousarray(dataset.data)
    return {
        "record": "dataset",
        "dataset": name,
        "n_samples": data.shape[0],
        "n_features": data.shape[1],
        "n_clusters": len(dataset.target_names),
        "dtype": str(data.dtype),
        "sha256": hashlib.sha256(data.tobytes()).hexdigest(),
        "classes": encode_labels(dataset.target),
    }


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that results depend on."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


@cache
def machine() -> dict[str, Any]:
    """Return what a reader of timings needs to know about the machine."""
    return {
        "system": platform.platform(terse=True),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "available_memory": available_memory(),
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:  # not Linux
        pass
    return platform.processor() or platform.machine()


class Measured:
    """What a call gave and cost; a failure is a status, not an exception."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.result: Any = None
        self.status, self.message = OK, ""
        _reset_peak()
        wall, cpu = time.perf_counter(), time.process_time()
        with warnings.catch_warnings(record=True) as caught, single_threaded_blas():
            warnings.simplefilter("always")
            try:
                self.result = call()
            except MemoryError as error:
                self.status, self.message = OUT_OF_MEMORY, str(error)
            except ImportError as error:
                self.status, self.message = MISSING, str(error)
            # A method may fail in any way; the study goes on and the record says how.
            except Exception as error:  # noqa: BLE001
                self.status = FAILED
                self.message = f"{type(error).__name__}: {error}"
        self.wall = round(time.perf_counter() - wall, 4)
        self.cpu = round(time.process_time() - cpu, 4)
        self.peak = _peak()
        self.warnings = sorted({str(entry.message) for entry in caught})


def _reset_peak() -> None:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:  # not Linux: the peak is that of the process so far
        return


def _peak() -> int:
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024
    except OSError:  # not Linux
        pass
    try:
        import resource
    except ImportError:  # Windows
        return 0
    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale


def execute(group: Record, emit: Emit) -> None:
    """Make the ensemble of a group, then apply its methods one after the other.

    Parameters
    ----------
    group : dict
        As `run.group_message` makes it.
    emit : callable
        Takes a message before each stage and a record after each run.
    """
    emit({"stage": "generation"})
    loaded = Measured(partial(_load, group["source"], group["target"]))
    made = _after(loaded, partial(_generate, loaded.result, group))
    for index, run in enumerate(group["runs"]):
        emit({"stage": index})
        record = _new_record(group, run)
        record["generation"] = _costs(made)
        done = _after(made, partial(_apply, made.result, loaded.result, run))
        record |= {"status": done.status, "message": done.message}
        record["consensus"] = _costs(done)
        record["warnings"] = sorted({*made.warnings, *done.warnings})
        if done.status == OK:
            labels = np.asarray(done.result)
            record["labels"] = encode_labels(labels)
            record["n_found"] = int(np.unique(labels).size)
        emit(record)


def _after(before: Measured, call: Callable[[], Any]) -> Measured:
    """Make a call unless what it needs has failed."""
    return Measured(call) if before.status == OK else before


def _generate(dataset: Dataset, group: Record) -> Any:
    if group["generator"] is None:
        return np.asarray(dataset.data, dtype=np.float64)
    generate = resolve(group["generator_function"])
    parameters = _tuples(group["parameters"])
    return generate(dataset.data, random_state=group["seed"], **parameters)


def _apply(made: Any, dataset: Dataset, run: Record) -> Any:
    size = run["generator_parameters"].get("ensemble_size")
    if isinstance(made, Ensemble) and size is not None:
        made = made[:size]
    labels = resolve(run["function"])(
        made,
        len(dataset.target_names),
        random_state=run["seed"],
        **_tuples(run["parameters"]),
    )
    if np.shape(labels) != (len(dataset.data),):
        raise ValueError(
            f"the method gave labels of shape {np.shape(labels)} for "
            f"{len(dataset.data)} samples."
        )
    return labels


def _tuples(parameters: dict[str, Any]) -> dict[str, Any]:
    """Study files have lists where signatures have tuples."""
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in parameters.items()
    }


def _costs(measured: Measured) -> dict[str, float]:
    return {
        "seconds": measured.wall,
        "cpu_seconds": measured.cpu,
        "peak_bytes": measured.peak,
    }


def _new_record(group: Record, run: Record) -> Record:
    return {
        "record": "run",
        "study": group["study"],
        "dataset": group["dataset"],
        "method": run["method"],
        "generator": group["generator"],
        "generator_parameters": run["generator_parameters"],
        "parameters": run["parameters"],
        "repetition": group["repetition"],
        "generator_seed": group["seed"],
        "seed": run["seed"],
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        "machine": machine(),
    }


def _limit_memory(n_bytes: int) -> None:
    """Make allocations beyond what is used now plus `n_bytes` fail."""
    try:
        import resource
    except ImportError:  # Windows
        return
    used = 0
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmData"):
            used = int(line.split()[1]) * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (used + n_bytes, used + n_bytes))


def _warm_up(generators: list[str]) -> None:
    """Load the compiled loops, which belongs to no run's time."""
    X = np.random.default_rng(0).normal(size=(1200, 8))
    if "mdec" in generators:
        from mdec.estimator import MDEC

        for dtype in (np.float32, np.float64):
            model = MDEC(3, ensemble_size=3, random_state=0)
            model.fit(X[:400].astype(dtype))
            for consensus in ("spectral", "bipartite"):
                model.recluster(consensus=consensus)
    if not {"kmeans", "stratified"}.isdisjoint(generators):
        from mdec.baselines import BASELINES, generate_kmeans_ensemble

        for data in (X, X[:60]):  # large data are clustered in float32
            ensemble = generate_kmeans_ensemble(data, ensemble_size=5, random_state=0)
        for name in ("KCC", "PTGP", "SEC", "LWGP", "SPCE"):
            BASELINES[name](ensemble, 2, random_state=0)


def serve() -> None:
    """Serve groups from standard input until it closes.

    The first argument of the process is JSON: ``warm_up`` names the generators whose
    compiled loops are loaded first, ``memory_gb`` limits the memory.
    """
    options = json.loads(sys.argv[1])
    # Methods may print; only records go to the reader.
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    groups: queue.SimpleQueue[Record] = queue.SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            groups.put(json.loads(line))
        # Whoever reads the records is gone: end in the middle of a run as well.
        os._exit(0)

    def emit(message: Record) -> None:
        output.write(json.dumps(message, separators=(",", ":")) + "\n")
        output.flush()

    threading.Thread(target=listen, daemon=True).start()
    _warm_up(options["warm_up"])
    if options["memory_gb"] and sys.platform == "linux":
        _limit_memory(int(options["memory_gb"] * 1e9))
    emit({"stage": "ready"})
    while True:
        execute(groups.get(), emit)
        emit({"stage": "done"})
