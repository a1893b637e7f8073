"""Readers of text tables: separators, names of rows and columns, bad cells."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mdec._support.memory import require_memory
from mdec.tables.binary import RawTable

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "#n/a"})
INDEX_NAMES = frozenset({"", "id", "index", "name", "sample", "sample_id", "sampleid"})

# A parsed row of text keeps about this many bytes for each byte of the file.
_TEXT_OVERHEAD = 40


def is_number(cell: str) -> bool:
    """Tell whether a cell of text is a number, missing ones included.

    Examples
    --------
    >>> is_number("1e-3"), is_number("NA"), is_number("TP53")
    (True, True, False)
    """
    if cell.strip().lower() in MISSING:
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def read_text(
    path: Path,
    *,
    transpose: bool,
    label_column: str | None,
    header: bool | None,
    index: bool | None,
) -> RawTable:
    """Read a text table; what is not said about names is looked for.

    Parameters
    ----------
    path : Path
        The file.
    transpose : bool
        Whether features are in rows.
    label_column : str or None
        Name of the column of known classes.
    header, index : bool or None
        Whether the first row, or the first column, holds names; None looks.

    Returns
    -------
    RawTable
        Samples in rows.
    """
    rows = text_rows(path)
    even(path, rows)
    if len(rows[0]) == 1:
        raise ValueError(
            f"{path.name!r} has one column and needs two or more; check its separator."
        )
    if transpose:
        rows = [list(column) for column in zip(*rows, strict=True)]
    if header is None:
        header = not all(is_number(cell) for cell in rows[0][1:])
    names = [cell.strip() for cell in rows.pop(0)] if header else None
    if not rows:
        raise ValueError(f"{path.name!r} has a row of names and no numbers below it.")
    return _text_columns(path, rows, names, label_column, index)


def even(path: Path, rows: list[list[str]]) -> None:
    """Give a short first row its missing name; refuse rows of different lengths."""
    if len(rows) > 1 and len(rows[0]) == len(rows[1]) - 1:
        # write.table of R leaves out the name of the column of row names.
        rows[0].insert(0, "")
    widths = [len(row) for row in rows]
    if len(set(widths)) > 1:
        odd = next(i for i, width in enumerate(widths) if width != widths[0])
        raise ValueError(
            f"{path.name!r} has {widths[0]} cells in its first row and {widths[odd]} "
            f"in row {odd + 1}; every row needs the same number."
        )


def text_rows(path: Path) -> list[list[str]]:
    """Return the cells of a text file row by row; blank rows are left out."""
    size = path.stat().st_size
    require_memory(
        _TEXT_OVERHEAD * size,
        f"reading {path.name!r} as text",
        "save it as .npy or .parquet, which need far less",
    )
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path.name!r} is not UTF-8 text; save it again as UTF-8."
        ) from error
    first = text.lstrip().partition("\n")[0]
    separator = max("\t,;", key=first.count)
    if path.suffix.lower() != ".csv" and "\t" in first:
        separator = "\t"
    try:
        rows = [
            row
            for row in csv.reader(text.splitlines(), delimiter=separator)
            if any(cell.strip() for cell in row)
        ]
    except csv.Error as error:
        raise ValueError(f"{path.name!r} is not a table: {error}.") from error
    if not rows:
        raise ValueError(f"{path.name!r} is empty.")
    return rows


def _text_columns(
    path: Path,
    rows: list[list[str]],
    names: list[str] | None,
    label_column: str | None,
    index: bool | None,
) -> RawTable:
    """Tell the columns of names, classes and numbers apart."""
    shown = names or [str(column + 1) for column in range(len(rows[0]))]
    labels = None
    if label_column is not None:
        if label_column not in shown:
            raise ValueError(
                f"{path.name!r} has no column {label_column!r}; its first columns are "
                f"{', '.join(map(repr, shown[:5]))}."
            )
        place = shown.index(label_column)
        labels = [row.pop(place).strip() for row in rows]
        shown = shown[:place] + shown[place + 1 :]
    if index is None:
        named = names is not None and bool(shown) and shown[0].lower() in INDEX_NAMES
        index = bool(shown) and (named or not all(is_number(row[0]) for row in rows))
    samples = [row.pop(0).strip() for row in rows] if index else None
    features = shown[1:] if index else shown
    values = _numbers(path, rows, features, samples)
    return RawTable(values, samples, features if names else None, labels)


def _numbers(
    path: Path,
    rows: list[list[str]],
    features: list[str],
    samples: list[str] | None,
) -> NDArray[np.float64]:
    """Convert cells to numbers; the first one that is none is named."""
    try:
        if any("_" in cell for row in rows for cell in row):
            raise ValueError("Python's 1_000 is no number in a table")
        return np.array(rows, dtype=np.float64)
    except ValueError as error:
        if not any(is_number(cell) for row in rows for cell in row):
            raise ValueError(f"{path.name!r} holds no numbers.") from error
        for number, row in enumerate(rows):
            for feature, cell in zip(features, row, strict=True):
                if cell.strip().lower() in MISSING or not is_number(cell):
                    sample = samples[number] if samples else str(number + 1)
                    raise ValueError(_bad_cell(path, sample, feature, cell)) from error
        raise ValueError(f"{path.name!r} holds cells that are no numbers.") from error


def _bad_cell(path: Path, sample: str, feature: str, cell: str) -> str:
    where = f"{path.name!r}, sample {sample!r}, column {feature!r}"
    if cell.strip().lower() in MISSING:
        return f"{where}: the value is missing; fill it in or leave the sample out."
    return (
        f"{where}: {cell.strip()[:40]!r} is not a number; remove that column, or "
        "name it with --label-column (label_column) if it holds known classes."
    )
