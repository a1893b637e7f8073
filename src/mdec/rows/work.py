"""Work on blocks, here or elsewhere, and sums whose order is always the same."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

# So many blocks in a row are reduced together, and so many partial sums at a time.
RUN = 4
FAN_IN = 4


class Executor(Protocol):
    """Does work on blocks, here or elsewhere; what it returns may be far away."""

    def call(self, func: Callable[..., Any], *args: Any) -> Any:
        """Do one piece of work."""

    def map(
        self, func: Callable[..., Any], blocks: Sequence[Any], *args: Any
    ) -> list[Any]:
        """Do the same work on every block."""
        return [self.call(func, block, *args) for block in blocks]

    def value(self, handle: Any) -> Any:
        """Bring a result here."""

    def values(self, handles: Sequence[Any]) -> list[Any]:
        """Bring several results here."""
        return [self.value(each) for each in handles]


class LocalExecutor(Executor):
    """Work done at once, in this process."""

    def call(self, func: Callable[..., Any], *args: Any) -> Any:
        """Return ``func(*args)``."""
        return func(*args)

    def value(self, handle: Any) -> Any:
        """Return the result itself."""
        return handle


def ordered_sum(
    executor: Executor, func: Callable[..., Any], blocks: Sequence[Any], *args: Any
) -> Any:
    """Add up what `func` makes of runs of blocks, in an order that is always the same.

    `func` takes a list of blocks, then `args`, and returns an array. The result is the
    executor's handle of the sum.
    """
    n_runs = -(-len(blocks) // RUN)

    def run(first: int) -> Any:
        return executor.call(func, list(blocks[first * RUN : (first + 1) * RUN]), *args)

    def total(first: int, span: int) -> Any:
        if span == 1:
            return run(first)
        # Depth first, so that few partial sums exist at a time.
        stop, step = min(first + span, n_runs), span // FAN_IN
        parts = [total(each, step) for each in range(first, stop, step)]
        return parts[0] if len(parts) == 1 else executor.call(_add, parts)

    return total(0, _span(n_runs))


def most_parts(n_blocks: int) -> int:
    """Return how many partial sums, with the new one, `ordered_sum` has at once.

    Examples
    --------
    >>> most_parts(4), most_parts(16), most_parts(64)
    (1, 5, 8)
    """
    n_runs = -(-n_blocks // RUN)

    def most(n_runs: int, span: int) -> int:
        if span == 1:
            return 1
        step = span // FAN_IN
        below = [min(step, n_runs - first) for first in range(0, n_runs, step)]
        added = len(below) + 1 if len(below) > 1 else 1
        return max(added, *(i + most(size, step) for i, size in enumerate(below)))

    return most(n_runs, _span(n_runs))


def _span(n_runs: int) -> int:
    span = 1
    while span < n_runs:
        span *= FAN_IN
    return span


def _add(parts: list[NDArray[Any]]) -> NDArray[Any]:
    return functools.reduce(operator.iadd, parts[1:], parts[0].copy())


def gather_rows(
    executor: Executor,
    blocks: Sequence[Any],
    bounds: list[tuple[int, int]],
    rows: NDArray[np.int64],
) -> Any:
    """Collect some rows, given in ascending order, from their blocks.

    Returns the executor's handle of the rows in one array.
    """
    taken = []
    for block, (start, stop) in zip(blocks, bounds, strict=True):
        inside = rows[np.searchsorted(rows, start) : np.searchsorted(rows, stop)]
        taken.append(executor.call(_take, block, inside - start))
    return executor.call(_stack, taken)


def _take(block: Any, rows: NDArray[np.int64]) -> Any:
    return rows_of(block)[rows]


def _stack(parts: list[Any]) -> Any:
    """Put blocks of rows on top of each other, sparse ones as CSR."""
    if sparse.issparse(parts[0]):
        return sparse.vstack(parts, format="csr")
    return np.concatenate(parts)


def rows_of(block: Any) -> NDArray[Any]:
    """Return the rows of a block that may not be read yet."""
    rows: NDArray[Any] = block() if callable(block) else block
    return rows
