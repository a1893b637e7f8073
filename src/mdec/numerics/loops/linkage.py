"""Average linkage of the similarities of all pairs of rows.

They are in the order of a condensed triangle, as of SciPy: (0, 1), (0, 2), ..., (1, 2).
Of equal similarities the pair with the lowest rows merges first, a region being named
by its lowest row. Sums in different orders differ by rounding, so similarities are
compared as multiples of a small unit: adding a large number, `shift`, and taking it
away rounds to its last digit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial import distance

from mdec.numerics.loops.jit import inner, jit

# Up to this many rows chains alone are as fast as passes, and a shorter loop, for which
# people wait less on their first run.
CHAINED_ROWS = 1000

# Of so few rows SciPy's product takes some milliseconds more, which is less than a loop
# takes to compile.
FEW_ROWS = 400

# Similarities that are compared together before looking at any one of them.
_TOGETHER = 64


def products_of_pairs(factor: Any, dtype: Any, present: Any = None) -> Any:
    """Return the products of all pairs of rows of a CSR matrix.

    With dense rows of presence, they are divided by the products of these.
    """
    n_rows = factor.shape[0]
    factor = factor.astype(dtype, copy=False)
    if n_rows <= FEW_ROWS and present is None:
        return distance.squareform((factor @ factor.T).toarray(), checks=False)
    columns = factor.tocsc()
    start = columns.indptr.astype(np.int64)
    # Indices without a sign need no test for those below zero.
    by_column = start, columns.indices.astype(np.uint32), columns.data
    by_row = factor.indptr.astype(np.int64), factor.indices.astype(np.int32)
    pairs = np.empty(n_rows * (n_rows - 1) // 2, dtype=dtype)
    row = np.zeros(n_rows, dtype=dtype)
    _fill_pairs(*by_row, factor.data, *by_column, start[:-1].copy(), row, pairs)
    if present is not None:
        present = present.astype(dtype, copy=False)
        stop = 0
        for i in range(n_rows - 1):
            start, stop = stop, stop + n_rows - 1 - i
            part, both = pairs[start:stop], present[i + 1 :] @ present[i]
            np.divide(part, both, out=part, where=both > 0)
    return pairs


@jit()
def _fill_pairs(
    indptr: Any,
    indices: Any,
    data: Any,
    start: Any,
    rows: Any,
    values: Any,
    passed: Any,
    row: Any,
    pairs: Any,
) -> None:
    """Write the products; `passed` is where columns go on and `row` holds zeros."""
    n, end = row.size, 0
    for i in range(n):
        for e in range(indptr[i], indptr[i + 1]):
            c, weight = indices[e], data[e]
            passed[c] += 1
            first, stop = passed[c], start[c + 1]
            row_of, value_of = rows[first:stop], values[first:stop]
            for t in range(row_of.size):
                row[row_of[t]] += weight * value_of[t]
        # Views that begin at zero spare the test for indices below it.
        tail, part = row[i + 1 :], pairs[end : end + n - 1 - i]
        for t in range(tail.size):
            part[t] = tail[t]
            tail[t] = 0
        end += tail.size


def average_linkage(pairs: Any, sizes: Any, shift: Any) -> Any:
    """Merge the two rows of largest mean similarity, again and again.

    Takes the similarities of all pairs, which it overwrites, the weights of the rows,
    and what rounds similarities, in their precision; returns the merged pairs, each
    named by the lowest rows of its regions, and their similarities.

    No merge elsewhere makes a region more similar to one of two that are each other's
    most similar, so the order of such merges does not matter: of many rows, and while
    they abound, all of them merge in one pass over the triangle. When fewer than a
    tenth of the regions would merge in a pass, chains link those that are left.
    """
    size, n = sizes.astype(np.float64), sizes.size
    name, heights = np.arange(n), []
    merged: list[Any] = []
    rows = np.zeros((3, n), dtype=pairs.dtype)
    # The first pass merges nothing.
    first = second = np.arange(n, dtype=np.int32)
    shares, joined = np.zeros((2, n), dtype=pairs.dtype), first[:0]
    while n > CHAINED_ROWS or merged:
        best = np.full(first.size, -np.inf, dtype=pairs.dtype)
        near = np.zeros(first.size, dtype=np.int32)
        _merge_pass(pairs, n, first, second, shares, joined, rows, best, near, shift)
        n, size, name = first.size, size[first], name[first]
        every = np.arange(n)
        mutual = near[near] == every
        a = np.flatnonzero(mutual & (near > every))
        if 20 * a.size < n:
            break
        b = near[a]
        merged.append(name[np.stack([a, b], axis=1)])
        place = a * (2 * n - 3 - a) // 2 + b - 1
        heights.append(pairs[place].astype(np.float64))
        shares = np.zeros((2, n), dtype=pairs.dtype)
        shares[0, a], shares[1, a] = size[a], size[b]
        size[a] += size[b]
        shares[:, a] /= size[a]
        second = every.astype(np.int32)
        second[a] = b
        first = np.flatnonzero(~mutual | (near > every)).astype(np.int32)
        second, shares = second[first], np.ascontiguousarray(shares[:, first])
        joined = np.flatnonzero(second != first).astype(np.int32)
    rest, similarities = np.empty((n - 1, 2), dtype=np.int64), np.empty(n - 1)
    chain = np.empty(n, dtype=np.int64)
    _merge_chain(pairs, size, shift, chain, rows, rest, similarities)
    return (
        np.concatenate([*merged, name[rest]]),
        np.concatenate([*heights, similarities]),
    )


@inner(inline="always")
def _get_row(pairs: Any, n: int, i: int, first: int, row: Any) -> None:
    """Copy the similarities of row i to rows from `first` on, without its own."""
    place = first * (2 * n - 3 - first) // 2 + i - 1
    for j in range(first, i):
        row[j] = pairs[place]
        place += n - 2 - j
    tail, part = row[i + 1 : n], pairs[place + 1 : place + n - i]
    for t in range(tail.size):
        tail[t] = part[t]


@jit()
def _merge_chain(
    pairs: Any,
    size: Any,
    shift: Any,
    chain: Any,
    rows: Any,
    merged: Any,
    heights: Any,
) -> None:
    """Merge regions by chains until one is left.

    A chain goes from a region to the most similar one, the lowest of equals, until the
    last two are each other's. Since the pair with the lowest rows comes first among
    equals, links only get better and no chain runs in circles. Its last two rows are
    at hand, so that after a merge it continues from one link further back.
    """
    n = size.size
    length = 0
    for step in range(n - 1):
        if length == 0:
            chain[0] = 0  # a merged region keeps its lower row
            length = 1
        while True:
            tip, own = chain[length - 1], rows[length & 1]
            _get_row(pairs, n, tip, 0, own)
            best, nearest = -np.inf, -1
            for i in range(n):
                value = (own[i] + shift) - shift
                if value > best and size[i] > 0 and i != tip:
                    best, nearest = value, i
            if length > 1 and nearest == chain[length - 2]:
                break
            chain[length] = nearest
            length += 1
        other = rows[1 - (length & 1)]
        length -= 3 if length > 2 else 2
        a, b = (tip, nearest) if tip < nearest else (nearest, tip)
        merged[step, 0] = a
        merged[step, 1] = b
        heights[step] = own[nearest]
        total = size[a] + size[b]
        share, rest = size[tip] / total, size[nearest] / total
        size[a] = total
        size[b] = 0
        place = a - 1
        for i in range(a):
            pairs[place] = share * own[i] + rest * other[i]
            place += n - 2 - i
        for i in range(a + 1, n):
            pairs[place + i - a] = share * own[i] + rest * other[i]


@jit()
def _merge_pass(
    pairs: Any,
    n: int,
    first: Any,
    second: Any,
    shares: Any,
    joined: Any,
    rows: Any,
    best: Any,
    near: Any,
    shift: Any,
) -> None:
    """Store the pairs of n rows anew with rows merged, and find the nearest of each.

    Region r becomes the mean of `first` and `second` by their `shares` if these differ,
    as they do for the `joined` ones, and stays what it is otherwise. Its pairs may be
    written once they are made: all that is read later belongs to higher firsts.
    """
    n_left, end, done = first.size, 0, 0
    merged, other, row = rows[0], rows[1], rows[2]
    for r in range(n_left):
        a, b = np.int64(first[r]), np.int64(second[r])
        _get_row(pairs, n, a, a, merged)
        if a != b:
            _get_row(pairs, n, b, a + 1, other)
            share, rest = shares[0, r], shares[1, r]
            for i in range(a + 1, n):
                merged[i] = share * merged[i] + rest * other[i]
        left = first[r + 1 :]
        part, best_of, near_of = row[: left.size], best[r + 1 :], near[r + 1 :]
        for c in range(left.size):
            part[c] = merged[left[c]]
        while done < joined.size and joined[done] <= r:
            done += 1
        for t in range(done, joined.size):
            c = joined[t]
            mean = shares[0, c] * merged[first[c]] + shares[1, c] * merged[second[c]]
            part[c - r - 1] = mean
        target, number = pairs[end : end + left.size], np.int32(r)
        for c in range(left.size):
            target[c] = part[c]
        for c in range(left.size):
            value = (part[c] + shift) - shift
            near_of[c] = number if value > best_of[c] else near_of[c]
            best_of[c] = value if value > best_of[c] else best_of[c]
        # Many are compared with the best so far at once, which most do not exceed.
        for start in range(0, left.size, _TOGETHER):
            some, higher, own = part[start : start + _TOGETHER], np.int32(0), best[r]
            for t in range(some.size):
                higher += np.int32((some[t] + shift) - shift > own)
            for t in range(some.size if higher > 0 else 0):
                value = (some[t] + shift) - shift
                if value > own:
                    own, near[r] = value, r + 1 + start + t
            best[r] = own
        end += left.size
