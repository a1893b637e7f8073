"""Consensus by k-means on the samples' labels: KCC, ECC, and SEC with weights."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdec._support.arrays import Array
from mdec._support.random import RandomState, consensus_stream
from mdec.bench.baselines._options import Labels, consensus_function
from mdec.consensus.partitions import number_by_appearance
from mdec.ensemble import Ensemble

# The authors' guard against log 0. It is the price of a label that a centre has never
# seen, 52 bits, so another value gives other results.
_EPSILON = 2.0**-52

_LEAST_CHANGE = 1e-5

# What a label adds to the distance of a centre, from the centre's share q of the label,
# a function that gives norms of the centre's shares, and the exponent p.
Norm = Callable[[float], Array]
UTILITIES: dict[str, Callable[[Array, Norm, float], Array]] = {
    "U_c": lambda q, norm, _: 1.0 - 2.0 * q + norm(2.0) ** 2,
    "U_H": lambda q, *_: -np.log2(q + _EPSILON),
    "U_cos": lambda q, norm, _: 1.0 - q / norm(2.0),
    "U_Lp": lambda q, norm, p: 1.0 - (q / norm(p)) ** (p - 1.0),
}


@consensus_function()
def kcc(
    ensemble: Ensemble,
    n_clusters: int,
    *,
    utility: str = "U_H",
    p: float = 5.0,
    normalized: bool = False,
    n_init: int = 5,
    max_iterations: int = 20,
    random_state: RandomState = None,
) -> Labels:
    r"""Find the consensus by k-means on the samples' labels (KCC).

    Parameters
    ----------
    utility : {"U_H", "U_c", "U_cos", "U_Lp"}, default="U_H"
        How agreement with a base clustering counts, see Notes. The authors call the
        entropy the most robust; that it made the published tables is our calibration.
    p : float, default=5.0
        Exponent of "U_Lp"; the authors use 5 and 8.
    normalized : bool, default=False
        Divide the worth of each base clustering by its own, :math:`\mu(P)` below.
    n_init : int, default=5
        Runs from random samples; the best by its own distance counts. 5 runs of 20
        iterations are the defaults of the authors' code.
    max_iterations : int, default=20
        Iterations at most in one run.
    random_state : int, RandomState, Generator or None
        Seed of the starts.

    Returns
    -------
    ndarray of shape (n_samples,)
        Labels, numbered in the order of first samples; fewer than `n_clusters` (with a
        warning) where a cluster loses all its samples at the end.

    Notes
    -----
    With :math:`P_k` the distribution of a base clustering's labels inside consensus
    cluster k, which holds the share :math:`p_k` of the samples, and P the one over all
    samples, KCC maximises :math:`\sum_{i=1}^M U_i` with

    - U_c: :math:`\sum_k p_k \|P_k\|_2^2 - \|P\|_2^2`, :math:`\mu(P) = \|P\|_2^2`;
    - U_H: :math:`H(P) - \sum_k p_k H(P_k)`, :math:`\mu(P) = H(P)` in bits;
    - U_cos: :math:`\sum_k p_k \|P_k\|_2 - \|P\|_2`, :math:`\mu(P) = \|P\|_2`;
    - U_Lp: :math:`\sum_k p_k \|P_k\|_p - \|P\|_p`, :math:`\mu(P) = \|P\|_p`.

    This is k-means on the labels with a distance of its own for each utility, see
    `label_distances`. Unlike the authors' code, the random samples that a run starts
    from differ in some label wherever they can.

    References
    ----------
    J. Wu, H. Liu, H. Xiong, J. Cao, J. Chen, "K-means-based consensus clustering: a
    unified view", IEEE Transactions on Knowledge and Data Engineering 27(1), 2015.
    """
    rng = consensus_stream(random_state)
    weights = _member_weights(ensemble, utility, p) if normalized else 1.0

    def distances(centers: Array) -> Array:
        return label_distances(centers, ensemble, utility, p) * weights

    runs = (
        _run_kcc(ensemble, n_clusters, distances, max_iterations, rng)
        for _ in range(n_init)
    )
    best, _ = min(runs, key=itemgetter(1))
    return number_by_appearance(best, n_clusters)


@consensus_function(like=kcc)
def ecc(
    ensemble: Ensemble,
    n_clusters: int,
    *,
    n_init: int = 10,
    max_iterations: int = 40,
    random_state: RandomState = None,
) -> Labels:
    r"""Find the consensus of least entropy (ECC).

    Parameters
    ----------
    n_init : int, default=10
        Runs from random samples, as in the demonstration of the authors' code; its
        description has 20.
    max_iterations : int, default=40
        Iterations at most in one run, from the same place.

    Notes
    -----
    ECC minimises :math:`\sum_i \sum_k \frac{n_k}{N} H(P_k^{(i)})`, the entropy of the
    base labels inside the consensus clusters: `kcc` with the utility U_H and more
    starts. The authors' code sets the same seed at every call, this one the caller's.

    References
    ----------
    H. Liu, R. Zhao, H. Fang, F. Cheng, Y. Fu, Y.-Y. Liu, "Entropy-based consensus
    clustering for patient stratification", Bioinformatics 33(17), 2017.
    """
    return kcc(
        ensemble,
        n_clusters,
        utility="U_H",
        n_init=n_init,
        max_iterations=max_iterations,
        random_state=random_state,
    )


@consensus_function(like=kcc, example="n_init=5, random_state=0")
def sec(
    ensemble: Ensemble,
    n_clusters: int,
    *,
    n_init: int = 1,
    max_iterations: int = 100,
    random_state: RandomState = None,
) -> Labels:
    r"""Find the normalised cut of the co-association by weighted k-means (SEC).

    Parameters
    ----------
    n_init : int, default=1
        Runs from random samples; the best counts. The authors' number is not known; one
        run comes nearest to the published scores, which is our calibration.
    max_iterations : int, default=100
        Iterations at most in one run.

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
    rng = consensus_stream(random_state)
    runs = (_run_sec(ensemble, n_clusters, max_iterations, rng) for _ in range(n_init))
    best = min(runs, key=partial(weighted_inertia, ensemble))
    return number_by_appearance(best, n_clusters)


def label_distances(
    centers: Array, ensemble: Ensemble, utility: str, p: float = 5.0
) -> Array:
    r"""Return what a label in each base cluster adds to the distance of each centre.

    A column of `centers` holds the label distributions :math:`m_i` of all members, one
    after the other. With q the entry of the centre for the label: U_c
    :math:`1 - 2q + \|m_i\|_2^2`; U_H :math:`-\log_2(q + 2^{-52})`; U_cos
    :math:`1 - q / \|m_i\|_2`; U_Lp :math:`1 - (q / \|m_i\|_p)^{p-1}`.
    """

    def norm(order: float) -> Array:
        sums = _member_sums(centers**order, ensemble) ** (1.0 / order)
        return np.where(sums > 0.0, sums, 1.0)

    return UTILITIES[utility](centers, norm, p)


def _member_weights(ensemble: Ensemble, utility: str, p: float) -> Array:
    """Return one over mu(P) of each base cluster's member, as a column.

    The mean distance of the samples from P is the entropy, or one less mu(P).
    """
    sizes = ensemble.cluster_sizes[:, None].astype(np.float64)
    shares = _distributions(sizes, ensemble)
    costs = shares * label_distances(shares, ensemble, utility, p)
    mu = _member_sums(costs, ensemble)
    mu = mu if utility == "U_H" else 1.0 - mu
    # A member of one cluster has nothing to say and no entropy to divide by.
    return np.divide(1.0, mu, out=np.zeros_like(mu), where=mu > 0.0)


def _distributions(counts: Array, ensemble: Ensemble) -> Array:
    """Divide counts by their sum over each member's clusters."""
    sums = _member_sums(counts, ensemble)
    return counts / np.where(sums > 0.0, sums, 1.0)


def _member_sums(values: Array, ensemble: Ensemble) -> Array:
    """Sum over the clusters of each member, and give each cluster its member's sum."""
    sums = np.add.reduceat(values, ensemble.offsets[:-1], axis=0)
    repeated: Array = np.repeat(sums, ensemble.cluster_counts, axis=0)
    return repeated


def _run_kcc(
    ensemble: Ensemble,
    n_clusters: int,
    distances: Callable[[Array], Array],
    max_iterations: int,
    rng: np.random.Generator,
) -> tuple[Labels, float]:
    """Run k-means on labels from random samples; return labels and summed distance."""
    H = ensemble.indicator()
    rows = distinct_rows(ensemble, n_clusters, rng)
    # Fewer distinct samples than clusters: the rest start at copies and stay empty.
    centers = H[np.resize(rows, n_clusters)].toarray().T
    best, total = np.zeros(ensemble.n_samples, dtype=np.int32), np.inf
    for _ in range(max_iterations):
        costs = H @ distances(centers)
        labels = costs.argmin(axis=1).astype(np.int32)
        before, after = total, float(costs.min(axis=1).sum())
        if after > before:
            break
        best, total = labels, after
        if before - after < _LEAST_CHANGE:
            break
        centers = _distributions(shared_counts(H, labels, n_clusters), ensemble)
        empty = np.setdiff1d(np.arange(n_clusters), labels)
        rows = rng.integers(ensemble.n_samples, size=empty.size)
        centers[:, empty] = H[rows].toarray().T
    return best, total


def weighted_inertia(ensemble: Ensemble, labels: NDArray[np.integer]) -> float:
    r"""Return the objective of SEC, :math:`\sum_l w_l \|H_l / w_l - m_{c(l)}\|^2`.

    The weighted sum of squares around the weighted means of a partition, numbered from
    0; no sample may be left out of all members. As :math:`m_k = h_k / v_k` with
    :math:`h_k = \sum_{l \in k} H_l` and :math:`v_k = \sum_{l \in k} w_l`, it is
    :math:`\sum_l |H_l|^2 / w_l - \sum_k \|h_k\|^2 / v_k`.
    """
    H, sizes = ensemble.indicator(), ensemble.cluster_sizes
    sums = shared_counts(H, labels, int(labels.max()) + 1)
    volumes = np.maximum(sizes @ sums, 1.0)
    spread = np.diff(H.indptr) / np.maximum(H @ sizes, 1.0)
    return float(spread.sum() - ((sums**2).sum(axis=0) / volumes).sum())


def _run_sec(
    ensemble: Ensemble, n_clusters: int, max_iterations: int, rng: np.random.Generator
) -> Labels:
    """Run weighted k-means from random samples to its fixed point."""
    H, sizes = ensemble.indicator(), ensemble.cluster_sizes
    rows = distinct_rows(ensemble, n_clusters, rng)
    sums: Array = np.zeros((sizes.size, n_clusters))
    sums[:, : rows.size] = H[rows].toarray().T
    labels = np.full(ensemble.n_samples, -1, dtype=np.int32)
    for _ in range(max_iterations):
        means = sums / np.maximum(sizes @ sums, 1.0)
        # Summed over a sample's labels: its weighted squared distance from each mean,
        # less what does not depend on the mean.
        table = sizes[:, None] * (means**2).sum(axis=0) - 2.0 * means
        # Centres past the distinct samples stay empty.
        table[:, rows.size :] = np.inf
        costs = H @ table
        found, least = costs.argmin(axis=1).astype(np.int32), costs.min(axis=1)
        counts = np.bincount(found, minlength=n_clusters)
        # Each empty cluster takes the sample that costs most, out of a larger one.
        for k in np.flatnonzero(counts[: rows.size] == 0):
            candidates = np.flatnonzero(counts[found] > 1)
            worst = candidates[np.argmax(least[candidates])]
            counts[found[worst]] -= 1
            counts[k] = 1
            found[worst], least[worst] = k, -np.inf
        if np.array_equal(found, labels):
            break
        labels, sums = found, shared_counts(H, found, n_clusters)
    return labels


def shared_counts(
    H: sparse.csr_array, groups: NDArray[np.integer], n_groups: int
) -> Array:
    """Count the samples that each base cluster shares with each group."""
    counts: Array = H.T @ np.eye(n_groups)[groups]
    return counts


def distinct_rows(
    ensemble: Ensemble, n_rows: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw samples that differ in some label, in random order.

    Fewer than `n_rows` are returned only if fewer are distinct.
    """
    order = rng.permutation(ensemble.n_samples)
    group = ensemble.microclusters[1]
    first = np.unique(group[order], return_index=True)[1]
    return order[np.sort(first)[:n_rows]]
