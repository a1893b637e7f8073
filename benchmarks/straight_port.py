"""MDEC written down from its equations, with no thought for time or memory.

The yardstick of `speed.py`: dense float64 distances, a dense kernel, scikit-learn's
spectral clustering for each member, the full co-association matrix, SciPy's linkage and
dense eigenvectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import cut_tree, linkage
from scipy.linalg import eigh
from scipy.spatial.distance import squareform
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.metrics import euclidean_distances

Array = NDArray[np.float64]


def similarity(X: Array, n_neighbors: int, mu: float) -> Array:
    distances = euclidean_distances(X, squared=True)
    np.fill_diagonal(distances, np.inf)
    nearest = np.sort(distances, axis=1)[:, :n_neighbors].mean(axis=1)
    np.fill_diagonal(distances, 0.0)
    width = mu * (nearest[:, None] + nearest[None, :] + distances) / 3.0
    weights = np.exp(-0.5 * (distances / width) ** 2) / (np.sqrt(2.0 * np.pi) * width)
    np.fill_diagonal(weights, 0.0)
    largest = np.argpartition(-weights, n_neighbors, axis=1)[:, :n_neighbors]
    kept = np.zeros_like(weights)
    np.put_along_axis(kept, largest, np.take_along_axis(weights, largest, 1), axis=1)
    return np.maximum(kept, kept.T)


def base_clustering(
    X: Array, features: NDArray[np.int64], n_neighbors: int, mu: float, n_clusters: int
) -> NDArray[np.int32]:
    weights = similarity(X[:, features].astype(np.float64), n_neighbors, mu)
    model = SpectralClustering(
        n_clusters, affinity="precomputed", n_init=3, random_state=0
    )
    labels: NDArray[np.int32] = model.fit_predict(weights)
    return labels


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
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
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
