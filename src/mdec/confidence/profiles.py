"""Profiles of consensus clusters: what the ensemble says of their samples, summed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdec.coassociation import degree_scaled, factor_rows, presence_rows
from mdec.ensemble import LabelBlocks
from mdec.rows.work import ordered_sum

Array = NDArray[np.floating]
Labels = NDArray[np.integer]


@dataclass(frozen=True)
class Profiles:
    r"""Sums over consensus clusters, as a worker's handles.

    The factor's rows summed over each cluster, :math:`\sum_{j \in k} F_j` with
    :math:`A = F F^T`, of shape (n_clusters, n_base_clusters), and the samples of each
    cluster. Where members leave samples out, `present` has the sums of the rows of
    presence, (n_clusters, n_members); else it is None.
    """

    sums: Any
    sizes: Any
    present: Any = None


def summed_profiles(
    ensemble: LabelBlocks,
    clusters: list[Any],
    weights: Array,
    n_clusters: int,
    totals: Array | None = None,
) -> Profiles:
    """Sum the co-association's factor over each consensus cluster.

    The clusters are handles for each row block; the work is done block by block, where
    the labels are. With `totals`, the sums of the factor over all samples, every row of
    it is first divided by the root of its degree.
    """
    worker = ensemble.worker
    pairs = zip(ensemble.parts, clusters, strict=True)
    both = [worker.call(_pair, *each) for each in pairs]
    settings = n_clusters, ensemble.offsets, weights, totals
    present = None
    if not ensemble.is_complete:
        present = ordered_sum(worker, _presences, both, n_clusters)
    return Profiles(
        ordered_sum(worker, _profiles, both, *settings),
        ordered_sum(worker, _sizes, clusters, n_clusters),
        present,
    )


def _pair(labels: Labels, clusters: Labels) -> tuple[Labels, Labels]:
    return labels, clusters


def _profiles(
    parts: list[tuple[NDArray[np.int32], Labels]],
    n_clusters: int,
    offsets: NDArray[np.int64],
    weights: Array,
    totals: Array | None,
) -> Array:
    total = np.zeros((n_clusters, int(offsets[-1])))
    for labels, clusters in parts:
        factor = factor_rows(labels, offsets, weights)
        if totals is not None:
            factor = degree_scaled(factor, totals)
        total += (cluster_indicator(clusters, n_clusters) @ factor).toarray()
    return total


def cluster_indicator(clusters: Labels, n_clusters: int) -> sparse.csr_array:
    """Return a row for each cluster, one where a sample is in it."""
    inside = np.ones(len(clusters)), (clusters, np.arange(len(clusters)))
    return sparse.csr_array(inside, shape=(n_clusters, len(clusters)))


def _presences(parts: list[tuple[NDArray[np.int32], Labels]], n_clusters: int) -> Array:
    sums = [
        cluster_indicator(clusters, n_clusters) @ presence_rows(labels)
        for labels, clusters in parts
    ]
    return np.sum(sums, axis=0)


def _sizes(parts: list[Labels], n_clusters: int) -> Array:
    counts = [np.bincount(part, minlength=n_clusters) for part in parts]
    return np.sum(counts, axis=0).astype(np.float64)


def mean_profiles(
    ensemble: LabelBlocks,
    clusters: list[Any],
    weights: Array,
    profiles: Profiles,
    *,
    by_degree: bool,
) -> Array:
    r"""Return the mean of the factor over each cluster, to compare new rows with.

    :math:`\frac{1}{|k|} \sum_{j \in k} F_j`, of shape (n_clusters, n_base_clusters). By
    degree it is that of :math:`F_j / \sqrt{D_{jj}}`: the co-association with a sample
    is divided by the root of that sample's degree, as the spectral and the bipartite
    consensus do.
    """
    worker = ensemble.worker
    sums, sizes = worker.value(profiles.sums), worker.value(profiles.sizes)
    if profiles.present is not None:
        # As a row that every member clusters meets them.
        sizes = worker.value(profiles.present).sum(axis=1) / np.sqrt(len(ensemble))
    if by_degree:
        totals, n_clusters = sums.sum(axis=0), len(sums)
        scaled = summed_profiles(ensemble, clusters, weights, n_clusters, totals)
        sums = worker.value(scaled.sums)
    means: Array = sums / sizes[:, None]
    return means
