"""The weighted co-association of samples, Eqs. 20 to 23, mostly in factored form."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import squareform

from mdec._support.arrays import Array, namespace
from mdec._support.memory import require_memory
from mdec.ensemble import DistributedEnsemble, Ensemble, membership
from mdec.weights import ensemble_driven_cluster_index


def coassociation_factor(ensemble: Ensemble, weights: Array) -> sparse.csr_array:
    r"""Return the sparse factor F of the co-association :math:`A = F F^T`.

    Parameters
    ----------
    ensemble : Ensemble
        The base clusterings.
    weights : ndarray of shape (n_base_clusters,)
        Weight of each base cluster.

    Returns
    -------
    csr_array of shape (n_samples, n_base_clusters)
        :math:`F = Z\,diag(\sqrt{w / M})`. The row of a sample that only a share f of
        the members cluster is divided by :math:`\sqrt f`; what pairs of such samples
        share is then :math:`F F^T` over that of `presence_rows`.
    """
    return factor_rows(ensemble.labels, ensemble.offsets, weights)


def factor_rows(
    labels: NDArray[np.int32], offsets: NDArray[np.int64], weights: Array
) -> sparse.csr_array:
    """Return the factor's rows of some samples, as in `coassociation_factor`.

    Labels, (n_rows, n_members), are -1 where a member leaves a sample out; `offsets`
    has the number of the first cluster of each member, and of all clusters.
    """
    factor = membership(labels, offsets)
    n_present = np.diff(factor.indptr)
    data = np.sqrt(weights)[factor.indices] / np.sqrt(np.repeat(n_present, n_present))
    return sparse.csr_array((data, factor.indices, factor.indptr), shape=factor.shape)


def rows_on_device(ensemble: Ensemble, columns: Array, device: str) -> Any:
    """Return the memberships on a device, times columns; None where each block is."""
    if device == "cpu" or isinstance(ensemble, DistributedEnsemble):
        return None
    from mdec.engines import tensors

    place = tensors.find_device(device)
    return tensors.LabelRows(ensemble.labels, ensemble.offsets, columns, place)


def presence_rows(labels: NDArray[np.int32], complete: bool = False) -> Array:
    r"""Return in which members samples are, as rows of unit length.

    Of labels, (n_rows, n_members), that are -1 where a member leaves a sample out; one
    column of ones if `complete`, where none does.

    Notes
    -----
    With :math:`n_i` members that cluster sample i, and :math:`n_{ij}` that cluster both
    i and j, the rows P have :math:`(P P^T)_{ij} = n_{ij} / \sqrt{n_i n_j}`.
    """
    if complete:
        return np.ones((len(labels), 1))
    present = (labels >= 0).astype(np.float64)
    present /= np.sqrt(np.maximum(present.sum(axis=1, keepdims=True), 1.0))
    return present


def divide_by_presence(sums: Array, draws: Array) -> Array:
    """Divide what pairs share by how often both were there; 0 where they never were.

    Examples
    --------
    >>> divide_by_presence(np.array([0.2, 0.0]), np.array([0.5, 0.0]))
    array([0.4, 0. ])
    """
    xp: Any = namespace(sums)
    shares: Array = xp.where(draws > 0.0, sums / xp.where(draws > 0.0, draws, 1.0), 0.0)
    return shares


def locally_weighted_coassociation(
    ensemble: Ensemble, weights: Array | None = None
) -> Array:
    r"""Return the locally weighted co-association matrix, for few samples.

    Parameters
    ----------
    ensemble : Ensemble
        The base clusterings.
    weights : ndarray of shape (n_base_clusters,), optional
        Weight of each base cluster; None for the ECI.

    Returns
    -------
    ndarray of shape (n_samples, n_samples)
        Symmetric, in [0, 1], ones on the diagonal.

    Notes
    -----
    Eqs. 20 to 23: :math:`A_{ij} = \frac{1}{M} \sum_m w(C) [x_i, x_j \in C \in \pi^m]`.
    Where members leave samples out, M counts those that cluster both i and j, as in
    Monti's consensus matrix; a pair that no member clusters has 0. The consensus
    functions do not need this matrix; it is for looking at.

    Examples
    --------
    >>> ensemble = Ensemble.from_labels([[0, 0], [0, 1], [1, 1]])
    >>> locally_weighted_coassociation(ensemble, np.ones(4))
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0.5],
           [0. , 0.5, 1. ]])
    """
    from mdec.numerics.loops.linkage import products_of_pairs

    if weights is None:
        weights = ensemble_driven_cluster_index(ensemble)
    n_samples = ensemble.n_samples
    require_memory(
        2 * 8 * n_samples**2,
        f"the {n_samples} x {n_samples} co-association matrix",
        "the consensus functions work without it",
    )
    factor = coassociation_factor(ensemble, weights)
    present = None if ensemble.is_complete else presence_rows(ensemble.labels)
    pairs = products_of_pairs(factor, np.float64, present)
    dense: Array = squareform(np.minimum(pairs, 1.0, out=pairs), checks=False)
    np.fill_diagonal(dense, 1.0)
    return dense
