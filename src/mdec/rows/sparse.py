"""Sparse rows in one form, however they came."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from scipy import sparse


def canonical_rows(X: Any) -> sparse.csr_array:
    """Return a sparse matrix as CSR that depends on its numbers alone.

    Parameters
    ----------
    X : sparse array or matrix of shape (n_rows, n_features)
        Of any format; not changed.

    Returns
    -------
    csr_array of shape (n_rows, n_features)
        Duplicates are added up, zeros are not stored, the columns of a row ascend, and
        indices are 32 bits wide where that is enough. Not copied if it was so already.

    Examples
    --------
    >>> X = sparse.coo_array(([1.0, 2.0, 0.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    >>> canonical_rows(X).data
    array([3.])
    """
    rows = sparse.csr_array(X)
    stored_zeros = np.count_nonzero(rows.data) < rows.nnz
    if stored_zeros or not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
        rows.eliminate_zeros()
    if max(rows.nnz, *rows.shape) <= np.iinfo(np.int32).max:
        indices = rows.indices.astype(np.int32, copy=False)
        indptr = rows.indptr.astype(np.int32, copy=False)
        rows = sparse.csr_array((rows.data, indices, indptr), shape=rows.shape)
        rows.has_canonical_format = True
    return rows


def digest_of_sparse(X: sparse.csr_array) -> str:
    """Return a digest of canonical rows: shape, precision, places and numbers."""
    total = hashlib.sha256(f"sparse {X.shape} {X.dtype.str}".encode())
    for part in (X.indptr, X.indices, X.data):
        total.update(np.ascontiguousarray(part).data)
    return total.hexdigest()


def stacked(parts: list[Any]) -> Any:
    """Put blocks of rows on top of each other, sparse ones as CSR."""
    if sparse.issparse(parts[0]):
        return sparse.vstack(parts, format="csr")
    return np.concatenate(parts)
