"""The clusters for each number of clusters, with names that stay from K to K."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from mdec.coassociation import presence_rows
from mdec.confidence import (
    AMBIGUOUS,
    associations,
    cluster_consensus,
    confidence,
    second_choice,
)
from mdec.ensemble import Ensemble
from mdec.evaluation import ari, nmi_max
from mdec.report.clustering.described import Array, ClusterRow, Labels, View
from mdec.selection.criteria import cuts
from mdec.selection.rule import KSelection

MAX_VIEWS = 30
HISTOGRAM_BINS = 20

# Rows of the table of known classes; the smaller classes are counted together.
MAX_CLASSES = 40


def shown_numbers(selection: KSelection, n_clusters: int) -> list[int]:
    """Return the numbers of clusters to show: all, or those nearest to the report's."""
    ks = sorted({int(k) for k in selection.table["n_clusters"]} | {n_clusters})
    return sorted(sorted(ks, key=lambda k: abs(k - n_clusters))[:MAX_VIEWS])


def partitions(
    ensemble: Ensemble,
    weights: Array,
    selection: KSelection,
    ks: Sequence[int],
    rows: Labels,
) -> dict[int, Labels]:
    """Return the consensus clusters of some samples, for each number of clusters.

    They are those that the criteria were measured on, or cut anew from the dendrogram
    of these samples where not all were measured.
    """
    if len(selection.samples) == ensemble.n_samples:
        found = zip(selection.table["n_clusters"], selection.partitions, strict=True)
        return {int(k): part for k, part in found}
    part, kept = _of_rows(ensemble, weights, rows)
    return dict(zip(ks, cuts(part, kept, ks), strict=True))


def _of_rows(
    ensemble: Ensemble, weights: Array, rows: Labels
) -> tuple[Ensemble, Array]:
    """Return the ensemble of some samples, with the weights of its base clusters."""
    old = ensemble.labels[rows]
    members = np.flatnonzero((old >= 0).any(axis=0))
    part = ensemble.among(rows)
    kept = np.empty(part.n_base_clusters)
    for new, member in enumerate(members):
        there = old[:, member] >= 0
        place = part.offsets[new] + part.labels[there, new]
        kept[place] = weights[ensemble.offsets[member] + old[there, member]]
    return part, kept


def matched_numbers(parts: Sequence[Labels], start: int) -> list[Labels]:
    """Name the clusters of each partition like those they share most samples with.

    Each partition is matched with its neighbour nearer to `start`, so that the sum of
    the overlaps is largest; the clusters of `start` keep their own numbers, and one
    without a partner takes the lowest number that is free.

    Examples
    --------
    >>> first, second = np.array([0, 0, 1, 1]), np.array([2, 2, 0, 1])
    >>> matched_numbers([first, second], 0)
    [array([0, 1]), array([1, 2, 0])]
    """
    found = {start: np.arange(int(parts[start].max()) + 1)}
    for i in range(start + 1, len(parts)):
        found[i] = _like(parts[i - 1], found[i - 1], parts[i])
    for i in range(start - 1, -1, -1):
        found[i] = _like(parts[i + 1], found[i + 1], parts[i])
    return [found[i] for i in range(len(parts))]


def _like(before: Labels, names: Labels, part: Labels) -> NDArray[np.int64]:
    overlap = np.zeros((int(part.max()) + 1, len(names)))
    np.add.at(overlap, (part, before), 1.0)
    numbers = np.full(len(overlap), -1)
    for new, old in zip(*linear_sum_assignment(-overlap), strict=True):
        if overlap[new, old] > 0:
            numbers[new] = names[old]
    free = iter(np.setdiff1d(np.arange(2 * len(numbers) + names.max()), numbers))
    return np.array([next(free) if each < 0 else each for each in numbers])


def associated(
    factor: sparse.csr_array, base: NDArray[np.int32], labels: Labels
) -> Array:
    """Return the mean consensus of samples with every cluster of these samples.

    From their rows of the factor and their base clusters.
    """
    sizes = np.bincount(labels).astype(np.float64)
    inside = (np.ones(len(labels)), (labels, np.arange(len(labels))))
    membership = sparse.csr_array(inside, shape=(sizes.size, len(labels)))
    draws = None
    if base.min() < 0:
        present = presence_rows(base)
        draws = present @ (membership @ present).T
    sums = (membership @ factor).toarray()
    return associations(factor, labels, sums, sizes, draws)


def view(
    association: Array,
    labels: Labels,
    numbers: Labels,
    known: NDArray[Any] | None,
    rows: Labels | slice = slice(None),
) -> View:
    """Return what is shown of one clustering, sample by sample for some rows.

    Features are left to the caller, who has the data.
    """
    sure = confidence(association, labels)
    second = second_choice(association, labels)
    samples = np.arange(len(labels))
    rival = association[samples, second]
    if association.shape[1] == 1:
        rival = np.zeros(len(labels))
    scores = None if known is None else known_scores(known, labels)
    if scores is not None:
        by_name = np.array(scores["counts"])[:, np.argsort(numbers)]
        scores["counts"] = by_name.tolist()
    return {
        "n_clusters": association.shape[1],
        "numbers": numbers,
        "labels": labels[rows],
        "second": second[rows],
        "own": association[samples, labels][rows],
        "rival": rival[rows],
        "confidence": sure[rows],
        "clusters": cluster_rows(association, labels, sure, numbers),
        "histogram": np.histogram(sure, HISTOGRAM_BINS, (0.0, 1.0))[0],
        "n_ambiguous": int((sure < AMBIGUOUS).sum()),
        "mean_confidence": float(sure.mean()),
        "scores": scores,
        "signatures": [],
        "features": [],
        "cluster_order": np.arange(association.shape[1]),
        "drawn_features": np.empty(0, dtype=np.int64),
    }


def cluster_rows(
    association: Array, labels: Labels, sure: Array, numbers: Labels
) -> list[ClusterRow]:
    """Return size, consensus and confidence of each cluster, by its name."""
    consensus = cluster_consensus(association, labels)
    return [
        {
            "cluster": int(numbers[k]),
            "size": int((labels == k).sum()),
            "consensus": float(consensus[k]),
            "confidence": float(sure[labels == k].mean()),
            "ambiguous": int((sure[labels == k] < AMBIGUOUS).sum()),
        }
        for k in np.argsort(numbers)
    ]


def known_scores(known: NDArray[Any], labels: Labels) -> dict[str, Any]:
    """Return the agreement with known classes, and the table of both.

    Its columns are the clusters from 0; where there are many classes, its last row
    counts the small ones together.
    """
    n_clusters = int(labels.max()) + 1
    # Samples without a class are left out.
    given = known != ""
    known, labels = known[given], labels[given]
    classes, code = np.unique(known, return_inverse=True)
    counts = np.zeros((classes.size, n_clusters), dtype=int)
    np.add.at(counts, (code, labels), 1)
    names = [str(each) for each in classes]
    if classes.size > MAX_CLASSES:
        large = np.sort(np.argsort(-counts.sum(axis=1), kind="stable")[:MAX_CLASSES])
        small = np.setdiff1d(np.arange(classes.size), large)
        names = [names[i] for i in large] + [f"{small.size} smaller classes"]
        counts = np.vstack([counts[large], counts[small].sum(axis=0)])
    return {
        "nmi_max": nmi_max(known, labels),
        "ari": ari(known, labels),
        "classes": names,
        "counts": counts.tolist(),
    }
