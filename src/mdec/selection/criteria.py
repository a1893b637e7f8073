"""What is measured for each number of clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from mdec._support.arrays import Array, Labels
from mdec.coassociation import locally_weighted_coassociation
from mdec.confidence import second_choice
from mdec.consensus.dendrogram import cut, falling, merges
from mdec.consensus.matrix import matrix_associations
from mdec.ensemble import Ensemble
from mdec.weights import WEIGHTINGS

# Monti et al. count a pair as ambiguous between these shares of the clusterings.
AMBIGUOUS_SHARES = 0.1, 0.9

# Random splits of the members into halves that are compared.
N_SPLITS = 5


def cuts(ensemble: Ensemble, weights: Array, ks: Sequence[int]) -> NDArray[np.int32]:
    """Return the consensus clusters for each number, from one dendrogram."""
    return cut_merges(*merges(ensemble, weights), ks)


def cut_merges(
    pairs: NDArray[np.int64], similarities: Array, ks: Sequence[int]
) -> NDArray[np.int32]:
    """Cut one dendrogram into each number of clusters.

    The finest clusters are found among the samples, and then merged one by one.
    """
    finest = cut(pairs, similarities, len(pairs) + 1, max(ks))
    joined = finest[pairs]
    left = joined[:, 0] != joined[:, 1]
    # Each is called by its lowest number.
    names = [np.arange(max(ks))]
    for one, other in joined[left][falling(similarities[left])]:
        low, high = sorted(names[-1][[one, other]])
        names.append(np.where(names[-1] == high, low, names[-1]))
    numbers = [np.unique(names[max(ks) - k], return_inverse=True)[1] for k in ks]
    return np.stack([each.astype(np.int32)[finest] for each in numbers])


def consensus_distribution(partitions: Labels) -> tuple[Array, Array]:
    """Return the distribution of the pairs' consensus over several partitions.

    From partitions of shape (n_partitions, n_samples): the shares of the partitions,
    from 0 to 1, and the share of the pairs that are together in at most each of them.
    Samples that share every label count as one with a weight, so that few pairs are
    looked at.

    Examples
    --------
    >>> consensus_distribution(np.array([[0, 0, 1], [0, 1, 1]]))
    (array([0. , 0.5, 1. ]), array([0.33333333, 1.        , 1.        ]))
    """
    n_partitions, n_samples = partitions.shape
    rows, sizes = np.unique(partitions.T, axis=0, return_counts=True)
    counts = np.zeros(n_partitions + 1)
    for row, size in zip(rows, sizes, strict=True):
        together = (rows == row).sum(axis=1)
        counts += np.bincount(together, size * sizes, minlength=n_partitions + 1)
    # Every pair was met twice, and every sample with itself once.
    counts[-1] -= n_samples
    levels = np.arange(n_partitions + 1) / n_partitions
    return levels, np.cumsum(counts) / max(counts.sum(), 1.0)


def rand_index(first: Labels, second: Labels) -> float:
    """Return the adjusted Rand index of two clusterings, numbered from 0.

    Without the checks of scikit-learn's, which take longer than the sums.

    Examples
    --------
    >>> rand_index(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]))
    1.0
    """
    table = np.zeros((first.max() + 1, second.max() + 1))
    np.add.at(table, (first, second), 1.0)
    cells = table, table.sum(axis=1), table.sum(axis=0), table.sum(keepdims=True)
    both, rows, columns, pairs = ((each * (each - 1.0)).sum() for each in cells)
    expected, most = rows * columns / max(pairs, 1.0), (rows + columns) / 2.0
    return float((both - expected) / (most - expected)) if most > expected else 1.0


def proportion_ambiguous(levels: Array, cdf: Array) -> float:
    """Return the share of pairs that are together neither seldom nor often (PAC).

    Examples
    --------
    >>> proportion_ambiguous(np.array([0.0, 0.5, 1.0]), np.array([0.2, 0.6, 1.0]))
    0.4
    """
    low, high = AMBIGUOUS_SHARES
    seldom = cdf[np.searchsorted(levels, low, side="right") - 1]
    not_often = cdf[np.searchsorted(levels, high, side="left") - 1]
    return round(float(max(not_often - seldom, 0.0)), 12)


def cdf_area(levels: Array, cdf: Array) -> float:
    """Return the area under the distribution of the pairs' consensus."""
    return float(np.sum(np.diff(levels) * cdf[:-1]))


def delta_area(areas: Array) -> Array:
    """Return the relative growth of the area from each number to the next, Monti.

    Examples
    --------
    >>> delta_area(np.array([0.5, 0.6, 0.6])).round(3)
    array([0.5, 0.2, 0. ])
    """
    growth = np.diff(areas) / np.where(areas[:-1] > 0.0, areas[:-1], 1.0)
    return np.concatenate([areas[:1], np.maximum(growth, 0.0)])


def eigengaps(coassociation: Array, ks: Sequence[int]) -> Array:
    r"""Return the drop after the K-th eigenvalue of the normalised co-association.

    Notes
    -----
    :math:`\sqrt{\lambda_K} - \sqrt{\lambda_{K+1}}` of :math:`D^{-1/2} A D^{-1/2}`; K
    separate groups have K eigenvalues near one. Members that cut coarsely lower all
    later eigenvalues, and the roots give a drop among small ones its due.
    """
    scale = 1.0 / np.sqrt(coassociation.sum(axis=1))
    order = len(coassociation)
    first = max(order - max(ks) - 1, 0)
    values = linalg.eigvalsh(
        coassociation * scale[:, None] * scale, subset_by_index=[first, order - 1]
    )[::-1]
    # The root of what rounding leaves of zero would be seen.
    roots = np.sqrt(np.append(np.where(values > 1e-12, values, 0.0), 0.0))
    return np.array([roots[k - 1] - roots[k] for k in ks])


def merge_gaps(similarities: Array, ks: Sequence[int]) -> Array:
    """Return for how long the dendrogram has K clusters, by the similarity of merges.

    What the merge before has more than the one after.

    Examples
    --------
    >>> merge_gaps(np.array([0.9, 0.8, 0.3, 0.1]), [2, 3]).round(3)
    array([0.2, 0.5])
    """
    rising = np.sort(similarities)
    return np.array([rising[k - 1] - rising[k - 2] for k in ks])


def coassociation_silhouette(coassociation: Array, labels: Labels) -> float:
    """Return the mean silhouette of a clustering with 1 - A as the distance.

    Examples
    --------
    >>> A = np.array([[1.0, 0.8, 0.0], [0.8, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> round(coassociation_silhouette(A, np.array([0, 0, 1])), 3)
    0.533
    """
    samples, sizes = np.arange(len(labels)), np.bincount(labels)
    near = matrix_associations(coassociation, labels)
    own, other = near[samples, labels], near[samples, second_choice(near, labels)]
    farther = np.maximum(1.0 - np.minimum(own, other), np.finfo(float).tiny)
    return float(np.where(sizes[labels] > 1, (own - other) / farther, 0.0).mean())


def measure_numbers(
    ensemble: Ensemble, ks: Sequence[int], weighting: str, rng: np.random.Generator
) -> dict[str, Any]:
    """Return the table, the levels and the distributions of an ensemble's consensus.

    They are those of `KSelection`, the table without a score.
    """
    weights = WEIGHTINGS[weighting](ensemble)
    similarity = locally_weighted_coassociation(ensemble, weights)
    pairs, heights = merges(ensemble, weights)
    partitions = cut_merges(pairs, heights, ks)
    # Consensus clusters of both halves of random splits of the members.
    size, parts = len(ensemble), [ensemble, ensemble]
    if size > 1:
        orders = [rng.permutation(size).tolist() for _ in range(N_SPLITS)]
        chosen = [h for o in orders for h in (o[: size // 2], o[size // 2 :])]
        parts = [ensemble[half] for half in chosen]
    found = [cuts(part, WEIGHTINGS[weighting](part), ks) for part in parts]
    halves = np.stack(found, axis=1)
    distributions = list(map(consensus_distribution, halves))
    columns = {
        "n_clusters": ks,
        "pac": [proportion_ambiguous(*each) for each in distributions],
        "delta_area": delta_area(np.array([cdf_area(*each) for each in distributions])),
        "eigengap": eigengaps(similarity, ks),
        "merge_gap": merge_gaps(heights, ks),
        "agreement": [
            np.mean(list(map(rand_index, each[::2], each[1::2]))) for each in halves
        ],
        "silhouette": [
            coassociation_silhouette(similarity, each) for each in partitions
        ],
    }
    table = {name: np.array(column) for name, column in columns.items()}
    levels, cdf = distributions[0][0], np.stack([each[1] for each in distributions])
    return {"table": table, "cdf": cdf, "levels": levels}
