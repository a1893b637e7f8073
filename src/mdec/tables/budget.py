"""The file to read: what is said of it, and what reading it may take.

A claim is checked before anything is allocated.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import IO, Any
from zipfile import ZipFile

from mdec._support.archives import DAMAGED, DamagedFileError
from mdec._support.memory import MAX_BYTES, require_memory

STANDARD_INPUT = "-"
COMPRESSIONS = (".gz", ".bz2", ".xz", ".zip")

_BLOCK = 2**20
_DAMAGED: tuple[type[Exception], ...] = (*DAMAGED, OSError, lzma.LZMAError)


class TableError(ValueError):
    """A file cannot be read as a table; one sentence names the cause and the cure.

    Where a name is not in the file, `names` has those that are.
    """

    names: tuple[str, ...] = ()


@dataclass
class TableFile:
    """A file to read, what the user says of it, and what was taken of its budget.

    All its parts together may unpack to `max_bytes`; "-" is standard input. What else
    may be said are the parameters of `read_table`.

    Examples
    --------
    >>> file = TableFile(Path("a.npz"), max_bytes=100)
    >>> file.take(60)
    >>> file.taken
    60
    >>> file.error("is empty.")
    TableError("'a.npz' is empty.")
    """

    path: Path
    transpose: bool | None = None
    label_column: str | None = None
    id_column: str | None = None
    drop: Sequence[str] = ()
    features: Sequence[str] = ()
    header: bool | None = None
    index: bool | None = None
    variable: str | None = None
    missing: Sequence[str] = ()
    impute: str | None = None
    categories: str | None = None
    category_columns: Sequence[str] = ()
    dates: str | None = None
    max_bytes: int = MAX_BYTES
    known_features: Sequence[str] | None = None
    encoding: Mapping[str, Sequence[str]] | None = None
    least_samples: int = 3
    sparse: bool = False
    taken: int = 0

    @property
    def name(self) -> str:
        """The file, as messages name it."""
        return display_name(self.path)

    def take(self, n_bytes: int, *, copies: int = 3) -> None:
        """Take bytes off the budget, or raise one sentence; nothing is allocated.

        Parameters
        ----------
        n_bytes : int
            What the file claims.
        copies : int
            How many times as much is in memory for a moment while it is read.
        """
        self.taken += n_bytes
        if n_bytes < 0 or self.taken > self.max_bytes:
            raise self.error(
                f"unpacks to {self.taken / 1e9:.1f} GB and the limit is "
                f"{self.max_bytes / 1e9:.1f} GB; raise it with max_bytes=... if you "
                "trust the file."
            )
        self.require_memory(copies * n_bytes)

    def require_memory(self, n_bytes: int) -> None:
        """Raise one sentence if the memory for reading the file is not there."""
        cure = "leave columns out, or save it as .npy or .parquet, which need far less"
        require_memory(n_bytes, f"reading {self.name!r}", cure)

    @contextmanager
    def parsing(self, what: str, *errors: type[Exception]) -> Iterator[None]:
        """Turn what libraries raise on a damaged file into one sentence.

        Parameters
        ----------
        what : str
            What the file should be.
        *errors
            Further exceptions of the library.
        """
        try:
            yield
        except TableError:
            raise
        except DamagedFileError as error:
            raise TableError(str(error)) from error
        except _DAMAGED + errors as error:
            raise self.damage(what) from error

    def error(self, complaint: str) -> TableError:
        """Return the error for what a sentence says about the file."""
        return TableError(f"{self.name!r} {complaint}")

    def damage(self, what: str) -> TableError:
        """Return the error for a file that is not what its name says."""
        return self.error(f"is damaged or not {what}.")

    def unknown_name(self, what: str, name: str, known: Iterable[str]) -> TableError:
        """Return the error for a name that is not in the file.

        It lists the names that are, of such a thing as "column", the likely ones first.
        """
        names = list(known)
        close = get_close_matches(name, names, n=3)
        listed = list_names(close + [each for each in names if each not in close], 20)
        error = self.error(f"has no {what} {name!r}; it has {listed or 'none'}.")
        error.names = tuple(names)
        return error


def list_names(names: Sequence[str], n_shown: int = 3) -> str:
    """Return the first names of a list.

    Examples
    --------
    >>> list_names(["a", "b"]), list_names("abcd")
    ("'a', 'b'", "'a', 'b', 'c', ...")
    """
    shown = ", ".join(repr(str(name)[:40]) for name in names[:n_shown])
    return shown + (", ..." if len(names) > n_shown else "")


def display_name(path: Path) -> str:
    """Return how messages name a file."""
    return "standard input" if str(path) == STANDARD_INPUT else path.name


def ending_of(path: Path) -> tuple[str, str]:
    """Return the ending that names the format, and that of the compression.

    Examples
    --------
    >>> ending_of(Path("genes.CSV.gz")), ending_of(Path("-"))
    (('.csv', '.gz'), ('.csv', ''))
    """
    if str(path) == STANDARD_INPUT:
        return ".csv", ""
    endings = ["", *(each.lower() for each in path.suffixes)]
    packing = endings.pop() if endings[-1] in COMPRESSIONS else ""
    return endings[-1], packing


def read_bytes(file: TableFile, path: Path, *, copies: int = 3) -> bytes:
    """Return the content of a file or one beside it, compressed or not, or of "-".

    The budget stops the reading at the limit, whatever is claimed; for the copies see
    `TableFile.take`.
    """
    content = io.BytesIO()
    what = f"a {ending_of(path)[1] or 'readable'} file"
    with file.parsing(what), _open_unpacked(path) as source:
        while block := source.read(_BLOCK):
            file.take(len(block), copies=0)
            content.write(block)
            # Asking takes time, so only where the size passes a power of two.
            if content.tell() & (content.tell() - 1) < _BLOCK:
                file.require_memory(copies * content.tell())
    return content.getvalue()


@contextmanager
def _open_unpacked(path: Path) -> Iterator[IO[bytes]]:
    compression = ending_of(path)[1]
    if str(path) == STANDARD_INPUT:
        yield sys.stdin.buffer
    elif compression == ".zip":
        with ZipFile(path) as archive:
            members = [each for each in archive.infolist() if not each.is_dir()]
            if len(members) != 1:
                raise TableError(
                    f"{path.name!r} holds {len(members)} files and mdec reads archives "
                    "of one; unpack it and name the table."
                )
            with archive.open(members[0]) as file:
                yield file
    else:
        openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
        with openers.get(compression, Path.open)(path, "rb") as file:
            yield file
