"""Base clustering through landmarks, for more samples than pairs can be looked at.

A member draws a few rows, refines them by k-means to landmarks, ties every sample to
its nearest landmarks with the member's own kernel, and cuts that bipartite graph. All
that is done with the samples is a map over row blocks or a small sum over them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdec._support.arrays import Array
from mdec._support.random import member_stream
from mdec.base import kernels
from mdec.base.copies import CopiesError, group_copies
from mdec.ensemble.plan import Member, Plan
from mdec.numerics.affinity import unit_rows
from mdec.numerics.kmeans import kmeans_centers
from mdec.numerics.landmark_search import (
    LandmarkIndex,
    index_landmarks,
    nearest_landmarks,
    refine_landmarks,
)
from mdec.numerics.magnitude import TOO_WIDE, largest_magnitude, to_power
from mdec.numerics.neighbors import center_rows
from mdec.numerics.sparse_rows import (
    less,
    shared_values,
    sparse_center,
    unit_sparse_rows,
    with_data,
)
from mdec.numerics.transfer import (
    BipartiteRows,
    assign_rows,
    embed_rows,
    small_side_graph,
    small_side_vectors,
)
from mdec.rows.blocks import Rows, block_height
from mdec.rows.work import Executor, gather_rows, ordered_sum, rows_of

# Rows drawn once for all members, which draw their own from them.
POOL_ROWS = 50_000

# Drawn rows for each landmark.
CANDIDATES = 2

# Landmarks are searched in float64 if float32 hides the nearest others of more.
MAX_HIDDEN_SHARE = 0.01

# Coordinates beyond this are so far from all landmarks that the place does not matter;
# their squares fit float32; those of sparse rows, which are in float64, fit that.
FARTHEST = 2.0**50
FARTHEST_SPARSE = 2.0**200


def tie_count(n_neighbors: int, n_samples: int, n_landmarks: int) -> int:
    """Return the landmarks that a sample is tied to.

    Notes
    -----
    As many as a graph has neighbours where every sample is a landmark; fewer in the
    measure in which a landmark stands for more samples, but at least half.

    Examples
    --------
    >>> tie_count(20, 5000, 5000), tie_count(20, 12_500, 10_000)
    (20, 16)
    >>> tie_count(20, 10**6, 10_000), tie_count(5, 10**6, 10_000)
    (10, 3)
    """
    return math.ceil(n_neighbors * max(0.5, n_landmarks / n_samples))


def pool_rows(plan: Plan) -> NDArray[np.int64]:
    """Return the rows, in order, from which every member draws its candidates."""
    if plan.n_samples <= POOL_ROWS:
        return np.arange(plan.n_samples)
    rng = member_stream(plan.entropy, 0, "pool")
    return np.sort(rng.choice(plan.n_samples, POOL_ROWS, replace=False))


def landmark_pool(rows: Rows, plan: Plan) -> Any:
    """Return the executor's handle of the rows that landmarks are drawn from."""
    return gather_rows(rows.executor, rows.blocks, rows.bounds, pool_rows(plan))


@dataclass(frozen=True)
class Landmarks:
    """What ties the rows of one member to its landmarks.

    Attributes
    ----------
    features : ndarray
        The member's features.
    kernel : str
        Its kernel.
    n_neighbors : int
        Landmarks that a row is tied to.
    mu : float
        Width of the kernel.
    center : ndarray of shape (n_coordinates,)
        Subtracted from rows before anything else; keeps float32 accurate.
    index : LandmarkIndex
        The landmarks, centred, in float32, or in float64 where that would not tell
        them apart.
    rho : ndarray of shape (n_landmarks,)
        Mean distance of each to its nearest other landmarks; zeros for the angular
        kernels, which take none.
    scale : float
        Power of two that rows are multiplied by before they are centred.
    """

    features: NDArray[np.int64]
    kernel: str
    n_neighbors: int
    mu: float
    center: Array
    index: LandmarkIndex
    rho: Array
    scale: float


def coordinates(rows: Any, features: NDArray[np.int64], kernel: str) -> Any:
    """Return rows in a member's subspace, as its kernel looks at them; sparse if so.

    The angular kernels take rows of unit length.
    """
    # Indexing would leave the columns, not the rows, of an array together in memory.
    dense = not sparse.issparse(rows)
    inside = np.take(rows, features, axis=1) if dense else rows[:, features]
    return kernels.coordinates(inside, kernel, fixed_width=True)


class Candidates(NamedTuple):
    """Drawn rows of one member, from which its landmarks are made.

    The rows are in the coordinates of the member's kernel, `drawn` are their places in
    the pool, and `n_ties` the landmarks that a row is tied to; centre and scale are
    those of `Landmarks`.
    """

    rows: Any
    drawn: NDArray[np.int64]
    n_ties: int
    center: Array
    scale: float


def draw_candidates(
    pool: Any, member: Member, plan: Plan, rng: np.random.Generator
) -> Candidates:
    """Draw rows of the pool, and find where their centre is and at what scale."""
    n_landmarks, kernel = plan.n_landmarks, plan.kernel_of(member)
    assert n_landmarks is not None
    ties = tie_count(member.n_neighbors, plan.n_samples, n_landmarks)
    size = min(CANDIDATES * n_landmarks, pool.shape[0])
    drawn = np.sort(rng.choice(pool.shape[0], size, replace=False))
    rows = coordinates(pool[drawn], plan.features(member), kernel)
    return Candidates(rows, drawn, min(ties, n_landmarks - 1), *_place(rows, kernel))


def fit_landmarks(
    pool: Any, member: Member, plan: Plan
) -> tuple[Landmarks, NDArray[np.int64], BipartiteRows]:
    """Choose the landmarks of a member, and tie its drawn rows to them.

    Parameters
    ----------
    pool : ndarray or csr_array of shape (n_pool, n_features)
        Rows to draw from.
    member : Member
        What to make it with.
    plan : Plan
        What it shares with the others.

    Returns
    -------
    landmarks : Landmarks
        For all rows.
    drawn : ndarray
        Rows of the pool from which the landmarks started.
    sample : BipartiteRows
        Their ties; the centres of the embedding come from them.
    """
    rng, kernel = plan.stream(member, "landmarks"), plan.kernel_of(member)
    assert plan.n_landmarks is not None
    some, given = draw_candidates(pool, member, plan, rng), (kernel, rng)
    started, chosen, index, between = _choose(some, plan.n_landmarks, *given)
    if between.min() == 0.0:
        # Rows at a place of many landmarks would be tied to that place alone.
        group = group_copies(some.rows)
        assert group is not None
        distinct = np.unique(group, return_index=True)[1]
        n_landmarks = min(plan.n_landmarks, distinct.size)
        if n_landmarks == 1:
            raise CopiesError("all rows are equal in the features that are drawn.")
        n_ties = min(some.n_ties, n_landmarks - 1)
        rows, drawn = some.rows[distinct], some.drawn[distinct]
        some = some._replace(rows=rows, drawn=drawn, n_ties=n_ties)
        started, chosen, index, between = _choose(some, n_landmarks, *given)
    rho = np.zeros(len(chosen))
    if kernel not in kernels.ANGULAR:
        if not between.any():
            # The rows differ, and their distances vanish beside the largest number.
            raise ValueError(TOO_WIDE)
        means = kernels.as_kernel_takes_them(between, kernel).mean(axis=1)
        rho = kernels.mean_neighbor_distance(means.astype(np.float64))
    landmarks = Landmarks(
        plan.features(member),
        kernel,
        some.n_ties,
        member.mu,
        some.center,
        index,
        rho.astype(started.dtype),
        some.scale,
    )
    return landmarks, some.drawn[chosen], tie_rows(started, landmarks)


def _choose(
    some: Candidates, n_landmarks: int, kernel: str, rng: np.random.Generator
) -> tuple[Any, NDArray[np.intp], LandmarkIndex, Array]:
    """Return the rows that landmarks start from, which these are, and the landmarks.

    And the squared distances of each to its nearest others. In float64 if rounding
    could have hidden the nearest others of some landmarks in float32.
    """
    for dtype in (np.float32, np.float64):
        centred = _center(some.rows, some.center, some.scale, dtype)
        chosen, points = refine_landmarks(centred, n_landmarks, rng)
        if kernel in kernels.ANGULAR:
            is_sparse = sparse.issparse(points)
            points = unit_sparse_rows(points)[0] if is_sparse else unit_rows(points)
            points = points.astype(centred.dtype, copy=False)
        index = index_landmarks(points, rng)
        between = nearest_landmarks(points, index, some.n_ties + 1)[1][:, 1:]
        error = np.finfo(points.dtype).eps * 2.0 * index.half_norms
        farthest = between.max(axis=1)
        hidden = (farthest > 0.0) & (farthest < 64.0 * error)
        if centred.dtype == np.float64 or np.mean(hidden) <= MAX_HIDDEN_SHARE:
            break
    return centred[chosen], chosen, index, between


def _place(rows: Any, kernel: str) -> tuple[Array, float]:
    """Return the centre of rows, once scaled, and the power of two that scales them.

    Rows of ordinary magnitudes are left at theirs.
    """
    shared = np.zeros(rows.shape[1])
    if kernel in kernels.ANGULAR:
        return shared, 1.0
    if largest_magnitude(rows) > 2.0**400:
        shared = shared_values(rows)
        rows = less(rows, shared)
    if sparse.issparse(rows):
        # The middle one, so that few rows far away do not count.
        middle = float(np.median(np.abs(rows.data))) if rows.nnz else 0.0
        scale, most = _power(middle, 2.0**20), FARTHEST_SPARSE
        center = sparse_center(_scale(rows, scale))
        return center + np.clip(shared * scale, -most, most), scale
    scale = _power(largest_magnitude(rows), 2.0**400)
    center, centred, _, near = center_rows(_scale(rows, scale))
    more = _power(float(np.abs(centred[near]).max()), 2.0**20)
    center = (center + shared * scale) * more
    if not np.isfinite(center).all():
        raise ValueError(TOO_WIDE)
    return center, scale * more


def _power(largest: float, ordinary: float) -> float:
    inside = 1.0 / ordinary <= largest <= ordinary
    return 1.0 if inside else to_power(largest, 0)


def _scale(rows: Any, scale: float) -> Any:
    """Return rows at a scale; sparse ones out of all bounds are brought to them."""
    with np.errstate(over="ignore"):
        if not sparse.issparse(rows):
            return rows if scale == 1.0 else rows.astype(np.float64) * scale
        return with_data(
            rows, np.clip(rows.data * scale, -FARTHEST_SPARSE, FARTHEST_SPARSE)
        )


def _center(rows: Any, center: Array, scale: float, dtype: type[np.floating]) -> Any:
    """Return rows about the centre; those out of all bounds are brought to them.

    Sparse rows are in float64, whatever the precision asked for.
    """
    scaled = _scale(rows, scale)
    if sparse.issparse(rows):
        return less(scaled, center)
    with np.errstate(over="ignore"):
        centred = (scaled - center.astype(scaled.dtype)).astype(dtype, copy=False)
    return np.clip(centred, -FARTHEST, FARTHEST, out=centred)


def tie_rows(rows: Any, landmarks: Landmarks) -> BipartiteRows:
    r"""Tie rows to their nearest landmarks with the member's kernel.

    Parameters
    ----------
    rows : ndarray or csr_array of shape (n_rows, n_coordinates)
        In the member's coordinates, centred, in the precision of the landmarks.
    landmarks : Landmarks
        The member's.

    Returns
    -------
    BipartiteRows
        The k nearest landmarks of each row with their similarities.

    Notes
    -----
    Eqs. 1 to 3 with landmarks for neighbours: :math:`\rho` of a row is its mean
    distance to its k nearest landmarks, that of a landmark its mean distance to the k
    nearest others. Similarities are in units of the median :math:`\rho`, so that they
    do not depend on the scale of the data. A row that coincides with k landmarks has
    the :math:`\rho` of a landmark that does.
    """
    kernel, rho = landmarks.kernel, landmarks.rho
    index, squared = nearest_landmarks(rows, landmarks.index, landmarks.n_neighbors)
    if kernel in kernels.ANGULAR:
        return BipartiteRows(index, kernels.angular_similarity(squared))
    unit = squared.dtype.type(np.median(rho))
    distance = kernels.as_kernel_takes_them(squared, kernel) / unit
    floor = squared.dtype.type(min(kernels.RELATIVE_FLOOR, rho.min() / unit))
    own = distance.mean(axis=1, keepdims=True)
    both = np.where(own > 0.0, own, floor), (rho / unit)[index]
    weights = kernels.scaled_similarity(kernel, distance, *both, landmarks.mu)
    return BipartiteRows(index, weights.astype(np.float32, copy=False))


def tie_block(block: Any, landmarks: Landmarks) -> BipartiteRows:
    """Tie the samples of one row block to the landmarks."""
    rows = coordinates(rows_of(block), landmarks.features, landmarks.kernel)
    dtype = landmarks.index.points.dtype.type
    centred = _center(rows, landmarks.center, landmarks.scale, dtype)
    return tie_rows(centred, landmarks)


# What rows are multiplied by, (n_landmarks, n_clusters), and the centres of the rows
# that are embedded so, (n_clusters, n_clusters).
Cut = tuple[Array, Array]


def fit_cut(
    affinity: sparse.csr_array, sample: BipartiteRows, member: Member, plan: Plan
) -> Cut:
    """Solve the small side of the transfer cut and place the centres, in float32.

    The affinity of landmarks is a sum over all rows; those that no row is tied to are
    left out. The centres come from k-means of the member's drawn rows, the sample.
    """
    tied = np.flatnonzero(affinity.sum(axis=1))
    n_clusters = min(member.n_clusters, tied.size)
    among = affinity if tied.size == affinity.shape[0] else affinity[tied][:, tied]
    solver, rng = plan.stream(member, "solver"), plan.stream(member, "kmeans")
    vectors = np.zeros((affinity.shape[0], n_clusters), dtype=np.float32)
    vectors[tied] = small_side_vectors(among, n_clusters, solver)
    return vectors, kmeans_centers(embed_rows(sample, vectors), n_clusters, rng)


def cut_block(rows: BipartiteRows, cut: Cut) -> NDArray[np.int32]:
    """Return the clusters of the samples of one row block."""
    return assign_rows(rows, *cut)


def landmark_clustering(
    executor: Executor, blocks: list[Any], pool: Any, member: Member, plan: Plan
) -> list[Any]:
    """Return the labels of one member, block by block.

    Parameters
    ----------
    executor : Executor
        Does the work on blocks.
    blocks : list
        Rows in blocks, or the executor's handles of these.
    pool : ndarray or csr_array
        Rows that landmarks are drawn from, or a handle.
    member : Member
        What to make it with.
    plan : Plan
        What it shares with the others.

    Returns
    -------
    list
        Labels of each block, or handles; nothing is waited for.
    """
    fitted = executor.call(fit_landmarks, pool, member, plan)
    landmarks = executor.call(itemgetter(0), fitted)
    sample = executor.call(itemgetter(2), fitted)
    rows = executor.map(tie_block, blocks, landmarks)
    affinity = ordered_sum(executor, small_side_graph, rows, plan.n_landmarks)
    cut = executor.call(fit_cut, affinity, sample, member, plan)
    return executor.map(cut_block, rows, cut)


def landmark_memory(plan: Plan, n_stored: int | None = None) -> int:
    """Estimate the bytes that one landmark clustering takes beside the data.

    As `mdec.base.members.member_memory`. Noise in many dimensions takes about that
    much; in clusters fewer landmarks share samples, so that they take less.
    """
    assert plan.n_landmarks is not None
    n_samples, n_landmarks = plan.n_samples, plan.n_landmarks
    ties = tie_count(plan.n_neighbors_range[1], n_samples, n_landmarks)
    n_shared = min(0.62 * ties**2 * (n_samples / n_landmarks) ** 0.3, n_landmarks)
    # Ties and labels of all rows; landmarks that share samples, in partial sums and in
    # the solver.
    bare = n_samples * (16 * ties + 24) + int(45 * n_landmarks * n_shared) + 2**20
    if n_stored is not None:
        # The subspace, scaled and centred; a landmark fills what its rows fill.
        return bare + int(48 * n_stored * plan.max_features)
    # Coordinates of drawn rows and of one block.
    height = min(n_samples, block_height(plan.n_features))
    drawn = 12 * CANDIDATES * n_landmarks + 16 * height
    return bare + drawn * plan.n_drawn
