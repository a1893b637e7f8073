"""Distances of dense rows, of listed pairs and of all, and the largest of all pairs.

All pairs are in the order of a condensed triangle: (0, 1), (0, 2), ..., (1, 2), ...
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mdec.numerics import digits
from mdec.numerics.loops.csr import LEAST_SQUARE, mirror_pairs
from mdec.numerics.loops.jit import REASSOCIATE, inner, jit
from mdec.numerics.loops.selection import insert_ordered, nearest_entries

# A distance that is less than this share of the norms has lost four digits to them.
_CANCELLED = 1e-4

nine_digits: Any = inner()(digits.nine_digits)


@inner(fastmath=REASSOCIATE)
def _sum_of_squares(X: Any, i: int, j: int) -> Any:
    total = 0.0
    for f in range(X.shape[1]):
        difference = np.float64(X[i, f] - X[j, f])
        total += difference * difference
    return total


@inner()
def distance_by_differences(X: Any, i: int, j: int) -> Any:
    """Return the squared distance of two rows, -1 if float64 does not hold it."""
    total = _sum_of_squares(X, i, j)
    if total < LEAST_SQUARE:
        for f in range(X.shape[1]):
            if X[i, f] != X[j, f]:
                return -1.0
    return total


def pair_distances(X: Any, rows: Any, columns: Any) -> Any:
    """Return the squared distance of each listed pair, -1 if float64 does not hold it.

    Computed by differences, and rounded to nine digits.
    """
    out = np.empty(rows.size)
    _pair_distances(X, rows, columns, out)
    return out


@jit()
def _pair_distances(X: Any, rows: Any, columns: Any, out: Any) -> None:
    for e in range(out.size):
        out[e] = nine_digits(distance_by_differences(X, rows[e], columns[e]))


def products_to_distances(products: Any) -> Any:
    """Replace products of rows by squared distances, with zeros on the diagonal.

    They are rounded to nine digits, so that equal ones are equal. Distances that lost
    digits are -1; returns the rows that have any.
    """
    lost = np.zeros(len(products), dtype=np.bool_)
    _to_distances(products, products.diagonal().copy(), lost)
    return np.flatnonzero(lost)


@jit()
def _to_distances(products: Any, norms: Any, lost: Any) -> None:
    n = norms.size
    for i in range(n):
        n_lost = 0
        for j in range(n):
            both = norms[i] + norms[j]
            value = -2.0 * products[i, j] + both
            cancelled = value < _CANCELLED * both
            products[i, j] = -1.0 if cancelled else nine_digits(value)
            n_lost += cancelled
        n_lost -= products[i, i] == -1.0
        products[i, i] = 0.0
        if n_lost > 0:
            lost[i] = True
            # Products may not be symmetric to the last bit, so both ends are noted.
            for j in range(n):
                lost[j] |= products[i, j] == -1.0


@jit()
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
                distances[i, j] = nine_digits(value)
                distances[j, i] = distances[i, j]
    return all_exist


def mean_of_nearest(distances: Any, k: int) -> Any:
    """Return the mean of the k smallest entries of each row off the diagonal."""
    n, others = len(distances), distances.copy()
    np.fill_diagonal(others, np.inf)
    return nearest_entries(n * np.arange(n + 1), others.ravel(), k)[0]


def upper_triangle(distances: Any, ends: Any) -> Any:
    """Return each pair's distance and the values of its two ends."""
    n = ends.size
    shape = n * (n - 1) // 2
    near, first, second = np.empty(shape), np.empty(shape), np.empty(shape)
    _upper_triangle(distances, ends, near, first, second)
    return near, first, second


@jit()
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
    low, high = np.empty((2, n * k + 1), dtype=np.int32)
    data = np.empty(n * k + 1)
    scratch = ordered, bound, np.zeros(n, dtype=np.int64)
    size = _largest_both_ways(order, values, *scratch, low, high, data)
    return mirror_pairs(low[:size], high[:size], data[:size], n)


@jit()
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
