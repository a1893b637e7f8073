"""The smallest and largest entries of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from mdec.numerics.loops.jit import inner, jit

# How many entries of a row are tested together before looking at any one of them.
_CHUNK = 16


@inner()
def _select_smallest(values: Any, index: Any, n: int, k: int) -> Any:
    """Move the k smallest of values[:n] to the front; return the largest of them."""
    low, high = 0, n - 1
    while low < high:
        pivot = values[(low + high) >> 1]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                index[i], index[j] = index[j], index[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            break
    largest = values[0]
    for i in range(1, k):
        largest = max(largest, values[i])
    return largest


@inner()
def _push(
    values: Any, index: Any, count: Any, bound: Any, i: int, value: Any, j: int, k: int
) -> None:
    n = count[i]
    values[i, n] = value
    index[i, n] = j
    n += 1
    if n == values.shape[1]:
        bound[i] = _select_smallest(values[i], index[i], n, k)
        n = k
    count[i] = n


@jit()
def scan_tile(
    tile: Any,
    first_row: int,
    first_column: int,
    values: Any,
    index: Any,
    count: Any,
    bound: Any,
    k: int,
    column_bound: Any,
) -> None:
    """Offer a tile of a symmetric matrix to the k smallest of its rows and columns.

    `values` and `index` buffer more than k entries per row of the whole matrix;
    `bound` holds what an entry must stay below to be of interest, and `column_bound`
    a copy of it for the columns. Tiles on the diagonal come before all others.
    """
    n_rows, n_columns = tile.shape
    for r in range(n_rows):
        i = first_row + r
        row = tile[r]
        row_bound = bound[i]
        for start in range(0, n_columns, _CHUNK):
            stop = min(start + _CHUNK, n_columns)
            hits = np.int32(0)
            if stop - start == _CHUNK:
                for c in range(_CHUNK):
                    entry = row[start + c]
                    hits += np.int32(entry < max(row_bound, column_bound[start + c]))
            else:
                hits = np.int32(1)
            if hits == 0:
                continue
            for c in range(start, stop):
                entry = row[c]
                j = first_column + c
                if entry < row_bound:
                    _push(values, index, count, bound, i, entry, j, k)
                    row_bound = bound[i]
                if entry < column_bound[c]:
                    _push(values, index, count, bound, j, entry, i, k)
                    column_bound[c] = bound[j]


@inner()
def insert_ordered(value: Any, ordered: Any) -> None:
    """Put a value in its place among ascending ones, dropping the last.

    Every place is written, because looking for the right one would be a branch that
    the processor cannot predict.
    """
    for t in range(ordered.size - 1, 0, -1):
        ordered[t] = min(ordered[t], max(ordered[t - 1], value))
    ordered[0] = min(ordered[0], value)


def keep_largest(indptr: Any, data: Any, k: int) -> Any:
    """Mark the k largest entries of each CSR row; equal ones go to the first."""
    marked = np.zeros(data.size, dtype=np.bool_)
    _keep_largest(indptr, data, np.empty(k, dtype=data.dtype), marked)
    return marked


@jit()
def _keep_largest(indptr: Any, data: Any, ordered: Any, marked: Any) -> None:
    k = ordered.size
    for i in range(indptr.size - 1):
        start, stop = indptr[i], indptr[i + 1]
        if stop - start <= k:
            for e in range(start, stop):
                marked[e] = True
            continue
        for t in range(k):
            ordered[t] = np.inf
        for e in range(start, stop):
            if -data[e] < ordered[k - 1]:
                insert_ordered(-data[e], ordered)
        threshold = -ordered[k - 1]
        n_equal = 0
        for t in range(k):
            n_equal += -ordered[t] == threshold
        for e in range(start, stop):
            if data[e] > threshold:
                marked[e] = True
            elif data[e] == threshold and n_equal > 0:
                marked[e] = True
                n_equal -= 1


def nearest_entries(indptr: Any, data: Any, k: int) -> Any:
    """Return the mean of the k smallest entries of each CSR row, and the k-th.

    They are added in order.
    """
    means, last = np.empty((2, indptr.size - 1))
    _nearest_entries(indptr, data, np.empty(k, dtype=data.dtype), means, last)
    return means, last


@jit()
def _nearest_entries(
    indptr: Any, data: Any, ordered: Any, means: Any, last: Any
) -> None:
    k = ordered.size
    for i in range(means.size):
        for t in range(k):
            ordered[t] = np.inf
        for e in range(indptr[i], indptr[i + 1]):
            if data[e] < ordered[k - 1]:
                insert_ordered(data[e], ordered)
        total = 0.0
        for t in range(k):
            total += ordered[t]
        means[i] = total / k
        last[i] = ordered[k - 1]
