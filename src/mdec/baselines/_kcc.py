"""K-means-based consensus clustering (KCC), and entropy-based (ECC), a case of it."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from operator import itemgetter
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from mdec._support.random import RandomState, consensus_stream
from mdec.baselines._estimator import Count, documented, estimator_of
from mdec.baselines._new_rows import PlacingBaseline
from mdec.baselines._starts import distinct_rows, memberships
from mdec.consensus.partitions import numbered_by_appearance, trivial_partition
from mdec.ensemble import Ensemble

Array = NDArray[np.floating]

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


@documented()
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
) -> NDArray[np.int32]:
    r"""Find the consensus by k-means on the samples' labels (KCC).

    Parameters
    ----------
    utility : {"U_H", "U_c", "U_cos", "U_Lp"}, default="U_H"
        What agreement with a base clustering is worth, see Notes. The authors call the
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
    if utility not in UTILITIES:
        raise ValueError(f"utility={utility!r} is not one of {', '.join(UTILITIES)}.")
    if (trivial := trivial_partition(ensemble, n_clusters)) is not None:
        return trivial
    rng = consensus_stream(random_state)
    weights = _member_weights(ensemble, utility, p, normalized)

    def distances(centers: Array) -> Array:
        return label_distances(centers, ensemble, utility, p) * weights[:, None]

    runs = (
        _run(ensemble, n_clusters, distances, max_iterations, rng)
        for _ in range(n_init)
    )
    best, _ = min(runs, key=itemgetter(1))
    return numbered_by_appearance(best, n_clusters)


@documented(like=kcc)
def ecc(
    ensemble: Ensemble,
    n_clusters: int,
    *,
    n_init: int = 10,
    max_iterations: int = 40,
    random_state: RandomState = None,
) -> NDArray[np.int32]:
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


def label_distances(
    centers: Array, ensemble: Ensemble, utility: str, p: float = 5.0
) -> Array:
    r"""Return what a label in each base cluster adds to the distance of each centre.

    A column of `centers` holds the label distributions :math:`m_i` of all members, one
    after the other. With q the entry of the centre for the label: U_c
    :math:`1 - 2q + \|m_i\|_2^2`; U_H :math:`-\log_2(q + 2^{-52})`; U_cos
    :math:`1 - q / \|m_i\|_2`; U_Lp :math:`1 - (q / \|m_i\|_p)^{p-1}`.
    """
    starts = ensemble.offsets[:-1]

    def norm(order: float) -> Array:
        sums = np.add.reduceat(centers**order, starts, axis=0) ** (1.0 / order)
        sums = np.where(sums > 0.0, sums, 1.0)
        repeated: Array = np.repeat(sums, ensemble.cluster_counts, axis=0)
        return repeated

    return UTILITIES[utility](centers, norm, p)


def _member_weights(
    ensemble: Ensemble, utility: str, p: float, normalized: bool
) -> Array:
    """Return the weight of each base cluster's member: one, or one over mu(P)."""
    if not normalized:
        return np.ones(ensemble.n_base_clusters)
    starts = ensemble.offsets[:-1]
    shares = _distributions(ensemble.cluster_sizes.astype(np.float64), ensemble)
    if utility == "U_H":
        mu = -np.add.reduceat(shares * np.log2(shares), starts)
    else:
        order = p if utility == "U_Lp" else 2.0
        mu = np.add.reduceat(shares**order, starts)
        mu = mu if utility == "U_c" else mu ** (1.0 / order)
    # A member of one cluster has nothing to say and no entropy to divide by.
    weights = np.where(mu > 0.0, 1.0 / np.where(mu > 0.0, mu, 1.0), 0.0)
    return np.repeat(weights, ensemble.cluster_counts)


def _run(
    ensemble: Ensemble,
    n_clusters: int,
    distances: Callable[[Array], Array],
    max_iterations: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int32], float]:
    """Run k-means on labels from random samples; return labels and summed distance."""
    from mdec.baselines import _loops

    rows = distinct_rows(ensemble, n_clusters, rng)
    # Fewer distinct samples than clusters: the rest start at copies and stay empty.
    centers = memberships(ensemble, np.resize(rows, n_clusters))
    kept: NDArray[np.int32] | None = None
    total = np.inf
    for _ in range(max_iterations):
        table = np.ascontiguousarray(distances(centers))
        labels, costs = _loops.nearest_centers(ensemble.labels, ensemble.offsets, table)
        before, after = total, float(costs.sum())
        if after > before:
            break
        kept, total = labels, after
        if before - after < _LEAST_CHANGE:
            break
        counts = _loops.shared_counts(
            ensemble.labels, ensemble.offsets, labels, n_clusters
        )
        centers = _distributions(counts, ensemble)
        empty = np.setdiff1d(np.arange(n_clusters), labels)
        rows = rng.integers(ensemble.n_samples, size=empty.size)
        centers[:, empty] = memberships(ensemble, rows)
    assert kept is not None
    return kept, total


def _distributions(counts: Array, ensemble: Ensemble) -> Array:
    """Divide counts by their sum over each member's clusters."""
    sums = np.add.reduceat(counts, ensemble.offsets[:-1], axis=0)
    sums = np.where(sums > 0.0, sums, 1.0)
    shares: Array = counts / np.repeat(sums, ensemble.cluster_counts, axis=0)
    return shares


@estimator_of(kcc)
class KCC(PlacingBaseline):
    """K-means-based consensus clustering."""

    utility: Annotated[str, StrOptions(set(UTILITIES))] = "U_H"
    p: Annotated[float, Interval(Real, 1, None, closed="neither")] = 5.0
    normalized: bool = False
    n_init: Count = 5
    max_iterations: Count = 20


@estimator_of(ecc)
class ECC(PlacingBaseline):
    """Entropy-based consensus clustering."""

    n_init: Count = 10
    max_iterations: Count = 40
