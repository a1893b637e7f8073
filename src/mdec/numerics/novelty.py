"""Whether new rows are like those that are known, at any scale and offset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdec._support.arrays import Array
from mdec.numerics.magnitude import to_power
from mdec.numerics.nearest import NearestRows, nearest_others
from mdec.numerics.sparse_rows import NearestSparseRows, with_data

# Neighbours of a row; known rows that are compared with; the share of those that are
# themselves as far from the others as a row may be.
N_NEIGHBORS = 5
MAX_ROWS = 5000
QUANTILE = 0.99

# Copies have no distance. Rows near them are measured by a tenth of the median one, so
# that the limit stays within what rows far away exceed.
_FLOOR = 0.1

# A row so many spans away is as far as one can be; its square fits float64.
_FARTHEST = 2.0**100


@dataclass(frozen=True, eq=False)
class NoveltyDetector:
    r"""Known rows, and how far from each other they are.

    Attributes
    ----------
    search : NearestRows or NearestSparseRows
        At most 5000 known rows, centred and scaled to 1; sparse ones are not centred.
    spacing : ndarray of shape (n_rows,)
        Mean distance of each to its five nearest others, above zero.
    limit : float
        The remoteness that one in a hundred of them exceeds by itself; below a hundred
        rows the largest.
    center : ndarray of shape (n_features,)
        What is subtracted from rows.
    scale : float
        What they are multiplied by then, a power of two.

    Notes
    -----
    The remoteness of a row is its mean distance to its five nearest known rows, over
    the median spacing of these five. That of a known row is measured among the others,
    so that a new row from where they come from exceeds the limit as rarely as they do.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(200, 3))
    >>> known = NoveltyDetector.of(rows[:150])
    >>> known.remoteness(rows[150:] + 50.0).min() > 10.0 > known.limit
    True
    """

    search: NearestRows | NearestSparseRows
    spacing: Array
    limit: float
    center: Array
    scale: float

    @classmethod
    def of(cls, rows: Any) -> Self:
        """Measure how far known rows are from each other.

        Parameters
        ----------
        rows : ndarray or csr_array of shape (n_rows, n_features)
            Finite, at least two. Of many a fixed part is taken.

        Returns
        -------
        NoveltyDetector
            To compare new rows with.
        """
        size = min(rows.shape[0], MAX_ROWS)
        fixed = np.linspace(0, rows.shape[0] - 1, size).astype(np.int64)
        known = rows[fixed].astype(np.float64)
        search: NearestRows | NearestSparseRows
        if sparse.issparse(known):
            center = np.zeros(known.shape[1])
            scale = to_power(float(np.abs(known.data).max(initial=0.0)), 0)
            search = NearestSparseRows(with_data(known, known.data * scale))
        else:
            # Halves first: the middle of huge numbers must not overflow.
            center = known.min(axis=0) / 2.0 + known.max(axis=0) / 2.0
            moved = known - center
            scale = to_power(float(np.abs(moved).max()), 0)
            search = NearestRows(moved * scale)
        k = min(N_NEIGHBORS, size - 1)
        nearest, squared = nearest_others(search, np.arange(size), k)
        means = np.sqrt(squared).mean(axis=1)
        positive = means[means > 0.0]
        typical = float(np.median(positive)) if positive.size else 1.0
        spacing = np.maximum(means, _FLOOR * typical)
        remote = means / np.median(spacing[nearest], axis=1)
        limit = float(np.quantile(remote, QUANTILE, method="higher"))
        return cls(search, spacing, limit, center, scale)

    def remoteness(self, new: Any) -> Array:
        """Return how remote new rows are, each by itself.

        Parameters
        ----------
        new : ndarray or csr_array of shape (n_new, n_features)
            Finite rows, sparse if the known ones are.

        Returns
        -------
        ndarray of shape (n_new,)
            About 1 for rows in the midst of known ones.
        """
        k = min(N_NEIGHBORS, len(self.spacing) - 1)
        index, squared = self.search.nearest(self._moved(new.astype(np.float64)), k)
        means: Array = np.sqrt(squared).mean(axis=1)
        return means / np.median(self.spacing[index], axis=1)

    def _moved(self, new: Any) -> Any:
        """Return rows where the known ones are, none of them farther than can be."""
        is_sparse = sparse.issparse(new)
        with np.errstate(over="ignore"):
            moved = (new.data if is_sparse else new - self.center) * self.scale
        near = np.clip(moved, -_FARTHEST, _FARTHEST)
        return with_data(new, near) if is_sparse else near

    def is_novel(self, new: Any) -> NDArray[np.bool_]:
        """Tell which new rows are more remote than known rows are from each other."""
        return self.remoteness(new) > self.limit
