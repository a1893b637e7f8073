"""Whether the first row of a table names its columns, and what such names speak of."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mdec.tables.raw import RawTable, is_number, number

# Compared in small letters, without spaces and signs.
_ID_NAME = re.compile(
    "(sample|patient|subject|participant|donor|individual|barcode|cell|row|case|obs|"
    "observation|gene|probe|probeset|feature)s?(id|ids|name|names)?|ids?|index|idx|"
    "names?|uuid|(geo)?accession|mrn|gsm|entrez(id)?|ensembl(id)?|symbol|idref"
)
_CLASS_NAME = re.compile(
    "(known)?class(es)?|labels?|targets?|y|groups?|clusters?|category|diagnosis|"
    "species|(cell|sub|tumou?r|cancer)?types?|outcome|(ground)?truth|gnd|phenotype"
)

# A run of at least so many numbers is not monotone by chance.
ENOUGH = 8


def is_id_name(name: str) -> bool:
    """Tell whether a column's name speaks of an identifier.

    Examples
    --------
    >>> [is_id_name(n) for n in ("Sample ID", "patient_id", "Unnamed: 0", "BID", "MYC")]
    [True, True, True, False, False]
    """
    word = name.strip()
    if re.fullmatch(r"(Unnamed: ?\d+)?|.+[ _.\-](id|ID|Id)|.*[a-z](ID|Id)", word):
        return True
    return _ID_NAME.fullmatch(_plain(word)) is not None


def is_class_name(name: str) -> bool:
    """Tell whether a column's name speaks of classes.

    Examples
    --------
    >>> [is_class_name(n) for n in ("Class", "cell_type", "target", "TP53")]
    [True, True, True, False]
    """
    return _CLASS_NAME.fullmatch(_plain(name)) is not None


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


def first_row_is_names(
    first: Sequence[str], below: RawTable, decimal: str = "."
) -> bool | None:
    """Tell whether the first row of a table names its columns.

    The whole row is compared with the columns below it.

    Parameters
    ----------
    first : sequence of str
        Cells of the first row.
    below : RawTable
        All other rows.
    decimal : str
        Decimal point of the cells.

    Returns
    -------
    bool or None
        None if both readings are plausible.
    """
    cells = [cell.strip() for cell in first]
    numbers = [j for j in range(len(cells)) if j not in below.words]
    if not cells[0] and all(cells[1:]) and _filled(below, 0):
        return True
    if any(cells[j] in below.texts[j] for j in below.words if cells[j]):
        return False
    if not numbers:
        return True
    worded = {j for j in numbers if not is_number(cells[j], decimal)}
    tops = [cells[j] for j in numbers if cells[j] and j not in worded]
    counted = all(re.fullmatch(r"\d+", top) for top in tops)
    distinct = len(set(tops)) == len(tops)
    if worded:
        return True if counted and distinct else None
    named = (is_id_name(cells[j]) or is_class_name(cells[j]) for j in below.words)
    if counted and distinct and any(named):
        return True
    if len(tops) < len(numbers) or not distinct or len(tops) < 2:
        return False
    row = np.array([number(top, decimal) for top in tops])
    return _like_names(row, counted, below.values[:, numbers])


def _filled(raw: RawTable, column: int) -> bool:
    if column in raw.texts:
        return all(cell.strip() for cell in raw.texts[column])
    return not np.isnan(raw.values[:, column].astype(np.float64)).any()


def _like_names(
    row: NDArray[np.float64], counted: bool, below: NDArray[np.float64]
) -> bool | None:
    """Weigh a first row of distinct numbers against the numbers below it."""
    whole = np.isnan(below) | (below == np.rint(below))
    fractions = (~whole).any(axis=0).mean() > 0.5 and not whole.all(axis=1).any()
    rising = row.size >= 4 and bool((np.diff(row) > 0.0).all())
    if rising:
        rising = bool(((np.diff(below, axis=1) > 0.0).all(axis=1)).mean() <= 0.1)
    outside = (row < _least(below)) | (row > -_least(-below))
    far = len(below) >= ENOUGH and bool(outside.mean() > 0.5)
    ordered = bool((np.diff(row) == 1.0).all()) and row[0] in (0.0, 1.0)
    if not counted:
        return None if rising and far and row.size >= ENOUGH else False
    if (fractions and (rising or far or ordered)) or (rising and (ordered or far)):
        return True
    return None if fractions or ordered or far else False


def _least(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(np.isnan(values), np.inf, values).min(axis=0)


def first_row_is_members(
    first: Sequence[str], columns: Sequence[list[str]]
) -> bool | None:
    """Tell whether the first row of a table of labels names the clusterings.

    Parameters
    ----------
    first : sequence of str
        Cells of the first row.
    columns : sequence of list of str
        The cells below it, column by column.

    Returns
    -------
    bool or None
        None if both readings are plausible.
    """
    cells = [cell.strip() for cell in first]
    if len(cells) > 1 and not cells[0] and all(columns[0]):
        return True
    start = 1 if len(cells) > 1 and len({*columns[0]}) == len(columns[0]) else 0
    tops, below = cells[start:], columns[start:]
    numbers = [all(is_number(cell) for cell in column) for column in below]
    if any(n and not is_number(t) for n, t in zip(numbers, tops, strict=True)):
        return True
    ordered = tops in ([str(i + k) for i in range(len(tops))] for k in (0, 1))
    if ordered and len(tops) > 2:
        return True if len(tops) > 3 else None
    again = [top in column for top, column in zip(tops, below, strict=True)]
    if any(again):
        return False
    if start and (is_id_name(cells[0]) or is_class_name(cells[0])):
        return True
    if len(tops) == 1:
        return True if is_class_name(tops[0]) else None
    return True
