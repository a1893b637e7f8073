"""Leading eigenvectors of symmetric operators with spectrum in [-1, 1]."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee

from mdec._support.arrays import Array, namespace

Operator = Callable[[Array], Array]

# Up to this order LAPACK is faster than iterating.
DENSE_ORDER = 150

DEGREE = 12
GUARD_VECTORS = 8
MAX_ROUNDS = 30

FIRST_CUT = 0.5
LAST_CUT = 1.0 - 1e-6

# Blocks of vectors of this length fit the cache, whatever their order.
CACHED_ORDER = 4096

# Eigenvalues that differ by less are equal.
TIE = 1e-9


def leading_eigenvectors(
    operator: Operator | Array,
    order: int,
    n_vectors: int,
    rng: np.random.Generator,
    *,
    known: Array | None = None,
    tol: float = 1e-3,
    dtype: type[np.floating] = np.float64,
    dense_order: int = DENSE_ORDER,
    least: float = -1.0,
) -> tuple[Array, Array]:
    """Return the largest eigenvalues of an operator and their eigenvectors.

    Parameters
    ----------
    operator : callable or ndarray of shape (order, order)
        Maps a block of vectors, shape (order, any), to its image; an array stands for
        its product. Symmetric, with eigenvalues between -1 and 1. One that works on a
        device says how arrays get `there` and `here`, and has the `steps` of a round.
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
    dense_order : int
        Up to this order LAPACK is taken.
    least : float
        No eigenvalue is below it. Zero, of a Gram matrix, saves most of the rounds
        where the wanted eigenvalues are small.

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
    if is_dense(order, n_vectors, dense_order):
        matrix = operator(np.eye(order)) if callable(operator) else operator
        return _dense(matrix, n_vectors, known)
    if not callable(operator):
        operator = operator.astype(dtype).dot
    width = block_width(n_vectors, order - known.shape[1])
    start: Array = rng.standard_normal((order, width)).astype(dtype)
    there = getattr(operator, "there", lambda array: array)
    here = getattr(operator, "here", lambda array: array)
    steps = getattr(operator, "steps", (_orthonormal, _rotation))
    filter_once = getattr(operator, "filter_block", partial(filter_block, operator))
    block, known, cut = there(start), there(known.astype(dtype)), FIRST_CUT
    for _ in range(MAX_ROUNDS):
        degree = DEGREE if least == -1.0 else filter_degree(cut, least, dtype)
        values, block, residuals = filter_once(
            block, known, cut, *steps, degree=degree, least=least
        )
        if residuals[:n_vectors].max() <= tol:
            break
        cut = min(float(values[-1]), LAST_CUT)
    return here(values[:n_vectors]), here(block[:, :n_vectors])


def is_dense(order: int, n_vectors: int, dense_order: int = DENSE_ORDER) -> bool:
    """Tell whether a full factorisation is faster than iterating."""
    return order <= dense_order or 2 * n_vectors + GUARD_VECTORS > order


def _dense(matrix: Array, n_vectors: int, known: Array) -> tuple[Array, Array]:
    order = len(matrix)
    # Moves the known vectors below everything else. LAPACK reads one triangle only.
    matrix = matrix - 3.0 * (known @ known.T)
    n_read = min(n_vectors + 1, order)
    values, vectors = linalg.eigh(
        matrix, subset_by_index=[order - n_read, order - 1], check_finite=False
    )
    if order <= DENSE_ORDER and n_read > n_vectors and values[1] - values[0] < TIE:
        values, vectors = _rotation(matrix, digits=9)
        return values[:n_vectors], vectors[:, :n_vectors]
    return values[: -n_vectors - 1 : -1], vectors[:, : -n_vectors - 1 : -1]


def block_width(n_vectors: int, most: int) -> int:
    """Return how many vectors to iterate so that the wanted ones settle soon."""
    return min(n_vectors + GUARD_VECTORS + n_vectors // 8, most)


def filter_degree(cut: float, least: float, dtype: type[np.floating]) -> int:
    r"""Return a degree at which rounding leaves the smallest wanted vectors intact.

    The filter that is at most one on [least, cut] grows to
    :math:`\cosh(d \operatorname{arcosh} x)` at an eigenvalue of one, the further the
    narrower that interval is.

    Examples
    --------
    >>> [filter_degree(cut, 0.0, np.float64) for cut in (0.5, 0.05, 0.0005)]
    [12, 6, 3]
    """
    x = (2.0 - cut - least) / max(cut - least, float(np.finfo(dtype).tiny))
    growth = 2.0 * float(np.finfo(dtype).eps) ** -0.75
    return max(1, min(DEGREE, int(math.log(growth) / math.acosh(x))))


def filter_block(
    operator: Callable[[Any], Any],
    block: Any,
    known: Any,
    cut: Any,
    orthonormal: Callable[[Any], Any],
    rotation: Callable[[Any], tuple[Any, Any]],
    *,
    degree: int = DEGREE,
    least: float = -1.0,
) -> tuple[Any, Any, Any]:
    """Filter a block of vectors once and rotate it to approximate eigenvectors.

    Parameters
    ----------
    operator : callable
        Maps a block to its image.
    block : array of shape (..., order, width)
        Vectors in columns, of NumPy or PyTorch, perhaps of many problems.
    known : array of shape (..., order, n_known)
        Orthonormal eigenvectors to leave out.
    cut : float or array
        Eigenvalues below it are damped.
    orthonormal : callable
        Returns an orthonormal basis of a block.
    rotation : callable
        Returns the eigenvalues, largest first, and eigenvectors of small symmetric
        matrices.
    degree : int
        Degree of the filter.
    least : float
        No eigenvalue is below it.

    Returns
    -------
    values : array of shape (..., width)
        Approximate eigenvalues, largest first.
    block : array of shape (..., order, width)
        Approximate eigenvectors.
    residuals : array of shape (..., width)
        Norms of what the operator leaves of each.
    """
    block = chebyshev_filter(operator, block, degree, cut, least)
    block -= known @ (known.swapaxes(-2, -1) @ block)
    block = orthonormal(block)
    image = operator(block)
    values, turn = rotation(block.swapaxes(-2, -1) @ image)
    block, image = block @ turn, image @ turn
    image -= values[..., None, :] * block
    return values, block, namespace(image).linalg.norm(image, axis=-2)


def _orthonormal(block: Array) -> Array:
    # NumPy leaves the interpreter lock to other members meanwhile, SciPy does not.
    return np.linalg.qr(block).Q


def _rotation(matrix: Array, digits: int = 12) -> tuple[Array, Array]:
    """Return the eigenvalues, largest first, and eigenvectors of a symmetric matrix.

    Which vectors of a repeated eigenvalue come first must not hang on the last digits:
    only so many of the matrix are read, and sums have one order.
    """
    from mdec.numerics.loops import vectors as loops

    values, vectors = loops.symmetric_eigenvectors(np.round(matrix, digits))
    return values, vectors


class SparseOperator:
    """A sparse matrix as an operator on float32 blocks.

    The labels need no more digits, and a block then moves half the bytes. But they need
    the same digits on every processor, because the iteration ends long before rounding
    is forgotten: so all sums have one order here.

    Parameters
    ----------
    matrix : csr_array
        Symmetric.
    """

    # What a round of `filter_block` takes of others.
    steps = ()

    def __init__(self, matrix: sparse.csr_array) -> None:
        self.matrix, self.order = matrix, None
        if matrix.shape[0] > CACHED_ORDER:
            self.matrix, self.order, self.rank = _with_near_neighbors(matrix)
        self.data = self.matrix.data.astype(np.float32)

    def __call__(self, block: Array) -> Array:
        """Return the matrix times the block."""
        return self.chebyshev(block, 1, 1.0, 0.0)

    def chebyshev(self, block: Array, degree: int, scale: float, shift: float) -> Array:
        """Return the polynomial of ``scale * A + shift`` times the block."""
        from mdec.numerics.loops import csr

        matrix = self.matrix.indptr, self.matrix.indices, self.data
        factors = np.float32(scale), np.float32(shift)
        block = block if self.order is None else block[self.order]
        out: Array = csr.csr_chebyshev(matrix, block, degree, *factors)
        return out if self.order is None else out[self.rank]

    def filter_block(
        self, block: Array, known: Array, cut: float, *, degree: int, least: float
    ) -> tuple[Array, Array, Array]:
        """Do what the function of this name does."""
        from mdec.numerics.loops import vectors as loops
        from mdec.numerics.loops.lanes import pad_columns

        width = block.shape[1]
        block = self.chebyshev(
            pad_columns(block), degree, *_scale_and_shift(cut, least)
        )
        loops.leave_out(block, known)
        loops.orthonormalize(block, width)
        image = self(block)
        products = loops.inner_products(block, image)
        values, turn = loops.symmetric_eigenvectors(products[:width, :width])
        block, image = loops.multiply(block, turn), loops.multiply(image, turn)
        residuals = loops.residual_norms(block, image, values)
        return values, block[:, :width], residuals


def _with_near_neighbors(
    matrix: sparse.csr_array,
) -> tuple[sparse.csr_array, NDArray[np.intp] | None, NDArray[np.intp] | None]:
    """Put rows that read the same vectors one after another, if they are far apart.

    Returns the matrix, its rows in the old order and the places of these in the new
    one. The entries of a row keep their order, so that every sum does.
    """
    order = reverse_cuthill_mckee(matrix, symmetric_mode=True)
    rank = np.argsort(order).astype(matrix.indices.dtype)
    moved = matrix[order]
    moved.indices = rank[moved.indices]
    if 2 * _distance(moved) > _distance(matrix):
        return matrix, None, None
    return moved, order, rank


def _distance(matrix: sparse.csr_array) -> int:
    """Return how far the rows are from those that they read, all added up."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    return int(np.abs(rows - matrix.indices).sum())


def _scale_and_shift(cut: Any, least: float) -> tuple[Any, Any]:
    """Return what takes the interval from `least` to `cut` to that from -1 to 1."""
    half_width, center = 0.5 * (cut - least), 0.5 * (cut + least)
    return 1.0 / half_width, -center / half_width


def chebyshev_filter(
    operator: Any, block: Any, degree: int, cut: Any, least: float
) -> Any:
    """Apply a polynomial that is small on [least, cut] and grows fast beyond."""
    scale, shift = _scale_and_shift(cut, least)
    before, current = namespace(block).zeros_like(block), block
    for step in range(degree):
        if hasattr(operator, "step"):
            following = operator.step(current, scale, shift, before)
        else:
            following = operator(current)
            following *= scale
            following += shift * current
            following -= before
        before, current = current, following
        if step == 0:
            scale, shift = 2.0 * scale, 2.0 * shift
    return current
