"""k-means as the reference runs it: several k-means++ starts, Lloyd to the end."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mdec._support.arrays import Array
from mdec.numerics.sparse_rows import group_means

N_INIT = 3
MAX_ITER = 100


def kmeans(
    X: Array,
    n_clusters: int,
    rng: np.random.Generator,
    *,
    n_init: int = N_INIT,
    max_iter: int = MAX_ITER,
) -> NDArray[np.int32]:
    """Return the labels of the best of several k-means runs.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Points, float32 or float64.
    n_clusters : int
        Number of clusters, at most the number of points.
    rng : Generator
        Source of the starts.
    n_init : int
        Runs, each from its own k-means++ start.
    max_iter : int
        Iterations at most in one run.

    Returns
    -------
    ndarray of shape (n_samples,)
        Labels of the run with the least sum of squares, the first of those that agree
        to 1e-9; fewer than `n_clusters` distinct ones only if there are fewer distinct
        points.

    Examples
    --------
    >>> X = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> labels = kmeans(X, 2, np.random.default_rng(0))
    >>> bool(labels[0] == labels[1] != labels[2] == labels[3])
    True
    """
    from mdec.numerics.loops import kmeans as loops

    X = np.ascontiguousarray(X)
    rounding = loops.rounding_square(X)
    best: NDArray[np.int32] | None = None
    least = np.inf
    for _ in range(n_init):
        centers = loops.kmeans_plus_plus(X, rng.random(n_clusters), rounding)
        labels, inertia = loops.lloyd(X, centers, max_iter, rounding)
        if best is None or inertia < (1.0 - loops.TIE) * least - len(X) * rounding:
            best, least = labels, inertia
    assert best is not None
    return best


def kmeans_centers(X: Array, n_clusters: int, rng: np.random.Generator) -> Array:
    """Return the centres of the best of several k-means runs.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Points.
    n_clusters : int
        Number of clusters, at most the number of points.
    rng : Generator
        Source of the starts.

    Returns
    -------
    ndarray of shape (n_found, n_features)
        Fewer than `n_clusters` only if there are fewer distinct points.

    Examples
    --------
    >>> X = np.array([[0.0], [2.0], [8.0], [10.0]])
    >>> np.sort(kmeans_centers(X, 2, np.random.default_rng(0)).ravel())
    array([1., 9.])
    """
    labels = kmeans(X, n_clusters, rng)
    found = np.bincount(labels, minlength=n_clusters) > 0
    centers: Array = group_means(X, labels, X[:n_clusters])[found]
    return centers
