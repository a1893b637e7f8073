"""The transfer cut of a bipartite graph: a large side cut through its small side.

In pieces: sums over row blocks, the small problem, rows carried over block by block.
A sparse graph in memory is cut without forming its small side, by products with the
graph alone, because that takes a fourth to a fifteenth of the time: 0.14 against 2.1 s
for 2000 samples, 0.55 against 4.3 s for 11,000 (``benchmarks/growth.py --cuts``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from mdec._support.arrays import Array
from mdec.numerics.affinity import (
    bipartite_components,
    leading_vectors,
    sparse_leading_vectors,
    unit_rows,
)
from mdec.numerics.eigen import Operator
from mdec.numerics.sparse_rows import by_feature, products, row_numbers, squared_norms

# Rows whose embedding and whose distances to centres are in the cache together.
TILE = 1024

# The small side is a full matrix, for which LAPACK is fastest up to this order.
DENSE_COLUMNS = 3000


def transfer_cut(
    graph: sparse.csr_array,
    n_vectors: int,
    rng: np.random.Generator,
    gram: Callable[[sparse.csr_array], Operator] | None = None,
) -> Array:
    r"""Return the samples' embedding by the transfer cut of a bipartite graph.

    Parameters
    ----------
    graph : csr_array of shape (n_samples, n_clusters)
        Non-negative weights B between samples and clusters.
    n_vectors : int
        Dimension of the embedding.
    rng : Generator
        Start of the solver.
    gram : callable, optional
        Makes of a matrix P the operator of :math:`P P^T`, where another device has it.

    Returns
    -------
    ndarray of shape (n_samples, n_vectors)
        Unit rows.

    Notes
    -----
    The normalised cut of the whole graph follows from the cut of its smaller side,
    :math:`W_Y = B^T D_X^{-1} B` with :math:`D_X = diag(B 1)`. With V the leading
    eigenvectors of :math:`G^{-1/2} W_Y G^{-1/2}`, where G holds the degrees of
    :math:`W_Y`, the rows of :math:`D_X^{-1} B G^{-1/2} V` are scaled to unit length.

    References
    ----------
    Li, Wu, Chang, "Segmentation using superpixels: a bipartite graph partitioning
    approach", CVPR 2012.
    """
    require_vectors(graph.shape[1], n_vectors)
    tiny = np.finfo(np.float64).tiny
    sample_degrees = np.maximum(np.asarray(graph.sum(axis=1)).ravel(), tiny)
    degrees = np.asarray(graph.sum(axis=0)).ravel()
    to_samples = sparse.diags_array(1.0 / sample_degrees) @ graph
    transposed = graph.T.tocsr()
    scale = 1.0 / np.sqrt(np.maximum(degrees, tiny))[:, None]

    def apply(block: Array) -> Array:
        image: Array = scale * (transposed @ (to_samples @ (scale * block)))
        return image

    operator: Operator = apply
    if gram is not None:
        roots = sparse.diags_array(1.0 / np.sqrt(sample_degrees))
        operator = gram(sparse.diags_array(scale[:, 0]) @ transposed @ roots)
    _, component = bipartite_components(graph)
    vectors = leading_vectors(operator, degrees, component, n_vectors, rng, tol=1e-6)
    return unit_rows(to_samples @ (scale * vectors))


def require_vectors(n_columns: int, n_vectors: int) -> None:
    """Raise if there are fewer base clusters than clusters wanted."""
    if n_columns < n_vectors:
        raise ValueError(
            f"n_clusters={n_vectors} is more than the {n_columns} base clusters; "
            "make a larger ensemble or ask for fewer clusters."
        )


@dataclass(frozen=True)
class BipartiteRows:
    """Some rows of a bipartite graph in which every row has the same number of edges.

    Attributes
    ----------
    index : ndarray of shape (n_rows, n_edges)
        Columns that a row is tied to.
    weights : ndarray of shape (n_rows, n_edges)
        Weights of the ties, not negative.
    """

    index: NDArray[np.integer]
    weights: Array


def sum_shared_weights(
    blocks: Iterable[tuple[NDArray[np.integer], Array]], n_columns: int
) -> Array:
    r"""Return the weight of the rows that every two columns share, in halves.

    Parameters
    ----------
    blocks : iterable of tuples of ndarrays (n_rows, n_edges) and (n_rows,)
        Columns that rows are tied to, -1 for none, and the weights of the rows.
    n_columns : int
        Number of columns.

    Returns
    -------
    ndarray of shape (n_columns, n_columns)
        H with :math:`H + H^T = Z^T diag(s) Z`, where Z has ones for ties and s are the
        weights; halves of some blocks are added up before `small_side_affinity`.
    """
    from mdec.numerics.loops import landmarks

    halves = np.zeros((n_columns, n_columns))
    for index, shares in blocks:
        landmarks.add_shared(index, shares, halves)
    return halves


def small_side_affinity(halves: Array, columns: Array) -> Array:
    r"""Return the affinity of the small side of a graph of rows times columns.

    Parameters
    ----------
    halves : ndarray of shape (n_columns, n_columns)
        From `sum_shared_weights`, with weights :math:`s_i = p_i / \sum_j Z_{ij} c_j`.
    columns : ndarray of shape (n_columns,)
        Factors c of the columns.

    Returns
    -------
    ndarray of shape (n_columns, n_columns)
        :math:`B^T D_X^{-1} B` of :math:`B = diag(p) Z diag(c)`.

    Examples
    --------
    >>> halves = sum_shared_weights([(np.array([[0, 1]]), np.array([0.25]))], 2)
    >>> small_side_affinity(halves, np.array([1.0, 3.0]))
    array([[0.25, 0.75],
           [0.75, 2.25]])
    """
    affinity = halves + halves.T
    affinity *= columns[:, None]
    affinity *= columns
    return affinity


def small_side_graph(blocks: list[BipartiteRows], n_columns: int) -> sparse.csr_array:
    """Return the affinity of the small side as a sparse graph.

    Parameters
    ----------
    blocks : list of BipartiteRows
        Rows of B, in order.
    n_columns : int
        Columns of B.

    Returns
    -------
    csr_array of shape (n_columns, n_columns)
        :math:`B^T D_X^{-1} B` with zeros on the diagonal, but for columns that share
        rows with no other.

    Notes
    -----
    Columns are then vertices as samples are in the similarity graph of a member. Where
    most rows are tied to one column above all, self-loops would outweigh the rest and
    leave all leading eigenvalues close to one.

    Examples
    --------
    >>> rows = BipartiteRows(np.array([[0, 2]]), np.array([[1.0, 3.0]]))
    >>> small_side_graph([rows], 3).toarray()
    array([[0.  , 0.  , 0.75],
           [0.  , 0.  , 0.  ],
           [0.75, 0.  , 0.  ]])
    """
    index = np.concatenate([block.index for block in blocks])
    weights = np.concatenate([block.weights for block in blocks])
    totals = weights.sum(axis=1, keepdims=True, dtype=np.float64)
    shares = np.divide(1.0, totals, out=np.zeros_like(totals), where=totals > 0)
    indptr = np.arange(0, index.size + 1, index.shape[1])
    own, scaled = (
        sparse.csr_array((each.ravel(), index.ravel(), indptr), (len(index), n_columns))
        for each in (weights, shares * weights)
    )
    graph = scaled.T.tocsr() @ own
    graph.eliminate_zeros()
    rows = row_numbers(graph)
    graph.data[(graph.indices == rows) & (np.diff(graph.indptr) > 1)[rows]] = 0.0
    graph.eliminate_zeros()
    graph.sort_indices()
    return graph


def small_side_vectors(
    affinity: Array | sparse.csr_array, n_vectors: int, rng: np.random.Generator
) -> Array:
    r"""Return what rows are multiplied by to be embedded, from the small side alone.

    Parameters
    ----------
    affinity : ndarray or csr_array of shape (n_columns, n_columns)
        :math:`W_Y`, from `small_side_affinity` or `small_side_graph`.
    n_vectors : int
        Dimension of the embedding.
    rng : Generator
        Start of the solver.

    Returns
    -------
    ndarray of shape (n_columns, n_vectors)
        :math:`G^{-1/2} V`, up to one factor.

    Notes
    -----
    Eigenvectors of a full matrix have residuals of 1e-6; those of a sparse one are
    computed in float32 as for a graph.
    """
    require_vectors(affinity.shape[0], n_vectors)
    degrees = np.asarray(affinity.sum(axis=1)).ravel()
    scale = 1.0 / np.sqrt(np.maximum(degrees, np.finfo(np.float64).tiny))
    component = connected_components(sparse.csr_array(affinity), directed=False)[1]
    known = degrees, component, n_vectors, rng
    if isinstance(affinity, np.ndarray):
        scaled = scale[:, None] * affinity * scale
        vectors = leading_vectors(scaled, *known, tol=1e-6, dense_order=DENSE_COLUMNS)
    else:
        vectors = sparse_leading_vectors(affinity, *known)
    scaled = np.where(degrees > 0.0, scale, 0.0)[:, None] * vectors
    return scaled / np.abs(scaled).max()


def unit_over_rows(vectors: Array, affinity: Array) -> Array:
    r"""Scale what rows are multiplied by to eigenvectors of unit length over the rows.

    Parameters
    ----------
    vectors : ndarray of shape (n_columns, n_vectors)
        From `small_side_vectors`, of unit length over the columns.
    affinity : ndarray of shape (n_columns, n_columns)
        :math:`W_Y` that they come from.

    Returns
    -------
    ndarray of shape (n_columns, n_vectors)
        Each divided by the length of :math:`D_X^{-1/2} B x`, whose square is
        :math:`x^T W_Y x`; zero where that has no digits.

    Notes
    -----
    An eigenvector of :math:`D_X^{-1/2} B G^{-1} B^T D_X^{-1/2}` follows from one of the
    small side by a product that shrinks it by the root of its eigenvalue.
    """
    squares = np.einsum("ij,ij->j", vectors, affinity @ vectors)
    found = squares > 1e-12 * squares.max()
    return vectors * np.where(found, 1.0 / np.sqrt(np.where(found, squares, 1.0)), 0.0)


def embed_rows(rows: BipartiteRows, vectors: Array) -> Array:
    r"""Return unit rows of :math:`D_X^{-1} B G^{-1/2} V`.

    Parameters
    ----------
    rows : BipartiteRows
        Rows of B.
    vectors : ndarray of shape (n_columns, n_vectors)
        From `small_side_vectors`.

    Returns
    -------
    ndarray of shape (n_rows, n_vectors)
        In the precision of the vectors.
    """
    from mdec.numerics.loops import landmarks

    out = np.empty((len(rows.index), vectors.shape[1]), dtype=vectors.dtype)
    landmarks.embed_rows(rows.index, rows.weights, vectors, out)
    return out


def nearest_centers(
    points: Any, centers: Any, shared: Array | None = None
) -> NDArray[np.int32]:
    """Return the nearest centre of each point, the first of equals.

    Points and centres are in one precision, arrays or both sparse; `shared` holds their
    products, where they are known.

    Examples
    --------
    >>> points = np.array([[0.1, 0.0], [3.0, 1.0]])
    >>> nearest_centers(points, np.array([[0.0, 0.0], [2.0, 2.0]]))
    array([0, 1], dtype=int32)
    """
    from mdec.numerics.loops import landmarks

    half_norms, others = 0.5 * squared_norms(centers), by_feature(centers)
    largest = float(half_norms.max())
    labels = np.empty(points.shape[0], dtype=np.int32)
    for start in range(0, labels.size, TILE):
        tile, part = points[start : start + TILE], labels[start : start + TILE]
        known = None if shared is None else shared[start : start + TILE]
        scores = half_norms - (products(tile, others) if known is None else known)
        if sparse.issparse(tile):
            part[:] = scores.argmin(axis=1)
        else:
            landmarks.nearest_column(scores, tile, centers, largest, part)
    return labels


def assign_rows(
    rows: BipartiteRows, vectors: Array, centers: Array
) -> NDArray[np.int32]:
    """Return the nearest centre of each row's embedding.

    Parameters
    ----------
    rows : BipartiteRows
        Rows of the graph.
    vectors : ndarray of shape (n_columns, n_vectors)
        From `small_side_vectors`.
    centers : ndarray of shape (n_clusters, n_vectors)
        Centres in the embedding.

    Returns
    -------
    ndarray of shape (n_rows,)
        Numbers of centres.
    """
    labels = np.empty(len(rows.index), dtype=np.int32)
    for start in range(0, len(labels), TILE):
        part = slice(start, start + TILE)
        tile = BipartiteRows(rows.index[part], rows.weights[part])
        labels[part] = nearest_centers(embed_rows(tile, vectors), centers)
    return labels
