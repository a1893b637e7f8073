"""Consensus matrices from files."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mdec.tables.binary import read_npy
from mdec.tables.clusterings import label_columns
from mdec.tables.door import MAX_BYTES, Door, Refused, shown_name
from mdec.tables.raw import is_number
from mdec.tables.roles import absent


def read_consensus_matrix(
    path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES
) -> tuple[NDArray[np.float64], list[str]]:
    """Read a consensus matrix, with names of the samples or without.

    Parameters
    ----------
    path : path-like
        A text file, compressed or not, a .xlsx, .parquet or .npy file, or "-".
    max_bytes : int
        As in `read_table`.

    Returns
    -------
    matrix : ndarray of shape (n_samples, n_samples)
        The numbers, not a number where cells are empty or NA.
    sample_names : list of str
        From the first column, else from the first row, else numbers.
    """
    source = Path(path)
    door = Door(shown_name(source), max_bytes)
    if source.suffix.lower() == ".npy" and source.is_file():
        values = read_npy(source, door, None).values.astype(np.float64)
        return values, [str(i + 1) for i in range(len(values))]
    first, columns, samples = label_columns(source, door, header=True)
    assert first is not None
    names = None if samples is None else list(samples)
    width, height = len(columns), len(columns[0])
    # A square says by itself whether a row or a column of names stands beside it.
    if width in (height + 1, height + 2) and not (
        width == height + 1 and all(is_number(cell) for cell in first)
    ):
        names, columns, rest = columns[0], columns[1:], first[1:]
        if width == height + 2:
            names = [first[0], *names]
            columns = [[a, *b] for a, b in zip(rest, columns, strict=True)]
    elif width == height + 1:
        columns = [[a, *b] for a, b in zip(first, columns, strict=True)]
        names = [str(i + 1) for i in range(width)]
    elif names is None:
        names = first
    try:
        cells = [[math.nan if absent(c) else float(c) for c in row] for row in columns]
    except ValueError:
        cells = []
    if not cells or any(len(row) != len(cells) for row in cells):
        raise Refused(
            f"{door.name!r} is no square of numbers, beside which at most one row and "
            "one column of names may stand."
        )
    return np.array(cells).T, names
