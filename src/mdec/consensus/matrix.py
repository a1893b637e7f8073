"""Clusters of a consensus matrix that was made elsewhere."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from scipy.spatial.distance import squareform

from mdec._support.arrays import Array
from mdec._support.memory import require_memory
from mdec._support.parallel import single_threaded_blas
from mdec._support.random import RandomState, consensus_stream
from mdec.base.pairs import refuse_pairs
from mdec.consensus.dendrogram import cut, link_pairs
from mdec.consensus.partitions import number_by_appearance, trivial_partition
from mdec.numerics.affinity import unit_rows
from mdec.numerics.kmeans import kmeans

METHODS = ("hierarchical", "spectral")

# Files hold fewer digits than memory.
_TOLERANCE = 1e-6


def from_matrix(
    matrix: ArrayLike,
    n_clusters: int,
    *,
    consensus: str = "hierarchical",
    random_state: RandomState = None,
) -> NDArray[np.int32]:
    """Cluster the samples of a consensus matrix, such as ConsensusClusterPlus makes.

    Parameters
    ----------
    matrix : array-like of shape (n_samples, n_samples)
        Share of the clusterings in which two samples are together: symmetric, from 0
        to 1, with ones on its diagonal.
    n_clusters : int
        Number of clusters.
    consensus : {"hierarchical", "spectral"}, default="hierarchical"
        Average linkage of all pairs, or k-means of the leading eigenvectors.
    random_state : int, RandomState, Generator or None
        Seed of k-means; linkage has nothing random.

    Returns
    -------
    ndarray of shape (n_samples,)
        Labels, numbered in the order of first samples.

    Examples
    --------
    >>> matrix = [[1.0, 0.9, 0.1], [0.9, 1.0, 0.0], [0.1, 0.0, 1.0]]
    >>> from_matrix(matrix, 2)
    array([0, 0, 1], dtype=int32)
    """
    similarity = check_matrix(matrix)
    n_samples = len(similarity)
    if consensus not in METHODS:
        raise ValueError(f"consensus={consensus!r} is not one of {', '.join(METHODS)}.")
    if (trivial := trivial_partition(n_samples, n_clusters)) is not None:
        return trivial
    with single_threaded_blas():
        if consensus == "hierarchical":
            pairs = squareform(similarity, checks=False)
            merges = link_pairs(pairs, np.ones(n_samples, dtype=np.int64))
            labels = cut(*merges, n_samples, n_clusters)
        else:
            scale = 1.0 / np.sqrt(similarity.sum(axis=1))
            vectors = linalg.eigh(
                similarity * scale[:, None] * scale,
                subset_by_index=[n_samples - n_clusters, n_samples - 1],
            )[1]
            rng = consensus_stream(random_state)
            labels = kmeans(unit_rows(vectors), n_clusters, rng)
    return number_by_appearance(labels, n_clusters)


def check_matrix(matrix: ArrayLike) -> Array:
    """Return a copy of a consensus matrix, or raise one sentence.

    The copy is exactly symmetric, in [0, 1], with ones on its diagonal.
    """
    given = np.asarray(matrix, dtype=np.float64)
    if given.ndim != 2 or given.shape[0] != given.shape[1] or len(given) < 2:
        raise ValueError(
            f"a consensus matrix is a square with at least two rows, got shape "
            f"{given.shape}."
        )
    require_memory(
        4 * given.nbytes,
        f"clustering a consensus matrix of {len(given)} samples",
        "cluster the data themselves, which needs no such matrix",
    )
    refuse_pairs(
        given,
        lambda rows: ~np.isfinite(given[rows]),
        "the consensus matrix has no number for samples {i} and {j}, which no "
        "clustering may have seen together; make it of more clusterings.",
    )
    if given.min() < -_TOLERANCE or given.max() > 1.0 + _TOLERANCE:
        raise ValueError(
            f"a consensus matrix has numbers from 0 to 1, got {given.min():.4g} to "
            f"{given.max():.4g}; divide counts by the number of clusterings."
        )
    refuse_pairs(
        given,
        lambda rows: np.abs(given[rows] - given.T[rows]) > _TOLERANCE,
        "a consensus matrix is symmetric; samples {i} and {j} have {value:.4g} and "
        "{other:.4g}.",
    )
    if np.abs(np.diag(given) - 1.0).max() > _TOLERANCE:
        raise ValueError(
            "a consensus matrix has ones on its diagonal; give similarities, not "
            "distances."
        )
    similarity = np.clip((given + given.T) / 2.0, 0.0, 1.0)
    np.fill_diagonal(similarity, 1.0)
    return similarity


def matrix_associations(similarity: Array, labels: NDArray[np.integer]) -> Array:
    """Return the mean consensus of every sample with every cluster, itself left out.

    As `mdec.confidence.item_consensus`, of a whole matrix.

    Examples
    --------
    >>> A = np.array([[1.0, 0.8, 0.1], [0.8, 1.0, 0.3], [0.1, 0.3, 1.0]])
    >>> matrix_associations(A, np.array([0, 0, 1]))
    array([[0.8, 0.1],
           [0.8, 0.3],
           [0.2, 1. ]])
    """
    sizes, samples = np.bincount(labels), np.arange(len(labels))
    sums = similarity @ np.eye(sizes.size)[labels]
    association: Array = sums / sizes
    rest = sizes[labels] - 1
    own = (sums[samples, labels] - 1.0) / np.maximum(rest, 1)
    association[samples, labels] = np.where(rest > 0, own, 1.0)
    return np.clip(association, 0.0, 1.0)
