"""Leading eigenvectors of normalised affinities, whose graphs may fall apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from mdec._support.arrays import Array, namespace
from mdec.numerics.eigen import (
    DENSE_ORDER,
    Operator,
    SparseOperator,
    leading_eigenvectors,
)

# Residuals of the eigenvectors; a smaller one changes no score.
TOLERANCE = 1e-3

# Tiny against any degree; keeps isolated samples from dividing by zero.
_TINY = np.finfo(np.float64).tiny


def row_sums(W: sparse.csr_array) -> Array:
    """Return the sum of each row, in a fraction of the time that SciPy takes.

    Examples
    --------
    >>> row_sums(sparse.csr_array([[1.0, 2.0], [0.0, 0.0]]))
    array([3., 0.])
    """
    sums = np.zeros(W.shape[0])
    filled = np.flatnonzero(np.diff(W.indptr))
    sums[filled] = np.add.reduceat(W.data, W.indptr[filled]) if filled.size else 0.0
    return sums


def normalized_affinity(
    W: sparse.csr_array, degrees: Array | None = None
) -> sparse.csr_array:
    r"""Return the affinity scaled by degrees, the complement of the Laplacian, Eq. 12.

    Parameters
    ----------
    W : csr_array of shape (n_samples, n_samples)
        Symmetric similarities, none negative.
    degrees : ndarray of shape (n_samples,), optional
        Sums of its rows, where they are known.

    Returns
    -------
    csr_array of shape (n_samples, n_samples)
        The graph divided by the roots of its degrees.

    Notes
    -----
    :math:`D^{-1/2} W D^{-1/2} = I - L` with :math:`D_{ii} = \sum_j W_{ij}`.

    Examples
    --------
    >>> W = sparse.csr_array([[0.0, 2.0], [2.0, 0.0]])
    >>> normalized_affinity(W).toarray()
    array([[0., 1.],
           [1., 0.]])
    """
    if degrees is None:
        degrees = row_sums(W)
    scale = 1.0 / np.sqrt(np.maximum(degrees, _TINY))
    rows = np.repeat(scale, np.diff(W.indptr))
    return sparse.csr_array(
        (W.data * rows * scale[W.indices], W.indices, W.indptr), shape=W.shape
    )


def bipartite_components(
    graph: sparse.csr_array,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the connected component of each row and column of a bipartite graph."""
    n_rows, n_columns = graph.shape
    indptr = np.concatenate([graph.indptr, np.full(n_columns, graph.indptr[-1])])
    shape = (n_rows + n_columns, n_rows + n_columns)
    joined = sparse.csr_array((graph.data, graph.indices + n_rows, indptr), shape=shape)
    component = connected_components(joined, directed=False)[1]
    return component[:n_rows], component[n_rows:]


def leading_vectors(
    operator: Operator | Array,
    degrees: Array,
    component: NDArray[np.integer],
    n_vectors: int,
    rng: np.random.Generator,
    *,
    tol: float = TOLERANCE,
    dtype: type[np.floating] = np.float64,
    **solver: Any,
) -> Array:
    """Return the leading eigenvectors of a normalised affinity.

    Parameters
    ----------
    operator : callable or ndarray of shape (order, order)
        The affinity, scaled by the roots of the degrees.
    degrees : ndarray of shape (order,)
        Sums of the affinity's rows.
    component : ndarray of shape (order,)
        Connected component of each vertex.
    n_vectors : int
        Eigenvectors wanted.
    rng : Generator
        Start of the solver, and the choice among equals.
    tol : float
        Greatest residual norm of a computed vector.
    dtype : dtype
        Precision of the iteration.
    **solver
        More for `leading_eigenvectors`.

    Returns
    -------
    ndarray of shape (order, n_vectors)
        Orthonormal columns.

    Notes
    -----
    A graph of c components has c eigenvalues of one, whose eigenvectors are the roots
    of the degrees inside each component; only the remaining ones are computed. With
    more components than vectors wanted the leading ones are not unique: a random
    orthonormal set of their span is taken.
    """
    order = degrees.size
    component, roots = component_roots(degrees, component)
    n_components = int(component.max()) + 1
    if n_components >= n_vectors:
        return mix_roots(component, roots, n_vectors, rng)
    known = np.zeros((order, n_components), dtype=dtype)
    known[np.arange(order), component] = roots
    n_missing = n_vectors - n_components
    _, vectors = leading_eigenvectors(
        operator, order, n_missing, rng, known=known, tol=tol, dtype=dtype, **solver
    )
    return np.hstack([known, vectors])


def sparse_leading_vectors(
    W: sparse.csr_array,
    degrees: Array,
    component: NDArray[np.integer],
    n_vectors: int,
    rng: np.random.Generator,
) -> Array:
    """Return the leading eigenvectors of a sparse affinity, once it is normalised.

    Parameters
    ----------
    W : csr_array of shape (order, order)
        Symmetric and non-negative.
    degrees : ndarray of shape (order,)
        Sums of its rows.
    component : ndarray of shape (order,)
        Connected component of each vertex.
    n_vectors : int
        Eigenvectors wanted.
    rng : Generator
        Start of the solver.

    Returns
    -------
    ndarray of shape (order, n_vectors)
        Orthonormal columns; float64 of small graphs, float32 of others.
    """
    affinity = normalized_affinity(W, degrees)
    if W.shape[0] <= DENSE_ORDER:
        return leading_vectors(affinity.toarray(), degrees, component, n_vectors, rng)
    known = degrees, component, n_vectors, rng
    return leading_vectors(SparseOperator(affinity), *known, dtype=np.float32)


def component_roots(
    degrees: Array, component: NDArray[np.integer]
) -> tuple[NDArray[np.intp], Array]:
    """Number components from 0 and return the roots of degrees, of unit norm in each.

    Examples
    --------
    >>> component, roots = component_roots(np.array([9.0, 5.0, 16.0]), [4, 7, 4])
    >>> component, roots
    (array([0, 1, 0]), array([0.6, 1. , 0.8]))
    """
    component = np.asarray(component)
    numbered = np.zeros(component.size, dtype=np.intp)
    if np.any(component != component[0]):
        _, numbered = np.unique(component, return_inverse=True)
    # An isolated vertex is a component of its own.
    roots = np.sqrt(np.where(degrees > 0.0, degrees, 1.0))
    roots /= np.sqrt(np.bincount(numbered, roots**2))[numbered]
    return numbered, roots


def mix_roots(
    component: NDArray[np.intp],
    roots: Array,
    n_vectors: int,
    rng: np.random.Generator,
) -> Array:
    """Return random orthonormal vectors of the span of the components' roots."""
    n_components = int(component.max()) + 1
    mix, _ = np.linalg.qr(rng.standard_normal((n_components, n_vectors)))
    return roots[:, None] * mix[component]


def unit_rows(rows: Any) -> Any:
    """Scale rows to length one; rows of zeros stay."""
    xp = namespace(rows)
    norms = xp.linalg.norm(rows, axis=-1, keepdims=True)
    return rows / xp.where(norms > 0.0, norms, 1.0)
