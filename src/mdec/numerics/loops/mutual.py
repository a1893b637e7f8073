"""Average linkage of many regions at once: all that are each other's most similar."""

from __future__ import annotations

from typing import Any

import numpy as np

from mdec.numerics.loops.jit import compiled, inner
from mdec.numerics.loops.triangle import SIDE, get_head, get_tail, padded, set_tail


def merge_mutual(triangle: Any, sizes: Any) -> Any:
    """Merge all regions that are each other's most similar at once, while these abound.

    Takes a triangle in tiles, which it overwrites, and the weights of its rows. Returns
    the merged pairs as `average_linkage` does, their similarities, the rows that name
    the regions that are left, and their weights. The triangle then starts with theirs.

    No merge elsewhere makes two regions more similar to one of a pair than the other
    is, so the order of such merges does not matter. Each pass reads the whole triangle
    in the order of its storage; when fewer than a tenth of the regions would merge in
    it, some are left to `average_linkage`.
    """
    n, dtype = sizes.size, triangle.dtype
    size, name = sizes.astype(np.float64), np.arange(n)
    pairs, heights = [np.empty((0, 2), dtype=np.int64)], [np.empty(0)]
    best, near = np.full(n, -np.inf, dtype=dtype), np.zeros(n, dtype=np.int32)
    rows = np.zeros((2, padded(n)), dtype=dtype)
    _nearest_pairs(triangle, rows[0], best, near)
    while True:
        place = np.arange(n)
        mutual = near[near] == place
        a = np.flatnonzero(mutual & (near > place))
        if 20 * a.size < n:
            pairs_, heights_ = np.concatenate(pairs), np.concatenate(heights)
            return pairs_, heights_, name, size
        b = near[a]
        pairs.append(np.stack([name[a], name[b]], axis=1))
        heights.append(best[a].astype(np.float64))
        shares = np.zeros((2, n), dtype=dtype)
        shares[0, a], shares[1, a] = size[a], size[b]
        size[a] += size[b]
        shares[:, a] /= size[a]
        second = place.astype(np.int32)
        second[a] = b
        first = np.flatnonzero(~mutual | (near > place)).astype(np.int32)
        second, shares = second[first], np.ascontiguousarray(shares[:, first])
        joined = np.flatnonzero(second != first).astype(np.int32)
        size, name = size[first], name[first]
        best, near = np.full(first.size, -np.inf, dtype=dtype), np.zeros_like(first)
        block = np.zeros((SIDE, padded(first.size)), dtype=dtype)
        rows = np.zeros((2, padded(n)), dtype=dtype)
        _merge_all(triangle, n, first, second, shares, joined, rows, block, best, near)
        n = first.size


@inner()
def _nearest_in(row: Any, i: int, best: Any, near: Any) -> None:
    """Look at the pairs of region i and later ones, after those of all before it."""
    n = best.size
    own, at = best[i], near[i]
    tail, best_of, near_of = row[i + 1 : n], best[i + 1 :], near[i + 1 :]
    for j in range(tail.size):
        value = tail[j]
        if value > own:
            own, at = value, i + 1 + j
        if value > best_of[j]:
            best_of[j] = value
            near_of[j] = i
    best[i] = own
    near[i] = at


@compiled()
def _nearest_pairs(triangle: Any, row: Any, best: Any, near: Any) -> None:
    """Find the region most similar to each, the lowest of equals."""
    for i in range(best.size):
        get_tail(triangle, best.size, i, row)
        _nearest_in(row, i, best, near)


@compiled()
def _merge_all(
    triangle: Any,
    n: int,
    first: Any,
    second: Any,
    shares: Any,
    joined: Any,
    rows: Any,
    block: Any,
    best: Any,
    near: Any,
) -> None:
    """Store the triangle anew with pairs of its regions merged, in one pass.

    Region r becomes the mean of `first` and `second` by their `shares` if it is one of
    the `joined`, and stays what it is otherwise. A row of tiles is written once its old
    rows are read: all that is read later belongs to higher firsts, and lies behind it.
    """
    n_left = first.size
    done = 0
    merged, other = rows[0], rows[1]
    for start in range(0, n_left, SIDE):
        stop = min(start + SIDE, n_left)
        for r in range(start, stop):
            a, b = first[r], second[r]
            get_tail(triangle, n, a, merged)
            if b != a:
                get_tail(triangle, n, b, other)
                get_head(triangle, n, b, a, other)
                share, rest = shares[0, r], shares[1, r]
                part, of_other = merged[a:], other[a:]
                for i in range(part.size):
                    part[i] = share * part[i] + rest * of_other[i]
            row = block[r - start]
            new, of = row[r + 1 : n_left], first[r + 1 :]
            for c in range(new.size):
                new[c] = merged[of[c]]
            while done < joined.size and joined[done] <= r:
                done += 1
            for t in range(done, joined.size):
                c = joined[t]
                row[c] = shares[0, c] * row[c] + shares[1, c] * merged[second[c]]
            _nearest_in(row, r, best, near)
        for r in range(start, stop):
            set_tail(triangle, n_left, r, block[r - start])
