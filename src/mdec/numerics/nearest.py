"""The exact nearest of some rows to others, in one subspace or in many."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.arrays import Array
from mdec.numerics.magnitude import at_safe_scale, to_power
from mdec.numerics.neighbors import (
    SUMMED,
    TOP,
    center_rows,
    rounding_share,
    sum_of_products,
)

# Candidates beyond the wanted ones; distances that are made together.
SPARE = 8
TILE_ENTRIES = 2**21

# If only one in so many rows is wanted, the subspace of the others is not copied.
_FEW = 4

# Squared norms up to this leave room for sums of them in float32.
_LARGEST_NORM = 2.0**100


def at_common_scale(old: Array, new: Array) -> tuple[Array, Array]:
    """Bring rows of both arrays to one scale whose squares fit float64.

    Examples
    --------
    >>> old, new = at_common_scale(np.array([[1e200]]), np.array([[2e200]]))
    >>> float(new[0, 0] / old[0, 0])
    2.0
    """
    both = at_safe_scale(np.concatenate([old, new]).astype(np.float64, copy=False))
    return both[: len(old)], both[len(old) :]


class SearchIndex:
    """Rows to search among in many subspaces, made ready once for all of them.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
        Of a scale whose squares fit float64.
    """

    def __init__(self, rows: Array) -> None:
        self.rows = np.ascontiguousarray(rows, dtype=np.float64)
        self.center, centred, norms, _ = center_rows(self.rows)
        self.factor = to_power(float(np.sqrt(norms.max())), TOP)
        centred *= self.factor
        # A feature is a row of this, so that a subspace is copied in long pieces.
        self.columns = np.ascontiguousarray(centred.T, dtype=np.float32)


class NearestRows:
    r"""Finds the nearest of given rows, whatever their scale and offset.

    Products of centred rows in float32 choose candidates; their distances are computed
    from differences in float64. A row whose candidates rounding leaves in doubt gets
    others from products in float64, and if these do as well, it is compared with all.
    So the answer for a row depends on no other.

    Parameters
    ----------
    old : ndarray of shape (n_old, n_features) or SearchIndex
        The rows to search among, float64.
    features : ndarray, optional
        The subspace of their features to search in; None for all.

    Examples
    --------
    >>> search = NearestRows(np.array([[0.0], [3.0], [4.0]]))
    >>> search.nearest(np.array([[3.6]]), 2)[0]
    array([[2, 1]])
    """

    # From fast to sure; what one leaves in doubt goes to the next.
    _searches: Sequence[str] = ("_by_single_products", "_by_double_products", "_of_all")

    def __init__(
        self, old: Array | SearchIndex, features: NDArray[np.integer] | None = None
    ) -> None:
        self.known = old if isinstance(old, SearchIndex) else SearchIndex(old)
        self.features = features

    def __len__(self) -> int:
        return len(self.known.rows)

    @cached_property
    def old(self) -> Any:
        """The rows to search among, in the subspace."""
        if self.features is None:
            return self.known.rows
        return self.known.rows.take(self.features, axis=1)

    @cached_property
    def _columns(self) -> Array:
        """The centred rows in columns, and under these their squared norms."""
        columns = self.known.columns
        if self.features is not None:
            columns = columns[self.features]
        return np.vstack([columns, np.einsum("ij,ij->j", columns, columns)])

    @cached_property
    def _centred(self) -> tuple[Array, Array, Array]:
        """The center, centred rows and their squared norms, in float64."""
        return center_rows(self.old)[:3]

    def rows(self, chosen: NDArray[np.integer]) -> Any:
        """Return some of the old rows, in the subspace."""
        if self._are_many(chosen):
            return self.old if len(chosen) == len(self) else self.old[chosen]
        return self.known.rows[chosen].take(self.features, axis=1)

    def _are_many(self, chosen: NDArray[np.integer]) -> bool:
        return self.features is None or _FEW * len(chosen) > len(self)

    def nearest(self, new: Any, k: int) -> tuple[NDArray[np.int64], Array]:
        """Return the k nearest old rows of each new row.

        Parameters
        ----------
        new : ndarray of shape (n_new, n_features)
            Float64, in the subspace.
        k : int
            Neighbours to find, at most all old rows.

        Returns
        -------
        index : ndarray of shape (n_new, k)
            By ascending distance; the first of equals first.
        squared : ndarray of shape (n_new, k)
            Squared distances.
        """
        index = np.empty((new.shape[0], k), dtype=np.int64)
        squared = np.empty((new.shape[0], k))
        height = max(1, TILE_ENTRIES // len(self))
        for start in range(0, new.shape[0], height):
            part = slice(start, start + height)
            index[part], squared[part] = self._search(new[part], k)
        return index, squared

    def _search(self, new: Any, k: int) -> tuple[NDArray[np.int64], Array]:
        index = np.empty((new.shape[0], k), dtype=np.int64)
        squared, doubtful = np.empty(index.shape), np.arange(new.shape[0])
        for search in self._searches[-1 if k + SPARE >= len(self) else 0 :]:
            if doubtful.size:
                found = getattr(self, search)(new[doubtful], k)
                index[doubtful], squared[doubtful], least = found
                doubtful = doubtful[~(squared[doubtful, -1] < least)]
        return index, squared

    def _by_single_products(
        self, new: Array, k: int
    ) -> tuple[NDArray[np.int64], Array, Array]:
        """Return the nearest of candidates, and what all others are at least."""
        factor, n_features, center = self.known.factor, new.shape[1], self.known.center
        moved = new - (center if self.features is None else center[self.features])
        moved *= factor
        norms = np.einsum("ij,ij->i", moved, moved)
        far = ~(norms < _LARGEST_NORM)
        moved[far], norms[far] = 0.0, 0.0
        left = np.ones((len(new), n_features + 1), dtype=np.float32)
        np.multiply(moved, -2.0, out=left[:, :-1], casting="same_kind")
        rounded = sum_of_products(left, self._columns)
        index, squared, farthest = self._nearest_candidates(new, rounded, k)
        limits = np.finfo(np.float32)
        unit = 0.5 * float(limits.eps)
        # The norms of old rows are sums in float32 as well.
        share = rounding_share(n_features, unit) + n_features * unit
        slack = 3.0 * share * norms + n_features * float(limits.tiny)
        least = (norms + farthest - slack) / (1.0 + 2.0 * share)
        least[far] = -np.inf
        return index, squared, least / (factor * factor)

    def _by_double_products(
        self, new: Any, k: int
    ) -> tuple[NDArray[np.int64], Array, Array]:
        """Return the same as `_by_single_products`, from products in float64."""
        rounded, norms, n_terms = self._round_distances(new)
        index, squared, farthest = self._nearest_candidates(new, rounded, k)
        unit = 0.5 * float(np.finfo(np.float64).eps)
        share = rounding_share(n_terms, unit, max(n_terms, SUMMED))
        blur = share * (3.0 * norms + 2.0 * np.abs(farthest))
        return index, squared, farthest - 2.0 * blur

    def _round_distances(self, new: Any) -> tuple[Array, Array, int]:
        """Return rounded squared distances, norms of new rows and terms of products."""
        center, centred, old_norms = self._centred
        moved = new - center
        norms = np.einsum("ij,ij->i", moved, moved)
        rounded = norms[:, None] + old_norms - 2.0 * (moved @ centred.T)
        return rounded, norms, new.shape[1]

    def _nearest_candidates(
        self, new: Any, rounded: Array, k: int
    ) -> tuple[NDArray[np.int64], Array, Array]:
        """Return the nearest of the candidates, and the largest rounded of these."""
        from mdec.numerics.loops import landmarks

        index = np.empty((new.shape[0], k + SPARE), dtype=np.int32)
        landmarks.smallest_columns(rounded, k + SPARE, index)
        farthest = np.take_along_axis(rounded, index, axis=1).max(axis=1)
        ordered, squared = self._order(new, index)
        return ordered[:, :k], squared[:, :k], farthest.astype(np.float64)

    def _order(
        self, new: Any, index: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], Array]:
        """Sort each new row's old rows by their distances, and return these."""
        from mdec.numerics.loops import landmarks

        squared, used = np.empty(index.shape), np.zeros(len(self), dtype=bool)
        used[index] = True
        chosen = np.flatnonzero(used)
        if self._are_many(chosen):
            rows, chosen = self.old, np.arange(len(self))
        else:
            rows, index = self.rows(chosen), (np.cumsum(used) - 1)[index]
        place, new = index.astype(np.int32), np.ascontiguousarray(new)
        landmarks.order_by_distance(new, rows, place, squared)
        return chosen[place], squared

    def _of_all(self, new: Any, k: int) -> tuple[NDArray[np.int64], Array, float]:
        """Return the nearest of all old rows, from all differences."""
        index = np.empty((new.shape[0], k), dtype=np.int64)
        squared = np.empty(index.shape)
        for row in range(new.shape[0]):
            distances = self._distances(new[[row]])
            index[row] = np.argsort(distances, kind="stable")[:k]
            squared[row] = distances[index[row]]
        return index, squared, np.inf

    def _distances(self, new: Any) -> Array:
        """Return the squared distances of one new row, from differences."""
        apart = self.old - new
        distances: Array = np.einsum("ij,ij->i", apart, apart)
        return distances
