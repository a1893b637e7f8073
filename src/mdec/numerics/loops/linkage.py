"""Overlaps of clusters, and average linkage in two forms.

Of equal similarities the pair with the lowest rows merges first, a region being named
by its lowest row. Sums in different orders differ by rounding, so similarities are
compared as multiples of a small unit: adding a large number, `shift`, and taking it
away rounds to its last digit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mdec.numerics.loops.jit import compiled
from mdec.numerics.loops.triangle import (
    SIDE,
    entry_of,
    get_head,
    get_row,
    get_tail,
    padded,
    set_row,
    set_tail,
)

# Most similar regions that a region remembers.
_LISTED = 16


@compiled()
def count_overlaps(labels: Any, member: int, offsets: Any) -> Any:
    """Count the samples that each cluster of one member shares with every cluster."""
    n_samples, n_members = labels.shape
    n_own = offsets[member + 1] - offsets[member]
    counts = np.zeros((n_own, offsets[n_members]), dtype=np.int64)
    for i in range(n_samples):
        own = labels[i, member]
        if own >= 0:
            for m in range(n_members):
                if labels[i, m] >= 0:
                    counts[own, offsets[m] + labels[i, m]] += 1
    return counts


@compiled()
def _by_column(indptr: Any, indices: Any, data: Any, n_columns: int) -> Any:
    """Return the CSC arrays of a CSR matrix."""
    start = np.zeros(n_columns + 1, dtype=np.int64)
    for e in range(indices.size):
        start[indices[e] + 1] += 1
    for c in range(n_columns):
        start[c + 1] += start[c]
    fill = start[:-1].copy()
    rows = np.empty(indices.size, dtype=np.uint32)
    values = np.empty(indices.size, dtype=data.dtype)
    for i in range(indptr.size - 1):
        for e in range(indptr[i], indptr[i + 1]):
            position = fill[indices[e]]
            rows[position], values[position] = i, data[e]
            fill[indices[e]] += 1
    return start, rows, values


@compiled()
def triangle_of_products(
    indptr: Any, indices: Any, data: Any, n_columns: int, out: Any
) -> None:
    """Write the products of all pairs of CSR rows to a triangle in tiles."""
    n_rows = indptr.size - 1
    start, rows, values = _by_column(indptr, indices, data, n_columns)
    # Rows of a column up to the row at hand are passed; they are in ascending order.
    passed = start[:-1].copy()
    row = np.zeros(padded(n_rows), dtype=out.dtype)
    for i in range(n_rows):
        row[i:] = 0
        for e in range(indptr[i], indptr[i + 1]):
            c = indices[e]
            passed[c] += 1
            weight = data[e]
            # Views from 0 and indices without a sign spare tests for those below it.
            first, stop = passed[c], start[c + 1]
            of, value_of = rows[first:stop], values[first:stop]
            for t in range(of.size):
                row[of[t]] += weight * value_of[t]
        # Left of the diagonal the tile holds nothing that is read.
        set_tail(out, n_rows, i, row)


@compiled()
def triangle_of_matrix(matrix: Any, out: Any) -> None:
    """Write a symmetric matrix to a triangle in tiles."""
    n_rows = matrix.shape[0]
    row = np.zeros(padded(n_rows), dtype=out.dtype)
    for i in range(n_rows):
        row[:n_rows] = matrix[i]
        set_tail(out, n_rows, i, row)


@compiled()
def _offer(value: Any, index: int, values: Any, indices: Any) -> None:
    """Put an entry in its place among descending ones, behind equals."""
    position = values.size - 1
    while position > 0 and values[position - 1] < value:
        values[position] = values[position - 1]
        indices[position] = indices[position - 1]
        position -= 1
    values[position], indices[position] = value, index


@compiled()
def _nearest_of_all(triangle: Any, n: int, near: Any, shift: Any) -> Any:
    """Fill the lists of most similar rows; return the least similarity in each."""
    values = np.full(near.shape, -np.inf, dtype=triangle.dtype)
    near[:] = -1
    last = near.shape[1] - 1
    row = np.empty(padded(n), dtype=triangle.dtype)
    for i in range(n - 1):
        get_tail(triangle, n, i, row)
        if shift != 0.0:
            for j in range(i + 1, n):
                row[j] = (row[j] + shift) - shift
        for j in range(i + 1, n):
            if row[j] > values[i, last]:
                _offer(row[j], j, values[i], near[i])
            if row[j] > values[j, last]:
                _offer(row[j], i, values[j], near[j])
    return values[:, last].copy()


@compiled()
def _list_nearest(
    row: Any, size: Any, tip: int, values: Any, indices: Any, shift: Any
) -> None:
    """Fill the list of regions most similar to one, given its row."""
    last = values.size - 1
    values[:] = -np.inf
    indices[:] = -1
    for i in range(size.size):
        value = row[i]
        if shift != 0.0:
            value = (value + shift) - shift
        if value > values[last] and size[i] > 0 and i != tip:
            _offer(value, i, values, indices)


@compiled()
def _merge(
    triangle: Any,
    size: Any,
    a: int,
    b: int,
    values: Any,
    indices: Any,
    rows: Any,
    shift: Any,
) -> None:
    """Join region a to region b, and list the most similar to it."""
    n = size.size
    share_a = size[a] / (size[a] + size[b])
    share_b = size[b] / (size[a] + size[b])
    get_row(triangle, n, a, rows[0])
    get_row(triangle, n, b, rows[1])
    for i in range(n):
        rows[1, i] = share_a * rows[0, i] + share_b * rows[1, i]
    set_row(triangle, n, b, rows[1])
    size[b] += size[a]
    size[a] = 0
    _list_nearest(rows[1], size, b, values, indices, shift)


@compiled()
def _compacted(triangle: Any, size: Any) -> Any:
    """Store only the regions that are left; return which they are.

    A row of tiles is written once its old rows are read, and ends before the first
    tile of those that are not.
    """
    n = size.size
    left = np.flatnonzero(size)
    row = np.empty(padded(n), dtype=triangle.dtype)
    block = np.zeros((SIDE, padded(left.size)), dtype=triangle.dtype)
    for first in range(0, left.size, SIDE):
        stop = min(first + SIDE, left.size)
        for r in range(first, stop):
            get_tail(triangle, n, left[r], row)
            for c in range(r + 1, left.size):
                block[r - first, c] = row[left[c]]
        for r in range(first, stop):
            set_tail(triangle, left.size, r, block[r - first])
    return left


@compiled()
def _first_left(size: Any) -> int:
    """Return the first region that is not merged into another."""
    first = 0
    while size[first] == 0:
        first += 1
    return first


@compiled()
def _root(parent: Any, region: int) -> int:
    while parent[region] != region:
        region = parent[region]
    return region


@compiled()
def _nearest_listed(
    triangle: Any, n: int, tip: int, near: Any, parent: Any, shift: Any
) -> Any:
    """Return the most similar region in a list, the first of equals."""
    best, nearest = triangle.dtype.type(-np.inf), -1
    for t in range(near.size):
        if near[t] >= 0:
            region = _root(parent, near[t])
            near[t] = region
            if region != tip:
                value = (triangle[entry_of(n, tip, region)] + shift) - shift
                if value > best or (value == best and region < nearest):
                    best, nearest = value, region
    return best, nearest


@compiled()
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
    n = sizes.size
    size = sizes.astype(np.float64)
    pairs = np.empty((n - 1, 2), dtype=np.int64)
    heights = np.empty(n - 1)
    chain = np.empty(n, dtype=np.int64)
    length = 0
    name = np.arange(n)
    parent = np.arange(n)
    near = np.empty((n, _LISTED), dtype=np.int32)
    values = np.empty(_LISTED, dtype=triangle.dtype)
    rows = np.empty((2, padded(n)), dtype=triangle.dtype)
    bound = _nearest_of_all(triangle, n, near, shift)
    for step in range(pairs.shape[0]):
        if 2 * (pairs.shape[0] + 1 - step) <= n:
            left = _compacted(triangle, size)
            place = np.zeros(n, dtype=np.int64)
            place[left] = np.arange(left.size)
            for r in range(left.size):
                for t in range(_LISTED):
                    old = near[left[r], t]
                    near[r, t] = place[_root(parent, old)] if old >= 0 else -1
            for c in range(length):
                chain[c] = place[chain[c]]
            n = left.size
            size, name, bound = size[left], name[left], bound[left]
            parent = np.arange(n)
            rows = np.empty((2, padded(n)), dtype=triangle.dtype)
        if length == 0:
            chain[0], length = _first_left(size), 1
        while True:
            tip = chain[length - 1]
            best, nearest = _nearest_listed(triangle, n, tip, near[tip], parent, shift)
            if best <= bound[tip]:
                get_row(triangle, n, tip, rows[0])
                _list_nearest(rows[0], size, tip, values, near[tip], shift)
                best, nearest, bound[tip] = values[0], near[tip, 0], values[-1]
            if length > 1 and nearest == chain[length - 2]:
                break
            chain[length] = nearest
            length += 1
        length -= 2
        a, b = min(tip, nearest), max(tip, nearest)
        pairs[step, 0], pairs[step, 1] = name[a], name[b]
        heights[step] = triangle[entry_of(n, a, b)]
        _merge(triangle, size, b, a, values, near[a], rows, shift)
        bound[a] = values[-1]
        parent[b] = a
    return pairs, heights


@compiled()
def _nearest_in(row: Any, i: int, n: int, best: Any, near: Any) -> None:
    """Look at the pairs of region i and later ones, after those of all before it."""
    own, at = best[i], near[i]
    # Views from 0 spare the test for indices below it.
    tail, best_of, near_of = row[i + 1 : n], best[i + 1 : n], near[i + 1 : n]
    for j in range(tail.size):
        value = tail[j]
        if value > own:
            own, at = value, i + 1 + j
        if value > best_of[j]:
            best_of[j], near_of[j] = value, i
    best[i], near[i] = own, at


@compiled()
def _merge_all(
    triangle: Any, n: int, first: Any, second: Any, shares: Any, best: Any, near: Any
) -> None:
    """Store the triangle anew with pairs of its regions merged, in one pass.

    Region r becomes the mean of two, `first` and `second`, by their `shares`; a single
    one has a second share of zero. A row of tiles is written once its old rows are
    read: all that is read later belongs to higher firsts, and lies behind it.
    """
    n_left = first.size
    joined = np.empty(n_left, dtype=np.int32)
    n_joined = 0
    for r in range(n_left - 1, -1, -1):
        if second[r] != first[r]:
            joined[n_joined] = r
            n_joined += 1
    rows = np.zeros((2, padded(n)), dtype=triangle.dtype)
    block = np.zeros((SIDE, padded(n_left)), dtype=triangle.dtype)
    for start in range(0, n_left, SIDE):
        stop = min(start + SIDE, n_left)
        for r in range(start, stop):
            a, b = first[r], second[r]
            get_tail(triangle, n, a, rows[0])
            if b != a:
                get_tail(triangle, n, b, rows[1])
                get_head(triangle, n, b, a, rows[1])
                share_a, share_b = shares[0, r], shares[1, r]
                part_a, part_b = rows[0, a:], rows[1, a:]
                for i in range(part_a.size):
                    part_a[i] = share_a * part_a[i] + share_b * part_b[i]
            row, merged = block[r - start], rows[0]
            new, of = row[r + 1 : n_left], first[r + 1 :]
            for c in range(new.size):
                new[c] = merged[of[c]]
            while n_joined > 0 and joined[n_joined - 1] <= r:
                n_joined -= 1
            for t in range(n_joined):
                c = joined[t]
                row[c] = shares[0, c] * row[c] + shares[1, c] * merged[second[c]]
            _nearest_in(row, r, n_left, best, near)
        for r in range(start, stop):
            set_tail(triangle, n_left, r, block[r - start])


@compiled()
def merge_mutual(triangle: Any, sizes: Any) -> Any:
    """Merge all regions that are each other's most similar at once, while these abound.

    Takes a triangle in tiles, which it overwrites, and the weights of its rows. Returns
    the merged pairs as `average_linkage` does, their similarities, the rows that name
    the regions that are left, and their weights. The triangle then starts with theirs.

    No merge elsewhere makes two regions more similar to one of a pair than the other
    is, so the order of such merges does not matter. Each pass reads the whole triangle
    in the order of its storage; when fewer than a tenth of the regions would merge in
    it, `average_linkage` is faster.
    """
    n = sizes.size
    size = sizes.astype(np.float64)
    name = np.arange(n)
    pairs = np.empty((n, 2), dtype=np.int64)
    heights = np.empty(n)
    done = 0
    best = np.full(n, -np.inf, dtype=triangle.dtype)
    near = np.zeros(n, dtype=np.int32)
    row = np.empty(padded(n), dtype=triangle.dtype)
    for i in range(n):
        get_tail(triangle, n, i, row)
        _nearest_in(row, i, n, best, near)
    while True:
        n_pairs = 0
        for i in range(n):
            if near[i] > i and near[near[i]] == i:
                n_pairs += 1
        if 20 * n_pairs < n or n < 3:
            break
        first = np.empty(n - n_pairs, dtype=np.int32)
        second = np.empty(n - n_pairs, dtype=np.int32)
        shares = np.zeros((2, n - n_pairs), dtype=triangle.dtype)
        r = 0
        for i in range(n):
            j = near[i]
            if near[j] != i:
                j = i
            if j >= i:
                total = size[i]
                if j > i:
                    pairs[done, 0], pairs[done, 1] = name[i], name[j]
                    heights[done] = triangle[entry_of(n, i, j)]
                    done += 1
                    total += size[j]
                    shares[1, r] = size[j] / total
                first[r], second[r] = i, j
                shares[0, r] = size[i] / total
                size[r], name[r] = total, name[i]
                r += 1
        for r in range(n - n_pairs):
            best[r], near[r] = -np.inf, 0
        _merge_all(triangle, n, first, second, shares, best, near)
        n -= n_pairs
    return pairs[:done].copy(), heights[:done].copy(), name[:n].copy(), size[:n].copy()


@compiled()
def _region_totals(
    indptr: Any,
    indices: Any,
    data: Any,
    head: int,
    following: Any,
    totals: Any,
    touched: Any,
    is_touched: Any,
) -> int:
    """Add up the rows of one region; list and count the columns that it touches.

    `is_touched` is false everywhere before and after.
    """
    n_touched = 0
    row = head
    while row >= 0:
        for e in range(indptr[row], indptr[row + 1]):
            c = indices[e]
            if not is_touched[c]:
                is_touched[c] = True
                totals[c] = 0
                touched[n_touched] = c
                n_touched += 1
            totals[c] += data[e]
        row = following[row]
    for t in range(n_touched):
        is_touched[touched[t]] = False
    return n_touched


@compiled()
def _gathered(
    indptr: Any, indices: Any, data: Any, head: Any, following: Any, n_columns: int
) -> Any:
    """Return the CSR arrays of the regions, each the sum of its rows."""
    n = head.size
    totals = np.zeros(n_columns)
    touched = np.zeros(n_columns, dtype=np.int32)
    is_touched = np.zeros(n_columns, dtype=np.bool_)
    counts = np.zeros(n + 1, dtype=np.int64)
    # Regions have no more entries than their rows.
    new_indices = np.zeros(indices.size, dtype=np.int32)
    new_data = np.zeros(indices.size)
    for r in range(n):
        n_touched = 0
        if head[r] >= 0:
            n_touched = _region_totals(
                indptr, indices, data, head[r], following, totals, touched, is_touched
            )
        start = counts[r]
        for t in range(n_touched):
            new_indices[start + t] = touched[t]
            new_data[start + t] = totals[touched[t]]
        counts[r + 1] = start + n_touched
    return counts, new_indices[: counts[n]].copy(), new_data[: counts[n]].copy()


@compiled()
def factored_linkage(
    indptr: Any, indices: Any, data: Any, n_columns: int, sizes: Any, shift: Any
) -> Any:
    """Average linkage of the products of CSR rows, without their N x N products.

    Merges as `average_linkage` does. A region is the list of its rows. Its similarity
    to all others comes from the columns that it touches; regions are gathered into
    fewer rows whenever their number has halved, so columns shorten as regions merge.
    """
    n = sizes.size
    size = sizes.astype(np.float64)
    data = data * np.repeat(size, np.diff(indptr))
    head = np.arange(n)
    tail = np.arange(n)
    following = np.full(n, -1)
    owner = np.arange(n)
    start, rows, values = _by_column(indptr, indices, data, n_columns)
    totals = np.zeros(n_columns)
    touched = np.zeros(n_columns, dtype=np.int32)
    is_touched = np.zeros(n_columns, dtype=np.bool_)
    similarity = np.zeros(n)
    pairs = np.empty((n - 1, 2), dtype=np.int64)
    heights = np.empty(n - 1)
    chain = np.empty(n, dtype=np.int64)
    in_chain = np.zeros(n, dtype=np.bool_)
    length = 0
    gather_at = n // 2
    for step in range(n - 1):
        n_active = n - step
        if n_active <= gather_at:
            indptr, indices, data = _gathered(
                indptr, indices, data, head, following, n_columns
            )
            start, rows, values = _by_column(indptr, indices, data, n_columns)
            for r in range(n):
                owner[r] = r
                following[r] = -1
                if head[r] >= 0:
                    head[r] = r
                    tail[r] = r
            gather_at = n_active // 2
        if length == 0:
            chain[0], length = _first_left(size), 1
            in_chain[chain[0]] = True
        while True:
            tip = chain[length - 1]
            n_touched = _region_totals(
                indptr, indices, data, head[tip], following, totals, touched, is_touched
            )
            similarity[:] = 0
            for t in range(n_touched):
                c = touched[t]
                for entry in range(start[c], start[c + 1]):
                    similarity[owner[rows[entry]]] += totals[c] * values[entry]
            nearest, best = -1, -np.inf
            for i in range(n):
                if size[i] > 0 and i != tip:
                    value = (similarity[i] / (size[tip] * size[i]) + shift) - shift
                    if value > best:
                        best, nearest = value, i
            # Seen from its other end a similarity may be rounded differently; that
            # must not lead a chain in circles.
            if length > 1 and in_chain[nearest]:
                nearest = chain[length - 2]
                break
            chain[length] = nearest
            in_chain[nearest] = True
            length += 1
        length -= 2
        in_chain[tip] = False
        in_chain[nearest] = False
        a, b = min(tip, nearest), max(tip, nearest)
        pairs[step, 0], pairs[step, 1] = a, b
        heights[step] = similarity[nearest] / (size[tip] * size[nearest])
        row = head[b]
        while row >= 0:
            owner[row] = a
            row = following[row]
        following[tail[a]] = head[b]
        tail[a] = tail[b]
        head[b] = -1
        size[a] += size[b]
        size[b] = 0
    return pairs, heights
