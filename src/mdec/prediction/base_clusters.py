"""The base clusters of new rows: the vote of their nearest training rows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy import sparse

from mdec._support.arrays import Array
from mdec._support.memory import require_memory
from mdec._support.parallel import map_parallel
from mdec.base import kernels
from mdec.base.copies import CopiesError
from mdec.base.landmarks import (
    Landmarks,
    coordinates,
    fit_landmarks,
    landmark_pool,
    pool_rows,
    tie_block,
)
from mdec.base.pairs import PRECOMPUTED, PairwiseRows, compare_new_pairs
from mdec.confidence import row_slices
from mdec.ensemble.plan import Member, Plan
from mdec.numerics.digits import nine_digits
from mdec.numerics.magnitude import at_safe_scale, has_safe_scale
from mdec.numerics.nearest import NearestRows, SearchIndex, nearest_others
from mdec.numerics.novelty import NoveltyDetector
from mdec.numerics.sparse_rows import NearestSparseRows, at_safe_sparse_scale
from mdec.preparation.recipes import Preparation, Versions, prepare
from mdec.rows.blocks import Rows
from mdec.rows.sources import canonical_rows
from mdec.rows.work import gather_rows

# Old rows whose median neighbour distance sets the floor of the kernel's scale.
N_PROBES = 256

# Fewer pairs of new and old rows are compared before a GPU has begun.
DEVICE_PAIRS = 500_000

# Landmarks of as many members as fit so many bytes are held between calls.
LANDMARK_BYTES = 2**29

Search = NearestRows | NearestSparseRows | PairwiseRows

# A member, its number, and the base clusters of the old rows in it.
Asked = tuple[int, Member, NDArray[np.int32]]


@dataclass(frozen=True)
class TrainingRows:
    """The rows of one table that base clusters of new rows are found by.

    Attributes
    ----------
    rows : ndarray or csr_array of shape (n_rows, n_features)
        All rows, or the landmarks' pool.
    learnt : dict of Preparation
        How members prepare them, by power; empty if they take them as they are.
    labels : ndarray of shape (n_rows, n_members)
        Their base clusters.
    members : tuple of Member
        How each column was made.
    plan : Plan
        What the members share.
    """

    rows: Any
    learnt: dict[float, Preparation]
    labels: NDArray[np.int32]
    members: tuple[Member, ...]
    plan: Plan

    @classmethod
    def of(cls, rows: Rows, ensemble: Any) -> Self:
        """Collect the rows of a table, which may lie on a Dask cluster, here.

        The ensemble was made by `mdec.generate_ensemble` from them.
        """
        plan, executor = ensemble.plan, ensemble.executor
        known: Any
        if plan.base == "landmark":
            known = executor.value(landmark_pool(rows, plan))
            over = ensemble.parts, ensemble.bounds, pool_rows(plan)
            labels = executor.value(gather_rows(executor, *over))
        else:
            known, labels = rows.in_memory, ensemble.labels
        learnt = Versions.of(known, plan.preparation).learnt
        found = cls(known, learnt, labels, ensemble.members, plan)
        for column, member in enumerate(ensemble.members):
            if (plan, member) in rows.spacing:
                found.spacing[:, column] = rows.spacing[plan, member]
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields; what is derived from them is made again when needed."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @cached_property
    def versions(self) -> Versions:
        """The rows as members see them."""
        return self.versions_of(self.rows)

    def versions_of(self, X: Any) -> Versions:
        """Return rows of these features as members see them."""
        if not self.learnt:
            return Versions(X)
        return Versions.of(X, self.plan.preparation, self.learnt)

    def as_seen(self) -> Any:
        """Return the rows that other data are to be like, by the first power."""
        return next(iter(self.versions_of(self.rows).made.values()), self.rows)

    @cached_property
    def search_indices(self) -> dict[float | None, SearchIndex]:
        """The versions of the rows, by power, made ready for all subspaces.

        None are there if a subspace must be brought to a scale of its own, or the rows
        of every member to length one, if members look at samples of their own, or if
        the rows are sparse.
        """
        angular = set(self.plan.kernel_shares) <= set(kernels.ANGULAR)
        if sparse.issparse(self.rows) or angular or self.plan.max_samples < 1.0:
            return {}
        made: dict[Any, Array] = self.versions.made or {None: self.rows}
        made = {power: X.astype(np.float64, copy=False) for power, X in made.items()}
        if not all(map(has_safe_scale, made.values())):
            return {}
        return {power: SearchIndex(X) for power, X in made.items()}

    @cached_property
    def spacing(self) -> Array:
        """Mean distance of the rows to their neighbours, by members.

        As the fit found it, where these are the rows of a fit in this process; else not
        a number until a new row has it among its neighbours in that member.
        """
        return np.full(self.labels.shape, np.nan, order="F")

    @cached_property
    def landmarks(self) -> dict[int, Any]:
        """Landmarks of members that were asked before, and how they vote."""
        return {}

    @cached_property
    def novelty_detector(self) -> NoveltyDetector:
        """The rows, to tell whether new ones are like them."""
        return NoveltyDetector.of(self.as_compared(self.rows))

    def as_compared(self, X: Any) -> Any:
        """Return rows in the coordinates in which they are like or unlike others.

        These are all features, prepared as members do but for the samples' means, by
        which they may well differ; and directions for a kernel that looks at those. Of
        several kernels the one that loses least of a row decides.
        """
        everything = np.arange(X.shape[1])
        if self.learnt:
            # The first power stands for the others.
            learnt = next(iter(self.learnt.values()))
            X = prepare(X, replace(learnt, center=False), everything)
        # They stand in the order of what they lose: nothing, lengths, means, values.
        kernel = next(
            each for each in kernels.KERNELS if each in self.plan.kernel_shares
        )
        return coordinates(X, everything, kernel)

    def as_stored(self, X_new: Any) -> Any:
        """Return new rows as the training rows are stored: sparse, or not."""
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


def predict_base_clusters(
    X_new: Any, known: TrainingRows, *, n_jobs: int | None = None, device: str = "cpu"
) -> NDArray[np.int32]:
    """Return the base cluster of each new row in each member.

    Parameters
    ----------
    X_new : ndarray or sparse of shape (n_new, n_features)
        New rows.
    known : TrainingRows
        The rows of the same table that they are compared with.
    n_jobs : int, default=None
        Members asked at the same time; changes no label.
    device : {"cpu", "cuda", "torch"}, default="cpu"
        Where many dense rows are searched; one member at a time on a GPU.

    Returns
    -------
    ndarray of shape (n_new, n_members)
        Labels of the same clusters as in the ensemble; -1 where no training row is
        similar at all, which happens where similarities are cosines, correlations or
        given by the user.

    Notes
    -----
    In a member's subspace a new row joins the base cluster with the largest summed
    similarity among its k nearest training rows, with the member's own kernel. After
    landmarks, which are derived again from the member's seed, the similarity goes
    through the nearest landmarks to the rows that the member drew.
    """
    X_new, plan = known.as_stored(X_new), known.plan
    n_new, n_members = X_new.shape[0], len(known.members)
    together = min(effective_n_jobs(n_jobs), n_members)
    n_taken = 0 if sparse.issparse(X_new) else plan.n_drawn
    require_memory(
        # Labels twice, the spacing of training rows, and what members look at.
        8 * n_new * n_members + 8 * known.labels.size + 16 * together * n_new * n_taken,
        f"placing {n_new} new rows in {n_members} base clusterings",
        "give fewer rows at a time, or lower n_jobs",
    )
    there = None
    many = plan.base == "landmark" or n_new * known.rows.shape[0] >= DEVICE_PAIRS
    dense = plan.metric is None and not sparse.issparse(known.rows)
    if device != "cpu" and dense and many:
        from mdec.engines import tensors

        there, n_jobs = tensors.find_device(device), 1
    ask: Callable[..., NDArray[np.int32]]
    shared: tuple[Any, ...]
    if plan.metric == PRECOMPUTED:
        ask, shared = _ask_pairs, compare_new_pairs(known.rows, X_new)
    elif plan.metric is not None:
        raise ValueError(
            f"metric={plan.metric} measures the rows of fit among themselves, and not "
            "new ones; fit with metric='precomputed' to place rows by their distances."
        )
    elif plan.base == "landmark":
        ask, shared = _ask_landmarks, (known.rows, known.landmarks, X_new, there)
    else:
        asked, indices = known.versions_of(X_new), known.search_indices
        shown = [X_new, *asked.made.values()] if indices else []
        if not all(has_safe_scale(X.astype(np.float64, copy=False)) for X in shown):
            indices = {}
        search = NearestRows if there is None else tensors.RowSearch(there)
        ask = _ask_rows
        shared = known.versions, indices, known.spacing, asked, search
    items = zip(range(n_members), known.members, known.labels.T, strict=True)
    columns = map_parallel(partial(ask, plan=plan), items, shared=shared, n_jobs=n_jobs)
    return np.stack(list(columns), axis=1)


def _ask_pairs(
    item: Asked, old: Array, new: Array, similar: bool, plan: Plan
) -> NDArray[np.int32]:
    """Return one member's base clusters of rows known by their pairs with old ones."""
    _, member, own = item
    if own.min() < 0:
        present = np.flatnonzero(own >= 0)
        old, new, own = old[np.ix_(present, present)], new[:, present], own[present]
    kernel = None if similar else plan.kernel_of(member)
    means = np.full(len(old), np.nan)
    return _vote_in_blocks(own, PairwiseRows(old), new, member, kernel, means)


@dataclass(frozen=True)
class VotingLandmarks:
    """A member's landmarks, and the shares of its clusters at each."""

    landmarks: Landmarks
    votes: sparse.csr_array

    @classmethod
    def of(
        cls, pool: Any, member: Member, plan: Plan, share: Callable[..., Array]
    ) -> Self:
        """Derive a member's landmarks again; `share` makes the votes of their ties."""
        landmarks, drawn, sample = fit_landmarks(pool, member, plan)
        votes = share(drawn, sample.index, sample.weights, len(landmarks.rho))
        return cls(landmarks, sparse.csr_array(votes))

    def ask(self, X_new: Any) -> NDArray[np.int32]:
        """Return the cluster of most votes of each new row."""
        votes = self.votes.toarray()
        found = np.empty(X_new.shape[0], dtype=np.int32)
        for part in row_slices(len(found), votes.shape[1]):
            new = tie_block(X_new[part], self.landmarks)
            indptr = np.arange(len(new.index) + 1) * new.index.shape[1]
            ties = new.weights.ravel(), new.index.ravel().astype(np.int32), indptr
            shape = len(new.index), len(votes)
            found[part] = _winners(sparse.csr_array(ties, shape=shape) @ votes)
        return found


def _ask_landmarks(
    item: Asked,
    pool: Any,
    known: dict[int, Any],
    X_new: Any,
    there: Any,
    plan: Plan,
) -> NDArray[np.int32]:
    """Return one member's base clusters by its landmarks, and remember these."""
    index, member, labels = item
    voting = known.get(index)

    def share(
        drawn: NDArray[np.int64],
        ties: NDArray[np.integer],
        weights: Array,
        n_landmarks: int,
    ) -> Array:
        """Return the shares of clusters at landmarks that drawn rows are tied to."""
        votes = np.zeros((n_landmarks, int(labels.max()) + 1))
        shares = weights / weights.sum(axis=1, keepdims=True)
        np.add.at(votes, (ties, labels[drawn, None]), shares)
        votes /= np.maximum(votes.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        return votes

    if voting is None and there is not None:
        from mdec.engines import tensors

        # Where there are copies among the landmarks, they are left out here.
        with suppress(CopiesError):
            voting = tensors.VotingLandmarks.of(pool, member, plan, share, there)
    if voting is None:
        voting = VotingLandmarks.of(pool, member, plan, share)
    assert plan.n_landmarks is not None
    # The landmarks twice, in float64 at the most, and the few clusters each votes for.
    if index < LANDMARK_BYTES // (plan.n_landmarks * (16 * plan.n_drawn + 200)):
        known[index] = voting
    found: NDArray[np.int32] = voting.ask(X_new)
    return found


def _ask_rows(
    item: Asked,
    known: Versions,
    indices: dict[float | None, SearchIndex],
    spacing: Array,
    asked: Versions,
    search_among: Callable[..., Any],
    plan: Plan,
) -> NDArray[np.int32]:
    """Return one member's base clusters; note what is known of its spacing now."""
    index, member, own = item
    draw, kernel = member.preparation, plan.kernel_of(member)
    old, among = known.select(draw)
    features, new = plan.features(member, among), asked.select(draw)[0]
    is_sparse = sparse.issparse(new)
    new = new[:, features] if is_sparse else np.take(new, features, axis=1)
    new = new.astype(np.float64, copy=False)
    if indices and kernel not in kernels.ANGULAR and own.min() >= 0:
        search = search_among(indices[None if draw is None else draw.power], features)
        # Other processes cannot write to it.
        means = spacing[:, index] if spacing.flags.writeable else spacing[:, index] + 0
        return _vote_in_blocks(own, search, new, member, kernel, means)
    present = np.flatnonzero(own >= 0)
    old, own = old[present][:, features], own[present]
    stack: Any = partial(sparse.vstack, format="csr") if is_sparse else np.concatenate
    # At one scale for float64.
    both = kernels.coordinates(stack([old, new]), kernel)
    both = at_safe_sparse_scale(both) if is_sparse else at_safe_scale(both)
    search = (NearestSparseRows if is_sparse else search_among)(both[: len(own)])
    means = np.full(len(own), np.nan)
    return _vote_in_blocks(own, search, both[len(own) :], member, kernel, means)


def _vote_in_blocks(
    own: NDArray[np.int32],
    search: Search,
    new: Any,
    member: Member,
    kernel: str | None,
    means: Array,
) -> NDArray[np.int32]:
    """Return one member's base clusters of new rows, some rows at a time.

    As `nearest_similarities`; without a kernel pairs are similarities themselves.
    """
    found = np.empty(new.shape[0], dtype=np.int32)
    for part in row_slices(len(found), int(own.max()) + 1):
        if kernel is None:
            near = search.nearest(new[part], min(member.n_neighbors, len(search)))
            near = near[0], (-near[1]).clip(0.0)
        else:
            near = nearest_similarities(search, new[part], member, kernel, means)
        found[part] = vote(own, *near)
    return found


def vote(
    own: NDArray[np.int32], neighbors: NDArray[np.int64], similarity: Array
) -> NDArray[np.int32]:
    """Return the base cluster with the largest summed similarity of each new row.

    -1 for a row without any.

    Examples
    --------
    >>> neighbors, similarity = np.array([[0, 1], [0, 1]]), np.array([[3, 1], [0, 0]])
    >>> vote(np.array([0, 1, 1]), neighbors, similarity)
    array([ 0, -1], dtype=int32)
    """
    n_clusters = int(own.max()) + 1
    places = own[neighbors] + n_clusters * np.arange(len(neighbors))[:, None]
    size = n_clusters * len(neighbors)
    votes = np.bincount(places.ravel(), similarity.ravel(), size)
    return _winners(votes.reshape(-1, n_clusters))


def _winners(votes: NDArray[Any]) -> NDArray[np.int32]:
    """Return the cluster of most votes in each row, -1 if nobody votes."""
    winners = np.where(votes.max(axis=1) > 0.0, votes.argmax(axis=1), -1)
    return winners.astype(np.int32)


def nearest_similarities(
    search: Search, new: Any, member: Member, kernel: str, means: Array
) -> tuple[NDArray[np.int64], Array]:
    """Return the k nearest old rows of each new row, and their similarities.

    `means` holds the mean neighbour distances of old rows; those that are asked for and
    not known yet are written to it, as a graph has them.
    """
    k = min(member.n_neighbors, len(search) - 1)
    neighbors, squared = search.nearest(new, k)
    if kernel in kernels.ANGULAR:
        return neighbors, kernels.angular_similarity(squared)

    def fill(rows: NDArray[np.int64]) -> None:
        chosen = np.unique(rows[np.isnan(means[rows])])
        others = nine_digits(nearest_others(search, chosen, k)[1])
        # Added in order, so that the sums are those of the graph, bit for bit.
        ordered = kernels.as_kernel_takes_them(others, kernel).T
        means[chosen] = np.add.reduce(np.ascontiguousarray(ordered)) / k

    distance = kernels.as_kernel_takes_them(squared, kernel)
    fill(neighbors)
    own, theirs = distance.mean(axis=1, keepdims=True), means[neighbors]
    if not (own.all() and theirs.all()):
        # The floor comes from fixed old rows: a new row must not depend on its company.
        n_probes = min(len(search), N_PROBES)
        probes = np.linspace(0, len(search) - 1, n_probes).astype(np.int64)
        fill(probes)
        positive, floor = means[probes][means[probes] > 0.0], 1.0
        if positive.size:
            relative = kernels.RELATIVE_FLOOR * float(np.median(positive))
            floor = min(relative, positive.min())
        own = np.where(own > 0.0, own, floor)
        theirs = np.where(theirs > 0.0, theirs, floor)
    similarity = kernels.scaled_similarity(kernel, distance, own, theirs, member.mu)
    # The nearest rows decide where every similarity has vanished.
    lost = similarity.sum(axis=1) == 0.0
    similarity[lost] = 1.0 / (1.0 + distance[lost])
    return neighbors, similarity
