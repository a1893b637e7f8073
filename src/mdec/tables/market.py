"""Matrix Market files, with the names that lie beside them.

SciPy's reader is not used: damaged files end its process.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec.tables.door import DAMAGED, Door, Refused, damaged, ending_of, unpacked
from mdec.tables.raw import RawTable
from mdec.tables.text import read_numbers

_FIELDS = ("real", "double", "integer", "pattern")
_MIRRORED = {"general": 0.0, "symmetric": 1.0, "skew-symmetric": -1.0}
# Bytes held for each byte of text, and for each entry.
_COPIES, _PER_ENTRY = 3, 64


def read_mtx(path: Path, door: Door, transpose: bool) -> RawTable:
    """Read a Matrix Market file, with the names that lie beside it.

    Parameters
    ----------
    path : Path
        The file, compressed or not.
    door : Door
        Weighs what its header claims.
    transpose : bool
        Whether features are in rows; barcodes beside the file tell that too.

    Returns
    -------
    RawTable
        Samples in rows.
    """
    content = unpacked(path, door, copies=_COPIES)
    try:
        values = _matrix(content, door)
    except (Refused, MemoryError, ImportError):
        raise
    except DAMAGED as error:
        raise damaged(door, "a Matrix Market file of real numbers") from error
    samples = _beside(path, door, ("barcodes", "cells"), 0)
    features = _beside(path, door, ("features", "genes"), 1)
    if samples is not None and len(samples) != len(values):
        transpose = transpose or len(samples) == values.shape[1]
    if transpose:
        values = values.T
    return RawTable(values, features, samples=samples, settled=True)


def _matrix(content: bytes, door: Door) -> NDArray[np.float64]:
    start = 0
    head: list[list[str]] = []
    while len(head) < 2:
        end = content.index(b"\n", start) + 1
        line = content[start:end].decode().strip()
        if line and (not head or not line.startswith("%")):
            head.append(line.lower().split())
        start = end
    mark, _, layout, kind, symmetry = head[0]
    sizes = [int(word) for word in head[1]]
    if mark != "%%matrixmarket" or kind not in _FIELDS or min(sizes) < 0:
        raise ValueError("not a header of real numbers")
    mirrored = _MIRRORED[symmetry]
    rows, columns = sizes[:2]
    door.admit(8 * rows * columns)
    if layout == "array":
        if mirrored or len(sizes) != 2 or kind == "pattern":
            raise ValueError("only whole arrays are read")
        cells = read_numbers(content[start:], rows * columns, 1, door)
        return cells.reshape(columns, rows).T
    entries = sizes[2]
    door.admit(_PER_ENTRY * entries, copies=1)
    width = 2 if kind == "pattern" else 3
    listed = read_numbers(content[start:], entries, width, door)
    places = listed[:, :2].astype(np.int64) - 1
    if entries and ((places < 0) | (places >= (rows, columns))).any():
        raise ValueError("an entry lies outside the matrix")
    numbers: Any = listed[:, 2] if width == 3 else 1.0
    values = np.zeros((rows, columns))
    np.add.at(values, (places[:, 0], places[:, 1]), numbers)
    if mirrored:
        off = places[:, 0] != places[:, 1]
        beyond = mirrored * np.broadcast_to(numbers, entries)[off]
        np.add.at(values, (places[off, 1], places[off, 0]), beyond)
    return values


def _beside(
    path: Path, door: Door, kinds: tuple[str, ...], column: int
) -> list[str] | None:
    """Return a column of the list of names beside a matrix, if there is one."""
    stem = path.name.split(".mtx")[0]
    prefix = stem[: -len("matrix")] if stem.endswith("matrix") else f"{stem}_"
    for kind in kinds:
        for ending in (".tsv", ".tsv.gz", ".txt", ".csv"):
            found = path.with_name(f"{prefix}{kind}{ending}")
            if found.is_file():
                text = unpacked(found, door).decode("utf-8-sig", "replace")
                sign = "," if ending_of(found)[0] == ".csv" else "\t"
                cells = [line.split(sign) for line in text.splitlines() if line.strip()]
                return [row[min(column, len(row) - 1)].strip('" ') for row in cells]
    return None
