"""Nearest columns of rows, and the small sums of a sparse bipartite graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from mdec.numerics.loops.jit import REASSOCIATE, inner, jit
from mdec.numerics.loops.kmeans import nearest_by_scores, precise_distance

# Groups of columns, a multiple of what a vector register holds.
_GROUPS = 128

# Steps in which the bound of the smallest entries is narrowed.
_HALVINGS = 8


@inner()
def _insert(value: Any, column: int, ordered: Any, columns: Any) -> None:
    """Put a value and its column in their place, behind equals."""
    position = ordered.size - 1
    while position > 0 and ordered[position - 1] > value:
        ordered[position] = ordered[position - 1]
        columns[position] = columns[position - 1]
        position -= 1
    ordered[position] = value
    columns[position] = column


@inner()
def _bound_smallest(values: Any, k: int) -> Any:
    """Return a bound that at least k of the values do not exceed, and few others."""
    low = high = values[0]
    for g in range(values.size):
        low = values[g] if values[g] < low else low
        high = values[g] if g < k and values[g] > high else high
    for _ in range(_HALVINGS):
        middle, n_within = low + (high - low) / 2, 0
        for g in range(values.size):
            n_within += values[g] <= middle
        if n_within < k:
            low = middle
        else:
            high = middle
            if n_within <= k + 4:
                break
    return high


@jit()
def smallest_columns(scores: Any, k: int, index: Any) -> Any:
    """Write the columns of the k smallest entries of each row, in their order.

    The columns are dealt into groups. What k of the groups' least entries do not exceed
    bounds the k-th smallest entry, so few groups need to be looked into. Equal entries
    go to the first column of a group, not always to the first of all. Returns whether
    every row has k entries below infinity.
    """
    all_found = True
    n_rows, n_columns = scores.shape
    n_groups = min(n_columns, max(4 * k, _GROUPS))
    least = np.empty(n_groups, dtype=scores.dtype)
    kept = np.empty(k, dtype=scores.dtype)
    for i in range(n_rows):
        row = scores[i]
        least[:] = row[:n_groups]
        for start in range(n_groups, n_columns, n_groups):
            width = min(n_groups, n_columns - start)
            part = row[start : start + width]
            for g in range(width):
                least[g] = part[g] if part[g] < least[g] else least[g]
        bound = _bound_smallest(least, k)
        kept[:] = np.inf
        columns = index[i]
        columns[:] = 0
        for g in range(n_groups):
            if least[g] <= bound:
                for c in range(g, n_columns, n_groups):
                    value = row[c]
                    if value <= bound and value < kept[k - 1]:
                        _insert(value, c, kept, columns)
        all_found &= kept[k - 1] < np.inf
    return all_found


@jit()
def settle_nearest(
    scores: Any, X: Any, points: Any, halves: Any, index: Any, distances: Any
) -> None:
    """Choose the nearest points once more where rounding leaves them in doubt.

    A score is half the squared norm of a point less its product with the row; `halves`
    are half the row's squared norm and the largest of a point. `index` holds the points
    of the k + 1 smallest scores, in order; `distances`, of k columns, is scratch.
    Differences tell what products, which round as suits the processor and many rows at
    a time, do not; the first of equals come first.
    """
    k, share = distances.shape[1], (X.shape[1] + 2) * np.finfo(X.dtype).eps
    for i in range(scores.shape[0]):
        row, columns, ordered = scores[i], index[i], distances[i]
        limit = row[columns[k - 1]] + 4.0 * share * halves[i]
        if row[columns[k]] > limit:
            continue
        ordered[:] = np.inf
        for c in range(row.size):
            if row[c] <= limit:
                value = ordered.dtype.type(precise_distance(X, i, points, c))
                if value < ordered[k - 1]:
                    _insert(value, c, ordered, columns[:k])


@jit()
def order_by_distance(X: Any, points: Any, index: Any, distances: Any) -> None:
    """Sort each row's points by their squared distance, computed by differences.

    `index` holds points of each row of X in any order; equal distances go to the lower
    number, and those that are equal in the precision of the distances are equal.
    """
    for i in range(index.shape[0]):
        columns, ordered = index[i], distances[i]
        for t in range(ordered.size):
            j, position = columns[t], t
            value = ordered.dtype.type(precise_distance(X, i, points, j))
            while position > 0 and (
                ordered[position - 1] > value
                or (ordered[position - 1] == value and columns[position - 1] > j)
            ):
                ordered[position] = ordered[position - 1]
                columns[position] = columns[position - 1]
                position -= 1
            ordered[position] = value
            columns[position] = j


@jit()
def nearest_column(
    scores: Any, points: Any, centers: Any, largest_half: float, labels: Any
) -> None:
    """Write the nearest centre of each point; the first of equals.

    A score is half the squared norm of a centre, at most `largest_half`, less its
    product with the point. Where rounding hides the least score, differences tell.
    """
    n_features = points.shape[1]
    share = (n_features + 2) * np.finfo(points.dtype).eps
    for i in range(scores.shape[0]):
        row = scores[i]
        norm = 0.0
        for f in range(n_features):
            norm += points[i, f] * points[i, f]
        error = share * (0.5 * norm + largest_half)
        labels[i] = nearest_by_scores(points, i, centers, row, error, 0.0)[0]


@jit()
def add_shared(index: Any, shares: Any, out: Any) -> None:
    """Add the share of each row to every two columns that the row is tied to.

    To the pairs of one tie and a later one, and half of it to those of a tie and
    itself; ties below zero count for nothing. The rows of `out` that one place of the
    ties leads to stay in the cache while all rows are gone through.
    """
    n_rows, k = index.shape
    for s in range(k):
        for i in range(n_rows):
            own, share = index[i, s], shares[i]
            if own >= 0:
                row = out[own]
                row[own] += 0.5 * share
                for t in range(s + 1, k):
                    other = index[i, t]
                    if other >= 0:
                        row[other] += share


@jit(fastmath=REASSOCIATE)
def embed_rows(index: Any, weights: Any, vectors: Any, out: Any) -> None:
    """Write the weighted sums of vectors to `out`, scaled to length one."""
    n_rows, k = index.shape
    width = vectors.shape[1]
    for i in range(n_rows):
        target = out[i]
        target[:] = 0
        for t in range(k):
            weight = weights[i, t]
            source = vectors[index[i, t]]
            for c in range(width):
                target[c] += weight * source[c]
        norm = 0.0
        for c in range(width):
            norm += target[c] * target[c]
        if norm > 0.0:
            scale = 1.0 / np.sqrt(norm)
            for c in range(width):
                target[c] *= scale


def count_overlaps(labels: Any, member: int, offsets: Any) -> Any:
    """Count the samples that each cluster of one member shares with every cluster."""
    n_own = offsets[member + 1] - offsets[member]
    counts = np.zeros((n_own, offsets[-1]), dtype=np.int64)
    _count_overlaps(labels, member, offsets, counts)
    return counts


@jit()
def _count_overlaps(labels: Any, member: int, offsets: Any, counts: Any) -> None:
    n_samples, n_members = labels.shape
    for i in range(n_samples):
        own = labels[i, member]
        if own >= 0:
            for m in range(n_members):
                if labels[i, m] >= 0:
                    counts[own, offsets[m] + labels[i, m]] += 1
