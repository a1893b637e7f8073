"""Tables of samples by features, read from the files people have."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec.tables.binary import READERS, RawTable
from mdec.tables.text import MISSING, even, read_text, text_rows

# Sizes are compared with what a file claims before anything is allocated.
MAX_BYTES = 4 * 2**30
MAX_FEATURES = 1_000_000

TRANSFORMS = ("none", "log", "standardise")

TEXT_ENDINGS = (".csv", ".tsv", ".tab", ".txt")
ENDINGS = (*TEXT_ENDINGS, *READERS)


@dataclass(frozen=True)
class Table:
    """Numbers with names.

    Attributes
    ----------
    values : ndarray of shape (n_samples, n_features)
        Finite numbers.
    sample_names : list of str
        All different; "1", "2", ... where the file has none.
    feature_names : list of str
        "feature 1", ... where the file has none.
    labels : ndarray of str of shape (n_samples,) or None
        Known classes, if the file has them.
    """

    values: NDArray[np.floating]
    sample_names: list[str]
    feature_names: list[str]
    labels: NDArray[Any] | None = None


def read_table(
    path: str | os.PathLike[str],
    *,
    transpose: bool = False,
    label_column: str | None = None,
    header: bool | None = None,
    index: bool | None = None,
    variable: str | None = None,
    max_bytes: int = MAX_BYTES,
) -> Table:
    """Read a table by the ending of its name.

    Parameters
    ----------
    path : path-like
        A .csv, .tsv, .tab, .txt, .parquet, .npz, .npy, .mat or .h5ad file.
    transpose : bool, default=False
        True if the file has features in rows, as expression tables often have.
    label_column : str, default=None
        Name of the column, or of the variable, that holds known classes.
    header, index : bool, default=None
        Whether a text file's first row, or its first column, holds names; None looks.
    variable : str, default=None
        Name of the array in an .npz or .mat file; None looks for the usual ones.
    max_bytes : int
        A file that claims more is refused before anything is allocated.

    Returns
    -------
    Table
        At least three samples and two features.

    Raises
    ------
    ValueError
        One sentence that says what is wrong with the file.
    """
    source = Path(path)
    if not source.is_file():
        raise ValueError(f"{str(source)!r} is not a file; check its name.")
    ending = source.suffix.lower()
    if ending in TEXT_ENDINGS:
        raw = read_text(
            source,
            transpose=transpose,
            label_column=label_column,
            header=header,
            index=index,
        )
    elif ending in READERS:
        read = READERS[ending]
        raw = read(source, variable or "", label_column or "", max_bytes)
        if transpose:
            raw = _transposed(raw)
    else:
        raise ValueError(
            f"{source.name!r} has no ending that mdec reads; use {', '.join(ENDINGS)}."
        )
    return _checked(raw, source.name)


def read_base_clusterings(
    path: str | os.PathLike[str],
) -> tuple[NDArray[np.object_], list[str], list[str]]:
    """Read a text table with one base clustering in each column.

    Parameters
    ----------
    path : path-like
        A .csv, .tsv, .tab or .txt file. Labels may be numbers or words; empty cells,
        NA and -1 mark samples that a clustering leaves out. A first column without
        repetitions holds the samples' names; a first row whose words do not come
        again holds the clusterings' names.

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
    if not source.is_file():
        raise ValueError(f"{str(source)!r} is not a file; check its name.")
    rows = text_rows(source)
    even(source, rows)
    first, below = rows[0], rows[1:]
    columns = list(zip(*below, strict=True))
    header = all(
        cell not in column for cell, column in zip(first[1:], columns[1:], strict=False)
    )
    if not header or len(rows) < 2:
        below = rows
    names = [row[0].strip() for row in below]
    indexed = len(first) > 1 and len(set(names)) == len(names)
    cells = [row[1:] if indexed else row for row in below]
    if len(cells) < 3 or not cells[0]:
        raise ValueError(
            f"{source.name!r} needs at least three samples in rows and one base "
            "clustering in columns."
        )
    labels = np.array(
        [[_label(cell) for cell in row] for row in cells], dtype=np.object_
    )
    members = first[1:] if indexed else first
    if not header:
        members = [f"clustering {i + 1}" for i in range(labels.shape[1])]
    samples = names if indexed else [str(i + 1) for i in range(len(labels))]
    return labels, samples, [member.strip() for member in members]


def _label(cell: str) -> str | None:
    word = cell.strip()
    return None if word.lower() in MISSING or word in ("-1", "-1.0") else word


def transformed(values: NDArray[np.floating], how: str) -> NDArray[np.floating]:
    """Return the values after one of the usual transformations.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_features)
        Finite numbers.
    how : {"none", "log", "standardise"}
        "log" is log2(x + 1); "standardise" gives each feature mean 0 and standard
        deviation 1, and leaves constant features at 0.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        A new array, or `values` itself for "none".

    Examples
    --------
    >>> transformed(np.array([[0.0, 1.0], [3.0, 1.0]]), "log")
    array([[0., 1.],
           [2., 1.]])
    """
    if how == "none":
        return values
    if how == "log":
        if values.min() < 0.0:
            raise ValueError(
                "the log transform needs numbers from 0 up and the table has negative "
                "ones; use none or standardise."
            )
        return np.log2(values + 1.0)
    if how != "standardise":
        raise ValueError(f"transform={how!r} is not one of {', '.join(TRANSFORMS)}.")
    spread = values.std(axis=0)
    return (values - values.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)


def _transposed(raw: RawTable) -> RawTable:
    return RawTable(raw.values.T, raw.feature_names, raw.sample_names, raw.labels)


def _checked(raw: RawTable, name: str) -> Table:
    """Raise one sentence for a table that cannot be clustered."""
    if raw.values.ndim != 2:
        raise ValueError(
            f"{name!r} holds an array of {raw.values.ndim} dimensions; a table has two."
        )
    if raw.values.dtype.kind not in "fiub":
        raise ValueError(f"{name!r} holds {raw.values.dtype} and not real numbers.")
    n_samples, n_features = raw.values.shape
    if n_samples < 3 or n_features > MAX_FEATURES:
        raise ValueError(
            f"{name!r} has {n_samples} samples in rows and {n_features} features in "
            "columns; transpose it if samples are in its columns."
        )
    if n_features < 2:
        raise ValueError(
            f"{name!r} has {n_features} columns of numbers and needs two or more; "
            "check its separator."
        )
    precision = np.float32 if raw.values.dtype == np.float32 else np.float64
    values: NDArray[np.floating] = np.ascontiguousarray(raw.values, dtype=precision)
    samples = [str(each) for each in raw.sample_names or range(1, n_samples + 1)]
    features = [str(each) for each in raw.feature_names or ()]
    features = features or [f"feature {i + 1}" for i in range(n_features)]
    if len(samples) != n_samples or len(features) != n_features:
        raise ValueError(
            f"{name!r} has names for {len(samples)} samples and {len(features)} "
            f"features, but {n_samples} and {n_features} of them."
        )
    _check_values(values, samples, features, name)
    labels = None if raw.labels is None else np.array([str(v) for v in raw.labels])
    if labels is not None and labels.size != n_samples:
        raise ValueError(
            f"{name!r} has {labels.size} known classes for {n_samples} samples."
        )
    return Table(values, samples, features, labels)


def _check_values(
    values: NDArray[np.floating], samples: list[str], features: list[str], name: str
) -> None:
    finite = np.isfinite(values)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        kind = "missing" if np.isnan(values[row, column]) else "infinite"
        raise ValueError(
            f"{name!r}, sample {samples[row]!r}, column {features[column]!r}: the "
            f"value is {kind}; fill it in or leave the sample out."
        )
    if len(set(samples)) < len(samples):
        twice = next(each for each in samples if samples.count(each) > 1)
        raise ValueError(
            f"{name!r} has the sample {twice[:60]!r} more than once; give each its own "
            "name, or name that column as the label column if it holds known classes."
        )
