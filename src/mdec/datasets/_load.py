"""One call from a name or a path to data and numbered classes."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._optional import import_optional
from mdec.datasets._fetch import fetch_dataset
from mdec.datasets._formats import FORMATS, Parsed, mat
from mdec.datasets._registry import DatasetInfo, dataset_info

# Columns that hold the classes when the user names none.
_TARGET_NAMES = ("target", "label", "labels", "class", "y")


@dataclass(frozen=True, eq=False)
class Dataset:
    """Data and, where known, the classes of the samples.

    Attributes
    ----------
    name : str
        Id in the registry, or the name of the file.
    data : ndarray of shape (n_samples, n_features)
        uint8 or float32 for registered datasets, as it comes for files.
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
        Id or name, see `list_datasets`; or a path that ends in .csv, .tsv, .parquet,
        .npz, .mat or .h5ad.
    target : str, default=None
        Column, array or observation that holds the classes of a file; None looks for
        "target", "label", "labels", "class" or "y".
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
    if path.suffix.lower() in READERS:
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
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}; check the path.")
    data, labels = READERS[path.suffix.lower()](path, target)
    if data.ndim != 2 or not np.issubdtype(data.dtype, np.number):
        raise ValueError(
            f"{path.name} must hold a table of numbers, one sample a row; leave out or "
            "encode the other columns."
        )
    if labels is None:
        return Dataset(path.stem, data, None, ())
    return Dataset(path.stem, data, *_numbered(labels))


Read = tuple[NDArray[Any], NDArray[Any] | None]


def _read_frame(frame: Any, target: str | None, path: Path) -> Read:
    column = _choose(list(frame.columns), target, path)
    if column is None:
        return frame.to_numpy(), None
    return frame.drop(columns=column).to_numpy(), frame[column].to_numpy()


def _choose(names: list[str], target: str | None, path: Path) -> str | None:
    if target is not None:
        if target not in names:
            raise ValueError(
                f"{path.name} has no {target!r}; it has {', '.join(names[:20])}."
            )
        return target
    return next((name for name in _TARGET_NAMES if name in names), None)


def _read_csv(path: Path, target: str | None) -> Read:
    pandas = import_optional("pandas", needed_for="CSV files", install="mdec[data]")
    separator = "\t" if path.suffix.lower() == ".tsv" else ","
    return _read_frame(pandas.read_csv(path, sep=separator), target, path)


def _read_parquet(path: Path, target: str | None) -> Read:
    pandas = import_optional("pandas", needed_for="Parquet files", install="mdec[data]")
    import_optional("pyarrow", needed_for="Parquet files", install="mdec[data]")
    return _read_frame(pandas.read_parquet(path), target, path)


def _read_npz(path: Path, target: str | None) -> Read:
    with np.load(path, allow_pickle=False) as archive:
        names = list(archive.files)
        column = _choose(names, target, path)
        data = next((name for name in ("X", "data") if name in names), None)
        if data is None:
            raise ValueError(
                f"{path.name} holds {', '.join(names)}; name the data X or data."
            )
        return archive[data], None if column is None else archive[column].ravel()


def _read_mat(path: Path, target: str | None) -> Read:
    if target is None:
        return mat([path])
    from scipy.io import loadmat

    content = loadmat(path)
    _choose(list(content), target, path)
    found = next(
        (content[name] for name in ("fea", "X", "data") if name in content), None
    )
    if found is None:
        raise ValueError(f"{path.name} has no array fea, X or data; rename the array.")
    return np.asarray(found), content[target].ravel()


def _read_h5ad(path: Path, target: str | None) -> Read:
    anndata = import_optional(
        "anndata", needed_for=".h5ad files", install="mdec[anndata]"
    )
    content = anndata.read_h5ad(path)
    data = content.X.toarray() if hasattr(content.X, "toarray") else content.X
    column = _choose(list(content.obs.columns), target, path)
    labels = None if column is None else content.obs[column].astype(str).to_numpy()
    return np.asarray(data), labels


READERS: dict[str, Callable[[Path, str | None], Read]] = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".parquet": _read_parquet,
    ".npz": _read_npz,
    ".mat": _read_mat,
    ".h5ad": _read_h5ad,
}


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
