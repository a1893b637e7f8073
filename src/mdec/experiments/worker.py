"""The process that executes runs: a group comes in as JSON, records go out.

It lives apart from the one that writes records, which can therefore end it when a run
takes too long or too much memory.
"""

from __future__ import annotations

import hashlib
import json
import os
import queue
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Any

import numpy as np

from mdec.baselines import BASELINES, generate_kmeans_ensemble
from mdec.datasets import Dataset, load_dataset
from mdec.ensemble import Ensemble
from mdec.estimator import MDEC
from mdec.experiments.measure import (
    Measured,
    commit,
    limit_memory,
    machine,
    versions,
)
from mdec.experiments.methods import resolve
from mdec.experiments.plan import Group, Run
from mdec.experiments.process import Answer
from mdec.experiments.records import OK, DatasetRecord, Parameters, encode_labels
from mdec.experiments.study import DatasetSpec

Emit = Callable[[Answer], None]

_CACHED_DATASETS = 32
_PACKAGES = ("mdec", "numpy", "scipy", "scikit-learn", "numba")


@lru_cache(maxsize=_CACHED_DATASETS)
def _load(spec: DatasetSpec) -> Dataset:
    return load_dataset(spec.source, target=spec.target, download=False)


def dataset_record(spec: DatasetSpec) -> DatasetRecord:
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


def execute(group: Group, emit: Emit) -> None:
    """Make the ensemble of a group, then apply its methods one after the other.

    `emit` takes the name of each stage before it, and a record after each run.
    """
    emit("generation")
    loaded = Measured(partial(_load, group.dataset))
    made = _after(loaded, partial(_generate, loaded.result, group))
    for index, run in enumerate(group.runs):
        emit(index)
        done = _after(made, partial(_apply, made.result, loaded.result, run))
        record = group.record(run, done.status, done.message)
        record |= {
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": versions(*_PACKAGES),
            "commit": commit(),
            "machine": machine(),
            "generation": made.costs,
            "consensus": done.costs,
            "warnings": sorted({*made.warnings, *done.warnings}),
        }
        if done.status == OK:
            labels = np.asarray(done.result)
            record["labels"] = encode_labels(labels)
            record["n_found"] = int(np.unique(labels).size)
        emit(record)


def _after(before: Measured, call: Callable[[], Any]) -> Measured:
    """Make a call unless what it needs has failed."""
    return Measured(call) if before.status == OK else before


def _generate(dataset: Dataset, group: Group) -> Any:
    if group.function is None:
        return np.asarray(dataset.data, dtype=np.float64)
    generate = resolve(group.function)
    return generate(dataset.data, random_state=group.seed, **_tuples(group.parameters))


def _apply(made: Any, dataset: Dataset, run: Run) -> Any:
    size = run.generator_parameters.get("ensemble_size")
    if isinstance(made, Ensemble) and size is not None:
        made = made[:size]
    n_classes, parameters = len(dataset.target_names), _tuples(run.parameters)
    labels = resolve(run.function)(made, n_classes, random_state=run.seed, **parameters)
    if np.shape(labels) != (len(dataset.data),):
        raise ValueError(
            f"the method gave labels of shape {np.shape(labels)} for "
            f"{len(dataset.data)} samples."
        )
    return labels


def _tuples(parameters: Parameters) -> Parameters:
    """Study files have lists where signatures have tuples."""
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in parameters.items()
    }


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


def serve() -> None:
    """Serve groups from standard input until it closes.

    The first argument of the process limits its memory in GB, 0 being no limit; the
    others name the generators whose compiled loops are loaded first.
    """
    memory_gb, generators = float(sys.argv[1]), sys.argv[2:]
    # Methods may print; only records go to the reader.
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    groups: queue.SimpleQueue[Group] = queue.SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            groups.put(Group.from_json(line))
        # Whoever reads the records is gone: end in the middle of a run as well.
        os._exit(0)

    def emit(answer: Answer) -> None:
        output.write(json.dumps(answer, separators=(",", ":")) + "\n")
        output.flush()

    threading.Thread(target=listen, daemon=True).start()
    _warm_up(generators)
    if memory_gb:
        limit_memory(int(memory_gb * 1e9))
    emit("ready")
    while True:
        execute(groups.get(), emit)
        emit("done")
