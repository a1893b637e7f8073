"""Tables of clusterings, one in each column, and consensus matrices."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.memory import MAX_BYTES
from mdec.ensemble.numbering import is_consensus_matrix
from mdec.tables.arrays import read_columns, read_npy
from mdec.tables.budget import TableFile
from mdec.tables.cells import MISSING_CLASS, is_number, number
from mdec.tables.columns import RawTable, is_id_name
from mdec.tables.reading import check_ending, check_names
from mdec.tables.roles import ambiguity, find_column, leave_out
from mdec.tables.text import TEXT_ENDINGS, read_text

# What marks samples that a clustering leaves out.
_ABSENT = MISSING_CLASS | {"null", "none", "-1", "-1.0"}

# Bytes in memory for each cell of a table of labels.
_PER_CELL = 180


def read_base_clusterings(
    path: str | os.PathLike[str], *, column: str | None = None, **options: Any
) -> tuple[NDArray[np.object_], list[str], list[str]]:
    """Read a table with one base clustering in each column.

    Parameters
    ----------
    path : path-like
        A text file, compressed or not, a .xlsx or a .parquet file, or "-". Labels may
        be numbers or words; empty cells, NA and -1 mark samples that a clustering
        leaves out. A first column without repetitions holds the samples' names.
    column : str, default=None
        Name of the one clustering that is wanted; None takes all columns.
    **options
        Whichever of header, index, id_column, drop, variable and max_bytes is given,
        as in `read_table`.

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
    file = TableFile(Path(path), features=only, **options)
    raw = _read_columns(file)
    raw.texts = {j: [c.strip() for c in raw.text(j)] for j in range(len(raw.names))}
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
        raise ambiguity(file, [each.clause for each in raw.doubts], cure)
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


def _read_columns(file: TableFile) -> RawTable:
    """Return columns of labels or of numbers, which may have names."""
    ending = check_ending(file)
    if ending == ".parquet":
        raw = read_columns(file)
    elif ending in (*TEXT_ENDINGS, ".xlsx"):
        raw = read_text(file, as_written=True)
    else:
        raise file.error(
            "is not a table of labels that mdec reads; use text, .xlsx, .parquet or an "
            "ensemble.npz of mdec."
        )
    file.require_memory(_PER_CELL * raw.values.size)
    if raw.doubts:
        clauses = [each.clause for each in raw.doubts]
        raise ambiguity(file, clauses, raw.doubts[0].cure)
    return raw


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
    raw = _read_columns(file)
    first, values = raw.names, raw.values
    names = first if raw.samples is None else raw.sample_names
    height, width = values.shape
    # A square says by itself whether a row or a column of names stands beside it.
    headed = width == height + 1 and not all(map(is_number, first))
    if width > height and not headed and all(map(is_number, first[1:])):
        top = [number(each) if is_number(each) else math.nan for each in first]
        values = np.vstack([top, values])
        names = [str(i + 1) for i in range(width)]
    if headed or width == height + 2:
        names, values = [first[0], *raw.text(0)][-len(values) :], values[:, 1:]
    numbers = raw.words <= {0} if values.shape[1] < width else not raw.words
    if not numbers or values.shape[0] != values.shape[1]:
        raise file.error(
            "is not a square of numbers with at most one row and one column of names "
            "beside it."
        )
    return values, names
