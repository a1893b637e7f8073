"""From records to tables of means. No files, no figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mdec.evaluation import METRICS
from mdec.experiments.records import (
    OK,
    Parameters,
    RunRecord,
    Store,
    StudyText,
    decode_labels,
)

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

# The status of a cell without a record.
NOT_RUN = "-"
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

    def in_common(self) -> Self:
        """Return the rows in which every method was run, or all if there are none.

        A run that failed is a run; one that has not been made says nothing of a rank.

        Returns
        -------
        ScoreTable
            The same methods.
        """
        rows = np.flatnonzero((self.status != NOT_RUN).all(axis=1))
        if not rows.size:
            return self
        names = tuple(self.datasets[i] for i in rows)
        cells = {
            name: getattr(self, name)[rows]
            for name in ("mean", "std", "counts", "status")
        }
        return replace(self, datasets=names, **cells)


def given_parameters(record: RunRecord) -> Parameters:
    """Return the parameters of a run, those of its generator and its method."""
    return {**record["generator_parameters"], **record["parameters"]}


def ran_on(record: RunRecord) -> str:
    """Return what a run took its time on: the processor, and the device if it had one.

    Examples
    --------
    >>> ran_on({"machine": {"processor": "EPYC"}, "generator_parameters": {}})
    'EPYC'
    """
    told = record.get("machine")
    processor = told["processor"] if told else "unknown"
    device = _device(record)
    return f"{processor} with {device}" if device else processor


def _device(record: RunRecord) -> str:
    return str(record["generator_parameters"].get("device") or "")


def places(store: Store) -> list[str]:
    """Return what runs took their time on, the one of most runs first."""
    counts = Counter(ran_on(r) for r in store.runs.values() if r["status"] == OK)
    return [place for place, _ in counts.most_common()]


def variant(record: RunRecord, swept: Iterable[str] = ()) -> str:
    """Return the name of a column: the method and its swept parameters.

    Examples
    --------
    >>> record = {"method": "MDEC-HC", "parameters": {"weighting": "uniform"},
    ...           "generator_parameters": {}}
    >>> variant(record, ["weighting"])
    'MDEC-HC, weighting=uniform'
    """
    given = given_parameters(record)
    parts = [f"{name}={spoken(given[name])}" for name in swept if name in given]
    return ", ".join([record["method"], *parts])


def spoken(value: Any) -> str:
    """Return the value of a parameter in a word, also where it is a list.

    Examples
    --------
    >>> spoken(0.5), spoken(["cosine", "spearman"])
    ('0.5', 'cosine + spearman')
    """
    return " + ".join(map(str, value)) if isinstance(value, list) else str(value)


def swept_parameters(study: StudyText) -> dict[str, list[Any]]:
    """Return the parameters that a study varies, with their values."""
    grid = study.get("parameters", {})
    return {**grid.get("generator", {}), **grid.get("method", {})}


@lru_cache(maxsize=200_000)
def _score(metric: str, classes: str, labels: str) -> float:
    truth, found = decode_labels(classes), decode_labels(labels)
    return 100.0 * METRICS[metric](truth, found)


def run_value(store: Store, record: RunRecord, metric: str) -> float:
    """Return the score of a run in percent, or its seconds."""
    if metric == "seconds":
        return record["consensus"]["seconds"] + record["generation"]["seconds"]
    if metric == "cpu_seconds":
        return record["consensus"]["cpu_seconds"] + record["generation"]["cpu_seconds"]
    classes = store.datasets[record["dataset"]]["classes"]
    return _score(metric, classes, record["labels"])


def score_table(
    store: Store, metric: str, where: Callable[[RunRecord], bool] | None = None
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
        deviation of a sample, 0 for a single run. A repetition made both with a device
        and without one counts once, as the latter.
    """
    if metric not in METRIC_TITLES:
        raise ValueError(f"metric={metric!r} is not one of {', '.join(METRIC_TITLES)}.")
    swept = swept_parameters(store.study)
    # The order of the file depends on which run ended first.
    runs = sorted(
        (r for r in store.runs.values() if where is None or where(r)),
        key=lambda r: (_order(store, r), r["repetition"], _device(r)),
    )
    methods = tuple(dict.fromkeys(variant(run, swept) for run in runs))
    present = {run["dataset"] for run in runs}
    datasets = tuple(name for name in _dataset_order(store) if name in present)
    cells: dict[tuple[str, str], dict[int, RunRecord]] = {}
    for run in runs:
        cell = cells.setdefault((run["dataset"], variant(run, swept)), {})
        cell.setdefault(run["repetition"], run)
    shape = len(datasets), len(methods)
    mean, std = np.full(shape, np.nan), np.full(shape, np.nan)
    counts = np.zeros(shape, dtype=np.int64)
    status = np.full(shape, "", dtype="<U16")
    for i, dataset in enumerate(datasets):
        for j, method in enumerate(methods):
            found = list(cells.get((dataset, method), {}).values())
            lost = [run["status"] for run in found if run["status"] != OK]
            # A mean over the lucky repetitions alone would flatter the method.
            if lost or not found:
                status[i, j] = lost[0] if lost else NOT_RUN
                continue
            values = np.array([run_value(store, run, metric) for run in found])
            mean[i, j], counts[i, j] = values.mean(), values.size
            std[i, j] = values.std(ddof=1) if values.size > 1 else 0.0
    return ScoreTable(metric, datasets, methods, mean, std, counts, status)


def _dataset_order(store: Store) -> list[str]:
    """Return datasets by number where they have one, then in the study's order."""

    def key(name: str) -> tuple[int, int]:
        number = name.removeprefix("DS-")
        return (0, int(number)) if number.isdigit() else (1, 0)

    return sorted(store.datasets, key=key)


def _order(store: Store, record: RunRecord) -> tuple[int, str, list[int]]:
    names = [m if isinstance(m, str) else m["name"] for m in store.study["methods"]]
    method = record["method"]
    position = names.index(method) if method in names else len(names)
    given = given_parameters(record)
    places = [
        values.index(given[name]) if given.get(name) in values else len(values)
        for name, values in swept_parameters(store.study).items()
    ]
    return position, method, places


LONG_COLUMNS = ("metric", "dataset", "method", "mean", "std", "runs", "status")


def long_rows(store: Store, metrics: Sequence[str]) -> list[tuple[Any, ...]]:
    """Return all means, metric by metric, as rows of one table of `LONG_COLUMNS`."""
    return [
        (
            metric,
            table.datasets[i],
            table.methods[j],
            _rounded(float(table.mean[i, j])),
            _rounded(float(table.std[i, j])),
            int(table.counts[i, j]),
            str(table.status[i, j]) or OK,
        )
        for metric in metrics
        for table in [score_table(store, metric)]
        for i, j in np.ndindex(table.mean.shape)
    ]


def _rounded(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.4f}"


def failures(store: Store) -> list[tuple[str, str, str, int, str]]:
    """Return what went wrong: dataset, method, status, number of runs and message."""
    lost = Counter(
        (run["dataset"], run["method"], run["status"], run["message"])
        for run in store.runs.values()
        if run["status"] != OK
    )
    return [(*key[:3], lost[key], key[3]) for key in sorted(lost)]
