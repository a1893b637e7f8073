"""Consensus by cutting the graph of samples and clusters (MDEC-BG), Eqs. 29, 30."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdec._support.random import RandomState, consensus_stream
from mdec.consensus.partitions import (
    alike_together,
    assign,
    gram_on_device,
    require_for_consensus,
    resolve_weights,
    trivial_partition,
    warn_of_fewer,
)
from mdec.ensemble import Ensemble, LabelBlocks
from mdec.numerics.kmeans import kmeans_centers
from mdec.numerics.transfer import (
    BipartiteRows,
    assigned_rows,
    embedded_rows,
    reduced_affinity,
    reduced_vectors,
    shared_weights,
    transfer_cut,
    unit_over_rows,
)
from mdec.rows.work import gathered_rows, most_parts, ordered_sum

Array = NDArray[np.floating]
Labels = NDArray[np.int32]
Offsets = NDArray[np.int64]

# Above this many samples the vectors outgrow a core's cache, and sums over a cluster
# are faster if its samples lie together.
SORTED_SAMPLES = 4000

# Above this many samples the bipartite and the spectral consensus work in blocks, if
# the full matrix of the base clusters stays below a gigabyte.
BLOCKED_SAMPLES = 100_000
BLOCKED_CLUSTERS = 10_000

# Rows whose k-means gives the centres to which all rows are assigned.
CENTER_ROWS = 50_000


def is_blocked(n_samples: int, n_base_clusters: int) -> bool:
    """Tell whether the bipartite and the spectral consensus work in blocks."""
    return n_samples > BLOCKED_SAMPLES and n_base_clusters <= BLOCKED_CLUSTERS


def bipartite(
    ensemble: Ensemble,
    n_clusters: int,
    weights: Array | None = None,
    random_state: RandomState = None,
    device: str = "cpu",
) -> NDArray[np.int32]:
    """Cluster by cutting the bipartite graph of samples and base clusters.

    Parameters
    ----------
    ensemble : Ensemble
        The base clusterings.
    n_clusters : int
        Number of clusters, at most the number of base clusters.
    weights : ndarray of shape (n_base_clusters,), optional
        Weight of each base cluster; None for the ECI.
    random_state : int, RandomState, Generator or None
        Seed of the eigen-solver and of k-means.
    device : {"cpu", "cuda", "torch"}, default="cpu"
        Where the eigenvectors are computed.

    Returns
    -------
    ndarray of shape (n_samples,)
        Labels, numbered in the order of first samples.

    Notes
    -----
    Above 100,000 samples in at most 10,000 base clusters the graph is never whole: sums
    over row blocks give the small side, and k-means of a sample of rows gives the
    centres that all rows go to.

    A sample has no edge to a member that leaves it out, and those that it has decide:
    a random walk from it starts with equal chances in the members that cluster it,
    but for the weights of its clusters.

    Examples
    --------
    >>> ensemble = Ensemble.from_labels([[0, 0], [0, 0], [1, 1], [1, 1], [1, 2]])
    >>> bipartite(ensemble, 2, random_state=0)
    array([0, 0, 1, 1, 1], dtype=int32)
    """
    if (trivial := trivial_partition(ensemble, n_clusters)) is not None:
        return trivial
    weights = resolve_weights(ensemble, weights)
    if is_blocked(ensemble.n_samples, ensemble.n_base_clusters):
        parts = blocked_bipartite(ensemble, n_clusters, weights, random_state)
        return np.concatenate(parts)
    require_for_consensus(ensemble, bipartite_memory(ensemble, n_clusters))
    rng = consensus_stream(random_state)
    graph = bipartite_graph(ensemble, weights)
    gram = gram_on_device(graph.shape[::-1], n_clusters, device)
    if ensemble.n_samples <= SORTED_SAMPLES or gram is not None:
        return assign(ensemble, transfer_cut(graph, n_clusters, rng, gram), rng)
    order = alike_together(ensemble.labels)
    sorted_rows = transfer_cut(graph[order], n_clusters, rng)
    embedding = np.empty_like(sorted_rows)
    embedding[order] = sorted_rows
    return assign(ensemble, embedding, rng)


def bipartite_memory(ensemble: Ensemble, n_clusters: int) -> int:
    """Estimate the bytes that the cut of the sparse graph takes.

    The graph while it is made, its copies sorted, transposed and scaled, and the
    embedding.
    """
    n_labels, n_samples = ensemble.labels.size, ensemble.n_samples
    copies = 92 if n_samples > SORTED_SAMPLES else 78
    return max(copies * n_labels, 62 * n_labels + 22 * n_samples * n_clusters) + 2**20


def bipartite_graph(ensemble: Ensemble, weights: Array) -> sparse.csr_array:
    r"""Return the weighted graph of samples and base clusters, Eqs. 29 and 30.

    Parameters
    ----------
    ensemble : Ensemble
        The base clusterings.
    weights : ndarray of shape (n_base_clusters,)
        Weight of each base cluster.

    Returns
    -------
    csr_array of shape (n_samples, n_base_clusters)
        :math:`B = Z\,diag(w)`.
    """
    indicator = ensemble.indicator()
    return sparse.csr_array(
        (weights[indicator.indices], indicator.indices, indicator.indptr),
        shape=indicator.shape,
    )


def blocked_bipartite(
    ensemble: LabelBlocks,
    n_clusters: int,
    weights: Array,
    random_state: RandomState = None,
) -> list[Any]:
    """Cluster by cutting the graph of samples and base clusters, block by block.

    Returns the worker's handles of the clusters of each block, as `blocked_cut`.
    """
    return blocked_cut(ensemble, n_clusters, weights, random_state)


def blocked_cut(
    ensemble: LabelBlocks,
    n_clusters: int,
    columns: Array,
    random_state: RandomState = None,
    *,
    of_samples: bool = False,
) -> list[Any]:
    r"""Cut the graph :math:`B = diag(p) Z diag(c)` of samples and base clusters.

    Parameters
    ----------
    ensemble : LabelBlocks
        The base clusterings, whose memberships are Z.
    n_clusters : int
        Number of clusters.
    columns : ndarray of shape (n_base_clusters,)
        Factors c of the base clusters.
    random_state : int, RandomState, Generator or None
        Seed of the eigen-solver, of the drawn rows and of k-means.
    of_samples : bool, default=False
        The eigenvectors are those of the samples' co-association: factors p from
        `presence`, and vectors of unit length over the samples. Otherwise p is one,
        and vectors have unit length over the base clusters.

    Returns
    -------
    list
        The worker's handles of the clusters of each block, numbered in the order of
        first samples; fewer than asked for only if the ensemble tells fewer groups
        apart.

    Notes
    -----
    The centres come from the k-means of at most 50,000 rows drawn at random; every row
    then goes to its nearest centre.
    """
    require_for_consensus(ensemble, small_side_memory(ensemble))
    rng = consensus_stream(random_state)
    worker, parts, offsets = ensemble.worker, ensemble.parts, ensemble.offsets
    n_samples = ensemble.n_samples
    halves = ordered_sum(worker, halves_of_labels, parts, offsets, columns, of_samples)
    drawn = rng.choice(n_samples, min(n_samples, CENTER_ROWS), replace=False)
    sample = gathered_rows(worker, parts, ensemble.bounds, np.sort(drawn))
    graph = offsets, columns, of_samples
    cut = worker.call(_fitted, halves, sample, n_clusters, *graph, rng)
    labels = worker.map(_assigned, parts, cut, offsets, columns)
    first_rows = partial(np.unique, return_index=True)
    firsts = [worker.value(each) for each in worker.map(first_rows, labels)]
    rank = ranks_by_appearance(firsts, n_clusters)
    warn_of_fewer(int(rank.max()) + 1, n_clusters)
    return worker.map(_ranked, labels, rank)


def small_side_memory(ensemble: LabelBlocks) -> int:
    """Estimate the bytes of the matrix of base clusters and its eigenvectors.

    Either the matrix and its copies for the solver, or the partial sums that are there
    at once while the blocks are added up.
    """
    heights = [stop - start for start, stop in ensemble.bounds]
    rows = 40 * len(ensemble) * max(heights)
    matrices = max(44, 8 * most_parts(len(heights)))
    return matrices * ensemble.n_base_clusters**2 + rows + 2**20


def bipartite_rows(labels: Labels, offsets: Offsets, weights: Array) -> BipartiteRows:
    """Return the rows of the graph of samples and base clusters, Eqs. 29 and 30."""
    present = labels >= 0
    index = np.where(present, labels + offsets[:-1], 0).astype(np.int32)
    return BipartiteRows(index, np.where(present, weights[index], 0.0))


def presence(labels: Labels) -> Array:
    """Return the inverse roots of the numbers of members that cluster each sample."""
    return 1.0 / np.sqrt(np.maximum((labels >= 0).sum(axis=1), 1))


def halves_of_labels(
    parts: list[Labels], offsets: Offsets, columns: Array, of_samples: bool = False
) -> Array:
    """Return the halves of `shared_weights` that some blocks of labels bring about."""

    def block(labels: Labels) -> tuple[Labels, Array]:
        rows = bipartite_rows(labels, offsets, columns)
        degrees = np.maximum(rows.weights.sum(axis=1), np.finfo(np.float64).tiny)
        factors = presence(labels) if of_samples else 1.0
        return np.where(labels < 0, labels, rows.index), factors / degrees

    return shared_weights(map(block, parts), int(offsets[-1]))


def _fitted(
    halves: Array,
    sample: Labels,
    n_clusters: int,
    offsets: Offsets,
    columns: Array,
    of_samples: bool,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    affinity = reduced_affinity(halves, columns)
    vectors = reduced_vectors(affinity, n_clusters, rng)
    if of_samples:
        vectors = unit_over_rows(vectors, affinity)
    points = embedded_rows(bipartite_rows(sample, offsets, columns), vectors)
    return vectors, kmeans_centers(points, n_clusters, rng)


def _assigned(
    labels: Labels, cut: tuple[Array, Array], offsets: Offsets, columns: Array
) -> Labels:
    return assigned_rows(bipartite_rows(labels, offsets, columns), *cut)


def ranks_by_appearance(
    firsts: list[tuple[Labels, NDArray[np.intp]]], n_clusters: int
) -> Labels:
    """Return the number of each cluster in the order of first samples.

    From the clusters of each block and their first rows in it; -1 for clusters without
    samples.

    Examples
    --------
    >>> firsts = [(np.array([2]), np.array([0])), (np.array([0, 1]), np.array([4, 1]))]
    >>> ranks_by_appearance(firsts, 3)
    array([2, 1, 0], dtype=int32)
    """
    appearing = np.concatenate(
        [clusters[np.argsort(rows)] for clusters, rows in firsts]
    )
    found, first = np.unique(appearing, return_index=True)
    rank = np.full(n_clusters, -1, dtype=np.int32)
    rank[found[np.argsort(first)]] = np.arange(found.size)
    return rank


def _ranked(labels: Labels, rank: Labels) -> Labels:
    return rank[labels]
