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
def weighted_agreement(labels: Any, weights: Any, out: Any) -> None:
    """Write the summed weights of the members that join each pair of rows."""
    n_samples, n_members = labels.shape
    for i in range(n_samples):
        for j in range(i + 1):
            total = 0.0
            for m in range(n_members):
                if (labels[i, m] == labels[j, m]) & (labels[i, m] >= 0):
                    total += weights[m]
            out[i, j] = total
            out[j, i] = total


@compiled(fastmath=REASSOCIATE)
def sums_within_members(labels: Any, values: Any) -> Any:
    """Sum a symmetric matrix over the pairs of rows that each member joins."""
    n_samples, n_members = labels.shape
    sums = np.zeros(n_members)
    for i in range(n_samples):
        for j in range(i + 1):
            value = values[i, j] if i == j else 2.0 * values[i, j]
            for m in range(n_members):
                if (labels[i, m] == labels[j, m]) & (labels[i, m] >= 0):
                    sums[m] += value
    return sums
