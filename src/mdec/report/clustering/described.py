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


class Heatmap(TypedDict):
    """The consensus matrix in the order of the dendrogram."""

    matrix: Array
    clusters: Labels
    full: float


class SampleMap(TypedDict):
    """Samples in the plane."""

    places: Array
    names: list[str]
    clusters: Labels
    confidence: Array
    second: Labels


class Tracking(TypedDict):
    """The colour of each sample for each number of clusters."""

    n_clusters: Labels
    colours: Labels


class Bars(TypedDict):
    """Consensus of samples with their own cluster and with its best rival."""

    own: Array
    rival: Array
    clusters: Labels
    confidence: Array
    names: list[str]


class Description(TypedDict):
    """Everything that the report of a clustering shows."""

    title: str
    n_samples: int
    n_members: int
    n_base_clusters: int
    n_failed: int
    n_clusters: int
    clusters: list[ClusterRow]
    selection: Selection
    heatmap: Heatmap
    map: SampleMap
    tracking: Tracking
    bars: Bars
    histogram: Labels
    ambiguous: list[dict[str, Any]]
    n_ambiguous: int
    ambiguous_below: float
    mean_confidence: float
    features: list[dict[str, Any]]
    scores: dict[str, Any] | None
    preparation: Preparation | None
    settings: dict[str, Any]
    versions: dict[str, str]
