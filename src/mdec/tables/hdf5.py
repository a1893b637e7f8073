"""AnnData files: every part passes the door, and no link leads out of the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.optional import import_optional
from mdec.tables.door import DAMAGED, Door, Refused, damaged, not_there
from mdec.tables.raw import MAX_BESIDE, RawTable, as_text

_PLACES = ("layers", "obsm")
# What an element of variable length takes in memory, beside its content.
_PER_TEXT = 64


def read_h5ad(
    path: Path, door: Door, variable: str, label_column: str | None
) -> RawTable:
    """Read X, a layer or an embedding of an AnnData file.

    Parameters
    ----------
    path : Path
        The file.
    door : Door
        Weighs shapes, lengths and texts before they are read.
    variable : str
        "layers/counts", "obsm/X_pca", "raw/X", the name of a layer, or "" for X.
    label_column : str or None
        Column of obs that holds known classes.

    Returns
    -------
    RawTable
        Samples in rows, all names and classes outside the columns.
    """
    h5py = import_optional(
        "h5py", needed_for="reading .h5ad files", install="mdec[anndata]"
    )
    try:
        with h5py.File(path, "r") as file:
            return _read(_Inside(file, door), variable, label_column)
    except (Refused, MemoryError):
        raise
    except DAMAGED as error:
        raise damaged(door, "an .h5ad file with X, obs and var") from error


class _Inside:
    """Gives parts of a file, if they lie in it."""

    def __init__(self, file: Any, door: Door) -> None:
        self.file = file
        self.door = door

    def get(self, place: str) -> Any:
        """Return a group or a dataset; links, external and virtual data are refused."""
        import h5py

        found = self.file
        for part in place.split("/"):
            # `in` and `get` of h5py would open what a link leads to.
            links, name = found.id.links, part.encode()
            if not links.exists(name):
                raise KeyError(place)
            if links.get_info(name).type != h5py.h5l.TYPE_HARD:
                raise self._outside(place)
            found = found[part]
            if isinstance(found, h5py.Dataset) and (found.is_virtual or found.external):
                raise self._outside(place)
        return found

    def _outside(self, place: str) -> Refused:
        return Refused(
            f"{self.door.name!r} keeps {place[:60]!r} outside itself, by a link or as "
            "external or virtual data, which mdec does not follow; write the file "
            "again as a whole."
        )

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
        """Return a dataset, weighed by its shape, its chunks and its texts."""
        dataset = self.get(place)
        cells = int(np.prod(dataset.shape, dtype=object)) if dataset.shape else 1
        chunk = int(np.prod(dataset.chunks, dtype=object)) if dataset.chunks else 0
        if dataset.dtype.kind == "O":
            return self._texts(dataset, cells)
        self.door.admit(max(cells, chunk) * dataset.dtype.itemsize)
        values: NDArray[Any] = dataset[...]
        return values

    def _texts(self, dataset: Any, cells: int) -> NDArray[Any]:
        """Read texts a few at a time: many may point to one long text of the file."""
        self.door.admit(_PER_TEXT * cells)
        longest = max(1, Path(self.file.filename).stat().st_size)
        step = int(np.clip(self.door.limit // longest, 1, 4096))
        flat: list[Any] = []
        for start in range(0, dataset.shape[0] if dataset.shape else 0, step):
            part = dataset[start : start + step].tolist()
            self.door.admit(sum(len(each) for each in part), copies=1)
            flat += part
        return np.array(flat, dtype=object)


def _read(inside: _Inside, variable: str, label_column: str | None) -> RawTable:
    place = _place(inside, variable)
    source = inside.get(place)
    sparse = not hasattr(source, "shape")
    shape = tuple(int(n) for n in (source.attrs["shape"] if sparse else source.shape))
    if len(shape) != 2:
        raise Refused(
            f"{inside.door.name!r} holds an array of {len(shape)} dimensions in "
            f"{place!r}; a table has two."
        )
    for part in ("data", "indices", "indptr") if sparse else ():
        if not hasattr(inside.get(f"{place}/{part}"), "shape"):
            raise KeyError(part)
    values = _matrix(inside, place, shape) if sparse else inside.array(place)
    samples = _texts(_column(inside, "obs", _index(inside, "obs")))
    labels = None
    if label_column is not None:
        known = [n for n in inside.names("obs") if not n.startswith("_")]
        if label_column not in known:
            raise not_there(inside.door, "column of obs", label_column, known)
        labels = _column(inside, "obs", label_column)
    features = None
    holder = {"X": "var", "layers": "var", "raw": "raw/var"}.get(place.split("/")[0])
    if holder is not None:
        features = _texts(_column(inside, holder, _index(inside, holder)))
    else:
        features = [f"{place.split('/')[-1]} {i + 1}" for i in range(shape[1])]
    return RawTable(
        values,
        features,
        samples=samples,
        labels=labels,
        beside=_beside(inside, label_column, len(samples)),
        settled=True,
        layer=_layer(inside, place),
    )


def _beside(
    inside: _Inside, label_column: str | None, n_samples: int
) -> dict[str, list[str]]:
    """Return the first plain columns of obs beside the names and the classes."""
    taken = {label_column, _index(inside, "obs")}
    found: dict[str, list[str]] = {}
    for name in inside.names("obs"):
        if name in taken or name.startswith("_") or len(found) == MAX_BESIDE:
            continue
        column = inside.get(f"obs/{name}")
        if hasattr(column, "shape") or "codes" in column:
            cells = [as_text(value) for value in _column(inside, "obs", name)]
            if len(cells) == n_samples:
                found[name] = cells
    return found


def _layer(inside: _Inside, place: str) -> tuple[str | None, tuple[str, ...]] | None:
    """Return what names tell of the values; those of raw and obsm tell nothing."""
    holder, _, name = place.partition("/")
    if holder == "X":
        return None, ("log1p",) if inside.has("uns/log1p") else ()
    return (name, ()) if holder == "layers" else None


def _place(inside: _Inside, variable: str) -> str:
    """Return the path of what was asked for."""
    there = [place for place in ("X", "raw/X") if inside.has(place)]
    there += [f"{each}/{name}" for each in _PLACES for name in inside.names(each)]
    # obsm may hold frames too.
    there = [each for each in there if _is_matrix(inside.get(each))]
    for place in (variable or "X", f"layers/{variable}"):
        if place in there:
            return place
    raise not_there(inside.door, "matrix", variable or "X", there)


def _is_matrix(found: Any) -> bool:
    return hasattr(found, "shape") or "shape" in found.attrs


def _matrix(inside: _Inside, place: str, shape: tuple[int, ...]) -> NDArray[Any]:
    from scipy import sparse

    inside.door.admit(8 * shape[0] * shape[1])
    parts = [inside.array(f"{place}/{part}") for part in ("data", "indices", "indptr")]
    encoding = str(inside.get(place).attrs["encoding-type"])
    kind = sparse.csr_array if "csr" in encoding else sparse.csc_array
    matrix = kind(tuple(parts), shape=shape)
    matrix.check_format(full_check=True)
    dense: NDArray[Any] = matrix.toarray()
    return dense


def _index(inside: _Inside, holder: str) -> str:
    name = inside.get(holder).attrs["_index"]
    return name.decode() if isinstance(name, bytes) else str(name)


def _column(inside: _Inside, holder: str, name: str) -> list[Any]:
    """Return a column of obs or var, None where a value is missing."""
    place = f"{holder}/{name}"
    column = inside.get(place)
    if hasattr(column, "shape"):
        values = inside.array(place).tolist()
        older = f"{holder}/__categories/{name}"  # before AnnData 0.8
        if inside.has(older):
            return _named(values, inside.array(older).tolist())
        return [_text(value) for value in values]
    if "codes" in column:
        codes = inside.array(f"{place}/codes").tolist()
        return _named(codes, inside.array(f"{place}/categories").tolist())
    values = inside.array(f"{place}/values").tolist()
    mask = inside.array(f"{place}/mask").tolist()
    return [None if m else _text(v) for v, m in zip(values, mask, strict=True)]


def _named(codes: list[int], categories: list[Any]) -> list[Any]:
    # Code -1 stands for no category.
    return [None if code < 0 else _text(categories[code]) for code in codes]


def _text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


def _texts(values: list[Any]) -> list[str]:
    return [str(value) for value in values]
