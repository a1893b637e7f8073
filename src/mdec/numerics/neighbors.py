"""Exact nearest neighbours in row blocks; no array grows with N squared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdec._support.arrays import namespace

Array = NDArray[np.floating]

# A square tile of this many rows of float32 distances fits a core's own cache.
TILE = 512


def squared_distances(X: Array) -> Array:
    r"""Return all squared Euclidean distances, for few samples.

    Notes
    -----
    :math:`D_{ij} = \|x_i\|^2 + \|x_j\|^2 - 2 x_i \cdot x_j`, clipped at zero, with a
    diagonal of exact zeros.

    Examples
    --------
    >>> squared_distances(np.array([[0.0, 0.0], [3.0, 4.0]]))
    array([[ 0., 25.],
           [25.,  0.]])
    """
    from mdec.numerics import loops

    # Centred, because a distance loses the digits by which the norms exceed it.
    X = X - X.mean(axis=0)
    distances = X @ X.T
    loops.products_to_distances(distances)
    return distances


def distance_factors(centred: Any) -> tuple[Any, Any, Any]:
    r"""Return two factors whose product is the matrix of squared distances.

    Parameters
    ----------
    centred : array of shape (n_samples, n_features)
        Rows about their mean, of NumPy or PyTorch.

    Returns
    -------
    left, right : array of shape (n_samples, n_features + 2)
        Rows :math:`(-2 x_i, \|x_i\|^2, 1)` and :math:`(x_j, 1, \|x_j\|^2)`.
    norms : array of shape (n_samples,)
        Squared norms.

    Examples
    --------
    >>> left, right, _ = distance_factors(np.array([[0.0, 0.0], [3.0, 4.0]]))
    >>> left @ right.T
    array([[ 0., 25.],
           [25.,  0.]])
    """
    xp = namespace(centred)
    norms = xp.einsum("ij,ij->i", centred, centred)
    column, ones = norms[:, None], xp.ones_like(norms)[:, None]
    left = xp.hstack([-2.0 * centred, column, ones])
    right = xp.hstack([centred, ones, column])
    return left, right, norms


@dataclass(frozen=True)
class NeighborPairs:
    """Pairs of near samples with their exact squared distances.

    Attributes
    ----------
    graph : csr_array of shape (n_samples, n_samples)
        Squared distances of the known pairs, both ways; zeros are stored.
    radius : ndarray of shape (n_samples,)
        A pair that is not in `graph` is at least as far apart as the larger of its
        two radii.
    """

    graph: sparse.csr_array
    radius: Array


class BlockedDistances:
    """Rounded squared distances of the rows of X, block by block.

    The rows are centred, and their norms appended as extra coordinates, so that one
    matrix product gives distances and not only products.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The rows.
    dtype : dtype
        Precision of the products.
    """

    def __init__(self, X: Array, dtype: type[np.floating] = np.float32) -> None:
        centred = (X - X.mean(axis=0, dtype=np.float64)).astype(dtype)
        self.X = np.ascontiguousarray(X)
        self.left, self.right, norms = distance_factors(centred)
        # What rounding may add to or take from a distance of row i.
        epsilon = 16.0 * np.finfo(dtype).eps
        self.rounding = epsilon * (norms + norms.max())

    def __len__(self) -> int:
        return len(self.X)

    def block(self, rows: slice | NDArray[np.integer], columns: slice) -> Array:
        """Return the distances between some rows and some columns."""
        return self.left[rows] @ self.right[columns].T

    def tiles(self) -> Iterator[tuple[int, int, Array]]:
        """Yield (first row, first column, distances), the diagonal tiles first.

        Only tiles on or above the diagonal are made. Near the diagonal comes first
        because rows that lie close together in memory are often alike, and early
        near neighbours spare later work.
        """
        starts = range(0, len(self), TILE)
        for offset in range(len(starts)):
            for row, column in zip(starts, starts[offset:], strict=False):
                rows, columns = slice(row, row + TILE), slice(column, column + TILE)
                yield row, column, self.block(rows, columns)


def nearest_pairs(distances: BlockedDistances, n_neighbors: int) -> NeighborPairs:
    """Find each row's nearest rows, and the pairs' exact distances.

    Blocks of rounded distances choose the candidates; what is returned is computed
    from differences, so it does not depend on the blocks.

    Parameters
    ----------
    distances : BlockedDistances
        The rows to search.
    n_neighbors : int
        Neighbours to find per row, at most n_samples - 1.

    Returns
    -------
    NeighborPairs
        At least `n_neighbors` entries in every row.
    """
    from mdec.numerics import loops

    n_samples = len(distances)
    shape = (n_samples, 2 * n_neighbors)
    dtype = distances.left.dtype
    values = np.empty(shape, dtype=dtype)
    index = np.empty(shape, dtype=np.int32)
    count = np.zeros(n_samples, dtype=np.int64)
    bound = np.full(n_samples, np.inf, dtype=dtype)
    for row, column, tile in distances.tiles():
        loops.scan_tile(tile, row, column, values, index, count, bound, n_neighbors)
    loops.finish_scan(values, index, count, bound, n_neighbors)
    rows = np.repeat(np.arange(n_samples), n_neighbors)
    graph = pair_graph(distances.X, rows, index[:, :n_neighbors].ravel())
    radius = bound.astype(np.float64) - distances.rounding
    return NeighborPairs(graph, np.maximum(radius, 0.0))


def pair_graph(
    X: Array, rows: NDArray[np.integer], columns: NDArray[np.integer]
) -> sparse.csr_array:
    """Return a symmetric graph of squared distances over the given pairs."""
    from mdec.numerics import loops

    n_samples = len(X)
    low = np.minimum(rows, columns).astype(np.int64)
    keys = np.sort(low * n_samples + np.maximum(rows, columns))
    keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])]
    low, high = np.divmod(keys, n_samples)
    values = loops.pair_distances(X, low, high)
    indptr, indices, data = loops.mirror_pairs(low, high, values, n_samples)
    return sparse.csr_array((data, indices, indptr), shape=(n_samples, n_samples))
