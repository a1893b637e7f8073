"""Arrays and columns of numbers: NumPy, SciPy, MATLAB, Matrix Market and Parquet."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from mdec._support.archives import check_text
from mdec._support.optional import import_optional
from mdec.rows.sources import read_checked_header
from mdec.tables.budget import ReadBudget, ending_of, read_bytes
from mdec.tables.columns import RawTable, TableOptions, as_text, has_role
from mdec.tables.text import exact_numbers, pandas, read_lines

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


def read_npy(path: Path, budget: ReadBudget, _: TableOptions) -> RawTable:
    """Read one array; pickled objects are refused."""
    with path.open("rb") as file:
        size = path.stat().st_size
        budget.take(size)
        with budget.parsing("an .npy array"):
            read_checked_header(file, size, budget.name)
            file.seek(0)
            return RawTable(_as_table(np.load(file, allow_pickle=False), budget))


def check_archive(path: Path, budget: ReadBudget) -> None:
    """Check the arrays of an .npz archive by its directory and their headers."""
    with budget.parsing("an .npz archive"), ZipFile(path) as archive:
        members = archive.infolist()
        budget.take(sum(each.file_size for each in members))
        for member in members:
            if member.filename.endswith(".npy"):
                with archive.open(member) as file:
                    label = f"{budget.name}: {member.filename}"
                    read_checked_header(file, member.file_size, label)


def read_npz(path: Path, budget: ReadBudget, options: TableOptions) -> RawTable:
    """Read data, names and classes of an archive of arrays, or a sparse matrix."""
    check_archive(path, budget)
    with budget.parsing("an .npz archive"):
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            contents = {name: arrays[name] for name in arrays.files}
        for array in contents.values():
            check_text(array)
        if {"format", "shape", "data"} <= set(contents):
            contents["X"] = _read_sparse(path, contents, budget)
    return _from_variables(contents, budget, options)


def _read_sparse(
    path: Path, contents: Mapping[str, NDArray[Any]], budget: ReadBudget
) -> NDArray[Any]:
    """Return the matrix that scipy.sparse.save_npz wrote."""
    from scipy import sparse

    rows, columns = (int(n) for n in contents["shape"])
    budget.take(8 * rows * columns)
    kind = as_text(contents["format"].item())
    if kind not in ("csr", "csc", "coo"):
        raise budget.error(
            f"holds a sparse matrix of format {kind[:20]!r}; save it as csr, csc or "
            "coo."
        )
    matrix = sparse.load_npz(path)
    if kind != "coo":
        matrix.check_format(full_check=True)
    dense: NDArray[Any] = matrix.toarray()
    return dense


def read_mat(path: Path, budget: ReadBudget, options: TableOptions) -> RawTable:
    """Read data, names and classes of a MATLAB file, version 7 or before."""
    from scipy import sparse
    from scipy.io import loadmat, whosmat
    from scipy.io.matlab import MatReadError, matfile_version

    what = "a MATLAB file before version 7.3"
    with budget.parsing(what, MatReadError):
        if matfile_version(path)[0] == 1:
            _check_mat(path, budget)
        found = {name: shape for name, shape, _ in whosmat(path)}
        cells = (int(np.prod([max(n, 0) for n in s])) for s in found.values())
        budget.take(sum(8 * n for n in cells))
    with budget.parsing(what, MatReadError, MemoryError):
        loaded = loadmat(path)
        for name in found:
            if sparse.issparse(loaded[name]):
                # Indices outside of the matrix would be written through.
                loaded[name].check_format(full_check=True)
                loaded[name] = loaded[name].toarray()
        contents = {name: np.asarray(loaded[name]) for name in found}
    return _from_variables(contents, budget, options)


def _check_mat(path: Path, budget: ReadBudget) -> None:
    """Check the elements of a MATLAB file, whose types SciPy trusts."""
    size, n_arrays = path.stat().st_size, 0
    budget.take(size)
    with path.open("rb") as file:
        file.seek(_MAT_HEADER - 2)
        order = "<" if file.read(2) == b"IM" else ">"
        while len(tag := file.read(_MAT_TAG)) == _MAT_TAG:
            kind, length = struct.unpack(f"{order}II", tag)
            if file.tell() + length > size:
                raise ValueError("an element goes on beyond the file")
            element = file.read(length)
            if kind == _MAT_COMPRESSED:
                most = int(min(budget.limit - budget.taken + 1, 2**62))
                element = zlib.decompressobj().decompress(element, most)
                budget.take(len(element), copies=0)
            else:
                element = tag + element
            n_arrays += _count_arrays(memoryview(element), order)
    # SciPy makes an array of every cell, however small it is.
    budget.require_memory(_MAT_ARRAY * n_arrays, "save plain arrays, without cells")


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


def _as_table(values: NDArray[Any], budget: ReadBudget) -> NDArray[Any]:
    if values.ndim != 2:
        raise budget.error(
            f"holds an array of {values.ndim} dimensions; a table has two."
        )
    if values.dtype.kind not in "fiub":
        raise budget.error(f"holds {values.dtype} and not real numbers.")
    return values


def _from_variables(
    contents: Mapping[str, NDArray[Any]], budget: ReadBudget, options: TableOptions
) -> RawTable:
    """Find the data, the names and the classes among named arrays."""
    tables = [name for name, array in contents.items() if array.ndim == 2]
    usual = [name for name in DATA_NAMES if name in tables]
    wide = [name for name in tables if min(contents[name].shape) > 1]
    name = options.variable or (usual or wide or tables or [""])[0]
    if name not in contents:
        raise budget.unknown_name("array", options.variable or "X", contents)
    values = _as_table(contents[name], budget)
    values = values.T if options.transpose else values
    asked, labels = options.label_column, None
    label = asked or next((n for n in LABEL_NAMES if n in contents), "")
    # A number is that of a column of the data.
    if label and not (label.isdecimal() and label not in contents):
        if label not in contents:
            raise budget.unknown_name("array", label, contents)
        labels = _unbox(contents[label], budget)
        if asked is None and len(labels) != len(values):
            labels = None
    samples, features = (
        [as_text(each) for each in _unbox(contents[kind], budget)]
        if kind in contents
        else None
        for kind in ("sample_names", "feature_names")
    )
    swapped = _fits(features, samples, values.shape)
    if options.transpose and swapped and not _fits(samples, features, values.shape):
        # Names of rows and columns, not of samples and features.
        samples, features = features, samples
    return RawTable(values, features, samples=samples, labels=labels)


def _unbox(array: NDArray[Any], budget: ReadBudget) -> list[Any]:
    """Return the elements of an array, those of MATLAB's cells without their boxes."""
    budget.require_memory(2 * _PER_TEXT * array.size, "give shorter lists of names")
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


def read_mtx(path: Path, budget: ReadBudget, options: TableOptions) -> RawTable:
    """Read a Matrix Market file, compressed or not, with the names beside it.

    SciPy's reader is not used, since damaged files end its process. Barcodes beside
    the file tell too whether features are in rows.
    """
    content = read_bytes(path, budget)
    with budget.parsing("a Matrix Market file of real numbers"):
        values = _parse_mtx(content, budget)
    samples = _read_names(path, budget, ("barcodes", "cells"), 0, values.shape)
    features = _read_names(path, budget, ("features", "genes"), 1, values.shape)
    transpose = options.transpose
    if samples is not None and len(samples) != len(values):
        transpose = transpose or len(samples) == values.shape[1]
    values = values.T if transpose else values
    return RawTable(values, features, samples=samples, settled=True)


def find_matrix(path: Path) -> Path:
    """Return the .mtx file of a folder, as Cell Ranger writes it; files themselves."""
    inside = sorted(path.glob("*.mtx*")) if path.is_dir() else []
    return inside[0] if len(inside) == 1 else path


def _parse_mtx(content: bytes, budget: ReadBudget) -> NDArray[np.float64]:
    start = 0
    head: list[list[str]] = []
    while len(head) < 2:
        end = content.index(b"\n", start) + 1
        line = content[start:end].decode().strip()
        if line and (not head or not line.startswith("%")):
            head.append(line.lower().split())
        start = end
    mark, _, layout, kind, symmetry = head[0]
    sizes = [int(word) for word in head[1]]
    if mark != "%%matrixmarket" or kind not in _MTX_FIELDS or min(sizes) < 0:
        raise ValueError("not a header of real numbers")
    mirrored = _MTX_MIRRORED[symmetry]
    rows, columns = sizes[:2]
    budget.take(8 * rows * columns)
    if layout == "array":
        if mirrored or len(sizes) != 2 or kind == "pattern":
            raise ValueError("only whole arrays are read")
        cells = _read_numbers(content[start:], rows * columns, 1, budget)
        return cells.reshape(columns, rows).T
    entries = sizes[2]
    budget.take(_MTX_ENTRY * entries, copies=1)
    width = 2 if kind == "pattern" else 3
    listed = _read_numbers(content[start:], entries, width, budget)
    inside = (listed[:, :2] >= 1) & (listed[:, :2] <= (rows, columns))
    if not inside.all() or (listed[:, :2] % 1.0).any():
        raise ValueError("an entry lies outside the matrix or between its cells")
    places = tuple(listed[:, :2].T.astype(np.int64) - 1)
    numbers = listed[:, 2] if width == 3 else np.ones(entries)
    values = coo_array((numbers, places), shape=(rows, columns)).toarray()
    if mirrored:
        values += mirrored * (values - np.diag(np.diag(values))).T
    return values


def _read_numbers(
    content: bytes, n_rows: int, n_columns: int, budget: ReadBudget
) -> NDArray[np.float64]:
    """Return rows of numbers that nothing but spaces separate, as float gives them."""
    if n_rows == 0 and not content.strip():
        return np.empty((0, n_columns))
    with budget.parsing("a list of numbers"):
        frame = pandas().read_csv(
            io.BytesIO(content),
            sep=r"\s+",
            header=None,
            dtype=np.float64,
            **exact_numbers(),
        )
    if frame.shape != (n_rows, n_columns) or frame.isna().to_numpy().any():
        raise budget.damage(f"a list of {n_rows} numbers, as it claims")
    values: NDArray[np.float64] = frame.to_numpy()
    return values


def _read_names(
    path: Path,
    budget: ReadBudget,
    kinds: tuple[str, ...],
    column: int,
    shape: tuple[int, ...],
) -> list[str] | None:
    """Return a column of the list of names beside a matrix, if there is one.

    A list that is one longer than the matrix has a head.
    """
    stem = path.name.split(".mtx")[0]
    prefix = stem[: -len("matrix")] if stem.endswith("matrix") else f"{stem}_"
    for kind in kinds:
        for ending in (".tsv", ".tsv.gz", ".txt", ".csv"):
            found = path.with_name(f"{prefix}{kind}{ending}")
            if found.is_file():
                sign = "," if ending_of(found)[0] == ".csv" else "\t"
                lines = read_lines(found, budget)[0]
                rows = [line.split(sign) for line in lines if line.strip()]
                headed = len(rows) not in shape and len(rows) - 1 in shape
                names = [row[min(column, len(row) - 1)].strip('" ') for row in rows]
                return names[headed:]
    return None


def read_parquet(path: Path, budget: ReadBudget, options: TableOptions) -> RawTable:
    """Read a Parquet file; an index of its own names the rows.

    Columns of lists or records are not read: their cells name their type.
    """
    _need_arrow("reading Parquet")
    from pyarrow import parquet
    from pyarrow.lib import ArrowException

    asked = (options.label_column, options.id_column)
    with (
        budget.parsing("a Parquet file", ArrowException, MemoryError),
        path.open("rb") as source,
    ):
        with parquet.ParquetFile(source) as file:
            nested, texts = _take_parquet(file, asked, budget)
        # A text that stands in many cells, but once in the file, is read but once.
        with parquet.ParquetFile(source, read_dictionary=texts) as file:
            names = file.schema_arrow.names
            flat = [name for name in names if name not in nested]
            table = file.read(flat if nested else None, use_threads=False)
        return _from_arrow(table, names, nested, asked)


def read_arrow(path: Path, budget: ReadBudget, options: TableOptions) -> RawTable:
    """Read a Feather file of version 2 or an Arrow file or stream, as Parquet is read.

    It is read batch by batch, each of which the budget has to allow.
    """
    _need_arrow("reading Feather and Arrow files")
    from pyarrow import Table, ipc, types
    from pyarrow.lib import ArrowException

    with (
        budget.parsing("a Feather or Arrow file", ArrowException, MemoryError),
        path.open("rb") as source,
    ):
        budget.take(path.stat().st_size)
        whole, parts = source.read(6) == b"ARROW1", []
        source.seek(0)
        batches = ipc.open_file(source) if whole else ipc.open_stream(source)
        schema = batches.schema
        if whole:
            batches = map(batches.get_batch, range(batches.num_record_batches))
        n_texts = sum(not _is_number_type(kind) for kind in schema.types)
        for batch in batches:
            # PyArrow believes the places of texts that a damaged file names.
            batch.validate(full=True)
            budget.take(batch.nbytes + _PER_TEXT * batch.num_rows * n_texts)
            parts.append(batch)
        nested = {f.name: str(f.type) for f in schema if types.is_nested(f.type)}
        table = Table.from_batches(parts, schema).drop_columns(list(nested))
        asked = (options.label_column, options.id_column)
        return _from_arrow(table, schema.names, nested, asked)


def _need_arrow(needed_for: str) -> None:
    for package in ("pandas", "pyarrow"):
        import_optional(package, needed_for=needed_for, install="mdec[data]")


def _take_parquet(
    file: Any, asked: tuple[str | None, ...], budget: ReadBudget
) -> tuple[dict[str, str], list[str]]:
    """Take the columns off the budget; return the nested ones, and those of texts."""
    from pyarrow import types

    header, schema = file.metadata, file.schema_arrow
    groups = [header.row_group(i) for i in range(header.num_row_groups)]
    n_rows = sum(each.num_rows for each in groups)
    n_bytes = max(8 * n_rows * len(schema), sum(g.total_byte_size for g in groups))
    budget.take(n_bytes, copies=0)
    nested: dict[str, str] = {}
    texts: dict[int, str] = {}
    written = 0
    for place, column in enumerate(schema):
        if types.is_nested(column.type):
            nested[column.name] = str(column.type)
        elif not _is_number_type(column.type):
            texts[place] = column.name
        if place == 0 or place in texts or has_role(column.name, asked):
            written += n_rows
    budget.take(_PER_TEXT * written, copies=0)
    budget.require_memory(4 * n_bytes + _PER_TEXT * written, "read fewer columns")
    for group in groups:
        places = range(group.num_columns) if nested else texts
        for chunk in (group.column(j) for j in places):
            if "DELTA_BYTE_ARRAY" in chunk.encodings:
                # Each text may repeat the whole beginning of the one before.
                budget.take(chunk.num_values * chunk.total_uncompressed_size)
    return nested, list(texts.values())


def _is_number_type(kind: Any) -> bool:
    from pyarrow import types

    return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)


def _from_arrow(
    table: Any,
    names: list[str],
    nested: Mapping[str, str],
    asked: tuple[str | None, ...],
) -> RawTable:
    """Return a table of Arrow, with the types of nested columns in their cells."""
    frame = table.to_pandas()
    for name, kind in nested.items():
        frame.insert(names.index(name), name, [kind] * len(frame))
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
        if place in raw.words or place == 0 or has_role(name, asked):
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
