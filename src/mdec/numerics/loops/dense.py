"""Squared distances of dense rows, of listed pairs and of all."""

from __future__ import annotations

from typing import Any

import numpy as np

from mdec.numerics import digits
from mdec.numerics.loops.csr import LEAST_SQUARE
from mdec.numerics.loops.jit import REASSOCIATE, inner, jit

# A distance that is less than this share of the norms has lost four digits to them.
_CANCELLED = 1e-4

nine_digits: Any = inner()(digits.nine_digits)


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

    Computed by differences, and rounded to nine digits.
    """
    out = np.empty(rows.size)
    _pair_distances(X, rows, columns, out)
    return out


@jit()
def _pair_distances(X: Any, rows: Any, columns: Any, out: Any) -> None:
    for e in range(out.size):
        out[e] = nine_digits(distance_by_differences(X, rows[e], columns[e]))


@jit()
def products_to_distances(products: Any, norms: Any) -> int:
    """Replace products of rows by squared distances, given those with themselves.

    They are rounded to nine digits, so that equal ones are equal. Those that lost
    digits become -1; returns how many did.
    """
    n_lost = 0
    for i in range(norms.size):
        for j in range(norms.size):
            both = norms[i] + norms[j]
            value = -2.0 * products[i, j] + both
            cancelled = value < _CANCELLED * both and i != j
            products[i, j] = -1.0 if cancelled else nine_digits(value)
            n_lost += cancelled
        products[i, i] = 0.0
    return n_lost
