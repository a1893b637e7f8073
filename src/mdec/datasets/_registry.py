"""What is known about each dataset before a byte of it is read."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

# Where the pinned files are served, as owner/name/commit/path.
BASE_URL = "https://raw.githubusercontent.com"
BUILT_IN = "built-in"


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
    manual : str
        Files that the user has to supply; empty where they can be downloaded.
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
    files: dict[str, list[SourceFile]] = {}
    for row in _rows("files.csv"):
        files.setdefault(row.pop("dataset"), []).append(
            SourceFile(size=int(row.pop("bytes")), **row)
        )
    found = {}
    for row in _rows("datasets.csv"):
        row |= {name: int(row[name]) for name in _NUMBERS}
        pinned = tuple(files.get(row["id"], ()))
        found[row["id"]] = DatasetInfo(files=pinned, **row)
    return found


_NUMBERS = ("n_samples", "n_features", "n_classes")


def _rows(name: str) -> list[dict[str, Any]]:
    text = (resources.files("mdec.datasets") / name).read_text(encoding="utf-8")
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
