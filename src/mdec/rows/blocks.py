"""Rows in fixed blocks, and who works on them.

A long computation is a sequence of maps over row blocks with small sums in between.
The blocks depend on the shape of the data alone, and sums are always added in the same
order, so results do not depend on who does the work.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import partial
from operator import getitem
from typing import Any

import numpy as np
from scipy import sparse

from mdec._support.arrays import Array
from mdec.rows.sources import RowSource, canonical_rows, is_dask_array
from mdec.rows.work import Executor, LocalExecutor, rows_of

# A block holds at most this many numbers, and this many rows.
BLOCK_NUMBERS = 2**24
BLOCK_ROWS = 2**16


def block_height(n_features: int) -> int:
    """Return the rows of a block, a power of two.

    Examples
    --------
    >>> block_height(64), block_height(784)
    (65536, 16384)
    """
    fitting = max(BLOCK_NUMBERS // max(n_features, 1), 1024)
    return min(BLOCK_ROWS, 2 ** (fitting.bit_length() - 1))


def block_bounds(n_rows: int, n_features: int) -> list[tuple[int, int]]:
    """Return the first row of each block and the one after its last.

    The one definition of row blocks, by the shape of the data alone.

    Examples
    --------
    >>> block_bounds(150_000, 64)
    [(0, 65536), (65536, 131072), (131072, 150000)]
    """
    height = block_height(n_features)
    return [(start, min(start + height, n_rows)) for start in range(0, n_rows, height)]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of numbers in blocks, wherever they are, and who works on them.

    The blocks are the executor's handles, with their bounds; `source` is what they are
    read from, None for a Dask array. `spacing` holds the mean distance of each row to
    its neighbours, by plan and member, where a graph was made in this process.
    """

    executor: Executor
    blocks: list[Any]
    bounds: list[tuple[int, int]]
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    source: Array | sparse.csr_array | RowSource | None = None
    spacing: dict[Any, Array] = field(default_factory=dict)

    @property
    def array(self) -> Array | None:
        """All rows, where they are in memory and dense."""
        return self.source if isinstance(self.source, np.ndarray) else None

    @property
    def csr(self) -> sparse.csr_array | None:
        """All rows, where they are sparse."""
        return self.source if sparse.issparse(self.source) else None

    @property
    def in_memory(self) -> Array | sparse.csr_array | None:
        """All rows, where they are in memory."""
        return self.csr if self.array is None else self.array


def as_rows(X: Any) -> Rows:
    """Return the rows of an array, sparse or not, a `RowSource` or a Dask array.

    In blocks, of shape (n_rows, n_features), in float32 or float64. Those of a Dask
    array stay on the workers of the current cluster.
    """
    if is_dask_array(X):
        from mdec.rows.dask import check_dask_array, place_blocks

        check_dask_array(X)
        executor, blocks = place_blocks(X, block_height(X.shape[1]))
        return Rows(executor, blocks, block_bounds(*X.shape), X.shape, X.dtype)
    if sparse.issparse(X):
        X = canonical_rows(X)
        # Blocks of sparse rows go by the numbers that they store.
        bounds = block_bounds(X.shape[0], -(-X.nnz // X.shape[0]))
    else:
        bounds = block_bounds(*X.shape)
    # Blocks are read, or cut out, when they are called.
    if isinstance(X, RowSource):
        blocks = [partial(X.read, start, stop) for start, stop in bounds]
    else:
        blocks = [partial(getitem, X, slice(*each)) for each in bounds]
    return Rows(LocalExecutor(), blocks, bounds, X.shape, X.dtype, X)


def refuse_useless(rows: Rows) -> None:
    """Raise for missing or infinite numbers, and for rows that are all equal."""
    ranges = rows.executor.values(rows.executor.map(_block_range, rows.blocks))
    low = np.min([each[0] for each in ranges], axis=0)
    high = np.max([each[1] for each in ranges], axis=0)
    if not (np.all(np.isfinite(low)) and np.all(np.isfinite(high))):
        raise ValueError(
            "the rows hold NaN or infinity; fill or drop the rows that have them."
        )
    if np.all(low == high):
        raise ValueError(
            f"all {rows.shape[0]} samples are equal, so there is nothing to cluster; "
            "check how X was read or scaled."
        )


def _block_range(block: Any) -> tuple[Array, Array]:
    rows: Any = rows_of(block)
    if sparse.issparse(rows):
        return rows.min(axis=0).toarray(), rows.max(axis=0).toarray()
    return rows.min(axis=0), rows.max(axis=0)


def digest_of_rows(rows: Rows, *, whole: bool) -> str:
    """Return a digest of the shape, the precision and every value, in hexadecimal.

    Rows in memory are taken as one piece if `whole`, else the blocks one by one, where
    they are; sparse rows always as one piece.
    """
    shape, kind, pieces = f"{rows.shape} {rows.dtype.str}", "rows ", []
    if rows.csr is not None:
        kind, pieces = "sparse ", [rows.csr.indptr, rows.csr.indices, rows.csr.data]
    elif whole and rows.array is not None:
        kind, pieces = "", [rows.array]
    total = hashlib.sha256(f"{kind}{shape}".encode())
    for piece in pieces:
        total.update(np.ascontiguousarray(piece).data)
    if not pieces:
        for each in rows.executor.map(_block_digest, rows.blocks):
            total.update(rows.executor.value(each))
    return total.hexdigest()


def _block_digest(block: Any) -> bytes:
    return hashlib.sha256(np.ascontiguousarray(rows_of(block)).data).digest()
