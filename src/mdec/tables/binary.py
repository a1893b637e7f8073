"""Readers of binary tables; each checks what a file claims before it allocates."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from mdec._support.memory import require_memory

DATA_NAMES = ("X", "data", "fea", "features", "x")
LABEL_NAMES = ("y", "Y", "gnd", "gt", "labels", "label", "target")

_DAMAGED = (
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
)


@dataclass(frozen=True)
class RawTable:
    """What a reader found, before it is checked.

    Attributes
    ----------
    values : ndarray
        The numbers, samples in rows.
    sample_names, feature_names : sequence of str or None
        Names, where the file has them.
    labels : sequence or None
        Known classes, where the file has them.
    """

    values: NDArray[Any]
    sample_names: Sequence[str] | None = None
    feature_names: Sequence[str] | None = None
    labels: Sequence[Any] | NDArray[Any] | None = None


def read_npy(
    path: Path,
    variable: str,  # noqa: ARG001
    label_column: str,
    max_bytes: int,
) -> RawTable:
    """Read one array; pickled objects are refused."""
    _no_labels(path, label_column)
    with path.open("rb") as file:
        _check_npy(file, path.stat().st_size, path.name, max_bytes)
    try:
        with path.open("rb") as file:
            return RawTable(np.load(file, allow_pickle=False))
    except _DAMAGED as error:
        raise _damaged(path, "an .npy array") from error


def read_npz(path: Path, variable: str, label_column: str, max_bytes: int) -> RawTable:
    """Read the data, the names and the known classes of an archive of arrays."""
    try:
        with ZipFile(path) as archive:
            members = {each.filename: each for each in archive.infolist()}
            _check_size(
                path.name, sum(m.file_size for m in members.values()), max_bytes
            )
            for name, member in members.items():
                if name.endswith(".npy"):
                    with archive.open(name) as file:
                        label = f"{path.name}: {name}"
                        _check_npy(file, member.file_size, label, max_bytes)
    except (_Refused, MemoryError):
        raise
    except _DAMAGED as error:
        raise _damaged(path, "an .npz archive") from error
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            contents = {name: arrays[name] for name in arrays.files}
    except _DAMAGED as error:
        raise _damaged(path, "an .npz archive") from error
    return _from_variables(path, contents, variable, label_column)


def read_mat(path: Path, variable: str, label_column: str, max_bytes: int) -> RawTable:
    """Read the data and the known classes of a MATLAB file, version 7 or before."""
    from scipy.io import loadmat, whosmat
    from scipy.io.matlab import MatReadError

    damaged = (*_DAMAGED, MatReadError)
    try:
        found = {name: shape for name, shape, _ in whosmat(path)}
    except damaged as error:
        raise _damaged(path, "a MATLAB file before version 7.3") from error
    claimed = sum(8 * int(np.prod([max(n, 0) for n in s])) for s in found.values())
    _check_size(path.name, claimed, max_bytes)
    try:
        loaded = loadmat(path)
        contents = {name: np.asarray(loaded[name]) for name in found}
    except (*damaged, MemoryError) as error:
        raise _damaged(path, "a MATLAB file before version 7.3") from error
    return _from_variables(path, contents, variable, label_column)


def read_parquet(
    path: Path,
    variable: str,  # noqa: ARG001
    label_column: str,
    max_bytes: int,
) -> RawTable:
    """Read columns of numbers; one column of text at most names the samples."""
    try:
        from pyarrow import parquet
        from pyarrow.lib import ArrowException
    except ImportError as error:
        raise _missing("pyarrow", ".parquet files", "data") from error
    damaged = (*_DAMAGED, ArrowException)
    try:
        header = parquet.ParquetFile(path).metadata
        claimed = 8 * header.num_rows * header.num_columns
        groups = (
            header.row_group(i).total_byte_size for i in range(header.num_row_groups)
        )
        claimed = max(claimed, sum(groups))
    except damaged as error:
        raise _damaged(path, "a Parquet file") from error
    _check_size(path.name, claimed, max_bytes)
    try:
        frame = parquet.read_table(path, use_threads=False).to_pandas()
    except (*damaged, MemoryError) as error:
        raise _damaged(path, "a Parquet file") from error
    return _from_frame(path, frame, label_column)


def _from_frame(path: Path, frame: Any, label_column: str) -> RawTable:
    labels = None
    if label_column:
        if label_column not in frame.columns:
            raise _no_column(path, label_column, list(map(str, frame.columns)))
        labels = frame.pop(label_column).astype(str).to_numpy()
    text = [name for name in frame.columns if frame[name].dtype.kind not in "fiub"]
    samples: Any = list(map(str, frame.index))
    if text == list(frame.columns[:1]):
        samples = list(map(str, frame.pop(text[0])))
    elif text:
        raise _Refused(
            f"{path.name!r}: column {str(text[0])!r} holds no numbers; remove it, or "
            "name it with --label-column (label_column) if it holds known classes."
        )
    values = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    return RawTable(values, samples, list(map(str, frame.columns)), labels)


def read_h5ad(path: Path, variable: str, label_column: str, max_bytes: int) -> RawTable:
    """Read X, or the named layer, of an AnnData file."""
    try:
        import h5py
    except ImportError as error:
        raise _missing("h5py", ".h5ad files", "anndata") from error
    try:
        with h5py.File(path, "r") as file:
            source = file[f"layers/{variable}"] if variable else file["X"]
            shape = source.shape if hasattr(source, "shape") else source.attrs["shape"]
            shape = tuple(int(n) for n in shape)
            _check_size(path.name, 8 * int(np.prod(shape)), max_bytes)
            labels = _h5_column(file["obs"], label_column) if label_column else None
            return RawTable(
                _h5_matrix(source, shape),
                list(map(str, _h5_column(file["obs"], ""))),
                list(map(str, _h5_column(file["var"], ""))),
                labels,
            )
    except (_Refused, MemoryError):
        raise
    except _DAMAGED as error:
        raise _damaged(path, "an .h5ad file with X, obs and var") from error


def _h5_matrix(source: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    from scipy import sparse

    if hasattr(source, "shape"):
        return np.asarray(source[...])
    parts = source["data"][...], source["indices"][...], source["indptr"][...]
    by_rows = "csr" in str(source.attrs["encoding-type"])
    kind = sparse.csr_array if by_rows else sparse.csc_array
    matrix = kind(parts, shape=shape)
    matrix.check_format(full_check=True)
    dense: NDArray[Any] = matrix.toarray()
    return dense


def _h5_column(group: Any, name: str) -> list[Any]:
    """Return a column of obs or var, or its index; categories are written out."""
    column = group[name or group.attrs["_index"]]
    if not hasattr(column, "shape"):
        categories = _texts(column["categories"])
        return [categories[code] for code in column["codes"][...]]
    return _texts(column)


def _texts(dataset: Any) -> list[Any]:
    values = dataset[...].tolist()
    return [v.decode() if isinstance(v, bytes) else v for v in values]


class _Refused(ValueError):
    """A sentence of our own, not to be covered by that for damaged files."""


def _check_npy(file: IO[bytes], n_bytes: int, name: str, max_bytes: int) -> None:
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
    except _DAMAGED as error:
        raise _Refused(f"{name!r} is damaged or not an .npy array.") from error
    if dtype.hasobject:
        raise _Refused(
            f"{name!r} holds Python objects, which mdec does not load because they can "
            "run code; save plain numbers."
        )
    if claimed > n_bytes - header or claimed < 0:
        raise _Refused(
            f"{name!r} claims {claimed / 1e9:.2g} GB of numbers and holds "
            f"{n_bytes / 1e9:.2g} GB; the file is damaged."
        )
    _check_size(name, claimed, max_bytes)


def _check_size(name: str, n_bytes: int, max_bytes: int) -> None:
    if n_bytes > max_bytes:
        raise _Refused(
            f"{name!r} unpacks to {n_bytes / 1e9:.1f} GB and the limit is "
            f"{max_bytes / 1e9:.1f} GB; raise the limit if you trust the file."
        )
    require_memory(3 * n_bytes, f"reading {name!r}", "use a machine with more memory")


def _from_variables(
    path: Path, contents: Mapping[str, NDArray[Any]], variable: str, label_column: str
) -> RawTable:
    """Find the data, the names and the classes among named arrays."""
    tables = [name for name, array in contents.items() if array.ndim == 2]
    usual = [name for name in DATA_NAMES if name in tables]
    wide = [name for name in tables if min(contents[name].shape) > 1]
    name = variable or (usual or wide or tables or [""])[0]
    if name not in contents:
        raise _no_column(path, variable or "X", list(contents))
    labels = None
    label = label_column or next((n for n in LABEL_NAMES if n in contents), "")
    if label:
        if label not in contents:
            raise _no_column(path, label, list(contents))
        labels = contents[label].ravel()
    names = {
        kind: list(map(str, contents[kind].ravel()))
        for kind in ("sample_names", "feature_names")
        if kind in contents
    }
    values = contents[name]
    if labels is not None and not label_column and labels.size != len(values):
        labels = None
    return RawTable(
        values, names.get("sample_names"), names.get("feature_names"), labels
    )


def _no_labels(path: Path, label_column: str) -> None:
    if label_column:
        raise _Refused(
            f"{path.name!r} has no named columns; leave out the label column."
        )


def _no_column(path: Path, name: str, there: list[str]) -> ValueError:
    shown = ", ".join(map(repr, there[:5])) or "none"
    return _Refused(f"{path.name!r} has no {name!r}; the first it has: {shown}.")


def _damaged(path: Path, what: str) -> ValueError:
    return ValueError(f"{path.name!r} is damaged or not {what}.")


def _missing(package: str, purpose: str, extra: str) -> ImportError:
    return ImportError(
        f"{purpose} need {package}; install it with pip install 'mdec[{extra}]'."
    )


READERS: dict[str, Callable[[Path, str, str, int], RawTable]] = {
    ".parquet": read_parquet,
    ".npz": read_npz,
    ".npy": read_npy,
    ".mat": read_mat,
    ".h5ad": read_h5ad,
}
