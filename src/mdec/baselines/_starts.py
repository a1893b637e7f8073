"""What several baselines share: samples to start from, samples that are alike."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mdec.ensemble import Ensemble, membership


def distinct_rows(
    ensemble: Ensemble, n_rows: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw samples that differ in some label, in random order.

    Fewer than `n_rows` are returned only if fewer are distinct.
    """
    order = rng.permutation(ensemble.n_samples)
    size = n_rows
    while True:
        head = order[:size]
        first = np.unique(ensemble.labels[head], axis=0, return_index=True)[1]
        if first.size >= n_rows or size >= order.size:
            return head[np.sort(first)[:n_rows]]
        size *= 2


def memberships(ensemble: Ensemble, rows: NDArray[np.int64]) -> NDArray[np.floating]:
    """Return the base clusters of some samples as columns of ones, to put centres on.

    Examples
    --------
    >>> memberships(Ensemble.from_labels([[0, 0], [1, 0]]), np.array([1]))
    array([[0.],
           [1.],
           [1.]])
    """
    return membership(ensemble.labels[rows], ensemble.offsets).toarray().T


def microclusters(
    ensemble: Ensemble,
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    """Return the microclusters of an ensemble in the order of their labels.

    Labels of each group, group of each sample, and size of each group. Unlike that of
    `Ensemble.microclusters`, the order does not depend on a hash.

    Examples
    --------
    >>> labels, inverse, sizes = microclusters(Ensemble.from_labels([[0], [1], [0]]))
    >>> inverse, sizes
    (array([0, 1, 0]), array([2, 1]))
    """
    first, group, sizes = ensemble.microclusters
    order = np.lexsort(ensemble.labels[first].T[::-1])
    return ensemble.labels[first[order]], np.argsort(order)[group], sizes[order]


def agreement_blocks(
    labels: NDArray[np.int32], height: int
) -> Iterator[NDArray[np.int32]]:
    """Count the members that join each row with each other row, in blocks of rows."""
    from mdec.baselines import _loops

    for first in range(0, len(labels), height):
        counts = np.empty((min(height, len(labels) - first), len(labels)), np.int32)
        _loops.agreement_counts(labels, first, counts)
        counts[np.arange(len(counts)), first + np.arange(len(counts))] = 0
        yield counts
