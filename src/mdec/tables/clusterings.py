"""Tables with one clustering in each column, read from the files people have."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mdec.ensemble.numbering import is_consensus_matrix
from mdec.tables.door import MAX_BYTES, Door, Refused, shown_name
from mdec.tables.frames import read_parquet, sheet_columns
from mdec.tables.headers import first_row_is_members
from mdec.tables.raw import RawTable, is_number
from mdec.tables.reading import checked_ending, sample_names
from mdec.tables.roles import Wishes, absent, find_member_roles, raise_doubts
from mdec.tables.text import (
    TEXT_ENDINGS,
    doubtful_header,
    read_back,
    read_sheet,
    text_columns,
)


def read_base_clusterings(
    path: str | os.PathLike[str],
    *,
    header: bool | None = None,
    index: bool | None = None,
    id_column: str | None = None,
    drop: Sequence[str] = (),
    column: str | None = None,
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
    source = Path(path)
    door = Door(shown_name(source), max_bytes)
    names, columns, samples = label_columns(source, door, header)
    only = () if column is None else (column,)
    wishes = Wishes(None, id_column, tuple(drop), only, index)
    roles = find_member_roles(names, columns, wishes, door, indexed=samples is not None)
    members = roles.features
    if len(columns[0]) < 3 or not members:
        raise Refused(
            f"{door.name!r} needs at least three samples in rows and one base "
            "clustering in columns."
        )
    if _is_consensus_matrix([columns[j] for j in members]):
        raise Refused(
            f"{door.name!r} is a consensus matrix and no table of labels; cluster it "
            "with --matrix and --k, or give the clusterings it was made of, one in "
            "each column."
        )
    raise_doubts(roles, door)
    cells = [[None if absent(c) else c for c in columns[j]] for j in members]
    labels = np.array(cells, dtype=np.object_).T
    raw = RawTable(labels, names, texts=dict(enumerate(columns)), samples=samples)
    found = sample_names(raw, roles, door.name)
    shown = [f"clustering {j + 1}" for j in range(len(members))]
    if names is not None:
        shown = [names[j] for j in members]
    return labels, found, shown


def _is_consensus_matrix(columns: list[list[str]]) -> bool:
    if any(len(cells) != len(columns) for cells in columns):
        return False
    if not all(is_number(cell) for cells in columns for cell in cells):
        return False
    matrix = np.array([[float(c or "nan") for c in cells] for cells in columns])
    return is_consensus_matrix(matrix)


def label_columns(
    source: Path, door: Door, header: bool | None
) -> tuple[list[str] | None, list[list[str]], Sequence[str] | None]:
    """Return names, cells by column, and names of the rows where they stand apart."""
    ending = checked_ending(source, door)
    if ending == ".parquet":
        raw = read_parquet(source, door)
        return (
            raw.columns,
            [raw.text(j) for j in range(raw.values.shape[1])],
            raw.samples,
        )
    if ending == ".xlsx":
        first, columns = sheet_columns(source, door, "")
        sure = False
    elif ending in TEXT_ENDINGS and ending != ".gct":
        sheet = read_sheet(source, door)
        found = text_columns(sheet, sheet.lines, range(len(sheet.first)))
        columns = [found[j][1:] for j in range(len(sheet.first))]
        first, sure = sheet.first, sheet.named
    else:
        raise Refused(
            f"{door.name!r} is no table of labels that mdec reads; use text, .xlsx, "
            ".parquet, or an ensemble.npz of mdec."
        )
    columns = [[cell.strip() for cell in column] for column in columns]
    if header is None:
        header = sure or (bool(columns[0]) and first_row_is_members(first, columns))
    if header is None:
        raise doubtful_header(door, first)
    if header:
        return [read_back(cell.strip()) for cell in first], columns, None
    whole = [[a.strip(), *b] for a, b in zip(first, columns, strict=True)]
    return None, whole, None
