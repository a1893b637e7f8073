"""Labels as cluster numbers, a user's own among them, and what is refused."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdec.rows.work import Executor

# What NumPy makes of -1, NaN and None in an array of strings.
_ABSENT_WORDS = ("-1", "-1.0", "nan", "None", "<NA>", "")


def number_columns(labels: ArrayLike) -> NDArray[np.int32]:
    """Number the clusters of each column from 0, or raise one sentence.

    As `mdec.Ensemble.from_labels` takes them and gives them.
    """
    table: NDArray[Any]
    if hasattr(labels, "to_numpy"):
        table = labels.to_numpy()
    elif isinstance(labels, np.ndarray):
        table = labels
    else:  # keeps numbers and strings of one list apart
        table = np.array(labels, dtype=object)
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(
            "labels must be a table of samples by base clusterings, got shape "
            f"{table.shape}; put one clustering in each column."
        )
    if is_consensus_matrix(table):
        raise ValueError(
            f"this is a consensus matrix of {len(table)} samples and no table of "
            "labels; cluster it with mdec.consensus.from_matrix, or give the "
            "clusterings it was made of, one in each column."
        )
    columns = [_number(table[:, m], m) for m in range(table.shape[1])]
    return np.stack(columns, axis=1)


def is_consensus_matrix(table: NDArray[Any]) -> bool:
    """Tell whether a table is a symmetric square from 0 to 1 with ones on its diagonal.

    Ones alone may be labels as well, and two rows are too few to tell.

    Examples
    --------
    >>> is_consensus_matrix(np.array([[1, 0, 0], [0, 1, 1], [0, 1, 1]]))
    True
    >>> is_consensus_matrix(np.array([[1, 0, 0], [0, 2, 1], [0, 1, 1]]))
    False
    """
    if table.shape[0] != table.shape[1] or len(table) < 3:
        return False
    try:
        numbers = table.astype(np.float64)
    except (TypeError, ValueError):
        return False
    within = np.nanmin(numbers, initial=1.0) >= 0.0 and numbers.max() <= 1.0
    turned = np.allclose(numbers, numbers.T) and np.allclose(np.diag(numbers), 1.0)
    return bool(within and turned and not (numbers == 1.0).all())


def _number(column: NDArray[Any], index: int) -> NDArray[np.int32]:
    """Number the clusters of one column from 0, absent samples as -1."""
    if column.dtype.kind in "SU":
        absent = np.isin(np.char.strip(column.astype(str)), _ABSENT_WORDS)
    elif column.dtype == object:
        # pd.NA answers no comparison; NaN is the only value that differs from itself.
        none = [each is None or type(each).__name__ == "NAType" for each in column]
        values = np.where(none, -1, column)
        absent = np.array([bool(each != each or each == -1) for each in values])
    else:
        absent = (column != column) | (column == -1)
    present = column[~absent]
    if present.size == 0:
        raise ValueError(
            f"base clustering {index} clusters no sample; remove that column."
        )
    _check_whole(present, index)
    if present.dtype == object:
        # Numbers and strings have no common order.
        present = np.array([f"{type(value).__name__} {value}" for value in present])
    labels = np.full(absent.shape, -1, dtype=np.int32)
    labels[~absent] = np.unique(present, return_inverse=True)[1]
    return labels


def renumber_columns(labels: NDArray[np.int32]) -> NDArray[np.int32]:
    """Number the clusters that are left in some rows of labels from 0 again.

    Examples
    --------
    >>> renumber_columns(np.array([[2, 0], [4, -1], [2, 1]], dtype=np.int32))
    array([[ 0,  0],
           [ 1, -1],
           [ 0,  1]], dtype=int32)
    """
    columns = [_number(column, m) for m, column in enumerate(labels.T)]
    return np.stack(columns, axis=1)


def clusters_in_order(labels: NDArray[np.integer]) -> NDArray[np.integer]:
    """Return the clusters of some rows in the order of their first rows.

    Examples
    --------
    >>> clusters_in_order(np.array([4, -1, 0, 4, 2]))
    array([4, 0, 2])
    """
    # The first row of each is the last that is written; -1 has the last place.
    first = np.full(int(labels.max(initial=-1)) + 2, labels.size)
    first[labels[::-1]] = np.arange(labels.size)[::-1]
    return np.argsort(first[:-1])[: np.count_nonzero(first[:-1] < labels.size)]


def rank_by_first_samples(blocks: list[NDArray[np.integer]]) -> NDArray[np.int32]:
    """Return the number of each cluster in the order of first samples.

    From the clusters of each block of rows, as `clusters_in_order` gives them; -1 for
    clusters without samples.

    Examples
    --------
    >>> rank_by_first_samples([np.array([2]), np.array([3, 0, 2])])
    array([ 2, -1,  0,  1], dtype=int32)
    """
    appearing = np.concatenate(blocks)
    rank = np.full(int(appearing.max(initial=-1)) + 1, -1, dtype=np.int32)
    order = list(dict.fromkeys(appearing.tolist()))
    rank[order] = np.arange(len(order))
    return rank


def renumber(labels: NDArray[np.integer], rank: NDArray[np.int32]) -> NDArray[np.int32]:
    """Give clusters other numbers; -1 stays what it is."""
    return np.append(rank, np.int32(-1))[labels]


def number_blocks(executor: Executor, labels: list[Any]) -> tuple[list[Any], int]:
    """Number the clusters of row blocks by first samples; return how many as well.

    The blocks are handles of the executor.
    """
    orders = executor.map(clusters_in_order, labels)
    rank = executor.value(executor.call(rank_by_first_samples, orders))
    return executor.map(renumber, labels, rank), int(rank.max(initial=-1)) + 1


def _check_whole(present: NDArray[Any], index: int) -> None:
    """Raise if a column holds measurements: no clustering has cluster 0.37."""
    numbers: list[float] = []
    words = all(isinstance(each, str) for each in present)
    if words:
        # Words that are numbers all, and some of them not whole, are measurements.
        with suppress(ValueError):
            numbers = [n for n in map(float, present) if math.isfinite(n)]
    elif present.dtype.kind == "f":
        numbers = present[present != np.rint(present)][:1].tolist()
    elif present.dtype == object:
        numbers = [each for each in present if isinstance(each, float)]
    for number in numbers:
        if not number.is_integer():
            shown = f"the word {str(number)!r}" if words else f"{number:.4g}"
            raise ValueError(
                f"base clustering {index} holds {shown} and no labels; give whole "
                "numbers or names such as 'c1.5', or cluster a table of measurements "
                "with mdec.MDEC."
            )
