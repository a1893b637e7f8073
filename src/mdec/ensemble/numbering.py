"""Labels as cluster numbers, a user's own among them, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

# What NumPy makes of -1, NaN and None in an array of strings.
_ABSENT_WORDS = ("-1", "-1.0", "nan", "None", "<NA>", "")


def numbered_columns(labels: ArrayLike) -> NDArray[np.int32]:
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
    columns = [_numbered(table[:, m], m) for m in range(table.shape[1])]
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


def _numbered(column: NDArray[Any], index: int) -> NDArray[np.int32]:
    """Number the clusters of one column from 0, absent samples as -1."""
    if column.dtype.kind in "SU":
        absent = np.isin(np.char.strip(column.astype(str)), _ABSENT_WORDS)
    elif column.dtype == object:
        absent = np.array([_is_absent(value) for value in column], dtype=bool)
    else:
        absent = (column != column) | (column == -1)
    _check_whole(column[~absent], index)
    if absent.all():
        raise ValueError(
            f"base clustering {index} clusters no sample; remove that column."
        )
    present = column[~absent]
    if present.dtype == object:
        # Numbers and strings have no common order.
        present = np.array([f"{type(value).__name__} {value}" for value in present])
    return _from_zero(present, absent)


def renumbered_columns(labels: NDArray[np.int32]) -> NDArray[np.int32]:
    """Number the clusters that are left in some rows of labels from 0 again.

    Examples
    --------
    >>> renumbered_columns(np.array([[2, 0], [4, -1], [2, 1]], dtype=np.int32))
    array([[ 0,  0],
           [ 1, -1],
           [ 0,  1]], dtype=int32)
    """
    columns = [_from_zero(column[column >= 0], column < 0) for column in labels.T]
    return np.stack(columns, axis=1)


def check_numbered(labels: NDArray[np.int32]) -> None:
    """Raise unless every column numbers its clusters as samples can fill them."""
    if labels.ndim != 2 or 0 in labels.shape:
        raise ValueError("labels are no table")
    greatest = labels.max(axis=0)
    if labels.min() < -1 or greatest.min() < 0 or greatest.max() >= len(labels):
        raise ValueError("labels are no cluster numbers")


def _from_zero(present: NDArray[Any], absent: NDArray[np.bool_]) -> NDArray[np.int32]:
    labels = np.full(absent.shape, -1, dtype=np.int32)
    labels[~absent] = np.unique(present, return_inverse=True)[1]
    return labels


def _check_whole(present: NDArray[Any], index: int) -> None:
    """Raise if a column holds measurements: no clustering has cluster 0.37."""
    measured: Iterable[Any] = ()
    words = [each for each in present.ravel() if isinstance(each, str)]
    if words and len(words) == present.size:
        _check_words(words, index)
    if present.dtype.kind == "f":
        measured = present[present != np.rint(present)][:1]
    elif present.dtype == object:
        fractions = (each for each in present if isinstance(each, float))
        measured = (each for each in fractions if not each.is_integer())
    for value in measured:
        raise ValueError(
            f"base clustering {index} holds {value:.4g} and no labels; give whole "
            "numbers or strings, or cluster a table of measurements with mdec.MDEC."
        )


def _check_words(words: list[str], index: int) -> None:
    """Raise if words are numbers all, and some of them are not whole."""
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        return
    fractions = (n for n in numbers if math.isfinite(n) and not n.is_integer())
    for value in fractions:
        raise ValueError(
            f"base clustering {index} holds the word {str(value)!r} and no labels; "
            "cluster a table of measurements with mdec.MDEC, and spell names that "
            "look like numbers otherwise, such as 'c1.5'."
        )


def _is_absent(value: Any) -> bool:
    # pd.NA answers no comparison; NaN is the only value that differs from itself.
    if value is None or type(value).__name__ == "NAType":
        return True
    return bool(value != value or value == -1)
