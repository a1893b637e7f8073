"""Overlaps of clusters, and average linkage in two forms."""

from __future__ import annotations

from typing import Any

import numpy as np

from mdec._compiled._jit import compiled


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
    rows = np.empty(indices.size, dtype=np.int32)
    values = np.empty(indices.size, dtype=data.dtype)
    for i in range(indptr.size - 1):
        for e in range(indptr[i], indptr[i + 1]):
            position = fill[indices[e]]
            rows[position], values[position] = i, data[e]
            fill[indices[e]] += 1
    return start, rows, values


@compiled()
def condensed_products(
    indptr: Any, indices: Any, data: Any, n_columns: int, out: Any
) -> None:
    """Write the products of all pairs of CSR rows to a condensed triangle."""
    n_rows = indptr.size - 1
    start, rows, values = _by_column(indptr, indices, data, n_columns)
    # Rows of a column up to the row at hand are passed; they are in ascending order.
    passed = start[:-1].copy()
    position = 0
    for i in range(n_rows - 1):
        row = out[position : position + n_rows - 1 - i]
        row[:] = 0
        for e in range(indptr[i], indptr[i + 1]):
            c = indices[e]
            passed[c] += 1
            weight = data[e]
            for entry in range(passed[c], start[c + 1]):
                row[rows[entry] - i - 1] += weight * values[entry]
        position += n_rows - 1 - i


@compiled()
def _condensed_index(n: int, i: int, j: int) -> int:
    if i > j:
        i, j = j, i
    return n * i - i * (i + 1) // 2 + j - i - 1


@compiled()
def average_linkage(similarity: Any, sizes: Any) -> Any:
    """Merge by largest mean similarity along nearest-neighbour chains.

    Takes a condensed triangle, which it overwrites, and the weights of its rows;
    returns the merged pairs, each named by one of its rows, and their similarities.
    """
    n = sizes.size
    size = sizes.astype(np.float64)
    pairs = np.empty((n - 1, 2), dtype=np.int64)
    heights = np.empty(n - 1)
    chain = np.empty(n, dtype=np.int64)
    length = 0
    for step in range(n - 1):
        if length == 0:
            for i in range(n):
                if size[i] > 0:
                    chain[0] = i
                    length = 1
                    break
        while True:
            tip = chain[length - 1]
            # The predecessor wins ties, so that a chain cannot run in circles.
            if length > 1:
                nearest = chain[length - 2]
                best = similarity[_condensed_index(n, tip, nearest)]
            else:
                nearest, best = -1, similarity.dtype.type(-np.inf)
            for i in range(tip):
                if size[i] > 0:
                    value = similarity[_condensed_index(n, i, tip)]
                    if value > best:
                        best, nearest = value, i
            base = _condensed_index(n, tip, tip + 1) - tip - 1
            for i in range(tip + 1, n):
                if size[i] > 0:
                    value = similarity[base + i]
                    if value > best:
                        best, nearest = value, i
            if length > 1 and nearest == chain[length - 2]:
                break
            chain[length] = nearest
            length += 1
        length -= 2
        a, b = min(tip, nearest), max(tip, nearest)
        pairs[step, 0], pairs[step, 1] = a, b
        heights[step] = best
        share_a = size[a] / (size[a] + size[b])
        share_b = size[b] / (size[a] + size[b])
        for i in range(n):
            if size[i] > 0 and i != a and i != b:
                ib = _condensed_index(n, i, b)
                ia = _condensed_index(n, i, a)
                similarity[ib] = share_a * similarity[ia] + share_b * similarity[ib]
        size[b] += size[a]
        size[a] = 0
    return pairs, heights


@compiled()
def _region_totals(
    indptr: Any, indices: Any, data: Any, head: int, following: Any, totals: Any
) -> int:
    """Add up the rows of one region; return how many columns it touches."""
    n_touched = 0
    row = head
    while row >= 0:
        for e in range(indptr[row], indptr[row + 1]):
            if totals[indices[e]] == 0:
                n_touched += 1
            totals[indices[e]] += data[e]
        row = following[row]
    return n_touched


@compiled()
def _gathered(
    indptr: Any, indices: Any, data: Any, head: Any, following: Any, n_columns: int
) -> Any:
    """Return the CSR arrays of the regions, each the sum of its rows."""
    n = head.size
    totals = np.zeros(n_columns)
    counts = np.zeros(n + 1, dtype=np.int64)
    for r in range(n):
        counts[r + 1] = counts[r]
        if head[r] >= 0:
            counts[r + 1] += _region_totals(
                indptr, indices, data, head[r], following, totals
            )
            _clear_region(indptr, indices, head[r], following, totals)
    new_indices = np.empty(counts[n], dtype=np.int32)
    new_data = np.empty(counts[n])
    for r in range(n):
        if head[r] < 0:
            continue
        _region_totals(indptr, indices, data, head[r], following, totals)
        position = counts[r]
        row = head[r]
        while row >= 0:
            for e in range(indptr[row], indptr[row + 1]):
                if totals[indices[e]] != 0:
                    new_indices[position] = indices[e]
                    new_data[position] = totals[indices[e]]
                    totals[indices[e]] = 0
                    position += 1
            row = following[row]
    return counts, new_indices, new_data


@compiled()
def _clear_region(
    indptr: Any, indices: Any, head: int, following: Any, totals: Any
) -> None:
    row = head
    while row >= 0:
        for e in range(indptr[row], indptr[row + 1]):
            totals[indices[e]] = 0
        row = following[row]


@compiled()
def factored_linkage(
    indptr: Any, indices: Any, data: Any, n_columns: int, sizes: Any
) -> Any:
    """Average linkage of the products of CSR rows, without their N x N products.

    A region is the list of its rows. Its similarity to all others comes from the
    columns that it touches; regions are gathered into fewer rows whenever their number
    has halved, so columns shorten as regions merge.
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
    similarity = np.zeros(n)
    pairs = np.empty((n - 1, 2), dtype=np.int64)
    heights = np.empty(n - 1)
    chain = np.empty(n, dtype=np.int64)
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
            for i in range(n):
                if size[i] > 0:
                    chain[0] = i
                    length = 1
                    break
        while True:
            tip = chain[length - 1]
            _region_totals(indptr, indices, data, head[tip], following, totals)
            row = head[tip]
            similarity[:] = 0
            while row >= 0:
                for e in range(indptr[row], indptr[row + 1]):
                    c = indices[e]
                    total = totals[c]
                    if total != 0:
                        totals[c] = 0
                        for entry in range(start[c], start[c + 1]):
                            similarity[owner[rows[entry]]] += total * values[entry]
                row = following[row]
            nearest, best = -1, -np.inf
            # The predecessor wins ties, so that a chain cannot run in circles.
            if length > 1:
                nearest = chain[length - 2]
                best = similarity[nearest] / (size[tip] * size[nearest])
            for i in range(n):
                if size[i] > 0 and i != tip:
                    value = similarity[i] / (size[tip] * size[i])
                    if value > best:
                        best, nearest = value, i
            if length > 1 and nearest == chain[length - 2]:
                break
            chain[length] = nearest
            length += 1
        length -= 2
        a, b = min(tip, nearest), max(tip, nearest)
        pairs[step, 0], pairs[step, 1] = a, b
        heights[step] = best
        row = head[a]
        while row >= 0:
            owner[row] = b
            row = following[row]
        following[tail[b]] = head[a]
        tail[b] = tail[a]
        head[a] = -1
        size[b] += size[a]
        size[a] = 0
    return pairs, heights
