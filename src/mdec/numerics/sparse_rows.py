"""Sparse rows: their products, exact distances and nearest neighbours.

Rows are in CSR, without duplicate entries, in float64. Nothing is made that has the
size of the dense rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdec._support.arrays import Array
from mdec.numerics.digits import nine_digits
from mdec.numerics.magnitude import at_safe_scale, has_safe_scale
from mdec.numerics.nearest import NearestRows
from mdec.numerics.neighbors import FAR, BlockedDistances, rounding_share

# Rows and columns of a tile of distances: one row of it fits a core's own cache.
TILE = 1024

_UNIT = 0.5 * float(np.finfo(np.float64).eps)


def _arrays(X: sparse.csr_array) -> tuple[NDArray[np.int64], NDArray[np.int32], Array]:
    """Return the arrays of rows in the types that the loops are compiled for."""
    indptr = X.indptr.astype(np.int64, copy=False)
    return indptr, X.indices.astype(np.int32, copy=False), X.data


def row_numbers(X: sparse.csr_array) -> NDArray[np.int64]:
    """Return the row of each stored entry."""
    return np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))


def with_data(X: sparse.csr_array, data: Array) -> sparse.csr_array:
    """Return rows with other numbers in the same places."""
    return sparse.csr_array((data, X.indices, X.indptr), shape=X.shape)


def squared_norms(X: Any) -> Array:
    """Return the squared length of each row, sparse or not.

    Examples
    --------
    >>> squared_norms(sparse.csr_array([[3.0, 4.0], [0.0, 0.0]]))
    array([25.,  0.])
    """
    norms: Any
    if sparse.issparse(X):
        norms = np.bincount(row_numbers(X), X.data * X.data, minlength=X.shape[0])
    else:
        norms = np.einsum("ij,ij->i", X, X)
    return norms


def by_feature(X: Any) -> Any:
    """Return rows transposed, as `products` takes them."""
    return X.T.tocsr() if sparse.issparse(X) else np.ascontiguousarray(X.T)


def products(X: Any, others: Any) -> Array:
    """Return the products of rows with others, which come from `by_feature`.

    Examples
    --------
    >>> rows = sparse.csr_array([[1.0, 0.0], [2.0, 3.0]])
    >>> products(rows, by_feature(rows))
    array([[ 1.,  2.],
           [ 2., 13.]])
    """
    from mdec.numerics.loops import csr

    if not sparse.issparse(X):
        found: Array = X @ others
        return found
    out = np.empty((X.shape[0], others.shape[1]))
    # Indices without a sign need no test for those below zero.
    rows, columns = (
        (indptr.view(np.uint64), indices.view(np.uint32), data)
        for indptr, indices, data in (_arrays(X), _arrays(others))
    )
    csr.csr_products(*rows, *columns, out)
    return out


def exact_distances(
    X: sparse.csr_array,
    others: sparse.csr_array,
    rows: NDArray[np.integer],
    columns: NDArray[np.integer],
) -> Array:
    """Return the squared distance of each listed pair, computed by differences.

    Parameters
    ----------
    X : csr_array of shape (n_rows, n_features)
        The first rows of the pairs.
    others : csr_array of shape (n_others, n_features)
        The second ones.
    rows : ndarray of int
        Rows of X, equal ones together.
    columns : ndarray of int
        Rows of the others.

    Returns
    -------
    ndarray
        -1 where float64 does not hold the distance.

    Examples
    --------
    >>> X = sparse.csr_array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    >>> exact_distances(X, X, np.array([0, 0]), np.array([0, 1]))
    array([0., 5.])
    """
    from mdec.numerics.loops import csr

    out = np.empty(rows.size)
    scratch = np.zeros(X.shape[1]), np.full(X.shape[1], -1)
    pairs = rows.astype(np.int64, copy=False), columns.astype(np.int64, copy=False)
    csr.csr_distances(*_arrays(X), *_arrays(others), *pairs, *scratch, out)
    return out


def sparse_center(X: sparse.csr_array) -> Array:
    """Return the mean of the columns that most rows fill, and zero for the others.

    Sparse columns are near zero anyway; a filled one may be far away, and distances
    would drown in the norms. Rows far from all others are left out of the mean.

    Examples
    --------
    >>> sparse_center(sparse.csr_array([[5.0, 0.0], [7.0, 0.0], [6.0, 1.0]]))
    array([6., 0.])
    """
    norms = squared_norms(X)
    near = norms <= FAR * np.median(norms)
    rows = X if near.all() else X[np.flatnonzero(near)]
    n_rows, n_columns = rows.shape
    filled = np.bincount(rows.indices, minlength=n_columns) > 0.5 * n_rows
    sums = np.bincount(rows.indices, rows.data, minlength=n_columns)
    center: Array = np.where(filled, sums / n_rows, 0.0)
    return center


def less(X: Any, center: Array) -> Any:
    """Return rows less a center; from sparse ones its few numbers are taken."""
    if not sparse.issparse(X):
        return X - center
    if not center.any():
        return X
    # The same row for all; int32 as rows have, or the loops would copy what they take.
    shift = sparse.csr_array(center[None])[np.zeros(X.shape[0], dtype=np.int32)]
    return X - shift


def shared_values(X: Any) -> Array:
    """Return what all rows have in common, which makes no difference between them.

    Column by column, zero where rows differ.

    Examples
    --------
    >>> shared_values(np.array([[5.0, 1.0], [5.0, 2.0]]))
    array([5., 0.])
    """
    low, high = X.min(axis=0), X.max(axis=0)
    if sparse.issparse(X):
        low, high = low.toarray(), high.toarray()
    return np.where(low == high, low, 0.0).ravel()


def unit_sparse_rows(X: sparse.csr_array) -> tuple[sparse.csr_array, NDArray[np.bool_]]:
    """Scale rows of any magnitude to length one, and tell which have no direction.

    Examples
    --------
    >>> unit, lost = unit_sparse_rows(sparse.csr_array([[3e200, 4e200], [0.0, 0.0]]))
    >>> unit.toarray(), lost
    (array([[0.6, 0.8],
           [0. , 0. ]]), array([False,  True]))
    """
    rows, largest = row_numbers(X), abs(X).max(axis=1).toarray().ravel()
    scaled = np.ldexp(X.data, -np.frexp(largest)[1][rows])
    norms = np.sqrt(np.bincount(rows, scaled * scaled, minlength=X.shape[0]))
    return with_data(X, scaled / norms[rows]), norms == 0.0


def at_safe_sparse_scale(X: sparse.csr_array) -> sparse.csr_array:
    """Return rows at a scale whose squares fit float64, as `at_safe_scale` does."""
    if X.nnz and not has_safe_scale(X.data):
        X = less(X, shared_values(X))
    return with_data(X, at_safe_scale(X.data))


def group_means(X: Any, labels: NDArray[np.integer], points: Any) -> Any:
    """Return the mean of the rows of each group; a group without rows keeps its point.

    Examples
    --------
    >>> X = sparse.csr_array([[1.0, 0.0], [3.0, 0.0]])
    >>> group_means(X, np.array([1, 1]), X).toarray()
    array([[1., 0.],
           [2., 0.]])
    """
    counts = np.bincount(labels, minlength=points.shape[0])
    # As wide as those of rows are, or products would have wider ones than loops take.
    columns, starts = (
        labels.astype(np.int32),
        np.arange(labels.size + 1, dtype=np.int32),
    )
    given = np.ones(labels.size), columns, starts
    sums = sparse.csr_array(given, (labels.size, counts.size)).T.tocsr() @ X
    if not sparse.issparse(X):
        means = sums / np.maximum(counts, 1)[:, None]
        return np.where(counts[:, None] > 0, means, points).astype(X.dtype)
    means = with_data(sums, sums.data / counts[row_numbers(sums)])
    kept = sparse.diags_array((counts == 0).astype(np.float64))
    return (means + kept @ points).tocsr()


def by_distance(
    X: sparse.csr_array, points: sparse.csr_array, index: NDArray[np.integer]
) -> tuple[NDArray[np.int64], Array]:
    """Sort each row's points by their squared distance, computed by differences.

    Parameters
    ----------
    X : csr_array of shape (n_rows, n_features)
        The rows.
    points : csr_array of shape (n_points, n_features)
        The points.
    index : ndarray of shape (n_rows, k)
        Points of each row in any order.

    Returns
    -------
    index : ndarray of shape (n_rows, k)
        In ascending order, of equal distances the lower number first.
    squared : ndarray of shape (n_rows, k)
        Their squared distances.
    """
    # By points, the longest of which are near many rows.
    pairs = np.argsort(index, axis=None, kind="stable")
    columns = index.ravel()[pairs]
    found = np.empty(index.size)
    found[pairs] = exact_distances(points, X, columns, pairs // index.shape[1])
    # What float64 does not hold is as good as nothing here.
    squared = np.maximum(found, 0.0).reshape(index.shape)
    order = np.lexsort((index, squared), axis=1)
    ordered = np.take_along_axis(index, order, axis=1).astype(np.int64)
    return ordered, np.take_along_axis(squared, order, axis=1)


class SparseDistances(BlockedDistances):
    """Rounded squared distances of sparse rows, block by block, in float64.

    Only columns that most rows fill are centred.

    Parameters
    ----------
    X : csr_array of shape (n_samples, n_features)
        The rows, of a scale whose squares fit float64.
    """

    tile = TILE

    def __init__(self, X: sparse.csr_array) -> None:
        self.X, self.dtype = X, np.dtype(np.float64)
        self._centred = less(X, sparse_center(X))
        self._norms = squared_norms(self._centred)
        if not np.isfinite(self._norms).all():
            raise ValueError("X holds values that are not finite or too large.")
        longest = int(np.diff(self._centred.indptr).max()) + 1
        self._unit = 1.0
        self._share = rounding_share(longest, _UNIT, longest)
        tiny = float(np.finfo(np.float64).tiny)
        self._slack = 3.0 * self._share * self._norms + longest * tiny

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @cached_property
    def _by_feature(self) -> dict[tuple[int | None, int | None], sparse.csr_array]:
        return {}

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """The rows as they are."""
        return np.arange(len(self))

    def between_places(self) -> Callable[[slice, slice], Array]:
        """Return what gives the rounded distances between two tiles."""
        return self.block

    def block(self, rows: slice | NDArray[np.integer], columns: slice) -> Array:
        """Return the rounded distances between some rows and a tile of columns or all.

        They are in units of their own.
        """
        place = columns.start, columns.stop
        if place not in self._by_feature:
            self._by_feature[place] = by_feature(self._centred[columns])
        apart = products(self._centred[rows], self._by_feature[place])
        apart *= -2.0
        apart += self._norms[rows, None]
        apart += self._norms[columns]
        return apart

    def _apart(self, low: NDArray[np.integer], high: NDArray[np.integer]) -> Array:
        return nine_digits(exact_distances(self.X, self.X, low, high))


class NearestSparseRows(NearestRows):
    """Finds the nearest of given sparse rows, as `NearestRows` does of dense ones.

    Products in float64 choose candidates, whose distances are computed by differences;
    a row whose candidates rounding leaves in doubt is compared with all.

    Parameters
    ----------
    old : csr_array of shape (n_old, n_features)
        The rows to search among, of a scale whose squares fit float64.

    Examples
    --------
    >>> search = NearestSparseRows(sparse.csr_array([[0.0], [3.0], [4.0]]))
    >>> search.nearest(sparse.csr_array([[3.6]]), 2)[0]
    array([[2, 1]])
    """

    _searches = ("_round_double",)

    def __init__(self, old: sparse.csr_array) -> None:
        self.old, self.features = old, None

    def __len__(self) -> int:
        return int(self.old.shape[0])

    @cached_property
    def _prepared(self) -> tuple[Array, sparse.csr_array, Array, int]:
        """The center, centred rows by feature, squared norms and longest row."""
        center = sparse_center(self.old)
        centred = less(self.old, center)
        longest = int(np.diff(centred.indptr).max()) + 1
        return center, by_feature(centred), squared_norms(centred), longest

    def _round_double(self, new: Any) -> tuple[Array, Array, float]:
        center, centred, old_norms, longest = self._prepared
        moved = less(new, center)
        share = 8.0 * rounding_share(longest, _UNIT, longest)
        rounded = old_norms - 2.0 * products(moved, centred)
        return rounded, share * squared_norms(moved), share

    def _settle(
        self, new: Any, rounded: Array, errors: Array, share: float, k: int, most: int
    ) -> tuple[NDArray[np.bool_], NDArray[np.integer], Array]:
        from mdec.numerics.loops import landmarks

        found = np.empty((new.shape[0], k), dtype=np.int32)
        landmarks.smallest_columns(rounded, found)
        index, squared = by_distance(new, self.old, found)
        kth = np.take_along_axis(rounded, found[:, -1:], axis=1)
        within = rounded <= kth + errors[:, None] + share * np.abs(kth)
        n_within = within.sum(axis=1)
        for row in np.flatnonzero(n_within > k):
            among = np.flatnonzero(within[row])[None]
            nearest, apart = by_distance(new[[row]], self.old, among)
            index[row], squared[row] = nearest[0, :k], apart[0, :k]
        return n_within > most, index, squared
