"""AnnData files: every part is checked first, and no link leads out of the file."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.memory import MAX_BYTES
from mdec._support.optional import import_optional
from mdec.preparation.kinds import kind_of_layer
from mdec.tables.budget import ReadBudget
from mdec.tables.columns import MAX_BESIDE, RawTable, TableOptions, as_text

_WHAT = "an .h5ad file with X, obs and var"
# What an element of variable length takes in memory beside its content, and an object.
_PER_TEXT, _PER_OBJECT = 64, 4096


def read_h5ad(path: Path, budget: ReadBudget, options: TableOptions) -> RawTable:
    """Read X, a layer or an embedding of an AnnData file.

    The variable is the name of a layer or an embedding, "raw", the same with its folder
    ("layers/counts", "obsm/X_pca", "raw/X"), or "" for X; known classes are in a column
    of obs. Names and classes are outside the columns.
    """
    with _open_guarded(path, budget) as file:
        place = _find_matrix(file, options.variable or "")
        values = _read_matrix(file, place, options)
        samples = [str(each) for each in file.column("obs", file.index("obs"))]
        label, labels = options.label_column, None
        if label is not None:
            known = [name for name in file.names("obs") if not name.startswith("_")]
            if label not in known:
                raise budget.unknown_name("column of obs", label, known)
            labels = file.column("obs", label)
        holder, _, name = place.partition("/")
        frame = {"X": "var", "layers": "var", "raw": "raw/var"}.get(holder)
        if frame is not None:
            features = [str(each) for each in file.column(frame, file.index(frame))]
        else:
            features = [f"{name} {i + 1}" for i in range(values.shape[1])]
        raw = RawTable(values, features, samples=samples, labels=labels, settled=True)
        # The names of raw and obsm do not tell what the values are.
        if holder in ("X", "layers"):
            raw.kind = kind_of_layer(values, name or None, file.names("uns"))
        raw.beside = _read_beside(file, label, len(samples))
        return raw


def check_h5ad(path: Path, max_bytes: int = MAX_BYTES) -> None:
    """Raise a TableError unless a whole AnnData file can be read without harm.

    Parameters
    ----------
    path : Path
        The file.
    max_bytes : int
        What all of it together may unpack to.
    """
    budget = ReadBudget(path.name, max_bytes)
    with _open_guarded(path, budget) as file:
        file.check("/")
    budget.require_memory(3 * budget.taken, "free some memory")


@contextmanager
def _open_guarded(path: Path, budget: ReadBudget) -> Iterator[GuardedFile]:
    h5py = import_optional(
        "h5py", needed_for="reading .h5ad files", install="mdec[anndata]"
    )
    with budget.parsing(_WHAT), h5py.File(path, "r") as file:
        yield GuardedFile(file, budget)


class GuardedFile:
    """Gives parts of an HDF5 file, if they lie in it and are not too large."""

    def __init__(self, file: Any, budget: ReadBudget) -> None:
        self.file = file
        self.budget = budget

    def get(self, place: str) -> Any:
        """Return a group or a dataset; links, external and virtual data are refused."""
        import h5py

        found = self.file
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
                raise self.budget.error(
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
        self.budget.take(_PER_OBJECT, copies=0)
        if not hasattr(found, "shape"):
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
        self.budget.take(max(cells, chunk) * size)

    def _texts(self, dataset: Any) -> Iterator[list[Any]]:
        """Read texts a few at a time: many may point to one long text of the file."""
        longest = max(1, Path(self.file.filename).stat().st_size)
        step = int(min(max(self.budget.limit // longest, 1), 4096))
        *first, last = dataset.shape or (0,)
        for place in np.ndindex(*first):
            for start in range(0, last, step):
                part: list[Any] = dataset[(*place, slice(start, start + step))].tolist()
                self.budget.take(sum(_length(each) for each in part), copies=1)
                yield part

    def index(self, holder: str) -> str:
        """Return the name of the column that names the rows of obs or var."""
        attributes = self.get(holder).attrs
        if attributes.get_id("_index").shape != ():
            raise ValueError("many names may point to one long text")
        return as_text(attributes["_index"])

    def _list(self, place: str) -> list[Any]:
        """Return a dataset as objects, which take more than the numbers in the file."""
        values = self.array(place)
        cure = "leave columns of obs out"
        self.budget.require_memory(2 * _PER_TEXT * values.size, cure)
        found: list[Any] = values.tolist()
        return found

    def column(self, holder: str, name: str) -> list[Any]:
        """Return a column of obs or var, None where a value is missing."""
        place = f"{holder}/{name}"
        column = self.get(place)
        older = f"{holder}/__categories/{name}"  # before AnnData 0.8
        if hasattr(column, "shape"):
            values = self._list(place)
            if not self.has(older):
                return [_decode(value) for value in values]
            return _name_codes(values, self._list(older))
        if "codes" in column:
            codes = self._list(f"{place}/codes")
            return _name_codes(codes, self._list(f"{place}/categories"))
        values = self._list(f"{place}/values")
        mask = self._list(f"{place}/mask")
        return [None if m else _decode(v) for v, m in zip(values, mask, strict=True)]


def _length(value: Any) -> int:
    """Return the length of a text or an array, or of those of a record or a list."""
    if isinstance(value, (tuple, list)):
        return sum(_length(each) for each in value)
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        return int(value.nbytes)
    return len(value) if isinstance(value, (str, bytes)) else 0


def _decode(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


def _name_codes(codes: list[int], categories: list[Any]) -> list[Any]:
    # Code -1 stands for no category.
    return [None if code < 0 else _decode(categories[code]) for code in codes]


def _find_matrix(file: GuardedFile, variable: str) -> str:
    """Return the place of the matrix that is asked for."""
    known = [place for place in ("X", "raw/X") if file.has(place)]
    known += [f"{group}/{n}" for group in ("layers", "obsm") for n in file.names(group)]
    # obsm may hold frames too.
    known = [
        n for n in known if hasattr(g := file.get(n), "shape") or "shape" in g.attrs
    ]
    # A file of one matrix may keep it elsewhere.
    for place in (
        variable or (known[0] if len(known) == 1 else "X"),
        *(f"{group}/{variable}" for group in ("layers", "obsm")),
        f"{variable}/X",
    ):
        if place in known:
            return place
    raise file.budget.unknown_name("matrix", variable or "X", known)


def _read_matrix(file: GuardedFile, place: str, options: TableOptions) -> Any:
    from scipy import sparse

    source = file.get(place)
    stored = hasattr(source, "shape")
    shape = tuple(int(n) for n in (source.shape if stored else source.attrs["shape"]))
    if len(shape) != 2:
        raise file.budget.error(
            f"holds an array of {len(shape)} dimensions in {place!r}; a table has two."
        )
    if stored:
        return file.array(place)
    stays = options.sparse and not options.transpose
    if not stays:
        file.budget.take(8 * shape[0] * shape[1])
    parts = tuple(file.array(f"{place}/{n}") for n in ("data", "indices", "indptr"))
    encoding = str(source.attrs["encoding-type"])
    kind = sparse.csr_array if "csr" in encoding else sparse.csc_array
    matrix = kind(parts, shape=shape)
    matrix.check_format(full_check=True)
    if stays and np.isfinite(parts[0]).all():
        return matrix.tocsr()
    if stays:
        file.budget.take(8 * shape[0] * shape[1])
    return matrix.toarray()


def _read_beside(
    file: GuardedFile, label_column: str | None, n_samples: int
) -> dict[str, list[str]]:
    """Return the first plain columns of obs beside the names and the classes."""
    taken = {label_column, file.index("obs")}
    found: dict[str, list[str]] = {}
    for name in file.names("obs"):
        if name in taken or name.startswith("_") or len(found) == MAX_BESIDE:
            continue
        column = file.get(f"obs/{name}")
        if hasattr(column, "shape") or "codes" in column:
            cells = [as_text(value) for value in file.column("obs", name)]
            if len(cells) == n_samples:
                found[name] = cells
    return found
