"""Mean scores against a parameter that a study varies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mdec.datasets import list_datasets
from mdec.experiments.ranking import average_score
from mdec.experiments.records import RunRecord, Store
from mdec.experiments.summary import (
    ScoreTable,
    score_table,
    spoken,
    swept_parameters,
)

Array = NDArray[np.floating]
Where = Callable[[RunRecord], bool]


@dataclass(frozen=True, eq=False)
class Sweep:
    """Mean scores over datasets for each value of a parameter.

    The columns are methods, with any other parameters that vary. The mean and its
    standard error from the spread of the runs have shape (n_values, n_columns); NaN
    where a dataset lacks a score, or a second run.
    """

    metric: str
    values: list[Any]
    columns: tuple[str, ...]
    mean: Array
    error: Array


def sweep(store: Store, metric: str, x: str, where: Where | None = None) -> Sweep:
    r"""Return mean scores against the swept parameter `x`, over the chosen records.

    Notes
    -----
    The mean over D datasets has the standard error
    :math:`\frac 1 D \sqrt{\sum_d s_d^2 / n_d}` with :math:`s_d` the standard deviation
    of the :math:`n_d` runs on dataset d. It says how far other seeds might move the
    mean, and nothing about other datasets.
    """
    swept = swept_parameters(store.study)
    if x not in swept:
        raise ValueError(f"the study does not vary {x!r}; name a swept parameter.")
    values = list(swept[x])
    table = score_table(store, metric, where)
    means: dict[str, Array] = {}
    errors: dict[str, Array] = {}
    scores = zip(
        table.methods, average_score(table), _standard_error(table), strict=True
    )
    for name, mean, error in scores:
        column = _without(name, x)
        # A method that does not take the parameter has one score for all its values.
        said = [f"{x}={spoken(value)}" for value in values]
        at = [each in name.split(", ") or column == name for each in said]
        means.setdefault(column, np.full(len(values), np.nan))[at] = mean
        errors.setdefault(column, np.full(len(values), np.nan))[at] = error
    mean, error = (np.stack(list(e.values()), axis=1) for e in (means, errors))
    return Sweep(metric, values, tuple(means), mean, error)


def _standard_error(table: ScoreTable) -> Array:
    # One run has no spread to tell an error from.
    counts = np.where(table.counts > 1, table.counts, np.nan)
    errors: Array = np.sqrt((table.std**2 / counts).sum(axis=0)) / len(table.datasets)
    return errors


@dataclass(frozen=True)
class Part:
    """Methods, and datasets on which each of them has all scores of a study."""

    datasets: tuple[str, ...]
    methods: tuple[str, ...]

    def by_kind(self) -> dict[str, Self]:
        """Return the parts of each kind of dataset, such as "image"."""
        kinds: dict[str, list[str]] = {}
        registered = {info.id: info.kind for info in list_datasets()}
        for name in self.datasets:
            kinds.setdefault(registered.get(name, "other"), []).append(name)
        return {
            kind: replace(self, datasets=tuple(names)) for kind, names in kinds.items()
        }

    def holds(self, record: RunRecord) -> bool:
        """Return whether a record is of the part."""
        return record["dataset"] in self.datasets and record["method"] in self.methods


def comparable_parts(store: Store, metric: str) -> list[Part]:
    """Return parts of a study whose means compare, the one of most datasets first.

    A mean compares with another over the same datasets alone. Methods that have been
    run on fewer datasets than others make a part of their own, with the others on these
    datasets.
    """
    table = score_table(store, metric)
    scored = ~np.isnan(table.mean)
    columns: dict[str, list[int]] = {}
    for j, name in enumerate(table.methods):
        columns.setdefault(name.split(",")[0], []).append(j)
    complete = {
        method: frozenset(np.flatnonzero(scored[:, found].all(axis=1)))
        for method, found in columns.items()
    }
    return [
        Part(
            tuple(table.datasets[i] for i in sorted(rows)),
            tuple(method for method, has in complete.items() if rows <= has),
        )
        for rows in sorted(set(complete.values()), key=len, reverse=True)
        if rows
    ]


def _without(column: str, x: str) -> str:
    """Return the name of a column less the parameter that has an axis of its own."""
    parts = column.split(", ")
    return ", ".join(part for part in parts if not part.startswith(f"{x}="))
