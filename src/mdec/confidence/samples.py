"""Consensus and confidence of samples, and what follows for their labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdec.coassociation import factor_rows, presence_rows, shared
from mdec.confidence.profiles import Profiles, cluster_indicator, summed_profiles
from mdec.ensemble import Ensemble, LabelBlocks
from mdec.weights import weights_of_view

Array = NDArray[np.floating]
Labels = NDArray[np.integer]

# Below this confidence the best rival holds a sample at least two thirds as firmly
# as its own cluster.
AMBIGUOUS = 0.6

# Less than the presence that two samples can share.
_ROUNDING = 1e-9


def held_samples(
    ensemble: LabelBlocks, clusters: list[Any], weights: Array, profiles: Profiles
) -> list[Any]:
    """Return how firmly each sample is held by its cluster, block by block.

    These are handles of the confidences of each block, as `confidence` defines them.
    """
    return _over_blocks(_confidence, ensemble, clusters, weights, profiles)


def _over_blocks(
    func: Callable[..., Array],
    ensemble: LabelBlocks,
    clusters: list[Any],
    weights: Array,
    profiles: Profiles,
) -> list[Any]:
    sums = profiles.sums, profiles.sizes, profiles.present
    settings = *sums, ensemble.offsets, weights
    pairs = zip(ensemble.parts, clusters, strict=True)
    return [ensemble.worker.call(func, *each, *settings) for each in pairs]


def _item_consensus(
    labels: NDArray[np.int32],
    clusters: Labels,
    sums: Array,
    sizes: Array,
    present: Array | None,
    offsets: NDArray[np.int64],
    weights: Array,
) -> Array:
    factor = factor_rows(labels, offsets, weights)
    draws = None if present is None else presence_rows(labels) @ present.T
    return associations(factor, clusters, sums, sizes, draws)


def _confidence(labels: NDArray[np.int32], clusters: Labels, *settings: Any) -> Array:
    return confidence(_item_consensus(labels, clusters, *settings), clusters)


def item_consensus(ensemble: Ensemble, labels: Labels, weights: Array) -> Array:
    r"""Return the mean co-association of every sample with every cluster, in [0, 1].

    A sample is left out of the mean of its own cluster; one that is alone in its
    cluster has 1 there. Clusters count from 0 with none left out; the result has shape
    (n_samples, n_clusters).

    Parameters
    ----------
    ensemble : Ensemble
        The base clusterings.
    labels : ndarray of shape (n_samples,)
        Consensus cluster of each sample.
    weights : ndarray of shape (n_base_clusters,)
        Weight of each base cluster.

    Returns
    -------
    ndarray of shape (n_samples, n_clusters)
        Mean co-association of each sample with each cluster.

    Notes
    -----
    :math:`m_i(k) = \frac{1}{|k \setminus i|} \sum_{j \in k, j \ne i} A_{ij}`. With
    :math:`A = F F^T` the sum is :math:`F_i \cdot \sum_{j \in k} F_j`, less
    :math:`F_i \cdot F_i` in the own cluster, so no N x N array is needed. Where members
    leave samples out, pairs count by how often both were there: the mean of
    :math:`A_{ij}` has the weights :math:`n_{ij} / \sqrt{n_i n_j}`, with
    :math:`n_{ij}` members that cluster both. A sample that no member clusters together
    with any of a cluster has 0 there.

    Examples
    --------
    >>> ensemble = Ensemble.from_labels([[0, 0], [0, 0], [1, 0], [1, 1]])
    >>> item_consensus(ensemble, np.array([0, 0, 1, 1]), np.ones(4))
    array([[1.  , 0.25],
           [1.  , 0.25],
           [0.5 , 0.5 ],
           [0.  , 0.5 ]])
    """
    clusters = ensemble.split(labels)
    profiles = summed_profiles(ensemble, clusters, weights, int(labels.max()) + 1)
    parts = _over_blocks(_item_consensus, ensemble, clusters, weights, profiles)
    return ensemble.joined(parts)


def associations(
    factor: sparse.csr_array,
    labels: Labels,
    profiles: Array,
    sizes: Array,
    draws: Array | None = None,
) -> Array:
    """Return the mean co-association of some samples with every cluster.

    From rows of F, their consensus clusters, and the sums of F over the clusters and
    their sizes, all samples counted; as in `item_consensus`. Where members leave
    samples out, `draws` are the products of the rows of presence with their sums over
    the clusters, (n_rows, n_clusters).
    """
    sums: Array = factor @ profiles.T
    samples = np.arange(len(labels))
    alone = sizes[labels] == 1.0
    own = sums[samples, labels] - np.asarray(factor.power(2).sum(axis=1)).ravel()
    association: Array
    if draws is None:
        association = sums / sizes
        others = own / np.maximum(sizes[labels] - 1.0, 1.0)
    else:
        # Rows of presence have unit length; what is left of less than a pair that
        # shares one member is rounding.
        association = shared(sums, draws)
        rest = draws[samples, labels] - 1.0
        others = shared(own, np.where(rest > _ROUNDING, rest, 0.0))
    association[samples, labels] = np.where(alone, 1.0, others)
    return np.clip(association, 0.0, 1.0)


def cluster_consensus(association: Array, labels: Labels) -> Array:
    """Return the mean co-association inside each cluster, from the item consensus.

    :math:`m(k)`, the mean of :math:`A_{ij}` over the pairs in k; 1 for a cluster of one
    sample.

    Parameters
    ----------
    association : ndarray of shape (n_samples, n_clusters)
        Mean co-association of each sample with each cluster, as from `item_consensus`.
    labels : ndarray of shape (n_samples,)
        Cluster of each sample.

    Returns
    -------
    ndarray of shape (n_clusters,)
        Mean co-association within each cluster.

    Examples
    --------
    >>> association = np.array([[0.8, 0.1], [0.6, 0.2], [0.0, 1.0]])
    >>> cluster_consensus(association, np.array([0, 0, 1]))
    array([0.7, 1. ])
    """
    own = association[np.arange(len(labels)), labels]
    return np.bincount(labels, own) / np.bincount(labels)


def view_associations(
    ensemble: Ensemble, labels: Labels, weights: Array
) -> list[Array]:
    """Return the item consensus of each view of a joined ensemble by itself."""
    return [
        item_consensus(
            ensemble.view(number), labels, weights_of_view(ensemble, weights, number)
        )
        for number in range(len(ensemble.views))
    ]


def cluster_support(association: Array, labels: Labels) -> Array:
    r"""Return how firmly clusters are held together, each against its nearest rival.

    From the item consensus: :math:`m(k) / (m(k) + \max_{l \ne k} m(k, l))`, with the
    mean co-associations m(k) inside a cluster and m(k, l) of its samples with those of
    another one. 1 without a rival, 0.5 where samples of a rival are as near.

    Parameters
    ----------
    association : ndarray of shape (n_samples, n_clusters)
        Mean co-association of each sample with each cluster, as from `item_consensus`.
    labels : ndarray of shape (n_samples,)
        Cluster of each sample.

    Returns
    -------
    ndarray of shape (n_clusters,)
        In [0, 1].

    Examples
    --------
    >>> association = np.array([[0.8, 0.1], [0.4, 0.3], [0.0, 1.0]])
    >>> cluster_support(association, np.array([0, 0, 1]))
    array([0.75, 1.  ])
    """
    n_clusters = association.shape[1]
    means = cluster_indicator(labels, n_clusters) @ association
    means /= np.bincount(labels, minlength=n_clusters)[:, None]
    return confidence(means, np.arange(n_clusters))


def second_choice(association: Array, labels: Labels) -> NDArray[np.int32]:
    """Return the best other cluster of each sample, -1 if there is only one cluster.

    Parameters
    ----------
    association : ndarray of shape (n_samples, n_clusters)
        Mean co-association of each sample with each cluster, as from `item_consensus`.
    labels : ndarray of shape (n_samples,)
        Cluster of each sample.

    Returns
    -------
    ndarray of shape (n_samples,)
        Number of the best other cluster.

    Examples
    --------
    >>> second_choice(np.array([[0.9, 0.1, 0.2]]), np.array([0]))
    array([2], dtype=int32)
    """
    if association.shape[1] == 1:
        return np.full(len(labels), -1, dtype=np.int32)
    rivals = association.copy()
    rivals[np.arange(len(labels)), labels] = -1.0
    return rivals.argmax(axis=1).astype(np.int32)


def confidence(association: Array, labels: Labels) -> Array:
    r"""Return how firmly each sample is held by its own cluster.

    From the item consensus: :math:`m_i(own) / (m_i(own) + \max_{k \ne own} m_i(k))`, in
    [0, 1]: 1 without a rival, 0.5 between two clusters, below it where a rival holds
    the sample more firmly; 0.5 where no cluster holds it at all.

    Parameters
    ----------
    association : ndarray of shape (n_samples, n_clusters)
        Mean co-association of each sample with each cluster, as from `item_consensus`.
    labels : ndarray of shape (n_samples,)
        Cluster of each sample.

    Returns
    -------
    ndarray of shape (n_samples,)
        In [0, 1].

    Examples
    --------
    >>> confidence(np.array([[0.9, 0.1], [0.4, 0.4]]), np.array([0, 1]))
    array([0.9, 0.5])
    """
    samples = np.arange(len(labels))
    own = association[samples, labels]
    rival = association[samples, second_choice(association, labels)]
    if association.shape[1] == 1:
        rival = np.zeros_like(own)
    total = own + rival
    return np.where(total > 0.0, own / np.where(total > 0.0, total, 1.0), 0.5)


def memberships(association: Array) -> Array:
    r"""Return how far each sample belongs to each cluster; rows add up to one.

    From the item consensus: :math:`m_i(k) / \sum_l m_i(l)`, and equal shares where no
    cluster holds a sample at all.

    Parameters
    ----------
    association : ndarray of shape (n_samples, n_clusters)
        Mean co-association of each sample with each cluster, as from `item_consensus`.

    Returns
    -------
    ndarray of shape (n_samples, n_clusters)
        Shares of each sample.

    Examples
    --------
    >>> memberships(np.array([[0.6, 0.2], [0.0, 0.0]]))
    array([[0.75, 0.25],
           [0.5 , 0.5 ]])
    """
    totals = association.sum(axis=1, keepdims=True)
    held = totals > 0.0
    shares = association / np.where(held, totals, 1.0)
    return np.where(held, shares, 1.0 / association.shape[1])


def firm_labels(labels: Any, confidences: Any, least: float | None) -> Any:
    """Return the labels with -1 where the confidence is below a level; None keeps all.

    Examples
    --------
    >>> firm_labels(np.array([0, 1, 0]), np.array([0.9, 0.4, 0.6]), 0.6)
    array([ 0, -1,  0])
    """
    if least is None:
        return labels
    # Times a truth value instead of a choice, which Dask arrays do as well.
    return (labels + 1) * (confidences >= least) - 1


def ambiguous_samples(
    confidences: Array, threshold: float = AMBIGUOUS
) -> NDArray[np.int64]:
    """Return the rows of samples below a confidence, the least certain first.

    Parameters
    ----------
    confidences : ndarray of shape (n_samples,)
        How firmly each sample is held.
    threshold : float, default=0.6
        Below it a sample is ambiguous.

    Returns
    -------
    ndarray of int
        Rows of the samples.

    Examples
    --------
    >>> ambiguous_samples(np.array([0.55, 0.9, 0.5]))
    array([2, 0])
    """
    order = np.argsort(confidences, kind="stable")
    return order[confidences[order] < threshold]
