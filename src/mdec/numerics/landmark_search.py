"""Choosing landmarks among rows, and finding the nearest landmarks of other rows.

Few landmarks are all looked at. Many are searched coarse to fine: a row looks at the
landmarks around the centre that it is nearest to. Rows and landmarks are arrays, or
both are sparse; the choices are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdec._support.arrays import Array
from mdec.numerics.sparse_rows import (
    by_distance,
    by_feature,
    group_means,
    products,
    squared_norms,
)
from mdec.numerics.transfer import nearest_centers

# Up to this many landmarks all of them are looked at.
SEARCHED_WHOLE = 2000

# Otherwise around so many centres, each with its own landmarks and so many around it.
N_CELLS = 200
AROUND_CELL = 1000

# Steps of k-means that move chosen rows to the middle of those around them.
REFINEMENTS = 2

# Rows whose scores to all landmarks are made together.
TILE = 256

# Of fewer sparse rows than these their features are listed, and not the landmarks'.
FEW = 8


@dataclass(frozen=True)
class LandmarkIndex:
    """Landmarks, prepared for a search.

    Attributes
    ----------
    points : ndarray or csr_array of shape (n_landmarks, n_coordinates)
        The landmarks, float32 or float64.
    half_norms : ndarray of shape (n_landmarks,)
        Half their squared lengths.
    centers : ndarray or csr_array of shape (n_cells, n_coordinates)
        Centres of cells; none if all landmarks are looked at.
    around : list of ndarray
        Landmarks, in ascending order, at which the rows of each cell look.
    """

    points: Any
    half_norms: Array
    centers: Any
    around: list[NDArray[np.intp]]


def index_landmarks(points: Any, rng: np.random.Generator) -> LandmarkIndex:
    """Prepare landmarks for a search.

    They are centred, an array or sparse, of shape (n_landmarks, n_coordinates); the
    generator chooses cells. Every landmark is among those around its own cell, so that
    a row which is a landmark finds itself.
    """
    whole = LandmarkIndex(points, 0.5 * squared_norms(points), points[:0], [])
    if points.shape[0] <= SEARCHED_WHOLE:
        return whole
    centers = refine_landmarks(points, N_CELLS, rng)[1]
    shared = products(points, by_feature(centers))
    looked_at = _nearest_to_centers(centers, shared.T, whole)
    own = nearest_centers(points, centers, shared)
    looked_at[own, np.arange(len(own))] = True
    around = [np.flatnonzero(cell) for cell in looked_at]
    return LandmarkIndex(points, whole.half_norms, centers, around)


def _nearest_to_centers(
    centers: Any, shared: Array, known: LandmarkIndex
) -> NDArray[np.bool_]:
    """Mark the landmarks nearest to each centre by their products; of equal the first.

    Both are (n_cells, n_landmarks).
    """
    scores = known.half_norms - shared
    halves = 0.5 * squared_norms(centers) + known.half_norms.max()
    eps = float(np.finfo(scores.dtype).eps)
    error = 4.0 * (centers.shape[1] + 2) * eps * halves[:, None]
    last = np.partition(scores, AROUND_CELL - 1, axis=1)[:, AROUND_CELL - 1, None]
    marked = scores < last - error
    # Rounding, which differs between processors, leaves these in doubt.
    doubtful = ~marked & (scores <= last + error)
    for cell, equal in enumerate(map(np.flatnonzero, doubtful)):
        missing = AROUND_CELL - int(marked[cell].sum())
        if equal.size > missing:
            row = slice(cell, cell + 1)
            found = _search(centers[row], halves[row], known, equal, missing)[0]
            equal = equal[found[0]]
        marked[cell, equal] = True
    return marked


def refine_landmarks(
    candidates: Any, n_landmarks: int, rng: np.random.Generator
) -> tuple[NDArray[np.intp], Any]:
    """Choose landmarks among candidates and move them to the middle of their rows.

    Parameters
    ----------
    candidates : ndarray or csr_array of shape (n_candidates, n_coordinates)
        Drawn rows, centred, float32 or float64.
    n_landmarks : int
        At most the candidates.
    rng : Generator
        Source of the choice.

    Returns
    -------
    chosen : ndarray of shape (n_landmarks,)
        Candidates from which the landmarks started, in ascending order.
    points : ndarray or csr_array of shape (n_landmarks, n_coordinates)
        Where they came to, in the precision of the candidates.

    Notes
    -----
    The hybrid selection of Huang et al. (U-SPEC, 2020): random candidates, then a few
    steps of k-means. A landmark without rows stays where it is.
    """
    n_candidates = candidates.shape[0]
    chosen = np.sort(rng.choice(n_candidates, n_landmarks, replace=False))
    points = candidates[chosen]
    if n_landmarks == n_candidates:
        return chosen, points
    for _ in range(REFINEMENTS):
        index = index_landmarks(points, rng)
        labels: NDArray[np.integer]
        if index.around:
            labels = nearest_landmarks(candidates, index, 1)[0][:, 0]
        else:
            labels = nearest_centers(candidates, points)
        points = group_means(candidates, labels, points)
    return chosen, points


def nearest_landmarks(
    rows: Any, index: LandmarkIndex, n_neighbors: int
) -> tuple[NDArray[np.uint16], Array]:
    """Return the nearest landmarks of each row and their squared distances.

    Parameters
    ----------
    rows : ndarray or csr_array of shape (n_rows, n_coordinates)
        Centred as the landmarks are, and in their precision.
    index : LandmarkIndex
        The landmarks.
    n_neighbors : int
        Landmarks to find, at most all.

    Returns
    -------
    nearest : ndarray of shape (n_rows, n_neighbors)
        Landmarks by ascending distance, of equal ones the first; of many landmarks, the
        nearest of those around the row's cell.
    distances : ndarray of shape (n_rows, n_neighbors)
        Squared, computed by differences. A row is answered as if it were the only one.

    Examples
    --------
    >>> points = np.array([[0.0], [1.0], [5.0]], dtype=np.float32)
    >>> index = index_landmarks(points, np.random.default_rng(0))
    >>> nearest_landmarks(points[:2] + np.float32(0.25), index, 2)[0]
    array([[0, 1],
           [1, 0]], dtype=uint16)
    """
    # What rounding does to scores is a share of this.
    halves = 0.5 * squared_norms(rows) + index.half_norms.max()
    if not index.around or n_neighbors > AROUND_CELL:
        every = np.arange(index.points.shape[0])
        return _search(rows, halves, index, every, n_neighbors)
    nearest = np.empty((rows.shape[0], n_neighbors), dtype=np.uint16)
    distances = np.empty(nearest.shape, dtype=rows.dtype)
    cell = nearest_centers(rows, index.centers)
    order = np.argsort(cell, kind="stable")
    groups = np.split(order, np.searchsorted(cell[order], np.arange(1, N_CELLS)))
    for inside, around in zip(groups, index.around, strict=True):
        if inside.size:
            some = rows[inside], halves[inside]
            found, distances[inside] = _search(*some, index, around, n_neighbors)
            nearest[inside] = around[found]
    return nearest, distances


def _search(
    rows: Any, halves: Array, known: LandmarkIndex, around: NDArray[np.intp], k: int
) -> tuple[NDArray[np.uint16], Array]:
    """Return the nearest of some landmarks for each row, and their distances."""
    from mdec.numerics.loops import landmarks

    half_norms, points = known.half_norms[around], known.points[around]
    share = 4.0 * (rows.shape[1] + 2) * np.finfo(rows.dtype).eps
    index = np.empty((rows.shape[0], k), dtype=np.uint16)
    distances = np.empty(index.shape, dtype=rows.dtype)
    is_sparse, few = sparse.issparse(rows), rows.shape[0] < FEW
    others = by_feature(points) if is_sparse and not few else points.T
    for start in range(0, rows.shape[0], TILE):
        part = slice(start, start + TILE)
        tile, nearest = rows[part], index[part]
        if is_sparse and few:
            scores = np.ascontiguousarray(products(points, by_feature(tile)).T)
        else:
            scores = products(tile, others)
        np.subtract(half_norms, scores, out=scores)
        if is_sparse:
            found = landmarks.smallest_columns(scores, nearest)
            nearest[:], distances[part] = by_distance(tile, points, nearest)
        else:
            limits = share * halves[part], 0.0, around.size
            places = nearest, distances[part], np.empty(len(tile), dtype=bool)
            found = landmarks.nearest_points(scores, tile, points, *limits, *places)
        if not found:
            raise ValueError("X holds values that are not finite or too large.")
    return index, distances
