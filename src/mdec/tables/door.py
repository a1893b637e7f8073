"""The one door of every reader: what a file claims is weighed before it is taken."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any
from zipfile import BadZipFile, ZipFile

from mdec._support.memory import require_memory

MAX_BYTES = 4 * 2**30
STANDARD_INPUT = "-"
COMPRESSIONS = (".gz", ".bz2", ".xz", ".zip")

# Everything that libraries raise on files which are not what they claim to be.
DAMAGED: tuple[type[Exception], ...] = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    EOFError,
    OSError,
    OverflowError,
    AttributeError,
    RuntimeError,  # also of an archive that claims to be encrypted
    SyntaxError,
    UnicodeError,
    BadZipFile,
    TokenError,
    zlib.error,
    lzma.LZMAError,
)

_BLOCK = 2**20


class Refused(ValueError):
    """A sentence of our own, not to be covered by that for damaged files."""


@dataclass
class Door:
    """What one reading may take, all its parts together.

    Attributes
    ----------
    name : str
        The file, as sentences name it.
    limit : int
        Bytes that it may unpack to.
    taken : int
        Bytes admitted so far.

    Examples
    --------
    >>> door = Door("a.npz", 100)
    >>> door.admit(60)
    >>> door.taken
    60
    """

    name: str
    limit: int = MAX_BYTES
    taken: int = 0

    def admit(self, n_bytes: int, *, copies: int = 3) -> None:
        """Let so many bytes in, or raise one sentence; nothing is allocated.

        Parameters
        ----------
        n_bytes : int
            What the file claims.
        copies : int
            How many times as much is held for a moment while it is read.
        """
        self.taken += n_bytes
        if n_bytes < 0 or self.taken > self.limit:
            raise Refused(
                f"{self.name!r} unpacks to {self.taken / 1e9:.1f} GB and the limit is "
                f"{self.limit / 1e9:.1f} GB; raise it with --max-gb (max_bytes) if you "
                "trust the file."
            )
        require_memory(
            copies * n_bytes,
            f"reading {self.name!r}",
            "use a machine with more memory",
        )


def shown_name(path: Path) -> str:
    """Return how sentences name a source."""
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
    endings = [each.lower() for each in path.suffixes]
    if endings and endings[-1] in COMPRESSIONS:
        return (endings[-2] if len(endings) > 1 else ""), endings[-1]
    return (endings[-1] if endings else ""), ""


def unpacked(path: Path, door: Door, *, copies: int = 3) -> bytes:
    """Return the content of a file, compressed or not, or of standard input.

    Parameters
    ----------
    path : Path
        The file; "-" is standard input.
    door : Door
        Stops the reading where the limit is passed, whatever the file claims.
    copies : int
        As in `Door.admit`.

    Returns
    -------
    bytes
        The content.
    """
    content = io.BytesIO()
    try:
        with _opened(path) as file:
            while block := file.read(_BLOCK):
                door.admit(len(block), copies=0)
                content.write(block)
                if content.tell() & (content.tell() - 1) < _BLOCK:
                    require_memory(
                        copies * content.tell(),
                        f"reading {door.name!r}",
                        "save it as .npy or .parquet, which need far less",
                    )
    except Refused:
        raise
    except DAMAGED as error:
        raise damaged(door, f"a {ending_of(path)[1] or 'readable'} file") from error
    return content.getvalue()


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    if str(path) == STANDARD_INPUT:
        yield sys.stdin.buffer
        return
    compression = ending_of(path)[1]
    if compression == ".zip":
        with ZipFile(path) as archive:
            members = [each for each in archive.infolist() if not each.is_dir()]
            if len(members) != 1:
                raise Refused(
                    f"{path.name!r} holds {len(members)} files and mdec reads archives "
                    "of one; unpack it and name the table."
                )
            with archive.open(members[0]) as file:
                yield file
        return
    openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    with openers.get(compression, Path.open)(path, "rb") as file:
        yield file


def damaged(door: Door, what: str) -> Refused:
    """Return the error for a file that is not what its name says."""
    return Refused(f"{door.name!r} is damaged or not {what}.")


def not_there(door: Door, what: str, name: str, there: Iterable[str]) -> Refused:
    """Return the error for a wrong name; it lists what exists.

    Parameters
    ----------
    door : Door
        The file.
    what : str
        Kind of thing that was asked for, such as "column".
    name : str
        What was asked for.
    there : iterable of str
        What there is.

    Returns
    -------
    Refused
        One sentence.
    """
    names = list(there)
    close = get_close_matches(name, names, n=3)
    shown = close + [each for each in names if each not in close][: 20 - len(close)]
    listed = ", ".join(repr(each[:60]) for each in shown) or "none"
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return Refused(f"{door.name!r} has no {what} {name!r}; it has {listed}{more}.")
