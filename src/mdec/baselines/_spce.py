"""Self-paced clustering ensemble (SPCE)."""

from __future__ import annotations

from numbers import Real
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse.csgraph import connected_components
from sklearn.utils._param_validation import Interval

from mdec._support.memory import require_memory
from mdec._support.random import RandomState
from mdec.baselines._estimator import Baseline, documented, estimator_of
from mdec.consensus.partitions import trivial_partition
from mdec.ensemble import Ensemble

Array = NDArray[np.floating]

# How sure a pair must be at each pace, and the updates made there at most.
PACES = ((0.9, 5), (0.8, 5), (0.7, 5), (0.6, 5), (0.5, 20))

# Sums of eigenvalues of the authors' code that count as too few or too many components.
_CONNECTED = 1e-9
_SCATTERED = 1e-11

_LEAST_ALPHA = 1e-12

# N x N arrays of doubles alive at the same time, with the work space of LAPACK.
_MATRICES = 9


@documented()
def spce(
    ensemble: Ensemble,
    n_clusters: int,
    *,
    threshold: float = 0.1,
    random_state: RandomState = None,  # noqa: ARG001
) -> NDArray[np.int32]:
    r"""Learn a consensus graph from easy pairs to hard ones (SPCE).

    Parameters
    ----------
    n_clusters : int
        Number of components that the graph is driven to; the number that comes out can
        be smaller or larger, which is the method's own.
    threshold : float, default=0.1
        Entries of the graph below about this, t, are cut. The authors scan 0 to 0.9 and
        keep the best by the true classes; a fixed 0.1 is our choice.

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
    that of up to 40 eigenvalue problems of order N, O(N^3).

    References
    ----------
    P. Zhou, L. Du, X. Liu, Y.-D. Shen, M. Fan, X. Li, "Self-paced clustering ensemble",
    IEEE Transactions on Neural Networks and Learning Systems 32(4), 2021.
    """
    if (trivial := trivial_partition(ensemble, n_clusters)) is not None:
        return trivial
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
    """Return the learned graph S, whose components are the clusters, see `spce`.

    S is symmetric and in [0, 1].
    """
    n_members = len(ensemble)
    S: Array = _agreement(ensemble, np.ones(n_members)) / n_members
    joined, apart = S == 1.0, S == 0.0
    alpha = np.full(n_members, 1.0 / n_members)
    rho = 1.0
    _, Y = smallest_eigenvectors(S, n_clusters)
    for pace, n_updates in PACES:
        Q = _agreement(ensemble, 1.0 / alpha)
        W = pair_weights(S, Q, float((1.0 / alpha).sum()), n_members, pace)
        for update in range(n_updates):
            total = float((1.0 / alpha).sum())
            S = _thresholded(Q, W, Y, rho, total, threshold * n_members)
            S[joined] = 1.0
            S[apart] = 0.0
            S = 0.5 * (S + S.T)
            before = Y
            values, Y = smallest_eigenvectors(S, n_clusters)
            alpha = member_weights(ensemble, S, W)
            Q = _agreement(ensemble, 1.0 / alpha)
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
    spread = S * S * total - 2.0 * S * Q + Q
    limit = pace * (1.0 - pace) * n_members**2
    return np.where(spread > limit, limit / np.where(spread > limit, spread, 1.0), 1.0)


def member_weights(ensemble: Ensemble, S: Array, W: Array) -> Array:
    r"""Return the share of each member in the misfit.

    :math:`\alpha_i = \|W \circ (S - A_i)\|_F / \sum_j \|W \circ (S - A_j)\|_F`, and the
    square of a norm is the sum of :math:`W^2 S^2` over all pairs plus that of
    :math:`W^2 (1 - 2 S)` over the pairs that the member joins. A member equal to S gets
    a floor of 1e-12 instead of 0.
    """
    from mdec.baselines import _loops

    squared = W * W
    everywhere = float((squared * S * S).sum())
    squared *= 1.0 - 2.0 * S
    inside = _loops.sums_within_members(ensemble.labels, squared)
    misfits = np.sqrt(np.maximum(everywhere + inside, 0.0))
    if misfits.sum() == 0.0:
        return np.full(len(ensemble), 1.0 / len(ensemble))
    return np.maximum(misfits / misfits.sum(), _LEAST_ALPHA)


def smallest_eigenvectors(S: Array, n_vectors: int) -> tuple[Array, Array]:
    """Return the smallest eigenvalues of the Laplacian of S, and their eigenvectors.

    S is symmetric and non-negative. The values ascend, up to one past `n_vectors`; the
    last has no vector.
    """
    try:
        values, vectors = _eigh(S, n_vectors, "evr")
    except linalg.LinAlgError:
        # The fastest driver of LAPACK gives up on some graphs of equal eigenvalues.
        values, vectors = _eigh(S, n_vectors, "evx")
    return values, vectors[:, :n_vectors]


def _eigh(S: Array, last: int, driver: str) -> tuple[Array, Array]:
    laplacian = -S
    laplacian[np.diag_indices(len(S))] += S.sum(axis=1)
    values, vectors = linalg.eigh(
        laplacian,
        subset_by_index=[0, last],
        overwrite_a=True,
        check_finite=False,
        driver=driver,
    )
    return values, vectors


def _agreement(ensemble: Ensemble, weights: Array) -> Array:
    from mdec.baselines import _loops

    out = np.empty((ensemble.n_samples, ensemble.n_samples))
    _loops.weighted_agreement(ensemble.labels, weights, out)
    return out


def _thresholded(
    Q: Array, W: Array, Y: Array, rho: float, total: float, level: float
) -> Array:
    r"""Return the update of S before its constraints.

    :math:`C = (Q - \rho \|y_p - y_q\|^2 / (2 W^2)) / \sum_i 1/\alpha_i`, zero below
    :math:`t M / (W \sqrt{\sum_i 1/\alpha_i})` and at most one.
    """
    squares = (Y * Y).sum(axis=1)
    S = Y @ Y.T
    S *= -2.0
    S += squares
    S += squares[:, None]
    np.maximum(S, 0.0, out=S)
    S *= -0.5 * rho
    S /= W
    S /= W
    S += Q
    S /= total
    weak = level / np.sqrt(total) > S * W
    S[weak] = 0.0
    # At t = 0 a negative entry falls below the threshold as well.
    np.clip(S, 0.0, 1.0, out=S)
    return S


@estimator_of(spce)
class SPCE(Baseline):
    """Self-paced clustering ensemble."""

    threshold: Annotated[float, Interval(Real, 0, 1, closed="both")] = 0.1
