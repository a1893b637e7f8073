"""The base clusters of new rows: every member is asked in its own way."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdec._support.parallel import map_ordered
from mdec.base.given import PRECOMPUTED, GivenRows, given_new_rows
from mdec.base.kernels import ANGULAR, angular_coordinates
from mdec.base.landmarks import fitted_landmarks, tied_block
from mdec.base.sparse_rows import sparse_coordinates
from mdec.ensemble.plan import Member, Plan
from mdec.numerics.magnitude import has_safe_scale
from mdec.numerics.nearest import NearestRows, SearchedRows, at_common_scale
from mdec.numerics.sparse_rows import NearestSparseRows, at_safe_sparse_scale
from mdec.prediction.placement import Placement
from mdec.prediction.votes import nearest_similarities, voted
from mdec.preparation.recipes import Versions

Array = NDArray[np.floating]

# New rows that are tied to landmarks together.
_NEW_ROWS = 2**14


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
    if searched and not all(
        has_safe_scale(X.astype(np.float64, copy=False)) for X in shown
    ):
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
        neighbors, similarity = nearest_similarities(search, new, member, kernel, means)
    return voted(own, neighbors, similarity)


def _present(own: NDArray[np.int32]) -> NDArray[np.int64] | None:
    """Return the rows that a member clusters; None for all."""
    return None if own.min() >= 0 else np.flatnonzero(own >= 0)


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
    new = new[:, features].astype(np.float64, copy=False)
    own = labels[:, index]
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
    neighbors, similarity = nearest_similarities(search, new, member, kernel, means)
    column = voted(own, neighbors, similarity)
    return column, means if searched else None


def _sparse_at_common_scale(
    old: sparse.csr_array, new: sparse.csr_array, kernel: str
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Return both as the kernel looks at them, at one scale that float64 can square."""
    both = sparse_coordinates(sparse.vstack([old, new], format="csr"), kernel)
    both = at_safe_sparse_scale(both)
    return both[: old.shape[0]], both[old.shape[0] :]
