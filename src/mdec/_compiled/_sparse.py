"""Distances of listed pairs, and sparse matrices times blocks of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from mdec._compiled._jit import REASSOCIATE, compiled


@compiled(fastmath=REASSOCIATE)
def pair_distances(X: Any, rows: Any, columns: Any) -> Any:
    """Return the squared distance of each listed pair, by differences."""
    out = np.empty(rows.size)
    for e in range(rows.size):
        a, b = X[rows[e]], X[columns[e]]
        total = 0.0
        for f in range(X.shape[1]):
            difference = np.float64(a[f] - b[f])
            total += difference * difference
        out[e] = total
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


@compiled(fastmath=REASSOCIATE)
def csr_step(
    indptr: Any,
    indices: Any,
    data: Any,
    block: Any,
    scale: Any,
    shift: Any,
    before: Any,
    out: Any,
) -> None:
    """Write ``scale * (A @ block) + shift * block - before`` to `out`, A in CSR."""
    width = block.shape[1]
    for i in range(out.shape[0]):
        target, own, old = out[i], block[i], before[i]
        for c in range(width):
            target[c] = shift * own[c] - old[c]
        for e in range(indptr[i], indptr[i + 1]):
            weight = scale * data[e]
            source = block[indices[e]]
            for c in range(width):
                target[c] += weight * source[c]
