"""The clusters for each number of clusters, with names that stay from K to K."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from mdec._support.arrays import Array, Labels
from mdec._support.random import member_stream
from mdec.clustering import Clustering, cluster_ensemble
from mdec.confidence import (
    AMBIGUOUS,
    cluster_consensus,
    confidence,
    item_consensus,
    second_choice,
)
from mdec.consensus import CONSENSUS
from mdec.ensemble import Ensemble
from mdec.report.signatures import (
    WRITTEN_SIGNATURES,
    Record,
    describe_features,
    moments,
    signatures,
)
from mdec.selection.criteria import cuts
from mdec.selection.rule import KSelection
from mdec.tables import Table

MAX_SOLUTIONS = 30
HISTOGRAM_BINS = 20
TRACKED_SAMPLES = 600

# The consensus of pairs is that of the clusters of both halves of so many splits.
N_SPLITS = 5

# Rows of the table of known classes; the smaller classes are counted together.
MAX_CLASSES = 40

SHORT = {"hierarchical": "HC", "spectral": "SC", "bipartite": "BG"}


def nearest_numbers(selection: KSelection, n_clusters: int) -> list[int]:
    """Return the numbers of clusters to show: all, or those nearest to the report's."""
    ks = sorted({int(k) for k in selection.table["n_clusters"]} | {n_clusters})
    return sorted(sorted(ks, key=lambda k: abs(k - n_clusters))[:MAX_SOLUTIONS])


def restrict_ensemble(
    ensemble: Ensemble, weights: Array, rows: Labels
) -> tuple[Ensemble, Array]:
    """Return the ensemble of some samples, with the weights of its base clusters."""
    if len(rows) == ensemble.n_samples:
        return ensemble, weights
    labels = ensemble.labels[rows]
    there = labels >= 0
    part = ensemble.among(rows)
    # Members that cluster none of these samples are left out.
    old = (labels + ensemble.offsets[:-1])[:, there.any(axis=0)]
    new = part.labels + part.offsets[:-1]
    part_weights = np.empty(part.n_base_clusters)
    part_weights[new[part.labels >= 0]] = weights[old[part.labels >= 0]]
    return part, part_weights


def cut_page(
    clustering: Clustering, rows: Labels, part: Ensemble, weights: Array
) -> tuple[list[int], int, list[Labels], list[Labels]]:
    """Return the numbers of clusters to show, and the clusters of the page for each.

    With them go the place of the clustering itself among the numbers, and the names of
    the clusters. `part` is the ensemble of the page's samples, `rows`.
    """
    ks = nearest_numbers(clustering.criteria, clustering.n_clusters)
    chosen = ks.index(clustering.n_clusters)
    parts = list(cuts(part, weights, ks))
    parts[chosen] = np.asarray(clustering.labels)[rows]
    return ks, chosen, parts, match_numbers(parts, chosen)


def describe_solutions(
    clustering: Clustering,
    table: Table,
    rows: Labels,
    page: tuple[Ensemble, Array],
    position: Labels,
) -> tuple[list[Record], int, list[Record]]:
    """Return the solutions of the page, and which of them is the clustering itself.

    With them go the rows of signatures.csv. `page` is the ensemble of the page's
    samples, `rows`, with its weights, and `position` their places in the dendrogram.
    The features are summed once, over the groups of samples that are together for every
    K; the clusters are unions of them. The clustering itself takes all samples.
    """
    labels, known = np.asarray(clustering.labels), table.labels
    ks, chosen, parts, numbers = cut_page(clustering, rows, *page)
    halves, names = cut_halves(*page, ks), table.feature_names
    groups, group = np.unique(np.stack(parts), axis=1, return_inverse=True)
    sums = moments(table.values[rows], group.ravel())
    solutions = []
    for i, cut in enumerate(parts):
        own = sums.merge(groups[i])
        if i == chosen:
            of = clustering.association, labels, np.asarray(clustering.confidence)
            shown = describe_solution(*of, numbers[i], known, halves[i], rows)
            own = own if len(rows) == len(labels) else moments(table.values, labels)
            written = signatures(own, numbers[i], names, WRITTEN_SIGNATURES)
        else:
            association = item_consensus(page[0], cut, page[1])
            of = association, cut, confidence(association, cut)
            classes = None if known is None else known[rows]
            shown = describe_solution(*of, numbers[i], classes, halves[i])
        order = cluster_order(cut, position)
        solutions.append(shown | describe_features(own, numbers[i], order, names))
    return solutions, chosen, written


def cluster_order(labels: Labels, position: Labels) -> Labels:
    """Return the clusters in the order of their mean place in the dendrogram."""
    return np.argsort(np.bincount(labels, position) / np.bincount(labels))


def cut_halves(part: Ensemble, weights: Array, ks: Sequence[int]) -> Labels:
    """Return the clusters of random halves of the members for each number.

    Of shape (n_numbers, n_halves, n_samples), from the dendrogram of each half. For one
    cluster they are cut into two: whether the halves agree on a split is what is left
    to see.
    """
    rng, size = member_stream(0, 1, "selection"), len(part)
    orders = [rng.permutation(size) for _ in range(N_SPLITS)]
    halves = [h for o in orders for h in (o[: size // 2], o[size // 2 :]) if h.size]
    owner = np.repeat(np.arange(size), np.diff(part.offsets))
    found = []
    for half in map(np.sort, halves):
        own = weights[np.isin(owner, half)]
        found.append(cuts(part[half.tolist()], own, [max(k, 2) for k in ks]))
    return np.stack(found, axis=1)


def match_numbers(parts: Sequence[Labels], start: int) -> list[Labels]:
    """Name the clusters of each partition like those they share most samples with.

    Each partition is matched with its neighbour nearer to `start`, so that the sum of
    the overlaps is largest; the clusters of `start` keep their own numbers, and one
    without a partner takes the lowest number that is free.

    Examples
    --------
    >>> first, second = np.array([0, 0, 1, 1]), np.array([2, 2, 0, 1])
    >>> match_numbers([first, second], 0)
    [array([0, 1]), array([1, 2, 0])]
    """
    found = {start: np.arange(int(parts[start].max()) + 1)}
    for i in (*range(start + 1, len(parts)), *range(start - 1, -1, -1)):
        near = i - 1 if i > start else i + 1
        names = found[near]
        overlap = np.zeros((int(parts[i].max()) + 1, len(names)))
        np.add.at(overlap, (parts[i], parts[near]), 1.0)
        numbers = np.full(len(overlap), -1)
        for new, old in zip(*linear_sum_assignment(-overlap), strict=True):
            if overlap[new, old] > 0:
                numbers[new] = names[old]
        free = iter(np.setdiff1d(np.arange(2 * len(numbers) + names.max()), numbers))
        found[i] = np.array([next(free) if each < 0 else each for each in numbers])
    return [found[i] for i in range(len(parts))]


def tracking_order(tracks: Sequence[Labels], first: Labels) -> Labels:
    """Return at most `TRACKED_SAMPLES` samples, by the first clusters, then by all."""
    order = np.lexsort([*tracks[::-1], first])
    return order[:: max(1, -(-order.size // TRACKED_SAMPLES))]


def describe_solution(
    association: Array,
    labels: Labels,
    sure: Array,
    numbers: Labels,
    known: NDArray[Any] | None,
    halves: Labels,
    rows: Labels | slice = slice(None),
) -> Record:
    """Return what is shown of one clustering, sample by sample for some rows.

    `sure` is the confidence of the samples, and `halves` are those of `cut_halves`, of
    the rows. The clusters, `labels` and `second`, count from 0 without gaps, and
    `numbers` are their names, which stay with their samples as K changes. `own` and
    `other` are the share of the halves that put a sample together with its cluster and
    with the second one.
    """
    n_clusters, second = association.shape[1], second_choice(association, labels)[rows]
    shown = labels[rows]
    own, other = np.ones(len(shown)), np.zeros(len(shown))
    if n_clusters > 1:
        ensemble = Ensemble.from_labels(halves.T)
        # A small cluster may have no sample among the rows.
        seen, code = np.unique(shown, return_inverse=True)
        consensus = np.zeros((len(shown), n_clusters))
        even = np.ones(ensemble.n_base_clusters)
        consensus[:, seen] = item_consensus(ensemble, code, even)
        own, other = consensus[np.arange(len(shown)), [shown, second]]
    clusters = cluster_rows(association, labels, sure, numbers)
    for k, row in zip(np.argsort(numbers), clusters, strict=True):
        row["consensus"] = float(own[shown == k].mean()) if k in shown else None
    return {
        "n_clusters": n_clusters,
        "numbers": numbers,
        "labels": shown,
        "second": second,
        "halves": halves,
        "own": own,
        "other": other,
        "confidence": sure[rows],
        "clusters": clusters,
        "histogram": np.histogram(sure, HISTOGRAM_BINS, (0.0, 1.0))[0],
        "n_ambiguous": int((sure < AMBIGUOUS).sum()),
        "mean_confidence": float(sure.mean()),
        "scores": None if known is None else compare_classes(known, labels, numbers),
    }


def cluster_rows(
    association: Array, labels: Labels, sure: Array, numbers: Labels
) -> list[Record]:
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


def compare_classes(known: NDArray[Any], labels: Labels, numbers: Labels) -> Record:
    """Return the agreement with known classes, and the table of both.

    Its columns are the clusters by name; where there are many classes, its last row
    counts the small ones together. With them go the best matches: of each class the
    cluster that holds most of it, and of each cluster the class that is most of it.
    """
    # Samples without a class are left out; their clusters keep their columns.
    given = known != ""
    classes, code = np.unique(known[given], return_inverse=True)
    counts = np.zeros((classes.size, len(numbers)), dtype=int)
    np.add.at(counts, (code, labels[given]), 1)
    names = [str(each) for each in classes]
    columns = np.argsort(numbers)
    of_clusters = [
        {"name": names[column.argmax()], "share": column.max() / column.sum()}
        if column.any()
        else None
        for column in counts[:, columns].T
    ]
    if classes.size > MAX_CLASSES:
        large = np.sort(np.argsort(-counts.sum(axis=1), kind="stable")[:MAX_CLASSES])
        small = np.delete(counts, large, axis=0)
        names = [names[i] for i in large] + [f"{len(small)} smaller classes"]
        counts = np.vstack([counts[large], small.sum(axis=0)])
    return {
        **scores(known[given], labels[given]),
        "classes": names,
        "counts": counts[:, columns].tolist(),
        "of_clusters": of_clusters,
        "of_classes": [
            {"cluster": int(numbers[row.argmax()]), "share": row.max() / row.sum()}
            for row in counts
        ],
    }


def scores(known: NDArray[Any], labels: NDArray[Any]) -> dict[str, float]:
    """Return how far two partitions agree: NMI over the larger entropy, and ARI.

    Examples
    --------
    >>> scores(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]))
    {'nmi_max': 1.0, 'ari': 1.0}
    """
    nmi = normalized_mutual_info_score(known, labels, average_method="max")
    return {"nmi_max": float(nmi), "ari": float(adjusted_rand_score(known, labels))}


def compare_functions(
    clustering: Clustering,
    known: NDArray[Any] | None,
    rows: Labels,
    part: Ensemble,
    weights: Array,
) -> list[Record]:
    """Return how the consensus functions cluster the samples of the page into K.

    Of each its name, labels, agreement (ARI) with all three, mean confidence and scores
    against known classes. For one cluster there is nothing to compare.
    """
    found: list[Record] = []
    settings = replace(clustering.settings, n_clusters=clustering.n_clusters)
    for name in CONSENSUS if clustering.n_clusters > 1 else ():
        labels = np.asarray(clustering.labels)[rows]
        if name != settings.consensus:
            other = replace(settings, consensus=name)
            labels = np.asarray(cluster_ensemble(part, other, weights=weights).labels)
        sure = confidence(item_consensus(part, labels, weights), labels)
        row: Record = {"name": name, "short": SHORT[name], "labels": labels}
        row["mean_confidence"] = float(sure.mean())
        there = None if known is None else known[rows] != ""
        agree = None if known is None else scores(known[rows][there], labels[there])
        found.append(row | {"scores": agree})
    for row in found:
        of = row["labels"]
        row["agreement"] = [adjusted_rand_score(of, each["labels"]) for each in found]
    return found
