"""Products and distances of sparse rows, given by their CSR arrays."""

from __future__ import annotations

from typing import Any

from mdec.numerics.loops.jit import compiled
from mdec.numerics.loops.sparse import LEAST_SQUARE


@compiled()
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


@compiled()
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

    Computed by differences; pairs with the same row come one after the other. `own`
    holds zeros and `seen` numbers below zero, one for each feature; both are scratch.
    """
    row, start, stop = -1, 0, 0
    for e in range(out.size):
        if rows[e] != row:
            for t in range(start, stop):
                own[indices[t]] = 0.0
            row = rows[e]
            start, stop = indptr[row], indptr[row + 1]
            for t in range(start, stop):
                own[indices[t]] = data[t]
        total, differ = 0.0, False
        for t in range(other_indptr[columns[e]], other_indptr[columns[e] + 1]):
            feature = other_indices[t]
            difference = own[feature] - other_data[t]
            total += difference * difference
            differ |= difference != 0.0
            seen[feature] = e
        for t in range(start, stop):
            value = 0.0 if seen[indices[t]] == e else data[t]
            total += value * value
            differ |= value != 0.0
        out[e] = -1.0 if differ and total < LEAST_SQUARE else total
    for t in range(start, stop):
        own[indices[t]] = 0.0
