"""What the report of a clustering shows, as plain numbers and names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from mdec import __version__
from mdec._support.random import member_stream
from mdec.coassociation import coassociation_factor
from mdec.confidence import (
    AMBIGUOUS,
    ambiguous_samples,
    cluster_consensus,
    confidence,
    item_consensus,
    second_choice,
)
from mdec.ensemble import Ensemble
from mdec.evaluation import ari, nmi_max
from mdec.experiments.measure import versions
from mdec.report.clustering.described import (
    Array,
    Bars,
    ClusterRow,
    Description,
    Heatmap,
    Histogram,
    Labels,
    NullBand,
    Preparation,
    SampleMap,
    Selection,
    Tracking,
)
from mdec.selection.rule import KSelection

# What is drawn sample by sample is drawn for at most this many.
MAP_SAMPLES = 1200
HEATMAP_SAMPLES = 400
TRACKED_SAMPLES = 600
BAR_SAMPLES = 400
VALUE_SAMPLES = 1000

LISTED_SAMPLES = 30
LISTED_FEATURES = 20
HISTOGRAM_BINS = 20
VALUE_BINS = 40


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
    preparation: dict[str, Any] | None = None,
    raw: Array | None = None,
    settings: dict[str, Any] | None = None,
    title: str = "Clustering",
) -> Description:
    """Return everything that the report of a clustering shows.

    Parameters
    ----------
    ensemble, labels, weights, selection
        The base clusterings, the consensus cluster of each sample from 0, the weight of
        each base cluster, and the criteria for each number of clusters.
    sample_names, feature_names : sequence of str
        One name per sample, and one per feature.
    values : ndarray of shape (n_samples, n_features), optional
        The data; without them no features are listed.
    known : ndarray of shape (n_samples,), optional
        Known classes to compare with.
    preparation : dict, optional
        In words, or None: what the values are (kind), what was done to them (prepared),
        why (reason), and what turns it off (flag).
    raw : ndarray of shape (n_samples, n_raw_features), optional
        The data before that, to be shown beside those after it.
    settings : dict, optional
        What the clustering was made with, shown as it is.
    title : str
        Heading of the report.

    Returns
    -------
    Description
        Numbers, strings, lists and arrays only.
    """
    association = item_consensus(ensemble, labels, weights)
    sure = confidence(association, labels)
    rng = member_stream(0, 0, "selection")
    shown = drawn_in_clusters(labels, MAP_SAMPLES, rng)
    return {
        "title": title,
        "n_samples": len(labels),
        "n_members": len(ensemble),
        "n_base_clusters": ensemble.n_base_clusters,
        "n_failed": len(ensemble.failures),
        "n_clusters": association.shape[1],
        "clusters": cluster_rows(association, labels, sure),
        "selection": selection_rows(selection),
        "heatmap": consensus_heatmap(ensemble, labels, weights, rng),
        "map": sample_map(
            ensemble, labels, weights, shown, sure, association, sample_names
        ),
        "tracking": tracking(selection, labels),
        "bars": item_bars(association, labels, sure, sample_names, rng),
        "histogram": np.histogram(sure, HISTOGRAM_BINS, (0.0, 1.0))[0],
        "ambiguous": ambiguous_rows(association, labels, sure, sample_names),
        "n_ambiguous": int((sure < AMBIGUOUS).sum()),
        "ambiguous_below": AMBIGUOUS,
        "mean_confidence": float(sure.mean()),
        "features": feature_effects(values, labels, feature_names),
        "scores": None if known is None else known_scores(known, labels),
        "preparation": described_preparation(preparation, raw, values),
        "settings": settings or {},
        "versions": {"mdec": __version__, **versions("numpy", "scipy", "scikit-learn")},
    }


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


def cluster_rows(association: Array, labels: Labels, sure: Array) -> list[ClusterRow]:
    """Return size, consensus and confidence of each cluster."""
    consensus = cluster_consensus(association, labels)
    return [
        {
            "cluster": k,
            "size": int((labels == k).sum()),
            "consensus": float(consensus[k]),
            "confidence": float(sure[labels == k].mean()),
            "ambiguous": int((sure[labels == k] < AMBIGUOUS).sum()),
        }
        for k in range(association.shape[1])
    ]


def selection_rows(selection: KSelection) -> Selection:
    """Return the K table by rows, with what is drawn from it."""
    table, null = selection.table, selection.null
    names = [name for name in table if name != "n_clusters"]
    rows: list[dict[str, float]] = [
        {"n_clusters": int(k), **{name: float(table[name][i]) for name in names}}
        for i, k in enumerate(table["n_clusters"])
    ]
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
    """Return at most `n_most` rows; every cluster keeps its share and at least one."""
    if len(labels) <= n_most:
        return np.arange(len(labels))
    chosen = []
    for k in range(int(labels.max()) + 1):
        rows = np.flatnonzero(labels == k)
        size = max(1, round(n_most * rows.size / len(labels)))
        chosen.append(rng.choice(rows, min(size, rows.size), replace=False))
    return np.sort(np.concatenate(chosen))


def consensus_matrix(ensemble: Ensemble, weights: Array, rows: Labels) -> Array:
    """Return the weighted co-association of some samples with each other."""
    factor = coassociation_factor(ensemble, weights)[rows]
    matrix: Array = np.minimum((factor @ factor.T).toarray(), 1.0)
    np.fill_diagonal(matrix, 1.0)
    return matrix


def dendrogram_order(matrix: Array, labels: Labels) -> NDArray[np.int64]:
    """Return samples in the order of average linkage, cluster by cluster."""
    if len(labels) < 3:
        return np.argsort(labels, kind="stable")
    leaves = leaves_list(linkage(squareform(1.0 - matrix, checks=False), "average"))
    position = np.empty(len(labels))
    position[leaves] = np.arange(len(labels))
    means = np.bincount(labels, position) / np.maximum(np.bincount(labels), 1)
    return np.lexsort([position, means[labels]])


def consensus_heatmap(
    ensemble: Ensemble, labels: Labels, weights: Array, rng: np.random.Generator
) -> Heatmap:
    """Return the consensus matrix ordered by the dendrogram, of all or some samples."""
    rows = drawn_in_clusters(labels, HEATMAP_SAMPLES, rng)
    matrix = consensus_matrix(ensemble, weights, rows)
    order = dendrogram_order(matrix, labels[rows])
    pairs = matrix[np.triu_indices(len(rows), 1)]
    # Consensus is weighted and seldom near one, so the colours end at the top pairs.
    full = float(np.quantile(pairs, 0.99)) if pairs.size else 1.0
    return {
        "matrix": matrix[np.ix_(order, order)],
        "clusters": labels[rows][order],
        "full": max(full, 0.05),
    }


def sample_map(
    ensemble: Ensemble,
    labels: Labels,
    weights: Array,
    shown: NDArray[np.int64],
    sure: Array,
    association: Array,
    sample_names: Sequence[str],
) -> SampleMap:
    """Return places of samples in the plane: t-SNE of the consensus distance 1 - A."""
    matrix = consensus_matrix(ensemble, weights, shown)
    second = second_choice(association, labels)
    return {
        "places": plane(matrix),
        "names": [sample_names[i] for i in shown],
        "clusters": labels[shown],
        "confidence": sure[shown],
        "second": second[shown],
    }


def plane(matrix: Array) -> Array:
    """Lay samples out in the plane so that those of high consensus lie together."""
    from sklearn.manifold import TSNE

    scale = 1.0 / np.sqrt(matrix.sum(axis=1))
    vectors = np.linalg.eigh(matrix * scale[:, None] * scale)[1]
    # Signs of eigenvectors are arbitrary; the largest entry is made positive.
    start = vectors[:, [-2, -3]] if len(matrix) > 2 else vectors
    start = start * np.sign(start[np.abs(start).argmax(axis=0), [0, 1]])
    if len(matrix) < 8:
        return start
    layout = TSNE(
        metric="precomputed",
        init=(1e-4 * start / start.std(axis=0)).astype(np.float32),
        perplexity=min(30.0, (len(matrix) - 1) / 3.0),
        random_state=0,
    )
    places: Array = layout.fit_transform(1.0 - matrix).astype(np.float64)
    return places


def tracking(selection: KSelection, labels: Labels) -> Tracking:
    """Return the clusters of the measured samples for each number of clusters.

    The colour of a cluster follows the samples: each takes the number of the cluster
    with which it shares most, if that is still free, in the row nearer to the number
    of clusters of the report; that row follows the report's own clusters.
    """
    parts, ks = selection.partitions, selection.table["n_clusters"]
    own = labels[selection.samples]
    order = np.lexsort([*parts[::-1], own])
    step = max(1, -(-order.size // TRACKED_SAMPLES))
    start = int(np.abs(ks - (labels.max() + 1)).argmin())
    rows = {start: _following(own, parts[start])}
    for i in range(start + 1, len(parts)):
        rows[i] = _following(rows[i - 1], parts[i])
    for i in range(start - 1, -1, -1):
        rows[i] = _following(rows[i + 1], parts[i])
    colours = np.stack([rows[i] for i in range(len(parts))])
    return {"n_clusters": ks, "colours": colours[:, order[::step]]}


def _following(before: Labels, part: Labels) -> NDArray[np.int64]:
    """Number the clusters of a partition like those it grew out of."""
    overlap = np.zeros((int(part.max()) + 1, int(before.max()) + 1))
    np.add.at(overlap, (part, before), 1.0)
    colours = np.full(len(overlap), -1)
    for flat in np.argsort(-overlap, axis=None, kind="stable"):
        new, old = np.unravel_index(flat, overlap.shape)
        if overlap[new, old] > 0 and colours[new] < 0 and old not in colours:
            colours[new] = old
    free = iter(sorted(set(range(len(overlap) + len(overlap.T))) - set(colours)))
    colours = np.array([next(free) if colour < 0 else colour for colour in colours])
    return colours[part]


def item_bars(
    association: Array,
    labels: Labels,
    sure: Array,
    sample_names: Sequence[str],
    rng: np.random.Generator,
) -> Bars:
    """Return own and rival consensus of samples, by cluster and falling."""
    rows = drawn_in_clusters(labels, BAR_SAMPLES, rng)
    own = association[rows, labels[rows]]
    order = rows[np.lexsort([-own, labels[rows]])]
    rival = association[order, second_choice(association, labels)[order]]
    if association.shape[1] == 1:
        rival = np.zeros(order.size)
    return {
        "own": association[order, labels[order]],
        "rival": rival,
        "clusters": labels[order],
        "confidence": sure[order],
        "names": [sample_names[i] for i in order],
    }


def ambiguous_rows(
    association: Array, labels: Labels, sure: Array, sample_names: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the least certain samples with their first and second choice."""
    second = second_choice(association, labels)
    return [
        {
            "name": sample_names[i],
            "cluster": int(labels[i]),
            "own": float(association[i, labels[i]]),
            "second": int(second[i]),
            "rival": float(association[i, second[i]]),
            "confidence": float(sure[i]),
        }
        for i in ambiguous_samples(sure)[:LISTED_SAMPLES]
    ]


def feature_effects(
    values: Array | None, labels: Labels, feature_names: Sequence[str] | None
) -> list[dict[str, Any]]:
    r"""Return the features that differ most between the clusters.

    Notes
    -----
    The effect is :math:`\eta^2`, the share of a feature's variance that lies between
    the clusters. Beside it stands the cluster whose mean is farthest from the rest, in
    pooled standard deviations.
    """
    n_clusters = int(labels.max()) + 1
    if values is None or n_clusters < 2:
        return []
    sizes = np.bincount(labels).astype(np.float64)[:, None]
    members = np.eye(n_clusters)[labels]
    data = values - values.mean(axis=0, dtype=np.float64)
    means = members.T @ data / sizes
    total = (data**2).sum(axis=0)
    between = (sizes * means**2).sum(axis=0)
    share = np.where(total > 0.0, between / np.where(total > 0.0, total, 1.0), 0.0)
    within = np.sqrt(np.maximum(total - between, 0.0) / max(len(data) - n_clusters, 1))
    # The rest of the samples has the mean that balances the cluster's at zero.
    contrast = means * (1.0 + sizes / np.maximum(len(data) - sizes, 1.0))
    contrast = contrast / np.where(within > 0.0, within, np.inf)
    farthest = np.abs(contrast).argmax(axis=0)
    return [
        {
            "name": feature_names[column] if feature_names else str(column + 1),
            "share": float(share[column]),
            "cluster": int(farthest[column]),
            "contrast": float(contrast[farthest[column], column]),
        }
        for column in np.argsort(-share, kind="stable")[:LISTED_FEATURES]
    ]


def known_scores(known: NDArray[Any], labels: Labels) -> dict[str, Any]:
    """Return the agreement with known classes, and the table of both."""
    n_clusters = int(labels.max()) + 1
    # Samples without a class are left out.
    given = known != ""
    known, labels = known[given], labels[given]
    classes, code = np.unique(known, return_inverse=True)
    counts = np.zeros((classes.size, n_clusters), dtype=int)
    np.add.at(counts, (code, labels), 1)
    return {
        "nmi_max": nmi_max(known, labels),
        "ari": ari(known, labels),
        "classes": [str(each) for each in classes],
        "counts": counts.tolist(),
    }
