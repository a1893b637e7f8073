"""What a column of numbers looks like: a feature, an identifier, or known classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mdec.tables.headers import ENOUGH, is_class_name, is_id_name
from mdec.tables.raw import RawTable

# Columns that are looked at to tell what is usual in a table.
_LOOKED_AT = 200
_MOST_CLASSES = 30


def is_whole(values: NDArray[np.floating]) -> bool:
    """Tell whether all numbers of a column that are there are whole."""
    present = _present(values)
    return present.size > 0 and bool((present == np.rint(present)).all())


def _present(values: NDArray[np.floating]) -> NDArray[np.floating]:
    return values[~np.isnan(values)] if values.dtype.kind == "f" else values


def looks_like(raw: RawTable, name: str, column: int, rest: list[int]) -> str:
    """Return what a column of numbers is rather than a feature, "" if it is one."""
    values = raw.values[:, column]
    if raw.columns and is_id_name(name) and is_whole(values):
        return "identifier"
    if raw.columns and is_class_name(name) and _is_coded(values, named=True):
        return "classes"
    if _counts_rows(values, 3 if raw.columns else ENOUGH):
        return "identifier"
    if column == rest[0] and _leads(raw, rest):
        return "identifier"
    if column in (rest[0], rest[-1]) and _alone_coded(raw, column, rest):
        return "classes"
    return ""


def _looked_at(columns: list[int]) -> list[int]:
    return columns[:: max(1, len(columns) // _LOOKED_AT)]


def _counts_rows(values: NDArray[np.floating], enough: int) -> bool:
    """Tell whether a column is 0, 1, 2, ... or 1, 2, 3, ..."""
    if len(values) < enough or values[0] not in (0, 1) or values[1] != values[0] + 1:
        return False
    return bool((values == values[0] + np.arange(len(values))).all())


def _like_ids(values: NDArray[np.floating]) -> bool:
    return (
        len(values) >= ENOUGH
        and is_whole(values)
        and np.unique(values).size == len(values)
    )


def _leads(raw: RawTable, rest: list[int]) -> bool:
    """Tell whether the first column is a list of identifiers and no feature."""
    values = raw.values[:, rest[0]]
    if not _like_ids(values):
        return False
    steps = np.sign(np.diff(values.astype(np.float64)))
    if abs(steps.sum()) == steps.size:
        return True
    others = [raw.values[:, j] for j in _looked_at(rest[1:])]
    if not others or any(_like_ids(each) for each in others):
        return False
    return sum(is_whole(each) for each in others) < len(others) / 2


def _is_coded(values: NDArray[np.floating], *, named: bool) -> bool:
    """Tell whether whole numbers are few enough to be classes."""
    if not is_whole(values):
        return False
    present = _present(values)
    codes, sizes = np.unique(present, return_counts=True)
    few = 2 <= codes.size <= min(_MOST_CLASSES, max(2, present.size // 3))
    if named or not few:
        return bool(few)
    in_order = codes[0] in (0, 1) and bool((np.diff(codes) == 1).all())
    return bool(sizes.min() > 1 and (in_order or codes.tolist() == [-1, 1]))


def _alone_coded(raw: RawTable, column: int, rest: list[int]) -> bool:
    """Tell whether a column at either end holds codes where the others do not."""
    if not _is_coded(raw.values[:, column], named=False) or len(rest) < 2:
        return False
    others = _looked_at([j for j in rest if j != column])
    coded = sum(_is_coded(raw.values[:, j], named=True) for j in others)
    return coded <= 0.1 * len(others)


def never_repeating(raw: RawTable, columns: list[int]) -> list[int]:
    """Return the columns of whole numbers that never repeat, if these are rare."""
    looked_at = _looked_at(columns)
    found = [j for j in looked_at if _like_ids(raw.values[:, j])]
    return found if len(found) <= max(1.0, 0.05 * len(looked_at)) else []
