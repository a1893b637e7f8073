"""How certain the consensus cluster of each sample is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdec._support.arrays import Array, Labels, namespace
from mdec._support.memory import require_memory
from mdec.coassociation import (
    divide_by_presence,
    factor_rows,
    presence_rows,
    rows_on_device,
)
from mdec.ensemble import Ensemble
from mdec.rows.work import ordered_sum

# Below this confidence the best other cluster has at least two thirds of the sample's
# association with its own.
AMBIGUOUS = 0.6

# Less than the presence that two samples can share.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Profiles:
    r"""What the ensemble says of consensus clusters: its factor summed over each.

    The clusters are handles of those of each row block. `sums` is the handle of the
    sums over the samples of each cluster, (n_clusters, n_columns): of the factor,
    :math:`\sum_{j \in k} F_j` with :math:`A = F F^T`, of the rows of presence, and of
    ones. They are made on a device, if it is one of its own.
    """

    ensemble: Ensemble
    clusters: list[Any]
    weights: Array
    sums: Any
    device: str = "cpu"

    def split_sums(self) -> tuple[Array, Array, Array]:
        """Bring the sums here: of the factor, of presence and of the samples."""
        table = self.ensemble.executor.value(self.sums)
        return _split_columns(table, self.ensemble.n_base_clusters)

    def map_blocks(self, func: Callable[..., Any]) -> list[Any]:
        """Return handles of what `func` makes of each block's samples.

        It takes their item consensus and their clusters, as `confidence` does.
        """
        ensemble, weights = self.ensemble, self.weights
        offsets, complete = ensemble.offsets, ensemble.is_complete
        greatest = greatest_association(offsets, weights, complete=complete)

        def use(*shared: Any) -> Any:
            return func(_associations(greatest, *shared), shared[-2])

        def share(base: NDArray[np.int32], clusters: Labels, table: Array) -> Array:
            profiles, present, sizes = _split_columns(table, int(offsets[-1]))
            found = []
            for part in row_slices(len(clusters), len(table)):
                factor = factor_rows(base[part], offsets, weights)
                draws = presence_rows(base[part], complete) @ present.T
                squares = factor.power(2).sum(axis=1)
                own = draws, squares, clusters[part], sizes
                found.append(use(factor @ profiles.T, *own))
            return np.concatenate(found)

        rows = rows_on_device(ensemble, np.sqrt(weights), self.device)
        if rows is not None:
            inside = np.concatenate(self.clusters)
            return ensemble.split(rows.share_with(inside, *self.split_sums(), use))
        pairs = zip(ensemble.parts, self.clusters, strict=True)
        return [ensemble.executor.call(share, *each, self.sums) for each in pairs]

    def means(self, *, by_degree: bool) -> Array:
        r"""Return the mean of the factor over each cluster, to compare new rows with.

        :math:`\frac{1}{|k|} \sum_{j \in k} F_j`, of shape (n_clusters,
        n_base_clusters). By degree it is that of :math:`F_j / \sqrt{D_{jj}}`: the
        co-association with a sample is divided by the root of that sample's degree, as
        the spectral and the bipartite consensus do.
        """
        sums, present, _ = self.split_sums()
        if by_degree:
            own = self.ensemble, self.clusters, self.weights, len(sums), self.device
            scaled = replace(self, sums=_sum_rows(*own, sums.sum(axis=0)))
            sums = scaled.split_sums()[0]
        # As a row that every member clusters meets them.
        means: Array = sums / (present.sum(axis=1) / np.sqrt(present.shape[1]))[:, None]
        return means


def sum_profiles(
    ensemble: Ensemble,
    clusters: list[Any],
    weights: Array,
    n_clusters: int,
    device: str = "cpu",
) -> Profiles:
    """Sum the co-association's factor over each consensus cluster.

    The clusters are handles for each row block; the work is done block by block, where
    the labels are, or on a device.
    """
    n_base = ensemble.n_base_clusters
    require_memory(
        # The sums with what is added, and means of both kinds.
        5 * 8 * n_clusters * n_base,
        f"comparing {n_clusters} clusters with {n_base} base clusters",
        "ask for fewer clusters, or make fewer base clusterings",
    )
    own = ensemble, clusters, weights
    return Profiles(*own, _sum_rows(*own, n_clusters, device), device)


def _sum_rows(
    ensemble: Ensemble,
    clusters: list[Any],
    weights: Array,
    n_clusters: int,
    device: str,
    totals: Array | None = None,
) -> Any:
    r"""Sum over each cluster the factor, presence and ones; return the handle.

    With the factor's sums over all samples, :math:`F^T 1`, each of its rows is divided
    by the root of its degree, :math:`D_{jj} = \sum_i A_{ij}`.
    """
    offsets, complete = ensemble.offsets, ensemble.is_complete
    n_base, n_members = int(offsets[-1]), 1 if complete else len(ensemble)

    if (rows := rows_on_device(ensemble, np.sqrt(weights), device)) is not None:
        inside = np.concatenate(clusters)
        shares = rows.add_up(inside, n_clusters, totals)
        sizes = np.bincount(inside, minlength=n_clusters)
        present = sizes
        if not complete:
            present = np.add.reduceat(shares, offsets[:-1], axis=1)
        return np.column_stack([shares * np.sqrt(weights), present, sizes])

    def add(parts: list[tuple[NDArray[np.int32], Labels]]) -> Array:
        total = np.zeros((n_clusters, n_base + n_members + 1))
        for labels, clusters in parts:
            inside = cluster_indicator(clusters, n_clusters)
            factor = factor_rows(labels, offsets, weights)
            if totals is not None:
                # A sample that no member clusters has no row to divide.
                degrees = np.maximum(factor @ totals, np.finfo(np.float64).tiny)
                factor = sparse.diags_array(1.0 / np.sqrt(degrees)) @ factor
            total[:, :n_base] += (inside @ factor).toarray()
            total[:, n_base:-1] += inside @ presence_rows(labels, complete)
            total[:, -1] += inside.sum(axis=1)
        return total

    pairs = list(zip(ensemble.parts, clusters, strict=True))
    return ordered_sum(ensemble.executor, add, pairs)


def _split_columns(table: Array, n_base: int) -> tuple[Array, Array, Array]:
    return table[:, :n_base], table[:, n_base:-1], table[:, -1]


def cluster_indicator(clusters: Labels, n_clusters: int) -> sparse.csr_array:
    """Return a row for each cluster, one where a sample is in it."""
    inside = np.ones(len(clusters)), (clusters, np.arange(len(clusters)))
    return sparse.csr_array(inside, shape=(n_clusters, len(clusters)))


def item_consensus(
    ensemble: Ensemble, labels: Labels, weights: Array, device: str = "cpu"
) -> Array:
    r"""Return the mean co-association of every sample with every cluster, in [0, 1].

    A sample is left out of the mean of its own cluster; one that is alone in its
    cluster has 1 there. Clusters count from 0 with none left out. Weights above one are
    divided by the greatest co-association that they allow.

    Parameters
    ----------
    ensemble : Ensemble
        The base clusterings.
    labels : ndarray of shape (n_samples,)
        Consensus cluster of each sample.
    weights : ndarray of shape (n_base_clusters,)
        Weight of each base cluster.
    device : {"cpu", "cuda", "torch"}, default="cpu"
        Where it is computed.

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
    n_clusters, clusters = int(labels.max()) + 1, ensemble.split(labels)
    require_memory(
        4 * 8 * len(labels) * n_clusters,
        f"the association of {len(labels)} samples with {n_clusters} clusters",
        "ask for fewer clusters; the confidence of samples needs no such table",
    )
    profiles = sum_profiles(ensemble, clusters, weights, n_clusters, device)
    return ensemble.join(profiles.map_blocks(lambda association, _: association))


def _associations(
    greatest: float, sums: Any, draws: Any, squares: Any, clusters: Any, sizes: Any
) -> Any:
    """Return the item consensus of some rows, of NumPy or PyTorch.

    From what they share with the sums of the factor over each cluster, and of presence;
    from their squared lengths, and the clusters and their sizes.
    """
    own = namespace(sums).arange(len(clusters)), clusters
    # Rows of presence have unit length; what is left of less than a pair that shares
    # one member is rounding.
    rest = draws[own] - 1.0
    sums[own] -= squares
    draws[own] = rest * (rest > _ROUNDING)
    association = divide_by_presence(sums, draws) / greatest
    association[own] += (sizes[clusters] == 1.0) * (1.0 - association[own])
    return association.clip(0.0, 1.0)


def row_slices(n_rows: int, n_clusters: int) -> list[slice]:
    """Cut rows into blocks whose associations with so many clusters are not too many.

    Examples
    --------
    >>> row_slices(5, 2)
    [slice(0, 16384, None)]
    """
    height = max(64, min(2**14, 2**20 // n_clusters))
    return [slice(start, start + height) for start in range(0, n_rows, height)]


def greatest_association(
    offsets: NDArray[np.int64], weights: Array, *, complete: bool
) -> float:
    """Return what co-associations are divided by so that none is above one.

    It is the greatest mean over members that the weights allow, and at least 1; where
    members leave samples out, pairs may be in those of the greatest weights only.

    Examples
    --------
    >>> greatest_association(np.array([0, 2, 4]), np.array([3, 1, 1, 2]), complete=True)
    2.5
    """
    largest = np.maximum.reduceat(weights, offsets[:-1])
    return max(1.0, float(largest.mean() if complete else largest.max()))


def cluster_consensus(association: Array, labels: Labels) -> Array:
    """Return the mean co-association inside each cluster, from the item consensus.

    :math:`m(k)`, the mean of :math:`A_{ij}` over the pairs in k; 1 for a cluster of one
    sample.

    Parameters
    ----------
    association, labels : ndarray
        As in `confidence`.

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


def cluster_support(association: Array, labels: Labels) -> Array:
    r"""Return how clearly clusters are set apart, each against its nearest other one.

    From the item consensus: :math:`m(k) / (m(k) + \max_{l \ne k} m(k, l))`, with the
    mean co-associations m(k) inside a cluster and m(k, l) of its samples with those of
    another one. 1 without another one, 0.5 where its samples are as near.

    Parameters
    ----------
    association, labels : ndarray
        As in `confidence`.

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
    association, labels : ndarray
        As in `confidence`.

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
    others = association.copy()
    others[np.arange(len(labels)), labels] = -1.0
    return others.argmax(axis=1).astype(np.int32)


def confidence(association: Array, labels: Labels) -> Array:
    r"""Return how certain the cluster of each sample is.

    From the item consensus: :math:`m_i(own) / (m_i(own) + \max_{k \ne own} m_i(k))`, in
    [0, 1]: 1 without another cluster, 0.5 between two, below it where the sample is
    nearer to another one; 0.5 where no cluster has any association with it.

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
    xp: Any = namespace(association)
    samples, others = xp.arange(len(labels)), association + 0.0
    others[samples, labels] = 0.0
    own = association[samples, labels]
    total = own + xp.amax(others, axis=1)
    sure: Array = xp.where(total > 0.0, own / xp.where(total > 0.0, total, 1.0), 0.5)
    return sure


def memberships(association: Array) -> Array:
    r"""Return how far each sample belongs to each cluster; rows add up to one.

    From the item consensus: :math:`m_i(k) / \sum_l m_i(l)`, and equal shares where no
    cluster has any association with a sample.

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
    shares = association / np.where(totals > 0.0, totals, 1.0)
    return np.where(totals > 0.0, shares, 1.0 / association.shape[1])


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
        Confidence of each sample.
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
