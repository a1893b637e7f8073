"""Parsers of the raw files: paths in, data and class labels out.

Labels are returned as they stand in the file; `_load` numbers them.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.optional import import_optional
from mdec.tables import Table, read_table

Parsed = tuple[NDArray[Any], NDArray[Any]]

FLOWER_SIZE = (100, 100)
FLOWERS_PER_CLASS = 80


def compact(X: NDArray[Any]) -> NDArray[Any]:
    """Return bytes where all values are whole numbers up to 255, else float32."""
    if X.dtype == np.uint8:
        return X
    small = np.clip(X, 0, 255).astype(np.uint8)
    return small if np.array_equal(small, X) else X.astype(np.float32)


def gene_table(paths: Sequence[Path]) -> Parsed:
    """Read a tab-separated table with one gene a row.

    The first row names the samples and the second their classes, or the first row
    alone names the classes.
    """
    with paths[0].open(encoding="latin-1", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t"))
    n_headers = 1 if _is_number(rows[1][1]) else 2
    values = np.array([row[1:] for row in rows[n_headers:]], dtype=np.float64)
    labels = np.array(rows[n_headers - 1][1:])
    return values.T.astype(np.float32), labels


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def mat(paths: Sequence[Path]) -> Parsed:
    """Read MATLAB files of data and labels, stacked in the given order."""
    tables = [_mat_table(path) for path in paths]
    labels = [table.labels for table in tables if table.labels is not None]
    if len(labels) < len(tables):
        raise ValueError(
            f"{' or '.join(path.name for path in paths)} names no classes; call the "
            "array that holds them gnd."
        )
    values = np.vstack([table.values for table in tables])
    return compact(values), np.concatenate(labels)


def mat_label_first(paths: Sequence[Path]) -> Parsed:
    """Read a MATLAB file whose table holds the label in its first column."""
    table = _mat_table(paths[0]).values
    return compact(table[:, 1:]), table[:, 0].astype(np.int64)


def _mat_table(path: Path) -> Table:
    from scipy.io.matlab import matfile_version

    # The second format is HDF5, which SciPy does not read.
    if matfile_version(path)[0] == 2:
        raise ValueError(
            f"{path.name} is a MATLAB 7.3 file; save it again with save -v7."
        )
    return read_table(path)


def one_hot_csv(paths: Sequence[Path], n_classes: int = 10) -> Parsed:
    """Read comma-separated values that end in a one-hot class."""
    table = np.loadtxt(paths[0], delimiter=",")
    return compact(table[:, :-n_classes]), table[:, -n_classes:].argmax(axis=1)


def csv_label_last(paths: Sequence[Path]) -> Parsed:
    """Read comma-separated values, gzipped or not, with the label at the end."""
    table = np.loadtxt(paths[0], delimiter=",")
    return compact(table[:, :-1]), table[:, -1].astype(np.int64)


def gisette(paths: Sequence[Path]) -> Parsed:
    """Read the training and validation parts of Gisette: data, labels, data, labels."""
    data = np.vstack([np.loadtxt(path, ndmin=2) for path in paths[0::2]])
    labels = [np.loadtxt(path, dtype=np.int64, ndmin=1) for path in paths[1::2]]
    return compact(data), np.concatenate(labels)


def pgm_folders(paths: Sequence[Path]) -> Parsed:
    """Read grey images, one folder per class, pixels column by column."""
    pixels = [np.asarray(_image(path).convert("L")).ravel(order="F") for path in paths]
    return np.stack(pixels), np.array([_class_folder(path) for path in paths])


def _class_folder(path: Path) -> str:
    # The faces lie in 1a/ or, as distributed, in 1a/face/.
    parent = path.parent
    return parent.parent.name if parent.name == "face" else parent.name


def jpeg_folder(paths: Sequence[Path]) -> Parsed:
    """Read colour images in file order, a fixed number per class, and resize them."""
    pixels = [
        np.asarray(_image(path).convert("RGB").resize(FLOWER_SIZE)).ravel()
        for path in paths
    ]
    return np.stack(pixels), np.arange(len(paths)) // FLOWERS_PER_CLASS


def _image(path: Path) -> Any:
    pillow = import_optional(
        "PIL.Image", needed_for="reading images", install="mdec[data]"
    )
    return pillow.open(path)


FORMATS: dict[str, Callable[[Sequence[Path]], Parsed]] = {
    parser.__name__: parser
    for parser in (
        *(gene_table, mat, mat_label_first, one_hot_csv, csv_label_last),
        *(gisette, pgm_folders, jpeg_folder),
    )
}
