"""Few samples: all their distances, and the largest of all their pairs.

Pairs are in the order of a condensed triangle: (0, 1), (0, 2), ..., (1, 2), ...
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mdec.numerics.loops.jit import compiled
from mdec.numerics.loops.selection import insert_ordered
from mdec.numerics.loops.sparse import distance_by_differences, mirror_pairs

# A distance that is less than this share of the norms has lost four digits to them.
_CANCELLED = 1e-4


def products_to_distances(products: Any) -> Any:
    """Replace products of rows by squared distances, with zeros on the diagonal.

    Distances that lost digits are -1; returns the rows that have any.
    """
    lost = np.zeros(len(products), dtype=np.bool_)
    _to_distances(products, products.diagonal().copy(), lost)
    return np.flatnonzero(lost)


@compiled()
def _to_distances(products: Any, norms: Any, lost: Any) -> None:
    n = norms.size
    for i in range(n):
        n_lost = 0
        for j in range(n):
            both = norms[i] + norms[j]
            value = -2.0 * products[i, j] + both
            cancelled = value < _CANCELLED * both
            products[i, j] = -1.0 if cancelled else value
            n_lost += cancelled
        n_lost -= products[i, i] == -1.0
        products[i, i] = 0.0
        if n_lost > 0:
            lost[i] = True
            # Products may not be symmetric to the last bit, so both ends are noted.
            for j in range(n):
                lost[j] |= products[i, j] == -1.0


@compiled()
def fill_lost(distances: Any, rows: Any, X: Any) -> Any:
    """Compute the distances that are -1 by differences; tell whether all exist.

    X has the values of `rows` alone, which hold all of them.
    """
    all_exist = True
    for a in range(rows.size):
        for b in range(a):
            i, j = rows[a], rows[b]
            if distances[i, j] < 0.0 or distances[j, i] < 0.0:
                value = distance_by_differences(X, a, b)
                all_exist &= value >= 0.0
                distances[i, j] = value
                distances[j, i] = value
    return all_exist


def mean_of_nearest(distances: Any, k: int) -> Any:
    """Return the mean of the k smallest entries of each row off the diagonal."""
    means = np.empty(len(distances))
    _mean_of_nearest(distances, np.empty(k), means)
    return means


@compiled()
def _mean_of_nearest(distances: Any, ordered: Any, means: Any) -> None:
    k = ordered.size
    for i in range(means.size):
        for t in range(k):
            ordered[t] = np.inf
        row, last = distances[i], np.inf
        for j in range(means.size):
            if row[j] < last and j != i:
                insert_ordered(row[j], ordered)
                last = ordered[k - 1]
        total = 0.0
        for t in range(k):
            total += ordered[t]
        means[i] = total / k


def upper_triangle(distances: Any, ends: Any) -> Any:
    """Return each pair's distance and the values of its two ends."""
    n = ends.size
    shape = n * (n - 1) // 2
    near, first, second = np.empty(shape), np.empty(shape), np.empty(shape)
    _upper_triangle(distances, ends, near, first, second)
    return near, first, second


@compiled()
def _upper_triangle(
    distances: Any, ends: Any, near: Any, first: Any, second: Any
) -> None:
    n = ends.size
    start = 0
    for i in range(n - 1):
        # Views that begin at zero: the compiler copies several entries at once only
        # where it can see that no index is negative.
        stop = start + n - 1 - i
        own, here, there = near[start:stop], first[start:stop], second[start:stop]
        for c in range(stop - start):
            own[c] = distances[i, i + 1 + c]
        for c in range(stop - start):
            here[c] = ends[i]
        for c in range(stop - start):
            there[c] = ends[i + 1 + c]
        start = stop


def largest_both_ways(order: Any, values: Any, n: int, k: int) -> Any:
    """Return the CSR arrays of the pairs among the k largest of either end.

    `order` tells what is large, `values` what to store; equal ones go to the first.
    """
    ordered, bound = np.full((n, k), np.inf), np.full(n, -np.inf)
    # One place more, for pairs that are written and not kept.
    low, high = np.empty((2, n * k + 1), dtype=np.int64)
    data = np.empty(n * k + 1)
    scratch = ordered, bound, np.zeros(n, dtype=np.int64)
    size = _largest_both_ways(order, values, *scratch, low, high, data)
    return mirror_pairs(low[:size], high[:size], data[:size], n)


@compiled()
def _largest_both_ways(
    order: Any,
    values: Any,
    ordered: Any,
    bound: Any,
    n_equal: Any,
    low: Any,
    high: Any,
    data: Any,
) -> int:
    n, k = ordered.shape
    start = 0
    for i in range(n - 1):
        row, others, least = order[start:], bound[i + 1 :], bound[i]
        for c in range(n - 1 - i):
            if row[c] > least:
                insert_ordered(-row[c], ordered[i])
                least = -ordered[i, k - 1]
            if row[c] > others[c]:
                insert_ordered(-row[c], ordered[i + 1 + c])
                others[c] = -ordered[i + 1 + c, k - 1]
        bound[i] = least
        start += n - 1 - i
    # How many of a sample's k largest equal the least of them.
    for i in range(n):
        for t in range(k):
            n_equal[i] += -ordered[i, t] == bound[i]
    size = 0
    start = 0
    for i in range(n - 1):
        row, least = order[start:], bound[i]
        for c in range(n - 1 - i):
            entry, j = row[c], i + 1 + c
            keep = (entry > least) | (entry > bound[j])
            if entry == least and n_equal[i] > 0:
                n_equal[i] -= 1
                keep = True
            if entry == bound[j] and n_equal[j] > 0:
                n_equal[j] -= 1
                keep = True
            low[size] = i
            high[size] = j
            data[size] = values[start + c]
            size += keep
        start += n - 1 - i
    return size
