"""Base clustering through landmarks, for more samples than pairs can be looked at.

A member draws a few rows, refines them by k-means to landmarks, ties every sample to
its nearest landmarks with the member's own kernel, and cuts that bipartite graph. All
that is done with the samples is a map over row blocks or a small sum over them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._random import member_stream
from mdec.devices import ONE_CLUSTER
from mdec.ensemble import Member
from mdec.kernels import (
    ANGULAR,
    RELATIVE_FLOOR,
    SIMILARITY,
    angular_coordinates,
    mean_neighbor_distance,
    scaling_term,
)
from mdec.kmeans import kmeans_centers
from mdec.row_blocks import BlockReader, Worker, ordered_sum, rows_of
from mdec.spectral import unit_rows
from mdec.transfer import (
    BipartiteRows,
    assigned_rows,
    embedded_rows,
    nearest_centers,
    reduced_affinity,
    reduced_vectors,
)

Array = NDArray[np.floating]

# Above this many samples base="auto" takes landmarks.
AUTO_SAMPLES = 20_000
AUTO_SAMPLES_ON_CARD = 100_000

# Rows drawn once for all members, which draw their own from them.
POOL_ROWS = 50_000

# Drawn rows for each landmark, and steps of the k-means that refines them.
CANDIDATES = 5
REFINEMENTS = 4

# Rows whose scores to all landmarks are made together.
TILE = 256

MAX_BASE_CLUSTERS = 100


def landmark_count(n_samples: int) -> int:
    r"""Return the number of landmarks of a member.

    Examples
    --------
    >>> [landmark_count(n) for n in (400, 2000, 11_000, 1_000_000)]
    [200, 1000, 2000, 2000]
    """
    return max(2, min(n_samples // 2, 2000))


def landmark_cluster_bounds(n_samples: int) -> tuple[int, int]:
    r"""Return the least and greatest number of clusters of a landmark member.

    Notes
    -----
    2 to :math:`\lceil\sqrt N\rceil` as for graphs, but at most 100: twenty landmarks
    for each cluster are needed to tell them apart.
    """
    return 2, max(2, min(math.ceil(math.sqrt(n_samples)), MAX_BASE_CLUSTERS))


def tie_count(n_neighbors: int) -> int:
    """Return the landmarks that a sample is tied to, half of a graph's neighbours.

    Notes
    -----
    A landmark stands for two samples or more, so half as many reach as far.

    Examples
    --------
    >>> tie_count(5), tie_count(20)
    (3, 10)
    """
    return -(-n_neighbors // 2)


def pool_rows(n_samples: int, entropy: int) -> NDArray[np.int64]:
    """Return the rows, in order, from which every member draws its candidates."""
    if n_samples <= POOL_ROWS:
        return np.arange(n_samples)
    rng = member_stream(entropy, 0, "pool")
    return np.sort(rng.choice(n_samples, POOL_ROWS, replace=False))


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
    points : ndarray of shape (n_landmarks, n_coordinates)
        The landmarks, centred, in float32.
    rho : ndarray of shape (n_landmarks,)
        Mean distance of each to its nearest other landmarks.
    """

    features: NDArray[np.int64]
    kernel: str
    n_neighbors: int
    mu: float
    center: Array
    points: Array
    rho: Array


def coordinates(rows: Array, features: NDArray[np.int64], kernel: str) -> Array:
    """Return rows in a member's subspace, as its kernel looks at them.

    Notes
    -----
    The angular kernels take rows of unit length. The extra coordinate for rows without
    a direction is always there, so that blocks fit each other.
    """
    # Indexing would leave the columns, not the rows, together in memory.
    inside = np.take(rows, features, axis=1)
    if kernel not in ANGULAR:
        return inside
    unit = angular_coordinates(inside, kernel)
    if unit.shape[1] == inside.shape[1]:
        unit = np.hstack([unit, np.zeros((len(unit), 1), dtype=unit.dtype)])
    return unit


def refined_landmarks(
    candidates: Array, n_landmarks: int, rng: np.random.Generator
) -> Array:
    """Choose landmarks among candidates and move them to the middle of their rows.

    Parameters
    ----------
    candidates : ndarray of shape (n_candidates, n_coordinates)
        Drawn rows, centred, float32.
    n_landmarks : int
        At most the candidates.
    rng : Generator
        Source of the choice.

    Returns
    -------
    ndarray of shape (n_landmarks, n_coordinates)
        float32.

    Notes
    -----
    The hybrid selection of Huang et al. (U-SPEC, 2020): random candidates, then a few
    steps of k-means. A landmark without rows stays where it is.
    """
    from mdec import _compiled

    chosen = rng.choice(len(candidates), n_landmarks, replace=False)
    points = candidates[np.sort(chosen)]
    for _ in range(REFINEMENTS):
        labels = nearest_centers(candidates, points)
        sums = np.zeros(points.shape)
        counts = np.zeros(n_landmarks, dtype=np.int64)
        _compiled.group_sums(candidates, labels, sums, counts)
        means = sums / np.maximum(counts, 1)[:, None]
        points = np.where(counts[:, None] > 0, means, points).astype(np.float32)
    return points


def nearest_landmarks(
    rows: Array, points: Array, n_neighbors: int
) -> tuple[NDArray[np.uint16], Array]:
    """Return the nearest landmarks of each row and their squared distances.

    Parameters
    ----------
    rows, points : ndarray of shape (any, n_coordinates)
        Rows and landmarks, centred, float32.
    n_neighbors : int
        Landmarks to find, at most all.

    Returns
    -------
    index : ndarray of shape (n_rows, n_neighbors)
        Landmarks by ascending distance.
    distances : ndarray of shape (n_rows, n_neighbors)
        Squared, computed by differences.

    Examples
    --------
    >>> points = np.array([[0.0], [1.0], [5.0]], dtype=np.float32)
    >>> nearest_landmarks(points[:2] + np.float32(0.25), points, 2)[0]
    array([[0, 1],
           [1, 0]], dtype=uint16)
    """
    from mdec import _compiled

    half_norms = 0.5 * np.einsum("ij,ij->i", points, points)
    right = np.hstack([-points, half_norms[:, None]]).T
    left = np.ones((TILE, points.shape[1] + 1), dtype=np.float32)
    index = np.empty((len(rows), n_neighbors), dtype=np.uint16)
    distances = np.empty((len(rows), n_neighbors), dtype=np.float32)
    for start in range(0, len(rows), TILE):
        part = slice(start, start + TILE)
        tile = rows[part]
        left[: len(tile), :-1] = tile
        scores = left[: len(tile)] @ right
        _compiled.smallest_columns(scores, n_neighbors, index[part])
        _compiled.order_by_distance(tile, points, index[part], distances[part])
    return index, distances


def fitted_landmarks(
    pool: Array, member: Member, features: NDArray[np.int64], spec: dict[str, Any]
) -> tuple[Landmarks, NDArray[np.int64], BipartiteRows]:
    """Choose the landmarks of a member, and tie its drawn rows to them.

    Parameters
    ----------
    pool : ndarray of shape (n_pool, n_features)
        Rows to draw from.
    member : Member
        What to make it with.
    features : ndarray
        The member's features.
    spec : dict
        ``ensemble.parameters``.

    Returns
    -------
    landmarks : Landmarks
        For all rows.
    drawn : ndarray
        Rows of the pool that the member drew.
    sample : BipartiteRows
        Their ties; the centres of the embedding come from them.
    """
    rng = member_stream(spec["entropy"], member.index, "landmarks", member.attempt)
    n_landmarks = spec["n_landmarks"]
    k = min(tie_count(member.n_neighbors), n_landmarks - 1)
    size = min(CANDIDATES * n_landmarks, len(pool))
    drawn = np.sort(rng.choice(len(pool), size, replace=False))
    rows = coordinates(pool[drawn], features, spec["kernel"])
    center = rows.mean(axis=0, dtype=np.float64)
    if spec["kernel"] in ANGULAR:
        center = np.zeros_like(center)
    centred = _centred(rows, center)
    points = refined_landmarks(centred, n_landmarks, rng)
    if spec["kernel"] in ANGULAR:
        points = unit_rows(points).astype(np.float32)
    _, between = nearest_landmarks(points, points, k + 1)
    means = _as_kernel_takes_them(between[:, 1:], spec["kernel"]).mean(axis=1)
    rho = mean_neighbor_distance(means.astype(np.float64)).astype(np.float32)
    landmarks = Landmarks(features, spec["kernel"], k, member.mu, center, points, rho)
    return landmarks, drawn, tied(centred, landmarks)


def _centred(rows: Array, center: Array) -> Array:
    return (rows - center.astype(rows.dtype)).astype(np.float32, copy=False)


def _as_kernel_takes_them(squared: Array, kernel: str) -> Array:
    return np.sqrt(squared) if kernel == "scaled_exponential" else squared


def tied(rows: Array, landmarks: Landmarks) -> BipartiteRows:
    r"""Tie rows to their nearest landmarks with the member's kernel.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_coordinates)
        In the member's coordinates, centred, float32.
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
    do not depend on the scale of the data.
    """
    index, squared = nearest_landmarks(rows, landmarks.points, landmarks.n_neighbors)
    if landmarks.kernel in ANGULAR:
        return BipartiteRows(index, np.maximum(1.0 - 0.5 * squared, 0.0))
    unit = np.float32(np.median(landmarks.rho))
    distance = _as_kernel_takes_them(squared, landmarks.kernel) / unit
    rho = np.maximum(distance.mean(axis=1, keepdims=True), np.float32(RELATIVE_FLOOR))
    scale = scaling_term(distance, rho, (landmarks.rho / unit)[index])
    weights = SIMILARITY[landmarks.kernel](distance, scale, landmarks.mu)
    return BipartiteRows(index, weights.astype(np.float32, copy=False))


def tied_block(block: BlockReader | Array, landmarks: Landmarks) -> BipartiteRows:
    """Tie the samples of one row block to the landmarks."""
    rows = coordinates(rows_of(block), landmarks.features, landmarks.kernel)
    return tied(_centred(rows, landmarks.center), landmarks)


@dataclass(frozen=True)
class Cut:
    """How a member's rows are embedded and told apart.

    Attributes
    ----------
    vectors : ndarray of shape (n_landmarks, n_clusters)
        What rows are multiplied by.
    centers : ndarray of shape (n_clusters, n_clusters)
        Centres of the embedded rows.
    """

    vectors: Array
    centers: Array


def fitted_cut(
    affinity: Array, sample: BipartiteRows, member: Member, entropy: int
) -> Cut:
    """Solve the small side of the transfer cut and place the centres.

    Parameters
    ----------
    affinity : ndarray of shape (n_landmarks, n_landmarks)
        Sum over all rows.
    sample : BipartiteRows
        The member's drawn rows, whose k-means gives the centres.
    member : Member
        What to make it with.
    entropy : int
        Seed of the run.

    Returns
    -------
    Cut
        In float32.
    """
    seed = entropy, member.index
    solver = member_stream(*seed, "solver", member.attempt)
    vectors = reduced_vectors(
        affinity, member.n_clusters, solver, tol=1e-3, dtype=np.float32
    ).astype(np.float32)
    points = embedded_rows(sample, vectors)
    rng = member_stream(*seed, "kmeans", member.attempt)
    return Cut(vectors, kmeans_centers(points, member.n_clusters, rng))


def cut_block(rows: BipartiteRows, cut: Cut) -> NDArray[np.int32]:
    """Return the clusters of the samples of one row block."""
    return assigned_rows(rows, cut.vectors, cut.centers)


def _label_counts(parts: list[NDArray[np.int32]], n_clusters: int) -> NDArray[np.int64]:
    return np.bincount(np.concatenate(parts), minlength=n_clusters).astype(np.int64)


def _renumbered(
    labels: NDArray[np.int32], numbers: NDArray[np.int32]
) -> NDArray[np.int32]:
    return numbers[labels]


def landmark_clustering(
    worker: Worker,
    blocks: list[Any],
    pool: Any,
    member: Member,
    features: NDArray[np.int64],
    spec: dict[str, Any],
) -> list[Any]:
    """Return the labels of one member, block by block.

    Parameters
    ----------
    worker : Worker
        Who does the work on blocks.
    blocks : list
        The row blocks.
    pool : object
        Rows to draw from, or the worker's handle of them.
    member : Member
        What to make it with.
    features : ndarray
        The member's features.
    spec : dict
        ``ensemble.parameters``.

    Returns
    -------
    list
        The worker's handles of the labels of each block.
    """
    fitted = worker.call(fitted_landmarks, pool, member, features, spec)
    landmarks = worker.call(itemgetter(0), fitted)
    sample = worker.call(itemgetter(2), fitted)
    rows = worker.map(tied_block, blocks, landmarks)
    affinity = ordered_sum(worker, reduced_affinity, rows, spec["n_landmarks"])
    cut = worker.call(fitted_cut, affinity, sample, member, spec["entropy"])
    labels = worker.map(cut_block, rows, cut)
    counts = worker.value(ordered_sum(worker, _label_counts, labels, member.n_clusters))
    if np.count_nonzero(counts) < 2:
        raise ValueError(ONE_CLUSTER)
    numbers = (np.cumsum(counts > 0) - 1).astype(np.int32)
    if numbers[-1] + 1 == member.n_clusters:
        return list(labels)
    return list(worker.map(_renumbered, labels, numbers))


def landmark_memory(n_samples: int, spec: dict[str, Any]) -> int:
    """Estimate the bytes that one landmark clustering takes beside the data."""
    n_neighbors = spec["n_neighbors_range"][1]
    n_drawn = math.floor(spec["sampling_ratio"] * spec["n_features"] + 0.5)
    n_landmarks = spec["n_landmarks"]
    # Ties and labels of all rows; drawn rows and landmarks; partial sums; one block.
    return (
        n_samples * (6 * n_neighbors + 8)
        + 12 * CANDIDATES * n_landmarks * n_drawn
        + 64 * n_landmarks**2
        + 12 * 2**24
    )
