"""Tables of clusterings, one in each column, and consensus matrices."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.memory import MAX_BYTES
from mdec.ensemble.numbering import is_consensus_matrix
from mdec.tables.arrays import read_npy, read_parquet
from mdec.tables.budget import TableFile
from mdec.tables.cells import MISSING_CLASS, is_number, number
from mdec.tables.columns import RawTable, is_class_name, is_id_name
from mdec.tables.reading import check_ending, check_names
from mdec.tables.roles import AmbiguousTableError, find_column, leave_out
from mdec.tables.text import (
    TEXT_ENDINGS,
    ambiguous_header,
    read_sheet,
    unescape_formula,
)

# What marks samples that a clustering leaves out.
_ABSENT = MISSING_CLASS | {"null", "none", "-1", "-1.0"}

# Bytes in memory for each cell of a table of labels.
_PER_CELL = 180


def read_base_clusterings(
    path: str | os.PathLike[str],
    *,
    header: bool | None = None,
    index: bool | None = None,
    id_column: str | None = None,
    drop: Sequence[str] = (),
    column: str | None = None,
    variable: str | None = None,
    max_bytes: int = MAX_BYTES,
) -> tuple[NDArray[np.object_], list[str], list[str]]:
    """Read a table with one base clustering in each column.

    Parameters
    ----------
    path : path-like
        A text file, compressed or not, a .xlsx or a .parquet file, or "-". Labels may
        be numbers or words; empty cells, NA and -1 mark samples that a clustering
        leaves out. A first column without repetitions holds the samples' names.
    header, index : bool, default=None
        Whether the first row, or the first column, holds names; None looks.
    id_column : str, default=None
        Name of the column of the samples' names.
    drop : sequence of str, default=()
        Columns to leave out, names or shell patterns.
    column : str, default=None
        Name of the one clustering that is wanted; None takes all columns.
    variable : str, default=None
        Sheet of a workbook; None looks.
    max_bytes : int
        As in `read_table`.

    Returns
    -------
    labels : ndarray of shape (n_samples, n_members)
        Words, and None for absent samples.
    sample_names : list of str
        One name per row.
    member_names : list of str
        One name per column.
    """
    only = () if column is None else (column,)
    file = TableFile(
        Path(path),
        id_column=id_column,
        drop=drop,
        features=only,
        header=header,
        index=index,
        variable=variable,
        max_bytes=max_bytes,
    )
    raw = _read_cells(file)
    _find_members(raw, file)
    members = raw.features
    if len(raw.values) < 3 or not members:
        raise file.error(
            "needs at least three samples in rows and one base clustering in columns."
        )
    cells = [[None if _is_absent(c) else c for c in raw.text(j)] for j in members]
    labels = np.array(cells, dtype=np.object_).T
    if is_consensus_matrix(labels):
        raise file.error(
            "is a consensus matrix and no table of labels; cluster it with "
            "mdec.consensus.from_matrix, or give the clusterings it was made of, one "
            "in each column."
        )
    if raw.doubts:
        doubtful = [name for each in raw.doubts for name in each.cure["drop"]]
        cure = {"drop": doubtful} if len(members) > len(doubtful) else {}
        raise AmbiguousTableError.of(raw.doubts, file, cure)
    check_names(raw, file)
    unnamed = "clustering " if raw.columns is None else ""
    shown = [f"{unnamed}{i}" for i in range(1, len(members) + 1)]
    shown = shown if raw.columns is None else [raw.name(j) for j in members]
    return labels, raw.sample_names, shown


def _find_members(raw: RawTable, file: TableFile) -> None:
    """Find the samples' names and the clusterings, which are the features."""
    left = leave_out(raw, file)
    search = file.index is None and raw.samples is None and len(left) > 1
    if raw.ids is None and left and (file.index or search):
        named = raw.columns is not None and is_id_name(raw.name(left[0]))
        if file.index or named or len({*raw.text(left[0])}) == len(raw.values):
            raw.ids = left.pop(0)
    raw.features = left
    if file.features:
        raw.features = [find_column(raw, name, file) for name in file.features]
        return
    for j in left:
        present = [cell for cell in raw.text(j) if not _is_absent(cell)]
        # A word for a missing number is a label like others.
        sizes = [number(cell) for cell in present if is_number(cell)]
        measured = any(size % 1.0 > 0.0 for size in sizes)
        if measured or (len(present) > 10 and len(set(present)) == len(present)):
            name = raw.name(j)
            raw.doubt(
                "identifier",
                f"column {name[:60]!r} holds {len(set(present))} different values "
                f"({present[0][:20]}, ...) and no clustering; leave it out with "
                f"drop=[{name!r}], or name the samples by it with id_column={name!r}",
                drop=[name],
            )


def _is_absent(cell: str) -> bool:
    """Tell whether a cell says that a clustering leaves the sample out."""
    return cell.strip().lower() in _ABSENT


def _read_cells(file: TableFile) -> RawTable:
    """Return the cells as they are written, in columns that may have names."""
    ending, header = check_ending(file), file.header
    cure = "split the table, or give an ensemble.npz of mdec"
    if ending == ".parquet":
        raw = read_parquet(file)
        file.require_memory(_PER_CELL * raw.values.size, cure)
        raw.texts = {j: raw.text(j) for j in range(raw.values.shape[1])}
        return raw
    if ending not in (*TEXT_ENDINGS, ".xlsx"):
        raise file.error(
            "is not a table of labels that mdec reads; use text, .xlsx, .parquet or an "
            "ensemble.npz of mdec."
        )
    sheet = read_sheet(file)
    whole = list(sheet.texts(0, range(len(sheet.first))).values())
    file.require_memory(_PER_CELL * len(sheet.lines) * len(whole), cure)
    whole = [[unescape_formula(cell.strip()) for cell in cells] for cells in whole]
    columns = [column[1:] for column in whole]
    if header is None:
        some = len(sheet.lines) > 1
        header = sheet.named or (some and _first_row_is_members(sheet.first, columns))
    if header is None:
        sheet.doubts.append(ambiguous_header(sheet.first))
    if sheet.doubts:
        raise AmbiguousTableError.of(sheet.doubts, file, sheet.doubts[0].cure)
    names = [column[0] for column in whole] if header else None
    texts = dict(enumerate(columns if header else whole))
    return RawTable(np.empty((len(texts[0]), len(texts))), names, texts=texts)


def _first_row_is_members(
    first: Sequence[str], columns: Sequence[list[str]]
) -> bool | None:
    """Tell whether the first row names the clusterings; None if both may be."""
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


def read_consensus_matrix(
    path: str | os.PathLike[str],
    *,
    variable: str | None = None,
    max_bytes: int = MAX_BYTES,
) -> tuple[NDArray[np.float64], list[str]]:
    """Read a consensus matrix, with names of the samples or without.

    Parameters
    ----------
    path : path-like
        A text file, compressed or not, a .xlsx, .parquet or .npy file, or "-".
    variable, max_bytes
        As in `read_base_clusterings`.

    Returns
    -------
    matrix : ndarray of shape (n_samples, n_samples)
        The numbers, not a number where cells are empty or NA.
    sample_names : list of str
        From the first column, else from the first row, else numbers.
    """
    said: dict[str, Any] = {"variable": variable, "max_bytes": max_bytes}
    file = TableFile(Path(path), header=True, **said)
    if file.path.suffix.lower() == ".npy" and file.path.is_file():
        raw = read_npy(file)
        return raw.values.astype(np.float64), raw.sample_names
    raw = _read_cells(file)
    first, columns = raw.names, list(raw.texts.values())
    names = None if raw.samples is None else list(raw.samples)
    height, width = raw.values.shape
    # A square says by itself whether a row or a column of names stands beside it.
    whole = [[a, *b] for a, b in zip(first, columns, strict=True)]
    if width == height + 1 and all(is_number(cell) for cell in first):
        columns, names = whole, [str(i + 1) for i in range(width)]
    elif width == height + 1:
        columns, names = columns[1:], columns[0]
    elif width == height + 2:
        columns, names = whole[1:], whole[0]
    elif names is None:
        names = first
    try:
        cells = [
            [math.nan if _is_absent(c) else float(c) for c in row] for row in columns
        ]
    except ValueError:
        cells = []
    if not cells or any(len(row) != len(cells) for row in cells):
        raise file.error(
            "is not a square of numbers with at most one row and one column of names "
            "beside it."
        )
    return np.array(cells).T, names
