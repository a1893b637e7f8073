"""Distances of listed pairs, and sparse matrices times blocks of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from mdec.numerics.loops.jit import REASSOCIATE, compiled, inner

_LANES = 16

# Squares below this lose digits, or vanish.
LEAST_SQUARE = 2.0**-960


@inner(fastmath=REASSOCIATE)
def _sum_of_squares(X: Any, i: int, j: int) -> Any:
    total = 0.0
    for f in range(X.shape[1]):
        difference = np.float64(X[i, f] - X[j, f])
        total += difference * difference
    return total


@inner()
def distance_by_differences(X: Any, i: int, j: int) -> Any:
    """Return the squared distance of two rows, -1 if float64 does not hold it."""
    total = _sum_of_squares(X, i, j)
    if total < LEAST_SQUARE:
        for f in range(X.shape[1]):
            if X[i, f] != X[j, f]:
                return -1.0
    return total


def pair_distances(X: Any, rows: Any, columns: Any) -> Any:
    """Return the squared distance of each listed pair, -1 if float64 does not hold it.

    Computed by differences.
    """
    out = np.empty(rows.size)
    _pair_distances(X, rows, columns, out)
    return out


@compiled()
def _pair_distances(X: Any, rows: Any, columns: Any, out: Any) -> None:
    for e in range(out.size):
        out[e] = distance_by_differences(X, rows[e], columns[e])


def mirror_pairs(low: Any, high: Any, values: Any, n: int) -> Any:
    """Return the CSR arrays that hold sorted pairs, low < high, both ways."""
    indptr = np.zeros(n + 1, dtype=np.int64)
    indices = np.empty(2 * low.size, dtype=np.int32)
    data = np.empty(2 * low.size, dtype=values.dtype)
    _mirror_pairs(low, high, values, indptr, np.empty_like(indptr), indices, data)
    return indptr, indices, data


@compiled()
def _mirror_pairs(
    low: Any, high: Any, values: Any, indptr: Any, fill: Any, indices: Any, data: Any
) -> None:
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


def components(indptr: Any, indices: Any) -> Any:
    """Number the connected components of a symmetric graph by their first vertices."""
    n = indptr.size - 1
    label = np.full(n, -1, dtype=np.int32)
    _components(indptr, indices, label, np.empty(n, dtype=np.int64))
    return label


@compiled()
def _components(indptr: Any, indices: Any, label: Any, waiting: Any) -> None:
    n_components = 0
    for first in range(label.size):
        if label[first] >= 0:
            continue
        label[first] = n_components
        waiting[0] = first
        size = 1
        while size > 0:
            size -= 1
            vertex = waiting[size]
            for e in range(indptr[vertex], indptr[vertex + 1]):
                other = indices[e]
                if label[other] < 0:
                    label[other] = n_components
                    waiting[size] = other
                    size += 1
        n_components += 1


def csr_chebyshev(
    indptr: Any,
    indices: Any,
    data: Any,
    block: Any,
    degree: int,
    scale: Any,
    shift: Any,
    out: Any,
) -> None:
    """Write the Chebyshev polynomial of ``scale * A + shift``, A in CSR, times block.

    The columns are padded to fill vector registers.
    """
    n, width = block.shape
    shape = (n, (width + _LANES - 1) // _LANES * _LANES)
    before = np.zeros(shape, dtype=block.dtype)
    current = np.zeros(shape, dtype=block.dtype)
    current[:, :width] = block
    _chebyshev(indptr, indices, data, current, before, degree, scale, shift)
    out[:, :] = (before if degree % 2 else current)[:, :width]


@compiled(fastmath=REASSOCIATE)
def _chebyshev(
    indptr: Any,
    indices: Any,
    data: Any,
    current: Any,
    before: Any,
    degree: int,
    scale: Any,
    shift: Any,
) -> None:
    """Write ``scale * (A @ current) + shift * current - before`` to `before`, and swap.

    From the second step on, scale and shift are doubled.
    """
    n, width = current.shape
    for step in range(degree):
        for i in range(n):
            target, own = before[i], current[i]
            for c in range(width):
                target[c] = shift * own[c] - target[c]
            e, stop = indptr[i], indptr[i + 1]
            # Four entries at a time touch the target a quarter as often.
            while e + 3 < stop:
                w0, w1 = scale * data[e], scale * data[e + 1]
                w2, w3 = scale * data[e + 2], scale * data[e + 3]
                x0, x1 = current[indices[e]], current[indices[e + 1]]
                x2, x3 = current[indices[e + 2]], current[indices[e + 3]]
                for c in range(width):
                    total = target[c] + w0 * x0[c]
                    total += w1 * x1[c]
                    total += w2 * x2[c]
                    target[c] = total + w3 * x3[c]
                e += 4
            while e < stop:
                weight, source = scale * data[e], current[indices[e]]
                for c in range(width):
                    target[c] += weight * source[c]
                e += 1
        before, current = current, before
        if step == 0:
            scale = scale + scale
            shift = shift + shift
