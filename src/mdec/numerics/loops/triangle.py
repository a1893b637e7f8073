"""A symmetric matrix as a triangle of square tiles.

A row and a column of it both touch few lines of memory, where a triangle of rows has
every entry of a column on a line of its own.
"""

from __future__ import annotations

from typing import Any

from mdec.numerics.loops.jit import compiled

SIDE = 8


@compiled()
def padded(n: int) -> int:
    """Return the length of a row in whole tiles."""
    return (n + SIDE - 1) // SIDE * SIDE


@compiled()
def triangle_entries(n: int) -> int:
    """Return how many entries the triangle of n rows takes, in whole tiles."""
    n_tiles = (n + SIDE - 1) // SIDE
    return n_tiles * (n_tiles + 1) // 2 * SIDE * SIDE


@compiled()
def _tile(n: int, row: int, column: int) -> int:
    """Return where the tile of a row and column of tiles starts."""
    n_tiles = (n + SIDE - 1) // SIDE
    return (n_tiles * row - row * (row - 1) // 2 + column - row) * SIDE * SIDE


@compiled()
def entry_of(n: int, i: int, j: int) -> int:
    """Return the place of a pair of rows in the triangle."""
    if i > j:
        i, j = j, i
    return _tile(n, i // SIDE, j // SIDE) + i % SIDE * SIDE + j % SIDE


@compiled()
def get_tail(triangle: Any, n: int, i: int, row: Any) -> None:
    """Copy the entries of row i, from its tile on the diagonal to the end."""
    own = i // SIDE
    start = _tile(n, own, own) + i % SIDE * SIDE
    for column in range(own, row.size // SIDE):
        part, tile = row[column * SIDE :], triangle[start:]
        for c in range(SIDE):
            part[c] = tile[c]
        start += SIDE * SIDE


@compiled()
def set_tail(triangle: Any, n: int, i: int, row: Any) -> None:
    """Write what `get_tail` copies."""
    own = i // SIDE
    start = _tile(n, own, own) + i % SIDE * SIDE
    for column in range(own, row.size // SIDE):
        part, tile = row[column * SIDE :], triangle[start:]
        for c in range(SIDE):
            tile[c] = part[c]
        start += SIDE * SIDE


@compiled()
def get_head(triangle: Any, n: int, i: int, first: int, row: Any) -> None:
    """Copy the entries of row i from the tile of a first column to the diagonal."""
    own, offset = i // SIDE, i % SIDE
    for above in range(first // SIDE, own):
        start = _tile(n, above, own) + offset
        for r in range(SIDE):
            row[above * SIDE + r] = triangle[start + r * SIDE]
    start = _tile(n, own, own) + offset
    for r in range(offset):
        row[own * SIDE + r] = triangle[start + r * SIDE]


@compiled()
def get_row(triangle: Any, n: int, i: int, row: Any) -> None:
    """Copy the similarities of row i to all others."""
    get_tail(triangle, n, i, row)
    get_head(triangle, n, i, 0, row)


@compiled()
def set_row(triangle: Any, n: int, i: int, row: Any) -> None:
    """Write what `get_row` copies."""
    own, offset = i // SIDE, i % SIDE
    for above in range(own):
        start = _tile(n, above, own) + offset
        for r in range(SIDE):
            triangle[start + r * SIDE] = row[above * SIDE + r]
    start = _tile(n, own, own) + offset
    for r in range(offset):
        triangle[start + r * SIDE] = row[own * SIDE + r]
    set_tail(triangle, n, i, row)
