"""Sparse similarity graphs: the k largest similarities of each sample, both ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import squareform

from mdec._support.arrays import Array
from mdec.base import kernels
from mdec.numerics.magnitude import at_safe_scale
from mdec.numerics.neighbors import (
    BlockedDistances,
    NeighborPairs,
    nearest_pairs,
    squared_distances,
)
from mdec.numerics.sparse_rows import SparseDistances, at_safe_sparse_scale

# Up to this many samples all pairs are looked at in float64; above, candidates are
# searched in float32 blocks.
DENSE_SAMPLES = 1000

# Entries of a matrix that fit a core's own cache.
CACHED_ENTRIES = 2**16

# Of a search in float32 at most this share of the rows may be left open; otherwise
# float64 is faster than looking at all pairs of each.
MAX_OPEN_SHARE = 0.05

# From the first and second ends of pairs, and their squared distances, to numbers.
OfPairs = Callable[[Any, Any, Array], Array]


def similarity_graph(
    X: Array | sparse.csr_array,
    kernel: str,
    n_neighbors: int,
    mu: float,
    means: Array | None = None,
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
    means : ndarray of shape (n_samples,), optional
        Where the mean neighbour distances are written, if differences in float64 give
        them, as they do for new rows.

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
        # Differences of short whole numbers are exact in float32.
        least = np.float64 if kernel in kernels.ANGULAR else np.float32
        X = X.astype(np.result_type(X.dtype, least))
    rows = kernels.coordinates(X, kernel)
    if sparse.issparse(rows):
        rows = at_safe_sparse_scale(rows)
    else:
        rows = at_safe_scale(rows)
        if len(rows) <= DENSE_SAMPLES:
            distances = squared_distances(rows.astype(np.float64, copy=False))
            return graph_from_distances(distances, kernel, n_neighbors, mu)
    noted = means if rows.dtype == np.float64 else None
    return _search_graph(rows, kernel, n_neighbors, mu, noted)


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
    rho: Any = None
    if kernel not in kernels.ANGULAR:
        means = _mean_of_nearest(distances, kernel, n_neighbors)
        rho = kernels.mean_neighbor_distance(means)
    if kernel == "scaled_gaussian":
        order = _gaussian_similarity(distances, rho, mu)
        rows, columns = largest_pairs(order, n_neighbors)
        return graph_of_pairs(rows, columns, order[rows, columns], len(order))
    rows, columns = largest_pairs(-distances, n_neighbors)
    similarity = _similarity(kernel, rho, mu, rows, columns, distances[rows, columns])
    return graph_of_pairs(rows, columns, similarity, len(distances))


def _gaussian_similarity(distances: Array, rho: Array, mu: float) -> Array:
    """Return the scaled Gaussian similarity of all pairs.

    Half of them are enough where all fit the cache, and rows at a time elsewhere.
    """
    similarity = partial(kernels.scaled_similarity, "scaled_gaussian")
    if distances.size <= CACHED_ENTRIES:
        halves = partial(squareform, checks=False)
        ends = halves(rho[:, None] + rho)
        found: Array = halves(similarity(halves(distances), ends, 0.0, mu))
        return found
    found = np.empty_like(distances)
    for part in _row_blocks(len(found)):
        found[part] = similarity(distances[part], rho[part, None], rho, mu)
    return found


def largest_pairs(order: Array, k: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the pairs among the k largest of either end, both ways and sorted.

    Of equal ones the first are. The diagonal of the matrix is overwritten.
    """
    np.fill_diagonal(order, -np.inf)
    kept = np.empty(order.shape, dtype=bool)
    for part in _row_blocks(len(order)):
        kept[part] = _largest_of_rows(order[part], k)
    kept |= kept.T
    rows, columns = np.divmod(np.flatnonzero(kept).astype(np.int32), len(order))
    return rows, columns


def graph_of_pairs(
    rows: NDArray[np.integer], columns: Any, data: Array, n_samples: int
) -> sparse.csr_array:
    """Return the graph of sorted pairs, both ways, and their similarities."""
    indptr = np.searchsorted(rows, np.arange(n_samples + 1))
    return _graph(indptr, columns, data)


def _largest_of_rows(values: Array, k: int) -> NDArray[np.bool_]:
    """Mark the k largest values of each row, of equal ones the first."""
    least = np.partition(values, -k, axis=1)[:, -k, None]
    kept = values >= least
    if np.count_nonzero(kept) > k * len(kept):
        more = np.flatnonzero(np.count_nonzero(kept, axis=1) > k)
        above = values[more] > least[more]
        equal = kept[more] & ~above
        room = k - np.count_nonzero(above, axis=1, keepdims=True)
        kept[more] = above | (equal & (np.cumsum(equal, axis=1) <= room))
    return kept


def _mean_of_nearest(distances: Array, kernel: str, k: int) -> Array:
    """Return the mean of each row's k smallest distances, as the kernel takes them."""
    means = np.empty(len(distances))
    for part in _row_blocks(len(distances)):
        others = distances[part].copy()
        np.fill_diagonal(others[:, part], np.inf)
        others.partition(k - 1, axis=1)
        nearest = kernels.as_kernel_takes_them(np.sort(others[:, :k], axis=1), kernel)
        # Added in one order, the smallest first.
        means[part] = np.cumsum(nearest, axis=1)[:, -1] / k
    return means


def _row_blocks(n_samples: int) -> Iterator[slice]:
    """Yield rows of a square matrix that are in the cache together."""
    height = max(1, CACHED_ENTRIES // n_samples)
    for start in range(0, n_samples, height):
        yield slice(start, min(start + height, n_samples))


def _search_graph(
    X: Any, kernel: str, n_neighbors: int, mu: float, noted: Array | None
) -> sparse.csr_array:
    """Find the k largest similarities of each row without looking at all pairs.

    Those of the scaled Gaussian are not always of the nearest samples, because the
    scale depends on both ends. So a few more neighbours than k are searched, and a
    bound on what the rest could reach tells which rows are settled; the others are
    searched once more, up to the distance where the bound falls below their k-th
    similarity. With other kernels only ties are left to search: the first of equals is
    kept.
    """
    from mdec.numerics.loops import csr, selection

    gaussian = kernel == "scaled_gaussian"
    n_candidates = 2 * n_neighbors + 16 if gaussian else n_neighbors + 8
    n_candidates = min(n_candidates, X.shape[0] - 1)
    distances, pairs, means, kth = _candidates(X, n_neighbors, n_candidates)
    if kernel == "scaled_exponential":
        means, _ = pairs.nearest(n_neighbors, np.sqrt)
    if noted is not None:
        noted[:] = means
    rho = means if kernel in kernels.ANGULAR else kernels.mean_neighbor_distance(means)

    similarity = partial(_similarity, kernel, rho, mu)
    order = similarity if gaussian else _nearness
    values = order(pairs.low, pairs.high, pairs.squared)
    marked, worst = selection.keep_largest(*pairs.lists, values, n_neighbors)
    if gaussian:
        worst *= 1.0 - 1e-12
        limit = _search_limit(pairs.radius, rho, worst, mu)
    else:
        limit = np.where(kth < pairs.radius, -1.0, kth)
    if np.any(limit >= 0.0):
        more = _search_within(distances, limit, worst, n_neighbors, order)
        pairs = pairs.joined(marked, *more, pairs.radius)
        values = order(pairs.low, pairs.high, pairs.squared)
        marked, _ = selection.keep_largest(*pairs.lists, values, n_neighbors)
    ends = pairs.low[marked], pairs.high[marked]
    kept = values[marked] if gaussian else similarity(*ends, pairs.squared[marked])
    return _graph(*csr.mirror_pairs(*ends, kept, X.shape[0]))


def _graph(indptr: Any, indices: Any, data: Any) -> sparse.csr_array:
    shape = (indptr.size - 1, indptr.size - 1)
    # One kind of whole numbers, or SciPy takes the longer one for both.
    arrays = data, indices, indptr.astype(indices.dtype, copy=False)
    graph = sparse.csr_array(arrays, shape=shape)
    # Rows with nothing in common are no neighbours, as in a search of sparse rows.
    if not data.all():
        graph.eliminate_zeros()
    return graph


def _similarity(
    kernel: str, rho: Any, mu: float, rows: Any, columns: Any, squared: Array
) -> Array:
    """Return the similarity of pairs, given their ends and squared distances."""
    found: Array
    if kernel in kernels.ANGULAR:
        found = kernels.angular_similarity(squared)
    else:
        distance = kernels.as_kernel_takes_them(squared, kernel)
        ends = rho[rows], rho[columns]
        found = kernels.scaled_similarity(kernel, distance, *ends, mu)
    return found


def _nearness(_rows: Any, _columns: Any, squared: Array) -> Array:
    """Return what is the larger, the nearer the ends of pairs are."""
    return -squared


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
    means, kth = pairs.nearest(n_neighbors)
    n_open = np.count_nonzero(kth > pairs.radius)
    if distances.dtype == np.float32 and n_open > MAX_OPEN_SHARE * len(kth):
        distances = BlockedDistances(X, np.float64)
        pairs = nearest_pairs(distances, n_candidates)
        means, kth = pairs.nearest(n_neighbors)
    proven = kth <= pairs.radius
    if not proven.all():
        _, last = pairs.nearest(n_candidates)
        limit = np.where(proven, -1.0, last)
        more = _search_within(distances, limit, -last, n_candidates, _nearness)
        pairs = pairs.joined(slice(None), *more, pairs.radius)
        _, last = pairs.nearest(n_candidates)
        pairs = replace(pairs, radius=np.where(proven, pairs.radius, last))
        means, kth = pairs.nearest(n_neighbors)
    return distances, pairs, means, kth


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

    def reaches(rows: NDArray[np.integer], distance: Array) -> NDArray[np.bool_]:
        far_rho = np.clip(distance / ratio, floor, greatest)
        best = kernels.greatest_unseen_similarity(distance, rho[rows], far_rho, mu)
        return best >= worst[rows]

    rows = np.flatnonzero(reaches(np.arange(rho.size), radius))
    # Of samples with the same radius or a smaller one, the largest scale reaches most.
    order = np.lexsort((-rho, radius))
    greater = np.diff(np.maximum.accumulate(rho[order]), prepend=0.0) > 0.0
    others = order[greater]
    nearest = np.maximum(radius[rows, None], radius[others])
    best = kernels.greatest_unseen_similarity(nearest, rho[rows, None], rho[others], mu)
    rows = rows[best.max(axis=1) >= worst[rows]]
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
    worst: Array,
    n_neighbors: int,
    order: OfPairs,
) -> tuple[NDArray[np.integer], NDArray[np.integer], Array]:
    """Return the best pairs of the rows that have a limit, among all pairs within it.

    `order` tells what to keep the largest of, given the ends of pairs and their squared
    distances; it falls with these, and pairs that are below the `worst` of a row are
    left out. Returned are rows, columns and squared distances.
    """
    from mdec.numerics.loops import selection

    rows = np.flatnonzero(limit >= 0.0).astype(np.int32)
    height = max(1, 2**21 // len(distances))
    found = []
    for start in range(0, rows.size, height):
        block = rows[start : start + height]
        rounded = distances.block(block, slice(None))
        reach = distances.rounded_at_most(block, limit[block])
        reach = np.nextafter(reach.astype(rounded.dtype), np.inf, dtype=rounded.dtype)
        places = np.flatnonzero(rounded <= reach[:, None])
        first, second = np.divmod(places, len(distances))
        first, second = block[first], second.astype(np.int32)
        least = distances.at_least(first, rounded.ravel()[places])
        near = (order(first, second, least) >= worst[first]) & (first != second)
        first, second = first[near], second[near]
        squared = distances.squared(first, second)
        starts = np.searchsorted(first, np.append(block, len(distances)))
        entries, values = (
            np.arange(first.size, dtype=np.int32),
            order(first, second, squared),
        )
        best, _ = selection.keep_largest(starts, entries, values, n_neighbors)
        found.append((first[best], second[best], squared[best]))
    firsts, seconds, lengths = zip(*found, strict=True)
    return np.concatenate(firsts), np.concatenate(seconds), np.concatenate(lengths)
