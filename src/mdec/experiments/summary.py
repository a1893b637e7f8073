"""From records to tables: means, ranks and tests. No files, no figures."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

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
}

# Less is better.
COSTS = {"seconds"}


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
    if metric == "seconds":
        consensus: float = record["consensus"]["seconds"]
        return consensus + float(record["generation"]["seconds"])
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
        "accuracy" or "seconds".
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


def published_table(
    metric: str,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
) -> ScoreTable:
    """Return what the paper published.

    Parameters
    ----------
    metric : str
        "nmi_max", "ari" or "seconds".
    datasets, methods : sequence of str, default=None
        Rows and columns; None takes the paper's.

    Returns
    -------
    ScoreTable
        With "-" where the paper has no number.

    Examples
    --------
    >>> table = published_table("nmi_max", ["DS-30"], ["SPCE", "MDEC-HC"])
    >>> float(table.mean[0, 1]), str(table.status[0, 0])
    (77.58, 'OM')
    """
    text = (resources.files("mdec.studies") / "published.csv").read_text("utf-8")
    rows = [r for r in csv.DictReader(text.splitlines()) if r["metric"] == metric]
    found = {(r["dataset"], r["method"]): (r["mean"], r["std"]) for r in rows}
    chosen = tuple(datasets or dict.fromkeys(r["dataset"] for r in rows))
    columns = tuple(methods or dict.fromkeys(r["method"] for r in rows))
    shape = len(chosen), len(columns)
    mean, std = np.full(shape, np.nan), np.full(shape, np.nan)
    status = np.full(shape, "-", dtype="<U16")
    for i, dataset in enumerate(chosen):
        for j, method in enumerate(columns):
            value, spread = found.get((dataset, method), ("-", ""))
            if value in ("OM", "-"):
                status[i, j] = value
            else:
                mean[i, j], status[i, j] = float(value), ""
                std[i, j] = float(spread) if spread else np.nan
    counts = np.where(np.isnan(mean), 0, 100)
    return ScoreTable(metric, chosen, columns, mean, std, counts, status)


@dataclass(frozen=True)
class Difference:
    """How far a method is from its published scores.

    Attributes
    ----------
    method : str
        Its name.
    n_datasets : int
        Datasets with both numbers.
    mean, mean_absolute : float
        Of ours less the published, over these datasets.
    far : tuple of (str, float)
        Datasets off by more than 3 points and two published standard deviations.
    """

    method: str
    n_datasets: int
    mean: float
    mean_absolute: float
    far: tuple[tuple[str, float], ...]


def compare(table: ScoreTable) -> list[Difference]:
    """Return the differences between a table and the paper's, method by method.

    Parameters
    ----------
    table : ScoreTable
        Scores of "nmi_max" or "ari".

    Returns
    -------
    list of Difference
        For the methods that the paper has.
    """
    published = published_table(table.metric, table.datasets, table.methods)
    gaps = table.mean - published.mean
    limits = np.maximum(3.0, 2.0 * published.std)
    found = []
    for j, method in enumerate(table.methods):
        both = np.flatnonzero(~np.isnan(gaps[:, j]))
        if both.size == 0:
            continue
        gap = gaps[both, j]
        far = tuple(
            (table.datasets[i], float(gaps[i, j]))
            for i in both
            if abs(gaps[i, j]) > limits[i, j]
        )
        size = float(np.abs(gap).mean())
        found.append(Difference(method, both.size, float(gap.mean()), size, far))
    return found


def ranks(table: ScoreTable, ties: str = "min") -> Array:
    """Return the position of each method on each dataset, 1 for the best.

    Parameters
    ----------
    table : ScoreTable
        Scores.
    ties : {"min", "average"}
        Equal scores share the better position, as in the paper, or the mean one, as
        in the tests.

    Returns
    -------
    ndarray of shape (n_datasets, n_methods)
        A method without a score comes last.
    """
    scores = table.mean if not table.lower_is_better else -table.mean
    # Equal as printed is equal, as in the paper.
    scores = np.where(np.isnan(scores), -np.inf, np.round(scores, 2))
    return np.array([stats.rankdata(-row, method=ties) for row in scores])


def average_score(table: ScoreTable) -> Array:
    """Return the mean score of each method; NaN if it lacks a dataset."""
    means: Array = table.mean.mean(axis=0)
    return means


def average_rank(table: ScoreTable) -> Array:
    """Return the mean position of each method."""
    means: Array = ranks(table).mean(axis=0)
    return means


def top_counts(table: ScoreTable, n: int = 3) -> NDArray[np.int64]:
    """Return on how many datasets each method is among the first n."""
    return (ranks(table) <= n).sum(axis=0)


@dataclass(frozen=True)
class RankTest:
    """Friedman's test of equal ranks and Nemenyi's critical difference.

    Attributes
    ----------
    statistic, p_value : float
        Friedman's chi-square; NaN for fewer than three methods or two datasets.
    critical_difference : float
        Two methods whose mean ranks differ by less cannot be told apart.
    alpha : float
        Level of the critical difference.
    n_datasets : int
        Datasets ranked.
    mean_ranks : ndarray of shape (n_methods,)
        With equal scores sharing their mean position.
    """

    statistic: float
    p_value: float
    critical_difference: float
    alpha: float
    n_datasets: int
    mean_ranks: Array


def rank_test(table: ScoreTable, alpha: float = 0.05) -> RankTest:
    r"""Test whether the methods differ in their ranks.

    Parameters
    ----------
    table : ScoreTable
        Scores.
    alpha : float, default=0.05
        Level.

    Returns
    -------
    RankTest
        The test.

    Notes
    -----
    Nemenyi: :math:`CD = q_\alpha \sqrt{k (k + 1) / (6 N)}` for k methods on N
    datasets, with :math:`q_\alpha` the studentised range over :math:`\sqrt 2`.
    """
    positions = ranks(table, ties="average")
    n_datasets, n_methods = positions.shape
    statistic = p_value = float("nan")
    if n_methods >= 3 and n_datasets >= 2 and np.ptp(positions):
        statistic, p_value = map(float, stats.friedmanchisquare(*positions.T))
    difference = nemenyi_critical_difference(n_methods, n_datasets, alpha)
    means = positions.mean(axis=0)
    return RankTest(statistic, p_value, difference, alpha, n_datasets, means)


def nemenyi_critical_difference(
    n_methods: int, n_datasets: int, alpha: float = 0.05
) -> float:
    r"""Return the difference of mean ranks that is significant at a level.

    Examples
    --------
    >>> round(nemenyi_critical_difference(5, 10), 3)  # q = 2.728
    1.929
    """
    if n_methods < 2:
        return float("nan")
    q = stats.studentized_range.ppf(1.0 - alpha, n_methods, np.inf) / np.sqrt(2.0)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6.0 * n_datasets)))


def long_rows(store: Store, metrics: Sequence[str]) -> list[dict[str, Any]]:
    """Return all means as rows of one long table, for other programs."""
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
