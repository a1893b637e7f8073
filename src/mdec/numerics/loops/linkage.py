"""Average linkage of the similarities of all pairs of rows.

Of equal similarities the pair with the lowest rows merges first, a region being named
by its lowest row. Sums in different orders differ by rounding, so similarities are
compared as multiples of a small unit: adding a large number, `shift`, and taking it
away rounds to its last digit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mdec.numerics.loops.jit import inner, jit

# Up to this many rows chains alone are as fast as passes, and a shorter loop, for which
# people wait less on their first run.
CHAINED_ROWS = 1000

# Rows whose products of presence are made together, and rows of a tile that stays in
# the cache while it is mirrored.
_ROWS_AT_ONCE = 256
_TILE = 32


def square_of_products(factor: Any, dtype: Any, present: Any = None) -> Any:
    """Return the products of all pairs of rows of a CSR matrix.

    With dense rows of presence, they are divided by the products of these.
    """
    n_rows = factor.shape[0]
    factor = factor.astype(dtype, copy=False)
    columns = factor.tocsc()
    start = columns.indptr.astype(np.int64)
    # Indices without a sign need no test for those below zero.
    by_column = start, columns.indices.astype(np.uint32), columns.data
    by_row = factor.indptr.astype(np.int64), factor.indices.astype(np.int32)
    square = np.zeros((n_rows, n_rows), dtype=dtype)
    _fill_upper(*by_row, factor.data, *by_column, start[:-1].copy(), square)
    if present is not None:
        present = present.astype(dtype, copy=False)
        for first in range(0, n_rows, _ROWS_AT_ONCE):
            rows = slice(first, first + _ROWS_AT_ONCE)
            part, both = square[rows, first:], present[rows] @ present[first:].T
            np.divide(part, both, out=part, where=both > 0)
    _mirror(square)
    return square


@jit()
def _fill_upper(
    indptr: Any,
    indices: Any,
    data: Any,
    start: Any,
    rows: Any,
    values: Any,
    passed: Any,
    square: Any,
) -> None:
    """Write the products from the diagonal on; `passed` is where columns go on."""
    for i in range(square.shape[0]):
        row = square[i]
        for e in range(indptr[i], indptr[i + 1]):
            c, weight = indices[e], data[e]
            first, stop = passed[c], start[c + 1]
            row_of, value_of = rows[first:stop], values[first:stop]
            for t in range(row_of.size):
                row[row_of[t]] += weight * value_of[t]
            passed[c] += 1


@jit()
def _mirror(square: Any) -> None:
    """Copy what is right of the diagonal to the left of it, tile by tile."""
    n = square.shape[0]
    for row in range(0, n, _TILE):
        for column in range(0, row + 1, _TILE):
            end = column + _TILE
            for i in range(row, row + _TILE if row + _TILE < n else n):
                for j in range(column, end if end < i else i):
                    square[i, j] = square[j, i]


def average_linkage(square: Any, sizes: Any, shift: Any) -> Any:
    """Merge the two rows of largest mean similarity, again and again.

    Takes the similarities of all pairs, which it overwrites, the weights of the rows,
    and what rounds similarities, in their precision; returns the merged pairs, each
    named by the lowest rows of its regions, and their similarities.

    No merge elsewhere makes a region more similar to one of two that are each other's
    most similar, so the order of such merges does not matter: of many rows, and while
    they abound, all of them merge in one pass over the square. When fewer than a tenth
    of the regions would merge in a pass, chains link those that are left.
    """
    size, n = sizes.astype(np.float64), sizes.size
    name, pairs, heights = np.arange(n), [], []
    near, row = np.zeros(n, dtype=np.int32), np.zeros((2, n), dtype=square.dtype)
    if n > CHAINED_ROWS:
        _find_nearest(square, near, shift)
    while True:
        place = np.arange(n)
        mutual = near[near] == place
        a = np.flatnonzero(mutual & (near > place))
        if 20 * a.size < n:
            break
        b = near[a]
        pairs.append(name[np.stack([a, b], axis=1)])
        heights.append(square[a, b].astype(np.float64))
        shares = np.zeros((2, n), dtype=square.dtype)
        shares[0, a], shares[1, a] = size[a], size[b]
        size[a] += size[b]
        shares[:, a] /= size[a]
        second = place.astype(np.int32)
        second[a] = b
        first = np.flatnonzero(~mutual | (near > place)).astype(np.int32)
        second, shares = second[first], np.ascontiguousarray(shares[:, first])
        joined = np.flatnonzero(second != first).astype(np.int32)
        near = np.zeros(first.size, dtype=np.int32)
        _merge_pass(square, n, first, second, shares, joined, row, near, shift)
        n, size, name = first.size, size[first], name[first]
    rest, similarities = np.empty((n - 1, 2), dtype=np.int64), np.empty(n - 1)
    chain, left = np.empty(n, dtype=np.int64), np.ascontiguousarray(square[:n, :n])
    _merge_chain(left, size, shift, chain, rest, similarities)
    return (
        np.concatenate([*pairs, name[rest]]),
        np.concatenate([*heights, similarities]),
    )


@jit()
def _merge_chain(
    square: Any, size: Any, shift: Any, chain: Any, pairs: Any, heights: Any
) -> None:
    """Merge regions by chains until one is left.

    A chain goes from a region to the most similar one, the lowest of equals, until the
    last two are each other's. Since the pair with the lowest rows comes first among
    equals, links only get better and no chain runs in circles.
    """
    n = size.size
    length = 0
    first = 0
    for step in range(n - 1):
        if length == 0:
            while size[first] == 0:
                first += 1
            chain[0] = first
            length = 1
        while True:
            tip = chain[length - 1]
            best, nearest = -np.inf, -1
            for i in range(n):
                value = (square[tip, i] + shift) - shift
                if value > best and size[i] > 0 and i != tip:
                    best, nearest = value, i
            if length > 1 and nearest == chain[length - 2]:
                break
            chain[length] = nearest
            length += 1
        length -= 2
        a, b = (tip, nearest) if tip < nearest else (nearest, tip)
        pairs[step, 0] = a
        pairs[step, 1] = b
        heights[step] = square[a, b]
        total = size[a] + size[b]
        share_a, share_b = size[a] / total, size[b] / total
        size[a] = total
        size[b] = 0
        for i in range(n):
            mean = share_a * square[a, i] + share_b * square[b, i]
            square[a, i] = mean
            square[i, a] = mean


@inner()
def _nearest(row: Any, n: int, i: int, shift: Any) -> int:
    """Return the region most similar to region i, the lowest of equals."""
    best, nearest = -np.inf, -1
    for j in range(i):
        value = (row[j] + shift) - shift
        if value > best:
            best, nearest = value, j
    # A view that begins at zero spares the test for indices below it.
    tail = row[i + 1 : n]
    for j in range(tail.size):
        value = (tail[j] + shift) - shift
        if value > best:
            best, nearest = value, i + 1 + j
    return nearest


@jit()
def _find_nearest(square: Any, near: Any, shift: Any) -> None:
    for i in range(near.size):
        near[i] = _nearest(square[i], near.size, i, shift)


@jit()
def _merge_pass(
    square: Any,
    n: int,
    first: Any,
    second: Any,
    shares: Any,
    joined: Any,
    scratch: Any,
    near: Any,
    shift: Any,
) -> None:
    """Store the first n rows of a square anew with pairs of them merged.

    Region r becomes the mean of `first` and `second` by their `shares` if these differ,
    as they do for the `joined` ones, and stays what it is otherwise. A row may be
    written once it is made: all that is read later belongs to higher firsts. Both
    halves of the square get the same digits, since the lower of two regions is always
    merged first.
    """
    n_left = first.size
    merged, row = scratch[0, :n], scratch[1, :n_left]
    done = 0
    for r in range(n_left):
        one, other = square[first[r]], square[second[r]]
        share, rest = shares[0, r], shares[1, r]
        while done < joined.size and joined[done] <= r:
            done += 1
        if second[r] == first[r]:
            below = 0
            for i in range(n):
                merged[i] = one[i]
        else:
            below = done
            for i in range(n):
                merged[i] = share * one[i] + rest * other[i]
        for c in range(n_left):
            row[c] = merged[first[c]]
        for t in range(below):
            c = joined[t]
            a, b, share_c, rest_c = first[c], second[c], shares[0, c], shares[1, c]
            of_one = share_c * one[a] + rest_c * one[b]
            of_other = share_c * other[a] + rest_c * other[b]
            row[c] = share * of_one + rest * of_other
        for t in range(below, joined.size):
            c = joined[t]
            row[c] = shares[0, c] * row[c] + shares[1, c] * merged[second[c]]
        near[r] = _nearest(row, n_left, r, shift)
        target = square[r]
        for c in range(n_left):
            target[c] = row[c]
