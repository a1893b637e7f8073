"""The paper's thirty datasets, a few built-in ones, single cells, and your own files.

`load_dataset` goes from a name or a path to data and numbered classes. Every format of
raw files has a parser: paths in, data and class labels out, as they stand in the file.
"""

from __future__ import annotations

import csv
import hashlib
import logging
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdec._support.optional import import_optional
from mdec.tables import read_table
from mdec.tables.budget import ending_of
from mdec.tables.cells import is_number
from mdec.tables.reading import ENDINGS

__all__ = ["BASE_URL", "Dataset", "DatasetInfo", "data_dir", "dataset_info"]
__all__ += ["fetch_dataset", "list_datasets", "load_dataset"]

Parsed = tuple[NDArray[Any], NDArray[Any]]

# Where the pinned files are served, as owner/name/commit/path.
BASE_URL = "https://raw.githubusercontent.com"
TIMEOUT_SECONDS = 30

FLOWER_SIZE = (100, 100)
FLOWERS_PER_CLASS = 80


class SourceFile(NamedTuple):
    """One file of a dataset on GitHub, pinned to its bytes by length and checksum."""

    repository: str
    commit: str
    path: str
    size: int
    sha256: str

    @property
    def name(self) -> str:
        """File name without folders."""
        return self.path.rsplit("/", 1)[-1]

    def url(self, base_url: str = BASE_URL) -> str:
        """Return the download address."""
        return f"{base_url}/{self.repository}/{self.commit}/{self.path}"


@dataclass(frozen=True)
class DatasetInfo:
    """A dataset as the registry knows it.

    Attributes
    ----------
    id, name : str
        Either finds the dataset.
    n_samples, n_features, n_classes : int
        Its shape.
    kind : str
        "gene expression", "image", "speech", "single cells" or "built-in".
    format : str
        How its files are parsed.
    citation, note : str
        Where it comes from, and what to know about it.
    manual, manual_files : str
        Files that the user has to supply, in words and as patterns of their names;
        empty where they can be downloaded.
    data_sha256, classes_sha256 : str
        Checksums of the bytes of `Dataset.data` and `Dataset.target`, row by row; empty
        where no copy was at hand.
    files : tuple of SourceFile
        Files to download, in the order in which they are stacked.
    """

    id: str
    name: str
    n_samples: int
    n_features: int
    n_classes: int
    kind: str
    format: str
    citation: str
    note: str
    manual: str
    manual_files: str
    data_sha256: str
    classes_sha256: str
    files: tuple[SourceFile, ...]

    @property
    def source(self) -> str:
        """Where the bytes come from, in words."""
        if self.files:
            first = self.files[0]
            return f"https://github.com/{first.repository} at {first.commit[:10]}"
        return "your own copy" if self.manual else self.note


@cache
def all_datasets() -> dict[str, DatasetInfo]:
    """Return everything that is known, by id and in order."""

    def read_rows(name: str) -> list[dict[str, Any]]:
        table = resources.files("mdec.bench") / "registry" / name
        return list(csv.DictReader(table.read_text("utf-8").splitlines()))

    files: dict[str, list[SourceFile]] = defaultdict(list)
    for row in read_rows("files.csv"):
        size = int(row.pop("bytes"))
        files[row.pop("dataset")].append(SourceFile(size=size, **row))
    found = {}
    for row in read_rows("datasets.csv"):
        row |= {name: int(row[name]) for name in row if name.startswith("n_")}
        found[row["id"]] = DatasetInfo(files=tuple(files[row["id"]]), **row)
    return found


def list_datasets(kind: str | None = None) -> list[DatasetInfo]:
    """Return the paper's datasets, or those of one kind.

    Parameters
    ----------
    kind : str, default=None
        "gene expression", "image", "speech"; "single cells"; or "built-in" for the
        datasets that need no file. None for the thirty of the paper, in its order.

    Returns
    -------
    list of DatasetInfo
        What the registry knows of each.

    Examples
    --------
    >>> len(list_datasets())
    30
    >>> [info.id for info in list_datasets("built-in")]
    ['digits', 'wine', 'breast-cancer', 'gaussians']
    """
    everything = list(all_datasets().values())
    if kind is None:
        return [info for info in everything if info.id.startswith("DS-")]
    chosen = [info for info in everything if info.kind == kind]
    if not chosen:
        kinds = ", ".join(sorted({info.kind for info in everything}))
        raise ValueError(f"no dataset is of kind {kind!r}; the kinds are {kinds}.")
    return chosen


def dataset_info(name: str) -> DatasetInfo:
    """Return what the registry knows about a dataset.

    Parameters
    ----------
    name : str
        Id or name; case, spaces and hyphens do not matter.

    Returns
    -------
    DatasetInfo
        Shape, source, citation and files.

    Examples
    --------
    >>> dataset_info("ds11").name, dataset_info("yeoh-2002-v1").id
    ('Yeoh-2002-v1', 'DS-11')
    """

    def key(text: str) -> str:
        return "".join(c for c in text.lower() if c.isalnum())

    for info in all_datasets().values():
        if key(name) in (key(info.id), key(info.name)):
            return info
    raise ValueError(
        f"there is no dataset {name!r}; `mdec datasets list` shows the ids and names, "
        "and files of your own are given by path, such as ./data.csv."
    )


def data_dir(folder: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of raw files.

    Parameters
    ----------
    folder : path-like, default=None
        A folder of your own; None takes the environment variable ``MDEC_DATA``, else
        the user's data directory.

    Returns
    -------
    Path
        The folder, which need not exist yet.
    """
    if chosen := folder or os.environ.get("MDEC_DATA"):
        return Path(chosen).expanduser()
    home = Path.home()
    bases = {
        "win32": os.environ.get("LOCALAPPDATA", home / "AppData" / "Local"),
        "darwin": home / "Library" / "Application Support",
    }
    linux = os.environ.get("XDG_DATA_HOME", home / ".local" / "share")
    return Path(bases.get(sys.platform, linux)) / "mdec"


def fetch_dataset(
    name: str,
    *,
    folder: str | os.PathLike[str] | None = None,
    base_url: str = BASE_URL,
    download: bool = True,
    progress: bool = False,
) -> list[Path]:
    """Return the raw files of a dataset, downloading what is missing.

    Parameters
    ----------
    name : str
        Id or name.
    folder : path-like, default=None
        Where to look and to store, see `data_dir`. Files may lie anywhere below it.
    base_url : str
        A mirror that serves ``owner/name/commit/path``.
    download : bool, default=True
        False looks on disk only.
    progress : bool, default=False
        Show a bar for each download.

    Returns
    -------
    list of Path
        The files, in the order in which they are read; empty for built-in datasets.
    """
    info, base = dataset_info(name), data_dir(folder)
    place = base / info.id
    # A file of its own name may lie anywhere; other names are alike in many folders.
    found = [
        sorted(place.rglob(each)) if "*" in each else sorted(base.rglob(each))[:1]
        for each in info.manual_files.split()
    ]
    if not all(found):
        raise FileNotFoundError(
            f"{info.id} ({info.name}) cannot be downloaded; put {info.manual}, into "
            f"{place}."
        )
    paths = [path for alike in found for path in alike]
    for file in info.files:
        path = next((p for p in sorted(base.rglob(file.name)) if _is(file, p)), None)
        if path is None and not download:
            raise FileNotFoundError(
                f"{file.name} of {info.id} is not below {base}; run "
                f"`mdec datasets fetch {info.id}` on a machine with a network, or "
                "point MDEC_DATA at a folder that holds it."
            )
        paths.append(path or _download(file, place, base_url, progress))
    return paths


def _is(file: SourceFile, path: Path) -> bool:
    """Return whether the bytes of a file are the pinned ones."""
    if not path.is_file() or path.stat().st_size != file.size:
        return False
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest() == file.sha256


def _download(file: SourceFile, folder: Path, base_url: str, progress: bool) -> Path:
    pooch = import_optional("pooch", needed_for="downloading", install="mdec[data]")
    import requests

    if progress:
        import_optional("tqdm", needed_for="a progress bar", install="mdec[data]")
    # Its messages repeat what the bar and our errors say.
    pooch.get_logger().setLevel(logging.WARNING)
    url, own = file.url(base_url), f"{file.name} into {folder}"
    options = {
        "fname": file.name,
        "path": folder,
        "known_hash": f"sha256:{file.sha256}",
    }
    get = pooch.HTTPDownloader(progressbar=progress, timeout=TIMEOUT_SECONDS)
    try:
        # The file gets its name only after its checksum was found right.
        return Path(pooch.retrieve(url, downloader=get, **options))
    except ValueError as error:
        raise ValueError(
            f"{url} did not give the expected {file.size} bytes (sha256 "
            f"{file.sha256[:12]}...), so nothing was kept; try again, and if it stays "
            f"so, put your own copy of {own}."
        ) from error
    except (requests.RequestException, ConnectionError, TimeoutError) as error:
        reason, response = type(error).__name__, getattr(error, "response", None)
        if response is not None:
            reason = f"the server answered {response.status_code}"
        raise ConnectionError(
            f"{url} could not be downloaded ({reason}), so nothing was kept; "
            f"check the network and try again, or put {own}."
        ) from error


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
        table = read_table(path, label_column=target)
        if table.labels is None:
            return Dataset(path.stem, table.values, None, ())
        if n_without := (table.labels == "").sum():
            raise ValueError(
                f"{path.name!r} has {n_without} samples without a class; a dataset "
                "with classes needs one for each."
            )
        return Dataset(path.stem, table.values, *_number_classes(table.labels))
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


def compact(X: NDArray[Any]) -> NDArray[Any]:
    """Return bytes where all values are whole numbers up to 255, else float32."""
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
    return values.T.astype(np.float32), np.array(rows[n_headers - 1][1:])


def mat(paths: Sequence[Path]) -> Parsed:
    """Read MATLAB files of data and labels, stacked in the given order."""
    # The registry says what the columns are, so none of them is in doubt.
    tables = [read_table(path, features=["*"]) for path in paths]
    values = np.vstack([table.values for table in tables])
    return compact(values), np.concatenate([table.labels for table in tables])


def labelled_table(paths: Sequence[Path], columns: slice) -> Parsed:
    """Read a table, of MATLAB or comma-separated, of which some columns are the class.

    Several are one for each class, with a one in that of the sample.
    """
    if paths[0].suffix == ".mat":
        table = read_table(paths[0], features=["*"]).values
    else:
        table = np.loadtxt(paths[0], delimiter=",")
    labels, values = table[:, columns], np.delete(table, columns, axis=1)
    one_hot = labels.shape[1] > 1
    return compact(values), labels.argmax(1) if one_hot else labels[:, 0].astype("i8")


def gisette(paths: Sequence[Path]) -> Parsed:
    """Read the training and validation parts of Gisette: data, labels, data, labels."""
    data = np.vstack([np.loadtxt(path, ndmin=2) for path in paths[0::2]])
    labels = [np.loadtxt(path, dtype=np.int64, ndmin=1) for path in paths[1::2]]
    return compact(data), np.concatenate(labels)


def pgm_folders(paths: Sequence[Path]) -> Parsed:
    """Read grey images, one folder per class, pixels column by column."""
    # The faces lie in 1a/ or, as distributed, in 1a/face/.
    folders = [[part for part in path.parts[:-1] if part != "face"] for path in paths]
    return _pixels(paths, "L", order="F"), np.array([names[-1] for names in folders])


def jpeg_folder(paths: Sequence[Path]) -> Parsed:
    """Read colour images in file order, a fixed number per class, and resize them."""
    return _pixels(paths, "RGB", FLOWER_SIZE), np.arange(
        len(paths)
    ) // FLOWERS_PER_CLASS


def _pixels(
    paths: Sequence[Path], mode: str, size: Any = None, order: Any = "C"
) -> NDArray[Any]:
    needs = {"needed_for": "reading images", "install": "mdec[data]"}
    pillow, rows = import_optional("PIL.Image", **needs), []
    for path in paths:
        image = pillow.open(path).convert(mode)
        rows.append(np.asarray(image.resize(size) if size else image).ravel(order))
    return np.stack(rows)


def sparse_cells(paths: Sequence[Path]) -> Parsed:
    """Read the parts of a sparse matrix of cells by genes, and the classes y."""
    with np.load(paths[0], allow_pickle=False) as parts:
        entries = parts["data"], parts["indices"], parts["indptr"]
        counts = sparse.csr_array(entries, shape=tuple(parts["shape"]))
        return compact(counts.toarray()), parts["y"]


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
    "mat_label_first": partial(labelled_table, columns=slice(1)),
    "csv_label_last": partial(labelled_table, columns=slice(-1, None)),
    "one_hot_csv": partial(labelled_table, columns=slice(-10, None)),
} | {
    parser.__name__: parser
    for parser in (gene_table, mat, gisette, pgm_folders, jpeg_folder, sparse_cells)
}
_BUILT_IN = {"sklearn": _load_sklearn, "generated": _make_gaussians}
