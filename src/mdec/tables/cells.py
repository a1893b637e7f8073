"""The cells of a table: numbers and their signs, missing ones, dates and categories."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.resources import files
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

WORDS = tomllib.loads((files("mdec.tables") / "words.toml").read_text("utf-8"))
MISSING_CLASS = frozenset(WORDS["missing"]["classes"])
MISSING = MISSING_CLASS.union(WORDS["missing"]["numbers"])

# More different words are names or free text.
_MOST_VALUES = 30

# Ways to write dates; the first, without a form, is that of ISO.
_CLOCKS = WORDS["dates"]["clocks"]
_DAYS = product(WORDS["dates"]["days"], WORDS["dates"]["times"])
_DATES = ("", *_CLOCKS, *map("".join, _DAYS))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Currencies, shares and units beside numbers, and signs between their thousands.
_MEASURE = re.compile(
    r"(?P<sign>[+\u2212-]?)(?P<before>[$\u20ac\xa3\xa5\u20b9]|[A-Z]{3}\s)?\s?"
    r"(?P<number>[+\u2212-]?[.,]?\d[\d.,'\u2019 \xa0\u202f]*?)"
    r"(?P<after>\s?[%\u2030$\u20ac\xa3\xa5\u20b9]|"
    r"\s?\xb0?[A-Za-z\xb5\u03bc]{1,8}[\xb2\xb3]?(/[\w.]{1,8})?)?"
)
_GROUPED = r"[1-9]\d{0,2}([%s'\u2019 \xa0\u202f])\d{3}(\1\d{3})*(%s\d+)?"
_THOUSANDS = {
    ".": re.compile(_GROUPED % (",", r"\.")),
    ",": re.compile(_GROUPED % (r"\.", ",")),
}


def number(cell: str, decimal: str = ".") -> float:
    """Return the number in a cell of text, NaN for a missing one.

    Raises
    ------
    ValueError
        If the cell holds something else; Python's 1_000 is not a number in a table.

    Examples
    --------
    >>> number("1e-3"), number("2,5", ","), number("NA")
    (0.001, 2.5, nan)
    """
    word = cell.strip().replace("\N{MINUS SIGN}", "-")
    if word.lower() in MISSING:
        return math.nan
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


def plain_numbers(
    cells: Sequence[str], decimal: str = ".", *, units: bool = True
) -> list[float] | None:
    """Return numbers without the signs beside them and between their thousands.

    Parameters
    ----------
    cells : sequence of str
        As they are written.
    decimal : str
        Their decimal point.
    units : bool, default=True
        Whether they may have letters after them.

    Returns
    -------
    list of float or None
        None unless all have the same currency, share or unit, or none of them, and
        signs between their thousands are in the right places; parentheses are minus.

    Examples
    --------
    >>> plain_numbers(["23,341", "980", "1,200,000.5"])
    [23341.0, 980.0, 1200000.5]
    >>> plain_numbers(["$5", "($1,700)", ""]), plain_numbers(["1,5 cm", "NA"], ",")
    ([5.0, -1700.0, nan], [1.5, nan])
    >>> plain_numbers(["23,3", "980"]) is plain_numbers(["1 cm", "1 kg"]) is None
    True
    """
    found, signs = [], set()
    for word in (cell.strip() for cell in cells):
        if word.lower() in MISSING:
            found.append(math.nan)
            continue
        inside = re.fullmatch(r"\((.+)\)", word)
        match = _MEASURE.fullmatch(f"-{inside[1]}" if inside else word)
        if match is None or re.match(r"0\d", match["number"]):
            return None
        size = match["number"]
        if _THOUSANDS[decimal].fullmatch(size.lstrip("+\u2212-")):
            size = re.sub(rf"[^\d{decimal}+\u2212-]", "", size)
        if not is_number(size, decimal):
            return None
        signs.add((match["before"], match["after"]))
        found.append(number(match["sign"] + size, decimal))
    after = next(iter(signs))[1] if len(signs) == 1 else None
    lettered = after is not None and after.strip()[-1].isalpha()
    return found if len(signs) == 1 and (units or not lettered) else None


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


def is_missing(cell: str) -> bool:
    """Tell whether a cell of words says that there is none."""
    return cell.strip().lower() in MISSING_CLASS


def kind_of_words(cells: Sequence[str]) -> str:
    """Tell what a column of words holds.

    Parameters
    ----------
    cells : sequence of str
        As they are written.

    Returns
    -------
    {"dates", "categories", "mixed", "text"}
        Categories are two to thirty different words, on average of four samples each;
        in mixed text some cells are numbers.

    Examples
    --------
    >>> kind_of_words(["2024-01-31", "2024-02-01"]), kind_of_words(["a", "b", "a", "a"])
    ('dates', 'categories')
    >>> kind_of_words(["TP53", "MYC", "EGFR"]), kind_of_words(["TP53", "1.5", "2"])
    ('text', 'mixed')
    """
    if parse_dates(cells) is not None:
        return "dates"
    present = [cell.strip() for cell in cells if not is_missing(cell)]
    n_words = len(set(present))
    if 1 < n_words <= min(_MOST_VALUES, max(2, len(present) // 4), len(present) - 1):
        return "categories"
    return "mixed" if any(is_number(c) for c in cells if c.strip()) else "text"


def parse_dates(cells: Sequence[str]) -> NDArray[np.float64] | None:
    """Return the dates in cells of text as days since 1970.

    All are written in one way; 3/4/2024 is the third of April unless another cell rules
    that out. NaN where a cell is missing; None if one is no date, or all are missing.

    Examples
    --------
    >>> parse_dates(["2.1.1970", "", "3.1.1970 12:00"]) is None
    True
    >>> parse_dates(["2.1.1970", "", "11.1.1970"])
    array([ 1., nan, 10.])
    """
    words = [cell.strip() for cell in cells]
    different = {word for word in words if word.lower() not in MISSING}
    if not different or not all(re.search(r"\d", word) for word in different):
        return None
    for form in _DATES:
        try:
            days = {word: _parse_day(word, form) for word in different}
        except ValueError:
            continue
        return np.array([days.get(word, math.nan) for word in words])
    return None


def _parse_day(word: str, form: str) -> float:
    """Return a date as days since 1970; one without a form is written as ISO says."""
    clock = form in _CLOCKS
    # 1:2 is a ratio and no time of the day.
    usual = r"\d?\d:\d\d(:\d\d)?" if clock else r"\d{4}-\d\d-\d\d.*"
    if (clock or not form) and not re.fullmatch(usual, word):
        raise ValueError(f"{word!r} is not a date")
    found = datetime.strptime(word, form) if form else datetime.fromisoformat(word)
    known = found if found.tzinfo else found.replace(tzinfo=UTC)
    seconds = (known - _EPOCH).total_seconds()
    return (seconds % 86_400.0 if clock else seconds) / 86_400.0


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


def class_names(cells: Sequence[str]) -> NDArray[np.str_]:
    """Return classes as text, "" where there is none.

    Examples
    --------
    >>> class_names(["a", " NA", "", "none"]).tolist()
    ['a', '', '', 'none']
    >>> class_names(["1.0", "nan", "2.0"]).tolist()
    ['1', '', '2']
    """
    words = ["" if is_missing(cell) else cell.strip() for cell in cells]
    if all(re.fullmatch(r"-?\d+\.0|", word) for word in words):
        # Numbers beside missing ones, as pandas writes them.
        words = [word.removesuffix(".0") for word in words]
    return np.array(words, dtype=str)
