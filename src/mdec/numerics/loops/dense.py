"""Few samples: all their distances, and the largest of all their pairs.

Pairs are in the order of a condensed triangle: (0, 1), (0, 2), ..., (1, 2), ...
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mdec.numerics.loops.jit import compiled
from mdec.numerics.loops.selection import insert_ordered, offer_smaller
from mdec.numerics.loops.sparse import distance_by_differences, mirror_pairs

# A distance that is less than this share of the norms has lost four digits to them.
_CANCELLED = 1e-4


@compiled()
def products_to_distances(products: Any) -> Any:
    """Replace products of rows by squared distances, with zeros on the diagonal.

    Distances that lost digits are -1; returns whether there are any.
    """
    n = products.shape[0]
    norms = np.empty(n)
    for i in range(n):
        norms[i] = products[i, i]
    n_lost = 0
    for i in range(n):
        row, norm = products[i], norms[i]
        for j in range(n):
            both = norm + norms[j]
            value = -2.0 * row[j] + both
            lost = value < _CANCELLED * both
            row[j] = -1.0 if lost else value
            n_lost += lost
        n_lost -= row[i] == -1.0
        row[i] = 0.0
    return n_lost > 0


@compiled()
def fill_lost(distances: Any, X: Any) -> Any:
    """Compute the distances that are -1 by differences; tell whether all exist."""
    all_exist = True
    for i in range(distances.shape[0]):
        for j in range(i):
            if distances[i, j] < 0.0 or distances[j, i] < 0.0:
                value = distance_by_differences(X[i], X[j])
                all_exist &= value >= 0.0
                distances[i, j] = value
                distances[j, i] = value
    return all_exist


@compiled()
def mean_of_nearest(distances: Any, k: int) -> Any:
    """Return the mean of the k smallest entries of each row off the diagonal."""
    n = distances.shape[0]
    means = np.empty(n)
    ordered = np.empty(k)
    for i in range(n):
        ordered[:] = np.inf
        offer_smaller(distances[i, :i], 1, ordered)
        offer_smaller(distances[i, i + 1 :], 1, ordered)
        means[i] = np.sum(ordered) / k
    return means


@compiled()
def upper_triangle(distances: Any, ends: Any) -> Any:
    """Return each pair's distance and the values of its two ends."""
    n = ends.size
    shape = n * (n - 1) // 2
    near, first, second = np.empty(shape), np.empty(shape), np.empty(shape)
    start = 0
    for i in range(n - 1):
        stop = start + n - 1 - i
        near[start:stop] = distances[i, i + 1 :]
        first[start:stop] = ends[i]
        second[start:stop] = ends[i + 1 :]
        start = stop
    return near, first, second


@compiled()
def _least_kept(order: Any, n: int, k: int) -> Any:
    """Return each sample's k-th largest pair, and how many of its k equal it."""
    ordered = np.full((n, k), np.inf)
    bound = np.full(n, -np.inf)
    start = 0
    for i in range(n - 1):
        row = order[start : start + n - 1 - i]
        others = bound[i + 1 :]
        start += n - 1 - i
        for c in range(row.size):
            if row[c] > bound[i]:
                insert_ordered(-row[c], ordered[i])
                bound[i] = -ordered[i, k - 1]
            if row[c] > others[c]:
                insert_ordered(-row[c], ordered[i + 1 + c])
                others[c] = -ordered[i + 1 + c, k - 1]
    n_equal = np.zeros(n, dtype=np.int64)
    for i in range(n):
        for t in range(k):
            n_equal[i] += -ordered[i, t] == bound[i]
    return bound, n_equal


@compiled()
def largest_both_ways(order: Any, values: Any, n: int, k: int) -> Any:
    """Return the CSR arrays of the pairs among the k largest of either end.

    `order` tells what is large, `values` what to store; equal ones go to the first.
    """
    bound, n_equal = _least_kept(order, n, k)
    # One place more, for pairs that are written and not kept.
    low = np.empty(n * k + 1, dtype=np.int32)
    high = np.empty(n * k + 1, dtype=np.int32)
    data = np.empty(n * k + 1)
    size = 0
    start = 0
    for i in range(n - 1):
        for j in range(i + 1, n):
            entry = order[start]
            keep = (entry > bound[i]) | (entry > bound[j])
            if entry == bound[i] and n_equal[i] > 0:
                n_equal[i] -= 1
                keep = True
            if entry == bound[j] and n_equal[j] > 0:
                n_equal[j] -= 1
                keep = True
            low[size], high[size], data[size] = i, j, values[start]
            size += keep
            start += 1
    return mirror_pairs(low[:size], high[:size], data[:size], n)
