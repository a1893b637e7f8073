"""Exact nearest neighbours in row blocks; no array grows with N squared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.arrays import Array, namespace
from mdec.numerics.digits import NINE_DIGITS
from mdec.numerics.magnitude import TOO_WIDE, to_power

# A square tile of this many rows of float32 distances fits a core's own cache.
TILE = 512

# Rows beside which the others are put in order.
PIVOTS = 32

# Rows stay in their order if they are fewer than so many for each feature, so that
# copies of them cost more than is gained,
ROWS_PER_FEATURE = 16
# and if so many are nearest to the pivot of the one before.
IN_ORDER = 0.15

# Products add up at most so many terms before they are put together.
SUMMED = 1024

# The largest centred magnitude, as a power of two: its squares fit float32.
TOP = 40

# Rows this many times farther from the centre than the middle one, squared, do not
# move it.
FAR = 1e4


def squared_distances(X: Array) -> Array:
    r"""Return all squared Euclidean distances, for few samples.

    Notes
    -----
    :math:`D_{ij} = \|x_i\|^2 + \|x_j\|^2 - 2 x_i \cdot x_j` about the mean, with a
    diagonal of exact zeros. Where the norms exceed a distance so much that it would
    lose digits, it is computed from the differences. Rounded to nine digits.

    Examples
    --------
    >>> squared_distances(np.array([[0.0, 0.0], [3.0, 4.0]]))
    array([[ 0., 25.],
           [25.,  0.]])
    """
    # Centred, because a distance loses the digits by which the norms exceed it.
    return distances_about_mean(X - X.mean(axis=0), X.__getitem__)


def distances_about_mean(centred: Array, original: Callable[[Any], Array]) -> Array:
    """Return all squared Euclidean distances of rows whose mean is known.

    Parameters
    ----------
    centred : ndarray of shape (n_samples, n_features)
        Rows about their mean.
    original : callable
        Gives the rows before, by their indices; asked only for those with a distance
        that lost digits.

    Returns
    -------
    ndarray of shape (n_samples, n_samples)
        As `squared_distances` gives them.
    """
    from mdec.numerics.loops import dense

    distances = centred @ centred.T
    if dense.products_to_distances(distances, distances.diagonal().copy()):
        lost = distances < 0.0
        # Products may not be symmetric to the last bit, so both ends are noted.
        lost |= lost.T
        rows = np.flatnonzero(lost.any(axis=1)).astype(np.int32)
        apart = np.ascontiguousarray(original(rows))
        # A few rows at a time, because all pairs may have lost digits.
        height = max(1, TILE * TILE // (4 * rows.size))
        for start in range(0, rows.size, height):
            some = rows[start : start + height]
            first, second = np.nonzero(np.triu(lost[np.ix_(some, rows)], start))
            ends = (first + start).astype(np.int32), second.astype(np.int32)
            values = dense.pair_distances(apart, *ends)
            if values.min(initial=0.0) < 0.0:
                raise ValueError(TOO_WIDE)
            distances[some[first], rows[second]] = values
            distances[rows[second], some[first]] = values
    return distances


def distance_factors(centred: Any, norms: Any) -> tuple[Any, Any]:
    r"""Return two factors whose product is the matrix of squared distances.

    Parameters
    ----------
    centred : array of shape (..., n_samples, n_features)
        Rows about their mean, of NumPy or PyTorch.
    norms : array of shape (..., n_samples)
        Their squared norms.

    Returns
    -------
    left, right : array of shape (..., n_samples, n_features + 2)
        Rows :math:`(-2 x_i, \|x_i\|^2, 1)` and :math:`(x_j, 1, \|x_j\|^2)`.

    Examples
    --------
    >>> rows = np.array([[0.0, 0.0], [3.0, 4.0]])
    >>> left, right = distance_factors(rows, np.array([0.0, 25.0]))
    >>> left @ right.T
    array([[ 0., 25.],
           [25.,  0.]])
    """
    xp = namespace(centred)
    column, ones = norms[..., None], xp.ones_like(norms)[..., None]
    left = xp.concatenate([-2.0 * centred, column, ones], -1)
    right = xp.concatenate([centred, ones, column], -1)
    return left, right


def center_rows(X: Array) -> tuple[Array, Array, Array, NDArray[np.bool_]]:
    """Centre rows, in float64, and tell which of them are near the centre.

    Rows far from all others are left out of the mean: it would move away from the rest,
    whose distances would drown in their norms.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The rows.

    Returns
    -------
    center : ndarray of shape (n_features,)
        Mean of the near rows.
    centred : ndarray of shape (n_samples, n_features)
        All rows, less the centre.
    norms : ndarray of shape (n_samples,)
        Their squared norms.
    near : ndarray of shape (n_samples,)
        All rows, unless some are a hundred times farther than the middle one.

    Examples
    --------
    >>> center_rows(np.append(np.arange(201.0), 1e9)[:, None])[0]
    array([100.])
    """
    near = np.ones(len(X), dtype=bool)
    while True:
        center = (X if near.all() else X[near]).mean(axis=0, dtype=np.float64)
        centred = X - center
        norms = np.einsum("ij,ij->i", centred, centred)
        far = norms > FAR * np.median(norms[near])
        if not (far & near).any() or 2 * np.count_nonzero(near & ~far) < len(X):
            return center, centred, norms, near
        near &= ~far


def sum_of_products(left: Array, right: Array) -> Array:
    """Return the product of two matrices, adding up only so many terms at a time."""
    width = left.shape[1]
    step = width if width <= SUMMED + 2 else SUMMED
    total: Array = left[:, :step] @ right[:step]
    for start in range(step, width, step):
        part = slice(start, start + step)
        total += left[:, part] @ right[part]
    return total


def rounding_share(n_features: int, unit: float, summed: int = SUMMED) -> float:
    r"""Bound the error of a rounded squared distance as a share of both norms.

    Parameters
    ----------
    n_features : int
        Coordinates of a row.
    unit : float
        Largest relative error of one operation.
    summed : int
        Terms that are added up before they are put together.

    Returns
    -------
    float
        c with :math:`|v_{ij} - D_{ij}| \le c (\|x_i\|^2 + \|x_j\|^2)`.

    Notes
    -----
    A sum of L products, in any order, is off by at most :math:`L u / (1 - L u)` times
    the sum of their magnitudes, which here is at most twice the norms. Rounding the
    coordinates and norms before adds less than 8 u.
    """
    n_terms = min(n_features + 2, summed) + -(-n_features // summed)
    return (2.0 * n_terms + 8.0) * unit / (1.0 - n_terms * unit)


@dataclass(frozen=True)
class NeighborPairs:
    """Pairs of near samples with their exact squared distances.

    Attributes
    ----------
    low, high : ndarray of shape (n_pairs,)
        The two samples of each pair, which are sorted.
    squared : ndarray of shape (n_pairs,)
        Squared distances.
    radius : ndarray of shape (n_samples,)
        A pair that is not listed is at least as far apart as the larger of its two
        radii.
    """

    low: NDArray[np.int32]
    high: NDArray[np.int32]
    squared: Array
    radius: Array

    @cached_property
    def lists(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Where each sample's pairs start, in the order of the others, and which."""
        from mdec.numerics.loops import csr

        numbers = np.arange(self.low.size, dtype=np.int32)
        found = csr.mirror_pairs(self.low, self.high, numbers, self.radius.size)
        return found[0], found[2]

    def nearest(self, k: int, kind: Callable[[Array], Array] = np.asarray) -> Any:
        """Return the mean of each sample's k smallest distances, and the k-th."""
        from mdec.numerics.loops import selection

        starts, numbers = self.lists
        return selection.nearest_entries(starts, kind(self.squared)[numbers], k)

    def joined(
        self, chosen: Any, rows: Any, columns: Any, squared: Array, radius: Array
    ) -> NeighborPairs:
        """Return the chosen pairs and others."""
        from mdec.numerics.loops import csr

        rows = np.append(self.low[chosen], rows)
        columns = np.append(self.high[chosen], columns)
        low, high, places = csr.sort_pairs(rows, columns, radius.size)
        squared = np.append(self.squared[chosen], squared)[places]
        return NeighborPairs(low, high, squared, radius)


class BlockedDistances:
    r"""Rounded squared distances of the rows of X, block by block.

    The rows are centred and brought to one scale by a power of two, and their norms
    appended as extra coordinates, so that one matrix product gives distances and not
    only products.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The rows.
    dtype : dtype
        Precision of the products.

    Notes
    -----
    With `rounding_share` c, and since :math:`\|x_j\|^2 \le 2 D_{ij} + 2 \|x_i\|^2`, a
    rounded distance is within :math:`3 c \|x_i\|^2 + 2 c D_{ij}` of the true one. So
    the row alone tells what rounding can do to its distances, and one row far away does
    not blur those of the others.
    """

    # Rows and columns that are looked at together.
    tile = TILE

    def __init__(self, X: Array, dtype: type[np.floating] = np.float32) -> None:
        self.X, self.dtype = np.ascontiguousarray(X), np.dtype(dtype)
        _, centred, norms, _ = center_rows(X)
        if not np.isfinite(norms).all():
            raise ValueError("X holds values that are not finite or too large.")
        # The largest norm is no less than the largest magnitude, squared.
        factor = to_power(float(np.sqrt(norms.max())), TOP)
        centred *= factor
        norms *= factor * factor
        rounded = centred.astype(dtype)
        # Memory that is given back now need not be found for the factors.
        del centred
        self.left, self.right = distance_factors(rounded, norms.astype(dtype))
        limits = np.finfo(dtype)
        self._unit = factor * factor
        self._share = rounding_share(X.shape[1], 0.5 * float(limits.eps))
        self._slack = 3.0 * self._share * norms + X.shape[1] * float(limits.tiny)

    def __len__(self) -> int:
        return len(self.X)

    def block(self, rows: slice | NDArray[np.integer], columns: slice) -> Array:
        """Return the rounded distances between some rows and some columns.

        They are in units of their own.
        """
        return sum_of_products(self.left[rows], self.right[columns].T)

    def at_least(self, rows: slice | NDArray[np.integer], rounded: Array) -> Array:
        """Return what the distances of some rows are at least, given them rounded."""
        least = rounded.astype(np.float64) - self._slack[rows]
        least /= 1.0 + 2.0 * self._share
        return np.maximum(least, 0.0) * (1.0 - NINE_DIGITS) / self._unit

    def rounded_at_most(self, rows: NDArray[np.integer], limit: Array) -> Array:
        """Return what the distances of some rows are rounded to at most, up to a limit.

        Parameters
        ----------
        rows : ndarray of int
            The rows.
        limit : ndarray
            What their distances are at most.

        Returns
        -------
        ndarray
            In the units of `block`.
        """
        limit = limit * self._unit * (1.0 + NINE_DIGITS)
        return limit * (1.0 + 2.0 * self._share) + self._slack[rows]

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """The rows in an order in which near ones often follow one another."""
        if len(self) < ROWS_PER_FEATURE * self.X.shape[1]:
            return np.arange(len(self))
        pivots = slice(None, None, max(1, len(self) // PIVOTS))
        nearest = self.block(slice(None), pivots).argmin(axis=1)
        if np.mean(nearest[1:] == nearest[:-1]) > IN_ORDER:
            return np.arange(len(self))
        return np.argsort(nearest, kind="stable")

    def tiles(self) -> Iterator[tuple[int, int, Array]]:
        """Yield (first place, second place, distances), the diagonal tiles first.

        The places are those of the first row and column in `order`. Only tiles on or
        above the diagonal are made. Near the diagonal comes first because early near
        neighbours spare later work.
        """
        side, between = self.tile, self.between_places()
        starts = range(0, len(self), side)
        for offset in range(len(starts)):
            for row, column in zip(starts, starts[offset:], strict=False):
                rows, columns = slice(row, row + side), slice(column, column + side)
                yield row, column, between(rows, columns)

    def between_places(self) -> Callable[[slice, slice], Array]:
        """Return what gives the rounded distances between places in `order`."""
        left, right = self.left, self.right
        if (np.diff(self.order) < 0).any():
            left, right = left[self.order], right[self.order]
        return lambda rows, columns: sum_of_products(left[rows], right[columns].T)

    def squared(self, low: NDArray[np.integer], high: NDArray[np.integer]) -> Array:
        """Return the squared distances of pairs sorted by their first rows.

        Computed by differences, and rounded to nine digits, so that equal ones are
        equal.
        """
        values = self._apart(low, high)
        if values.min(initial=0.0) < 0.0:
            raise ValueError(TOO_WIDE)
        return values

    def _apart(self, low: NDArray[np.integer], high: NDArray[np.integer]) -> Array:
        from mdec.numerics.loops import dense

        found: Array = dense.pair_distances(self.X, low, high)
        return found


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
    from mdec.numerics.loops import csr, selection

    n_samples = len(distances)
    shape = (n_samples, 2 * n_neighbors)
    dtype = distances.dtype
    values = np.empty(shape, dtype=dtype)
    index = np.empty(shape, dtype=np.int32)
    count = np.zeros(n_samples, dtype=np.int64)
    bound = np.full(n_samples, np.inf, dtype=dtype)
    nearest = values, index, count, bound, n_neighbors
    for row, column, tile in distances.tiles():
        columns = slice(column, column + tile.shape[1])
        limits = bound[columns].copy()
        if row == column:
            np.fill_diagonal(tile, np.inf)
            if len(tile) > n_neighbors:
                least = np.partition(tile, n_neighbors - 1, axis=1)
                bound[columns] = np.nextafter(least[:, n_neighbors - 1], limits)
            limits[:] = -np.inf
        selection.scan_tile(tile, row, column, *nearest, limits)
    if count.min() < n_neighbors:
        raise ValueError("X holds values that are not finite or too large.")
    selection.keep_smallest(*nearest)
    order = distances.order.astype(np.int32)
    rows = np.repeat(order, n_neighbors)
    found = order[index[:, :n_neighbors].ravel()]
    low, high, _ = csr.sort_pairs(rows, found, n_samples)
    radius = np.empty_like(bound)
    radius[order] = bound
    radius = distances.at_least(slice(None), radius)
    return NeighborPairs(low, high, distances.squared(low, high), radius)
