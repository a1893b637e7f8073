"""New rows: the base clusters that they join, and from these their clusters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mdec._support.arrays import Array
from mdec._support.memory import require_memory
from mdec._support.parallel import single_threaded_blas
from mdec.coassociation import factor_rows
from mdec.confidence import (
    Profiles,
    confidence,
    greatest_association,
    memberships,
    row_slices,
)
from mdec.ensemble import membership
from mdec.prediction.base_clusters import TrainingRows, predict_base_clusters

__all__ = [
    "PlacedRows",
    "Placement",
    "TrainingRows",
    "nearest_profiles",
    "predict_base_clusters",
]


class PlacedRows(NamedTuple):
    """Clusters, confidence and the flag of new rows, as `MDEC.place` gives them."""

    clusters: NDArray[np.int32]
    confidence: Array
    unlike: NDArray[np.bool_]


@dataclass(frozen=True)
class Placement:
    """What new rows are placed by.

    Attributes
    ----------
    tables : tuple of TrainingRows
        What the base clusters of each table's members are found by.
    offsets : ndarray of shape (n_members + 1,)
        Number of the first cluster of each member, and of all clusters.
    weights : ndarray of shape (n_base_clusters,)
        Weight of each base cluster.
    means : ndarray of shape (n_clusters, n_base_clusters)
        Mean of the co-association's factor over each consensus cluster.
    plain_means : ndarray of shape (n_clusters, n_base_clusters)
        The means as confidences take them: of no consensus divided by degrees.
    """

    tables: tuple[TrainingRows, ...]
    offsets: NDArray[np.int64]
    weights: Array
    means: Array
    plain_means: Array

    @classmethod
    def of(
        cls,
        tables: Sequence[TrainingRows],
        profiles: Profiles,
        *,
        by_degree: bool,
    ) -> Self:
        """Collect what new rows are placed by, in this process.

        Tables stand in the order of the ensemble's views; `by_degree` is that of
        `Profiles.means`.
        """
        plain = means = profiles.means(by_degree=False)
        if by_degree:
            means = profiles.means(by_degree=True)
        offsets = profiles.ensemble.offsets
        return cls(tuple(tables), offsets, profiles.weights, means, plain)

    def base_clusters(
        self, tables: Sequence[Any], *, n_jobs: int | None = None, device: str = "cpu"
    ) -> NDArray[np.int32]:
        """Return the base clusters of new rows from each table, (n_new, n_members).

        `n_jobs` members are asked at the same time, or rows searched on a device.
        """
        pairs = zip(tables, self.tables, strict=True)
        ask = partial(predict_base_clusters, n_jobs=n_jobs, device=device)
        columns = [ask(*each) for each in pairs]
        return np.concatenate(columns, axis=1)

    def place(self, base: NDArray[np.int32]) -> tuple[NDArray[np.int32], Array]:
        """Return the clusters of new rows with these base clusters, and confidence."""
        clusters, sure = np.empty(len(base), dtype=np.int32), np.empty(len(base))
        with single_threaded_blas():
            for part in row_slices(len(base), len(self.means)):
                some = base[part]
                over = some, self.offsets, self.means, self.weights
                clusters[part] = nearest_profiles(*over)
                sure[part] = confidence(self._associations(some), clusters[part])
        return clusters, sure

    def memberships(self, base: NDArray[np.int32]) -> Array:
        """Return how far new rows belong to every cluster, (n_new, n_clusters)."""
        shape = len(base), len(self.means)
        require_memory(
            2 * 8 * math.prod(shape),
            f"the memberships of {shape[0]} new rows in {shape[1]} clusters",
            "give fewer rows at a time",
        )
        shares = np.empty(shape)
        with single_threaded_blas():
            for part in row_slices(*shape):
                shares[part] = memberships(self._associations(base[part]))
        return shares

    def _associations(self, base: NDArray[np.int32]) -> Array:
        """Return the mean co-association of new rows with every cluster, in [0, 1].

        As `mdec.confidence.item_consensus` has it for training rows. `base` holds the
        base cluster of each new row in each member, -1 for none.
        """
        factor = factor_rows(base, self.offsets, self.weights)
        greatest = greatest_association(self.offsets, self.weights, complete=True)
        association: Array = factor @ self.plain_means.T / greatest
        return np.clip(association, 0.0, 1.0)

    def are_unlike(self, tables: Sequence[Any]) -> NDArray[np.bool_]:
        """Tell which new rows are unlike any in training, in at least one table."""
        with single_threaded_blas():
            flags = [
                known.novelty_detector.is_novel(known.as_compared(rows))
                for rows, known in zip(tables, self.tables, strict=True)
            ]
        return np.any(flags, axis=0)


def nearest_profiles(
    base: NDArray[np.int32], offsets: NDArray[np.int64], means: Array, weights: Array
) -> NDArray[np.int32]:
    r"""Return the cluster with the largest mean association to each row.

    It is the cluster k with the largest :math:`F_{new} \cdot \bar F_k`. `base`, of
    shape (n_new, n_members), holds the base clusters of the rows, -1 for none; the
    others are parts of a `Placement`.

    Notes
    -----
    Average linkage compares mean co-associations, so they place new rows as it would.
    The other two consensus functions see :math:`D^{-1/2} A D^{-1/2}` with the degrees
    :math:`D_{jj} = \sum_i A_{ij}`; the means are then those of
    :math:`A_{new,j} / \sqrt{D_{jj}}`.
    """
    rows = membership(base, offsets)
    rows.data = np.sqrt(weights[rows.indices] / base.shape[1])
    return np.asarray(rows @ means.T).argmax(axis=1).astype(np.int32)
