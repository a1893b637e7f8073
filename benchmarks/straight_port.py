"""MDEC written down from its equations, as well as plain NumPy and SciPy allow.

The yardstick of `speed.py`: dense float64 distances and a dense kernel, of which a
sparse graph is kept, its leading eigenvectors by LAPACK or ARPACK, scikit-learn's
k-means; the full co-association matrix, SciPy's linkage and dense eigenvectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.cluster.hierarchy import cut_tree, linkage
from scipy.linalg import eigh
from scipy.sparse.linalg import eigsh
from scipy.spatial.distance import squareform
from sklearn.cluster import KMeans
from sklearn.metrics import euclidean_distances

Array = NDArray[np.float64]


# Up to this many samples LAPACK is faster than ARPACK.
DENSE_SAMPLES = 700


def similarity(X: Array, n_neighbors: int, mu: float) -> sparse.csr_array:
    distances = euclidean_distances(X, squared=True)
    np.fill_diagonal(distances, np.inf)
    nearest = np.partition(distances, n_neighbors - 1, axis=1)[:, :n_neighbors]
    nearest = nearest.mean(axis=1)
    np.fill_diagonal(distances, 0.0)
    width = mu * (nearest[:, None] + nearest[None, :] + distances) / 3.0
    weights = np.exp(-0.5 * (distances / width) ** 2) / (np.sqrt(2.0 * np.pi) * width)
    np.fill_diagonal(weights, 0.0)
    largest = np.argpartition(-weights, n_neighbors, axis=1)[:, :n_neighbors]
    kept = np.take_along_axis(weights, largest, axis=1).ravel()
    row = np.repeat(np.arange(len(X)), n_neighbors)
    graph = sparse.csr_array((kept, (row, largest.ravel())), shape=weights.shape)
    return graph.maximum(graph.T)


def leading_vectors(graph: sparse.csr_array, n_vectors: int) -> Array:
    degrees = np.maximum(graph.sum(axis=1), np.finfo(np.float64).eps)
    scale = sparse.diags_array(1.0 / np.sqrt(degrees))
    normalized = scale @ graph @ scale
    n = graph.shape[0]
    if n <= DENSE_SAMPLES:
        full = normalized.toarray()
        vectors: Array = eigh(full, subset_by_index=[n - n_vectors, n - 1])[1]
        return vectors
    start = np.random.default_rng(0).random(n)
    found: Array = eigsh(normalized, k=n_vectors, which="LA", v0=start)[1]
    return found


def base_clustering(
    X: Array, features: NDArray[np.int64], n_neighbors: int, mu: float, n_clusters: int
) -> NDArray[np.int32]:
    graph = similarity(X[:, features], n_neighbors, mu)
    return _assign(leading_vectors(graph, n_clusters), n_clusters)


def indicator(labels: NDArray[np.int32]) -> Array:
    columns = [
        (labels[:, m] == c).astype(np.float64)
        for m in range(labels.shape[1])
        for c in range(labels[:, m].max() + 1)
    ]
    return np.stack(columns, axis=1)


def cluster_weights(labels: NDArray[np.int32]) -> Array:
    Z = indicator(labels)
    overlaps = Z.T @ Z
    p = overlaps / Z.sum(axis=0)[:, None]
    entropy = -np.sum(p * np.log2(np.where(p > 0.0, p, 1.0)), axis=1)
    return np.exp(-entropy / labels.shape[1])


def coassociation(labels: NDArray[np.int32], weights: Array) -> Array:
    Z = indicator(labels)
    A: Array = (Z * weights) @ Z.T / labels.shape[1]
    np.fill_diagonal(A, 1.0)
    return A


def hierarchical(A: Array, n_clusters: int) -> NDArray[Any]:
    tree = linkage(squareform(1.0 - A, checks=False), "average")
    labels: NDArray[Any] = cut_tree(tree, n_clusters).ravel()
    return labels


def _assign(rows: Array, n_clusters: int) -> NDArray[Any]:
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-10)
    labels: NDArray[Any] = KMeans(n_clusters, n_init=3, random_state=0).fit_predict(
        rows
    )
    return labels


def spectral(A: Array, n_clusters: int) -> NDArray[Any]:
    scale = 1.0 / np.sqrt(A.sum(axis=1))
    n = len(A)
    normalized = scale[:, None] * A * scale[None, :]
    _, vectors = eigh(normalized, subset_by_index=[n - n_clusters, n - 1])
    return _assign(vectors, n_clusters)


def bipartite(
    labels: NDArray[np.int32], weights: Array, n_clusters: int
) -> NDArray[Any]:
    B = indicator(labels) * weights
    to_samples = B / B.sum(axis=1, keepdims=True)
    W = B.T @ to_samples
    scale = 1.0 / np.sqrt(W.sum(axis=1))
    n = len(W)
    normalized = scale[:, None] * W * scale[None, :]
    _, vectors = eigh(normalized, subset_by_index=[n - n_clusters, n - 1])
    return _assign(to_samples @ (scale[:, None] * vectors), n_clusters)
