"""Normalised spectral partitioning of a similarity graph, Eqs. 11 and 13."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdec.numerics.affinity import sparse_leading_vectors, unit_rows
from mdec.numerics.kmeans import kmeans

Array = NDArray[np.floating]


def spectral_embedding(
    W: sparse.csr_array, n_vectors: int, rng: np.random.Generator
) -> Array:
    """Return rows of unit length from the leading eigenvectors of a similarity graph.

    Parameters
    ----------
    W : csr_array of shape (n_samples, n_samples)
        Symmetric and non-negative.
    n_vectors : int
        Dimension of the embedding.
    rng : Generator
        Start of the solver.

    Returns
    -------
    ndarray of shape (n_samples, n_vectors)
        Unit rows.
    """
    from mdec.numerics import loops

    component = loops.components(W.indptr, W.indices)
    degrees = np.asarray(W.sum(axis=1)).ravel()
    return unit_rows(sparse_leading_vectors(W, degrees, component, n_vectors, rng))


def spectral_partition(
    W: sparse.csr_array,
    n_clusters: int,
    *,
    solver: np.random.Generator,
    assign: np.random.Generator,
) -> NDArray[np.int32]:
    """Cut a similarity graph into clusters, Eqs. 11 and 13.

    Parameters
    ----------
    W : csr_array of shape (n_samples, n_samples)
        Symmetric and non-negative.
    n_clusters : int
        Number of clusters.
    solver : Generator
        Stream of the eigen-solver.
    assign : Generator
        Stream of k-means.

    Returns
    -------
    ndarray of shape (n_samples,)
        Labels.
    """
    return kmeans(spectral_embedding(W, n_clusters, solver), n_clusters, assign)
