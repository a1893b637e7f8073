"""The numbers that the paper published, and the distance from them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec.experiments.summary import COSTS, ScoreTable, spoken


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
    text = (resources.files("mdec.experiments.studies") / "published.csv").read_text(
        "utf-8"
    )
    name = "seconds" if metric in COSTS else metric
    rows = [r for r in csv.DictReader(text.splitlines()) if r["metric"] == name]
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


# The value of a varied parameter with which the paper's tables were made.
_TABLED = {"ensemble_size": 100, "sampling_ratio": 0.5}
# Figure 5 as the text gives it: average NMI of MDEC-HC over the thirty datasets.
_FIGURE_5 = {
    "scaled_gaussian": 67.49,
    "cosine": 50.99,
    "correlation": 48.23,
    "spearman": 41.34,
}


def published_points(
    metric: str,
    x: str,
    values: Sequence[Any],
    datasets: Sequence[str],
    methods: Sequence[str],
) -> dict[str, NDArray[np.floating]]:
    """Return the means of the paper against a parameter, as far as its tables go.

    The curves of the paper are drawings. Its tables hold one point of each, the mean
    over `datasets` with the default of the parameter.

    Parameters
    ----------
    metric, x : str
        The score, and the parameter.
    values : sequence
        What the parameter takes.
    datasets, methods : sequence of str
        What to average over, and for whom.

    Returns
    -------
    dict
        Method to one mean for each value, NaN where the paper gives none; only methods
        with a number.

    Examples
    --------
    >>> points = published_points("ari", "sampling_ratio", [0.4, 0.5], ["DS-3"],
    ...                           ["MDEC-HC"])
    >>> points["MDEC-HC"].tolist()
    [nan, 92.38]
    """
    if x not in _TABLED or metric not in ("nmi_max", "ari"):
        return {}
    means = published_table(metric, datasets, methods).mean.mean(axis=0)
    at_default = np.array([value == _TABLED[x] for value in values])
    return {
        method: np.where(at_default, mean, np.nan)
        for method, mean in zip(methods, means, strict=True)
        if not np.isnan(mean)
    }


def published_bars(
    metric: str, x: str, values: Sequence[Any]
) -> dict[str, NDArray[np.floating]]:
    """Return the bars that the paper's text gives, over all thirty datasets.

    Method to one mean for each value of the parameter `x`, NaN where there is none.

    Examples
    --------
    >>> published_bars("nmi_max", "kernel", ["cosine"])["MDEC-HC"].tolist()
    [50.99]
    """
    if (metric, x) != ("nmi_max", "kernel"):
        return {}
    return {"MDEC-HC": np.array([_FIGURE_5.get(spoken(v), np.nan) for v in values])}


@dataclass(frozen=True)
class Difference:
    """How far a method is from its published scores, on the datasets with both.

    `ours` and `published` are the mean scores, `mean` and `mean_absolute` those of ours
    less the published; `far` are the datasets, with differences,
    that are off by more than 3 points and two published standard deviations.
    """

    method: str
    n_datasets: int
    ours: float
    published: float
    mean: float
    mean_absolute: float
    far: tuple[tuple[str, float], ...]


def compare(table: ScoreTable) -> list[Difference]:
    """Return the differences between a table of "nmi_max" or "ari" and the paper's.

    There is one for each method that the paper has.
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
        found.append(
            Difference(
                method,
                n_datasets=both.size,
                ours=float(table.mean[both, j].mean()),
                published=float(published.mean[both, j].mean()),
                mean=float(gap.mean()),
                mean_absolute=float(np.abs(gap).mean()),
                far=far,
            )
        )
    return found
