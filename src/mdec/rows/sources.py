"""Where rows are read from: arrays, sparse ones, .npy and Parquet files."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, Protocol, runtime_checkable

import numpy as np
from scipy import sparse

from mdec._support.archives import DAMAGED, DamagedFileError, read_npy_header
from mdec._support.arrays import Array
from mdec._support.messages import refuse
from mdec._support.optional import import_optional


@runtime_checkable
class RowSource(Protocol):
    """Rows of numbers that can be read block by block."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of the numbers."""

    def read(self, start: int, stop: int) -> Array:
        """Return rows from `start` up to but without `stop`, as an array."""


def is_dask_array(X: object) -> bool:
    """Tell whether X is a Dask array, without importing Dask."""
    return type(X).__module__.startswith("dask.array")


def check_indices(X: Any) -> Any:
    """Return X, or raise one sentence if indices of a sparse matrix lead out of it.

    Compiled code follows such indices without looking.

    Examples
    --------
    >>> X = sparse.csr_array(np.eye(2))
    >>> check_indices(X) is X
    True
    """
    try:
        # A second object with the same arrays, because checks may change what they see.
        if sparse.issparse(X) and X.format == "coo":
            type(X)((X.data, (X.row, X.col)), shape=X.shape)
        elif sparse.issparse(X) and X.format in ("csr", "csc", "bsr"):
            arrays = X.data, X.indices, X.indptr
            type(X)(arrays, shape=X.shape).check_format(full_check=True)
    except ValueError as error:
        raise ValueError(
            "the sparse matrix has indices that lead out of its "
            f"{' x '.join(map(str, X.shape))} entries; make it anew from its values, "
            "rows and columns."
        ) from error
    return X


def canonical_rows(X: Any) -> sparse.csr_array:
    """Return a sparse matrix of any format as CSR that depends on its numbers alone.

    Duplicates are added up, zeros are not stored, the columns of a row ascend, and
    indices are 32 bits wide where that is enough. Not copied if it was so already.

    Examples
    --------
    >>> X = sparse.coo_array(([1.0, 2.0, 0.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    >>> canonical_rows(X).data
    array([3.])
    """
    rows = sparse.csr_array(X)
    stored_zeros = np.count_nonzero(rows.data) < rows.nnz
    if stored_zeros or not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
        rows.eliminate_zeros()
    if max(rows.nnz, *rows.shape) <= np.iinfo(np.int32).max:
        indices = rows.indices.astype(np.int32, copy=False)
        indptr = rows.indptr.astype(np.int32, copy=False)
        rows = sparse.csr_array((rows.data, indices, indptr), shape=rows.shape)
        rows.has_canonical_format = True
    return rows


def read_checked_header(
    file: IO[bytes], n_bytes: int, name: str
) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return what the header of an .npy array says, if it can be true.

    Parameters
    ----------
    file : file
        The array, from its first byte on.
    n_bytes : int
        Its size.
    name : str
        How messages name it.

    Returns
    -------
    shape : tuple of int
        Of the array.
    by_columns : bool
        Whether columns come first.
    dtype : dtype
        Type of its numbers; Python objects are refused.

    Raises
    ------
    DamagedFileError
        One sentence that says what is wrong.
    """
    try:
        shape, by_columns, dtype = read_npy_header(file)
        claimed = math.prod(int(n) for n in shape) * int(dtype.itemsize)
    except (*DAMAGED, OSError) as error:
        raise DamagedFileError(f"{name!r} is damaged or not an .npy array.") from error
    if dtype.hasobject:
        raise DamagedFileError(
            f"{name!r} holds Python objects, which mdec does not load because they can "
            "run code; save plain numbers."
        )
    if claimed > n_bytes - file.tell() or min(shape, default=0) < 0:
        raise DamagedFileError(
            f"{name!r} claims {claimed / 1e9:.2g} GB of numbers and holds "
            f"{n_bytes / 1e9:.2g} GB; the file is damaged."
        )
    return shape, by_columns, dtype


class NpyRows:
    """Rows of an .npy file, read by plain file reads when they are needed.

    It holds a two-dimensional array of float32 or float64 in row order.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        name, size = self.path.name, self.path.stat().st_size
        with self.path.open("rb") as file:
            shape, by_columns, self.dtype = read_checked_header(file, size, name)
            self.offset = file.tell()
        table = len(shape) == 2 and self.dtype in (np.float32, np.float64)
        refusals = {
            f"{name!r} holds an array of shape {shape} and type {self.dtype}; rows are "
            "read from a table of float32 or float64.": not table,
            f"{name!r} is stored column by column; save it with np.ascontiguousarray "
            "so that rows lie together.": by_columns,
        }
        refuse(refusals)
        self.shape = _check_filled(name, shape[0], shape[1])

    def read(self, start: int, stop: int) -> Array:
        """Return some rows."""
        n_features = self.shape[1]
        with self.path.open("rb") as file:
            file.seek(self.offset + start * n_features * self.dtype.itemsize)
            flat = np.fromfile(file, self.dtype, (stop - start) * n_features)
        if flat.size < (stop - start) * n_features:
            raise _changed(self.path)
        return flat.reshape(stop - start, n_features)


class ParquetRows:
    """Rows of a Parquet file whose columns are all numbers, whatever their names.

    Only the row groups that hold the asked rows are read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        with self._open() as file:
            schema, about = file.schema_arrow, file.metadata
        kinds = {str(each.type) for each in schema}
        if not kinds <= {"float", "double"}:
            raise ValueError(
                f"{self.path.name!r} has columns of type {', '.join(sorted(kinds))}; "
                "rows are read from columns of float32 or float64 alone."
            )
        single = kinds == {"float"}
        self.dtype: np.dtype[Any] = np.dtype(np.float32 if single else np.float64)
        counts = [about.row_group(i).num_rows for i in range(about.num_row_groups)]
        self.starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        self.shape = _check_filled(self.path.name, int(self.starts[-1]), len(schema))

    @contextmanager
    def _open(self) -> Iterator[Any]:
        parquet = import_optional(
            "pyarrow.parquet", needed_for="reading Parquet", install="mdec[data]"
        )
        from pyarrow.lib import ArrowException

        try:
            with parquet.ParquetFile(self.path) as file:
                yield file
        except (ArrowException, OSError) as error:
            if isinstance(error, FileNotFoundError):
                raise
            raise DamagedFileError(
                f"{self.path.name!r} is damaged or not a Parquet file."
            ) from error

    def read(self, start: int, stop: int) -> Array:
        """Return some rows."""
        found: Array = np.empty((stop - start, self.shape[1]), dtype=self.dtype)
        with self._open() as file:
            for group, (begin, end) in enumerate(pairwise(self.starts.tolist())):
                low, high = max(start, begin), min(stop, end)
                if low >= high:
                    continue
                # A group is read whole, however few of its rows are wanted, so only as
                # many columns at a time as the rows themselves take.
                width = max(1, found.size // (end - begin))
                for left in range(0, self.shape[1], width):
                    # By number: a name may stand there twice, or begin another one.
                    places = list(range(left, min(left + width, self.shape[1])))
                    table = file.reader.read_row_group(
                        group, column_indices=places, use_threads=False
                    ).slice(low - begin, high - low)
                    if table.shape != (high - low, len(places)):
                        raise _changed(self.path)
                    for column, values in enumerate(table.columns, left):
                        found[low - start : high - start, column] = values
        return found


def _check_filled(name: str, n_rows: int, n_columns: int) -> tuple[int, int]:
    if 0 in (n_rows, n_columns):
        raise ValueError(
            f"{name!r} has {n_rows} rows and {n_columns} columns; there is nothing to "
            "cluster, check how it was written."
        )
    return n_rows, n_columns


def _changed(path: Path) -> DamagedFileError:
    return DamagedFileError(
        f"{path.name!r} ends before the rows that it had when it was opened; leave the "
        "file alone while it is read."
    )


def open_rows(path: str | os.PathLike[str]) -> RowSource:
    """Open a file of rows that may be larger than memory.

    Parameters
    ----------
    path : path-like
        An .npy or .parquet file of float32 or float64.

    Returns
    -------
    RowSource
        What `MDEC.fit` and `generate_ensemble` take in place of an array.
    """
    readers: dict[str, Any] = {".npy": NpyRows, ".parquet": ParquetRows}
    name, kind = Path(path).name, Path(path).suffix.lower()
    if kind not in readers:
        raise ValueError(
            f"{name!r} cannot be read in blocks of rows; save it as .npy or .parquet."
        )
    rows: RowSource = readers[kind](path)
    return rows
