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
def _insert(value: Any, column: int, ordered: Any, columns: Any, before: Any) -> None:
    """Put a value and its column in their place, ahead of equals `before` or later."""
    position = ordered.size - 1
    while position > 0 and (
        ordered[position - 1] > value
        or (ordered[position - 1] == value and columns[position - 1] >= before)
    ):
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


@inner()
def _find_smallest(row: Any, least: Any, kept: Any, columns: Any) -> None:
    """Write the smallest entries of a row and their columns, in order.

    The columns are dealt into groups. What as many of the groups' least entries do not
    exceed bounds the entries, so few groups need to be looked into. Equal entries go to
    the first column of a group, not always to the first of all.
    """
    n_groups, last = least.size, kept.size - 1
    least[:] = row[:n_groups]
    for start in range(n_groups, row.size, n_groups):
        width = min(n_groups, row.size - start)
        part = row[start : start + width]
        for g in range(width):
            least[g] = part[g] if part[g] < least[g] else least[g]
    bound = _bound_smallest(least, kept.size)
    kept[:] = np.inf
    columns[:] = 0
    for g in range(n_groups):
        if least[g] <= bound:
            for c in range(g, row.size, n_groups):
                if row[c] <= bound and row[c] < kept[last]:
                    _insert(row[c], c, kept, columns, row.size)


@jit()
def smallest_columns(scores: Any, index: Any) -> Any:
    """Write the columns of the smallest entries of each row, in their order.

    Of equal entries any may be left out. Returns whether every row has as many entries
    below infinity as are asked for.
    """
    all_found, k = True, index.shape[1]
    least = np.empty(min(scores.shape[1], max(4 * k, _GROUPS)), dtype=scores.dtype)
    kept = np.empty(k, dtype=scores.dtype)
    for i in range(scores.shape[0]):
        _find_smallest(scores[i], least, kept, index[i])
        all_found &= kept[k - 1] < np.inf
    return all_found


@jit()
def nearest_points(
    scores: Any,
    X: Any,
    points: Any,
    errors: Any,
    share: float,
    most: int,
    index: Any,
    distances: Any,
    crowded: Any,
) -> Any:
    """Write the nearest points of each row by squared distance, the first of equals.

    Scores tell what is near, up to the error of a row and a share of the score, because
    products round as suits the processor and many rows at a time. Differences tell the
    rest, and are what is written; those that are equal in their precision are equal.
    Rows with more than `most` points in question are `crowded` and not searched.
    Returns whether every row has as many scores below infinity as are asked for.
    """
    n_points, k = scores.shape[1], index.shape[1]
    all_found, wide = True, min(k + 1, n_points)
    least = np.empty(min(n_points, max(4 * wide, _GROUPS)), dtype=scores.dtype)
    kept = np.empty(wide, dtype=scores.dtype)
    columns = np.empty(wide, dtype=np.int32)
    for i in range(scores.shape[0]):
        row, own, ordered = scores[i], index[i], distances[i]
        own[:], ordered[:] = 0, np.inf
        _find_smallest(row, least, kept, columns)
        all_found &= kept[wide - 1] < np.inf
        limit, n_within = kept[k - 1] + errors[i] + share * abs(kept[k - 1]), k
        if wide > k and kept[k] <= limit:
            n_within = 0
            for c in range(n_points):
                n_within += row[c] <= limit
        crowded[i] = n_within > most
        if crowded[i]:
            continue
        for t in range(n_points if n_within > k else k):
            c = t if n_within > k else columns[t]
            if row[c] <= limit:
                value = ordered.dtype.type(precise_distance(X, i, points, c))
                if value < ordered[k - 1]:
                    _insert(value, c, ordered, own, c)
    return all_found


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
