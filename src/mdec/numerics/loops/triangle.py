"""A symmetric matrix as a triangle of square tiles.

A row and a column of it both touch few lines of memory, where a triangle of rows has
every entry of a column on a line of its own.
"""

from __future__ import annotations

from typing import Any

from mdec.numerics.loops.jit import inner

_SHIFT = 3
SIDE = 1 << _SHIFT
_LAST = SIDE - 1


def padded(n: int) -> int:
    """Return the length of a row in whole tiles."""
    return (n + SIDE - 1) // SIDE * SIDE


def triangle_entries(n: int) -> int:
    """Return how many entries the triangle of n rows takes, in whole tiles."""
    n_tiles = (n + SIDE - 1) // SIDE
    return n_tiles * (n_tiles + 1) // 2 * SIDE * SIDE


@inner()
def _tile(n: int, row: int, column: int) -> int:
    """Return where the tile of a row and column of tiles starts."""
    n_tiles = (n + SIDE - 1) >> _SHIFT
    return (n_tiles * row - (row * (row - 1) >> 1) + column - row) << 2 * _SHIFT


@inner()
def entry_of(n: int, i: int, j: int) -> int:
    """Return the place of a pair of rows in the triangle."""
    if i > j:
        i, j = j, i
    tile = _tile(n, i >> _SHIFT, j >> _SHIFT)
    return tile + ((i & _LAST) << _SHIFT) + (j & _LAST)


@inner()
def get_tail(triangle: Any, n: int, i: int, row: Any) -> None:
    """Copy the entries of row i, from its tile on the diagonal to the end."""
    own = i >> _SHIFT
    # The tiles of a row of them follow each other.
    start = _tile(n, own, own) + ((i & _LAST) << _SHIFT)
    for first in range(own << _SHIFT, row.size, SIDE):
        # Views that start at 0 spare the test for indices below it.
        part, tile = row[first:], triangle[start:]
        for c in range(SIDE):
            part[c] = tile[c]
        start += SIDE * SIDE


@inner()
def set_tail(triangle: Any, n: int, i: int, row: Any) -> None:
    """Write what `get_tail` copies."""
    own = i >> _SHIFT
    start = _tile(n, own, own) + ((i & _LAST) << _SHIFT)
    for first in range(own << _SHIFT, row.size, SIDE):
        part, tile = row[first:], triangle[start:]
        for c in range(SIDE):
            tile[c] = part[c]
        start += SIDE * SIDE


@inner()
def get_head(triangle: Any, n: int, i: int, first: int, row: Any) -> None:
    """Copy the entries of row i from a first column to the diagonal."""
    own, offset = i >> _SHIFT, i & _LAST
    for j in range(first, i):
        start = _tile(n, j >> _SHIFT, own) + offset
        row[j] = triangle[start + ((j & _LAST) << _SHIFT)]


@inner()
def get_row(triangle: Any, n: int, i: int, row: Any) -> None:
    """Copy the similarities of row i to all others."""
    get_tail(triangle, n, i, row)
    get_head(triangle, n, i, 0, row)


@inner()
def set_row(triangle: Any, n: int, i: int, row: Any) -> None:
    """Write what `get_row` copies."""
    own, offset = i >> _SHIFT, i & _LAST
    for j in range(i):
        start = _tile(n, j >> _SHIFT, own) + offset
        triangle[start + ((j & _LAST) << _SHIFT)] = row[j]
    set_tail(triangle, n, i, row)
