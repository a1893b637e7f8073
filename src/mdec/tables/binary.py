"""Arrays: NumPy, SciPy and MATLAB files."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from mdec._support.sealed import check_text
from mdec.tables.door import (
    DAMAGED,
    Door,
    Refused,
    damaged,
    not_there,
)
from mdec.tables.raw import RawTable, as_text

DATA_NAMES = ("X", "data", "fea", "features", "x")
LABEL_NAMES = ("y", "Y", "gnd", "gt", "labels", "label", "target")

# Length of the header and of a tag in a MATLAB file; types of elements.
_MAT_HEADER, _MAT_TAG, _MAT_MATRIX, _MAT_COMPRESSED = 128, 8, 14, 15
_MAT_NUMBERS = frozenset({1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 16, 17, 18})


def read_npy(path: Path, door: Door, label_column: str | None) -> RawTable:
    """Read one array; pickled objects are refused."""
    if label_column is not None and not label_column.isdecimal():
        raise Refused(
            f"{door.name!r} has no named columns; give the number of the column of "
            "classes, counted from 1."
        )
    with path.open("rb") as file:
        size = path.stat().st_size
        door.admit(size)
        _check_npy(file, size, door.name)
    try:
        with path.open("rb") as file:
            return RawTable(_two_dimensional(np.load(file, allow_pickle=False), door))
    except Refused:
        raise
    except DAMAGED as error:
        raise damaged(door, "an .npy array") from error


def check_archive(path: Path, door: Door) -> None:
    """Weigh the arrays of an .npz archive by its directory and their headers."""
    try:
        with ZipFile(path) as archive:
            members = archive.infolist()
            door.admit(sum(each.file_size for each in members))
            for member in members:
                if member.filename.endswith(".npy"):
                    with archive.open(member) as file:
                        label = f"{door.name}: {member.filename}"
                        _check_npy(file, member.file_size, label)
    except (Refused, MemoryError):
        raise
    except DAMAGED as error:
        raise damaged(door, "an .npz archive") from error


def read_npz(
    path: Path, door: Door, variable: str, label_column: str | None, transpose: bool
) -> RawTable:
    """Read data, names and classes of an archive of arrays, or a sparse matrix.

    Parameters
    ----------
    path : Path
        The file.
    door : Door
        Weighs what the archive claims.
    variable : str
        Name of the data; "" looks for the usual names.
    label_column : str or None
        Name of the classes; None looks for the usual names.
    transpose : bool
        Whether features are in rows.

    Returns
    -------
    RawTable
        Samples in rows.
    """
    check_archive(path, door)
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            contents = {name: arrays[name] for name in arrays.files}
        for array in contents.values():
            check_text(array)
        if {"format", "shape", "data"} <= set(contents):
            contents["X"] = _sparse(contents, door)
    except (Refused, MemoryError):
        raise
    except DAMAGED as error:
        raise damaged(door, "an .npz archive") from error
    return _from_variables(contents, door, variable, label_column, transpose)


def _sparse(contents: dict[str, NDArray[Any]], door: Door) -> NDArray[Any]:
    """Return the matrix that scipy.sparse.save_npz wrote."""
    from scipy import sparse

    rows, columns = (int(n) for n in contents["shape"])
    door.admit(8 * rows * columns)
    kind = contents["format"].item()
    kind = kind.decode() if isinstance(kind, bytes) else str(kind)
    if kind in ("csr", "csc"):
        make = sparse.csr_array if kind == "csr" else sparse.csc_array
        parts = (contents[name] for name in ("data", "indices", "indptr"))
        matrix = make(tuple(parts), shape=(rows, columns))
        matrix.check_format(full_check=True)
    elif kind == "coo":
        place = (contents["row"], contents["col"])
        matrix = sparse.coo_array((contents["data"], place), shape=(rows, columns))
    else:
        raise Refused(
            f"{door.name!r} holds a sparse matrix of format {kind[:20]!r}; save it as "
            "csr, csc or coo."
        )
    dense: NDArray[Any] = matrix.toarray()
    return dense


def read_mat(
    path: Path, door: Door, variable: str, label_column: str | None, transpose: bool
) -> RawTable:
    """Read data, names and classes of a MATLAB file, version 7 or before.

    Parameters are those of `read_npz`.
    """
    from scipy import sparse
    from scipy.io import loadmat, whosmat
    from scipy.io.matlab import MatReadError, matfile_version

    broken = (*DAMAGED, MatReadError)
    what = "a MATLAB file before version 7.3"
    try:
        if matfile_version(path)[0] == 1:
            _check_mat(path, door)
        found = {name: shape for name, shape, _ in whosmat(path)}
        cells = (int(np.prod([max(n, 0) for n in s])) for s in found.values())
        door.admit(sum(8 * n for n in cells))
    except (Refused, MemoryError):
        raise
    except broken as error:
        raise damaged(door, what) from error
    try:
        loaded = loadmat(path)
        for name in found:
            if sparse.issparse(loaded[name]):
                # Indices outside of the matrix would be written through.
                loaded[name].check_format(full_check=True)
                loaded[name] = loaded[name].toarray()
        contents = {name: np.asarray(loaded[name]) for name in found}
    except (*broken, MemoryError) as error:
        raise damaged(door, what) from error
    return _from_variables(contents, door, variable, label_column, transpose)


def _check_mat(path: Path, door: Door) -> None:
    """Weigh the elements of a MATLAB file; refuse types that SciPy does not check."""
    size = path.stat().st_size
    door.admit(size)
    with path.open("rb") as file:
        file.seek(_MAT_HEADER - 2)
        order = "<" if file.read(2) == b"IM" else ">"
        while len(tag := file.read(_MAT_TAG)) == _MAT_TAG:
            kind, length = struct.unpack(f"{order}II", tag)
            if file.tell() + length > size:
                raise ValueError("an element goes on beyond the file")
            element = file.read(length)
            if kind == _MAT_COMPRESSED:
                element = _inflated(element, door)
            else:
                element = tag + element
            _check_elements(memoryview(element), order)


def _inflated(packed: bytes, door: Door) -> bytes:
    unpacker, pieces = zlib.decompressobj(), []
    while packed and not unpacker.eof:
        piece = unpacker.decompress(packed, 2**20)
        door.admit(len(piece), copies=0)
        pieces.append(piece)
        packed = unpacker.unconsumed_tail
    return b"".join(pieces)


def _check_elements(content: memoryview, order: str) -> None:
    """Walk through elements, and those inside them; SciPy trusts their types."""
    start = 0
    while start + _MAT_TAG <= len(content):
        kind, length = struct.unpack(f"{order}II", content[start : start + _MAT_TAG])
        first = start + _MAT_TAG
        if kind >> 16:  # up to four bytes, within the tag
            kind, length, first = kind & 0xFFFF, kind >> 16, start + 4
            if length > 4:
                raise ValueError("a small element is too long")
            start += _MAT_TAG
        else:
            start = first + length + -length % 8
        if first + length > len(content):
            raise ValueError("an element goes on beyond its matrix")
        if kind == _MAT_MATRIX:
            _check_elements(content[first : first + length], order)
        elif kind not in _MAT_NUMBERS:
            raise ValueError(f"elements of type {kind} are not read")


def _check_npy(file: IO[bytes], n_bytes: int, name: str) -> None:
    """Compare what the header of an array claims with what the file can hold."""
    formats = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    try:
        version = np.lib.format.read_magic(file)
        shape, _, dtype = formats[version](file)
        header = file.tell()
        claimed = int(dtype.itemsize)
        for length in shape:
            claimed *= int(length)
    except DAMAGED as error:
        raise Refused(f"{name!r} is damaged or not an .npy array.") from error
    if dtype.hasobject:
        raise Refused(
            f"{name!r} holds Python objects, which mdec does not load because they can "
            "run code; save plain numbers."
        )
    if claimed > n_bytes - header or claimed < 0:
        raise Refused(
            f"{name!r} claims {claimed / 1e9:.2g} GB of numbers and holds "
            f"{n_bytes / 1e9:.2g} GB; the file is damaged."
        )


def _two_dimensional(values: NDArray[Any], door: Door) -> NDArray[Any]:
    if values.ndim != 2:
        raise Refused(
            f"{door.name!r} holds an array of {values.ndim} dimensions; a table has "
            "two."
        )
    if values.dtype.kind not in "fiub":
        raise Refused(f"{door.name!r} holds {values.dtype} and not real numbers.")
    return values


def _from_variables(
    contents: Mapping[str, NDArray[Any]],
    door: Door,
    variable: str,
    label_column: str | None,
    transpose: bool,
) -> RawTable:
    """Find the data, the names and the classes among named arrays."""
    tables = [name for name, array in contents.items() if array.ndim == 2]
    usual = [name for name in DATA_NAMES if name in tables]
    wide = [name for name in tables if min(contents[name].shape) > 1]
    name = variable or (usual or wide or tables or [""])[0]
    if name not in contents:
        raise not_there(door, "array", variable or "X", contents)
    values = _two_dimensional(contents[name], door)
    values = values.T if transpose else values
    labels = None
    label = label_column or next((n for n in LABEL_NAMES if n in contents), "")
    # A number is that of a column of the data.
    if label and not (label.isdecimal() and label not in contents):
        if label not in contents:
            raise not_there(door, "array", label, contents)
        labels = _plain(contents[label])
    samples = _names(contents, "sample_names")
    features = _names(contents, "feature_names")
    swapped = _fits(features, samples, values.shape)
    if transpose and swapped and not _fits(samples, features, values.shape):
        # Names of rows and columns, not of samples and features.
        samples, features = features, samples
    if labels is not None and label_column is None and len(labels) != len(values):
        labels = None
    return RawTable(values, features, samples=samples, labels=labels)


def _names(contents: Mapping[str, NDArray[Any]], kind: str) -> list[str] | None:
    if kind not in contents:
        return None
    return [as_text(each) for each in _plain(contents[kind])]


def _plain(array: NDArray[Any]) -> list[Any]:
    """Return the elements of an array, those of MATLAB's cells without their boxes."""
    found = []
    for each in array.ravel().tolist():
        while isinstance(each, np.ndarray) and each.size == 1:
            each = each.ravel()[0]
        empty = isinstance(each, np.ndarray) and each.size == 0
        found.append(None if empty else each)
    return found


def _fits(
    samples: list[str] | None, features: list[str] | None, shape: tuple[int, ...]
) -> bool:
    pairs = zip((samples, features), shape, strict=True)
    return all(names is None or len(names) == n for names, n in pairs)
