"""Finding raw files on disk, and downloading those that are not there."""

from __future__ import annotations

import hashlib
import logging
import os
import sys
from pathlib import Path
from typing import Any

from mdec._support.optional import import_optional
from mdec.datasets._registry import BASE_URL, DatasetInfo, SourceFile, dataset_info

TIMEOUT_SECONDS = 30

# What a user has to supply, as names to look for.
_MANUAL = {
    "pgm_folders": ("*.pgm",),
    "jpeg_folder": ("image_*.jpg",),
    "csv_label_last": ("mnist_5k.csv.gz",),
    "gisette": (
        "gisette_train.data",
        "gisette_train.labels",
        "gisette_valid.data",
        "gisette_valid.labels",
    ),
}


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
        path = find_file(base, info.id, file)
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


def find_file(base: Path, dataset: str, file: SourceFile) -> Path | None:
    """Return a file below a folder whose bytes are the pinned ones, or None."""
    usual = base / dataset / file.name
    candidates = [usual, *sorted(base.rglob(file.name))] if base.is_dir() else []
    for path in candidates:
        whole = path.is_file() and path.stat().st_size == file.size
        if whole and _sha256(path) == file.sha256:
            return path
    return None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _manual_files(info: DatasetInfo, base: Path) -> list[Path]:
    place = base / info.id
    found = [sorted(place.rglob(pattern)) for pattern in _MANUAL[info.format]]
    if not all(found):
        raise FileNotFoundError(
            f"{info.id} ({info.name}) cannot be downloaded; put {info.manual}, into "
            f"{place}."
        )
    return [path for paths in found for path in paths]


def _download(file: SourceFile, folder: Path, base_url: str, progress: bool) -> Path:
    pooch = import_optional("pooch", needed_for="downloading", install="mdec[data]")
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
    except _network_errors() as error:
        raise ConnectionError(
            f"{url} could not be downloaded ({_reason(error)}), so nothing was kept; "
            f"check the network and try again, or put {file.name} into {folder}."
        ) from error
    return Path(path)


def _network_errors() -> tuple[type[Exception], ...]:
    import requests

    return (requests.exceptions.RequestException, ConnectionError, TimeoutError)


def _reason(error: Any) -> str:
    response = getattr(error, "response", None)
    if response is not None:
        return f"the server answered {response.status_code}"
    return type(error).__name__
