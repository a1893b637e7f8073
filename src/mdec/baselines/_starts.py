"""What several baselines share: random rows to start from, samples that are alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mdec.ensemble import Ensemble


def distinct_rows(
    ensemble: Ensemble, n_rows: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw samples that differ in some label, in random order.

    Parameters
    ----------
    ensemble : Ensemble
        The base clusterings.
    n_rows : int
        Samples wanted.
    rng : Generator
        Source of the draw.

    Returns
    -------
    ndarray
        Samples; fewer than `n_rows` only if fewer are distinct.
    """
    order = rng.permutation(ensemble.n_samples)
    size = n_rows
    while True:
        head = order[:size]
        first = np.unique(ensemble.labels[head], axis=0, return_index=True)[1]
        if first.size >= n_rows or size >= order.size:
            return head[np.sort(first)[:n_rows]]
        size *= 2


def microclusters(
    ensemble: Ensemble,
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    """Group the samples that share every label.

    Parameters
    ----------
    ensemble : Ensemble
        The base clusterings.

    Returns
    -------
    labels : ndarray of shape (n_microclusters, n_members)
        The labels of each group.
    inverse : ndarray of shape (n_samples,)
        Group of each sample.
    sizes : ndarray of shape (n_microclusters,)
        Samples in each group.

    Examples
    --------
    >>> labels, inverse, sizes = microclusters(Ensemble.from_labels([[0], [1], [0]]))
    >>> inverse, sizes
    (array([0, 1, 0]), array([2, 1]))
    """
    labels, inverse, sizes = np.unique(
        ensemble.labels, axis=0, return_inverse=True, return_counts=True
    )
    return np.ascontiguousarray(labels), inverse.ravel(), sizes
