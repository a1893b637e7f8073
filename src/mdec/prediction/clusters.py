"""New rows in consensus clusters, by the base clusters that members gave them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdec._support.parallel import single_threaded_blas
from mdec.coassociation import factor_rows
from mdec.confidence import confidence
from mdec.prediction.asking import predict_base_clusters
from mdec.prediction.placement import JoinedPlacement, Placement

Array = NDArray[np.floating]


def placed(
    X_new: Any, placement: Placement, *, n_jobs: int | None = None
) -> NDArray[np.int32]:
    """Return the consensus clusters of new rows.

    Parameters
    ----------
    X_new : ndarray or sparse of shape (n_new, n_features)
        New rows.
    placement : Placement
        What to place them by.
    n_jobs : int, default=None
        Members asked at the same time; changes no label.

    Returns
    -------
    ndarray of shape (n_new,)
        Clusters.
    """
    base = predict_base_clusters(X_new, placement, n_jobs=n_jobs)
    with single_threaded_blas():
        return nearest_profiles(
            base, placement.offsets, placement.means, placement.weights
        )


def held_new_rows(
    base: NDArray[np.int32],
    clusters: NDArray[np.int32],
    placement: Placement | JoinedPlacement,
) -> Array:
    """Return how firmly the ensemble holds new rows in their clusters.

    `mdec.confidence.confidence` of their mean co-associations with the clusters.

    Parameters
    ----------
    base : ndarray of shape (n_new, n_members)
        Base cluster of each new row in each member.
    clusters : ndarray of shape (n_new,)
        The rows' consensus clusters.
    placement : Placement or JoinedPlacement
        What they were placed by.

    Returns
    -------
    ndarray of shape (n_new,)
        In [0, 1].
    """
    return confidence(new_associations(base, placement), clusters)


def new_associations(
    base: NDArray[np.int32], placement: Placement | JoinedPlacement
) -> Array:
    """Return the mean co-association of new rows with every cluster, in [0, 1].

    Parameters
    ----------
    base : ndarray of shape (n_new, n_members)
        Base cluster of each new row in each member.
    placement : Placement or JoinedPlacement
        What they are placed by.

    Returns
    -------
    ndarray of shape (n_new, n_clusters)
        As `mdec.confidence.item_consensus` has it for training rows.
    """
    factor = factor_rows(base, placement.offsets, placement.weights)
    association: Array = np.clip(factor @ placement.plain_means.T, 0.0, 1.0)
    return association


def nearest_profiles(
    base: NDArray[np.int32], offsets: NDArray[np.int64], means: Array, weights: Array
) -> NDArray[np.int32]:
    r"""Return the cluster with the largest mean association to each row.

    Parameters
    ----------
    base : ndarray of shape (n_new, n_members)
        Base cluster of each row in each member.
    offsets : ndarray of shape (n_members + 1,)
        Number of the first cluster of each member, and of all clusters.
    means : ndarray of shape (n_clusters, n_base_clusters)
        Mean of the co-association's factor over each cluster, from
        `mdec.confidence.mean_profiles`.
    weights : ndarray of shape (n_base_clusters,)
        Weight of each base cluster.

    Returns
    -------
    ndarray of shape (n_new,)
        The cluster k with the largest :math:`F_{new} \cdot \bar F_k`.

    Notes
    -----
    Average linkage compares mean co-associations, so they place new rows as it would.
    The other two consensus functions see :math:`D^{-1/2} A D^{-1/2}` with the degrees
    :math:`D_{jj} = \sum_i A_{ij}`; the means are then those of
    :math:`A_{new,j} / \sqrt{D_{jj}}`.
    """
    columns = (base + offsets[:-1]).ravel()
    indptr = np.arange(len(base) + 1) * base.shape[1]
    values = np.sqrt(weights[columns] / base.shape[1])
    shape = (len(base), int(offsets[-1]))
    rows = sparse.csr_array((values, columns, indptr), shape=shape)
    return np.asarray(rows @ means.T).argmax(axis=1).astype(np.int32)
