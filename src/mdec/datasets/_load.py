"""One call from a name or a path to data and numbered classes."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec.datasets._fetch import fetch_dataset
from mdec.datasets._formats import FORMATS, Parsed
from mdec.datasets._registry import DatasetInfo, dataset_info
from mdec.tables.door import ending_of
from mdec.tables.reading import ENDINGS, read_table


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
    progress: bool = False,
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
    progress : bool, default=False
        Show a bar for each download.

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
        paths = fetch_dataset(
            info.id, folder=folder, download=download, progress=progress
        )
        data, labels = FORMATS[info.format](paths)
    expected = (info.n_samples, info.n_features)
    if data.shape != expected:
        raise ValueError(
            f"{info.id} should be {expected[0]} x {expected[1]} and its files give "
            f"{' x '.join(map(str, data.shape))}; check that they are complete."
        )
    return Dataset(info.id, data, *_numbered(labels), info)


def _numbered(labels: NDArray[Any]) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    names, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(order.size, dtype=np.int32)
    rank[order] = np.arange(order.size, dtype=np.int32)
    return rank[inverse], tuple(str(name) for name in names[order])


def _load_file(path: Path, target: str | None) -> Dataset:
    table = read_table(path, label_column=target)
    if table.labels is None:
        return Dataset(path.stem, table.values, None, ())
    if (table.labels == "").any():
        raise ValueError(
            f"{path.name!r} has {(table.labels == '').sum()} samples without a class; "
            "a dataset with classes needs one for each."
        )
    return Dataset(path.stem, table.values, *_numbered(table.labels))


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


_BUILT_IN: dict[str, Callable[[DatasetInfo], Parsed]] = {
    "sklearn": _load_sklearn,
    "generated": _make_gaussians,
}
