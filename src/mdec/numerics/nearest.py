"""The exact nearest of some rows to others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mdec.numerics.magnitude import at_safe_scale
from mdec.numerics.neighbors import about_the_middle, rounding_share

Array = NDArray[np.floating]

# Candidates beyond the wanted ones; distances that are made together.
SPARE = 8
TILE_ENTRIES = 2**21


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


class NearestRows:
    r"""Finds the nearest of given rows, whatever their scale and offset.

    Products of centred rows choose candidates; their distances are computed from
    differences. A row whose candidates rounding leaves in doubt is compared with all,
    so the answer for a row depends on no other.

    Parameters
    ----------
    old : ndarray of shape (n_old, n_features)
        The rows to search among, float64.

    Examples
    --------
    >>> search = NearestRows(np.array([[0.0], [3.0], [4.0]]))
    >>> search.nearest(np.array([[3.6]]), 2)[0]
    array([[2, 1]])
    """

    def __init__(self, old: Array) -> None:
        self.old = np.ascontiguousarray(old)
        self.center, self.centred, self.norms, _ = about_the_middle(self.old)
        eps = float(np.finfo(np.float64).eps)
        self.share = rounding_share(old.shape[1], 0.5 * eps)

    def nearest(self, new: Array, k: int) -> tuple[NDArray[np.int64], Array]:
        """Return the k nearest old rows of each new row.

        Parameters
        ----------
        new : ndarray of shape (n_new, n_features)
            Float64.
        k : int
            Neighbours to find, at most all old rows.

        Returns
        -------
        index : ndarray of shape (n_new, k)
            By ascending distance; the first of equals first.
        squared : ndarray of shape (n_new, k)
            Squared distances.
        """
        index = np.empty((len(new), k), dtype=np.int64)
        squared = np.empty((len(new), k))
        height = max(1, TILE_ENTRIES // len(self.old))
        for start in range(0, len(new), height):
            part = slice(start, start + height)
            index[part], squared[part] = self._searched(new[part], k)
        return index, squared

    def _searched(self, new: Array, k: int) -> tuple[NDArray[np.int64], Array]:
        n_candidates = min(k + SPARE, len(self.old))
        if n_candidates == len(self.old):
            return self._of_candidates(new, np.arange(len(self.old)), k)
        moved = new - self.center
        norms = np.einsum("ij,ij->i", moved, moved)[:, None]
        rounded = norms + self.norms - 2.0 * (moved @ self.centred.T)
        order = np.argpartition(rounded, n_candidates - 1, axis=1)
        candidates = np.sort(order[:, :n_candidates], axis=1)
        index, squared = self._of_candidates(new, candidates, k)
        # A pair that is no candidate is at least as far as the last one, but for what
        # rounding may do to it and to that one.
        rows = np.arange(len(new))[:, None]
        farthest = rounded[rows, candidates].max(axis=1)
        blur = self.share * (3.0 * norms[:, 0] + 2.0 * np.abs(farthest))
        open_rows = np.flatnonzero(~(squared[:, -1] < farthest - 2.0 * blur))
        for row in open_rows:
            one = slice(row, row + 1)
            everything = np.arange(len(self.old))
            index[one], squared[one] = self._of_candidates(new[one], everything, k)
        return index, squared

    def _of_candidates(
        self, new: Array, candidates: NDArray[np.int64], k: int
    ) -> tuple[NDArray[np.int64], Array]:
        """Return the nearest of some candidates, in ascending order for each row."""
        shape = len(new), candidates.shape[-1]
        candidates = np.broadcast_to(candidates, shape)
        squared = np.empty(shape)
        for row, chosen in enumerate(candidates):
            apart = self.old[chosen] - new[row]
            squared[row] = np.einsum("ij,ij->i", apart, apart)
        first = np.argsort(squared, axis=1, kind="stable")[:, :k]
        rows = np.arange(len(new))[:, None]
        return candidates[rows, first], squared[rows, first]
