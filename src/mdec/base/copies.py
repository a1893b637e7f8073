"""Copies: samples that are equal in every number that a member looks at."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


class CopiesError(ValueError):
    """Every sample has copies at all its nearest neighbours, so no scale is known."""


def group_copies(X: Any, most: int | None = None) -> NDArray[np.int32] | None:
    """Number rows in the order of their first copies; equal rows have one number.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_rows, n_features)
        The rows; sparse ones without zeros stored, and their columns in order.
    most : int, optional
        Give up as soon as more rows are distinct.

    Returns
    -------
    ndarray of shape (n_rows,) or None
        Number of each row, or None if more than `most` are distinct.

    Examples
    --------
    >>> group_copies(np.array([[5.0, 0.0], [1.0, 2.0], [5.0, -0.0]]))
    array([0, 1, 0], dtype=int32)
    """
    stored: Any
    numbers: dict[bytes, int] = {}
    group = np.empty(X.shape[0], dtype=np.int32)
    is_sparse = sparse.issparse(X)
    for row in range(X.shape[0]):
        if is_sparse:
            part = slice(X.indptr[row], X.indptr[row + 1])
            stored = X.indices[part].tobytes() + X.data[part].tobytes()
        else:  # zero has a sign, which no distance tells
            stored = X[row] + 0.0
        key = blake2b(stored, digest_size=16).digest()
        group[row] = numbers.setdefault(key, len(numbers))
        if most is not None and len(numbers) > most:
            return None
    return group


def share_labels(
    labels: NDArray[np.int32], group: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Give copies the label of the first of them that has one; -1 where none has.

    Examples
    --------
    >>> share_labels(np.array([-1, 4, 2, 3]), np.array([0, 1, 0, 0]))
    array([2, 4, 2, 2])
    """
    present = np.flatnonzero(labels >= 0)[::-1]
    shared = np.full(int(group.max()) + 1, -1, dtype=labels.dtype)
    # Backwards, so that the label of the first copy is the last that is written.
    shared[group[present]] = labels[present]
    return shared[group]
