"""What the report of a clustering shows, as plain numbers and names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from mdec import __version__
from mdec._support.random import member_stream
from mdec.coassociation import coassociation_factor, coassociation_of
from mdec.confidence import (
    AMBIGUOUS,
    ambiguous_samples,
    cluster_support,
    confidence,
    item_consensus,
    view_associations,
)
from mdec.ensemble import Ensemble
from mdec.experiments.measure import versions
from mdec.report.clustering.columns import described_columns
from mdec.report.clustering.described import (
    Array,
    Description,
    Heatmap,
    Histogram,
    Labels,
    NullBand,
    Preparation,
    Selection,
    Signature,
    SignatureValues,
    Support,
    View,
)
from mdec.report.clustering.layout import TSNE_SAMPLES, consensus_map, data_map
from mdec.report.clustering.signatures import (
    moments,
    separating_features,
    signatures,
)
from mdec.report.clustering.views import (
    associated,
    matched_numbers,
    partitions,
    shown_numbers,
    view,
)
from mdec.selection.rule import KSelection

# The page holds at most this many samples, and draws at most these in some figures.
PAGE_SAMPLES = 2000
HEATMAP_SAMPLES = 400
TRACKED_SAMPLES = 600
BAR_SAMPLES = 400
VALUE_SAMPLES = 1000

LISTED_SAMPLES = 25
LISTED_FEATURES = 20
VALUE_BINS = 40

# Features of each cluster: in signatures.csv, on the page, and rows of the heatmap.
WRITTEN_SIGNATURES = 20
LISTED_SIGNATURES = 5
DRAWN_SIGNATURES = 40


def describe_clustering(
    ensemble: Ensemble,
    labels: Labels,
    weights: Array,
    selection: KSelection,
    *,
    sample_names: Sequence[str],
    values: Array | None = None,
    feature_names: Sequence[str] | None = None,
    known: NDArray[Any] | None = None,
    columns: Mapping[str, Sequence[str]] | None = None,
    preparation: dict[str, Any] | None = None,
    raw: Array | None = None,
    settings: dict[str, Any] | None = None,
    python: str | None = None,
    again: str | None = None,
    title: str = "Clustering",
) -> Description:
    """Return everything that the report of a clustering shows.

    Parameters
    ----------
    ensemble : Ensemble
        The base clusterings.
    labels : ndarray of shape (n_samples,)
        Consensus cluster of each sample, from 0.
    weights : ndarray of shape (n_base_clusters,)
        Weight of each base cluster.
    selection : KSelection
        The criteria for each number of clusters.
    sample_names, feature_names : sequence of str
        One name per sample, and one per feature.
    values : ndarray of shape (n_samples, n_features), optional
        The data; without them no features are listed.
    known : ndarray of shape (n_samples,), optional
        Known classes to compare with.
    columns : mapping of str to sequence of str, optional
        Other columns of the table, to colour the map by.
    preparation : dict, optional
        In words, or None: what the values are (kind), what was done to them (prepared),
        why (reason), and what turns it off (flag).
    raw : ndarray of shape (n_samples, n_raw_features), optional
        The data before that, to be shown beside those after it.
    settings : dict, optional
        What the clustering was made with, shown as it is.
    python : str, optional
        Lines of Python that give the same clusters.
    again : str, optional
        Command that clusters the same ensemble, to which ``--k`` is added.
    title : str
        Heading of the report.

    Returns
    -------
    Description
        Numbers, strings, lists and arrays only.
    """
    rng = member_stream(0, 0, "selection")
    rows = drawn_in_clusters(labels, PAGE_SAMPLES, rng)
    factor = coassociation_factor(ensemble, weights)[rows]
    matrix = coassociation_of(factor, ensemble.labels[rows])
    heatmap = consensus_heatmap(matrix, labels[rows], rng)
    association = item_consensus(ensemble, labels, weights)
    n_clusters = association.shape[1]
    ks = shown_numbers(selection, n_clusters)
    chosen = ks.index(n_clusters)
    parts = partitions(ensemble, weights, selection, ks, rows)
    parts[n_clusters] = labels[rows]
    numbers = matched_numbers([parts[k] for k in ks], chosen)
    views = [
        view(
            associated(factor, ensemble.labels[rows], parts[k]),
            parts[k],
            numbers[i],
            None if known is None else known[rows],
        )
        for i, k in enumerate(ks)
        if k != n_clusters
    ]
    views.insert(chosen, view(association, labels, numbers[chosen], known, rows))
    for each in views:
        each["cluster_order"] = cluster_order(each["labels"], heatmap)
    written: list[Signature] = []
    if values is not None:
        written = add_signatures(views, chosen, values, labels, rows, feature_names)
    mapped = drawn_in_clusters(labels[rows], TSNE_SAMPLES, rng)
    shown = views[chosen]
    return {
        "title": title,
        "n_samples": len(labels),
        "n_members": len(ensemble),
        "n_base_clusters": ensemble.n_base_clusters,
        "n_failed": len(ensemble.failures),
        "n_clusters": n_clusters,
        "names": [sample_names[i] for i in rows],
        "views": views,
        "chosen": chosen,
        "n_numbers": len({*selection.table["n_clusters"].tolist(), n_clusters}),
        "selection": selection_rows(selection),
        "heatmap": heatmap,
        "map": consensus_map(matrix, mapped),
        "pca": None if values is None else data_map(values[rows]),
        "tracked": tracked_samples(views, chosen),
        "bars": drawn_in_clusters(labels[rows], BAR_SAMPLES, rng),
        "columns": described_columns(known, columns, rows),
        "signature_values": signature_values(
            views, values, rows[heatmap["rows"]], feature_names
        ),
        "ambiguous": least_certain(shown, [sample_names[i] for i in rows]),
        "ambiguous_below": AMBIGUOUS,
        "clusters": shown["clusters"],
        "support": supports(ensemble, labels, weights),
        "n_ambiguous": shown["n_ambiguous"],
        "mean_confidence": shown["mean_confidence"],
        "scores": shown["scores"],
        "signatures": written,
        "preparation": described_preparation(preparation, raw, values),
        "settings": settings or {},
        "python": python,
        "again": again,
        "versions": {"mdec": __version__, **versions("numpy", "scipy", "scikit-learn")},
    }


def supports(
    ensemble: Ensemble, labels: Labels, weights: Array
) -> list[Support] | None:
    """Return how firmly each view holds the clusters; None for a single table."""
    if not ensemble.views:
        return None
    found = view_associations(ensemble, labels, weights)
    return [
        {
            "view": view.name,
            "n_members": ensemble.origins.count(number),
            "clusters": cluster_support(each, labels).tolist(),
            "mean_confidence": float(confidence(each, labels).mean()),
        }
        for number, (view, each) in enumerate(zip(ensemble.views, found, strict=True))
    ]


def described_preparation(
    told: dict[str, Any] | None, raw: Array | None, values: Array | None
) -> Preparation | None:
    """Return what was said of the preparation, with the values before and after."""
    if told is None:
        return None
    before = after = None
    if raw is not None and values is not None:
        before, after = value_histogram(raw), value_histogram(values)
    return {
        "kind": told["kind"],
        "prepared": told["prepared"],
        "reason": told["reason"],
        "flag": told["flag"],
        "before": before,
        "after": after,
    }


def value_histogram(values: Array) -> Histogram:
    """Return the distribution of the values of all samples, or of every n-th one."""
    shown = values[:: max(1, -(-len(values) // VALUE_SAMPLES))]
    counts, edges = np.histogram(shown, VALUE_BINS)
    return {
        "shares": counts / shown.size,
        "edges": edges,
        "median": float(np.median(shown)),
    }


def selection_rows(selection: KSelection) -> Selection:
    """Return the K table by rows, with what is drawn from it."""
    table, null = selection.table, selection.null
    names = [name for name in table if name != "n_clusters"]
    rows: list[dict[str, float]] = [
        {"n_clusters": int(k), **{name: float(table[name][i]) for name in names}}
        for i, k in enumerate(table["n_clusters"])
    ]
    for row in rows:
        # JSON has no such number.
        if np.isnan(row.get("p_value", 0.0)):
            del row["p_value"]
    band: NullBand | None = None
    if null is not None:
        band = {
            "mean": null.draws.mean(axis=0),
            "low": null.draws.min(axis=0),
            "high": null.draws.max(axis=0),
            "p_value": null.p_value,
        }
    return {
        "suggested": selection.n_clusters,
        "reason": selection.reason,
        "rows": rows,
        "cdf": selection.cdf,
        "levels": selection.levels,
        "null": band,
        "n_measured": len(selection.samples),
    }


def drawn_in_clusters(
    labels: Labels, n_most: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return about `n_most` rows; every cluster keeps its share and at least one."""
    if len(labels) <= n_most:
        return np.arange(len(labels))
    chosen = []
    for k in np.unique(labels):
        rows = np.flatnonzero(labels == k)
        size = max(1, round(n_most * rows.size / len(labels)))
        chosen.append(rng.choice(rows, min(size, rows.size), replace=False))
    return np.sort(np.concatenate(chosen))


def consensus_heatmap(
    matrix: Array, labels: Labels, rng: np.random.Generator
) -> Heatmap:
    """Return the consensus of all or some samples, with places in the dendrogram."""
    rows = drawn_in_clusters(labels, HEATMAP_SAMPLES, rng)
    part = matrix[np.ix_(rows, rows)]
    pairs = part[np.triu_indices(len(rows), 1)]
    # Consensus is weighted and seldom near one, so the colours end at the top pairs.
    full = float(np.quantile(pairs, 0.99)) if pairs.size else 1.0
    position = np.arange(len(rows))
    if len(rows) > 2:
        tree = linkage(squareform(1.0 - part, checks=False), "average")
        position[leaves_list(tree)] = np.arange(len(rows))
    return {"matrix": part, "rows": rows, "position": position, "full": max(full, 0.05)}


def cluster_order(labels: Labels, heatmap: Heatmap) -> NDArray[np.int64]:
    """Return the clusters in the order of their mean place in the dendrogram."""
    part, position = labels[heatmap["rows"]], heatmap["position"]
    sizes = np.bincount(part, minlength=int(labels.max()) + 1)
    sums = np.bincount(part, position, minlength=sizes.size)
    # One that is not drawn comes last.
    return np.argsort(np.where(sizes > 0, sums / np.maximum(sizes, 1), np.inf))


def sample_order(labels: Labels, heatmap: Heatmap) -> NDArray[np.int64]:
    """Return the samples of the heatmap cluster by cluster, as in the dendrogram."""
    rank = np.argsort(cluster_order(labels, heatmap))
    return np.lexsort([heatmap["position"], rank[labels[heatmap["rows"]]]])


def tracked_samples(views: list[View], chosen: int) -> NDArray[np.int64]:
    """Return at most `TRACKED_SAMPLES` samples ordered by all their clusters."""
    keys = [each["numbers"][each["labels"]] for each in views]
    order = np.lexsort([*keys[::-1], keys[chosen]])
    return order[:: max(1, -(-order.size // TRACKED_SAMPLES))]


def least_certain(shown: View, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the least certain samples with their first and second choice."""
    numbers = shown["numbers"]
    return [
        {
            "name": names[i],
            "cluster": int(numbers[shown["labels"][i]]),
            "own": float(shown["own"][i]),
            "second": int(numbers[shown["second"][i]]) if len(numbers) > 1 else -1,
            "rival": float(shown["rival"][i]),
            "confidence": float(shown["confidence"][i]),
        }
        for i in ambiguous_samples(shown["confidence"], 2.0)[:LISTED_SAMPLES]
    ]


def add_signatures(
    views: list[View],
    chosen: int,
    values: Array,
    labels: Labels,
    rows: Labels,
    feature_names: Sequence[str] | None,
) -> list[Signature]:
    """Give each view the features of its clusters; return those of signatures.csv.

    The features are summed once, over the groups of samples that are together for every
    K; the clusters are unions of them. The clusters of the report take all samples.
    """
    together = np.stack([each["labels"] for each in views])
    groups, group = np.unique(together, axis=1, return_inverse=True)
    part = moments(values[rows], group.ravel())
    for i, each in enumerate(views):
        sums = part.merged(groups[i])
        if i == chosen and len(rows) < len(values):
            sums = moments(values, labels)
        numbers, k = each["numbers"], each["n_clusters"]
        listed = LISTED_SIGNATURES * (2 if k == 2 else 1)
        each["signatures"] = signatures(sums, numbers, feature_names, listed)
        each["features"] = separating_features(
            sums, numbers, feature_names, LISTED_FEATURES
        )
        each["drawn_features"] = drawn_features(each)
        if i == chosen:
            written = signatures(sums, numbers, feature_names, WRITTEN_SIGNATURES)
    return written


def drawn_features(shown: View) -> NDArray[np.int64]:
    """Return the first signature features of each cluster, in the order of these."""
    size = max(1, DRAWN_SIGNATURES // shown["n_clusters"])
    found: dict[int, None] = {}
    for k in shown["cluster_order"]:
        own = [s for s in shown["signatures"] if s["cluster"] == shown["numbers"][k]]
        found |= dict.fromkeys(s["feature"] for s in own[:size])
    return np.array(list(found)[:DRAWN_SIGNATURES], dtype=np.int64)


def signature_values(
    views: list[View],
    values: Array | None,
    samples: Labels,
    feature_names: Sequence[str] | None,
) -> SignatureValues | None:
    """Return what the heatmaps of the signatures draw, standardised by feature."""
    used = np.unique(np.concatenate([each["drawn_features"] for each in views]))
    if values is None or not used.size:
        return None
    every = values[:, used].astype(np.float64)
    spread = every.std(axis=0)
    scores = (every - every.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    names = [feature_names[j] if feature_names else str(j + 1) for j in used]
    return {"features": used, "names": names, "scores": scores[samples].T}
