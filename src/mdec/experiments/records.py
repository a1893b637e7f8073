"""Records of runs: one line of JSON each, only ever appended.

A file holds a line for the study, one for each dataset with its classes, and one for
each run with its labels. Scores are computed from these, so that a report needs neither
the data nor a second fit.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import zlib
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal, NotRequired, Self, TypedDict

import numpy as np
from numpy.typing import NDArray

from mdec._support.files import sync_folder, try_lock
from mdec._support.memory import MAX_BYTES

# As people write them: the arguments of a call, and a study file.
Parameters = dict[str, Any]
StudyText = dict[str, Any]

OK = "ok"
OUT_OF_MEMORY = "OM"
TIMEOUT = "timeout"
MISSING = "missing"
FAILED = "failed"

_GZIP = b"\x1f\x8b"
# How a file begins, as `run_study` and `Journal.append` write it.
_BEGINNING = b'{"record":"study",'
# Without these a line of a kind says nothing.
_NEEDED = {
    "study": {"study"},
    "dataset": {"dataset"},
    "run": {
        *("dataset", "method", "generator_parameters", "parameters"),
        *("repetition", "status"),
    },
}


class StudyRecord(TypedDict):
    """The line that holds the study file, as it was read."""

    record: Literal["study"]
    study: StudyText


class DatasetRecord(TypedDict):
    """The line of a dataset: its shape, its bytes' checksum, its classes."""

    record: Literal["dataset"]
    dataset: str
    n_samples: int
    n_features: int
    n_clusters: int
    dtype: str
    sha256: str
    classes: str


class Costs(TypedDict):
    """What a step took."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int


class Machine(TypedDict):
    """What a reader of timings needs to know about the machine."""

    system: str
    processor: str
    cores: int | None
    available_memory: int | None


class RunRecord(TypedDict):
    """The line of a run; one that was ended from outside lacks what is not required."""

    record: Literal["run"]
    study: str
    dataset: str
    method: str
    generator: str | None
    generator_parameters: Parameters
    parameters: Parameters
    repetition: int
    generator_seed: int
    seed: int
    status: str
    message: str
    time: NotRequired[str]
    versions: NotRequired[dict[str, str]]
    commit: NotRequired[str]
    machine: NotRequired[Machine]
    generation: NotRequired[Costs]
    consensus: NotRequired[Costs]
    warnings: NotRequired[list[str]]
    labels: NotRequired[str]
    n_found: NotRequired[int]


Record = StudyRecord | DatasetRecord | RunRecord


def encode_labels(labels: NDArray[np.integer]) -> str:
    """Return labels as text: their type, then compressed bytes.

    Parameters
    ----------
    labels : ndarray of shape (n_samples,)
        Whole numbers.

    Returns
    -------
    str
        Short where neighbours share labels.

    Examples
    --------
    >>> decode_labels(encode_labels(np.array([0, 1, -1])))
    array([ 0,  1, -1], dtype=int16)
    """
    dtype = "<i2" if np.abs(labels).max(initial=0) < 2**15 else "<i4"
    packed = zlib.compress(labels.astype(dtype).tobytes(), 9)
    return f"{dtype}:{base64.b64encode(packed).decode()}"


def decode_labels(text: str) -> NDArray[np.integer]:
    """Return the labels that `encode_labels` packed."""
    dtype, _, packed = text.partition(":")
    return np.frombuffer(zlib.decompress(base64.b64decode(packed)), dtype=dtype)


def same_data(one: DatasetRecord, other: DatasetRecord) -> bool:
    """Return whether two records are of the same values and the same classes."""
    names: tuple[Literal["n_samples", "n_features", "dtype", "sha256"], ...]
    names = ("n_samples", "n_features", "dtype", "sha256")
    # Unpacked: another version of the compressor may pack the same classes otherwise.
    classes = decode_labels(one["classes"]), decode_labels(other["classes"])
    return all(one[name] == other[name] for name in names) and np.array_equal(*classes)


def run_key(record: RunRecord) -> str:
    """Return what makes a run the same run: names, parameters and repetition."""
    names = record["dataset"], record["method"]
    given = record["generator_parameters"], record["parameters"]
    return json.dumps([*names, *given, record["repetition"]], sort_keys=True)


@dataclass
class Store:
    """The content of a file of records.

    Attributes
    ----------
    study : dict
        The study file, as it was read.
    datasets : dict
        Name to record, with the classes.
    runs : dict
        Key to record; the last of several with the same key.
    """

    study: StudyText = field(default_factory=dict)
    datasets: dict[str, DatasetRecord] = field(default_factory=dict)
    runs: dict[str, RunRecord] = field(default_factory=dict)

    def add(self, record: Record) -> None:
        """Take one line into account.

        Parameters
        ----------
        record : dict
            One run, as JSON can hold it.
        """
        if record["record"] == "study":
            self.study = record["study"]
        elif record["record"] == "dataset":
            self.datasets[record["dataset"]] = record
        else:
            self.runs[run_key(record)] = record


def read_records(path: str | os.PathLike[str]) -> Store:
    """Read a file of records, gzipped or not.

    Parameters
    ----------
    path : path-like
        The file. A last line that was torn by a crash is ignored.

    Returns
    -------
    Store
        Its content; empty if there is no file.
    """
    file = Path(path)
    return _parse(_unpacked(file), file)[0] if file.exists() else Store()


def _unpacked(path: Path) -> bytes:
    content = path.read_bytes()
    if not content.startswith(_GZIP):
        return content
    try:
        with gzip.open(path) as archive:
            unpacked = archive.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(
            f"the archive {os.fspath(path)!r} is damaged ({error}); get it again."
        ) from error
    if len(unpacked) > MAX_BYTES:
        raise ValueError(
            f"the archive {os.fspath(path)!r} unpacks to more than "
            f"{MAX_BYTES / 2**30:.0f} GiB; unpack it and give the file in it."
        )
    return unpacked


def _parse(content: bytes, path: Path) -> tuple[Store, int]:
    """Return the records, and the number of bytes before a torn last line."""
    store, n_records, damaged = Store(), 0, []
    lines = content.split(b"\n")
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                store.add(_record(line))
                n_records += 1
            except (ValueError, TypeError):
                damaged.append(number)
    length, last = len(content), lines[-1]
    # A crash tears the last line, which then has no line break.
    torn = damaged[-1:] == [len(lines)]
    if torn and (n_records or last.startswith(_BEGINNING)):
        damaged.pop()
        length -= len(last)
    if damaged and not n_records:
        raise ValueError(
            f"{os.fspath(path)!r} is no file of records and is left as it is; give "
            "another file."
        )
    if damaged:
        raise ValueError(
            f"line {damaged[0]} of {os.fspath(path)!r} is damaged; delete that line, "
            "and its run will be repeated."
        )
    return store, length


def _record(line: bytes) -> Record:
    try:
        # Told the encoding: json would also take lines in others, which never mix.
        record = json.loads(line.decode("utf-8-sig"))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    kind = record.get("record") if isinstance(record, dict) else None
    needed = None if kind is None else _NEEDED.get(kind)
    if needed is None or not needed <= record.keys():
        raise ValueError("not a record")
    known: Record = record
    return known


class Journal:
    """A file of records open for appending; a record is on disk when it returns.

    Parameters
    ----------
    path : Path
        The file; a torn last line is cut off first. What is no file of records is
        refused and left as it is.

    Attributes
    ----------
    store : Store
        What the file held when it was opened; no one else has written since.
    """

    def __init__(self, path: Path) -> None:
        if path.exists() and not path.is_file():
            raise ValueError(
                f"{os.fspath(path)!r} is a folder or a device; give a file of records."
            )
        _refuse_archives(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._file: IO[bytes] = path.open("a+b")
        except PermissionError as error:
            raise PermissionError(
                f"{os.fspath(path)!r} may not be written to; allow it, or give another "
                "file of records."
            ) from error
        with ExitStack() as unless_begun:
            unless_begun.callback(self._file.close)
            self.store = self._begin(path)
            unless_begun.pop_all()

    def _begin(self, path: Path) -> Store:
        if try_lock(self._file) is False:
            raise BlockingIOError(
                f"another process is writing {os.fspath(path)!r}; wait for it or "
                "choose another file."
            )
        sync_folder(path.parent)
        self._file.seek(0)
        content = self._file.read()
        store, length = _parse(content, path)
        self._file.truncate(length)
        if not content[:length].endswith(b"\n") and length:
            self._file.write(b"\n")
        return store

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, record: Record) -> None:
        """Write one record through to the disk."""
        line = json.dumps(record, separators=(",", ":"), allow_nan=False)
        self._file.write(line.encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def _refuse_archives(path: Path) -> None:
    packed = path.suffix.lower() == ".gz"
    if path.exists():
        with path.open("rb") as file:
            packed |= file.read(len(_GZIP)) == _GZIP
    if packed:
        raise ValueError(
            f"{os.fspath(path)!r} is an archive, to which no records are added; give "
            "a file that is not gzipped, such as the one in it."
        )
