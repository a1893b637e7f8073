"""Columns that are not written as plain numbers: dates, categories, thousands."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import product

import numpy as np
from numpy.typing import NDArray

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "#n/a", "<na>", "?", "."})

# A class or a category may well be called "none".
MISSING_CLASS = MISSING - {"none", "null"}

# More different words are names or free text.
_MOST_VALUES = 30

_DAYS = (
    *("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%m-%d-%Y"),
    *("%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d %b %Y", "%d-%b-%Y", "%d-%b-%y"),
    *("%b %d %Y", "%b %d, %Y", "%d %B %Y", "%B %d, %Y", "%Y-%m"),
)
_TIMES = ("", " %H:%M", " %H:%M:%S")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_THOUSANDS = {
    ".": re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?"),
    ",": re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+(,\d+)?"),
}


def kind_of_words(cells: Sequence[str]) -> str:
    """Tell what a column of words holds.

    Parameters
    ----------
    cells : sequence of str
        As they are written.

    Returns
    -------
    {"dates", "categories", "text"}
        Categories are two to thirty different words, on average of four samples each.

    Examples
    --------
    >>> kind_of_words(["2024-01-31", "2024-02-01"]), kind_of_words(["a", "b", "a", "a"])
    ('dates', 'categories')
    >>> kind_of_words(["TP53", "MYC", "EGFR"])
    'text'
    """
    if parse_dates(cells) is not None:
        return "dates"
    present = [cell.strip() for cell in cells if not is_missing(cell)]
    few = len(set(present)) <= min(_MOST_VALUES, max(2, len(present) // 4))
    few &= 1 < len(set(present)) < len(present)
    return "categories" if few else "text"


def is_missing(cell: str) -> bool:
    """Tell whether a cell of words says that there is none."""
    return cell.strip().lower() in MISSING_CLASS


def parse_dates(cells: Sequence[str]) -> NDArray[np.float64] | None:
    """Return the dates in cells of text as days since 1970.

    Parameters
    ----------
    cells : sequence of str
        As they are written, all in one way; 3/4/2024 is the third of April unless
        another cell rules that out.

    Returns
    -------
    ndarray of shape (n_cells,) or None
        NaN where a cell is missing; None if one is no date, or all are missing.

    Examples
    --------
    >>> parse_dates(["2.1.1970", "", "3.1.1970 12:00"]) is None
    True
    >>> parse_dates(["2.1.1970", "", "11.1.1970"])
    array([ 1., nan, 10.])
    """
    words = [cell.strip() for cell in cells]
    different = {word for word in words if not is_missing(word)}
    if not different or not all(re.search(r"\d", word) for word in different):
        return None
    for form in ("", *(day + time for day, time in product(_DAYS, _TIMES))):
        try:
            days = {word: _parse_day(word, form) for word in different}
        except ValueError:
            continue
        return np.array([days.get(word, math.nan) for word in words])
    return None


def _parse_day(word: str, form: str) -> float:
    """Return a date as days since 1970; one without a form is written as ISO says."""
    if not form and not re.match(r"\d{4}-\d\d-\d\d", word):
        raise ValueError(f"{word!r} is not a date")
    found = datetime.strptime(word, form) if form else datetime.fromisoformat(word)
    known = found if found.tzinfo else found.replace(tzinfo=UTC)
    return (known - _EPOCH).total_seconds() / 86_400.0


def strip_thousands(cells: Sequence[str], decimal: str = ".") -> list[str] | None:
    """Return numbers without the signs between their thousands.

    Parameters
    ----------
    cells : sequence of str
        As they are written.
    decimal : str
        Their decimal point.

    Returns
    -------
    list of str or None
        None unless some cells have such signs, and all of these in the right places.

    Examples
    --------
    >>> strip_thousands(["23,341", "980", "1,200,000.5"])
    ['23341', '980', '1200000.5']
    >>> strip_thousands(["23,3", "980"]) is None
    True
    """
    sign = "," if decimal == "." else "."
    grouped = [cell for cell in cells if sign in cell]
    if not grouped or not all(
        _THOUSANDS[decimal].fullmatch(cell.strip()) for cell in grouped
    ):
        return None
    return [cell.replace(sign, "") for cell in cells]


def encode_category(cells: Sequence[str], values: Sequence[str]) -> NDArray[np.float64]:
    """Return a column of ones and zeros for each value; a missing one has zeros.

    Examples
    --------
    >>> encode_category(["b", " a", "NA"], ["a", "b"])
    array([[0., 1.],
           [1., 0.],
           [0., 0.]])
    """
    words = np.array([cell.strip() for cell in cells])
    return (words[:, None] == np.array(list(values))).astype(np.float64)


def category_values(cells: Sequence[str]) -> list[str]:
    """Return the different words of a column, sorted; whole numbers by their size.

    Examples
    --------
    >>> category_values(["b", "a", "b", ""]), category_values(["10", "9"])
    (['a', 'b'], ['9', '10'])
    """
    found = {cell.strip() for cell in cells if not is_missing(cell)}
    numbers = all(re.fullmatch(r"-?\d+", word) for word in found)
    return sorted(found, key=int) if numbers else sorted(found)
