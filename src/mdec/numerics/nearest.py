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

# Candidates beyond the wanted ones, before products in float64 are asked; distances
# that are made together.
SPARE = 64
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
        centred *= -2.0 * self.factor
        # A feature is a row of this, so that a subspace is copied in long pieces.
        self.columns = np.ascontiguousarray(centred.T, dtype=np.float32)


class NearestRows:
    r"""Finds the nearest of given rows, whatever their scale and offset.

    Products of centred rows in float32 choose candidates, all that rounding leaves in
    question; their distances are computed from differences in float64. A row with too
    many candidates gets others from products in float64. So the answer for a row
    depends on no other.

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

    # From fast to sure; rows that one leaves too much in doubt go to the next.
    _searches: Sequence[str] = ("_round_single", "_round_double")

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
        """Centred rows times -2 in columns, and under these their squared norms."""
        known, features = self.known.columns, self.features
        chosen = slice(None) if features is None else features
        columns = np.empty((known[chosen].shape[0] + 1, len(self)), dtype=known.dtype)
        columns[:-1] = known[chosen]
        np.einsum("ij,ij->j", columns[:-1], columns[:-1], out=columns[-1])
        columns[-1] *= 0.25
        return columns

    @cached_property
    def _centred(self) -> tuple[Array, Array, Array]:
        """The center, centred rows and their squared norms, in float64."""
        return center_rows(self.old)[:3]

    def rows(self, chosen: NDArray[np.integer]) -> Any:
        """Return some of the old rows, in the subspace."""
        if self.features is None or _FEW * len(chosen) > len(self):
            return self.old if len(chosen) == len(self) else self.old[chosen]
        return self.known.rows[chosen].take(self.features, axis=1)

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
            rows = np.arange(start, min(start + height, new.shape[0]))
            most = [k + SPARE] * (len(self._searches) - 1) + [len(self)]
            for search, n_points in zip(self._searches, most, strict=True):
                some = new if len(rows) == new.shape[0] else new[rows]
                rounded: tuple[Array, Array, float] = getattr(self, search)(some)
                found = self._settle(some, *rounded, k, n_points)
                crowded, index[rows], squared[rows] = found
                rows = rows[crowded]
                if not rows.size:
                    break
        return index, squared

    def _round_single(self, new: Array) -> tuple[Array, Array, float]:
        """Return distances rounded to float32, less a number for each row.

        And how far rounding may have moved one beyond another: a number for each row
        and a share of the distance.
        """
        n_features, center = new.shape[1], self.known.center
        moved = new - (center if self.features is None else center[self.features])
        moved *= self.known.factor
        norms = np.einsum("ij,ij->i", moved, moved)
        far = ~(norms < _LARGEST_NORM)
        moved[far] = 0.0
        left = np.ones((len(new), n_features + 1), dtype=np.float32)
        left[:, :-1] = moved
        limits = np.finfo(np.float32)
        unit = 0.5 * float(limits.eps)
        # The norms of old rows are sums in float32 as well.
        share = 8.0 * (rounding_share(n_features, unit) + n_features * unit)
        errors = share * norms + 2.0 * n_features * float(limits.tiny)
        rounded = sum_of_products(left, self._columns)
        return rounded, np.where(far, np.inf, errors), share

    def _round_double(self, new: Any) -> tuple[Array, Array, float]:
        """Return what `_round_single` does, from products in float64."""
        center, centred, old_norms = self._centred
        moved, n_features = new - center, new.shape[1]
        rounded = old_norms - 2.0 * (moved @ centred.T)
        unit = 0.5 * float(np.finfo(np.float64).eps)
        share = 8.0 * rounding_share(n_features, unit, max(n_features, SUMMED))
        return rounded, share * np.einsum("ij,ij->i", moved, moved), share

    def _settle(
        self, new: Any, rounded: Array, errors: Array, share: float, k: int, most: int
    ) -> tuple[NDArray[np.bool_], NDArray[np.integer], Array]:
        """Return which rows have too many others in question, and what is nearest.

        Those with more than `most` have; all others are settled by differences.
        """
        from mdec.numerics.loops import landmarks

        chosen = np.arange(len(self))
        if self.features is not None and _FEW * k * len(new) < len(self):
            kth = np.partition(rounded, k - 1, axis=1)[:, k - 1]
            limit = kth + errors + share * np.abs(kth)
            chosen = np.flatnonzero((rounded <= limit[:, None]).any(axis=0))
            rounded = np.ascontiguousarray(rounded[:, chosen])
        new, crowded = np.ascontiguousarray(new), np.empty(len(new), dtype=bool)
        index, squared = np.empty((len(new), k), np.int32), np.empty((len(new), k))
        given = new, self.rows(chosen), errors, share, most, index, squared, crowded
        landmarks.nearest_points(rounded, *given)
        return crowded, chosen[index], squared


def nearest_others(
    search: Any, chosen: NDArray[np.integer], k: int
) -> tuple[NDArray[np.int64], Array]:
    """Return the k nearest other old rows of some old rows, and squared distances.

    The search is one of `NearestRows` or of anything that has its methods.
    """
    index, squared = search.nearest(search.rows(chosen), k + 1)
    others = index != chosen[:, None]
    # Among many copies a row may be missing from its own list; then the last goes.
    others[others.all(axis=1), -1] = False
    shape = len(chosen), k
    return index[others].reshape(shape), squared[others].reshape(shape)
