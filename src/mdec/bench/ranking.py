"""Methods in order: ranks over datasets, and tests of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from mdec._support.arrays import Array
from mdec.bench.summary import ScoreTable

ALPHA = 0.05


def ranks(table: ScoreTable, ties: str = "min") -> Array:
    """Return the position of each method on each dataset, 1 for the best.

    Equal scores share the better position ("min"), as in the paper, or the mean one
    ("average"), as in the tests. A method without a score comes last.
    """
    costs = table.mean if table.lower_is_better else -table.mean
    # Equal as printed is equal, as in the paper.
    costs = np.where(np.isnan(costs), np.inf, np.round(costs, 2))
    return np.asarray(stats.rankdata(costs, method=ties, axis=1), dtype=np.float64)


def average_score(table: ScoreTable) -> Array:
    """Return each method's mean score; NaN if it lacks a dataset, as in the paper."""
    return table.mean.mean(axis=0)


def average_rank(table: ScoreTable) -> Array:
    """Return each method's mean position; as in the paper, ties share the better."""
    return ranks(table).mean(axis=0)


def top_counts(table: ScoreTable, n: int = 3) -> NDArray[np.int64]:
    """Return on how many datasets each method is among the first `n`."""
    return (ranks(table) <= n).sum(axis=0)


@dataclass(frozen=True)
class RankTest:
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
        sorted_ranks = self.mean_ranks[self.order()]
        found: list[tuple[int, int]] = []
        for first, rank in enumerate(sorted_ranks):
            within = np.flatnonzero(sorted_ranks - rank <= self.critical_difference)
            last = int(within.max())
            if last > first and (not found or last > found[-1][1]):
                found.append((first, last))
        return found


def rank_test(table: ScoreTable) -> RankTest:
    """Test whether the methods differ in their ranks."""
    positions = ranks(table, ties="average")
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
