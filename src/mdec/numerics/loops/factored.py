"""Average linkage of the products of rows, without a place for all of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from mdec.numerics.loops.jit import compiled, inner
from mdec.numerics.loops.linkage import first_left


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
    size = np.empty(n)
    scaled = np.empty(indices.size)
    head = np.empty(n, dtype=np.int64)
    tail = np.empty(n, dtype=np.int64)
    following = np.empty(n, dtype=np.int64)
    owner = np.empty(n, dtype=np.int64)
    for i in range(n):
        size[i] = sizes[i]
        head[i], tail[i], following[i], owner[i] = i, i, -1, i
        for e in range(indptr[i], indptr[i + 1]):
            scaled[e] = data[e] * size[i]
    data = scaled
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
            chain[0], length = first_left(size), 1
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
