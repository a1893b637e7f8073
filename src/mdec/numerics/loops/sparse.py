"""Distances of listed pairs, and sparse matrices times blocks of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from mdec.numerics.loops.jit import REASSOCIATE, compiled

_LANES = 16

# Squares below this lose digits, or vanish.
_LEAST = 2.0**-960


@compiled(fastmath=REASSOCIATE)
def _sum_of_squares(a: Any, b: Any) -> Any:
    total = 0.0
    for f in range(a.size):
        difference = np.float64(a[f] - b[f])
        total += difference * difference
    return total


@compiled()
def distance_by_differences(a: Any, b: Any) -> Any:
    """Return the squared distance of two rows, -1 if float64 does not hold it."""
    total = _sum_of_squares(a, b)
    if total < _LEAST:
        for f in range(a.size):
            if a[f] != b[f]:
                return -1.0
    return total


@compiled()
def pair_distances(X: Any, rows: Any, columns: Any) -> Any:
    """Return the squared distance of each listed pair, -1 if float64 does not hold it.

    Computed by differences.
    """
    out = np.empty(rows.size)
    for e in range(rows.size):
        out[e] = distance_by_differences(X[rows[e]], X[columns[e]])
    return out


@compiled()
def mirror_pairs(low: Any, high: Any, values: Any, n: int) -> Any:
    """Return the CSR arrays that hold sorted pairs, low < high, both ways."""
    indptr = np.zeros(n + 1, dtype=np.int64)
    for e in range(low.size):
        indptr[low[e] + 1] += 1
        indptr[high[e] + 1] += 1
    for i in range(n):
        indptr[i + 1] += indptr[i]
    indices = np.empty(2 * low.size, dtype=np.int32)
    data = np.empty(2 * low.size, dtype=values.dtype)
    fill = indptr[:-1].copy()
    # In two passes, so that every row is sorted: its lower partners come first.
    for e in range(low.size):
        position = fill[high[e]]
        indices[position], data[position] = low[e], values[e]
        fill[high[e]] += 1
    for e in range(low.size):
        position = fill[low[e]]
        indices[position], data[position] = high[e], values[e]
        fill[low[e]] += 1
    return indptr, indices, data


@compiled()
def components(indptr: Any, indices: Any) -> Any:
    """Number the connected components of a symmetric graph by their first vertices."""
    n = indptr.size - 1
    label = np.full(n, -1, dtype=np.int32)
    waiting = np.empty(n, dtype=np.int64)
    n_components = 0
    for first in range(n):
        if label[first] >= 0:
            continue
        label[first] = n_components
        waiting[0], size = first, 1
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
    return label


@compiled(fastmath=REASSOCIATE)
def _csr_step(
    indptr: Any, indices: Any, data: Any, block: Any, scale: Any, shift: Any, out: Any
) -> None:
    """Write ``scale * (A @ block) + shift * block - out`` to `out`, A in CSR."""
    width = block.shape[1]
    for i in range(out.shape[0]):
        target, own = out[i], block[i]
        for c in range(width):
            target[c] = shift * own[c] - target[c]
        e, stop = indptr[i], indptr[i + 1]
        # Four entries at a time touch the target a quarter as often.
        while e + 3 < stop:
            w0, w1 = scale * data[e], scale * data[e + 1]
            w2, w3 = scale * data[e + 2], scale * data[e + 3]
            x0, x1 = block[indices[e]], block[indices[e + 1]]
            x2, x3 = block[indices[e + 2]], block[indices[e + 3]]
            for c in range(width):
                total = target[c] + w0 * x0[c]
                total += w1 * x1[c]
                total += w2 * x2[c]
                target[c] = total + w3 * x3[c]
            e += 4
        while e < stop:
            weight, source = scale * data[e], block[indices[e]]
            for c in range(width):
                target[c] += weight * source[c]
            e += 1


@compiled()
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
    for step in range(degree):
        factor = block.dtype.type(1 if step == 0 else 2)
        _csr_step(
            indptr, indices, data, current, factor * scale, factor * shift, before
        )
        before, current = current, before
    out[:, :] = current[:, :width]
