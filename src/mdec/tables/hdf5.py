"""AnnData files, read and written back.

Every part is checked first, and no link leads out of the file.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdec._support.files import copy_permissions
from mdec._support.memory import MAX_BYTES
from mdec._support.optional import import_optional
from mdec.clustering import Clustering
from mdec.preparation.kinds import kind_of_layer
from mdec.tables.budget import TableFile
from mdec.tables.cells import as_text
from mdec.tables.columns import MAX_BESIDE, RawTable, as_matrix

# What an element of variable length takes in memory beside its content, and an object.
_PER_TEXT, _PER_OBJECT = 64, 4096
# How a collection of texts begins in an HDF5 file.
_HEAP = b"GCOL\1\0\0\0"


def read_h5ad(file: TableFile) -> RawTable:
    """Read X, a layer or an embedding of an AnnData file.

    The variable is the name of a layer or an embedding, "raw", the same with its folder
    ("layers/counts", "obsm/X_pca", "raw/X"), or "" for X; known classes are in a column
    of obs. Names and classes are outside the columns.
    """
    with _open_guarded(file) as parts:
        place = _find_matrix(parts, file.variable or "")
        values = _read_matrix(parts, place)
        names = parts.index("obs")
        samples = [str(each) for each in parts.column("obs", names)]
        label, labels = file.label_column, None
        known = [each for each in parts.names("obs") if not each.startswith("_")]
        if label is not None and label not in known:
            raise file.unknown_name("column of obs", label, known)
        if label is not None:
            labels = parts.column("obs", label)
        holder, _, name = place.partition("/")
        if frame := {"X": "var", "layers": "var", "raw": "raw/var"}.get(holder):
            features = [str(each) for each in parts.column(frame, parts.index(frame))]
        else:
            file.require_memory(2 * _PER_TEXT * values.shape[1])
            features = [f"{name} {i + 1}" for i in range(values.shape[1])]
        raw = RawTable(values, features, samples=samples, labels=labels, settled=True)
        # The names of raw and obsm do not tell what the values are.
        if holder in ("X", "layers"):
            raw.kind = kind_of_layer(values, name or None, parts.names("uns"))
        # The first plain columns of obs are kept for display.
        for each in (each for each in known if each not in (label, names)):
            column = parts.get(f"obs/{each}")
            plain = _is_array(column) or "codes" in column
            if plain and len(raw.beside) < MAX_BESIDE:
                cells = [as_text(value) for value in parts.column("obs", each)]
                raw.beside |= {each: cells} if len(cells) == len(samples) else {}
        return raw


def check_h5ad(path: Path, max_bytes: int = MAX_BYTES) -> None:
    """Raise a TableError unless a whole AnnData file can be read without harm.

    All of it together may unpack to `max_bytes`.
    """
    file = TableFile(path, max_bytes=max_bytes)
    with _open_guarded(file) as parts:
        parts.check("/")
    file.require_memory(3 * file.taken)


@contextmanager
def _open_guarded(file: TableFile) -> Iterator[GuardedFile]:
    h5py = import_optional(
        "h5py", needed_for="reading .h5ad files", install="mdec[anndata]"
    )
    with file.parsing("an .h5ad file with X, obs and var"):
        _check_heaps(file.path)
        with h5py.File(file.path, "r") as root:
            yield GuardedFile(root, file)


def _check_heaps(path: Path) -> None:
    """Raise a ValueError for a heap of texts that HDF5 would never stop reading.

    It goes from object to object by their sizes, also where damage has made one zero.
    """
    with (
        path.open("rb") as source,
        mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        heap = content.find(_HEAP)
        while heap >= 0:
            place, stop = heap + 16, min(heap + _size(content, heap), len(content))
            while place + 16 <= stop:
                size = _size(content, place)
                # Number 0 is free space, which counts its own header.
                used = content[place : place + 2] != b"\0\0"
                if size > stop - place or size + 16 * used == 0:
                    raise ValueError("a heap of texts is damaged")
                place += 16 + (size + 7) // 8 * 8 if used else size
            heap = content.find(_HEAP, heap + 1)


def _size(content: mmap.mmap, place: int) -> int:
    """Return the size that a header of 16 bytes ends with; 0 beyond the file's end."""
    return int.from_bytes(content[place + 8 : place + 16], "little")


class GuardedFile:
    """Gives parts of an HDF5 file, if they lie in it and are not too large."""

    def __init__(self, root: Any, file: TableFile) -> None:
        self.root = root
        self.file = file

    def get(self, place: str) -> Any:
        """Return a group or a dataset; links, external and virtual data are refused."""
        import h5py

        found = self.root
        for part in place.strip("/").split("/") if place != "/" else ():
            # `in` and `get` of h5py would open what a link leads to.
            links, name = found.id.links, part.encode()
            if not links.exists(name):
                raise KeyError(place)
            outside = links.get_info(name).type != h5py.h5l.TYPE_HARD
            if not outside:
                found = found[part]
                dataset = isinstance(found, h5py.Dataset)
                outside = dataset and bool(found.is_virtual or found.external)
            if outside:
                raise self.file.error(
                    f"keeps {place[:60]!r} outside itself, by a link or as external or "
                    "virtual data, which mdec does not follow; write the file again as "
                    "a whole."
                )
        return found

    def has(self, place: str) -> bool:
        """Tell whether the file has such a part."""
        try:
            self.get(place)
        except KeyError:
            return False
        return True

    def names(self, place: str) -> list[str]:
        """Return the names in a group, none if it is not there."""
        return sorted(self.get(place)) if self.has(place) else []

    def array(self, place: str) -> NDArray[Any]:
        """Return a dataset, checked by its shape, its chunks and its texts."""
        dataset = self.get(place)
        self._take(dataset)
        if dataset.dtype.kind != "O":
            values: NDArray[Any] = dataset[...]
            return values
        texts = [each for part in self._texts(dataset) for each in part]
        return np.array(texts, "O").reshape(dataset.shape)

    def check(self, place: str) -> None:
        """Check a part and all parts inside it, as if all were read."""
        found = self.get(place)
        # Groups may contain each other; the budget ends such a walk.
        self.file.take(_PER_OBJECT, copies=0)
        if not _is_array(found):
            for name in found:
                self.check(f"{place.rstrip('/')}/{name}")
            return
        self._take(found)
        if found.dtype.hasobject:
            for _ in self._texts(found):
                pass

    def _take(self, dataset: Any) -> None:
        texts, cells = dataset.dtype.kind == "O", math.prod(dataset.shape or ())
        chunk = 0 if texts else math.prod(dataset.chunks or (0,))
        size = _PER_TEXT if texts else dataset.dtype.itemsize
        self.file.take(max(cells, chunk) * size)

    def _texts(self, dataset: Any) -> Iterator[list[Any]]:
        """Read texts a few at a time: many may point to one long text of the file."""
        longest = max(1, self.file.path.stat().st_size)
        step = int(min(max(self.file.max_bytes // longest, 1), 4096))
        *first, last = dataset.shape or (0,)
        for place in np.ndindex(*first):
            for start in range(0, last, step):
                part: list[Any] = dataset[(*place, slice(start, start + step))].tolist()
                self.file.take(sum(_length(each) for each in part), copies=1)
                yield part

    def index(self, holder: str) -> str:
        """Return the name of the column that names the rows of obs or var."""
        attributes = self.get(holder).attrs
        if attributes.get_id("_index").shape != ():
            raise ValueError("many names may point to one long text")
        return as_text(attributes["_index"])

    def column(self, holder: str, name: str) -> list[Any]:
        """Return a column of obs or var, None where a value is missing."""
        place = f"{holder}/{name}"
        column = self.get(place)
        older = f"{holder}/__categories/{name}"  # before AnnData 0.8
        if not _is_array(column) and "codes" not in column:
            values, mask = self._list(f"{place}/values"), self._list(f"{place}/mask")
            return [None if m else v for v, m in zip(values, mask, strict=True)]
        if _is_array(column) and not self.has(older):
            return self._list(place)
        codes = self._list(place if _is_array(column) else f"{place}/codes")
        words = self._list(older if _is_array(column) else f"{place}/categories")
        # Code -1 stands for no category.
        return [None if code < 0 else words[code] for code in codes]

    def _list(self, place: str) -> list[Any]:
        """Return a dataset as objects, which take more than the numbers in the file."""
        values = self.array(place)
        self.file.require_memory(2 * _PER_TEXT * values.size)
        found = values.tolist()
        return [each.decode() if isinstance(each, bytes) else each for each in found]


def _is_array(part: Any) -> bool:
    """Tell whether a part of a file is a dataset and no group."""
    return hasattr(part, "shape")


def _length(value: Any) -> int:
    """Return the length of a text or an array, or of those of a record or a list."""
    if isinstance(value, (tuple, list)):
        return sum(_length(each) for each in value)
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        return int(value.nbytes)
    return len(value) if isinstance(value, (str, bytes)) else 0


def _find_matrix(parts: GuardedFile, variable: str) -> str:
    """Return the place of the matrix that is asked for."""
    groups = {group: parts.names(group) for group in ("layers", "obsm")}
    known = [place for place in ("X", "raw/X") if parts.has(place)]
    known += [f"{group}/{name}" for group, names in groups.items() for name in names]
    # obsm may hold frames too.
    known = [n for n in known if _is_array(g := parts.get(n)) or "shape" in g.attrs]
    # A file of one matrix may keep it elsewhere.
    only = known[0] if len(known) == 1 else "X"
    inside = (f"{group}/{variable}" for group in groups)
    for place in (variable or only, *inside, f"{variable}/X"):
        if place in known:
            return place
    raise parts.file.unknown_name("matrix", variable or "X", known)


def _read_matrix(parts: GuardedFile, place: str) -> Any:
    source, file = parts.get(place), parts.file
    if _is_array(source):
        return as_matrix(parts.array(place), file)
    n_rows, n_columns = (int(n) for n in source.attrs["shape"])
    stays, size = file.sparse and not file.transpose, n_rows * n_columns
    file.take(0 if stays else 8 * size)
    arrays = tuple(parts.array(f"{place}/{n}") for n in ("data", "indices", "indptr"))
    encoding = str(source.attrs["encoding-type"])
    kind = sparse.csr_array if "csr" in encoding else sparse.csc_array
    matrix = kind(arrays, shape=(n_rows, n_columns))
    matrix.check_format(full_check=True)
    if stays and np.isfinite(arrays[0]).all():
        return as_matrix(matrix.tocsr(), file)
    file.take(8 * size if stays else 0)
    return as_matrix(matrix.toarray(), file)


def add_clustering(
    adata: Any, key: str, clustering: Clustering, notes: Mapping[str, Any]
) -> None:
    """Add a clustering of its observations to an AnnData object.

    It has `add_clusters`, ``obs[key + "_second_choice"]``, and in ``uns`` the notes:
    what AnnData files can hold. Settings become text, and what is None is left out.
    """
    labels, confidence = clustering.firm_labels, clustering.confidence
    add_clusters(adata, key, labels, confidence, clustering.membership)
    adata.obs[f"{key}_second_choice"] = clustering.second_choice
    params = {k: str(v) for k, v in notes["params"].items() if v is not None}
    stored = dict(notes)
    for name, each in notes.items():
        if isinstance(each, Mapping):
            stored[name] = {k: v for k, v in each.items() if v is not None}
    rest = {"n_clusters": clustering.n_clusters, "params": params}
    adata.uns[key] = stored | rest


def add_clusters(
    adata: Any, key: str, labels: Any, confidence: Any, membership: Any
) -> None:
    """Add clusters of its observations to an AnnData object.

    Parameters
    ----------
    adata : anndata.AnnData
        The object. ``obs[key]`` becomes a category of cluster names, none for samples
        below the least confidence; ``obs[key + "_confidence"]`` stands beside it, and
        ``obsm[key + "_membership"]`` says how far each belongs to each cluster.
    key : str
        The key.
    labels, confidence, membership : ndarray
        As `Clustering` has them.
    """
    import pandas

    names = [str(k) for k in range(membership.shape[1])]
    adata.obs[key] = pandas.Categorical.from_codes(labels, names)
    adata.obs[f"{key}_confidence"] = confidence
    adata.obsm[f"{key}_membership"] = membership


@contextmanager
def write_h5ad(
    source: Path,
    target: Path,
    clustering: Clustering,
    notes: dict[str, Any],
    *,
    max_bytes: int = MAX_BYTES,
) -> Iterator[None]:
    """Make a copy of an AnnData file with a clustering of its observations.

    It takes its name when the block has ended well.

    Parameters
    ----------
    source : Path
        The file. One with links, external or virtual data, or with more than
        `max_bytes`, is refused before anything is read or written.
    target : Path
        The copy; an old one is replaced at the end.
    clustering : Clustering
        The clustering of the observations.
    notes : dict
        What ``uns["mdec"]`` says, see `describe_clustering`.
    max_bytes : int
        What the whole file may unpack to.
    """
    anndata = import_optional(
        "anndata", needed_for="writing .h5ad files", install="mdec[anndata]"
    )
    check_h5ad(source, max_bytes)
    adata = anndata.read_h5ad(source)
    add_clustering(adata, "mdec", clustering, notes)
    # HDF5 writes to a name and not to an open file.
    beside = target.with_name(f".mdec-{target.name}")
    try:
        adata.write_h5ad(beside)
        copy_permissions(target, beside)
        yield
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
