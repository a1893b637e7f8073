"""Records of runs: one line of JSON each, only ever appended.

Scores are computed from records, so that a report needs neither the data nor a second
fit. The field "record" of a line tells its kind:

- "study": the parsed study file, as study.
- "dataset": dataset, n_samples, n_features, n_clusters, dtype, sha256 of the values,
  and the encoded classes.
- "run": study, dataset, method, generator, generator_parameters, parameters,
  repetition, generator_seed, seed, status and message. A run that was not ended from
  outside also has time, versions, commit, machine (system, processor, cores,
  available_memory), generation and consensus (seconds, cpu_seconds, peak_bytes each),
  warnings and, if it succeeded, the encoded labels and their number n_found.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.files import hold_lock, sync_folder
from mdec._support.memory import MAX_BYTES
from mdec.ensemble.plan import OLD_NAMES

# The arguments of a call, a parsed study file, and a line of a file of records.
Parameters = dict[str, Any]
StudyText = dict[str, Any]
Record = dict[str, Any]

OK = "ok"
OUT_OF_MEMORY = "OM"
TIMEOUT = "timeout"
MISSING = "missing"
FAILED = "failed"

_GZIP = b"\x1f\x8b"
# The beginning of a file that `run_study` writes.
_BEGINNING = b'{"record":"study",'
# What identifies a run, and the fields that a line of each kind must have.
_KEY = ("dataset", "method", "generator_parameters", "parameters", "repetition")
_NEEDED = {"study": {"study"}, "dataset": {"dataset"}, "run": {*_KEY, "status"}}


def encode_labels(labels: NDArray[np.integer]) -> str:
    """Return labels as text: their type, then compressed bytes.

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
    try:
        return np.frombuffer(zlib.decompress(base64.b64decode(packed)), dtype=dtype)
    except (zlib.error, TypeError, ValueError) as error:
        words = "the labels of a record are damaged; delete its line and run it again."
        raise ValueError(words) from error


def run_key(record: Record) -> str:
    """Return what identifies a run: names, parameters and repetition."""
    return json.dumps([record[name] for name in _KEY], sort_keys=True)


@dataclass
class Records:
    """The content of a file of records.

    Attributes
    ----------
    study : dict
        The parsed study file.
    datasets : dict
        Name to record, with the classes.
    runs : dict
        Key to record; the last of several with the same key.
    """

    study: StudyText = field(default_factory=dict)
    datasets: dict[str, Record] = field(default_factory=dict)
    runs: dict[str, Record] = field(default_factory=dict)

    def add(self, record: Record) -> None:
        """Add the record of one line.

        Parameters
        ----------
        record : dict
            Of the study, of a dataset or of a run.
        """
        if record["record"] == "study":
            self.study = record["study"]
        elif record["record"] == "dataset":
            self.datasets[record["dataset"]] = record
        else:
            self.runs[run_key(record)] = record


def read_records(path: str | os.PathLike[str]) -> Records:
    """Read a file of records, gzipped or not.

    Parameters
    ----------
    path : path-like
        The file. A last line that was torn by a crash is ignored.

    Returns
    -------
    Records
        Its content; empty if there is no file.
    """
    name = os.fspath(path)
    if not Path(path).exists():
        return Records()
    content = Path(path).read_bytes()
    if content.startswith(_GZIP):
        try:
            with gzip.open(path) as archive:
                content = archive.read(MAX_BYTES + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(
                f"the archive {name!r} is damaged ({error}); get it again."
            ) from error
        if len(content) > MAX_BYTES:
            raise ValueError(
                f"the archive {name!r} unpacks to more than "
                f"{MAX_BYTES / 2**30:.0f} GiB; unpack it and give the file in it."
            )
    return _parse(content, name)[0]


def _parse(content: bytes, name: str) -> tuple[Records, int]:
    """Return the records, and the number of bytes before a torn last line."""
    records, n_records, damaged = Records(), 0, []
    lines = content.split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        for old, new in OLD_NAMES.items():  # of parameters
            line = line.replace(f'"{old}"'.encode(), f'"{new}"'.encode())
        try:
            # With the encoding: json would accept lines in others, which never mix.
            record: Record = json.loads(line.decode("utf-8-sig"))
            if not _NEEDED[record["record"]] <= record.keys():
                raise ValueError("not a record")
            records.add(record)
            n_records += 1
        except (ValueError, TypeError, LookupError, RecursionError):
            damaged.append(number)
    length, last = len(content), lines[-1]
    # A crash tears the last line, which then has no line break.
    if damaged[-1:] == [len(lines)] and (n_records or last.startswith(_BEGINNING)):
        damaged.pop()
        length -= len(last)
    if damaged and not n_records:
        raise ValueError(
            f"{name!r} is not a file of records and is left as it is; give another."
        )
    if damaged:
        raise ValueError(
            f"line {damaged[0]} of {name!r} is damaged; delete that line, and its run "
            "will be repeated."
        )
    return records, length


@contextmanager
def open_journal(path: Path) -> Iterator[tuple[Records, Callable[[Record], None]]]:
    """Open a file of records; yield its content, and a function that appends a record.

    No one else writes meanwhile, and a record is on disk when the function returns. A
    torn last line is cut off first; a file of anything else is refused and left as it
    is.
    """
    name = os.fspath(path)
    if path.exists() and not path.is_file():
        raise ValueError(f"{name!r} is a folder or a device; give a file of records.")
    packed = path.suffix.lower() == ".gz"
    with suppress(FileNotFoundError), path.open("rb") as found:
        packed |= found.read(len(_GZIP)) == _GZIP
    if packed:
        raise ValueError(
            f"{name!r} is an archive, to which no records are added; give a file that "
            "is not gzipped, such as the one in it."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        try:
            file = stack.enter_context(path.open("a+b"))
            stack.enter_context(hold_lock(path.with_name(f".{path.name}.lock")))
        except PermissionError as error:
            raise PermissionError(
                f"{name!r} may not be written to; allow it, or give another file of "
                "records."
            ) from error
        except BlockingIOError as error:
            raise BlockingIOError(
                f"another process is writing {name!r}; wait for it or choose another "
                "file."
            ) from error
        sync_folder(path.parent)
        file.seek(0)
        content = file.read()
        records, length = _parse(content, name)
        file.truncate(length)
        if not content[:length].endswith(b"\n") and length:
            file.write(b"\n")

        def append(record: Record) -> None:
            line = json.dumps(record, separators=(",", ":"), allow_nan=False)
            file.write(line.encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

        yield records, append
