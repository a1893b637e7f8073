"""Sparse matrices by their CSR arrays: products, distances, graphs, polynomials."""

from __future__ import annotations

from typing import Any

import numpy as np

from mdec.numerics.loops.jit import jit
from mdec.numerics.loops.lanes import (
    add_product,
    column_groups,
    load,
    pad_columns,
    store,
    zeros,
)

# Squares below this lose digits, or vanish.
LEAST_SQUARE = 2.0**-960

# A difference of squares above this share of the larger one keeps its digits.
_LEAST_REST = 0.25


@jit()
def csr_products(
    indptr: Any,
    indices: Any,
    data: Any,
    by_feature: Any,
    others: Any,
    values: Any,
    out: Any,
) -> None:
    """Write the products of rows with others, which are listed feature by feature."""
    for i in range(out.shape[0]):
        target = out[i]
        for c in range(target.size):
            target[c] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            own, feature = data[e], indices[e]
            for g in range(by_feature[feature], by_feature[feature + 1]):
                target[others[g]] += own * values[g]


@jit()
def csr_distances(
    indptr: Any,
    indices: Any,
    data: Any,
    other_indptr: Any,
    other_indices: Any,
    other_data: Any,
    rows: Any,
    columns: Any,
    own: Any,
    seen: Any,
    out: Any,
) -> None:
    """Write the squared distance of each listed pair, -1 if float64 does not hold it.

    Computed by differences. Pairs with the same row come one after the other: what the
    row has and the column has not is what the row's square has more, unless that loses
    digits. `own` holds zeros and `seen` numbers below zero, one for each feature; both
    are scratch.
    """
    row, start, stop, square = -1, 0, 0, 0.0
    for e in range(out.size):
        if rows[e] != row:
            for t in range(start, stop):
                own[indices[t]] = 0.0
            row, square = rows[e], 0.0
            start, stop = indptr[row], indptr[row + 1]
            for t in range(start, stop):
                own[indices[t]] = data[t]
                square += data[t] * data[t]
        total, common, differ = 0.0, 0.0, False
        for t in range(other_indptr[columns[e]], other_indptr[columns[e] + 1]):
            feature = other_indices[t]
            difference = own[feature] - other_data[t]
            total += difference * difference
            common += own[feature] * own[feature]
            differ |= difference != 0.0
            seen[feature] = e
        rest = square - common
        if rest > _LEAST_REST * square and rest > LEAST_SQUARE:
            total += rest
            differ = True
        else:
            for t in range(start, stop):
                value = 0.0 if seen[indices[t]] == e else data[t]
                total += value * value
                differ |= value != 0.0
        out[e] = -1.0 if differ and total < LEAST_SQUARE else total
    for t in range(start, stop):
        own[indices[t]] = 0.0


def sort_pairs(rows: Any, columns: Any, n: int) -> Any:
    """Return the low and high ends of different pairs, sorted, and their places."""
    low, high = np.minimum(rows, columns), np.maximum(rows, columns)
    order = np.arange(low.size, dtype=low.dtype)
    for ends in (high, low):
        before, order, fill = order, np.empty_like(order), np.zeros(n + 1, np.int64)
        _sort_by(ends, before, fill, order)
    order = order[: _leave_out_repeats(low, high, order)]
    return low[order], high[order], order


@jit()
def _sort_by(ends: Any, before: Any, fill: Any, order: Any) -> None:
    for e in range(ends.size):
        fill[ends[e] + 1] += 1
    for i in range(1, fill.size):
        fill[i] += fill[i - 1]
    for t in range(before.size):
        e = before[t]
        order[fill[ends[e]]] = e
        fill[ends[e]] += 1


@jit()
def _leave_out_repeats(low: Any, high: Any, order: Any) -> int:
    size, last_low, last_high = 0, -1, -1
    for t in range(order.size):
        e = order[t]
        order[size] = e
        size += (low[e] != last_low) | (high[e] != last_high)
        last_low, last_high = low[e], high[e]
    return size


def mirror_pairs(low: Any, high: Any, values: Any, n: int) -> Any:
    """Return the CSR arrays that hold sorted pairs, low < high, both ways."""
    indptr = np.zeros(n + 1, dtype=np.int64)
    indices = np.empty(2 * low.size, dtype=np.int32)
    data = np.empty(2 * low.size, dtype=values.dtype)
    _mirror_pairs((low, high, values), np.empty_like(indptr), (indptr, indices, data))
    return indptr, indices, data


@jit()
def _mirror_pairs(pairs: Any, fill: Any, out: Any) -> None:
    low, high, values = pairs
    indptr, indices, data = out
    for e in range(low.size):
        indptr[low[e] + 1] += 1
        indptr[high[e] + 1] += 1
    fill[0] = 0
    for i in range(1, indptr.size):
        indptr[i] += indptr[i - 1]
        fill[i] = indptr[i]
    # In two passes, so that every row is sorted: its lower partners come first.
    for e in range(low.size):
        position = fill[high[e]]
        indices[position] = low[e]
        data[position] = values[e]
        fill[high[e]] = position + 1
    for e in range(low.size):
        position = fill[low[e]]
        indices[position] = high[e]
        data[position] = values[e]
        fill[low[e]] = position + 1


def csr_chebyshev(matrix: Any, block: Any, degree: int, scale: Any, shift: Any) -> Any:
    """Return a block times the Chebyshev polynomial of ``scale * A + shift``.

    The matrix A is given by its CSR arrays.
    """
    current = pad_columns(block)
    before, width = np.zeros_like(current), current.shape[1]
    blocks = current.ravel(), before.ravel()
    for columns in column_groups(width):
        _chebyshev(matrix, blocks, width, degree, scale, shift, *columns)
    return (before if degree % 2 else current)[:, : block.shape[1]]


@jit()
def _chebyshev(
    matrix: Any,
    blocks: Any,
    width: int,
    degree: int,
    scale: Any,
    shift: Any,
    first: int,
    group: Any,
) -> None:
    """Write ``scale * (A @ current) + shift * current - before`` to `before`, and swap.

    From the second step on, scale and shift are doubled.
    """
    indptr, indices, data = matrix
    current, before = blocks
    minus = data.dtype.type(-1)
    for step in range(degree):
        for i in range(indptr.size - 1):
            own, sums = i * width + first, zeros(group, scale)
            sums = add_product(sums, minus, load(before, own, sums))
            sums = add_product(sums, shift, load(current, own, sums))
            for e in range(indptr[i], indptr[i + 1]):
                other = np.int64(indices[e]) * width + first
                sums = add_product(sums, scale * data[e], load(current, other, sums))
            store(before, own, sums)
        before, current = current, before
        if step == 0:
            scale = scale + scale
            shift = shift + shift
