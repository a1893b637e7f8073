"""Clusters of new rows from a fitted ensemble."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdec._support.memory import require_memory
from mdec._support.parallel import map_ordered, single_threaded_blas
from mdec.base.given import PRECOMPUTED, GivenRows, given_new_rows
from mdec.base.kernels import (
    ANGULAR,
    KERNELS,
    RELATIVE_FLOOR,
    SIMILARITY,
    angular_coordinates,
    angular_similarity,
    as_kernel_takes_them,
    scaling_term,
)
from mdec.base.landmarks import (
    coordinates,
    fitted_landmarks,
    pool_rows,
    tied_block,
)
from mdec.base.sparse_rows import sparse_coordinates
from mdec.coassociation import factor_rows
from mdec.confidence import Profiles, confidence, mean_profiles
from mdec.ensemble.plan import Member, Plan
from mdec.generation import training_rows
from mdec.numerics.familiar import FamiliarRows
from mdec.numerics.magnitude import has_safe_scale
from mdec.numerics.nearest import NearestRows, SearchedRows, at_common_scale
from mdec.numerics.sparse_rows import NearestSparseRows, at_safe_sparse_scale
from mdec.preparation.recipes import Preparation, Versions, prepared
from mdec.rows.blocks import Rows
from mdec.rows.sparse import canonical_rows
from mdec.rows.work import gathered_rows

Array = NDArray[np.floating]

# Old rows whose median neighbour distance sets the floor of the kernel's scale.
N_PROBES = 256

# New rows that are tied to landmarks together.
_NEW_ROWS = 2**14


@dataclass(frozen=True)
class Placement:
    """What new rows are placed by.

    Attributes
    ----------
    rows : ndarray or csr_array of shape (n_rows, n_features)
        Training rows that new ones are compared with: all, or the landmarks' pool.
    learnt : dict of Preparation
        How members prepare them, by power; empty if they take them as they are.
    labels : ndarray of shape (n_rows, n_members)
        Their base clusters.
    offsets : ndarray of shape (n_members + 1,)
        Number of the first cluster of each member, and of all clusters.
    members : tuple of Member
        How each column was made.
    plan : Plan
        What the members share.
    means : ndarray of shape (n_clusters, n_base_clusters)
        Mean of the co-association's factor over each consensus cluster.
    weights : ndarray of shape (n_base_clusters,)
        Weight of each base cluster.
    plain_means : ndarray of shape (n_clusters, n_base_clusters)
        The means as confidences take them: of no consensus divided by degrees.
    """

    rows: Any
    learnt: dict[float, Preparation]
    labels: NDArray[np.int32]
    offsets: NDArray[np.int64]
    members: tuple[Member, ...]
    plan: Plan
    means: Array
    weights: Array
    plain_means: Array

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields; what is derived from them is made again when needed."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @cached_property
    def versions(self) -> Versions:
        """The training rows as members see them."""
        if not self.learnt:
            return Versions(self.rows)
        return Versions.of(self.rows, self.plan.preparation, self.learnt)

    @cached_property
    def searched(self) -> dict[float | None, SearchedRows]:
        """The versions of the training rows, by power, made ready for all subspaces.

        None are there if a subspace must be brought to a scale of its own, or the rows
        of every member to length one, if members look at samples of their own, or if
        the rows are sparse.
        """
        if sparse.issparse(self.rows):
            return {}
        made: dict[float | None, Array] = {None: _in_double(self.rows)}
        if self.learnt:
            made = {power: _in_double(X) for power, X in self.versions.made.items()}
        angular = set(self.plan.kernel_shares) <= set(ANGULAR)
        if angular or not all(map(has_safe_scale, made.values())):
            return {}
        if self.plan.sample_ratio < 1.0:
            return {}
        return {power: SearchedRows(X) for power, X in made.items()}

    @cached_property
    def spacing(self) -> Array:
        """Mean distance of training rows to their neighbours, by members.

        Not a number until a new row has it among its neighbours in that member.
        """
        return np.full(self.labels.shape, np.nan)

    @cached_property
    def familiar(self) -> FamiliarRows:
        """The training rows, to tell whether new ones are like them."""
        return FamiliarRows.of(self.as_compared(self.rows))

    def as_compared(self, X: Any) -> Any:
        """Return rows in the coordinates in which they are like or unlike others.

        These are all features, prepared as members do but for the samples' means, by
        which they may well differ; and directions for a kernel that looks at those. Of
        several kernels the one that loses least of a row decides.
        """
        everything = np.arange(X.shape[1])
        for learnt in self.learnt.values():
            X = prepared(X, replace(learnt, center=False), everything)
            break  # the first power stands for the others
        # They stand in the order of what they lose: nothing, lengths, means, values.
        kernel = next(each for each in KERNELS if each in self.plan.kernel_shares)
        return coordinates(X, everything, kernel)

    def alike(self, X_new: Any) -> Any:
        """Return new rows as the training rows are kept: sparse, or not.

        Parameters
        ----------
        X_new : ndarray or sparse of shape (n_new, n_features)
            New rows.

        Returns
        -------
        ndarray or csr_array of shape (n_new, n_features)
            The same numbers.
        """
        if sparse.issparse(self.rows):
            return canonical_rows(X_new)
        if not sparse.issparse(X_new):
            return X_new
        require_memory(
            X_new.shape[0] * X_new.shape[1] * X_new.dtype.itemsize,
            "filling the zeros of sparse new rows, as the model was fitted to dense",
            "give fewer rows at a time, or fit the model to sparse rows",
        )
        return X_new.toarray()

    @classmethod
    def of(
        cls,
        rows: Rows,
        ensemble: Any,
        clusters: list[Any],
        weights: Array,
        profiles: Profiles,
        *,
        by_degree: bool,
    ) -> Self:
        """Collect what new rows are placed by, from rows here or on a cluster.

        Parameters
        ----------
        rows : Rows
            The data.
        ensemble : Ensemble or DistributedEnsemble
            Made by `mdec.generate_ensemble` from them.
        clusters : list
            Handles of the consensus clusters of each row block.
        weights : ndarray of shape (n_base_clusters,)
            Weight of each base cluster.
        profiles : Profiles
            Sums over the clusters.
        by_degree : bool
            As in `mdec.confidence.mean_profiles`.

        Returns
        -------
        Placement
            In this process.
        """
        plan, worker = ensemble.plan, ensemble.worker
        if plan.base == "landmark":
            chosen = pool_rows(plan)
            labels = worker.value(
                gathered_rows(worker, ensemble.parts, ensemble.bounds, chosen)
            )
        else:
            labels = ensemble.labels
        means, plain_means = (
            mean_profiles(ensemble, clusters, weights, profiles, by_degree=each)
            for each in (by_degree, False)
        )
        known = training_rows(rows, plan)
        learnt = Versions.of(known, plan.preparation).learnt
        drawn = ensemble.offsets, ensemble.members, plan
        return cls(known, learnt, labels, *drawn, means, weights, plain_means)


@dataclass(frozen=True)
class JoinedPlacement:
    """What new rows are placed by that come in several views.

    Attributes
    ----------
    views : tuple of Placement
        What the base clusters of each view's members are found by, in the order of the
        ensemble's views.
    offsets, means, weights, plain_means
        As in `Placement`, of the members of all views.
    """

    views: tuple[Placement, ...]
    offsets: NDArray[np.int64]
    means: Array
    weights: Array
    plain_means: Array


def placed(
    X_new: Any, placement: Placement, *, n_jobs: int | None = None
) -> NDArray[np.int32]:
    """Return the consensus clusters of new rows.

    Parameters
    ----------
    X_new : ndarray or sparse of shape (n_new, n_features)
        New rows.
    placement : Placement
        What to place them by.
    n_jobs : int, default=None
        Members asked at the same time; changes no label.

    Returns
    -------
    ndarray of shape (n_new,)
        Clusters.
    """
    base = predict_base_clusters(X_new, placement, n_jobs=n_jobs)
    with single_threaded_blas():
        return nearest_profiles(
            base, placement.offsets, placement.means, placement.weights
        )


def held_new_rows(
    base: NDArray[np.int32],
    clusters: NDArray[np.int32],
    placement: Placement | JoinedPlacement,
) -> Array:
    """Return how firmly the ensemble holds new rows in their clusters.

    `mdec.confidence.confidence` of their mean co-associations with the clusters.

    Parameters
    ----------
    base : ndarray of shape (n_new, n_members)
        Base cluster of each new row in each member.
    clusters : ndarray of shape (n_new,)
        The rows' consensus clusters.
    placement : Placement or JoinedPlacement
        What they were placed by.

    Returns
    -------
    ndarray of shape (n_new,)
        In [0, 1].
    """
    return confidence(new_associations(base, placement), clusters)


def new_associations(
    base: NDArray[np.int32], placement: Placement | JoinedPlacement
) -> Array:
    """Return the mean co-association of new rows with every cluster, in [0, 1].

    Parameters
    ----------
    base : ndarray of shape (n_new, n_members)
        Base cluster of each new row in each member.
    placement : Placement or JoinedPlacement
        What they are placed by.

    Returns
    -------
    ndarray of shape (n_new, n_clusters)
        As `mdec.confidence.item_consensus` has it for training rows.
    """
    factor = factor_rows(base, placement.offsets, placement.weights)
    association: Array = np.clip(factor @ placement.plain_means.T, 0.0, 1.0)
    return association


def predict_base_clusters(
    X_new: Any, placement: Placement, *, n_jobs: int | None = None
) -> NDArray[np.int32]:
    """Return the base cluster of each new row in each member.

    Parameters
    ----------
    X_new : ndarray or sparse of shape (n_new, n_features)
        New rows.
    placement : Placement
        What to place them by.
    n_jobs : int, default=None
        Members asked at the same time; changes no label.

    Returns
    -------
    ndarray of shape (n_new, n_members)
        Labels of the same clusters as in the ensemble.

    Notes
    -----
    In a member's subspace a new row joins the base cluster with the largest summed
    similarity among its k nearest training rows, with the member's own kernel. After
    landmarks, which are derived again from the member's seed, the similarity goes
    through the nearest landmarks to the rows that the member drew.
    """
    members, plan = placement.members, placement.plan
    X_new = placement.alike(X_new)
    indices = range(len(members))
    if plan.metric is not None:
        return _given_base_clusters(X_new, placement, n_jobs)
    if plan.base == "landmark":
        columns = map_ordered(
            partial(_ask_landmarks, members=members, plan=plan),
            indices,
            shared=(placement.rows, placement.labels, X_new),
            n_jobs=n_jobs,
        )
        return np.stack(list(columns), axis=1)
    asked = Versions(X_new)
    if placement.learnt:
        asked = Versions.of(X_new, plan.preparation, placement.learnt)
    searched = placement.searched
    shown = [X_new, *asked.made.values()]
    if searched and not all(has_safe_scale(_in_double(X)) for X in shown):
        searched = {}
    shared = placement.versions, searched, placement.spacing, placement.labels, asked
    ask = partial(_ask_member, members=members, plan=plan)
    base = np.empty((X_new.shape[0], len(members)), dtype=np.int32)
    answers = map_ordered(ask, indices, shared=shared, n_jobs=n_jobs)
    for index, (column, spacing) in enumerate(answers):
        base[:, index] = column
        if spacing is not None:
            placement.spacing[:, index] = spacing
    return base


def _given_base_clusters(
    X_new: Array, placement: Placement, n_jobs: int | None
) -> NDArray[np.int32]:
    """Return the base clusters of rows that are known by their pairs with old ones."""
    members, plan = placement.members, placement.plan
    if plan.metric != PRECOMPUTED:
        raise ValueError(
            f"metric={plan.metric} measures the rows of fit among themselves, and not "
            "new ones; fit with metric='precomputed' to place rows by their distances."
        )
    old, new, similar = given_new_rows(placement.rows, X_new)
    answers = map_ordered(
        partial(_ask_given, members=members, plan=plan, similar=similar),
        range(len(members)),
        shared=(old, new, placement.labels),
        n_jobs=n_jobs,
    )
    return np.stack(list(answers), axis=1)


def _ask_given(
    index: int,
    old: Array,
    new: Array,
    labels: NDArray[np.int32],
    members: Sequence[Member],
    plan: Plan,
    similar: bool,
) -> NDArray[np.int32]:
    member, own = members[index], labels[:, index]
    present = _present(own)
    if present is not None:
        old, new, own = old[np.ix_(present, present)], new[:, present], own[present]
    search = GivenRows(old)
    if similar:
        neighbors, below = search.nearest(new, min(member.n_neighbors, len(old)))
        similarity = (-below).clip(0.0)
        similarity[similarity.sum(axis=1) == 0.0] = 1.0
    else:
        means = np.full(len(old), np.nan)
        kernel = plan.kernel_of(member)
        neighbors, similarity = _nearest_similarities(
            search, new, member, kernel, means
        )
    return _voted(own, neighbors, similarity)


def _present(own: NDArray[np.int32]) -> NDArray[np.int64] | None:
    """Return the rows that a member clusters; None for all."""
    return None if own.min() >= 0 else np.flatnonzero(own >= 0)


def _voted(
    own: NDArray[np.int32], neighbors: NDArray[np.int64], similarity: Array
) -> NDArray[np.int32]:
    """Return the base cluster with the largest summed similarity of each new row."""
    n_clusters = int(own.max()) + 1
    places = own[neighbors] + n_clusters * np.arange(len(neighbors))[:, None]
    size = n_clusters * len(neighbors)
    votes = np.bincount(places.ravel(), similarity.ravel(), size)
    return votes.reshape(-1, n_clusters).argmax(axis=1).astype(np.int32)


def _in_double(X: Array) -> Array:
    return X.astype(np.float64, copy=False)


def nearest_profiles(
    base: NDArray[np.int32], offsets: NDArray[np.int64], means: Array, weights: Array
) -> NDArray[np.int32]:
    r"""Return the cluster with the largest mean association to each row.

    Parameters
    ----------
    base : ndarray of shape (n_new, n_members)
        Base cluster of each row in each member.
    offsets : ndarray of shape (n_members + 1,)
        Number of the first cluster of each member, and of all clusters.
    means : ndarray of shape (n_clusters, n_base_clusters)
        Mean of the co-association's factor over each cluster, from
        `mdec.confidence.mean_profiles`.
    weights : ndarray of shape (n_base_clusters,)
        Weight of each base cluster.

    Returns
    -------
    ndarray of shape (n_new,)
        The cluster k with the largest :math:`F_{new} \cdot \bar F_k`.

    Notes
    -----
    Average linkage compares mean co-associations, so they place new rows as it would.
    The other two consensus functions see :math:`D^{-1/2} A D^{-1/2}` with the degrees
    :math:`D_{jj} = \sum_i A_{ij}`; the means are then those of
    :math:`A_{new,j} / \sqrt{D_{jj}}`.
    """
    columns = (base + offsets[:-1]).ravel()
    indptr = np.arange(len(base) + 1) * base.shape[1]
    values = np.sqrt(weights[columns] / base.shape[1])
    shape = (len(base), int(offsets[-1]))
    rows = sparse.csr_array((values, columns, indptr), shape=shape)
    return np.asarray(rows @ means.T).argmax(axis=1).astype(np.int32)


def _ask_landmarks(
    index: int,
    pool: Any,
    labels: NDArray[np.int32],
    X_new: Any,
    members: Sequence[Member],
    plan: Plan,
) -> NDArray[np.int32]:
    member = members[index]
    landmarks, drawn, sample = fitted_landmarks(pool, member, plan)
    n_clusters = int(labels[:, index].max()) + 1
    own = labels[drawn, index]
    votes = np.zeros((len(landmarks.rho), n_clusters))
    shares = sample.weights / sample.weights.sum(axis=1, keepdims=True)
    np.add.at(votes, (sample.index, own[:, None]), shares)
    votes /= np.maximum(votes.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    found = np.empty(X_new.shape[0], dtype=np.int32)
    for start in range(0, X_new.shape[0], _NEW_ROWS):
        part = slice(start, start + _NEW_ROWS)
        new = tied_block(X_new[part], landmarks)
        indptr = np.arange(len(new.index) + 1) * new.index.shape[1]
        ties = sparse.csr_array(
            (new.weights.ravel(), new.index.ravel().astype(np.int32), indptr),
            shape=(len(new.index), len(votes)),
        )
        found[part] = (ties @ votes).argmax(axis=1)
    return found


def _ask_member(
    index: int,
    known: Versions,
    searched: dict[float | None, SearchedRows],
    spacing: Array,
    labels: NDArray[np.int32],
    asked: Versions,
    members: Sequence[Member],
    plan: Plan,
) -> tuple[NDArray[np.int32], Array | None]:
    """Return one member's base clusters, and what is known of its spacing now."""
    member = members[index]
    draw = member.preparation
    old, among = known.seen(draw)
    new, _ = asked.seen(draw)
    features = plan.features(member, among)
    new, own = _in_double(new[:, features]), labels[:, index]
    present, kernel = _present(own), plan.kernel_of(member)
    search: NearestRows | NearestSparseRows
    if searched and kernel not in ANGULAR and present is None:
        # Their column, not the table: it is filled where it was unknown.
        means = spacing[:, index].copy()
        search = NearestRows(searched[None if draw is None else draw.power], features)
    else:
        searched = {}
        old = old[:, features]
        if present is not None:
            old, own = old[present], own[present]
        means = np.full(old.shape[0], np.nan)
        if sparse.issparse(old):
            old, new = _sparse_at_common_scale(old, new, kernel)
            search = NearestSparseRows(old)
        else:
            if kernel in ANGULAR:
                both = angular_coordinates(np.concatenate([old, new]), kernel)
                old, new = both[: len(old)], both[len(old) :]
            old, new = at_common_scale(old, new)
            search = NearestRows(old)
    neighbors, similarity = _nearest_similarities(search, new, member, kernel, means)
    column = _voted(own, neighbors, similarity)
    return column, means if searched else None


def _sparse_at_common_scale(
    old: sparse.csr_array, new: sparse.csr_array, kernel: str
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Return both as the kernel looks at them, at one scale that float64 can square."""
    both = sparse_coordinates(sparse.vstack([old, new], format="csr"), kernel)
    both = at_safe_sparse_scale(both)
    return both[: old.shape[0]], both[old.shape[0] :]


def _nearest_similarities(
    search: NearestRows | NearestSparseRows | GivenRows,
    new: Any,
    member: Member,
    kernel: str,
    means: Array,
) -> tuple[NDArray[np.int64], Array]:
    """Return the k nearest old rows of each new row, and their similarities.

    `means` holds the mean neighbour distances of old rows; those that are asked for and
    not known yet are written to it.
    """
    k = min(member.n_neighbors, len(search) - 1)
    neighbors, squared = search.nearest(new, k)
    if kernel in ANGULAR:
        return neighbors, angular_similarity(squared)
    distance = as_kernel_takes_them(squared, kernel)
    _fill_means(means, search, neighbors, k, kernel)
    own, theirs = distance.mean(axis=1, keepdims=True), means[neighbors]
    if not (own.all() and theirs.all()):
        # The floor comes from fixed old rows: a new row must not depend on its company.
        n_probes = min(len(search), N_PROBES)
        probes = np.linspace(0, len(search) - 1, n_probes).astype(np.int64)
        _fill_means(means, search, probes, k, kernel)
        positive = means[probes][means[probes] > 0.0]
        floor = 1.0
        if positive.size:
            floor = min(RELATIVE_FLOOR * float(np.median(positive)), positive.min())
        own, theirs = (
            np.where(own > 0.0, own, floor),
            np.where(theirs > 0.0, theirs, floor),
        )
    scale = scaling_term(distance, own, theirs)
    similarity = SIMILARITY[kernel](distance, scale, member.mu)
    return neighbors, _or_nearest(similarity, distance)


def _fill_means(
    means: Array,
    search: NearestRows | NearestSparseRows | GivenRows,
    rows: NDArray[np.int64],
    n_neighbors: int,
    kernel: str,
) -> None:
    """Write the mean distance of old rows to their k nearest other old rows."""
    wanted = np.zeros(len(means), dtype=bool)
    wanted[rows] = True
    chosen = np.flatnonzero(wanted & np.isnan(means))
    own: Any = search.rows(chosen)
    index, squared = search.nearest(own, n_neighbors + 1)
    itself = index == chosen[:, None]
    # Among many copies a row may be missing from its own list; then the last goes.
    itself[~itself.any(axis=1), -1] = True
    others = squared[~itself].reshape(len(chosen), n_neighbors)
    means[chosen] = as_kernel_takes_them(others, kernel).mean(axis=1)


def _or_nearest(similarity: Array, distance: Array) -> Array:
    """Let the nearest rows decide where every similarity has vanished."""
    lost = similarity.sum(axis=1) == 0.0
    similarity[lost] = 1.0 / (1.0 + distance[lost])
    return similarity
