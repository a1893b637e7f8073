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
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal, NotRequired, Self, TypedDict

import numpy as np
from numpy.typing import NDArray

# As people write them: the arguments of a call, and a study file.
Parameters = dict[str, Any]
StudyText = dict[str, Any]

OK = "ok"
OUT_OF_MEMORY = "OM"
TIMEOUT = "timeout"
MISSING = "missing"
FAILED = "failed"


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
        """Take one line into account."""
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
    store = Store()
    for record in _lines(Path(path)):
        store.add(record)
    return store


def _lines(path: Path) -> Iterator[Record]:
    if not path.exists():
        return
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    lines = content.splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        try:
            if not line.endswith(b"\n"):
                raise ValueError("torn")
            yield json.loads(line)
        except ValueError as error:
            if number == len(lines):
                return
            raise ValueError(
                f"line {number} of {path} is damaged; delete that line, and its run "
                "will be repeated."
            ) from error


class Journal:
    """A file of records open for appending; a record is on disk when it returns.

    Parameters
    ----------
    path : Path
        The file; a torn last line is cut off first.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: IO[bytes] = path.open("ab")
        _lock(self._file, path)
        content = path.read_bytes()
        self._file.truncate(content.rfind(b"\n") + 1)

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


def _lock(file: IO[bytes], path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        # Released by the system when the process ends, however it ends.
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.close()
        raise OSError(
            f"another process is writing {path}; wait for it or choose another file."
        ) from error
