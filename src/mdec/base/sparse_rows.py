"""Sparse rows as a member looks at them."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from mdec.numerics.sparse_rows import unit_sparse_rows

# The kernels that sparse rows stay sparse for.
SPARSE_KERNELS = ("scaled_gaussian", "scaled_exponential", "cosine")


def require_sparse_kernel(kernel: str) -> None:
    """Raise one sentence for a kernel that would fill the zeros of sparse rows."""
    if kernel not in SPARSE_KERNELS:
        raise ValueError(
            f"kernel={kernel!r} would fill the zeros of sparse rows; use one of "
            f"{', '.join(SPARSE_KERNELS)}, or give X.toarray() if it fits in memory."
        )


def sparse_coordinates(X: sparse.csr_array, kernel: str) -> sparse.csr_array:
    """Return sparse rows of a subspace as a kernel looks at them, in float64.

    Parameters
    ----------
    X : csr_array of shape (n_samples, n_features)
        Rows in a subspace.
    kernel : str
        One of `SPARSE_KERNELS`. The cosine takes rows of unit length; those without a
        direction share an extra coordinate, as in `angular_coordinates`.

    Returns
    -------
    csr_array of shape (n_samples, n_coordinates)
        One coordinate more than features for the cosine.

    Examples
    --------
    >>> X = sparse.csr_array([[3.0, 4.0], [0.0, 0.0]])
    >>> sparse_coordinates(X, "cosine").toarray()
    array([[0.6, 0.8, 0. ],
           [0. , 0. , 1. ]])
    """
    require_sparse_kernel(kernel)
    rows = X.astype(np.float64, copy=False)
    if kernel != "cosine":
        return rows
    unit, lost = unit_sparse_rows(rows)
    extra = sparse.csr_array(lost[:, None].astype(np.float64))
    return sparse.hstack([unit, extra], format="csr")
