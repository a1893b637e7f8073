"""Compiled loops over label tables, shared by several baselines.

A label of -1 marks a sample that a member does not cluster; it agrees with nothing.
The module is imported where it is used, so that importing the baselines neither
loads nor runs the compiler.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mdec.numerics.loops.jit import REASSOCIATE, compiled


@compiled()
def nearest_centers(labels: Any, offsets: Any, table: Any) -> Any:
    """Return the cheapest centre of every row of a label table, and its cost.

    The cost of centre k is ``table[c, k]`` summed over the base clusters c of the row.
    """
    n_samples, n_members = labels.shape
    n_centers = table.shape[1]
    best = np.empty(n_samples, dtype=np.int32)
    costs = np.empty(n_samples)
    cost = np.empty(n_centers)
    for i in range(n_samples):
        cost[:] = 0.0
        for m in range(n_members):
            if labels[i, m] >= 0:
                row = table[offsets[m] + labels[i, m]]
                for k in range(n_centers):
                    cost[k] += row[k]
        chosen = 0
        for k in range(1, n_centers):
            if cost[k] < cost[chosen]:
                chosen = k
        best[i] = chosen
        costs[i] = cost[chosen]
    return best, costs


@compiled()
def shared_counts(labels: Any, offsets: Any, groups: Any, n_groups: int) -> Any:
    """Count the samples that each base cluster shares with each group."""
    counts = np.zeros((offsets[labels.shape[1]], n_groups))
    for i in range(labels.shape[0]):
        for m in range(labels.shape[1]):
            if labels[i, m] >= 0:
                counts[offsets[m] + labels[i, m], groups[i]] += 1.0
    return counts


@compiled()
def agreement_counts(labels: Any, first: int, out: Any) -> None:
    """Count the members that join each of the rows from `first` on with each row."""
    n_samples, n_members = labels.shape
    for r in range(out.shape[0]):
        own = labels[first + r]
        for j in range(n_samples):
            other = labels[j]
            count = np.int32(0)
            for m in range(n_members):
                count += np.int32((own[m] == other[m]) & (own[m] >= 0))
            out[r, j] = count


@compiled(fastmath=REASSOCIATE)
def weighted_agreement(labels: Any, weights: Any, first: int, out: Any) -> None:
    """Write the summed weights of the members that join rows from `first` on with rows.

    As many rows, and as many of those that they are joined with, as `out` has room for.
    """
    for r in range(out.shape[0]):
        own = labels[first + r]
        for j in range(out.shape[1]):
            other = labels[j]
            total = 0.0
            for m in range(weights.size):
                if (own[m] == other[m]) & (own[m] >= 0):
                    total += weights[m]
            out[r, j] = total


@compiled(fastmath=REASSOCIATE)
def add_joined(
    labels: Any,
    offsets: Any,
    samples: Any,
    starts: Any,
    ends: Any,
    values: Any,
    sums: Any,
) -> None:
    """Add the values of the pairs that each member joins, in some rows after others.

    The rows of `values` follow those of the calls before. It is symmetric, and what is
    right of the diagonal is not read. The samples of base cluster c among the rows
    before are ``samples[starts[c] : ends[c]]``; `ends` moves on.
    """
    first = values.shape[1] - values.shape[0]
    for r in range(values.shape[0]):
        for m in range(labels.shape[1]):
            if labels[first + r, m] >= 0:
                c = offsets[m] + labels[first + r, m]
                total = 0.0
                for at in range(starts[c], ends[c]):
                    total += values[r, samples[at]]
                sums[m] += 2.0 * total + values[r, first + r]
                ends[c] += 1
