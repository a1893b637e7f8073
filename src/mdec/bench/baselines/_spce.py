"""Self-paced clustering ensemble (SPCE)."""

from __future__ import annotations

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.csgraph import connected_components

from mdec._support.arrays import Array
from mdec._support.memory import require_memory
from mdec._support.random import RandomState
from mdec.bench.baselines._graphs import agreements
from mdec.bench.baselines._options import Labels, consensus_function
from mdec.ensemble import Ensemble
from mdec.numerics.affinity import leading_vectors
from mdec.numerics.eigen import block_width

# How certain a pair must be at each pace, and the updates made there at most.
PACES = ((0.9, 5), (0.8, 5), (0.7, 5), (0.6, 5), (0.5, 20))

# Sums of eigenvalues of the authors' code that count as too few or too many components.
_CONNECTED = 1e-9
_SCATTERED = 1e-11

_LEAST_ALPHA = 1e-12

# N x N arrays of doubles alive at the same time: S, W, sums over members, and others.
_MATRICES = 6

# Iterating is faster than LAPACK where so many products of the graph with the block of
# vectors take fewer multiplications than N^3.
_FEW_EDGES = 300

# Residuals of eigenvectors that are iterated, with eigenvalues scaled to [-1, 1].
_TOLERANCE = 1e-9


@consensus_function()
def spce(
    ensemble: Ensemble,
    n_clusters: int,
    *,
    threshold: float = 0.1,
    random_state: RandomState = None,  # noqa: ARG001
) -> Labels:
    r"""Learn a consensus graph from easy pairs to hard ones (SPCE).

    Parameters
    ----------
    n_clusters : int
        Number of components that the graph is driven to; the number that comes out can
        be smaller or larger, which is the method's own.
    threshold : float, default=0.1
        Entries of the graph below about this, t, are cut. The authors scan 0 to 0.9 and
        keep the best by the true classes; a fixed 0.1 is our choice.
    random_state : int, RandomState, Generator or None
        Not used: there is nothing random in it.

    Returns
    -------
    ndarray of shape (n_samples,)
        Connected components of the learned graph, numbered in the order of first
        samples.

    Notes
    -----
    With :math:`A_i` the 0/1 co-membership of member i, the objective is

    .. math:: \min_{S, W, \alpha} \sum_{i=1}^M \frac{1}{\alpha_i}
        \|W \circ (S - A_i)\|_F^2 - \lambda \|W\|_1 + \gamma \|S\|_0

    over S and W in [0, 1] and :math:`\alpha` in the simplex, where the Laplacian of S
    has rank N - K, S is 1 where all members join a pair and 0 where none does,
    :math:`\gamma = t^2 M^2`, and :math:`\lambda = 2 q (1 - q) M^2` with q falling from
    0.9 to 0.5. Updates are in closed form. The authors' code keeps all
    :math:`A_i`, O(N^2 M); here the sums over them come from the labels, O(N^2). Time is
    that of up to 40 eigenvalue problems of order N, O(N^3), or in proportion to the
    edges where the graph has few.

    References
    ----------
    P. Zhou, L. Du, X. Liu, Y.-D. Shen, M. Fan, X. Li, "Self-paced clustering ensemble",
    IEEE Transactions on Neural Networks and Learning Systems 32(4), 2021.
    """
    n_samples = ensemble.n_samples
    require_memory(
        _MATRICES * 8 * n_samples**2,
        f"SPCE of {n_samples} samples",
        "use fewer samples, or a method without an N x N matrix such as LWGP",
    )
    graph = consensus_graph(ensemble, n_clusters, threshold)
    components = connected_components(sparse.csr_array(graph), directed=False)[1]
    return np.asarray(components, dtype=np.int32)


def consensus_graph(ensemble: Ensemble, n_clusters: int, threshold: float) -> Array:
    r"""Return the learned graph S, whose components are the clusters, see `spce`.

    S is symmetric and in [0, 1]. An update is
    :math:`(Q - \rho \|y_p - y_q\|^2 / (2 W^2)) / \sum_i 1/\alpha_i`, with zeros below
    :math:`t M / (W \sqrt{\sum_i 1/\alpha_i})` and where no member joins a pair, and at
    most one.
    """
    n_members = len(ensemble)
    S = agreements(ensemble)
    S /= n_members
    apart, joined = S == 0.0, S == 1.0
    alpha = np.full(n_members, 1.0 / n_members)
    rho = 1.0
    _, Y = smallest_eigenvectors(S, n_clusters)
    for pace, n_updates in PACES:
        total = float((1.0 / alpha).sum())
        W = pair_weights(S, agreements(ensemble, 1.0 / alpha), total, n_members, pace)
        for update in range(n_updates):
            total = float((1.0 / alpha).sum())
            squares = (Y * Y).sum(axis=1)
            np.matmul(Y, Y.T, out=S)
            S *= 2.0
            S -= np.add.outer(squares, squares)
            np.minimum(S, 0.0, out=S)
            S *= 0.5 * rho
            S /= W
            S /= W
            S += agreements(ensemble, 1.0 / alpha)
            S /= total
            S[(threshold * n_members / np.sqrt(total) > S * W) | apart] = 0.0
            # At t = 0 a negative entry falls below the threshold as well.
            np.clip(S, 0.0, 1.0, out=S)
            S[joined] = 1.0
            before = Y
            values, Y = smallest_eigenvectors(S, n_clusters)
            alpha = member_weights(ensemble, S, W)
            if values[:-1].sum() > _CONNECTED:
                rho *= 2.0
            elif values.sum() < _SCATTERED:
                rho /= 2.0
                Y = before
            elif update > 0:
                break
    return S


def pair_weights(
    S: Array, Q: Array, total: float, n_members: int, pace: float
) -> Array:
    r"""Return how far each pair counts at a pace.

    :math:`W = \min(1, \lambda / (2 B))` with :math:`\lambda = 2 q (1 - q) M^2` and
    :math:`B = \sum_i (S - A_i)^2 / \alpha_i = S^2 \sum_i 1/\alpha_i - 2 S Q + Q`, where
    :math:`Q = \sum_i A_i / \alpha_i`.
    """
    spread = S * S * total
    spread -= 2.0 * S * Q
    spread += Q
    limit = pace * (1.0 - pace) * n_members**2
    np.maximum(spread, limit, out=spread)
    return np.divide(limit, spread, out=spread)


def member_weights(ensemble: Ensemble, S: Array, W: Array) -> Array:
    r"""Return the share of each member in the misfit.

    :math:`\alpha_i = \|W \circ (S - A_i)\|_F / \sum_j \|W \circ (S - A_j)\|_F`, and the
    square of a norm is the sum of :math:`W^2 S^2` over all pairs plus that of
    :math:`W^2 (1 - 2 S)` over the pairs that the member joins. A member equal to S gets
    a floor of 1e-12 instead of 0.
    """
    squared = W * W
    everywhere = np.einsum("ij,ij,ij->", squared, S, S)
    squared *= 1.0 - 2.0 * S
    clusters = ensemble.indicator().T.tocsr()
    inside = clusters.multiply(clusters @ squared).sum(axis=1)
    joined = np.add.reduceat(np.asarray(inside).ravel(), ensemble.offsets[:-1])
    misfits = np.sqrt(np.maximum(everywhere + joined, 0.0))
    if misfits.sum() == 0.0:
        return np.full(len(ensemble), 1.0 / len(ensemble))
    return np.maximum(misfits / misfits.sum(), _LEAST_ALPHA)


def smallest_eigenvectors(S: Array, n_vectors: int) -> tuple[Array, Array]:
    """Return the smallest eigenvalues of the Laplacian of S, and their eigenvectors.

    S is symmetric and non-negative. The values ascend, up to one past `n_vectors`; the
    last has no vector.
    """
    width = block_width(n_vectors + 1, len(S))
    if _FEW_EDGES * width * np.count_nonzero(S) < len(S) ** 3:
        found = _iterate(sparse.csr_array(S), n_vectors)
        if found is not None:
            return found
    try:
        return _decompose(S, n_vectors, "evr")
    except linalg.LinAlgError:
        # The fastest driver of LAPACK gives up on some graphs of equal eigenvalues.
        return _decompose(S, n_vectors, "evx")


def _iterate(graph: sparse.csr_array, n_vectors: int) -> tuple[Array, Array] | None:
    r"""Return the smallest eigenvalues and eigenvectors of a graph of few edges.

    None if they are not found in the rounds of the solver.

    They lead those of :math:`I - 2 L / b`, where no eigenvalue of L is above
    :math:`b = \max_i (d_i + \sum_j S_{ij} d_j / d_i)`. Vectors of the eigenvalue zero
    are constant on components, so that they are known.
    """
    component = connected_components(graph, directed=False)[1]
    degrees = np.asarray(graph.sum(axis=1)).ravel()
    tiny = np.finfo(np.float64).tiny
    bound = float((degrees + graph @ degrees / np.maximum(degrees, tiny)).max())
    graph.data *= 2.0 / bound
    diagonal = (1.0 - 2.0 / bound * degrees)[:, None]

    def apply(block: Array) -> Array:
        image: Array = graph @ block
        image += diagonal * block
        return image

    ones, start = np.ones(len(component)), np.random.default_rng(0)
    vectors = leading_vectors(
        apply, ones, component, n_vectors + 1, start, tol=_TOLERANCE
    )
    images = apply(vectors)
    values = np.einsum("ij,ij->j", vectors, images)
    residuals = np.linalg.norm(images - values * vectors, axis=0)
    if residuals.max() > 2.0 * _TOLERANCE:
        return None
    return 0.5 * bound * (1.0 - values), vectors[:, :n_vectors]


def _decompose(S: Array, n_vectors: int, driver: str) -> tuple[Array, Array]:
    laplacian = -S
    laplacian[np.diag_indices(len(S))] += S.sum(axis=1)
    values, vectors = linalg.eigh(
        # Symmetric, and in LAPACK's order of entries it is not copied.
        laplacian.T,
        subset_by_index=[0, n_vectors],
        overwrite_a=True,
        check_finite=False,
        driver=driver,
    )
    return values, vectors[:, :n_vectors]
