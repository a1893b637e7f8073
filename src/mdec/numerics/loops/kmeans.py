"""Starts and iterations of k-means."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mdec.numerics.loops.jit import REASSOCIATE, inner, jit
from mdec.numerics.magnitude import largest_magnitude

# Squared distances, and sums of them, that differ by less than this share are equal.
TIE = 1e-9

# Rows whose scores are in the cache together.
TILE = 128


@inner(fastmath=REASSOCIATE)
def squared_distance(A: Any, i: int, B: Any, j: int) -> Any:
    """Return the squared distance of a row of A and a row of B, in their precision."""
    total = A.dtype.type(0)
    for f in range(A.shape[1]):
        difference = A[i, f] - B[j, f]
        total += difference * difference
    return total


@inner(fastmath=REASSOCIATE)
def precise_distance(A: Any, i: int, B: Any, j: int) -> Any:
    """Return the squared distance of a row of A and a row of B in float64.

    What is decided by it is decided alike on every processor, up to ties.
    """
    total = 0.0
    for f in range(A.shape[1]):
        difference = np.float64(A[i, f]) - np.float64(B[j, f])
        total += difference * difference
    return total


def rounding_square(X: Any) -> float:
    """Return how far copies of a point are from their mean by rounding, squared."""
    rounding = 4.0 * float(np.finfo(X.dtype).eps) * largest_magnitude(X)
    return X.shape[1] * rounding**2


def kmeans_plus_plus(X: Any, uniforms: Any, rounding: float) -> Any:
    """Choose one centre per uniform number, each with chance prop. to D squared.

    What is up to `rounding`, from `rounding_square`, is no distance.
    """
    n_samples = len(X)
    centers = np.empty((uniforms.size, X.shape[1]), dtype=X.dtype)
    centers[0] = X[min(int(uniforms[0] * n_samples), n_samples - 1)]
    nearest = np.full(n_samples, np.inf)
    _choose_centers(X, uniforms, rounding, nearest, centers)
    return centers


@jit()
def _choose_centers(
    X: Any, uniforms: Any, rounding: float, nearest: Any, centers: Any
) -> None:
    n_samples = nearest.size
    for c in range(1, uniforms.size):
        total = 0.0
        for i in range(n_samples):
            distance = precise_distance(X, i, centers, c - 1)
            # Copies of a centre have no chance at all.
            distance = distance if distance > rounding else 0.0
            nearest[i] = distance if distance < nearest[i] else nearest[i]
            total += nearest[i]
        target = uniforms[c] * total
        chosen = n_samples - 1
        running = 0.0
        for i in range(n_samples):
            running += nearest[i]
            if running > target:
                chosen = i
                break
        for f in range(X.shape[1]):
            centers[c, f] = X[chosen, f]


@inner()
def nearest_by_scores(
    X: Any, i: int, centers: Any, scores: Any, error: float, rounding: float
) -> Any:
    """Return the centre nearest to row i, and the second least of the scores.

    The score of a centre is half its squared norm less its product with row i: half the
    squared distance, up to a constant of the row. Products round as suits the
    processor, by `error` at most; where that hides the nearest centre, differences
    tell. The first of equals is returned, and those within a billionth of each other or
    within `rounding` are equal.
    """
    best: Any = np.int64(0)
    first, second = scores[0], scores.dtype.type(np.inf)
    for c in range(1, scores.size):
        score = scores[c]
        if score < first:
            best, first, second = c, score, first
        elif score < second:
            second = score
    greatest = first + 2.0 * error
    if second > greatest:
        return best, second
    least = precise_distance(X, i, centers, best)
    for c in range(scores.size):
        if scores[c] <= greatest and c != best:
            distance = precise_distance(X, i, centers, c)
            least = distance if distance < least else least
    most = least * (1.0 + TIE) + rounding
    for c in range(scores.size):
        if scores[c] <= greatest and precise_distance(X, i, centers, c) <= most:
            return c, second
    return best, second


@jit()
def refill(
    X: Any, centers: Any, labels: Any, upper: Any, sums: Any, counts: Any, least: float
) -> int:
    """Give each empty centre the sample farthest from its own, if beyond `least`.

    The first of those that are equally far.
    """
    n_moved = 0
    for c in range(counts.size):
        if counts[c] > 0:
            continue
        farthest, largest = -1, least
        for i in range(labels.size):
            if counts[labels[i]] > 1:
                distance = precise_distance(X, i, centers, np.int64(labels[i]))
                if distance > largest * (1.0 + TIE):
                    farthest, largest = i, distance
        if farthest >= 0:
            old = labels[farthest]
            counts[old] -= 1
            counts[c] = 1
            for f in range(X.shape[1]):
                sums[old, f] -= X[farthest, f]
                sums[c, f] = X[farthest, f]
            labels[farthest] = c
            upper[farthest] = np.inf
            n_moved += 1
    return n_moved


def lloyd(X: Any, centers: Any, max_iter: int, rounding: float) -> Any:
    """Run Lloyd's iteration to its fixed point; return labels and inertia.

    Hamerly's bounds skip samples that cannot change their centre, so the labels are
    those of the plain iteration. Where rounding hides which centre is nearest, because
    all are alike beside their norms, differences tell. An empty cluster restarts at the
    sample farthest from its centre.
    """
    n_samples, n_features = X.shape
    n_centers, dtype = len(centers), X.dtype
    labels = np.full(n_samples, -1, dtype=np.int32)
    upper, lower = np.full(n_samples, np.inf), np.zeros(n_samples)
    half = 0.5 * np.einsum("ij,ij->i", X, X)
    sums, counts = np.zeros((n_centers, n_features)), np.zeros(n_centers, np.int64)
    # What rounding may add to or take from a score, as a share of half the norms; and
    # what ties may.
    share = (n_features + 2) * float(np.finfo(dtype).eps) + 4.0 * TIE
    height = min(TILE, n_samples)
    transposed = np.empty((n_features, n_centers), dtype=dtype)
    rows = np.zeros((height, n_features), dtype=dtype)
    scores = np.empty((height, n_centers), dtype=dtype)
    unsure, norms = np.empty(height, dtype=np.int64), np.empty(n_centers, dtype=dtype)
    moved, gap = np.empty((2, n_centers))
    clusters, bounds = (centers, sums, counts), (labels, upper, lower)
    scratch = moved, transposed, norms, gap, unsure, rows, scores
    for _ in range(max_iter):
        n_changed = _iterate(X, half, clusters, bounds, scratch, share, rounding)
        if not counts.all():
            n_changed += refill(X, centers, labels, upper, sums, counts, rounding)
        if n_changed == 0:
            break
    else:
        filled = counts > 0
        centers[filled] = sums[filled] / counts[filled, None]
    return labels, _inertia(X, centers, labels)


@jit()
def _iterate(
    X: Any,
    half: Any,
    clusters: Any,
    bounds: Any,
    scratch: Any,
    share: float,
    rounding: float,
) -> int:
    """Move the centres to the means of their samples, and assign these anew.

    Returns how many have another centre than before.
    """
    centers, sums, counts = clusters
    labels, upper, lower = bounds
    moved, transposed, half_norms, gap, unsure, rows, scores = scratch
    n_samples, n_features = X.shape
    largest, largest_half = 0.0, 0.0
    for c in range(counts.size):
        total = 0.0
        norm = X.dtype.type(0)
        for f in range(n_features):
            if counts[c] > 0:
                value = X.dtype.type(sums[c, f] / counts[c])
                difference = value - centers[c, f]
                total += difference * difference
                centers[c, f] = value
            norm += centers[c, f] * centers[c, f]
            transposed[f, c] = centers[c, f]
        moved[c] = math.sqrt(total)
        largest = moved[c] if moved[c] > largest else largest
        half_norms[c] = 0.5 * norm
        largest_half = half_norms[c] if half_norms[c] > largest_half else largest_half
        gap[c] = np.inf
        for other in range(c):
            apart = 0.5 * math.sqrt(squared_distance(centers, c, centers, other))
            gap[c] = apart if apart < gap[c] else gap[c]
            gap[other] = apart if apart < gap[other] else gap[other]
    n_changed, n_unsure = 0, 0
    for i in range(n_samples):
        label = np.int64(labels[i])
        safe = -np.inf
        if label >= 0:
            upper[i] += moved[label]
            lower[i] -= largest
            # By more than rounding, which differs between processors.
            bound = lower[i] if lower[i] > gap[label] else gap[label]
            safe = (1.0 - share) * bound
            if upper[i] >= safe:
                upper[i] = math.sqrt(squared_distance(X, i, centers, label))
        if upper[i] >= safe:
            for f in range(n_features):
                rows[n_unsure, f] = X[i, f]
            unsure[n_unsure] = i
            n_unsure += 1
        if n_unsure < unsure.size and (i < n_samples - 1 or n_unsure == 0):
            continue
        np.dot(rows, transposed, scores)
        for t in range(n_unsure):
            row = unsure[t]
            for c in range(counts.size):
                scores[t, c] = half_norms[c] - scores[t, c]
            error = share * (half[row] + largest_half)
            best, second = nearest_by_scores(
                X, row, centers, scores[t], error, rounding
            )
            most = half[row] + scores[t, best] + error
            rest = half[row] + second - error
            upper[row] = math.sqrt(2.0 * most) if most > 0.0 else 0.0
            lower[row] = math.sqrt(2.0 * rest) if rest > 0.0 else 0.0
            label = np.int64(labels[row])
            if best != label:
                n_changed += 1
                labels[row] = best
                counts[best] += 1
                for f in range(n_features):
                    sums[best, f] += X[row, f]
                if label >= 0:
                    counts[label] -= 1
                    for f in range(n_features):
                        sums[label, f] -= X[row, f]
        n_unsure = 0
    return n_changed


@jit()
def _inertia(X: Any, centers: Any, labels: Any) -> float:
    total = 0.0
    for i in range(labels.size):
        total += precise_distance(X, i, centers, np.int64(labels[i]))
    return total
