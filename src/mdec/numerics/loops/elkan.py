"""k-means with many centres in many dimensions: a greedy start and Elkan's bounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from mdec.numerics.loops.jit import inner, jit
from mdec.numerics.loops.kmeans import refill, squared_distance


@jit()
def greedy_start(X: Any, first: int, uniforms: Any) -> Any:
    """Choose the first row, then one more for each row of uniform numbers.

    Each uniform number proposes a candidate with chance prop. to D squared; the one
    that leaves the least sum of D squared is taken.
    """
    n_samples = X.shape[0]
    n_steps, n_trials = uniforms.shape
    chosen = np.empty(n_steps + 1, dtype=np.int64)
    chosen[0] = first
    nearest = np.empty(n_samples, dtype=X.dtype)
    for i in range(n_samples):
        nearest[i] = squared_distance(X, i, X, first)
    cumulated = np.empty(n_samples)
    distances = np.empty((n_samples, n_trials), dtype=X.dtype)
    candidates = np.empty(n_trials, dtype=np.int64)
    points = np.empty((n_trials, X.shape[1]), dtype=X.dtype)
    totals = np.empty(n_trials)
    for step in range(n_steps):
        total = 0.0
        for i in range(n_samples):
            total += nearest[i]
            cumulated[i] = total
        for t in range(n_trials):
            place = np.searchsorted(cumulated, uniforms[step, t] * total)
            candidates[t] = min(place, n_samples - 1)
            points[t] = X[candidates[t]]
            totals[t] = 0.0
        for i in range(n_samples):
            for t in range(n_trials):
                distances[i, t] = min(nearest[i], squared_distance(X, i, points, t))
                totals[t] += distances[i, t]
        best = np.argmin(totals)
        chosen[step + 1] = candidates[best]
        nearest[:] = distances[:, best]
    return chosen


@inner()
def _separate(centers: Any, half: Any, gap: Any) -> None:
    """Write half the distances between centres, and the least for each."""
    gap[:] = np.inf
    for c in range(len(centers)):
        half[c, c] = np.inf
        for other in range(c):
            distance = np.sqrt(squared_distance(centers, c, centers, other)) / 2
            half[c, other] = distance
            half[other, c] = distance
            gap[c] = min(gap[c], half[c, other])
            gap[other] = min(gap[other], half[c, other])


@inner()
def _reassign(
    X: Any,
    i: int,
    centers: Any,
    half: Any,
    label: int,
    upper: Any,
    lower: Any,
) -> Any:
    """Return the nearest centre and the bound on its distance, tightening bounds."""
    tight = False
    for c in range(len(centers)):
        if upper > lower[c] and upper > half[label, c] and c != label:
            if not tight:
                upper = np.sqrt(squared_distance(X, i, centers, label))
                lower[label] = upper
                tight = True
                if upper <= lower[c] or upper <= half[label, c]:
                    continue
            lower[c] = np.sqrt(squared_distance(X, i, centers, c))
            if lower[c] < upper:
                label, upper = c, lower[c]
    return label, upper


@inner()
def _move(centers: Any, sums: Any, counts: Any, moved: Any) -> None:
    """Put the centres at the means, and write how far they went."""
    for c in range(len(centers)):
        total = 0.0
        for f in range(centers.shape[1]):
            value = centers.dtype.type(sums[c, f] / max(counts[c], 1))
            total += (value - centers[c, f]) ** 2
            centers[c, f] = value
        moved[c] = np.sqrt(total)


@jit()
def elkan(X: Any, centers: Any, max_iter: int) -> Any:
    """Run Lloyd's iteration from distinct centres to its fixed point; return labels.

    A bound on every distance between a sample and a centre skips most of them, so the
    labels are those of the plain iteration. The centres are moved in place.
    """
    n_samples, n_centers = X.shape[0], centers.shape[0]
    labels = np.zeros(n_samples, dtype=np.int32)
    upper = np.full(n_samples, np.inf, dtype=X.dtype)
    lower = np.zeros((n_samples, n_centers), dtype=X.dtype)
    half = np.empty((n_centers, n_centers), dtype=X.dtype)
    gap = np.empty(n_centers, dtype=X.dtype)
    moved = np.zeros(n_centers, dtype=X.dtype)
    sums = np.zeros((n_centers, X.shape[1]))
    counts = np.zeros(n_centers, dtype=np.int64)
    counts[0] = n_samples
    for i in range(n_samples):
        sums[0] += X[i]
    for _ in range(max_iter):
        _separate(centers, half, gap)
        n_changed = 0
        for i in range(n_samples):
            for c in range(n_centers):
                lower[i, c] -= moved[c]
            old = labels[i]
            upper[i] += moved[old]
            if upper[i] <= gap[old]:
                continue
            new, upper[i] = _reassign(X, i, centers, half, old, upper[i], lower[i])
            if new != old:
                n_changed += 1
                counts[old] -= 1
                sums[old] -= X[i]
                counts[new] += 1
                sums[new] += X[i]
                labels[i] = new
        n_changed += refill(X, centers, labels, upper, sums, counts, 0.0)
        if n_changed == 0:
            break
        _move(centers, sums, counts, moved)
    return labels
