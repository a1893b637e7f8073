"""One call from a name or a path to data and numbered classes.

Every format of raw files has a parser: paths in, data and class labels out, as they
stand in the file.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.optional import import_optional
from mdec.bench.datasets._registry import DatasetInfo, dataset_info, fetch_dataset
from mdec.tables import read_table
from mdec.tables.budget import ending_of
from mdec.tables.columns import is_number
from mdec.tables.reading import ENDINGS

Parsed = tuple[NDArray[Any], NDArray[Any]]

FLOWER_SIZE = (100, 100)
FLOWERS_PER_CLASS = 80


@dataclass(frozen=True, eq=False)
class Dataset:
    """Data and, where known, the classes of the samples.

    Attributes
    ----------
    name : str
        Id in the registry, or the name of the file.
    data : ndarray of shape (n_samples, n_features)
        uint8 or float32 for registered datasets, float32 or float64 for files.
    target : ndarray of shape (n_samples,) or None
        Classes numbered from 0 in the order of first samples.
    target_names : tuple of str
        What the classes are called in the file.
    info : DatasetInfo or None
        The registry's entry.
    """

    name: str
    data: NDArray[Any]
    target: NDArray[np.int32] | None
    target_names: tuple[str, ...]
    info: DatasetInfo | None = None


def load_dataset(
    name: str | os.PathLike[str],
    *,
    target: str | None = None,
    folder: str | os.PathLike[str] | None = None,
    download: bool = True,
) -> Dataset:
    """Load a dataset of the registry, or a file.

    Parameters
    ----------
    name : str or path-like
        Id or name, see `list_datasets`; or the path of a file that `read_table` reads.
    target : str, default=None
        Column, array or observation that holds the classes of a file; None looks for
        the usual names in .npz and .mat files and finds none in others.
    folder : path-like, default=None
        Folder of raw files, see `data_dir`.
    download : bool, default=True
        Download what is missing; False works offline.

    Returns
    -------
    Dataset
        The data, not scaled in any way, and the classes.

    Examples
    --------
    >>> wine = load_dataset("wine")
    >>> wine.data.shape, wine.target_names
    ((178, 13), ('class_0', 'class_1', 'class_2'))
    """
    path = Path(name)
    if ending_of(path)[0] in ENDINGS:
        return _load_file(path, target)
    info = dataset_info(os.fspath(name))
    if info.format in _BUILT_IN:
        data, labels = _BUILT_IN[info.format](info)
    else:
        paths = fetch_dataset(info.id, folder=folder, download=download)
        data, labels = FORMATS[info.format](paths)
    expected = (info.n_samples, info.n_features)
    if data.shape != expected:
        raise ValueError(
            f"{info.id} should be {expected[0]} x {expected[1]} and its files give "
            f"{' x '.join(map(str, data.shape))}; check that they are complete."
        )
    return Dataset(info.id, data, *_number_classes(labels), info)


def _number_classes(labels: NDArray[Any]) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Number classes from 0 in the order of first samples; return their names too."""
    names, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return np.argsort(order)[inverse].astype(np.int32), tuple(map(str, names[order]))


def _load_file(path: Path, target: str | None) -> Dataset:
    table = read_table(path, label_column=target)
    if table.labels is None:
        return Dataset(path.stem, table.values, None, ())
    if (table.labels == "").any():
        raise ValueError(
            f"{path.name!r} has {(table.labels == '').sum()} samples without a class; "
            "a dataset with classes needs one for each."
        )
    return Dataset(path.stem, table.values, *_number_classes(table.labels))


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
    n_headers = 1 if is_number(rows[1][1]) else 2
    values = np.array([row[1:] for row in rows[n_headers:]], dtype=np.float64)
    labels = np.array(rows[n_headers - 1][1:])
    return values.T.astype(np.float32), labels


def mat(paths: Sequence[Path]) -> Parsed:
    """Read MATLAB files of data and labels, stacked in the given order."""
    tables = [_mat_table(path) for path in paths]
    values = np.vstack([table.values for table in tables])
    return compact(values), np.concatenate([table.labels for table in tables])


def mat_label_first(paths: Sequence[Path]) -> Parsed:
    """Read a MATLAB file whose table holds the label in its first column."""
    table = _mat_table(paths[0]).values
    return compact(table[:, 1:]), table[:, 0].astype(np.int64)


def _mat_table(path: Path) -> Any:
    # The registry says what the columns are, so none of them is in doubt.
    return read_table(path, features=["*"])


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
    # The faces lie in 1a/ or, as distributed, in 1a/face/.
    folders = [[part for part in path.parts[:-1] if part != "face"] for path in paths]
    return np.stack(pixels), np.array([names[-1] for names in folders])


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


def _load_sklearn(info: DatasetInfo) -> Parsed:
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{info.id.replace('-', '_')}")()
    return bunch.data, np.asarray(bunch.target_names)[bunch.target]


def _make_gaussians(info: DatasetInfo) -> Parsed:
    rng = np.random.default_rng(20)
    labels = np.repeat(np.arange(info.n_classes), info.n_samples // info.n_classes)
    centers = np.zeros((info.n_classes, info.n_features))
    centers[:, :12] = rng.normal(scale=1.2, size=(info.n_classes, 12))
    return centers[labels] + rng.normal(size=(labels.size, info.n_features)), labels


FORMATS: dict[str, Callable[[Sequence[Path]], Parsed]] = {
    parser.__name__: parser
    for parser in (
        *(gene_table, mat, mat_label_first, one_hot_csv, csv_label_last),
        *(gisette, pgm_folders, jpeg_folder),
    )
}

_BUILT_IN: dict[str, Callable[[DatasetInfo], Parsed]] = {
    "sklearn": _load_sklearn,
    "generated": _make_gaussians,
}
