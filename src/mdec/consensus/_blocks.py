"""Weights, bipartite consensus and confidence over row blocks of labels.

The same steps as on a whole ensemble, each a map over blocks or a small sum, for labels
that are too many to be looked at together or that lie on a cluster's workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.random import RandomState, consensus_stream
from mdec.coassociation import degree_scaled, factor_rows
from mdec.confidence import (
    associations,
    cluster_profiles,
    confidence,
)
from mdec.consensus.partitions import warn_of_fewer
from mdec.numerics.kmeans import kmeans_centers
from mdec.numerics.transfer import (
    BipartiteRows,
    assigned_rows,
    embedded_rows,
    reduced_affinity,
    reduced_vectors,
)
from mdec.rows.blocks import Worker, gathered_rows, ordered_sum
from mdec.weights import entropy_of_overlaps

Array = NDArray[np.floating]
Labels = NDArray[np.int32]
Offsets = NDArray[np.int64]

# Above this many samples the bipartite consensus works in blocks, if the full matrix of
# its base clusters stays below a gigabyte.
BLOCKED_SAMPLES = 100_000
BLOCKED_CLUSTERS = 10_000

# Rows whose k-means gives the centres to which all rows are assigned.
CENTER_ROWS = 50_000


def is_blocked(n_samples: int, n_base_clusters: int) -> bool:
    """Tell whether the bipartite consensus works in blocks."""
    return n_samples > BLOCKED_SAMPLES and n_base_clusters <= BLOCKED_CLUSTERS


def blocked_weights(
    worker: Worker, parts: Sequence[Any], offsets: Offsets, theta: float = 1.0
) -> Array:
    """Return the ECI of every base cluster, Eqs. 16 to 19, from blocks of labels.

    Parameters
    ----------
    worker : Worker
        Who does the work on blocks.
    parts : sequence
        Labels of each row block, shape (n_rows, n_members).
    offsets : ndarray of shape (n_members + 1,)
        Number of the first cluster of each member, and of all clusters.
    theta : float, default=1.0
        Scale of the entropy.

    Returns
    -------
    ndarray of shape (n_base_clusters,)
        Equal to `mdec.weights.ensemble_driven_cluster_index` of the whole.
    """
    overlaps = worker.value(ordered_sum(worker, _overlaps, parts, offsets))
    total = np.zeros(int(offsets[-1]))
    for start, stop in pairwise(offsets):
        total += entropy_of_overlaps(overlaps[start:stop])
    return np.exp(-total / (theta * (len(offsets) - 1)))


def _overlaps(parts: list[Labels], offsets: Offsets) -> NDArray[np.int64]:
    from mdec.numerics import loops

    n_members = len(offsets) - 1
    total = np.zeros((int(offsets[-1]), int(offsets[-1])), dtype=np.int64)
    for labels in parts:
        for member in range(n_members):
            rows = slice(offsets[member], offsets[member + 1])
            total[rows] += loops.count_overlaps(labels, member, offsets)
    return total


def blocked_bipartite(
    worker: Worker,
    parts: Sequence[Any],
    bounds: list[tuple[int, int]],
    n_clusters: int,
    offsets: Offsets,
    weights: Array,
    random_state: RandomState,
) -> tuple[list[Any], int]:
    """Cluster by cutting the graph of samples and base clusters, block by block.

    Parameters
    ----------
    worker : Worker
        Who does the work on blocks.
    parts : sequence
        Labels of each row block.
    bounds : list of tuple
        First row of each block and the one after its last.
    n_clusters : int
        Number of clusters.
    offsets : ndarray of shape (n_members + 1,)
        Number of the first cluster of each member, and of all clusters.
    weights : ndarray of shape (n_base_clusters,)
        Weight of each base cluster.
    random_state : int, RandomState, Generator or None
        Seed of the eigen-solver and of k-means.

    Returns
    -------
    clusters : list
        The worker's handles of the clusters of each block, numbered in the order of
        first samples.
    n_found : int
        Number of clusters; fewer than asked for only if the ensemble tells fewer
        groups apart.

    Notes
    -----
    The centres come from the k-means of at most 50,000 rows drawn at random; every row
    then goes to its nearest centre.
    """
    rng = consensus_stream(random_state)
    n_samples = bounds[-1][1]
    affinity = ordered_sum(worker, affinity_of_labels, parts, offsets, weights)
    drawn = rng.choice(n_samples, min(n_samples, CENTER_ROWS), replace=False)
    sample = gathered_rows(worker, parts, bounds, np.sort(drawn))
    cut = worker.call(_fitted, affinity, sample, n_clusters, offsets, weights, rng)
    labels = worker.map(_assigned, parts, cut, offsets, weights)
    firsts = [worker.value(each) for each in worker.map(_first_rows, labels)]
    rank = ranks_by_appearance(firsts, n_clusters)
    n_found = int(rank.max()) + 1
    warn_of_fewer(n_found, n_clusters)
    return list(worker.map(_ranked, labels, rank)), n_found


def bipartite_rows(labels: Labels, offsets: Offsets, weights: Array) -> BipartiteRows:
    """Return the rows of the graph of samples and base clusters, Eqs. 29 and 30."""
    present = labels >= 0
    index = np.where(present, labels + offsets[:-1], 0).astype(np.int32)
    return BipartiteRows(index, np.where(present, weights[index], 0.0))


def affinity_of_labels(parts: list[Labels], offsets: Offsets, weights: Array) -> Array:
    """Return the affinity of base clusters that some blocks of labels bring about."""
    rows = [bipartite_rows(labels, offsets, weights) for labels in parts]
    return reduced_affinity(rows, int(offsets[-1]))


def _fitted(
    affinity: Array,
    sample: Labels,
    n_clusters: int,
    offsets: Offsets,
    weights: Array,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    vectors = reduced_vectors(affinity, n_clusters, rng)
    points = embedded_rows(bipartite_rows(sample, offsets, weights), vectors)
    return vectors, kmeans_centers(points, n_clusters, rng)


def _assigned(
    labels: Labels, cut: tuple[Array, Array], offsets: Offsets, weights: Array
) -> Labels:
    return assigned_rows(bipartite_rows(labels, offsets, weights), *cut)


def _first_rows(labels: Labels) -> tuple[Labels, NDArray[np.intp]]:
    return np.unique(labels, return_index=True)


def ranks_by_appearance(
    firsts: list[tuple[Labels, NDArray[np.intp]]], n_clusters: int
) -> Labels:
    """Return the number of each cluster in the order of first samples.

    Parameters
    ----------
    firsts : list of tuple
        The clusters of each block, and their first rows in it.
    n_clusters : int
        Number of clusters.

    Returns
    -------
    ndarray of shape (n_clusters,)
        New numbers; -1 for clusters without samples.

    Examples
    --------
    >>> firsts = [(np.array([2]), np.array([0])), (np.array([0, 1]), np.array([4, 1]))]
    >>> ranks_by_appearance(firsts, 3)
    array([2, 1, 0], dtype=int32)
    """
    rank = np.full(n_clusters, -1, dtype=np.int32)
    found = 0
    for clusters, rows in firsts:
        for cluster in clusters[np.argsort(rows)]:
            if rank[cluster] < 0:
                rank[cluster] = found
                found += 1
    return rank


def _ranked(labels: Labels, rank: Labels) -> Labels:
    return rank[labels]


def blocked_confidence(
    worker: Worker,
    parts: Sequence[Any],
    clusters: Sequence[Any],
    profiles: Any,
    sizes: Any,
    offsets: Offsets,
    weights: Array,
) -> list[Any]:
    """Return how firmly each sample is held by its cluster, block by block.

    Parameters
    ----------
    worker : Worker
        Who does the work on blocks.
    parts : sequence
        Labels of each row block in the ensemble.
    clusters : sequence
        Consensus clusters of each row block.
    profiles, sizes : object
        Handles from `blocked_profiles`.
    offsets : ndarray of shape (n_members + 1,)
        Number of the first cluster of each member, and of all clusters.
    weights : ndarray of shape (n_base_clusters,)
        Weight of each base cluster.

    Returns
    -------
    list
        The worker's handles of the confidences of each block, as
        `mdec.confidence.confidence` defines them.
    """
    return [
        worker.call(_confidence, *each, profiles, sizes, offsets, weights)
        for each in zip(parts, clusters, strict=True)
    ]


def blocked_profiles(
    worker: Worker,
    parts: Sequence[Any],
    clusters: Sequence[Any],
    n_clusters: int,
    offsets: Offsets,
    weights: Array,
    totals: Array | None = None,
) -> tuple[Any, Any]:
    """Return sums of the factor over each cluster, and the clusters' sizes.

    Parameters
    ----------
    worker : Worker
        Who does the work on blocks.
    parts : sequence
        Labels of each row block in the ensemble.
    clusters : sequence
        Consensus clusters of each row block.
    n_clusters : int
        Number of clusters.
    offsets : ndarray of shape (n_members + 1,)
        Number of the first cluster of each member, and of all clusters.
    weights : ndarray of shape (n_base_clusters,)
        Weight of each base cluster.
    totals : ndarray of shape (n_base_clusters,), optional
        Sums of the factor over all samples; with them every row of it is first
        divided by the root of its degree.

    Returns
    -------
    profiles : object
        Handle of an array of shape (n_clusters, n_base_clusters).
    sizes : object
        Handle of an array of shape (n_clusters,).
    """
    both = [worker.call(_pair, *each) for each in zip(parts, clusters, strict=True)]
    settings = n_clusters, offsets, weights, totals
    profiles = ordered_sum(worker, _profiles, both, *settings)
    return profiles, ordered_sum(worker, _sizes, clusters, n_clusters)


def _pair(labels: Labels, clusters: Labels) -> tuple[Labels, Labels]:
    return labels, clusters


def _profiles(
    parts: list[tuple[Labels, Labels]],
    n_clusters: int,
    offsets: Offsets,
    weights: Array,
    totals: Array | None,
) -> Array:
    total = np.zeros((n_clusters, int(offsets[-1])))
    for labels, clusters in parts:
        factor = factor_rows(labels, offsets, weights)
        if totals is not None:
            factor = degree_scaled(factor, totals)
        total += cluster_profiles(factor, clusters, n_clusters)
    return total


def _sizes(parts: list[Labels], n_clusters: int) -> Array:
    counts = [np.bincount(part, minlength=n_clusters) for part in parts]
    return np.sum(counts, axis=0).astype(np.float64)


def _confidence(
    labels: Labels,
    clusters: Labels,
    profiles: Array,
    sizes: Array,
    offsets: Offsets,
    weights: Array,
) -> Array:
    factor = factor_rows(labels, offsets, weights)
    return confidence(associations(factor, clusters, profiles, sizes), clusters)
