"""Similarities of all pairs of rows, in a square or in a triangle in tiles."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mdec.numerics.loops.jit import compiled
from mdec.numerics.loops.triangle import get_tail, padded, set_tail

# Rows whose products with all others are made together.
_ROWS_AT_ONCE = 256


def triangle_of_products(
    indptr: Any, indices: Any, data: Any, n_columns: int, out: Any
) -> None:
    """Write the products of all pairs of CSR rows to a triangle in tiles."""
    start, rows, values = _by_column(indptr, indices, data, n_columns)
    row = np.zeros(padded(indptr.size - 1), dtype=out.dtype)
    # Indices without a sign need no test for those below zero.
    by_column = start, rows.astype(np.uint32), values
    # Rows of a column up to the row at hand are passed; they are in ascending order.
    _products(indptr, indices, data, *by_column, start[:-1].copy(), row, out)


@compiled()
def _products(
    indptr: Any,
    indices: Any,
    data: Any,
    start: Any,
    rows: Any,
    values: Any,
    passed: Any,
    row: Any,
    out: Any,
) -> None:
    n_rows = indptr.size - 1
    for i in range(n_rows):
        for j in range(i, row.size):
            row[j] = 0
        for e in range(indptr[i], indptr[i + 1]):
            c = indices[e]
            passed[c] += 1
            weight = data[e]
            first, stop = passed[c], start[c + 1]
            row_of, value_of = rows[first:stop], values[first:stop]
            for t in range(row_of.size):
                row[row_of[t]] += weight * value_of[t]
        # Left of the diagonal the tile holds nothing that is read.
        set_tail(out, n_rows, i, row)


def divide_by_products(rows: Any, out: Any) -> None:
    """Divide a triangle by the products of dense rows; 0 where they are not above 0."""
    n_rows = len(rows)
    row = np.zeros(padded(n_rows), dtype=out.dtype)
    for first in range(0, n_rows, _ROWS_AT_ONCE):
        block = rows[first : first + _ROWS_AT_ONCE] @ rows[first:].T
        _divide(block, first, n_rows, row, out)


@compiled()
def _divide(block: Any, first: int, n_rows: int, row: Any, out: Any) -> None:
    for i in range(block.shape[0]):
        get_tail(out, n_rows, first + i, row)
        divisors, part = block[i], row[first:]
        for j in range(i, divisors.size):
            part[j] = part[j] / divisors[j] if divisors[j] > 0 else 0
        set_tail(out, n_rows, first + i, row)


def triangle_of_matrix(matrix: Any, out: Any) -> None:
    """Write a symmetric matrix to a triangle in tiles."""
    _of_matrix(matrix, np.zeros(padded(len(matrix)), dtype=out.dtype), out)


@compiled()
def _of_matrix(matrix: Any, row: Any, out: Any) -> None:
    n_rows = matrix.shape[0]
    for i in range(n_rows):
        for j in range(n_rows):
            row[j] = matrix[i, j]
        set_tail(out, n_rows, i, row)


def square_of_products(indptr: Any, indices: Any, data: Any, n_columns: int) -> Any:
    """Return the products of all pairs of CSR rows."""
    start, rows, values = _by_column(indptr, indices, data, n_columns)
    square = np.zeros((indptr.size - 1, indptr.size - 1))
    by_column = start, rows.astype(np.int32), values
    _fill_square(indptr, indices, data, *by_column, square)
    return square


@compiled()
def _fill_square(
    indptr: Any,
    indices: Any,
    data: Any,
    start: Any,
    rows: Any,
    values: Any,
    square: Any,
) -> None:
    for i in range(square.shape[0]):
        row = square[i]
        for e in range(indptr[i], indptr[i + 1]):
            weight = data[e]
            for entry in range(start[indices[e]], start[indices[e] + 1]):
                row[rows[entry]] += weight * values[entry]


def _by_column(indptr: Any, indices: Any, data: Any, n_columns: int) -> Any:
    """Return the CSC arrays of a CSR matrix."""
    shape = indptr.size - 1, n_columns
    columns = sparse.csr_array((data, indices, indptr), shape=shape).tocsc()
    return columns.indptr.astype(np.int64), columns.indices, columns.data
