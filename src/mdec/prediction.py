"""Clusters of new rows from a fitted ensemble."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdec._support.parallel import map_ordered
from mdec.base.kernels import (
    ANGULAR,
    RELATIVE_FLOOR,
    angular_coordinates,
    scaled_exponential_similarity,
    scaled_gaussian_similarity,
    scaling_term,
)
from mdec.base.landmarks import fitted_landmarks, tied_block
from mdec.coassociation import coassociation_factor, degree_scaled
from mdec.confidence import cluster_profiles
from mdec.ensemble import Ensemble, Member
from mdec.plan import member_features

Array = NDArray[np.floating]
Labels = NDArray[np.integer]

# Old rows whose median neighbour distance sets the floor of the kernel's scale.
N_PROBES = 256


def predict_base_clusters(
    X: Array, X_new: Array, ensemble: Ensemble, *, n_jobs: int | None = None
) -> NDArray[np.int32]:
    """Return the base cluster of each new row in each member.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The rows that the ensemble was made from.
    X_new : ndarray of shape (n_new, n_features)
        New rows.
    ensemble : Ensemble
        Made by `generate_ensemble` from X.
    n_jobs : int, default=None
        Members asked at the same time; changes no label.

    Returns
    -------
    ndarray of shape (n_new, n_members)
        Labels of the same clusters as in ``ensemble.labels``.

    Notes
    -----
    In a member's subspace a new row joins the base cluster with the largest summed
    similarity among its k nearest training rows, with the member's own kernel.
    """
    ask = partial(_ask_member, X=X, X_new=X_new, ensemble=ensemble)
    columns = map_ordered(ask, range(len(ensemble)), n_jobs=n_jobs)
    return np.stack(list(columns), axis=1)


def assign_to_clusters(
    base: NDArray[np.int32],
    ensemble: Ensemble,
    labels: Labels,
    weights: Array,
    *,
    by_degree: bool = False,
) -> NDArray[np.int32]:
    r"""Return the consensus cluster of rows whose base clusters are known.

    Parameters
    ----------
    base : ndarray of shape (n_new, n_members)
        Base cluster of each row in each member.
    ensemble : Ensemble
        The base clusterings of the training rows.
    labels : ndarray of shape (n_samples,)
        Consensus cluster of each training row.
    weights : ndarray of shape (n_base_clusters,)
        Weight of each base cluster.
    by_degree : bool, default=False
        Divide the co-association with a training row by the root of that row's
        degree, as the spectral and the bipartite consensus do.

    Returns
    -------
    ndarray of shape (n_new,)
        The cluster k with the largest mean association
        :math:`\frac{1}{|k|} F_{new} \cdot \sum_{j \in k} F_j`.

    Notes
    -----
    Average linkage compares mean co-associations, so they place new rows as it would.
    The other two consensus functions see :math:`D^{-1/2} A D^{-1/2}` with the degrees
    :math:`D_{jj} = \sum_i A_{ij}`; the means are then those of
    :math:`A_{new,j} / \sqrt{D_{jj}}`.
    """
    factor = coassociation_factor(ensemble, weights)
    sizes = np.bincount(labels)[:, None]
    if by_degree:
        factor = degree_scaled(factor, factor.T @ np.ones(ensemble.n_samples))
    means = cluster_profiles(factor, labels) / sizes
    return nearest_profiles(base, ensemble.offsets, means, weights)


def nearest_profiles(
    base: NDArray[np.int32], offsets: NDArray[np.int64], means: Array, weights: Array
) -> NDArray[np.int32]:
    """Return the cluster with the largest mean association to each row.

    Parameters
    ----------
    base : ndarray of shape (n_new, n_members)
        Base cluster of each row in each member.
    offsets : ndarray of shape (n_members + 1,)
        Number of the first cluster of each member, and of all clusters.
    means : ndarray of shape (n_clusters, n_base_clusters)
        Mean of the co-association's factor over each cluster.
    weights : ndarray of shape (n_base_clusters,)
        Weight of each base cluster.

    Returns
    -------
    ndarray of shape (n_new,)
        Clusters.
    """
    columns = (base + offsets[:-1]).ravel()
    indptr = np.arange(len(base) + 1) * base.shape[1]
    values = np.sqrt(weights[columns] / base.shape[1])
    shape = (len(base), int(offsets[-1]))
    rows = sparse.csr_array((values, columns, indptr), shape=shape)
    return np.asarray(rows @ means.T).argmax(axis=1).astype(np.int32)


def predict_landmark_clusters(
    pool: Array,
    labels: NDArray[np.int32],
    X_new: Array,
    members: Sequence[Member],
    spec: dict[str, Any],
    *,
    n_jobs: int | None = None,
) -> NDArray[np.int32]:
    """Return the base cluster of each new row in each landmark member.

    Parameters
    ----------
    pool : ndarray of shape (n_pool, n_features)
        The rows that landmarks were drawn from.
    labels : ndarray of shape (n_pool, n_members)
        Their base clusters.
    X_new : ndarray of shape (n_new, n_features)
        New rows.
    members : sequence of Member
        How each column was made.
    spec : dict
        ``ensemble.parameters``.
    n_jobs : int, default=None
        Members asked at the same time; changes no label.

    Returns
    -------
    ndarray of shape (n_new, n_members)
        Labels of the same clusters as in the ensemble.

    Notes
    -----
    A member's landmarks are derived again from its seed. A new row joins the base
    cluster with the largest summed similarity, through its nearest landmarks, to the
    rows that the member drew.
    """
    ask = partial(_ask_landmarks, members=members, spec=spec)
    columns = map_ordered(
        ask, range(len(members)), shared=(pool, labels, X_new), n_jobs=n_jobs
    )
    return np.stack(list(columns), axis=1)


def _ask_landmarks(
    index: int,
    pool: Array,
    labels: NDArray[np.int32],
    X_new: Array,
    members: Sequence[Member],
    spec: dict[str, Any],
) -> NDArray[np.int32]:
    member = members[index]
    features = member_features(member, spec)
    landmarks, drawn, sample = fitted_landmarks(pool, member, features, spec)
    n_clusters = int(labels[:, index].max()) + 1
    own = labels[drawn, index]
    votes = np.zeros((len(landmarks.rho), n_clusters))
    shares = sample.weights / sample.weights.sum(axis=1, keepdims=True)
    np.add.at(votes, (sample.index, own[:, None]), shares)
    votes /= np.maximum(votes.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    new = tied_block(X_new, landmarks)
    found = np.einsum("ik,ikc->ic", new.weights, votes[new.index])
    return found.argmax(axis=1).astype(np.int32)


def _ask_member(
    index: int, X: Array, X_new: Array, ensemble: Ensemble
) -> NDArray[np.int32]:
    member, spec = ensemble.members[index], ensemble.parameters
    features = member_features(member, spec)
    old, new = X[:, features], X_new[:, features]
    if spec["kernel"] in ANGULAR:
        both = angular_coordinates(np.concatenate([old, new]), spec["kernel"])
        old, new = both[: len(old)], both[len(old) :]
    neighbors, similarity = _nearest_similarities(old, new, member, spec)
    votes = sparse.coo_array(
        (
            similarity.ravel(),
            (
                np.repeat(np.arange(len(new)), neighbors.shape[1]),
                ensemble.labels[neighbors, index].ravel(),
            ),
        ),
        shape=(len(new), int(ensemble.cluster_counts[index])),
    )
    return votes.toarray().argmax(axis=1).astype(np.int32)


def _nearest_similarities(
    old: Array, new: Array, member: Member, spec: dict[str, Any]
) -> tuple[NDArray[np.int64], Array]:
    """Return the k nearest old rows of each new row, and their similarities."""
    # Not needed to fit, and slow to load.
    from sklearn.neighbors import NearestNeighbors

    k = member.n_neighbors
    search = NearestNeighbors(algorithm="brute").fit(old)
    distance, neighbors = search.kneighbors(new, k)
    if spec["kernel"] in ANGULAR:
        return neighbors, np.maximum(1.0 - 0.5 * distance**2, 0.0)
    squared = spec["kernel"] == "scaled_gaussian"
    if squared:
        distance = distance**2
    # The floor comes from fixed old rows: a new row must not depend on its company.
    probes = np.linspace(0, len(old) - 1, min(len(old), N_PROBES)).astype(np.int64)
    asked = np.union1d(neighbors, probes)
    means = _neighbor_means(search, old, asked, k, squared=squared)
    typical = means[np.searchsorted(asked, probes)]
    floor = RELATIVE_FLOOR * np.median(typical[typical > 0.0]) if typical.any() else 1.0
    scale = scaling_term(
        distance,
        np.maximum(distance.mean(axis=1, keepdims=True), floor),
        np.maximum(means, floor)[np.searchsorted(asked, neighbors)],
    )
    kernel = scaled_gaussian_similarity if squared else scaled_exponential_similarity
    return neighbors, _or_nearest(kernel(distance, scale, member.mu), distance)


def _neighbor_means(
    search: Any,
    old: Array,
    rows: NDArray[np.int64],
    n_neighbors: int,
    *,
    squared: bool,
) -> Array:
    """Return the mean distance of old rows to their k nearest other old rows."""
    distance, index = search.kneighbors(old[rows], n_neighbors + 1)
    if squared:
        distance = distance**2
    itself = index == rows[:, None]
    # Among many copies a row may be missing from its own list; then the last goes.
    itself[~itself.any(axis=1), -1] = True
    return distance[~itself].reshape(len(rows), n_neighbors).mean(axis=1)


def _or_nearest(similarity: Array, distance: Array) -> Array:
    """Let the nearest rows decide where every similarity has vanished."""
    lost = similarity.sum(axis=1) == 0.0
    similarity[lost] = 1.0 / (1.0 + distance[lost])
    return similarity
