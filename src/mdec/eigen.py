"""Leading eigenvectors of symmetric operators with spectrum in [-1, 1]."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

Array = NDArray[np.floating]
Operator = Callable[[Array], Array]

# Up to this order LAPACK is faster than iterating.
DENSE_ORDER = 150

DEGREE = 12
GUARD_VECTORS = 8
MAX_ROUNDS = 30


def leading_eigenvectors(
    operator: Operator | Array,
    order: int,
    n_vectors: int,
    rng: np.random.Generator,
    *,
    known: Array | None = None,
    tol: float = 1e-3,
    dtype: type[np.floating] = np.float64,
    dense_order: int | None = None,
) -> tuple[Array, Array]:
    """Return the largest eigenvalues of an operator and their eigenvectors.

    Parameters
    ----------
    operator : callable or ndarray of shape (order, order)
        Maps a block of vectors, shape (order, any), to its image; an array stands for
        its product. Symmetric, with eigenvalues between -1 and 1.
    order : int
        Length of a vector.
    n_vectors : int
        Eigenvectors wanted, at most `order` less the known ones.
    rng : Generator
        Source of the starting block.
    known : ndarray of shape (order, n_known), optional
        Orthonormal eigenvectors to leave out.
    tol : float
        Greatest residual norm of a returned vector.
    dtype : dtype
        Precision of the iteration.
    dense_order : int, optional
        Up to this order LAPACK is taken; None for the usual one.

    Returns
    -------
    values : ndarray of shape (n_vectors,)
        In descending order.
    vectors : ndarray of shape (order, n_vectors)
        Orthonormal columns; where an eigenvalue repeats, some basis of its space.

    Notes
    -----
    Small problems go to LAPACK. Larger ones use subspace iteration filtered by a
    Chebyshev polynomial that damps the unwanted part of the spectrum; being a block
    method, it finds every copy of a repeated eigenvalue, which single-vector Lanczos
    does not.

    Examples
    --------
    >>> A = np.diag([0.5, 1.0, -0.2])
    >>> values, _ = leading_eigenvectors(A, 3, 2, np.random.default_rng(0))
    >>> values
    array([1. , 0.5])
    """
    if known is None:
        known = np.empty((order, 0))
    if dense_order is None:
        dense_order = DENSE_ORDER
    if order <= dense_order or 2 * n_vectors + GUARD_VECTORS > order:
        matrix = operator(np.eye(order)) if callable(operator) else operator
        return _dense(matrix, n_vectors, known)
    if not callable(operator):
        operator = operator.astype(dtype).dot
    return _iterated(operator, order, n_vectors, rng, known.astype(dtype), tol, dtype)


def _dense(matrix: Array, n_vectors: int, known: Array) -> tuple[Array, Array]:
    order = len(matrix)
    # Moves the known vectors below everything else. LAPACK reads one triangle only.
    matrix = matrix - 3.0 * (known @ known.T)
    values, vectors = linalg.eigh(
        matrix,
        subset_by_index=[order - n_vectors, order - 1],
        overwrite_a=True,
        check_finite=False,
    )
    return values[::-1], vectors[:, ::-1]


def _iterated(
    operator: Operator,
    order: int,
    n_vectors: int,
    rng: np.random.Generator,
    known: Array,
    tol: float,
    dtype: type[np.floating],
) -> tuple[Array, Array]:
    width = min(n_vectors + GUARD_VECTORS + n_vectors // 8, order - known.shape[1])
    block: Array = rng.standard_normal((order, width)).astype(dtype)
    cut = 0.5
    for _ in range(MAX_ROUNDS):
        block = chebyshev_filter(operator, block, DEGREE, cut)
        block -= known @ (known.T @ block)
        block, _ = linalg.qr(block, mode="economic", overwrite_a=True)
        values, block, residuals = _rayleigh_ritz(operator, block)
        if residuals[:n_vectors].max() <= tol:
            break
        cut = min(float(values[-1]), 1.0 - 1e-6)
    return values[:n_vectors], block[:, :n_vectors]


class SparseOperator:
    """A sparse matrix as an operator on float32 blocks.

    The labels need no more digits, and a block then moves half the bytes.

    Parameters
    ----------
    matrix : csr_array
        Symmetric.
    """

    def __init__(self, matrix: sparse.csr_array) -> None:
        self.matrix = matrix
        self.data = matrix.data.astype(np.float32)

    def __call__(self, block: Array) -> Array:
        """Return the matrix times the block."""
        return self.step(block, 1.0, 0.0, np.zeros_like(block))

    def step(self, block: Array, scale: float, shift: float, before: Array) -> Array:
        """Return ``scale * (A @ block) + shift * block - before`` in one pass."""
        from mdec import _compiled

        out = np.empty_like(block)
        factors = np.float32(scale), np.float32(shift)
        matrix = self.matrix
        _compiled.csr_step(
            matrix.indptr, matrix.indices, self.data, block, *factors, before, out
        )
        return out


def _step(
    operator: Operator, block: Array, scale: float, shift: float, before: Array
) -> Array:
    if isinstance(operator, SparseOperator):
        return operator.step(block, scale, shift, before)
    image = operator(block)
    image *= scale
    image += shift * block
    image -= before
    return image


def chebyshev_filter(
    operator: Operator, block: Array, degree: int, cut: float
) -> Array:
    """Apply a polynomial that is small on [-1, cut] and grows fast beyond."""
    half_width, center = 0.5 * (cut + 1.0), 0.5 * (cut - 1.0)
    scale, shift = 1.0 / half_width, -center / half_width
    before = block
    current = _step(operator, block, scale, shift, np.zeros_like(block))
    for _ in range(degree - 1):
        following = _step(operator, current, 2.0 * scale, 2.0 * shift, before)
        before, current = current, following
    return current


def _rayleigh_ritz(operator: Operator, block: Array) -> tuple[Array, Array, Array]:
    """Rotate an orthonormal block to approximate eigenvectors, largest first."""
    image = operator(block)
    values, rotation = linalg.eigh(block.T @ image)
    values, rotation = values[::-1], rotation[:, ::-1]
    block, image = block @ rotation, image @ rotation
    return values, block, np.linalg.norm(image - values * block, axis=0)
