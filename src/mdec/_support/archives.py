"""Arrays in one file, with their lengths and digests, read without trust.

The container is an .npz archive: a text of JSON beside arrays. Nothing in it is
executed, and nothing is unpacked before its size is known.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from mdec._support.files import atomic_file
from mdec._support.memory import MAX_BYTES, require_memory

# What reading a file that is cut short, changed or invented may raise.
DAMAGED = (
    *(ValueError, TypeError, LookupError, AttributeError, EOFError, OverflowError),
    # The first also of too deep a recursion, and of a claim to be encrypted.
    *(RuntimeError, SyntaxError, BadZipFile, TokenError, zlib.error),
)

_TEXT = "provenance"

# What the objects of a text of JSON take, as a multiple of its size in the archive.
_TEXT_COPIES = 8


class DamagedFileError(ValueError):
    """A file is not what it should be; the message says which."""


def write_sealed(
    path: str | os.PathLike[str],
    provenance: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """Write arrays of numbers by name, and what they are as JSON, all or nothing.

    An old file is replaced at the end.
    """
    seals = {name: _seal(np.asarray(array)) for name, array in arrays.items()}
    text = np.array(json.dumps({**provenance, "seals": seals}))
    content: dict[str, Any] = {_TEXT: text, **arrays}
    with atomic_file(path) as file:
        np.savez_compressed(file, **content)


def read_sealed(
    path: str | os.PathLike[str], max_bytes: int = MAX_BYTES
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read what `write_sealed` wrote, and check it.

    Parameters
    ----------
    path : path-like
        The file.
    max_bytes : int
        A file that claims to unpack to more is refused.

    Returns
    -------
    provenance : dict
        The JSON.
    arrays : dict of ndarray
        By name. Those of a file without seals, of the first version, are not compared.
    """
    name = os.fspath(path)
    # A device or a pipe may never end.
    if Path(path).exists() and not Path(path).is_file():
        raise DamagedFileError(f"{name!r} is not a file; check its name.")
    with Path(path).open("rb") as file:
        try:
            with ZipFile(file) as archive:
                _require_size(archive, name, max_bytes)
                names = [each.removesuffix(".npy") for each in archive.namelist()]
                found = {each: _read_array(archive, each) for each in names}
            provenance = json.loads(str(found.pop(_TEXT)))
            seals = provenance.pop("seals", None)
            whole = seals is None or seals == {n: _seal(a) for n, a in found.items()}
        except DamagedFileError:
            raise
        except (OSError, *DAMAGED) as error:  # an offset may lie outside of the file
            raise DamagedFileError(
                f"{name!r} is damaged or was not written by mdec."
            ) from error
    if not whole:
        raise DamagedFileError(f"{name!r} is damaged: its content was changed.")
    return provenance, found


@contextmanager
def parts_that_fit(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raise one sentence if what was read from a file cannot be put together."""
    try:
        yield
    except DAMAGED as error:
        raise DamagedFileError(
            f"{os.fspath(path)!r} is damaged: its parts do not fit each other."
        ) from error


def _require_size(archive: ZipFile, name: str, max_bytes: int) -> None:
    claimed = sum(each.file_size for each in archive.infolist())
    if claimed > max_bytes:
        raise DamagedFileError(
            f"{name!r} unpacks to {claimed / 1e9:.1f} GB, more than the limit of "
            f"{max_bytes / 1e9:.1f} GB; raise the limit if you trust the file."
        )
    text = sum(e.file_size for e in archive.infolist() if e.filename == f"{_TEXT}.npy")
    needed = 2 * claimed + _TEXT_COPIES * text
    require_memory(needed, f"reading {name!r}", "free some memory")


def _read_array(archive: ZipFile, name: str) -> NDArray[Any]:
    """Read one array of numbers or text; its header may not claim more than is there.

    zipfile itself gives no more bytes than the archive claims.
    """
    with archive.open(f"{name}.npy") as file:
        shape, by_columns, dtype = read_npy_header(file)
        content = bytearray(file.read())
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != len(content):
        raise ValueError("the header does not fit the content")
    array = np.ndarray(shape, dtype, content, order="F" if by_columns else "C")
    check_text(array)
    return array


def read_npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return the shape of an array, whether columns come first, and its type.

    Raises
    ------
    ValueError, KeyError
        If there is no header of version 1 or 2; other errors that damage causes are in
        `DAMAGED`.
    """
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    return readers[np.lib.format.read_magic(file)](file)


def check_text(array: NDArray[Any]) -> None:
    """Raise a ValueError if an array of text holds what is no character.

    NumPy does not check what it reads, and Python fails on it later.
    """
    if array.dtype.kind == "U":
        native = array.astype(array.dtype.newbyteorder("="))
        points = np.frombuffer(native.tobytes(), dtype=np.uint32)
        if points.max(initial=0) > sys.maxunicode:
            raise ValueError("the text contains something that is not a character")


def _seal(array: NDArray[Any]) -> dict[str, Any]:
    content = np.ascontiguousarray(array)
    return {
        "dtype": content.dtype.str,
        "shape": list(content.shape),
        "sha256": hashlib.sha256(content.data).hexdigest(),
    }
