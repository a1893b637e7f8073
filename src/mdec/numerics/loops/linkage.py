"""Average linkage in two forms: of few regions in a square, of more in a triangle.

Of equal similarities the pair with the lowest rows merges first, a region being named
by its lowest row. Sums in different orders differ by rounding, so similarities are
compared as multiples of a small unit: adding a large number, `shift`, and taking it
away rounds to its last digit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mdec.numerics.loops.jit import compiled, inner
from mdec.numerics.loops.products import square_of_products
from mdec.numerics.loops.triangle import (
    SIDE,
    entry_of,
    get_row,
    get_tail,
    padded,
    set_row,
    set_tail,
)

# Most similar regions that a region remembers.
_LISTED = 16


def linkage_of_products(
    indptr: Any, indices: Any, data: Any, n_columns: int, sizes: Any, shift: Any
) -> Any:
    """Merge few CSR rows by the largest mean of their products, as `average_linkage`.

    All pairs are in one square, and each link of a chain looks at a whole row.
    """
    n = sizes.size
    square = square_of_products(indptr, indices, data, n_columns)
    pairs, heights = np.empty((n - 1, 2), dtype=np.int64), np.empty(n - 1)
    chain = np.empty(n, dtype=np.int64)
    _merge_chain(square, sizes.astype(np.float64), float(shift), chain, pairs, heights)
    return pairs, heights


@compiled()
def _merge_chain(
    square: Any, size: Any, shift: float, chain: Any, pairs: Any, heights: Any
) -> None:
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
def _offer(value: Any, index: int, values: Any, indices: Any, i: int) -> None:
    """Put an entry in its place among descending ones of row i, behind equals."""
    position = values.shape[1] - 1
    while position > 0 and values[i, position - 1] < value:
        values[i, position] = values[i, position - 1]
        indices[i, position] = indices[i, position - 1]
        position -= 1
    values[i, position] = value
    indices[i, position] = index


@compiled()
def _nearest_of_all(
    triangle: Any, near: Any, values: Any, row: Any, shift: Any
) -> None:
    """Fill the lists of most similar rows, and of their similarities."""
    n, n_listed = near.shape
    for i in range(n - 1):
        get_tail(triangle, n, i, row)
        for j in range(i + 1, n):
            value = row[j]
            if shift != 0.0:
                value = (value + shift) - shift
            if value > values[i, n_listed - 1]:
                _offer(value, j, values, near, i)
            if value > values[j, n_listed - 1]:
                _offer(value, i, values, near, j)


@inner()
def _list_nearest(
    row: Any, size: Any, tip: int, values: Any, near: Any, shift: Any
) -> None:
    """Fill the list of regions most similar to one, given its row."""
    last = near.shape[1] - 1
    for t in range(last + 1):
        values[tip, t] = -np.inf
        near[tip, t] = -1
    for i in range(size.size):
        value = row[i]
        if shift != 0.0:
            value = (value + shift) - shift
        if value > values[tip, last] and size[i] > 0 and i != tip:
            _offer(value, i, values, near, tip)


@compiled()
def _compact(triangle: Any, n: int, left: Any, row: Any, block: Any) -> None:
    """Store only the regions that are left.

    A row of tiles is written once its old rows are read, and ends before the first
    tile of those that are not.
    """
    for first in range(0, left.size, SIDE):
        stop = min(first + SIDE, left.size)
        for r in range(first, stop):
            get_tail(triangle, n, left[r], row)
            for c in range(r + 1, left.size):
                block[r - first, c] = row[left[c]]
        for r in range(first, stop):
            set_tail(triangle, left.size, r, block[r - first])


def _root_of_all(parent: Any) -> Any:
    """Return where each region has been merged to in the end."""
    root = parent
    while (root[root] != root).any():
        root = root[root]
    return root


@inner()
def first_left(size: Any) -> int:
    """Return the first region that is not merged into another."""
    first = 0
    while size[first] == 0:
        first += 1
    return first


def average_linkage(triangle: Any, sizes: Any, shift: Any) -> Any:
    """Merge by largest mean similarity along nearest-neighbour chains.

    Takes a triangle in tiles, which it overwrites, the weights of its rows, and what
    rounds similarities, in the triangle's precision; returns the merged pairs, each
    named by the lowest rows of its regions, and their similarities.

    A chain goes from a region to the most similar one, the lowest of equals, until the
    last two are each other's. Since the pair with the lowest rows comes first among
    equals, links only get better and no chain runs in circles.

    Every region keeps a list of those most similar to it. A mean is no more than the
    larger of its parts, so a region outside the list stays below its least entry, and
    the list answers until only its least entries are left. The triangle is stored anew
    whenever half of its regions are gone.
    """
    n_rows = n = sizes.size
    dtype = triangle.dtype
    size, name, parent = sizes.astype(np.float64), np.arange(n), np.arange(n)
    pairs, heights = np.empty((n - 1, 2), dtype=np.int64), np.empty(n - 1)
    chain, length = np.empty(n, dtype=np.int64), 0
    near = np.full((n, _LISTED), -1, dtype=np.int32)
    values = np.full((n, _LISTED), -np.inf, dtype=dtype)
    rows = np.empty((2, padded(n)), dtype=dtype)
    _nearest_of_all(triangle, near, values, rows[0], shift)
    done = 0
    while True:
        stop = n_rows - max(n // 2, 1)
        part = slice(done, stop)
        length = _merge_pairs(
            triangle,
            size,
            name,
            parent,
            near,
            values,
            chain,
            length,
            rows,
            shift,
            pairs[part],
            heights[part],
        )
        done = stop
        if done == n_rows - 1:
            return pairs, heights
        left = np.flatnonzero(size)
        block = np.zeros((SIDE, padded(left.size)), dtype=dtype)
        _compact(triangle, n, left, rows[0], block)
        place = np.zeros(n, dtype=np.int32)
        place[left] = np.arange(left.size)
        near = near[left]
        near = np.where(near >= 0, place[_root_of_all(parent)[near]], np.int32(-1))
        chain[:length] = place[chain[:length]]
        n = left.size
        size, name, values = size[left], name[left], values[left]
        parent = np.arange(n)
        rows = np.empty((2, padded(n)), dtype=dtype)


@compiled()
def _merge_pairs(
    triangle: Any,
    size: Any,
    name: Any,
    parent: Any,
    near: Any,
    values: Any,
    chain: Any,
    length: int,
    rows: Any,
    shift: Any,
    pairs: Any,
    heights: Any,
) -> int:
    """Merge as many pairs as asked for; return the length of the chain that is left.

    The last similarity of a list bounds all that are not in it; the others grow old.
    """
    n, n_listed = near.shape
    for step in range(heights.size):
        if length == 0:
            chain[0] = first_left(size)
            length = 1
        while True:
            tip = chain[length - 1]
            best, nearest = triangle.dtype.type(-np.inf), -1
            for t in range(n_listed):
                region = near[tip, t]
                if region >= 0:
                    while parent[region] != region:
                        region = parent[region]
                    near[tip, t] = region
                    if region != tip:
                        value = (triangle[entry_of(n, tip, region)] + shift) - shift
                        if value > best or (value == best and region < nearest):
                            best, nearest = value, region
            if best <= values[tip, n_listed - 1]:
                get_row(triangle, n, tip, rows[0])
                _list_nearest(rows[0], size, tip, values, near, shift)
                nearest = near[tip, 0]
            if length > 1 and nearest == chain[length - 2]:
                break
            chain[length] = nearest
            length += 1
        length -= 2
        a, b = min(tip, nearest), max(tip, nearest)
        pairs[step, 0] = name[a]
        pairs[step, 1] = name[b]
        heights[step] = triangle[entry_of(n, a, b)]
        total = size[a] + size[b]
        share_a, share_b = size[a] / total, size[b] / total
        get_row(triangle, n, a, rows[0])
        get_row(triangle, n, b, rows[1])
        for i in range(n):
            rows[0, i] = share_b * rows[1, i] + share_a * rows[0, i]
        set_row(triangle, n, a, rows[0])
        size[a] = total
        size[b] = 0
        _list_nearest(rows[0], size, a, values, near, shift)
        parent[b] = a
    return length
