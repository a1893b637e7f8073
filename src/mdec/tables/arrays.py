"""Arrays and columns of numbers: NumPy, SciPy, MATLAB, Matrix Market and Parquet."""

from __future__ import annotations

import io
import math
import struct
import zlib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import IO, Any
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from mdec._support.archives import check_text
from mdec._support.optional import import_optional
from mdec.rows.sources import read_checked_header
from mdec.tables.budget import TableFile, ending_of, read_bytes
from mdec.tables.cells import as_text
from mdec.tables.columns import RawTable, as_matrix, has_role
from mdec.tables.text import read_lines

DATA_NAMES = ("X", "data", "fea", "features", "x")
LABEL_NAMES = ("y", "Y", "gnd", "gt", "labels", "label", "target")

# Length of the header and of a tag in a MATLAB file; types of elements.
_MAT_HEADER, _MAT_TAG, _MAT_MATRIX, _MAT_COMPRESSED = 128, 8, 14, 15
_MAT_NUMBERS = frozenset({1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 16, 17, 18})

# Bytes in memory for each array of a MATLAB file beside its numbers.
_MAT_ARRAY = 800

_MTX_FIELDS = ("real", "double", "integer", "pattern")
_MTX_MIRRORED = {"general": 0.0, "symmetric": 1.0, "skew-symmetric": -1.0}
# Bytes in memory for each entry of a Matrix Market file.
_MTX_ENTRY = 64
# And for each cell of a column whose text is wanted.
_PER_TEXT = 96


def read_npy(file: TableFile) -> RawTable:
    """Read one array; pickled objects are refused."""
    size = file.path.stat().st_size
    file.take(size)
    with file.path.open("rb") as source, file.parsing("an .npy array"):
        read_checked_header(source, size, file.name)
        source.seek(0)
        return RawTable(as_matrix(np.load(source, allow_pickle=False), file))


def check_archive(file: TableFile) -> None:
    """Check the arrays of an .npz archive by its directory and their headers."""
    with file.parsing("an .npz archive"), ZipFile(file.path) as archive:
        members = archive.infolist()
        file.take(sum(each.file_size for each in members))
        for member in members:
            if member.filename.endswith(".npy"):
                with archive.open(member) as source:
                    label = f"{file.name}: {member.filename}"
                    read_checked_header(source, member.file_size, label)


def read_npz(file: TableFile) -> RawTable:
    """Read data, names and classes of an archive of arrays, or a sparse matrix."""
    from scipy import sparse

    check_archive(file)
    with file.parsing("an .npz archive"):
        with np.load(file.path, allow_pickle=False) as arrays:
            contents = {name: arrays[name] for name in arrays.files}
        for array in contents.values():
            check_text(array)
        if {"format", "shape", "data"} <= set(contents):
            # What scipy.sparse.save_npz wrote.
            kind = as_text(contents["format"].item())
            file.take(8 * math.prod(int(n) for n in contents["shape"]))
            if kind not in ("csr", "csc", "coo"):
                raise file.error(
                    f"holds a sparse matrix of format {kind[:20]!r}; save it as csr, "
                    "csc or coo."
                )
            contents["X"] = _fill(sparse.load_npz(file.path))
    return _from_variables(contents, file)


def _fill(matrix: Any) -> NDArray[Any]:
    """Return a sparse matrix with its zeros, or raise if it is damaged."""
    # Indices outside of the matrix would be written through.
    if matrix.format != "coo":
        matrix.check_format(full_check=True)
    dense: NDArray[Any] = matrix.toarray()
    return dense


def read_mat(file: TableFile) -> RawTable:
    """Read data, names and classes of a MATLAB file, version 7 or before."""
    from scipy import sparse
    from scipy.io import loadmat, whosmat
    from scipy.io.matlab import MatReadError, matfile_version

    what = "a MATLAB file before version 7.3"
    with file.parsing(what, MatReadError):
        if matfile_version(file.path)[0] == 1:
            _check_mat(file)
        found = {name: shape for name, shape, _ in whosmat(file.path)}
        sizes = (math.prod(max(n, 0) for n in shape) for shape in found.values())
        file.take(8 * sum(sizes))
    with file.parsing(what, MatReadError, MemoryError):
        loaded = loadmat(file.path)
        contents = {
            name: _fill(each) if sparse.issparse(each) else np.asarray(each)
            for name, each in ((name, loaded[name]) for name in found)
        }
    return _from_variables(contents, file)


def _check_mat(file: TableFile) -> None:
    """Check the elements of a MATLAB file, whose types SciPy trusts."""
    size, n_arrays = file.path.stat().st_size, 0
    file.take(size)
    content, start = memoryview(file.path.read_bytes()), _MAT_HEADER
    order = "<" if bytes(content[start - 2 : start]) == b"IM" else ">"
    while start + _MAT_TAG <= size:
        kind, length = struct.unpack_from(f"{order}II", content, start)
        end = start + _MAT_TAG + length
        if end > size:
            raise ValueError("an element goes on beyond the file")
        element = content[start:end]
        if kind == _MAT_COMPRESSED:
            most = int(min(file.max_bytes - file.taken + 1, 2**62))
            unpacked = zlib.decompressobj().decompress(element[_MAT_TAG:], most)
            file.take(len(unpacked), copies=0)
            element = memoryview(unpacked)
        n_arrays += _count_arrays(element, order)
        start = end
    # SciPy makes an array of every cell, however small it is.
    file.require_memory(_MAT_ARRAY * n_arrays)


def _count_arrays(content: memoryview, order: str) -> int:
    """Check elements, and those inside them; return how many arrays they make."""
    start = found = 0
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
            found += 1 + _count_arrays(content[first : first + length], order)
        elif kind not in _MAT_NUMBERS:
            raise ValueError(f"elements of type {kind} are not read")
    return found


def _from_variables(contents: Mapping[str, NDArray[Any]], file: TableFile) -> RawTable:
    """Find the data, the names and the classes among named arrays."""
    tables = [name for name, array in contents.items() if array.ndim == 2]
    usual = [name for name in DATA_NAMES if name in tables]
    wide = [name for name in tables if min(contents[name].shape) > 1]
    name = file.variable or (usual or wide or tables or [""])[0]
    if name not in contents:
        raise file.unknown_name("array", file.variable or "X", contents)
    values = as_matrix(contents[name], file)
    values = values.T if file.transpose else values
    asked, labels = file.label_column, None
    label = asked or next((n for n in LABEL_NAMES if n in contents), "")
    # A number is that of a column of the data.
    if label and not (label.isdecimal() and label not in contents):
        if label not in contents:
            raise file.unknown_name("array", label, contents)
        labels = _unbox(contents[label], file)
        if asked is None and len(labels) != len(values):
            labels = None
    samples, features = (
        [as_text(each) for each in _unbox(contents[kind], file)]
        if kind in contents
        else None
        for kind in ("sample_names", "feature_names")
    )
    swapped = _fits(features, samples, values.shape)
    if file.transpose and swapped and not _fits(samples, features, values.shape):
        # Names of rows and columns, not of samples and features.
        samples, features = features, samples
    return RawTable(values, features, samples=samples, labels=labels)


def _unbox(array: NDArray[Any], file: TableFile) -> list[Any]:
    """Return the elements of an array, those of MATLAB's cells without their boxes."""
    file.require_memory(2 * _PER_TEXT * array.size)
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


def read_mtx(file: TableFile) -> RawTable:
    """Read a Matrix Market file, compressed or not, with the names beside it.

    SciPy's reader is not used, since damaged files end its process. Barcodes beside
    the file tell too whether features are in rows.
    """
    content = read_bytes(file, file.path)
    with file.parsing("a Matrix Market file of real numbers"):
        values = _parse_mtx(content, file)
    samples = _read_names(file, ("barcodes", "cells"), 0, values.shape)
    features = _read_names(file, ("features", "genes"), 1, values.shape)
    turn = file.transpose
    if samples is not None and len(samples) != len(values):
        turn = turn or len(samples) == values.shape[1]
    values = values.T if turn else values
    return RawTable(values, features, samples=samples, settled=True)


def find_matrix(path: Path) -> Path:
    """Return the .mtx file of a folder, as Cell Ranger writes it; files themselves."""
    inside = sorted(path.glob("*.mtx*")) if path.is_dir() else []
    return inside[0] if len(inside) == 1 else path


def _parse_mtx(content: bytes, file: TableFile) -> NDArray[np.float64]:
    lines = io.BytesIO(content)
    head = lines.readline().decode().lower().split()
    sizes = ["%"]
    while not sizes or sizes[0].startswith("%"):
        line = lines.readline()
        sizes = line.decode().split() if line else ["none"]
    mark, _, layout, kind, symmetry = head
    rows, columns, *more = (int(word) for word in sizes)
    if mark != "%%matrixmarket" or kind not in _MTX_FIELDS or min(rows, columns) < 0:
        raise ValueError("not a header of real numbers")
    mirrored = _MTX_MIRRORED[symmetry]
    file.take(8 * rows * columns)
    if layout == "array":
        if mirrored or more or kind == "pattern":
            raise ValueError("only whole arrays are read")
        return _read_numbers(lines, rows * columns, 1).reshape(columns, rows).T
    file.take(_MTX_ENTRY * more[0], copies=1)
    listed = _read_numbers(lines, more[0], 2 if kind == "pattern" else 3)
    inside = (listed[:, :2] >= 1) & (listed[:, :2] <= (rows, columns))
    if not inside.all() or (listed[:, :2] % 1.0).any():
        raise ValueError("an entry lies outside the matrix or between its cells")
    places = tuple(listed[:, :2].T.astype(np.int64) - 1)
    numbers = np.ones(more[0]) if kind == "pattern" else listed[:, 2]
    values = coo_array((numbers, places), shape=(rows, columns)).toarray()
    if mirrored:
        values += mirrored * (values - np.diag(np.diag(values))).T
    return values


def _read_numbers(lines: IO[bytes], n_rows: int, width: int) -> NDArray[np.float64]:
    """Return rows of numbers that nothing but spaces separate, as many as claimed."""
    rest = lines.read()
    listed = np.empty((0, width))
    if rest.strip():
        listed = np.loadtxt(io.BytesIO(rest), ndmin=2, comments=None)
    if listed.shape != (n_rows, width) or np.isnan(listed).any():
        raise ValueError(f"not {n_rows} rows of {width} numbers")
    return listed


def _read_names(
    file: TableFile, kinds: tuple[str, ...], column: int, shape: tuple[int, ...]
) -> list[str] | None:
    """Return a column of the list of names beside a matrix, if there is one.

    A list that is one longer than the matrix has a head.
    """
    stem = file.path.name.split(".mtx")[0]
    prefix = stem[: -len("matrix")] if stem.endswith("matrix") else f"{stem}_"
    for kind in kinds:
        for ending in (".tsv", ".tsv.gz", ".txt", ".csv"):
            found = file.path.with_name(f"{prefix}{kind}{ending}")
            if found.is_file():
                sign = "," if ending_of(found)[0] == ".csv" else "\t"
                lines = read_lines(file, found)[0]
                rows = [line.split(sign) for line in lines if line.strip()]
                headed = len(rows) not in shape and len(rows) - 1 in shape
                names = [row[min(column, len(row) - 1)].strip('" ') for row in rows]
                return names[headed:]
    return None


def read_columns(file: TableFile) -> RawTable:
    """Read a Parquet, Arrow or Feather (version 2) file; its own index names the rows.

    Columns of lists or records are not read: their cells name their type.
    """
    for package in ("pandas", "pyarrow"):
        needed_for = "reading Parquet, Feather and Arrow files"
        import_optional(package, needed_for=needed_for, install="mdec[data]")
    from pyarrow.lib import ArrowException

    parquet = ending_of(file.path)[0] == ".parquet"
    what = "a Parquet file" if parquet else "a Feather or Arrow file"
    with (
        file.parsing(what, ArrowException, MemoryError),
        file.path.open("rb") as source,
    ):
        read = _read_parquet if parquet else _read_batches
        return _from_arrow(*read(source, file), file)


def _read_parquet(source: IO[bytes], file: TableFile) -> tuple[Any, Any]:
    """Return the columns of a Parquet file, and its schema."""
    from pyarrow import parquet

    with parquet.ParquetFile(source) as whole:
        header, schema = whole.metadata, whole.schema_arrow
    groups = [header.row_group(i) for i in range(header.num_row_groups)]
    n_rows = sum(each.num_rows for each in groups)
    n_bytes = max(8 * n_rows * len(schema), sum(g.total_byte_size for g in groups))
    file.take(n_bytes, copies=0)
    nested, texts = _sort_columns(schema)
    named = (j for j, name in enumerate(schema.names) if has_role(name, file))
    written = n_rows * len({0, *texts, *named})
    file.take(_PER_TEXT * written, copies=0)
    file.require_memory(4 * n_bytes + _PER_TEXT * written)
    for group in groups:
        places = range(group.num_columns) if nested else texts
        for chunk in (group.column(j) for j in places):
            if "DELTA_BYTE_ARRAY" in chunk.encodings:
                # Each text may repeat the whole beginning of the one before.
                file.take(chunk.num_values * chunk.total_uncompressed_size)
    # A text that stands in many cells, but once in the file, is read but once.
    with parquet.ParquetFile(source, read_dictionary=[*texts.values()]) as whole:
        flat = [name for name in schema.names if name not in nested]
        return whole.read(flat if nested else None, use_threads=False), schema


def _read_batches(source: IO[bytes], file: TableFile) -> tuple[Any, Any]:
    """Return the columns of an Arrow file or stream, and its schema.

    It is read batch by batch, each of which the budget has to allow.
    """
    from pyarrow import Table, ipc

    file.take(file.path.stat().st_size)
    whole, parts = source.read(6) == b"ARROW1", []
    source.seek(0)
    batches = ipc.open_file(source) if whole else ipc.open_stream(source)
    schema = batches.schema
    if whole:
        batches = map(batches.get_batch, range(batches.num_record_batches))
    nested, texts = _sort_columns(schema)
    for batch in batches:
        # PyArrow believes the places of texts that a damaged file names.
        batch.validate(full=True)
        n_texts = len(nested) + len(texts)
        file.take(batch.nbytes + _PER_TEXT * batch.num_rows * n_texts)
        parts.append(batch)
    return Table.from_batches(parts, schema).drop_columns(list(nested)), schema


def _sort_columns(schema: Any) -> tuple[dict[str, str], dict[int, str]]:
    """Return the types of nested columns by name, and the names of those of texts."""
    from pyarrow import types

    nested = {f.name: str(f.type) for f in schema if types.is_nested(f.type)}
    numbers = types.is_integer, types.is_floating, types.is_boolean, types.is_nested
    of_texts = (not any(is_such(f.type) for is_such in numbers) for f in schema)
    texts = {j: schema.names[j] for j, is_text in enumerate(of_texts) if is_text}
    return nested, texts


def _from_arrow(table: Any, schema: Any, file: TableFile) -> RawTable:
    """Return a table of Arrow, with the types of nested columns in their cells."""
    frame = table.to_pandas()
    for name, kind in _sort_columns(schema)[0].items():
        frame.insert(schema.names.index(name), name, [kind] * len(frame))
    raw = RawTable(np.full(frame.shape, np.nan), [str(name) for name in frame.columns])
    for place, name in enumerate(raw.names):
        column = frame.iloc[:, place]
        if isinstance(next(iter(column.dropna()), None), Decimal):
            column = column.astype(np.float64)
        if column.dtype.kind in "fiub":
            numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
            raw.values[:, place] = numbers
        else:
            raw.words.add(place)
        if place in raw.words or place == 0 or has_role(name, file):
            raw.texts[place] = _as_texts(column)
    if type(frame.index).__name__ != "RangeIndex":
        raw.samples = _as_texts(frame.index)
    return raw


def _as_texts(column: Any) -> list[str]:
    """Return the cells of a column or an index as texts, equal ones but once."""
    if column.dtype.name != "category":
        return [as_text(value) for value in column]
    column = getattr(column, "cat", column)
    names = [as_text(value) for value in column.categories]
    return [names[code] if code >= 0 else "" for code in column.codes.tolist()]
