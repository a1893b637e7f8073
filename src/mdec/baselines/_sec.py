"""Spectral ensemble clustering (SEC): a normalised cut as weighted k-means."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from mdec._support.random import RandomState, consensus_stream
from mdec.baselines._estimator import Count, documented, estimator_of
from mdec.baselines._new_rows import PlacingBaseline
from mdec.baselines._starts import distinct_rows, memberships
from mdec.consensus.partitions import numbered_by_appearance, trivial_partition
from mdec.ensemble import Ensemble

Array = NDArray[np.floating]


@documented(example="n_init=5, random_state=0")
def sec(
    ensemble: Ensemble,
    n_clusters: int,
    *,
    n_init: int = 1,
    max_iterations: int = 100,
    random_state: RandomState = None,
) -> NDArray[np.int32]:
    r"""Find the normalised cut of the co-association by weighted k-means (SEC).

    Parameters
    ----------
    n_init : int, default=1
        Runs from random samples; the best counts. The authors' number is not known; one
        run comes nearest to the published scores, which is our calibration.
    max_iterations : int, default=100
        Iterations at most in one run.
    random_state : int, RandomState, Generator or None
        Seed of the starts.

    Returns
    -------
    ndarray of shape (n_samples,)
        Labels, numbered in the order of first samples. An empty cluster takes the
        sample that fits worst, so fewer than `n_clusters` come out (with a warning)
        only if fewer samples are distinct; the public code leaves it out.

    Notes
    -----
    With H the membership in the base clusters and :math:`w = H H^T 1`, SEC minimises
    :math:`\sum_l w_l \|H_l / w_l - m_{c(l)}\|^2`, which equals
    :math:`M \sum_l 1/w_l - \sum_k \frac{assoc(k, k)}{vol(k)}` for the graph
    :math:`H H^T`: its normalised cut, without the N x N matrix. Time is O(N M K) for an
    iteration, memory O(N M).

    References
    ----------
    H. Liu, J. Wu, T. Liu, D. Tao, Y. Fu, "Spectral ensemble clustering via weighted
    k-means: theoretical and practical evidence", IEEE Transactions on Knowledge and
    Data Engineering 29(5), 2017.
    """
    if (trivial := trivial_partition(ensemble, n_clusters)) is not None:
        return trivial
    rng = consensus_stream(random_state)
    runs = (_run(ensemble, n_clusters, max_iterations, rng) for _ in range(n_init))
    best = min(runs, key=partial(weighted_inertia, ensemble))
    return numbered_by_appearance(best, n_clusters)


def sample_weights(ensemble: Ensemble) -> Array:
    r"""Return :math:`w = H H^T 1`: the summed sizes of each sample's base clusters.

    Examples
    --------
    >>> sample_weights(Ensemble.from_labels([[0, 0], [0, 1], [1, 1]]))
    array([3., 4., 3.])
    """
    weights: Array = ensemble.indicator() @ ensemble.cluster_sizes.astype(np.float64)
    return weights


def weighted_inertia(ensemble: Ensemble, labels: NDArray[np.integer]) -> float:
    r"""Return the objective of SEC, :math:`\sum_l w_l \|H_l / w_l - m_{c(l)}\|^2`.

    The weighted sum of squares around the weighted means of a partition, numbered from
    0; no sample may be left out of all members. As :math:`m_k = h_k / v_k` with
    :math:`h_k = \sum_{l \in k} H_l` and :math:`v_k = \sum_{l \in k} w_l`, it is
    :math:`\sum_l |H_l|^2 / w_l - \sum_k \|h_k\|^2 / v_k`.

    Examples
    --------
    >>> ensemble = Ensemble.from_labels([[0], [0], [1]])
    >>> weighted_inertia(ensemble, np.array([0, 0, 1]))
    0.0
    """
    sums, volumes = _cluster_sums(ensemble, labels, int(labels.max()) + 1)
    n_present = (ensemble.labels >= 0).sum(axis=1)
    spread = n_present / np.maximum(sample_weights(ensemble), 1.0)
    return float(spread.sum() - ((sums**2).sum(axis=0) / volumes).sum())


def _cluster_sums(
    ensemble: Ensemble, labels: NDArray[np.integer], n_clusters: int
) -> tuple[Array, Array]:
    """Return the summed memberships (one column per cluster) and the volumes."""
    from mdec.baselines import _loops

    sums = _loops.shared_counts(ensemble.labels, ensemble.offsets, labels, n_clusters)
    volumes = ensemble.cluster_sizes @ sums
    return sums, np.maximum(volumes, 1.0)


def _run(
    ensemble: Ensemble, n_clusters: int, max_iterations: int, rng: np.random.Generator
) -> NDArray[np.int32]:
    """Run weighted k-means from random samples to its fixed point."""
    from mdec.baselines import _loops

    rows = distinct_rows(ensemble, n_clusters, rng)
    sums: Array = np.zeros((ensemble.n_base_clusters, n_clusters))
    sums[:, : rows.size] = memberships(ensemble, rows)
    volumes = np.maximum(ensemble.cluster_sizes @ sums, 1.0)
    sizes = ensemble.cluster_sizes[:, None]
    labels: NDArray[np.int32] | None = None
    for _ in range(max_iterations):
        means = sums / volumes
        # Summed over a sample's labels: its weighted squared distance from each mean,
        # less what does not depend on the mean.
        table = sizes * (means**2).sum(axis=0) - 2.0 * means
        # Centres past the distinct samples stay empty.
        table[:, rows.size :] = np.inf
        found, costs = _loops.nearest_centers(
            ensemble.labels, ensemble.offsets, np.ascontiguousarray(table)
        )
        _fill_empty(found, costs, rows.size)
        if labels is not None and np.array_equal(found, labels):
            break
        labels = found
        sums, volumes = _cluster_sums(ensemble, labels, n_clusters)
    assert labels is not None
    return labels


def _fill_empty(labels: NDArray[np.int32], costs: Array, n_clusters: int) -> None:
    """Give each empty cluster the sample that costs most, out of a larger cluster."""
    counts = np.bincount(labels, minlength=n_clusters)
    for k in np.flatnonzero(counts[:n_clusters] == 0):
        candidates = np.flatnonzero(counts[labels] > 1)
        worst = candidates[np.argmax(costs[candidates])]
        counts[labels[worst]] -= 1
        counts[k] = 1
        labels[worst] = k
        costs[worst] = -np.inf


@estimator_of(sec, example="n_init=5, random_state=0")
class SEC(PlacingBaseline):
    """Spectral ensemble clustering."""

    n_init: Count = 1
    max_iterations: Count = 100

    _by_degree = True
