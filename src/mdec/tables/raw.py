"""What readers hand over: columns of numbers and of words, not yet given a role."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "#n/a", "<na>"})

# A class may well be called "none".
MISSING_CLASS = MISSING - {"none", "null"}

# Columns that are no features are kept to be shown, at most this many.
MAX_BESIDE = 12


@dataclass
class RawTable:
    """The columns of a table.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_columns)
        The numbers, NaN where they are missing and in columns of words.
    columns : list of str or None
        Names of the columns, where the file has them.
    words : set of int
        Columns that do not hold numbers only.
    texts : dict of int to list of str
        Columns as they are written: those of words, and those whose numbers may turn
        out to be names or classes. Empty cells are "".
    samples : sequence of str or None
        Names of the rows that stand outside the columns.
    labels : sequence or None
        Known classes that stand outside the columns; None and NaN where missing.
    beside : dict of str to list of str
        Columns that stand beside the table and are neither names nor known classes.
    settled : bool
        Whether the format itself says that every column of numbers is a feature.
    layer : tuple or None
        Of AnnData: the name of the layer, None for X, and keys of uns that tell what
        the values are.
    """

    values: NDArray[Any]
    columns: list[str] | None = None
    words: set[int] = field(default_factory=set)
    texts: dict[int, list[str]] = field(default_factory=dict)
    samples: Sequence[str] | None = None
    labels: Sequence[Any] | NDArray[Any] | None = None
    beside: dict[str, list[str]] = field(default_factory=dict)
    settled: bool = False
    layer: tuple[str | None, tuple[str, ...]] | None = None

    def text(self, column: int) -> list[str]:
        """Return a column as it is written, "" where a value is missing."""
        if column in self.texts:
            return self.texts[column]
        return [as_text(value) for value in self.values[:, column].tolist()]


def number(cell: str, decimal: str = ".") -> float:
    """Return the number in a cell of text, NaN for a missing one.

    Raises
    ------
    ValueError
        If the cell holds something else; Python's 1_000 is no number in a table.

    Examples
    --------
    >>> number("1e-3"), number("2,5", ","), number("NA")
    (0.001, 2.5, nan)
    """
    word = cell.strip()
    if word.lower() in MISSING:
        return float("nan")
    if "_" in word or (decimal == "," and "." in word):
        raise ValueError(f"{word!r} is not a number")
    return float(word.replace(decimal, "."))


def is_number(cell: str, decimal: str = ".") -> bool:
    """Tell whether a cell of text is a number, missing ones included.

    Examples
    --------
    >>> is_number("1e-3"), is_number("NA"), is_number("TP53")
    (True, True, False)
    """
    try:
        number(cell, decimal)
    except ValueError:
        return False
    return True


def as_text(value: Any) -> str:
    """Return a value as a table would write it: whole numbers without a point.

    Examples
    --------
    >>> as_text(2.0), as_text(2.5), as_text(None), as_text(float("nan")), as_text("a")
    ('2', '2.5', '', '', 'a')
    """
    # pd.NA answers no comparison.
    if value is None or type(value).__name__ == "NAType" or value != value:
        return ""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def from_texts(
    columns: Sequence[list[str]], names: list[str] | None, decimal: str = "."
) -> RawTable:
    """Make a table of columns of text; those of numbers only become numbers.

    Parameters
    ----------
    columns : sequence of list of str
        The cells.
    names : list of str or None
        Names of the columns.
    decimal : str
        Decimal point of the cells.

    Returns
    -------
    RawTable
        With the text of every column.
    """
    values = np.full((len(columns[0]) if columns else 0, len(columns)), np.nan)
    words = set()
    for place, cells in enumerate(columns):
        try:
            values[:, place] = [number(cell, decimal) for cell in cells]
        except ValueError:
            words.add(place)
    return RawTable(values, names, words, dict(enumerate(columns)))


def turned(raw: RawTable, rows: Sequence[str] | None) -> RawTable:
    """Return the table with rows and columns exchanged.

    Parameters
    ----------
    raw : RawTable
        Features in rows.
    rows : sequence of str or None
        Names of its rows.

    Returns
    -------
    RawTable
        Samples in rows, named by the columns of `raw`.
    """
    names = None if rows is None else list(rows)
    if not raw.words:
        return RawTable(raw.values.T, names, samples=raw.columns, labels=raw.labels)
    cells = [raw.text(column) for column in range(raw.values.shape[1])]
    table = from_texts([list(row) for row in zip(*cells, strict=True)], names)
    table.samples, table.labels = raw.columns, raw.labels
    return table
