"""The clustering: from tables or base clusterings to clusters, in one flow.

Members are generated, their clusters weighted, the number of clusters is chosen, a
consensus found; then follow its confidence and what new rows are placed by. Nothing
else in the package performs these steps.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.arrays import Array, Labels
from mdec._support.parallel import single_threaded_blas
from mdec._support.progress import Progress, progress_hooks
from mdec._support.random import root_entropy, view_entropy
from mdec.base import Base
from mdec.base.landmarks import pool_rows
from mdec.base.pairs import Metric
from mdec.confidence import (
    cluster_support,
    confidence,
    firm_labels,
    item_consensus,
    memberships,
    second_choice,
    sum_profiles,
)
from mdec.consensus import find_consensus
from mdec.ensemble import DistributedEnsemble, Ensemble
from mdec.ensemble.numbering import renumber_columns
from mdec.ensemble.plan import is_count
from mdec.generation import check_resumable, generate_ensemble, refuse_unseen
from mdec.prediction import Placement, TrainingRows
from mdec.rows import Rows
from mdec.selection import KSelection, select_n_clusters
from mdec.selection.rule import check_k_range
from mdec.weights import WEIGHTINGS, uniform_weights

NumberOfClusters = int | str | tuple[int, int]
ViewWeights = Mapping[str, float] | Sequence[float] | None


@dataclass(frozen=True)
class Settings:
    """How base clusterings become one clustering.

    Attributes
    ----------
    n_clusters : int, "auto" or pair of int
        Number of clusters; "auto" chooses one, which may be 1; a pair (low, high)
        chooses in that range.
    consensus, weighting : str
        As in `MDEC`.
    min_confidence : float or None
        Samples of less confidence are left out of `Clustering.firm_labels`.
    seed : int
        Seed of what is random after the members.
    device : {"cpu", "cuda", "torch"}
        Where weights and consensus are computed.
    n_jobs : int or None
        Members made at the same time to choose K.
    base, metric : callable or None
        The user's own base clustering and metric, if they are at hand to choose K.
    """

    n_clusters: NumberOfClusters = "auto"
    consensus: str = "hierarchical"
    weighting: str = "entropy"
    min_confidence: float | None = None
    seed: int = 0
    device: str = "cpu"
    n_jobs: int | None = None
    base: Base | None = None
    metric: Metric | None = None


@dataclass(frozen=True, eq=False)
class Clustering:
    """A clustering, and all that it follows from.

    Labels and confidence are Dask arrays where the base clusterings lie on a cluster.

    Attributes
    ----------
    ensemble : Ensemble
        The base clusterings.
    weights : ndarray of shape (n_base_clusters,)
        Weight of each base cluster.
    labels : ndarray of shape (n_samples,)
        Consensus cluster of each sample, none left out.
    n_clusters : int
        Number of clusters.
    confidence : ndarray of shape (n_samples,)
        Confidence of each sample, see `mdec.confidence.confidence`.
    settings : Settings
        How it was made.
    selection : KSelection or None
        How the number of clusters was chosen, if it was.
    placement : Placement or None
        What new rows are placed by, if rows are known.
    timings : dict of float
        Seconds by step.
    """

    ensemble: Ensemble
    weights: Array
    labels: Labels
    n_clusters: int
    confidence: Array
    settings: Settings
    selection: KSelection | None = None
    placement: Placement | None = None
    timings: dict[str, float] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields; what is derived from them is made again when needed."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @property
    def rows(self) -> tuple[TrainingRows, ...]:
        """The training rows of each table; none for clusterings without rows."""
        return () if self.placement is None else self.placement.tables

    @cached_property
    def association(self) -> Array:
        """Mean co-association of samples with clusters, (n_samples, n_clusters)."""
        labels, device = np.asarray(self.labels), self.settings.device
        with single_threaded_blas():
            return item_consensus(self.ensemble.gather(), labels, self.weights, device)

    @property
    def membership(self) -> Array:
        """How far samples belong to clusters, (n_samples, n_clusters)."""
        return memberships(self.association)

    @property
    def second_choice(self) -> NDArray[np.int32]:
        """The best other cluster of each sample, -1 if there is none."""
        return second_choice(self.association, np.asarray(self.labels))

    @property
    def firm_labels(self) -> Labels:
        """The labels, -1 for samples below the least confidence."""
        least = self.settings.min_confidence
        return firm_labels(self.labels, self.confidence, least)

    @cached_property
    def view_associations(self) -> list[Array]:
        """The association by the members of each view alone."""
        ensemble = self.ensemble.gather()
        origins = np.repeat(ensemble.origins, ensemble.cluster_counts)
        # Without what the view counts among the others.
        own = self.weights / uniform_weights(ensemble)
        with single_threaded_blas():
            return [
                item_consensus(ensemble.view(i), self.labels, own[origins == i])
                for i in range(len(ensemble.views))
            ]

    @property
    def view_confidence(self) -> Array:
        """Confidence of each sample by each view alone, (n_samples, n_views)."""
        columns = [confidence(each, self.labels) for each in self.view_associations]
        return np.stack(columns, axis=1)

    @property
    def view_support(self) -> Array:
        """Support of each cluster by each view alone, (n_views, n_clusters)."""
        rows = [cluster_support(each, self.labels) for each in self.view_associations]
        return np.stack(rows)

    def recluster(
        self, n_clusters: NumberOfClusters | None = None, consensus: str | None = None
    ) -> Clustering:
        """Return another clustering of the same ensemble; nothing is generated again.

        It has the same weights and rows; None for the number of clusters and the
        consensus function is the same as now.
        """
        settings, selection = self.settings, self.selection
        if consensus is not None:
            settings = replace(settings, consensus=consensus)
        if n_clusters is not None:
            settings, selection = replace(settings, n_clusters=n_clusters), None
        own = self.ensemble, settings, self.rows
        return cluster_ensemble(*own, weights=self.weights, selection=selection)

    @cached_property
    def criteria(self) -> KSelection:
        """The criteria by which K was chosen, measured now if it was given."""
        return self.selection or self.compare_k()

    def compare_k(self, k_range: Sequence[int] | None = None) -> KSelection:
        """Measure numbers of clusters on the members that are there.

        None are those that "auto" compares. One cluster is not tested.
        """
        return _choose_k(self.ensemble, self.settings, (), k_range)


def cluster_tables(
    tables: Mapping[str, Rows],
    settings: Settings,
    drawing: Mapping[str, Any],
    progress: Progress,
    *,
    several: bool,
    view_weights: ViewWeights = None,
) -> Clustering:
    """Cluster the samples of one table, or of several with the same samples, by name.

    `drawing` are the parameters of `generate_ensemble`, and `view_weights` those of
    `Ensemble.concatenate`; seed and device of the settings are those of the members.
    `progress` is called with (done, total) after each base clustering. The streams of
    each of several tables follow from its name.
    """
    start, checkpoint = time.perf_counter(), drawing["checkpoint"]
    check_n_clusters(settings.n_clusters, next(iter(tables.values())).shape[0])
    if checkpoint is not None:
        check_resumable(drawing["random_state"])
    seed = root_entropy(drawing["random_state"])
    parts: dict[str, Any] = {}
    for number, (name, rows) in enumerate(tables.items()):
        own = {**drawing, "random_state": seed}
        if several:
            own["random_state"] = view_entropy(seed, name)
            if isinstance(own["preparation"], Mapping):
                own["preparation"] = own["preparation"].get(name)
            if checkpoint is not None:
                own["checkpoint"] = Path(checkpoint) / f"view-{number + 1}"

        def count(done: int, total: int, before: int = number) -> None:
            progress(before * total + done, len(tables) * total)

        parts[name] = made = generate_ensemble(rows, progress=count, **own)
    ensemble, device = made, made.plan.device
    if several:
        ensemble, device = Ensemble.concatenate(parts, weights=view_weights), "cpu"
    refuse_unseen(ensemble)
    training = list(map(TrainingRows.of, tables.values(), parts.values()))
    timings = {"base clusterings": time.perf_counter() - start}
    settings = replace(settings, seed=seed, device=device)
    found = cluster_ensemble(ensemble, settings, training)
    return replace(found, timings=timings | found.timings)


def cluster_ensemble(
    ensemble: Ensemble,
    settings: Settings,
    rows: Sequence[TrainingRows] = (),
    *,
    weights: Array | None = None,
    selection: KSelection | None = None,
) -> Clustering:
    """Cluster the samples of finished base clusterings.

    Parameters
    ----------
    ensemble : Ensemble
        The base clusterings, made by `generate_ensemble` or the user's own.
    settings : Settings
        How they become one.
    rows : sequence of TrainingRows, default=()
        The rows of each table that they were made of; without rows the number of
        clusters is not tested against one, and new rows are not placed.
    weights : ndarray of shape (n_base_clusters,), optional
        Weight of each base cluster; None for those of the settings.
    selection : KSelection, default=None
        How the number of clusters was chosen, if it was; it is not chosen again.

    Returns
    -------
    Clustering
        With a placement where there are rows.

    Examples
    --------
    >>> labels = np.repeat([[0, 0, 1], [1, 0, 0], [2, 1, 0]], 10, axis=0)
    >>> found = cluster_ensemble(Ensemble.from_labels(labels), Settings(3))
    >>> found.n_clusters, found.labels[[0, 10, 20]].tolist()
    (3, [0, 1, 2])
    """
    wanted = settings.n_clusters
    ks = check_n_clusters(wanted, ensemble.n_samples)
    with single_threaded_blas():
        if weights is None:
            weights = WEIGHTINGS[settings.weighting](ensemble, device=settings.device)
        start = time.perf_counter()
        if not isinstance(wanted, Integral):
            if selection is None:
                selection = _choose_k(ensemble, settings, rows, ks)
            wanted = selection.n_clusters
        chosen = time.perf_counter()
        rest = settings.consensus, weights, settings.seed, settings.device
        clusters = find_consensus(ensemble, wanted, *rest)
        executor = ensemble.executor
        n_clusters = max(executor.values(executor.map(np.max, clusters))) + 1
        profiles = sum_profiles(
            ensemble, clusters, weights, n_clusters, settings.device
        )
        placement = None
        if rows:
            by_degree = settings.consensus != "hierarchical"
            placement = Placement.of(rows, profiles, by_degree=by_degree)
        return Clustering(
            ensemble,
            weights,
            ensemble.join(clusters),
            int(n_clusters),
            ensemble.join(profiles.map_blocks(confidence)),
            settings,
            selection,
            placement,
            {"choosing K": chosen - start, "consensus": time.perf_counter() - chosen},
        )


def _choose_k(
    ensemble: Ensemble,
    settings: Settings,
    rows: Sequence[TrainingRows],
    k_range: Sequence[int] | None,
) -> KSelection:
    """Measure numbers of clusters and suggest one."""
    if isinstance(ensemble, DistributedEnsemble):
        # The labels are on the workers; here are those of the landmarks' pool.
        plan, members = rows[0].plan, rows[0].members
        labels = renumber_columns(rows[0].labels)
        pool = Ensemble(labels, members, (), plan.to_json())
        chosen = _choose_k(pool, settings, rows, k_range)
        words = f"{chosen.reason} Chosen on rows drawn from {plan.n_samples}."
        drawn = pool_rows(plan)[chosen.samples]
        return replace(chosen, reason=words, samples=drawn)
    known: Any = [each.as_seen() for each in rows] or None
    if known and not ensemble.views:
        known = known[0]
    return select_n_clusters(
        ensemble.gather(),
        X=known,
        k_range=k_range,
        weighting=settings.weighting,
        allow_one=k_range is None,
        base=settings.base,
        metric=settings.metric,
        n_jobs=settings.n_jobs,
        progress=progress_hooks().null,
    )


def check_n_clusters(n_clusters: Any, n_samples: int) -> Sequence[int] | None:
    """Return the numbers of a pair (low, high), None for "auto" and for one number.

    Raises if so many samples cannot have that number of clusters.
    """
    if isinstance(n_clusters, str) and n_clusters == "auto":
        return None
    one = isinstance(n_clusters, Integral) and not isinstance(n_clusters, bool)
    pair = isinstance(n_clusters, tuple | list) and len(n_clusters) == 2
    if not one and not (pair and all(is_count(k, 2) for k in n_clusters)):
        raise ValueError(
            f"n_clusters={n_clusters!r} is not understood; give a whole number, "
            "'auto', or a pair of two or more such as (2, 12)."
        )
    low, high = (n_clusters, n_clusters) if one else n_clusters
    if high > n_samples:
        raise ValueError(
            f"n_clusters={n_clusters} is more than n_samples={n_samples}; ask for at "
            "most one cluster per sample."
        )
    if low > high:
        raise ValueError(
            f"n_clusters={n_clusters} ends before it begins; give the least number of "
            "clusters first."
        )
    return None if one else check_k_range(range(low, high + 1), n_samples)
