"""Compiled loops over pairs of rows of a label table.

A label of -1 marks a sample that a member does not cluster; it agrees with nothing.
The module is imported where it is used, so that importing the baselines neither
loads nor runs the compiler.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mdec.numerics.loops.jit import REASSOCIATE, jit


def agreement_blocks(labels: Any, height: int) -> Iterator[tuple[slice, Any]]:
    """Count the members that join each row with each other row, in blocks of rows."""
    n_rows, n_members = labels.shape
    for first in range(0, n_rows, height):
        block = slice(first, min(first + height, n_rows))
        counts = np.empty((block.stop - first, n_rows), np.int32)
        sum_agreements(labels, np.ones(n_members, np.int32), first, counts)
        np.fill_diagonal(counts[:, block], 0)
        yield block, counts


@jit(fastmath=REASSOCIATE)
def sum_agreements(labels: Any, weights: Any, first: int, out: Any) -> None:
    """Write the summed weights of the members that join rows from `first` on with rows.

    As many rows, and as many of those that they are joined with, as `out` has room for.
    """
    for r in range(out.shape[0]):
        own = labels[first + r]
        for j in range(out.shape[1]):
            other = labels[j]
            total = weights.dtype.type(0)
            for m in range(weights.size):
                if (own[m] == other[m]) & (own[m] >= 0):
                    total += weights[m]
            out[r, j] = total


@jit(fastmath=REASSOCIATE)
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
