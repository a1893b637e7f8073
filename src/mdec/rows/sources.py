"""Where rows are read from: arrays, .npy and Parquet files, block by block."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mdec._support.optional import import_optional

Array = NDArray[np.floating]


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
        """Return some rows as an array.

        Parameters
        ----------
        start : int
            First row.
        stop : int
            The row after the last.

        Returns
        -------
        ndarray of shape (stop - start, n_features)
            The rows.
        """


def is_dask_array(X: object) -> bool:
    """Tell whether X is a Dask array, without importing Dask."""
    return type(X).__module__.startswith("dask.array")


class ArrayRows:
    """Rows of an array in memory or of a memory-mapped file, float32 or float64."""

    def __init__(self, X: Array) -> None:
        self.X = X
        self.shape: tuple[int, int] = (X.shape[0], X.shape[1])
        self.dtype = X.dtype

    def read(self, start: int, stop: int) -> Array:
        """Return some rows, not copied."""
        return self.X[start:stop]


class NpyRows:
    """Rows of an .npy file, read by plain file reads when they are needed.

    It holds a two-dimensional array of float32 or float64 in row order.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        shape, by_columns, self.dtype, self.offset = _npy_header(self.path)
        if len(shape) != 2 or self.dtype not in (np.float32, np.float64):
            raise ValueError(
                f"{self.path.name!r} holds an array of shape {shape} and type "
                f"{self.dtype}; rows are read from a table of float32 or float64."
            )
        if by_columns:
            raise ValueError(
                f"{self.path.name!r} is stored column by column; save it with "
                "np.ascontiguousarray so that rows lie together."
            )
        self.shape: tuple[int, int] = (shape[0], shape[1])

    def read(self, start: int, stop: int) -> Array:
        """Return some rows."""
        n_features = self.shape[1]
        with self.path.open("rb") as file:
            file.seek(self.offset + start * n_features * self.dtype.itemsize)
            flat = np.fromfile(file, self.dtype, (stop - start) * n_features)
        return flat.reshape(stop - start, n_features)


def _npy_header(path: Path) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Return the shape, whether columns come first, the type and where data start."""
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    try:
        with path.open("rb") as file:
            read = readers[np.lib.format.read_magic(file)]
            return *read(file), file.tell()
    except (ValueError, KeyError) as error:
        raise ValueError(f"{path.name!r} is damaged or not an .npy array.") from error


class ParquetRows:
    """Rows of a Parquet file whose columns are all numbers.

    Only the row groups that hold the asked rows are read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        with self._open() as file:
            schema, about = file.schema_arrow, file.metadata
        kinds = {str(schema.field(i).type) for i in range(len(schema.names))}
        if not kinds <= {"float", "double"}:
            raise ValueError(
                f"{self.path.name!r} has columns of type {', '.join(sorted(kinds))}; "
                "rows are read from columns of float32 or float64 alone."
            )
        single = kinds == {"float"}
        self.dtype: np.dtype[Any] = np.dtype(np.float32 if single else np.float64)
        self.names = list(schema.names)
        self.shape = (about.num_rows, len(self.names))
        counts = [about.row_group(i).num_rows for i in range(about.num_row_groups)]
        self.starts = np.concatenate([[0], np.cumsum(counts)])

    def _open(self) -> Any:
        parquet = import_optional(
            "pyarrow.parquet", needed_for="reading Parquet", install="mdec[data]"
        )
        return parquet.ParquetFile(self.path)

    def read(self, start: int, stop: int) -> Array:
        """Return some rows."""
        first = int(np.searchsorted(self.starts, start, side="right")) - 1
        last = int(np.searchsorted(self.starts, stop, side="left"))
        found: Array = np.empty((stop - start, self.shape[1]), dtype=self.dtype)
        with self._open() as file:
            for group in range(first, last):
                begin, end = (int(each) for each in self.starts[group : group + 2])
                low, high = max(start, begin), min(stop, end)
                # A group is read whole, however few of its rows are wanted, so only as
                # many columns at a time as the rows themselves take.
                width = max(1, found.size // (end - begin))
                for left in range(0, self.shape[1], width):
                    names = self.names[left : left + width]
                    table = file.read_row_group(group, columns=names, use_threads=False)
                    table = table.slice(low - begin, high - low)
                    for column, values in enumerate(table.columns, left):
                        found[low - start : high - start, column] = values
        return found


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
    readers: dict[str, Callable[[Path], RowSource]] = {
        ".npy": NpyRows,
        ".parquet": ParquetRows,
    }
    source = Path(path)
    if source.suffix.lower() not in readers:
        raise ValueError(
            f"{source.name!r} cannot be read in blocks of rows; save it as .npy or "
            ".parquet."
        )
    return readers[source.suffix.lower()](source)
