"""From records, or the paper, to tables of means, their ranks, and sweeps."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from mdec._support.arrays import Array
from mdec.bench.datasets import all_datasets
from mdec.bench.evaluation import METRICS
from mdec.bench.records import OK, Record, Records, StudyText, decode_labels
from mdec.bench.study import STUDY_FILES

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

# The level of the tests of ranks.
ALPHA = 0.05

# The value of a varied parameter with which the paper's tables were made.
_TABLE_SETTINGS = {"ensemble_size": 100, "max_features": 0.5}
# Figure 5 as the text gives it: average NMI of MDEC-HC over the thirty datasets.
FIGURE_5 = {
    "scaled_gaussian": 67.49,
    "cosine": 50.99,
    "correlation": 48.23,
    "spearman": 41.34,
}

Where = Callable[[Record], bool]

# Mean, standard deviation, number of runs and status.
Score = tuple[float, float, int, str]
_FIELDS = ("mean", "std", "counts", "status")
_CELL = list(zip(_FIELDS, ("f8", "f8", "i8", "U16"), strict=True))


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

    @classmethod
    def from_scores(
        cls,
        metric: str,
        datasets: Sequence[str],
        methods: Sequence[str],
        scores: Mapping[tuple[str, str], Score],
    ) -> Self:
        """Arrange scores by dataset and method; what is absent was not run."""
        absent = (np.nan, np.nan, 0, NOT_RUN)
        cells = [scores.get((d, m), absent) for d in datasets for m in methods]
        table = np.array(cells, dtype=_CELL).reshape(len(datasets), len(methods))
        columns = [table[name] for name in _FIELDS]
        return cls(metric, tuple(datasets), tuple(methods), *columns)

    @property
    def lower_is_better(self) -> bool:
        """Whether the metric is a cost."""
        return self.metric in COSTS

    @property
    def average_score(self) -> Array:
        """The mean score of each method; NaN if it lacks a dataset, as in the paper."""
        return self.mean.mean(axis=0)

    @property
    def average_rank(self) -> Array:
        """The mean position of each method; as in the paper, ties share the better."""
        return self.ranks().mean(axis=0)

    def top_counts(self, n: int = 3) -> NDArray[np.int64]:
        """Return on how many datasets each method is among the first `n`.

        Parameters
        ----------
        n : int, default=3
            How many are the first.

        Returns
        -------
        ndarray of shape (n_methods,)
            Numbers of datasets.
        """
        return (self.ranks() <= n).sum(axis=0)

    def ranks(self, ties: str = "min") -> Array:
        """Return the position of each method on each dataset, 1 for the best.

        Parameters
        ----------
        ties : {"min", "average"}
            Whether equal scores share the better position, as in the paper, or the mean
            one, as in the tests of ranks.

        Returns
        -------
        ndarray of shape (n_datasets, n_methods)
            Positions; a method without a score comes last.
        """
        costs = self.mean if self.lower_is_better else -self.mean
        # Equal as printed is equal, as in the paper.
        costs = np.where(np.isnan(costs), np.inf, np.round(costs, 2))
        return np.asarray(stats.rankdata(costs, method=ties, axis=1), dtype=np.float64)

    def take(self, rows: Sequence[int], columns: Sequence[int] | None = None) -> Self:
        """Return some of the datasets, and some of the methods or all.

        Parameters
        ----------
        rows : sequence of int
            Places of the datasets.
        columns : sequence of int, default=None
            Places of the methods; None takes all.

        Returns
        -------
        ScoreTable
            In the order given.
        """
        columns = range(len(self.methods)) if columns is None else columns
        datasets = tuple(self.datasets[i] for i in rows)
        methods = tuple(self.methods[j] for j in columns)
        cells = (getattr(self, name)[np.ix_(rows, columns)] for name in _FIELDS)
        return type(self)(self.metric, datasets, methods, *cells)

    def in_common(self) -> Self:
        """Return the rows in which every method was run, or all if there are none.

        A run that failed is a run; one that has not been made says nothing of a rank.

        Returns
        -------
        ScoreTable
            The same methods.
        """
        rows = np.flatnonzero((self.status != NOT_RUN).all(axis=1))
        return self.take(rows.tolist()) if rows.size else self

    def by_kind(self) -> dict[str, Self]:
        """Return the rows of each kind of dataset, such as "image".

        Returns
        -------
        dict of str to ScoreTable
            In the order of first datasets.
        """
        rows: dict[str, list[int]] = {}
        known = all_datasets()
        for i, name in enumerate(self.datasets):
            rows.setdefault(known[name].kind if name in known else "other", []).append(
                i
            )
        return {kind: self.take(found) for kind, found in rows.items()}


class RankTest(NamedTuple):
    """Friedman's test of equal ranks and Nemenyi's critical difference.

    Friedman's chi-square and its p-value are NaN for fewer than three methods or two
    datasets. Two methods whose mean ranks differ by less than the critical difference
    at level `ALPHA` are indistinguishable. In `mean_ranks` equal scores share their
    mean position.
    """

    statistic: float
    p_value: float
    critical_difference: float
    n_datasets: int
    mean_ranks: Array

    def order(self) -> NDArray[np.intp]:
        """Return the methods from the best to the worst mean rank."""
        return np.argsort(self.mean_ranks, kind="stable")

    def groups(self) -> list[tuple[int, int]]:
        """Return the longest ranges of indistinguishable methods, in their order.

        Examples
        --------
        >>> mean_ranks = np.array([1.0, 1.5, 3.0])
        >>> RankTest(0.0, 1.0, 1.6, 9, mean_ranks).groups()
        [(0, 1), (1, 2)]
        """
        sorted_ranks = np.sort(self.mean_ranks)
        found: list[tuple[int, int]] = []
        for first, rank in enumerate(sorted_ranks):
            within = np.flatnonzero(sorted_ranks - rank <= self.critical_difference)
            last = int(within.max())
            if last > first and (not found or last > found[-1][1]):
                found.append((first, last))
        return found


def rank_test(table: ScoreTable) -> RankTest:
    """Test whether the methods differ in their ranks."""
    positions = table.ranks("average")
    n_datasets, n_methods = positions.shape
    statistic = p_value = float("nan")
    if n_methods >= 3 and n_datasets >= 2 and np.ptp(positions):
        statistic, p_value = map(float, stats.friedmanchisquare(*positions.T))
    difference = nemenyi_critical_difference(n_methods, n_datasets)
    means = positions.mean(axis=0)
    return RankTest(statistic, p_value, difference, n_datasets, means)


def nemenyi_critical_difference(n_methods: int, n_datasets: int) -> float:
    r"""Return the difference of mean ranks that is significant; NaN for one method.

    :math:`CD = q_\alpha \sqrt{k (k + 1) / (6 N)}` for k methods on N datasets, with
    :math:`q_\alpha` the studentised range over :math:`\sqrt 2`.

    Examples
    --------
    >>> round(nemenyi_critical_difference(5, 10), 3)  # q = 2.728
    1.929
    """
    if n_methods < 2:
        return float("nan")
    q = stats.studentized_range.ppf(1.0 - ALPHA, n_methods, np.inf) / np.sqrt(2.0)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6.0 * n_datasets)))


def hardware(record: Record) -> str:
    """Return the processor of a run, and the device if it had one."""
    processor = record.get("machine", {"processor": "unknown"})["processor"]
    device = record["generator_parameters"].get("device")
    return f"{processor} with {device}" if device else str(processor)


def short_title(metric: str) -> str:
    """Return the title of a metric without what explains it."""
    return METRIC_TITLES[metric].split(" (")[0]


def parameter_grid(study: StudyText) -> dict[str, list[Any]]:
    """Return the parameters that a study varies, with their values."""
    grid = study.get("parameters", {})
    return {**grid.get("generator", {}), **grid.get("method", {})}


def column_name(record: Record, varied: Iterable[str] = ()) -> str:
    """Return the name of a column: the method and its varied parameters.

    Examples
    --------
    >>> record = {"method": "MDEC-HC", "parameters": {"weighting": "uniform"},
    ...           "generator_parameters": {}}
    >>> column_name(record, ["weighting"])
    'MDEC-HC, weighting=uniform'
    """
    values = {**record["generator_parameters"], **record["parameters"]}
    present = [name for name in varied if name in values]
    parts = [f"{name}={format_value(values[name])}" for name in present]
    return ", ".join([record["method"], *parts])


def method_of(column: str) -> str:
    """Return the method of a column."""
    return column.split(",")[0]


def format_value(value: Any) -> str:
    """Return the value of a parameter as text, also where it is a list.

    Examples
    --------
    >>> format_value(0.5), format_value(["cosine", "spearman"])
    ('0.5', 'cosine + spearman')
    """
    return " + ".join(map(str, value)) if isinstance(value, list) else str(value)


@lru_cache(maxsize=200_000)
def _score_labels(metric: str, classes: str, labels: str) -> float:
    return 100.0 * METRICS[metric](decode_labels(classes), decode_labels(labels))


def score_table(
    records: Records, metric: str, where: Where | None = None
) -> ScoreTable:
    """Return the mean and spread of a score for each dataset and method.

    Parameters
    ----------
    records : Records
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
    entries, varied = records.study["methods"], parameter_grid(records.study)
    names = [entry if isinstance(entry, str) else entry["name"] for entry in entries]

    def index(values: list[Any], value: Any) -> int:
        return values.index(value) if value in values else len(values)

    def place(run: Record) -> tuple[Any, ...]:
        """Order by method and parameters as the study does; the others follow."""
        given = {**run["generator_parameters"], **run["parameters"]}
        points = [index(values, given.get(name)) for name, values in varied.items()]
        method = index(names, run["method"]), run["method"]
        return *method, points, run["repetition"], str(given.get("device") or "")

    cells: dict[tuple[str, str], dict[int, Record]] = {}
    # The order of the file depends on which run ended first.
    for run in sorted(filter(where, records.runs.values()), key=place):
        cell = cells.setdefault((run["dataset"], column_name(run, varied)), {})
        cell.setdefault(run["repetition"], run)
    order = sorted(records.datasets, key=_by_number)
    scores = {
        place: _score_cell(records, list(cell.values()), metric)
        for place, cell in cells.items()
    }
    rows = sorted({dataset for dataset, _ in cells}, key=order.index)
    columns = list(dict.fromkeys(column for _, column in cells))
    return ScoreTable.from_scores(metric, rows, columns, scores)


def _score_cell(records: Records, runs: list[Record], metric: str) -> Score:
    """Return the mean of scores in percent, or of seconds, with spread and count."""
    # A mean over the lucky repetitions alone would flatter the method.
    for run in runs:
        if run["status"] != OK:
            return np.nan, np.nan, 0, run["status"]
    if metric in COSTS:
        values = [run["consensus"][metric] + run["generation"][metric] for run in runs]
    else:
        classes = records.datasets[runs[0]["dataset"]]["classes"]
        values = [_score_labels(metric, classes, run["labels"]) for run in runs]
    spread = np.std(values, ddof=1) if len(values) > 1 else 0.0
    return float(np.mean(values)), float(spread), len(values), ""


def _by_number(name: str) -> tuple[int, int]:
    """Order datasets by number where they have one; the others follow."""
    number = name.removeprefix("DS-")
    return (0, int(number)) if number.isdigit() else (1, 0)


class Sweep(NamedTuple):
    """Mean scores over the datasets of a table for each value of a parameter.

    The columns are methods, with any other parameters that vary. The mean and its
    standard error from the spread of the runs have shape (n_values, n_columns); NaN
    where a dataset lacks a score, or a second run.
    """

    table: ScoreTable
    x: str
    values: list[Any]
    columns: tuple[str, ...]
    mean: Array
    error: Array


def sweep(table: ScoreTable, x: str, values: list[Any]) -> Sweep:
    r"""Return mean scores against the values of the varied parameter `x`.

    Notes
    -----
    The mean over D datasets has the standard error
    :math:`\frac 1 D \sqrt{\sum_d s_d^2 / n_d}` with :math:`s_d` the standard deviation
    of the :math:`n_d` runs on dataset d. It says how far other seeds might move the
    mean, and nothing about other datasets.
    """
    # A single run has no spread.
    counts = np.where(table.counts > 1, table.counts, np.nan)
    errors = np.sqrt((table.std**2 / counts).sum(axis=0)) / len(table.datasets)
    columns: dict[str, Array] = {}
    for name, *point in zip(table.methods, table.average_score, errors, strict=True):
        parts = name.split(", ")
        column = ", ".join(part for part in parts if not part.startswith(f"{x}="))
        # A method without the parameter has one score for all its values.
        at = [f"{x}={format_value(v)}" in parts or column == name for v in values]
        columns.setdefault(column, np.full((len(values), 2), np.nan))[at] = point
    mean, error = np.moveaxis(np.stack(list(columns.values()), axis=1), -1, 0)
    return Sweep(table, x, values, tuple(columns), mean, error)


def comparable_parts(table: ScoreTable) -> list[ScoreTable]:
    """Return parts of a table whose means compare, the one of most datasets first.

    A mean compares with another over the same datasets alone. Methods that have been
    run on fewer datasets than others make a part of their own, with the others on these
    datasets.
    """
    complete: dict[str, set[int]] = {}
    for name, scores in zip(table.methods, table.mean.T, strict=True):
        rows = set(np.flatnonzero(~np.isnan(scores)).tolist())
        complete[method_of(name)] = complete.get(method_of(name), rows) & rows
    parts = {frozenset(rows) for rows in complete.values() if rows}
    columns = [complete[method_of(name)] for name in table.methods]
    return [
        table.take(sorted(rows), [j for j, has in enumerate(columns) if rows <= has])
        for rows in sorted(parts, key=len, reverse=True)
    ]


def published_table(
    metric: str,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
) -> ScoreTable:
    """Return what the paper published.

    Parameters
    ----------
    metric : str
        "nmi_max", "ari" or "seconds"; "cpu_seconds" gives the seconds.
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
    text = (STUDY_FILES / "published.csv").read_text("utf-8")
    name = "seconds" if metric in COSTS else metric
    scores: dict[tuple[str, str], Score] = {
        (row["dataset"], row["method"]): (np.nan, np.nan, 0, row["mean"])
        if row["mean"] in ("OM", "-")
        else (float(row["mean"]), float(row["std"] or "nan"), 100, "")
        for row in csv.DictReader(text.splitlines())
        if row["metric"] == name
    }
    rows = datasets or list(dict.fromkeys(dataset for dataset, _ in scores))
    columns = methods or list(dict.fromkeys(method for _, method in scores))
    return ScoreTable.from_scores(metric, rows, columns, scores)


def published_points(scores: Sweep) -> dict[str, Array]:
    """Return the means of the paper against a parameter, as far as its tables go.

    The curves of the paper are drawings. Its tables hold one point of each, the mean
    over the datasets of the sweep with the default of the parameter: method to one
    mean for each value, NaN where the paper gives none; only methods with a number.
    """
    if scores.x not in _TABLE_SETTINGS or scores.table.metric not in ("nmi_max", "ari"):
        return {}
    methods = list(dict.fromkeys(map(method_of, scores.columns)))
    paper = published_table(scores.table.metric, scores.table.datasets, methods)
    at_default = np.array([v == _TABLE_SETTINGS[scores.x] for v in scores.values])
    return {
        method: np.where(at_default, mean, np.nan)
        for method, mean in zip(methods, paper.average_score, strict=True)
        if not np.isnan(mean)
    }


def published_bars(scores: Sweep) -> dict[str, Array]:
    """Return the bars that the paper's text gives, over all thirty datasets."""
    if (scores.table.metric, scores.x) != ("nmi_max", "kernel"):
        return {}
    means = [FIGURE_5.get(format_value(value), np.nan) for value in scores.values]
    return {"MDEC-HC": np.array(means)}
