"""What is known about each dataset, and where its files lie or come from."""

from __future__ import annotations

import csv
import hashlib
import logging
import os
import sys
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from mdec._support.optional import import_optional

# Where the pinned files are served, as owner/name/commit/path.
BASE_URL = "https://raw.githubusercontent.com"
BUILT_IN = "built-in"
TIMEOUT_SECONDS = 30


@dataclass(frozen=True)
class SourceFile:
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
        "gene expression", "image", "speech" or "built-in".
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
def _registry() -> dict[str, DatasetInfo]:
    files: dict[str, list[SourceFile]] = defaultdict(list)
    for row in _read_rows("files.csv"):
        size = int(row.pop("bytes"))
        files[row.pop("dataset")].append(SourceFile(size=size, **row))
    found = {}
    for row in _read_rows("datasets.csv"):
        row |= {name: int(row[name]) for name in row if name.startswith("n_")}
        found[row["id"]] = DatasetInfo(files=tuple(files[row["id"]]), **row)
    return found


def _read_rows(name: str) -> list[dict[str, Any]]:
    text = (resources.files("mdec.bench.datasets") / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def list_datasets(kind: str | None = None) -> list[DatasetInfo]:
    """Return the paper's datasets, or those of one kind.

    Parameters
    ----------
    kind : str, default=None
        "gene expression", "image", "speech", or "built-in" for the datasets that
        need no file; None for the thirty of the paper.

    Returns
    -------
    list of DatasetInfo
        In the paper's order.

    Examples
    --------
    >>> len(list_datasets())
    30
    >>> [info.id for info in list_datasets("built-in")]
    ['digits', 'wine', 'breast-cancer', 'gaussians']
    """
    everything = list(_registry().values())
    if kind is None:
        return [info for info in everything if info.kind != BUILT_IN]
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
    wanted = _key(name)
    for info in _registry().values():
        if wanted in (_key(info.id), _key(info.name)):
            return info
    raise ValueError(
        f"there is no dataset {name!r}; `mdec datasets list` shows the ids and names, "
        "and files of your own are given by path, such as ./data.csv."
    )


def _key(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum())


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
    chosen = folder or os.environ.get("MDEC_DATA")
    if chosen:
        return Path(chosen).expanduser()
    home = Path.home()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = home / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_DATA_HOME", home / ".local" / "share"))
    return base / "mdec"


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
    info = dataset_info(name)
    base = data_dir(folder)
    if info.manual:
        return _manual_files(info, base)
    paths = []
    for file in info.files:
        path = _find_file(base, file)
        if path is None and not download:
            raise FileNotFoundError(
                f"{file.name} of {info.id} is not below {base}; run "
                f"`mdec datasets fetch {info.id}` on a machine with a network, or "
                "point MDEC_DATA at a folder that holds it."
            )
        if path is None:
            path = _download(file, base / info.id, base_url, progress)
        paths.append(path)
    return paths


def _find_file(base: Path, file: SourceFile) -> Path | None:
    """Return a file below a folder whose bytes are the pinned ones, or None."""
    for path in sorted(base.rglob(file.name)):
        if path.is_file() and path.stat().st_size == file.size:
            with path.open("rb") as content:
                digest = hashlib.file_digest(content, "sha256").hexdigest()
            if digest == file.sha256:
                return path
    return None


def _manual_files(info: DatasetInfo, base: Path) -> list[Path]:
    place = base / info.id
    found = [sorted(place.rglob(pattern)) for pattern in info.manual_files.split()]
    if not all(found):
        raise FileNotFoundError(
            f"{info.id} ({info.name}) cannot be downloaded; put {info.manual}, into "
            f"{place}."
        )
    return [path for paths in found for path in paths]


def _download(file: SourceFile, folder: Path, base_url: str, progress: bool) -> Path:
    pooch = import_optional("pooch", needed_for="downloading", install="mdec[data]")
    import requests

    if progress:
        import_optional("tqdm", needed_for="a progress bar", install="mdec[data]")
    # Its messages repeat what the bar and our errors say.
    pooch.get_logger().setLevel(logging.WARNING)
    downloader = pooch.HTTPDownloader(progressbar=progress, timeout=TIMEOUT_SECONDS)
    url = file.url(base_url)
    try:
        # The file gets its name only after its checksum was found right.
        path = pooch.retrieve(
            url,
            known_hash=f"sha256:{file.sha256}",
            fname=file.name,
            path=folder,
            downloader=downloader,
        )
    except ValueError as error:
        raise ValueError(
            f"{url} did not give the expected {file.size} bytes (sha256 "
            f"{file.sha256[:12]}...), so nothing was kept; try again, and if it stays "
            f"so, put your own copy of {file.name} into {folder}."
        ) from error
    except (requests.RequestException, ConnectionError, TimeoutError) as error:
        reason, response = type(error).__name__, getattr(error, "response", None)
        if response is not None:
            reason = f"the server answered {response.status_code}"
        raise ConnectionError(
            f"{url} could not be downloaded ({reason}), so nothing was kept; "
            f"check the network and try again, or put {file.name} into {folder}."
        ) from error
    return Path(path)
