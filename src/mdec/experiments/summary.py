"""From records to tables of means. No files, no figures."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec.evaluation import METRICS
from mdec.experiments.records import OK, Record, Store, decode_labels

Array = NDArray[np.floating]

METRIC_TITLES = {
    "nmi_max": "NMI (mutual information over the larger entropy)",
    "nmi_geometric": "NMI (over the geometric mean of the entropies)",
    "nmi_arithmetic": "NMI (over the arithmetic mean of the entropies)",
    "ami": "AMI (adjusted mutual information)",
    "ari": "ARI (adjusted Rand index)",
    "purity": "purity",
    "accuracy": "accuracy (clusters matched to classes one to one)",
    "seconds": "seconds, making the ensemble included",
    "cpu_seconds": "CPU seconds on one core, making the ensemble included",
}

# Less is better.
COSTS = {"seconds", "cpu_seconds"}


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Scores of methods on datasets.

    Attributes
    ----------
    metric : str
        A key of `METRIC_TITLES`.
    datasets, methods : tuple of str
        Rows and columns.
    mean, std : ndarray of shape (n_datasets, n_methods)
        In percent, or in seconds; NaN where there is no score.
    counts : ndarray of int
        Runs behind each mean.
    status : ndarray of str
        Why there is no score: "OM", "timeout", ...; empty where there is one.
    """

    metric: str
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    mean: Array
    std: Array
    counts: NDArray[np.int64]
    status: NDArray[np.str_]

    @property
    def lower_is_better(self) -> bool:
        """Whether the metric is a cost."""
        return self.metric in COSTS


def variant(record: Record, swept: Sequence[str] = ()) -> str:
    """Return the name of a column: the method and its swept parameters.

    Examples
    --------
    >>> record = {"method": "MDEC-HC", "parameters": {"weighting": "uniform"},
    ...           "generator_parameters": {}}
    >>> variant(record, ["weighting"])
    'MDEC-HC, weighting=uniform'
    """
    given = {**record["generator_parameters"], **record["parameters"]}
    parts = [f"{name}={given[name]}" for name in swept if name in given]
    return ", ".join([record["method"], *parts])


def swept_parameters(study: Record) -> list[str]:
    """Return the names of the parameters that a study varies."""
    grid = study.get("parameters", {})
    return [name for part in ("generator", "method") for name in grid.get(part, {})]


@lru_cache(maxsize=200_000)
def _score(metric: str, classes: str, labels: str) -> float:
    truth, found = decode_labels(classes), decode_labels(labels)
    return 100.0 * METRICS[metric](truth, found)


def run_value(store: Store, record: Record, metric: str) -> float:
    """Return the score of a run in percent, or its seconds."""
    if metric in COSTS:
        consensus: float = record["consensus"][metric]
        return consensus + float(record["generation"][metric])
    classes = store.datasets[record["dataset"]]["classes"]
    return _score(metric, classes, record["labels"])


def score_table(
    store: Store, metric: str, where: Callable[[Record], bool] | None = None
) -> ScoreTable:
    """Return the mean and spread of a score for each dataset and method.

    Parameters
    ----------
    store : Store
        From `read_records`.
    metric : str
        "nmi_max", "nmi_geometric", "nmi_arithmetic", "ami", "ari", "purity",
        "accuracy", "seconds" or "cpu_seconds".
    where : callable, default=None
        Chooses records; None takes all.

    Returns
    -------
    ScoreTable
        Rows and columns in the order of the study; the spread is the standard
        deviation of a sample, 0 for a single run.
    """
    if metric not in METRIC_TITLES:
        raise ValueError(f"metric={metric!r} is not one of {', '.join(METRIC_TITLES)}.")
    swept = swept_parameters(store.study)
    # The order of the file depends on which run ended first.
    runs = sorted(
        (r for r in store.runs.values() if where is None or where(r)),
        key=lambda r: (_order(store, r), r["repetition"]),
    )
    methods = tuple(dict.fromkeys(variant(run, swept) for run in runs))
    present = {run["dataset"] for run in runs}
    datasets = tuple(name for name in _dataset_order(store) if name in present)
    cells: dict[tuple[str, str], list[Record]] = {}
    for run in runs:
        cells.setdefault((run["dataset"], variant(run, swept)), []).append(run)
    return _tabulate(store, metric, datasets, methods, cells)


def _tabulate(
    store: Store,
    metric: str,
    datasets: tuple[str, ...],
    methods: tuple[str, ...],
    cells: dict[tuple[str, str], list[Record]],
) -> ScoreTable:
    shape = len(datasets), len(methods)
    mean, std = np.full(shape, np.nan), np.full(shape, np.nan)
    counts = np.zeros(shape, dtype=np.int64)
    status = np.full(shape, "", dtype="<U16")
    for i, dataset in enumerate(datasets):
        for j, method in enumerate(methods):
            runs = cells.get((dataset, method), [])
            lost = [run["status"] for run in runs if run["status"] != OK]
            # A mean over the lucky repetitions alone would flatter the method.
            if lost or not runs:
                status[i, j] = lost[0] if lost else "-"
                continue
            values = np.array([run_value(store, run, metric) for run in runs])
            mean[i, j], counts[i, j] = values.mean(), values.size
            std[i, j] = values.std(ddof=1) if values.size > 1 else 0.0
    return ScoreTable(metric, datasets, methods, mean, std, counts, status)


def _dataset_order(store: Store) -> list[str]:
    """Return datasets by number where they have one, then in the study's order."""

    def key(name: str) -> tuple[int, int]:
        number = name.removeprefix("DS-")
        return (0, int(number)) if number.isdigit() else (1, 0)

    return sorted(store.datasets, key=key)


def _order(store: Store, record: Record) -> tuple[int, str, str, list[Any]]:
    names = [m if isinstance(m, str) else m["name"] for m in store.study["methods"]]
    method = record["method"]
    position = names.index(method) if method in names else len(names)
    grid = store.study.get("parameters", {})
    given = {**record["generator_parameters"], **record["parameters"]}
    places = [
        values.index(given[name]) if given.get(name) in values else len(values)
        for part in ("generator", "method")
        for name, values in grid.get(part, {}).items()
    ]
    return position, method, "", places


def long_rows(store: Store, metrics: Sequence[str]) -> list[dict[str, Any]]:
    """Return all means as rows of one long table, for other programs.

    Parameters
    ----------
    store : Store
        From `read_records`.
    metrics : sequence of str
        Scores.

    Returns
    -------
    list of dict
        With metric, dataset, method, mean, std, runs and status.
    """
    rows = []
    for metric in metrics:
        table = score_table(store, metric)
        for i, dataset in enumerate(table.datasets):
            for j, method in enumerate(table.methods):
                rows.append(
                    {
                        "metric": metric,
                        "dataset": dataset,
                        "method": method,
                        "mean": _rounded(table.mean[i, j]),
                        "std": _rounded(table.std[i, j]),
                        "runs": int(table.counts[i, j]),
                        "status": str(table.status[i, j]) or OK,
                    }
                )
    return rows


def _rounded(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.4f}"


def failures(store: Store) -> list[dict[str, Any]]:
    """Return what went wrong, counted by dataset, method, status and message."""
    counted: dict[str, dict[str, Any]] = {}
    for run in store.runs.values():
        if run["status"] != OK:
            entry = {k: run[k] for k in ("dataset", "method", "status", "message")}
            known = counted.setdefault(json.dumps(entry), {**entry, "runs": 0})
            known["runs"] += 1
    return [counted[key] for key in sorted(counted)]
