"""Overlaps of clusters, and average linkage in two forms.

Of equal similarities the pair with the lowest rows merges first, a region being named
by its lowest row. Sums in different orders differ by rounding, so similarities are
compared as multiples of a small unit: adding a large number, `shift`, and taking it
away rounds to its last digit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mdec.numerics.loops.jit import compiled, inner
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

# Rows whose products with all others are made together.
_ROWS_AT_ONCE = 256


def count_overlaps(labels: Any, member: int, offsets: Any) -> Any:
    """Count the samples that each cluster of one member shares with every cluster."""
    n_own = offsets[member + 1] - offsets[member]
    counts = np.zeros((n_own, offsets[-1]), dtype=np.int64)
    _count_overlaps(labels, member, offsets, counts)
    return counts


@compiled()
def _count_overlaps(labels: Any, member: int, offsets: Any, counts: Any) -> None:
    n_samples, n_members = labels.shape
    for i in range(n_samples):
        own = labels[i, member]
        if own >= 0:
            for m in range(n_members):
                if labels[i, m] >= 0:
                    counts[own, offsets[m] + labels[i, m]] += 1


def triangle_of_products(
    indptr: Any, indices: Any, data: Any, n_columns: int, out: Any
) -> None:
    """Write the products of all pairs of CSR rows to a triangle in tiles."""
    n_rows = indptr.size - 1
    columns = sparse.csr_array(
        (data, indices, indptr), shape=(n_rows, n_columns)
    ).tocsc()
    start = columns.indptr.astype(np.int64)
    # Indices without a sign need no test for those below zero.
    by_column = start, columns.indices.astype(np.uint32), columns.data
    row = np.zeros(padded(n_rows), dtype=out.dtype)
    # Rows of a column up to the row at hand are passed; they are in ascending order.
    _products(indptr, indices, data, *by_column, start[:-1].copy(), row, out)


@compiled()
def _products(
    indptr: Any,
    indices: Any,
    data: Any,
    start: Any,
    rows: Any,
    values: Any,
    passed: Any,
    row: Any,
    out: Any,
) -> None:
    n_rows = indptr.size - 1
    for i in range(n_rows):
        for j in range(i, row.size):
            row[j] = 0
        for e in range(indptr[i], indptr[i + 1]):
            c = indices[e]
            passed[c] += 1
            weight = data[e]
            first, stop = passed[c], start[c + 1]
            row_of, value_of = rows[first:stop], values[first:stop]
            for t in range(row_of.size):
                row[row_of[t]] += weight * value_of[t]
        # Left of the diagonal the tile holds nothing that is read.
        set_tail(out, n_rows, i, row)


def divide_by_products(rows: Any, out: Any) -> None:
    """Divide a triangle by the products of dense rows; 0 where they are not above 0."""
    n_rows = len(rows)
    row = np.zeros(padded(n_rows), dtype=out.dtype)
    for first in range(0, n_rows, _ROWS_AT_ONCE):
        block = rows[first : first + _ROWS_AT_ONCE] @ rows[first:].T
        _divide(block, first, n_rows, row, out)


@compiled()
def _divide(block: Any, first: int, n_rows: int, row: Any, out: Any) -> None:
    for i in range(block.shape[0]):
        get_tail(out, n_rows, first + i, row)
        divisors, part = block[i], row[first:]
        for j in range(i, divisors.size):
            part[j] = part[j] / divisors[j] if divisors[j] > 0 else 0
        set_tail(out, n_rows, first + i, row)


def linkage_of_products(
    indptr: Any, indices: Any, data: Any, n_columns: int, sizes: Any, shift: Any
) -> Any:
    """Merge few CSR rows by the largest mean of their products, as `average_linkage`.

    All pairs are in one square, and each link of a chain looks at a whole row.
    """
    n = sizes.size
    columns = sparse.csr_array((data, indices, indptr), shape=(n, n_columns)).tocsc()
    start = columns.indptr.astype(np.int64)
    by_column = start, columns.indices.astype(np.int32), columns.data
    square = np.zeros((n, n))
    _square_of_products(indptr, indices, data, *by_column, square)
    pairs, heights = np.empty((n - 1, 2), dtype=np.int64), np.empty(n - 1)
    chain = np.empty(n, dtype=np.int64)
    _merge_chain(square, sizes.astype(np.float64), float(shift), chain, pairs, heights)
    return pairs, heights


@compiled()
def _square_of_products(
    indptr: Any,
    indices: Any,
    data: Any,
    start: Any,
    rows: Any,
    values: Any,
    square: Any,
) -> None:
    for i in range(square.shape[0]):
        row = square[i]
        for e in range(indptr[i], indptr[i + 1]):
            weight = data[e]
            for entry in range(start[indices[e]], start[indices[e] + 1]):
                row[rows[entry]] += weight * values[entry]


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


def triangle_of_matrix(matrix: Any, out: Any) -> None:
    """Write a symmetric matrix to a triangle in tiles."""
    _of_matrix(matrix, np.zeros(padded(len(matrix)), dtype=out.dtype), out)


@compiled()
def _of_matrix(matrix: Any, row: Any, out: Any) -> None:
    n_rows = matrix.shape[0]
    for i in range(n_rows):
        for j in range(n_rows):
            row[j] = matrix[i, j]
        set_tail(out, n_rows, i, row)


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
def _first_left(size: Any) -> int:
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
            chain[0] = _first_left(size)
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


@inner()
def _by_column(indptr: Any, indices: Any, data: Any, n_columns: int) -> Any:
    """Return the CSC arrays of a CSR matrix."""
    start = np.zeros(n_columns + 1, dtype=np.int64)
    for e in range(indices.size):
        start[indices[e] + 1] += 1
    for c in range(n_columns):
        start[c + 1] += start[c]
    fill = start[:-1].copy()
    rows = np.empty(indices.size, dtype=np.int32)
    values = np.empty(indices.size, dtype=data.dtype)
    for i in range(indptr.size - 1):
        for e in range(indptr[i], indptr[i + 1]):
            position = fill[indices[e]]
            rows[position], values[position] = i, data[e]
            fill[indices[e]] += 1
    return start, rows, values


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


@inner()
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


@inner()
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
