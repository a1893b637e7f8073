"""Sparse similarity graphs: the k largest similarities of each sample, both ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdec._support.arrays import Array
from mdec.base import kernels
from mdec.numerics.magnitude import at_safe_scale
from mdec.numerics.neighbors import (
    BlockedDistances,
    NeighborPairs,
    nearest_pairs,
    squared_distances,
)
from mdec.numerics.sparse_rows import (
    SparseDistances,
    at_safe_sparse_scale,
    row_numbers,
    with_data,
)

# Up to this many samples all pairs are looked at in float64; above, candidates are
# searched in float32 blocks.
DENSE_SAMPLES = 1000

# Of a search in float32 at most this share of the rows may be left open; otherwise
# float64 is faster than looking at all pairs of each.
MAX_OPEN_SHARE = 0.05


def similarity_graph(
    X: Array | sparse.csr_array, kernel: str, n_neighbors: int, mu: float
) -> sparse.csr_array:
    """Return the similarity graph of one member, Eqs. 8 to 10.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        The samples in the member's subspace.
    kernel : str
        One of `mdec.base.kernels.KERNELS`.
    n_neighbors : int
        Similarities kept per sample, fewer than the samples.
    mu : float
        Width of the scaled kernels; the others have none.

    Returns
    -------
    csr_array of shape (n_samples, n_samples)
        Symmetric, non-negative, no self-loops.

    Notes
    -----
    An edge stays if either end keeps it; of equal similarities the first samples are
    kept. The graph does not depend on the scale of X, up to one factor for all edges:
    for the scaled Gaussian this is the inverse square of the scale, and of magnitudes
    beyond 2 ** 400 or below 2 ** -400 that of the scale to which they are brought.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [5.0, 5.0], [6.0, 5.0]])
    >>> W = similarity_graph(X, "scaled_gaussian", n_neighbors=2, mu=0.5)
    >>> round(float(W[0, 1]), 6), round(float(W[3, 4]), 6)
    (0.240504, 0.057079)
    """
    if not np.issubdtype(X.dtype, np.floating):
        X = X.astype(np.float64)
    rows = kernels.coordinates(X, kernel)
    if sparse.issparse(rows):
        rows = at_safe_sparse_scale(rows)
    else:
        rows = at_safe_scale(rows)
        if len(rows) <= DENSE_SAMPLES:
            distances = squared_distances(rows.astype(np.float64, copy=False))
            return graph_from_distances(distances, kernel, n_neighbors, mu)
    search = _gaussian_edges if kernel == "scaled_gaussian" else _nearest_edges
    edges = search(rows, kernel, n_neighbors, mu)
    both: sparse.csr_array = edges.maximum(edges.T.tocsr())
    return both


def graph_from_distances(
    distances: Array, kernel: str, n_neighbors: int, mu: float
) -> sparse.csr_array:
    """Return the similarity graph of samples whose squared distances are known.

    Parameters
    ----------
    distances : ndarray of shape (n_samples, n_samples)
        Squared Euclidean distances; the diagonal is not read.
    kernel : str
        One of `mdec.base.kernels.KERNELS`; the angular ones expect distances of rows of
        unit length.
    n_neighbors : int
        Similarities kept per sample.
    mu : float
        Width of the scaled kernels.

    Returns
    -------
    csr_array of shape (n_samples, n_samples)
        Symmetric, non-negative, no self-loops.
    """
    from mdec.numerics.loops import dense

    n_samples = len(distances)
    scaled = kernels.as_kernel_takes_them(distances, kernel)
    if kernel in kernels.ANGULAR:
        near, _, _ = dense.upper_triangle(scaled, np.empty(n_samples))
        similarity = kernels.angular_similarity(near)
    else:
        rho = kernels.mean_neighbor_distance(dense.mean_of_nearest(scaled, n_neighbors))
        near, rho_i, rho_j = dense.upper_triangle(scaled, rho)
        similarity = kernels.scaled_similarity(kernel, near, rho_i, rho_j, mu)
    order = similarity if kernel == "scaled_gaussian" else -near
    indptr, indices, data = dense.largest_both_ways(
        order, similarity, n_samples, n_neighbors
    )
    graph = sparse.csr_array((data, indices, indptr), shape=distances.shape)
    # Rows with nothing in common are no neighbours, as in a search of sparse rows.
    if not data.all():
        graph.eliminate_zeros()
    return graph


def _nearest_edges(
    X: Any, kernel: str, n_neighbors: int, mu: float
) -> sparse.csr_array:
    """Find the k nearest of each row without looking at all pairs.

    Rows whose k-th neighbour is no nearer than what was searched, because of ties, are
    searched once more, up to that neighbour: the first of equals is kept.
    """
    n_candidates = min(n_neighbors + 8, X.shape[0] - 1)
    distances, pairs, _, farthest = _candidates(X, n_neighbors, n_candidates)
    graph = pairs.graph
    limit = np.where(farthest < pairs.radius, -1.0, farthest)
    if np.any(limit >= 0.0):
        graph = _with_nearest(graph, distances, limit, n_neighbors)
    graph = with_data(graph, kernels.as_kernel_takes_them(graph.data, kernel))
    nearest = _keep_largest(graph, -graph.data, n_neighbors)
    if kernel in kernels.ANGULAR:
        return with_data(nearest, kernels.angular_similarity(nearest.data))
    rho = kernels.mean_neighbor_distance(_nearest_entries(graph, n_neighbors)[0])
    return _similarities(nearest, kernel, rho, mu)


def _gaussian_edges(
    X: Any, kernel: str, n_neighbors: int, mu: float
) -> sparse.csr_array:
    """Find the k largest scaled Gaussian similarities without looking at all pairs.

    The largest similarities are not always the nearest samples, because the scale
    depends on both ends. So a few more neighbours than k are searched, and a bound on
    what the rest could reach tells which rows are settled; the others are searched
    once more, up to the distance where the bound falls below their k-th similarity.
    """
    n_candidates = min(2 * n_neighbors + 16, X.shape[0] - 1)
    distances, pairs, means, _ = _candidates(X, n_neighbors, n_candidates)
    rho = kernels.mean_neighbor_distance(means)

    def similarities(graph: sparse.csr_array) -> sparse.csr_array:
        return _similarities(graph, kernel, rho, mu)

    graph = similarities(pairs.graph)
    graph = _keep_largest(graph, graph.data, n_neighbors)
    worst = np.minimum.reduceat(graph.data, graph.indptr[:-1])
    limit = _search_limit(pairs.radius, rho, worst, mu)
    if np.any(limit >= 0.0):
        found = _search_within(
            distances, limit, n_neighbors, lambda near: similarities(near).data
        )
        graph = graph.maximum(similarities(distances.pair_graph(*found)))
        graph = _keep_largest(graph, graph.data, n_neighbors)
    return graph


def _candidates(
    X: Any, n_neighbors: int, n_candidates: int
) -> tuple[BlockedDistances, NeighborPairs, Array, Array]:
    """Search near pairs, until the k smallest distances of each row are proven.

    Returns with them the mean of the k distances, and the k-th.

    They are proven if the k-th is no more than what a pair that was not found is at
    least. The search is in float32, or in float64 where that leaves many rows open, as
    with tight groups far from the centre; the few that are open after it are searched
    among all pairs, up to the last of their candidates. Sparse rows are searched in
    float64 at once, which costs them nothing.
    """
    distances = SparseDistances(X) if sparse.issparse(X) else BlockedDistances(X)
    pairs = nearest_pairs(distances, n_candidates)
    means, kth = _nearest_entries(pairs.graph, n_neighbors)
    n_open = np.count_nonzero(kth > pairs.radius)
    if distances.dtype == np.float32 and n_open > MAX_OPEN_SHARE * len(kth):
        distances = BlockedDistances(X, np.float64)
        pairs = nearest_pairs(distances, n_candidates)
        means, kth = _nearest_entries(pairs.graph, n_neighbors)
    proven = kth <= pairs.radius
    if proven.all():
        return distances, pairs, means, kth
    last = _nearest_entries(pairs.graph, n_candidates)[1]
    limit = np.where(proven, -1.0, last)
    graph = _with_nearest(pairs.graph, distances, limit, n_candidates)
    last = _nearest_entries(graph, n_candidates)[1]
    pairs = NeighborPairs(graph, np.where(proven, pairs.radius, last))
    return distances, pairs, *_nearest_entries(graph, n_neighbors)


def _nearest_entries(graph: sparse.csr_array, k: int) -> tuple[Array, Array]:
    from mdec.numerics.loops import selection

    return selection.nearest_entries(graph.indptr, graph.data, k)


def _with_nearest(
    graph: sparse.csr_array, distances: BlockedDistances, limit: Array, count: int
) -> sparse.csr_array:
    """Add the nearest pairs of the rows that have a limit, from all pairs within it."""
    more = _search_within(distances, limit, count, lambda near: -near.data)
    rows = np.concatenate([row_numbers(graph), more[0]])
    return distances.pair_graph(rows, np.concatenate([graph.indices, more[1]]))


def _search_limit(radius: Array, rho: Array, worst: Array, mu: float) -> Array:
    """Return the distance beyond which no unseen sample can enter a row's k best.

    A negative one stands for a row that needs no further search. An unseen pair is no
    nearer than either radius, and no neighbour distance is more than its radius over
    the least ratio of the two, so the distance of a pair bounds its scale. A tie counts
    as entering: the first of equals is kept.
    """
    floor, greatest = float(rho.min()), float(rho.max())
    above = rho > floor
    ratio = float(np.min(radius[above] / rho[above], initial=np.inf))
    limit = np.full_like(rho, -1.0)
    worst = worst * (1.0 - 1e-12)

    def reaches(rows: NDArray[np.integer], distance: Array) -> NDArray[np.bool_]:
        far_rho = np.clip(distance / ratio, floor, greatest)
        best = kernels.greatest_unseen_similarity(distance, rho[rows], far_rho, mu)
        return best >= worst[rows]

    rows = np.flatnonzero(reaches(np.arange(rho.size), radius))
    low, high = radius[rows], np.maximum(radius[rows], rho[rows])
    while np.any(growing := reaches(rows, high)):
        low = np.where(growing, high, low)
        high = np.where(growing, 2.0 * high, high)
    for _ in range(10):
        middle = 0.5 * (low + high)
        inside = reaches(rows, middle)
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    limit[rows] = high
    return limit


def _search_within(
    distances: BlockedDistances,
    limit: Array,
    n_neighbors: int,
    order: Callable[[sparse.csr_array], Array],
) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
    """Return the best pairs of the rows that have a limit, among all pairs within it.

    `order` tells what to keep the largest of, given a graph of squared distances.
    """
    n_samples = len(distances)
    rows = np.flatnonzero(limit >= 0.0)
    height = max(1, 2**21 // n_samples)
    found = []
    for start in range(0, rows.size, height):
        block = rows[start : start + height]
        reach = distances.rounded_at_most(block, limit[block])
        within = distances.block(block, slice(None)) <= reach[:, None]
        near, columns = np.divmod(np.flatnonzero(within), n_samples)
        others = columns != block[near]
        graph = distances.pair_graph(block[near[others]], columns[others])
        best = _keep_largest(graph, order(graph), n_neighbors)
        found.append((row_numbers(best), best.indices))
    first, second = zip(*found, strict=True)
    return np.concatenate(first), np.concatenate(second)


def _similarities(
    graph: sparse.csr_array, kernel: str, rho: Array, mu: float
) -> sparse.csr_array:
    ends = rho[row_numbers(graph)], rho[graph.indices]
    return with_data(graph, kernels.scaled_similarity(kernel, graph.data, *ends, mu))


def _keep_largest(
    graph: sparse.csr_array, order: Array, n_neighbors: int
) -> sparse.csr_array:
    """Keep the entries of each row that come last in `order`; the first of equals."""
    from mdec.numerics.loops import selection

    largest = selection.keep_largest(graph.indptr, order, n_neighbors)
    counts = np.concatenate([[0], np.cumsum(largest)])
    return sparse.csr_array(
        (graph.data[largest], graph.indices[largest], counts[graph.indptr]),
        shape=graph.shape,
    )
