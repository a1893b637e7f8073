"""Consensus by cutting a graph of the ensemble: MDEC-BG and MDEC-SC.

MDEC-BG cuts the bipartite graph of samples and base clusters, Eqs. 29 and 30, MDEC-SC
the graph of the samples' co-association, Eqs. 27 and 28. The graph of very many samples
is never whole: sums over row blocks give the matrix of the base clusters, whose
eigenvectors carry over to the samples, block by block again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdec._support.arrays import Array, Labels
from mdec._support.random import RandomState, consensus_stream
from mdec.coassociation import coassociation_factor, rows_on_device
from mdec.consensus.partitions import (
    gram_on_device,
    number_by_appearance,
    number_clusters,
    require_for_consensus,
    resolve_weights,
    trivial_partition,
)
from mdec.ensemble import Ensemble, membership
from mdec.numerics.affinity import bipartite_components, leading_vectors, unit_rows
from mdec.numerics.eigen import Operator
from mdec.numerics.kmeans import kmeans, kmeans_centers
from mdec.numerics.landmark_search import refine_landmarks
from mdec.numerics.transfer import (
    BipartiteRows,
    assign_rows,
    embed_rows,
    small_side_affinity,
    small_side_vectors,
    sum_shared_weights,
    transfer_cut,
    unit_over_rows,
)
from mdec.rows.work import gather_rows, most_parts, ordered_sum

Offsets = NDArray[np.int64]

# Above this many samples the bipartite and the spectral consensus work in blocks, if
# the full matrix of the base clusters stays below a gigabyte.
BLOCKED_SAMPLES = 100_000
BLOCKED_CLUSTERS = 10_000

# Rows whose k-means gives the centres to which all rows are assigned.
CENTER_ROWS = 50_000

# Regions, drawn rows for each, and dimensions in which they are found.
REGIONS = 4000
ROWS_PER_REGION = 10
DIMENSIONS = 50


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
    settings = n_clusters, weights, random_state, device
    return ensemble.join(cut_graph(ensemble, *settings, of_samples=False))


def spectral(
    ensemble: Ensemble,
    n_clusters: int,
    weights: Array | None = None,
    random_state: RandomState = None,
    device: str = "cpu",
) -> NDArray[np.int32]:
    """Cluster by spectral partitioning of the weighted co-association.

    The N x N matrix is never formed: its product with a vector goes through the
    samples' membership in the base clusters.

    Parameters
    ----------
    ensemble : Ensemble
        The base clusterings.
    n_clusters : int
        Number of clusters.
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
    Above 100,000 samples in at most 10,000 base clusters the eigenvectors come from the
    matrix of the base clusters, see `mdec.consensus.graph_cuts.cut_blocks`.

    Where members leave samples out, what two samples share is divided by the root of
    the product of the numbers of members that cluster each of them, which keeps the
    matrix in factors. For samples drawn at random that is, on average, Monti's
    consensus times the share of the samples that are drawn, a factor to which the
    partition does not react.

    Examples
    --------
    >>> ensemble = Ensemble.from_labels([[0, 0], [0, 0], [1, 1], [1, 1], [1, 2]])
    >>> spectral(ensemble, 2, random_state=0)
    array([0, 0, 1, 1, 1], dtype=int32)
    """
    settings = n_clusters, weights, random_state, device
    return ensemble.join(cut_graph(ensemble, *settings, of_samples=True))


def cut_graph(
    ensemble: Ensemble,
    n_clusters: int,
    weights: Array | None,
    random_state: RandomState,
    device: str,
    *,
    of_samples: bool,
) -> list[Any]:
    """Embed the samples and cluster them by k-means, very many where their labels are.

    Returns the executor's handles of the clusters of each block. The graph is that of
    the samples, or the bipartite one.
    """
    if (trivial := trivial_partition(ensemble.n_samples, n_clusters)) is not None:
        return ensemble.split(trivial)
    weights = resolve_weights(ensemble, weights)
    few_clusters = ensemble.n_base_clusters <= BLOCKED_CLUSTERS
    if ensemble.n_samples > BLOCKED_SAMPLES and few_clusters:
        settings = n_clusters, weights, random_state, device
        return cut_blocks(ensemble, *settings, of_samples=of_samples)
    whole = ensemble.gather()
    n_bytes = embedding_memory(whole, n_clusters, of_samples=of_samples)
    require_for_consensus(whole, n_bytes)
    rng = consensus_stream(random_state)
    if of_samples:
        points = coassociation_embedding(whole, n_clusters, weights, rng, device)
    else:
        graph = bipartite_graph(whole, weights)
        gram = gram_on_device(graph.shape[::-1], n_clusters, device)
        points = transfer_cut(graph, n_clusters, rng, gram)
    # Samples that share every label have one embedding; rounding must not part them.
    first, group, _ = whole.microclusters
    labels = kmeans(points[first[group]], n_clusters, rng)
    return ensemble.split(number_by_appearance(labels, n_clusters))


def bipartite_graph(ensemble: Ensemble, weights: Array) -> sparse.csr_array:
    r"""Return :math:`B = Z\,diag(w)`, the graph of samples and base clusters.

    Eqs. 29 and 30.
    """
    graph = ensemble.indicator()
    graph.data *= weights[graph.indices]
    return graph


def coassociation_embedding(
    ensemble: Ensemble,
    n_vectors: int,
    weights: Array,
    rng: np.random.Generator,
    device: str = "cpu",
) -> Array:
    """Return unit rows of the leading eigenvectors of the co-association.

    The diagonal of A counts as one, as in the authors' code.
    """
    factor = coassociation_factor(ensemble, weights)
    component, _ = bipartite_components(factor)
    missing = 1.0 - np.asarray(factor.power(2).sum(axis=1)).ravel()
    degrees = factor @ (factor.T @ np.ones(ensemble.n_samples)) + missing
    scaled = sparse.diags_array(1.0 / np.sqrt(degrees)) @ factor
    gram = gram_on_device(factor.shape, n_vectors, device) or gram_product
    operator = gram(scaled, missing / degrees)
    vectors = leading_vectors(operator, degrees, component, n_vectors, rng, tol=1e-6)
    return unit_rows(vectors)


def gram_product(matrix: sparse.csr_array, diagonal: Array) -> Operator:
    """Return the operator of :math:`P P^T + diag(d)`."""
    transposed = matrix.T.tocsr()
    return lambda block: matrix @ (transposed @ block) + diagonal[:, None] * block


def embedding_memory(ensemble: Ensemble, n_clusters: int, *, of_samples: bool) -> int:
    """Estimate the bytes that the cut of a graph in memory takes.

    For the spectral consensus the factor while it is made, or the factor, its transpose
    and the blocks of vectors of the eigen-solver. For the bipartite one the graph while
    it is made, its copies transposed and scaled, and the embedding.
    """
    n_labels, n_samples = ensemble.labels.size, ensemble.n_samples
    if of_samples:
        made, vectors = 60 * n_labels, 52 * n_samples * (n_clusters + 16)
        return max(made, 30 * n_labels + vectors) + 2**20
    return max(78 * n_labels, 62 * n_labels + 22 * n_samples * n_clusters) + 2**20


def cut_blocks(
    ensemble: Ensemble,
    n_clusters: int,
    weights: Array,
    random_state: RandomState = None,
    device: str = "cpu",
    *,
    of_samples: bool = False,
) -> list[Any]:
    r"""Cut the graph :math:`B = diag(p) Z diag(c)` of samples and base clusters.

    Z are the memberships. With `of_samples` the eigenvectors are those of the samples'
    co-association, as of the spectral consensus. Otherwise p is one, c are the weights
    w, and vectors have unit length over the base clusters, as of the bipartite one.
    Returns the executor's handles of the clusters of each block, numbered in the order
    of first samples; fewer than asked for only if the ensemble tells fewer apart.

    Notes
    -----
    The centres come from the k-means of at most 50,000 rows drawn at random; every row
    then goes to its nearest centre.

    With :math:`A = F F^T` the co-association and :math:`D = diag(A 1)`, the
    eigenvectors of :math:`D^{-1/2} F F^T D^{-1/2}` are :math:`D^{-1/2} F V`, where V
    are those of the matrix :math:`F^T D^{-1} F` of the base clusters. That is the cut
    of the graph :math:`B = F diag(t)`, :math:`t = F^T 1`: its samples have the degrees
    :math:`F t = D`, and its small side has the degrees :math:`t^2`. The entries of F
    are :math:`p_i \sqrt{w_j}`, with p from `presence`, so those of B are
    :math:`p_i w_j \sum_{i \in C_j} p_i`.

    The diagonal of A is left as it is, where a smaller ensemble has ones. What this
    changes is a fraction of :math:`1 / D_{ii}` and nothing where an eigenvalue is one.
    """
    executor, parts, offsets = ensemble.executor, ensemble.parts, ensemble.offsets
    columns = weights
    if of_samples:
        sums = ordered_sum(executor, presence_sums, parts, offsets)
        columns = weights * executor.value(sums)
    require_for_consensus(ensemble, small_side_memory(ensemble))
    rng = consensus_stream(random_state)
    if (rows := rows_on_device(ensemble, columns, device)) is not None:
        halves = rows.halves(of_samples=of_samples)
    else:
        graph = offsets, columns, of_samples
        halves = ordered_sum(executor, halves_of_labels, parts, *graph)

    def fit(halves: Array, sample: Labels) -> tuple[Array, Array]:
        affinity = small_side_affinity(halves, columns)
        vectors = small_side_vectors(affinity, n_clusters, rng)
        if of_samples:
            vectors = unit_over_rows(vectors, affinity)
        points = embed_rows(bipartite_rows(sample, offsets, columns), vectors)
        return vectors, kmeans_centers(points, n_clusters, rng)

    def assign(labels: Labels, cut: tuple[Array, Array]) -> Labels:
        return assign_rows(bipartite_rows(labels, offsets, columns), *cut)

    cut = executor.call(fit, halves, draw_rows(ensemble, CENTER_ROWS, rng))
    if rows is None:
        labels = executor.map(assign, parts, cut)
    else:
        labels = ensemble.split(rows.assign(*cut))
    return number_clusters(executor, labels, n_clusters)


def micro_regions(
    ensemble: Ensemble, weights: Array, rng: np.random.Generator
) -> NDArray[np.int32]:
    """Group samples that the ensemble hardly tells apart, in regions from 0.

    The samples are embedded by the transfer cut of the bipartite consensus, in 50
    dimensions, and each joins the nearest of 4000 points that a short k-means has
    placed among drawn rows. No region is empty.
    """
    require_for_consensus(ensemble, small_side_memory(ensemble))
    parts, offsets = ensemble.parts, ensemble.offsets
    halves = ordered_sum(ensemble.executor, halves_of_labels, parts, offsets, weights)
    affinity = small_side_affinity(halves, weights)
    n_vectors = min(DIMENSIONS, ensemble.n_base_clusters)
    vectors = small_side_vectors(affinity, n_vectors, rng).astype(np.float32)
    sample = draw_rows(ensemble, REGIONS * ROWS_PER_REGION, rng)
    points = embed_rows(bipartite_rows(sample, offsets, weights), vectors)
    centers = refine_landmarks(points, min(REGIONS, len(points)), rng)[1]
    regions = [
        assign_rows(bipartite_rows(part, offsets, weights), vectors, centers)
        for part in parts
    ]
    return np.unique(np.concatenate(regions), return_inverse=True)[1].astype(np.int32)


def draw_rows(ensemble: Ensemble, n_rows: int, rng: np.random.Generator) -> Any:
    """Return the executor's handle of the labels of at most so many samples."""
    n_samples = ensemble.n_samples
    drawn = np.sort(rng.choice(n_samples, min(n_samples, n_rows), replace=False))
    return gather_rows(ensemble.executor, ensemble.parts, ensemble.bounds, drawn)


def small_side_memory(ensemble: Ensemble) -> int:
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


def presence_sums(parts: list[Labels], offsets: Offsets) -> Array:
    """Return the sum of the factors of presence over the samples of each cluster."""
    each = [membership(labels, offsets).T @ presence(labels) for labels in parts]
    total: Array = np.sum(each, axis=0)
    return total


def halves_of_labels(
    parts: list[Labels], offsets: Offsets, columns: Array, of_samples: bool = False
) -> Array:
    """Return the halves of `sum_shared_weights` of some blocks of labels."""

    def block(labels: Labels) -> tuple[Labels, Array]:
        rows = bipartite_rows(labels, offsets, columns)
        degrees = np.maximum(rows.weights.sum(axis=1), np.finfo(np.float64).tiny)
        factors = presence(labels) if of_samples else 1.0
        return np.where(labels < 0, labels, rows.index), factors / degrees

    return sum_shared_weights(map(block, parts), int(offsets[-1]))
