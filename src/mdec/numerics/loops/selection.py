"""The smallest and largest entries of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.cpython.unsafe import numbers

from mdec.numerics.loops.jit import inner, jit

# How many entries of a row are tested together, and the bit of each.
_CHUNK = 32
_BITS = (1 << np.arange(_CHUNK, dtype=np.int64)).astype(np.uint32).view(np.int32)
_trailing_zeros: Any = numbers.trailing_zeros


@inner()
def _select_smallest(values: Any, index: Any, n: int, k: int) -> Any:
    """Move the k smallest of values[:n] to the front; return the largest of them.

    Nothing is swapped on a condition, because the processor could not predict it.
    """
    low, high = 0, n
    while high - low > 1:
        a, b, c = values[low], values[(low + high) >> 1], values[high - 1]
        pivot = max(min(a, b), min(max(a, b), c))
        place = low
        for turn in range(2):
            for t in range(place, high):
                value, other = values[t], index[t]
                values[t], index[t] = values[place], index[place]
                values[place], index[place] = value, other
                place += value < pivot if turn == 0 else value == pivot
            if place >= k:
                break
            low = place
        if place >= k and turn == 1:
            return pivot
        high = place if place >= k else high
    return values[low]


@inner()
def _shorten(values: Any, index: Any, count: Any, bound: Any, i: int, k: int) -> None:
    bound[i] = _select_smallest(values[i], index[i], count[i], k)
    count[i] = k


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
    a copy of it for the columns, or no bound that any entry is below. Tiles on the
    diagonal come before all others.
    """
    most, n_columns = values.shape[1], tile.shape[1]
    for r in range(len(tile)):
        i, row = first_row + r, tile[r]
        for start in range(0, n_columns, _CHUNK):
            hits, row_bound = np.int32(0), bound[i]
            if start + _CHUNK <= n_columns:
                part, limits = row[start:], column_bound[start:]
                for c in range(_CHUNK):
                    hit = part[c] < max(row_bound, limits[c])
                    hits |= _BITS[c] if hit else np.int32(0)
                bits = np.int64(hits) & ((1 << _CHUNK) - 1)
            else:
                bits = (1 << (n_columns - start)) - 1
            while bits != 0:
                c = start + _trailing_zeros(bits)
                bits &= bits - 1
                # Written to both in any case, and counted where it is near enough.
                entry, j = row[c], first_column + c
                values[i, count[i]], index[i, count[i]] = entry, j
                count[i] += entry < bound[i]
                if count[i] == most:
                    _shorten(values, index, count, bound, i, k)
                values[j, count[j]], index[j, count[j]] = entry, i
                count[j] += entry < column_bound[c]
                if count[j] == most:
                    _shorten(values, index, count, bound, j, k)
                    column_bound[c] = bound[j]


@jit()
def keep_smallest(values: Any, index: Any, count: Any, bound: Any, k: int) -> None:
    """Bring the k smallest of each row's buffer to the front, and bound what is not."""
    for i in range(count.size):
        _shorten(values, index, count, bound, i, k)


@inner()
def insert_ordered(value: Any, ordered: Any) -> None:
    """Put a value in its place among ascending ones, dropping the last.

    Every place is written, because looking for the right one would be a branch that
    the processor cannot predict.
    """
    for t in range(ordered.size - 1, 0, -1):
        ordered[t] = min(ordered[t], max(ordered[t - 1], value))
    ordered[0] = min(ordered[0], value)


def keep_largest(starts: Any, entries: Any, values: Any, k: int) -> Any:
    """Mark the entries whose values are among the k largest of any list of entries.

    Of equal ones the first of a list are. Returns with them the k-th of each list, or
    the last.
    """
    marked, last = np.zeros(values.size, dtype=np.bool_), np.empty(starts.size - 1)
    _keep_largest(starts, entries, values, np.empty(k), marked, last)
    return marked, last


@jit()
def _keep_largest(
    starts: Any, entries: Any, values: Any, ordered: Any, marked: Any, last: Any
) -> None:
    for i in range(last.size):
        first, stop = starts[i], starts[i + 1]
        kept = ordered[: min(ordered.size, stop - first)]
        for t in range(kept.size):
            kept[t] = np.inf
        for e in range(first, stop):
            if -values[entries[e]] < kept[-1]:
                insert_ordered(-values[entries[e]], kept)
        n_equal = 0
        for t in range(kept.size):
            n_equal += kept[t] == kept[-1]
            last[i] = -kept[t]
        for e in range(first, stop):
            value = values[entries[e]]
            if value > last[i]:
                marked[entries[e]] = True
            elif value == last[i] and n_equal > 0:
                marked[entries[e]] = True
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
