"""What the report of a clustering shows: its parts and their types."""

from __future__ import annotations

from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]
Labels = NDArray[np.integer]


class Histogram(TypedDict):
    """Shares of values between edges, with their median."""

    shares: Array
    edges: Array
    median: float


class Preparation(TypedDict):
    """What the values are, what was done to them first, why, and how to turn it off."""

    kind: str | None
    prepared: str | None
    reason: str
    flag: str | None
    before: Histogram | None
    after: Histogram | None


class ClusterRow(TypedDict):
    """A cluster in the table of clusters."""

    cluster: int
    size: int
    consensus: float
    confidence: float
    ambiguous: int


class Support(TypedDict):
    """How firmly one view alone holds the clusters, and the samples on average."""

    view: str
    n_members: int
    clusters: list[float]
    mean_confidence: float


class NullBand(TypedDict):
    """Silhouettes of data without groups, for each number of clusters."""

    mean: Array
    low: Array
    high: Array
    p_value: float


class Selection(TypedDict):
    """The suggested number of clusters and what it rests on."""

    suggested: int
    reason: str
    rows: list[dict[str, float]]
    cdf: Array
    levels: Array
    null: NullBand | None
    n_measured: int


class Signature(TypedDict):
    """A feature that sets a cluster apart: means, and their standardised difference."""

    cluster: int
    feature: int
    name: str
    effect: float
    inside: float
    outside: float


class View(TypedDict):
    """The samples of the page in one number of clusters.

    `numbers` are the names of the clusters, which stay with their samples as K changes;
    `labels` and `second` count clusters from 0 without gaps.
    """

    n_clusters: int
    numbers: Labels
    labels: Labels
    second: Labels
    own: Array
    rival: Array
    confidence: Array
    clusters: list[ClusterRow]
    histogram: Labels
    n_ambiguous: int
    mean_confidence: float
    scores: dict[str, Any] | None
    signatures: list[Signature]
    features: list[dict[str, Any]]
    cluster_order: Labels
    drawn_features: Labels


class Heatmap(TypedDict):
    """Consensus of samples of the page, and their places in the dendrogram."""

    matrix: Array
    rows: Labels
    position: Labels
    full: float


class SignatureValues(TypedDict):
    """Standardised values of the features drawn for any K, samples of the heatmap."""

    features: Labels
    names: list[str]
    scores: Array


class SampleMap(TypedDict):
    """Samples of the page in the plane, in units of a figure of `size`."""

    places: Array
    size: tuple[int, int]
    axes: tuple[str, str] | None


class Column(TypedDict):
    """A column of the table that is no feature: classes, numbers or other words."""

    name: str
    kind: str
    levels: list[str]
    codes: Labels
    values: Array


class Description(TypedDict):
    """Everything that the report of a clustering shows."""

    title: str
    n_samples: int
    n_members: int
    n_base_clusters: int
    n_failed: int
    n_clusters: int
    names: list[str]
    views: list[View]
    chosen: int
    n_numbers: int
    selection: Selection
    heatmap: Heatmap
    map: SampleMap
    pca: SampleMap | None
    tracked: Labels
    bars: Labels
    columns: list[Column]
    signature_values: SignatureValues | None
    ambiguous: list[dict[str, Any]]
    ambiguous_below: float
    clusters: list[ClusterRow]
    support: list[Support] | None
    n_ambiguous: int
    mean_confidence: float
    scores: dict[str, Any] | None
    signatures: list[Signature]
    preparation: Preparation | None
    settings: dict[str, Any]
    python: str | None
    again: str | None
    versions: dict[str, str]
