"""What the report of a clustering shows, as plain numbers and names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from mdec import __version__
from mdec._support.arrays import Array, Labels
from mdec._support.optional import versions
from mdec._support.random import member_stream
from mdec.clustering import Clustering
from mdec.coassociation import locally_weighted_coassociation
from mdec.ensemble import Ensemble
from mdec.report.layout import TSNE_SAMPLES, consensus_map, data_map
from mdec.report.signatures import MARKERS, Record
from mdec.report.solutions import (
    cluster_order,
    compare_functions,
    describe_solutions,
    restrict_ensemble,
    tracking_order,
)
from mdec.selection.rule import KSelection
from mdec.tables import Table
from mdec.tables.cells import is_number, number
from mdec.tables.columns import MAX_BESIDE

# The page holds at most this many samples, and draws at most these in some figures.
PAGE_SAMPLES = 2000
BAR_SAMPLES = 400
VALUE_SAMPLES = 1000

# Values of features that the page holds, and merges that its dendrogram draws.
PAGE_VALUES = 250_000
DRAWN_MERGES = 80

VALUE_BINS = 40

# Numbers with more different values are drawn on a scale, words with more are only
# listed.
_FEW_NUMBERS, _FEW_WORDS = 12, 40

KNOWN = "known class"


@dataclass(frozen=True, eq=False)
class RunNotes:
    """What the report and the summary say of a run, beside its clustering.

    Attributes
    ----------
    title : str
        Heading of the report.
    settings : mapping
        What the clustering was made with, shown as it is.
    preparation : dict or None
        In words, or None: what the values are (kind), what was done to them (prepared),
        why (reason), and what turns it off (flag).
    raw : ndarray of shape (n_samples, n_raw_features) or None
        The values before that, to be shown beside those after it.
    python : callable or None
        Returns lines of Python that give so many clusters; `write_result` adds those
        that cluster the ensemble of the result.
    again : str or None
        Command that clusters the same ensemble, to which ``--k`` is added.
    timings : mapping of str to float
        Seconds by step.
    """

    title: str = "Clustering"
    settings: Mapping[str, Any] = field(default_factory=dict)
    preparation: Record | None = None
    raw: Array | None = None
    python: Callable[[int], str] | None = None
    again: str | None = None
    timings: Mapping[str, float] = field(default_factory=dict)


class Description(dict[str, Any]):
    """Everything that the report of a clustering shows, by name.

    Of the samples on the page: ``names``, ``columns`` beside the features, places on
    the ``map`` and by ``pca``, ``signature_values``, and which of them the figures show
    (``tracked``, ``bars``). Their ``tree``, and ``solutions`` cut from it; that of the
    run itself is ``solutions[chosen]``, with its ``signatures``, the ``support`` of
    each view, and other consensus ``functions``. How K was chosen: ``criteria`` and
    ``candidates``. And the ``clustering``, the ``notes`` on its run, ``histograms`` of
    the values, and ``versions``.
    """


def describe_clustering(
    clustering: Clustering,
    *,
    table: Table | Mapping[str, Table] | None = None,
    notes: RunNotes | None = None,
) -> Description:
    """Return everything that the report of a clustering shows.

    Parameters
    ----------
    clustering : Clustering
        The clustering: ``model.clustering_``, or of `mdec.clustering.cluster_ensemble`.
    table : Table or mapping of str to Table, optional
        Names, known classes, other columns and the values, one for each view; without
        values no features are listed.
    notes : RunNotes, optional
        What the report says of the run.

    Returns
    -------
    Description
        What the page shows, computed.
    """
    labels = np.asarray(clustering.labels)
    table, notes = join_tables(table, len(labels)), notes or RunNotes()
    rng, (rows, part) = member_stream(0, 2, "selection"), draw_page(clustering)
    matrix = locally_weighted_coassociation(*part)
    tree = consensus_tree(matrix, labels[rows])
    mapped = draw_from_clusters(labels[rows], TSNE_SAMPLES, rng)
    laid_out = consensus_map(matrix, mapped)
    # The largest array of the page; the others need its room.
    del matrix
    solutions, chosen, written = describe_solutions(
        clustering, table, rows, part, tree["position"]
    )
    tracks = [each["numbers"][each["labels"]] for each in solutions]
    histograms = {}
    if notes.preparation is not None and notes.raw is not None:
        both = {"before": notes.raw, "after": table.values}
        histograms = {name: value_histogram(each) for name, each in both.items()}
    return Description(
        clustering=clustering,
        notes=notes,
        names=[table.sample_names[i] for i in rows],
        solutions=solutions,
        chosen=chosen,
        criteria=criteria_rows(clustering.criteria),
        tree=tree,
        map=laid_out,
        pca=data_map(table.values[rows]),
        tracked=tracking_order(tracks, tracks[chosen]),
        bars=draw_from_clusters(labels[rows], BAR_SAMPLES, rng),
        columns=describe_columns(table.labels, table.columns, rows),
        signature_values=signature_values(solutions, chosen, table, rows),
        support=view_support(clustering),
        functions=compare_functions(clustering, table.labels, rows, *part),
        candidates=[asdict(each) for each in clustering.criteria.candidates],
        signatures=written,
        histograms=histograms,
        versions={"mdec": __version__, **versions("numpy", "scipy", "scikit-learn")},
    )


def join_tables(table: Table | Mapping[str, Table] | None, n_samples: int) -> Table:
    """Return one table: that of the views side by side, or one with names alone."""
    if isinstance(table, Table):
        return table
    if table is None:
        names = [str(i + 1) for i in range(n_samples)]
        return Table(np.empty((n_samples, 0)), names, [])
    return replace(
        next(iter(table.values())),
        values=np.concatenate([each.values for each in table.values()], axis=1),
        feature_names=[
            f"{name}: {feature}"
            for name, each in table.items()
            for feature in each.feature_names
        ],
    )


def view_support(clustering: Clustering) -> list[Record] | None:
    """Return how firmly each view holds the clusters; None for a single table.

    And how firmly it holds the samples on average.
    """
    ensemble = clustering.ensemble.gather()
    if not ensemble.views:
        return None
    sure = clustering.view_confidence.mean(axis=0).tolist()
    return [
        {
            "view": view.name,
            "n_members": ensemble.origins.count(number),
            "clusters": clustering.view_support[number].tolist(),
            "mean_confidence": sure[number],
        }
        for number, view in enumerate(ensemble.views)
    ]


def value_histogram(values: Array) -> Record:
    """Return the distribution of the values of all samples, or of every n-th one.

    Shares of the values between edges, with their median.
    """
    shown = values[:: max(1, -(-len(values) // VALUE_SAMPLES))]
    counts, edges = np.histogram(shown, VALUE_BINS)
    shares, median = counts / shown.size, float(np.median(shown))
    return {"shares": shares.tolist(), "edges": edges.tolist(), "median": median}


def criteria_rows(selection: KSelection) -> list[dict[str, float]]:
    """Return the table of the criteria by rows, without numbers that JSON lacks."""
    columns = [column.tolist() for column in selection.table.values()]
    return [
        {n: x for n, x in zip(selection.table, row, strict=True) if np.isfinite(x)}
        for row in zip(*columns, strict=True)
    ]


def draw_page(
    clustering: Clustering, n_most: int | None = None
) -> tuple[Labels, tuple[Ensemble, Array]]:
    """Return the rows of the samples on the page, and their ensemble with weights."""
    rng, most = member_stream(0, 0, "selection"), n_most or PAGE_SAMPLES
    rows = draw_from_clusters(np.asarray(clustering.labels), most, rng)
    ensemble = clustering.ensemble.gather()
    return rows, restrict_ensemble(ensemble, clustering.weights, rows)


def draw_from_clusters(labels: Labels, n_most: int, rng: np.random.Generator) -> Labels:
    """Return about `n_most` rows; every cluster keeps its share and at least one."""
    if len(labels) <= n_most:
        return np.arange(len(labels))
    chosen = []
    for k in np.unique(labels):
        rows = np.flatnonzero(labels == k)
        size = max(1, round(n_most * rows.size / len(labels)))
        chosen.append(rng.choice(rows, min(size, rows.size), replace=False))
    return np.sort(np.concatenate(chosen))


def consensus_tree(matrix: Array, labels: Labels) -> Record:
    """Return the dendrogram of average linkage, in which clusters are joined last.

    The place of each sample among its leaves, and the last merges. Each has places and
    heights as shares: those of the left branch, the height of the merge, and those of
    the right branch. The heights are the consensus that is missing, and end at the top
    pairs, since weighted consensus is seldom near one.
    """
    size = len(labels)
    if size < 3:
        return {"position": np.arange(size), "merges": []}
    apart = np.concatenate([labels[i + 1 :] != labels[i] for i in range(size)])
    pairs = squareform(matrix, checks=False)
    full = max(float(np.quantile(pairs, 0.99)), 0.05)
    np.subtract(1.0, pairs, out=pairs)
    pairs += apart
    pairs /= 2.0
    joined = linkage(pairs, "average")
    position = np.argsort(leaves_list(joined))
    between = np.arange(size - 1) >= size - len(np.unique(labels))
    height = 1.0 - (1.0 + between - 2.0 * joined[:, 2]) / full
    places, heights = [*(position + 0.5) / size], [0.0] * size
    merges = []
    for (a, b), rise in zip(joined[:, :2].astype(int), height, strict=True):
        a, b = sorted((a, b), key=places.__getitem__)
        top = min(max(rise, heights[a], heights[b]), 1.0)
        merges.append((places[a], heights[a], top, places[b], heights[b]))
        places.append((places[a] + places[b]) / 2.0)
        heights.append(top)
    return {"position": position, "merges": merges[-DRAWN_MERGES:]}


def sample_order(labels: Labels, position: Labels) -> Labels:
    """Return the samples cluster by cluster, each in the order of the dendrogram."""
    rank = np.argsort(cluster_order(labels, position))
    return np.lexsort([position, rank[labels]])


def signature_values(
    solutions: list[Record], chosen: int, table: Table, rows: Labels
) -> Record | None:
    """Return values that the page draws and colours samples by, standardised.

    They are of all features if that are few, else of those that mark clusters, as many
    as the page can hold, those of numbers near the chosen one first.
    """
    most = max(PAGE_VALUES // len(rows), MARKERS)
    used = np.arange(len(table.feature_names))
    if used.size > most:
        near = sorted(range(len(solutions)), key=lambda i: abs(i - chosen))
        each = np.concatenate([solutions[i]["markers"]["features"] for i in near])
        used = np.sort(np.array([*dict.fromkeys(each.tolist())][:most], dtype=int))
    if not used.size:
        return None
    every = table.values[:, used].astype(np.float64)
    spread = every.std(axis=0)
    scores = (every - every.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    names = [table.feature_names[j] for j in used]
    return {"features": used, "names": names, "scores": scores[rows].T}


def describe_columns(
    known: NDArray[Any] | None,
    columns: Mapping[str, Sequence[str]] | None,
    rows: Labels,
) -> list[Record]:
    """Return the known classes and the other columns, of some rows."""
    given = {} if known is None else {KNOWN: [str(each) for each in known.tolist()]}
    for name, cells in (columns or {}).items():
        given[name if name not in given else f"{name} (column)"] = list(cells)
    return [
        describe_column(name, [cells[i] for i in rows], classes=name == KNOWN)
        for name, cells in list(given.items())[: MAX_BESIDE + 1]
    ]


def describe_column(name: str, cells: list[str], *, classes: bool = False) -> Record:
    """Return a column as classes, as numbers, or as words that are only listed.

    Examples
    --------
    >>> describe_column("sex", ["f", "m", "f"])["kind"]
    'classes'
    >>> describe_column("age", [str(i) for i in range(40)])["kind"]
    'numbers'
    """
    words, codes = np.unique(np.array(cells, dtype=np.str_), return_inverse=True)
    if all(is_number(cell) for cell in words.tolist()):
        if words.size > _FEW_NUMBERS and not classes:
            values = np.array([number(cell) for cell in cells])
            return {"name": name, "kind": "numbers", "values": values}
        order = np.argsort([number(cell) for cell in words.tolist()], kind="stable")
        words, codes = words[order], np.argsort(order)[codes]
    kind = "words" if words.size > _FEW_WORDS and not classes else "classes"
    return {"name": name, "kind": kind, "levels": words.tolist(), "codes": codes}
