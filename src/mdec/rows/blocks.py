"""Rows in fixed blocks: where they are read from, and how work on them is done.

A long computation is a sequence of maps over row blocks with small sums in between.
The blocks depend on the shape of the data alone, and sums are always added in the same
order, so results do not depend on who does the work.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mdec.rows.sources import RowSource

Array = NDArray[np.floating]

# A block holds at most this many numbers, and this many rows.
BLOCK_NUMBERS = 2**24
BLOCK_ROWS = 2**16

# So many blocks in a row are reduced together, and so many partial sums at a time.
RUN = 4
FAN_IN = 4


def block_height(n_features: int) -> int:
    """Return the rows of a block, a power of two.

    Examples
    --------
    >>> block_height(64), block_height(784)
    (65536, 16384)
    """
    fitting = max(BLOCK_NUMBERS // max(n_features, 1), 1024)
    return min(BLOCK_ROWS, 2 ** (fitting.bit_length() - 1))


def block_bounds(n_rows: int, height: int) -> list[tuple[int, int]]:
    """Return the first row of each block and the one after its last.

    Examples
    --------
    >>> block_bounds(5, 2)
    [(0, 2), (2, 4), (4, 5)]
    """
    return [(start, min(start + height, n_rows)) for start in range(0, n_rows, height)]


class Worker(Protocol):
    """Does work on blocks, here or elsewhere; what it returns may be far away."""

    def call(self, func: Callable[..., Any], *args: Any) -> Any:
        """Do one piece of work."""

    def map(self, func: Callable[..., Any], blocks: Sequence[Any], *args: Any) -> Any:
        """Do the same work on every block."""

    def value(self, handle: Any) -> Any:
        """Bring a result here."""


class Here:
    """Work done at once, in this process."""

    def call(self, func: Callable[..., Any], *args: Any) -> Any:
        """Return ``func(*args)``."""
        return func(*args)

    def map(
        self, func: Callable[..., Any], blocks: Sequence[Any], *args: Any
    ) -> list[Any]:
        """Return ``func(block, *args)`` for each block."""
        return [func(block, *args) for block in blocks]

    def value(self, handle: Any) -> Any:
        """Return the result itself."""
        return handle


def ordered_sum(
    worker: Worker, func: Callable[..., Any], blocks: Sequence[Any], *args: Any
) -> Any:
    """Add up what `func` makes of runs of blocks, in an order that is always the same.

    Parameters
    ----------
    worker : Worker
        Who does it.
    func : callable
        Takes a list of blocks, then `args`, and returns an array.
    blocks : sequence
        In the order of their rows.
    *args
        Passed on.

    Returns
    -------
    object
        The worker's handle of the sum.
    """
    n_runs = -(-len(blocks) // RUN)

    def run(first: int) -> Any:
        return worker.call(func, list(blocks[first * RUN : (first + 1) * RUN]), *args)

    def total(first: int, span: int) -> Any:
        if span == 1:
            return run(first)
        # Depth first, so that few partial sums exist at a time.
        stop, step = min(first + span, n_runs), span // FAN_IN
        parts = [total(each, step) for each in range(first, stop, step)]
        return parts[0] if len(parts) == 1 else worker.call(_added, parts)

    span = 1
    while span < n_runs:
        span *= FAN_IN
    return total(0, span)


def _added(parts: list[NDArray[Any]]) -> NDArray[Any]:
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total


def blocks_of(source: RowSource) -> list[BlockReader]:
    """Return the blocks of a source, each to be read when it is needed."""
    height = block_height(source.shape[1])
    return [
        BlockReader(source, start, stop)
        for start, stop in block_bounds(source.shape[0], height)
    ]


class BlockReader:
    """One block of a source, not read yet.

    Parameters
    ----------
    source : RowSource
        Where the rows are.
    start, stop : int
        Which rows.
    """

    def __init__(self, source: RowSource, start: int, stop: int) -> None:
        self.source, self.start, self.stop = source, start, stop

    def __call__(self) -> Array:
        """Read the block."""
        return self.source.read(self.start, self.stop)


def rows_of(block: BlockReader | Array) -> Array:
    """Return the rows of a block that may not be read yet."""
    return block() if isinstance(block, BlockReader) else block


def gathered_rows(
    worker: Worker,
    blocks: Sequence[Any],
    bounds: list[tuple[int, int]],
    rows: NDArray[np.int64],
) -> Any:
    """Collect some rows from their blocks.

    Parameters
    ----------
    worker : Worker
        Who does it.
    blocks : sequence
        The row blocks.
    bounds : list of tuple
        First row of each block and the one after its last.
    rows : ndarray
        Row numbers in ascending order.

    Returns
    -------
    object
        The worker's handle of the rows in one array.
    """
    taken = []
    for block, (start, stop) in zip(blocks, bounds, strict=True):
        inside = rows[np.searchsorted(rows, start) : np.searchsorted(rows, stop)]
        taken.append(worker.call(_taken, block, inside - start))
    return worker.call(np.concatenate, taken)


def _taken(block: BlockReader | Array, rows: NDArray[np.int64]) -> Array:
    return rows_of(block)[rows]


def checked_rows(worker: Worker, blocks: list[Any]) -> bool:
    """Raise for numbers that are missing or infinite; tell whether all rows are equal.

    Parameters
    ----------
    worker : Worker
        Who reads the blocks.
    blocks : list
        The row blocks.

    Returns
    -------
    bool
        True if there is nothing to tell rows apart.
    """
    ranges = [worker.value(each) for each in worker.map(_block_range, blocks)]
    low = np.min([each[0] for each in ranges], axis=0)
    high = np.max([each[1] for each in ranges], axis=0)
    if not (np.all(np.isfinite(low)) and np.all(np.isfinite(high))):
        raise ValueError(
            "the rows hold NaN or infinity; fill or drop the rows that have them."
        )
    return bool(np.all(low == high))


def _block_range(block: BlockReader | Array) -> tuple[Array, Array]:
    rows = rows_of(block)
    return rows.min(axis=0), rows.max(axis=0)


def block_digest(block: BlockReader | Array) -> bytes:
    """Return a digest of every value of a block."""
    return hashlib.sha256(np.ascontiguousarray(rows_of(block)).data).digest()


def combined_digest(
    digests: Iterator[bytes] | list[bytes], shape: tuple[int, int], dtype: np.dtype[Any]
) -> str:
    """Return one digest for the shape, the precision and all blocks."""
    total = hashlib.sha256(f"rows {shape} {dtype.str}".encode())
    for digest in digests:
        total.update(digest)
    return total.hexdigest()
