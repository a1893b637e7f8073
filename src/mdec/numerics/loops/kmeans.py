"""Starts and iterations of k-means."""

from __future__ import annotations

from typing import Any

import numpy as np

from mdec.numerics.loops.jit import REASSOCIATE, compiled


@compiled(fastmath=REASSOCIATE)
def _squared_distance(a: Any, b: Any) -> Any:
    total = a.dtype.type(0)
    for f in range(a.size):
        difference = a[f] - b[f]
        total += difference * difference
    return total


@compiled()
def kmeans_plus_plus(X: Any, uniforms: Any) -> Any:
    """Choose one centre per uniform number, each with chance prop. to D squared."""
    n_samples = X.shape[0]
    centers = np.empty((uniforms.size, X.shape[1]), dtype=X.dtype)
    chosen = min(int(uniforms[0] * n_samples), n_samples - 1)
    centers[0] = X[chosen]
    nearest = np.full(n_samples, np.inf)
    for c in range(1, uniforms.size):
        total = 0.0
        for i in range(n_samples):
            nearest[i] = min(nearest[i], _squared_distance(X[i], centers[c - 1]))
            total += nearest[i]
        target = uniforms[c] * total
        chosen = n_samples - 1
        running = 0.0
        for i in range(n_samples):
            running += nearest[i]
            if running > target:
                chosen = i
                break
        centers[c] = X[chosen]
    return centers


@compiled(fastmath=REASSOCIATE)
def _two_nearest(x: Any, transposed: Any, half_norms: Any, scores: Any) -> Any:
    """Return the nearest centre, its score and that of the second nearest.

    The score of a centre is half its squared norm less its product with x: half the
    squared distance, up to a constant of x.
    """
    n_centers = half_norms.size
    scores[:] = half_norms
    for f in range(x.size):
        value = x[f]
        for c in range(n_centers):
            scores[c] -= value * transposed[f, c]
    best, first, second = 0, scores[0], scores.dtype.type(np.inf)
    for c in range(1, n_centers):
        score = scores[c]
        if score < first:
            best, first, second = c, score, first
        elif score < second:
            second = score
    return best, first, second


@compiled()
def nearest_by_differences(
    x: Any, centers: Any, scores: Any, greatest: Any, best: int
) -> Any:
    """Return the nearest centre among those whose score is not above `greatest`.

    `best` is any of them; the first of equals is returned.
    """
    least = _squared_distance(x, centers[best])
    for c in range(scores.size):
        if scores[c] <= greatest and c != best:
            distance = _squared_distance(x, centers[c])
            if distance < least or (distance == least and c < best):
                best, least = c, distance
    return best


@compiled()
def _refill(
    X: Any, centers: Any, labels: Any, upper: Any, sums: Any, counts: Any, least: float
) -> int:
    """Give each empty centre the sample farthest from its own, if beyond `least`."""
    n_moved = 0
    for c in np.flatnonzero(counts == 0):
        farthest, largest = -1, least
        for i in range(X.shape[0]):
            if counts[labels[i]] > 1:
                distance = _squared_distance(X[i], centers[labels[i]])
                if distance > largest:
                    farthest, largest = i, distance
        if farthest >= 0:
            counts[labels[farthest]] -= 1
            sums[labels[farthest]] -= X[farthest]
            labels[farthest] = c
            upper[farthest] = np.inf
            counts[c] = 1
            sums[c] = X[farthest]
            n_moved += 1
    return n_moved


@compiled()
def lloyd(X: Any, centers: Any, max_iter: int) -> Any:
    """Run Lloyd's iteration to its fixed point; return labels and inertia.

    Hamerly's bounds skip samples that cannot change their centre, so the labels are
    those of the plain iteration. Where rounding hides which centre is nearest, because
    all are alike beside their norms, differences tell. An empty cluster restarts at the
    sample farthest from its centre.
    """
    n_samples, n_features = X.shape
    n_centers = centers.shape[0]
    labels = np.full(n_samples, -1, dtype=np.int32)
    upper = np.full(n_samples, np.inf)
    lower = np.zeros(n_samples)
    sums = np.zeros((n_centers, n_features))
    counts = np.zeros(n_centers, dtype=np.int64)
    scores = np.empty(n_centers, dtype=X.dtype)
    half_norms = np.empty(n_centers, dtype=X.dtype)
    transposed = np.empty((n_features, n_centers), dtype=X.dtype)
    moved = np.zeros(n_centers)
    gap = np.zeros(n_centers)
    # Copies of a point are this far from their mean by rounding alone.
    rounding = n_features * (4.0 * np.finfo(X.dtype).eps * np.max(np.abs(X))) ** 2
    # What rounding may add to or take from a score, as a share of half the norms.
    share = (n_features + 2) * np.finfo(X.dtype).eps
    for _ in range(max_iter):
        for c in range(n_centers):
            half_norms[c] = 0.5 * np.sum(centers[c] * centers[c])
            transposed[:, c] = centers[c]
            gap[c] = np.inf
        largest_half = np.max(half_norms)
        for c in range(n_centers):
            for other in range(c):
                half = 0.5 * np.sqrt(_squared_distance(centers[c], centers[other]))
                gap[c] = min(gap[c], half)
                gap[other] = min(gap[other], half)
        n_changed = 0
        for i in range(n_samples):
            label = labels[i]
            if label >= 0:
                safe = max(lower[i], gap[label])
                if upper[i] < safe:
                    continue
                upper[i] = np.sqrt(_squared_distance(X[i], centers[label]))
                if upper[i] < safe:
                    continue
            best, first, second = _two_nearest(X[i], transposed, half_norms, scores)
            half_norm = 0.5 * np.sum(X[i] * X[i])
            error = share * (half_norm + largest_half)
            if second <= first + 2.0 * error:
                best = nearest_by_differences(
                    X[i], centers, scores, first + 2.0 * error, best
                )
            upper[i] = np.sqrt(_squared_distance(X[i], centers[best]))
            lower[i] = np.sqrt(max(2.0 * (half_norm + second - error), 0.0))
            if best != label:
                n_changed += 1
                if label >= 0:
                    counts[label] -= 1
                    sums[label] -= X[i]
                counts[best] += 1
                sums[best] += X[i]
                labels[i] = best
        n_changed += _refill(X, centers, labels, upper, sums, counts, rounding)
        if n_changed == 0:
            break
        largest = 0.0
        for c in range(n_centers):
            moved[c] = 0.0
            if counts[c] > 0:
                for f in range(n_features):
                    value = X.dtype.type(sums[c, f] / counts[c])
                    moved[c] += (value - centers[c, f]) ** 2
                    centers[c, f] = value
                moved[c] = np.sqrt(moved[c])
            largest = max(largest, moved[c])
        for i in range(n_samples):
            upper[i] += moved[labels[i]]
            lower[i] -= largest
    inertia = 0.0
    for i in range(n_samples):
        inertia += _squared_distance(X[i], centers[labels[i]])
    return labels, inertia
