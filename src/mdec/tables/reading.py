"""Tables of samples by features, read from the files people have."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec.preparation.kinds import kind_of_layer
from mdec.tables.binary import read_mat, read_npy, read_npz
from mdec.tables.door import (
    COMPRESSIONS,
    MAX_BYTES,
    STANDARD_INPUT,
    Door,
    Refused,
    ending_of,
    shown_name,
)
from mdec.tables.frames import read_parquet, read_xlsx
from mdec.tables.hdf5 import read_h5ad
from mdec.tables.market import read_mtx
from mdec.tables.raw import MAX_BESIDE, RawTable, as_text, is_number, turned
from mdec.tables.roles import (
    Doubtful,
    Roles,
    Wishes,
    class_names,
    find_roles,
    raise_doubts,
)
from mdec.tables.text import (
    TEXT_ENDINGS,
    read_back,
    read_gct,
    read_text,
)
from mdec.tables.values import IMPUTATIONS, check_finite, imputed

MAX_FEATURES = 1_000_000
# Rows that are looked at together, to save memory.
_ROWS = 1024


_UNPACKED = (*TEXT_ENDINGS, ".mtx")
_WITH_VARIABLES = (".xlsx", ".npz", ".mat", ".h5ad")
ENDINGS = (*_UNPACKED, ".xlsx", ".parquet", ".npz", ".npy", ".mat", ".h5ad")


@dataclass(frozen=True)
class Table:
    """Numbers with names.

    Attributes
    ----------
    values : ndarray of shape (n_samples, n_features)
        Finite numbers.
    sample_names : list of str
        All different; "1", "2", ... where the file has none.
    feature_names : list of str
        "feature 1", ... where the file has none.
    labels : ndarray of str of shape (n_samples,) or None
        Known classes, if the file has them; "" for samples without one.
    reading : dict
        What was read and how: numbers, strings and lists only.
    kind : str or None
        What the file says the values are, one of `mdec.preparation.KINDS`: AnnData
        files name their layers. None where the values must tell.
    columns : dict of str to list of str
        The first columns that are no features, as they are written.
    """

    values: NDArray[np.floating]
    sample_names: list[str]
    feature_names: list[str]
    labels: NDArray[Any] | None = None
    reading: dict[str, Any] = field(default_factory=dict)
    kind: str | None = None
    columns: dict[str, list[str]] = field(default_factory=dict)


def read_table(
    path: str | os.PathLike[str],
    *,
    transpose: bool = False,
    label_column: str | None = None,
    id_column: str | None = None,
    drop: Sequence[str] = (),
    features: Sequence[str] = (),
    header: bool | None = None,
    index: bool | None = None,
    variable: str | None = None,
    impute: str | None = None,
    max_bytes: int = MAX_BYTES,
    known_features: Sequence[str] | None = None,
    least_samples: int = 3,
) -> Table:
    """Read a table by the ending of its name.

    Parameters
    ----------
    path : path-like
        A .csv, .tsv, .tab, .txt, .gct or .mtx file, also compressed (.gz, .bz2, .xz,
        .zip), a .xlsx, .parquet, .npz, .npy, .mat or .h5ad file, or "-" for text from
        standard input.
    transpose : bool, default=False
        True if the file has features in rows, as expression tables often have.
    label_column : str, default=None
        Name of the column, or of the variable, that holds known classes. Columns
        without names are numbered from 1.
    id_column : str, default=None
        Name of the column that holds the samples' names; None looks.
    drop : sequence of str, default=()
        Columns to leave out, names or shell patterns.
    features : sequence of str, default=()
        Columns to keep as features, names or shell patterns; none for all.
    header, index : bool, default=None
        Whether the file's first row, or its first column, holds names; None looks.
    variable : str, default=None
        Array in an .npz or .mat file, sheet of a workbook, or place in an .h5ad file
        such as "layers/counts" or "obsm/X_pca"; None looks for the usual ones.
    impute : {"median", "knn"}, default=None
        How to fill in missing values; None refuses them.
    max_bytes : int
        A file that claims more is refused before anything is allocated.
    known_features : sequence of str, default=None
        Names of the features of a model: these are taken, in that order, and all other
        columns are left out. A table without names is read as ever.
    least_samples : int, default=3
        Fewer are refused; new samples may be fewer than those of a clustering.

    Returns
    -------
    Table
        At least three samples and two features.

    Raises
    ------
    ValueError
        One sentence that says what is wrong with the file, or which columns may be
        meant in two ways and how to say which.
    """
    source = Path(path)
    door = Door(shown_name(source), max_bytes)
    if impute is not None and impute not in IMPUTATIONS:
        raise ValueError(f"impute={impute!r} is not one of {', '.join(IMPUTATIONS)}.")
    known = None if known_features is None else tuple(known_features)
    wishes = Wishes(label_column, id_column, tuple(drop), tuple(features), index, known)
    ending = checked_ending(source, door)
    raw, wishes = _read(source, door, ending, wishes, header, variable or "", transpose)
    roles = find_roles(raw, wishes, door)
    raise_doubts(roles, door, _described(raw, roles, door, ending))
    return _checked(raw, roles, door, ending, impute, least_samples)


def checked_ending(source: Path, door: Door) -> str:
    """Return the ending that says how a file is read, or raise if there is none."""
    if str(source) != STANDARD_INPUT and not source.is_file():
        raise ValueError(f"{str(source)!r} is not a file; check its name.")
    ending, compression = ending_of(source)
    if ending not in ENDINGS or (compression and ending not in _UNPACKED):
        raise Refused(
            f"{door.name!r} has no ending that mdec reads; use {', '.join(ENDINGS)}, "
            f"text also with {', '.join(COMPRESSIONS)}."
        )
    return ending


def _read(
    source: Path,
    door: Door,
    ending: str,
    wishes: Wishes,
    header: bool | None,
    variable: str,
    transpose: bool,
) -> tuple[RawTable, Wishes]:
    """Return the table with samples in rows, and the wishes that are still open."""
    label = wishes.label_column
    if variable and ending not in _WITH_VARIABLES:
        raise Refused(
            f"{door.name!r} holds one table only; --variable (variable) is for "
            f"{', '.join(_WITH_VARIABLES)}."
        )
    asked = [name for name in (label, wishes.id_column) if name is not None]
    if ending == ".gct":
        return read_gct(source, door, label), wishes
    if ending == ".mtx":
        return read_mtx(source, door, transpose), wishes
    if ending == ".npz":
        return read_npz(source, door, variable, label, transpose), wishes
    if ending == ".mat":
        return read_mat(source, door, variable, label, transpose), wishes
    if ending == ".npy":
        raw = read_npy(source, door, label)
    elif ending == ".h5ad":
        raw = read_h5ad(source, door, variable, label)
    elif ending == ".parquet":
        raw = read_parquet(source, door, asked)
    elif ending == ".xlsx":
        raw = read_xlsx(source, door, variable, header)
    else:
        raw = read_text(source, door, header, asked)
    return _turned(raw, wishes, door) if transpose else (raw, wishes)


def _turned(raw: RawTable, wishes: Wishes, door: Door) -> tuple[RawTable, Wishes]:
    """Exchange rows and columns; the first column then holds the features' names."""
    names = raw.columns or [str(i + 1) for i in range(raw.values.shape[1])]
    columns = {each for each in wishes.drop if each in names}
    rest = Wishes(None, None, tuple(columns), (), wishes.index)
    roles = find_roles(raw, rest, door)
    ids = roles.ids
    bare = {
        j for j in raw.words if not any(is_number(c) and c.strip() for c in raw.text(j))
    }
    extra = [j for j in roles.features if j in bare]
    if extra:
        name = names[extra[0]]
        raise Doubtful(
            f"{door.name!r}: column {name[:60]!r} holds no numbers, and samples are in "
            f"columns; leave it out with --drop {name!r}."
        )
    doubts = [each.clause for each in roles.doubts if each.kind == "identifier"]
    if doubts and ids is None and raw.samples is None:
        raise Doubtful(
            f"{door.name!r}: {doubts[0].partition(';')[0]}; say with --index or "
            "--no-index whether it names the features."
        )
    kept = roles.features
    place = {old: new for new, old in enumerate(kept)}
    chosen = RawTable(
        raw.values[:, kept],
        None if raw.columns is None else [names[j] for j in kept],
        {place[j] for j in raw.words if j in place},
        {place[j]: raw.texts[j] for j in raw.texts if j in place},
        labels=raw.labels,
    )
    rows = raw.samples if ids is None else [c.strip() for c in raw.text(ids)]
    left = tuple(each for each in wishes.drop if each not in columns)
    rest = replace(wishes, drop=left, index=None)
    return turned(chosen, rows), rest


def _checked(
    raw: RawTable,
    roles: Roles,
    door: Door,
    ending: str,
    impute: str | None,
    least_samples: int,
) -> Table:
    """Raise one sentence for a table that cannot be clustered."""
    name = door.name
    n_samples, n_features = len(raw.values), len(roles.features)
    if n_samples < least_samples or n_features > MAX_FEATURES:
        raise Refused(
            f"{name!r} has {n_samples} samples in rows and {n_features} features in "
            "columns; transpose it if samples are in its columns."
        )
    if n_features < 2:
        raise Refused(
            f"{name!r} has {n_features} columns of numbers and needs two or more; "
            "check its separator."
        )
    samples = sample_names(raw, roles, name)
    precision = np.float32 if raw.values.dtype == np.float32 else np.float64
    chosen = raw.values
    if roles.features != list(range(raw.values.shape[1])):
        chosen = raw.values[:, roles.features]
    values: NDArray[np.floating] = np.ascontiguousarray(chosen, dtype=precision)
    features = [f"feature {j + 1}" for j in roles.features]
    if raw.columns is not None:
        features = [raw.columns[j] for j in roles.features]
    check_finite(values, samples, features, name, impute)
    labels = None
    if roles.classes is not None:
        labels = class_names(raw.text(roles.classes))
    elif raw.labels is not None:
        labels = class_names([as_text(each) for each in raw.labels])
    if labels is not None and labels.size != n_samples:
        raise Refused(
            f"{name!r} has {labels.size} known classes for {n_samples} samples."
        )
    if labels is not None and not (labels != "").any():
        raise Refused(f"{name!r} has no known class at all in that column.")
    reading = _described(raw, roles, door, ending)
    reading["missing"] = int(np.isnan(values).sum())
    reading["impute"] = impute
    if impute is not None and reading["missing"]:
        values = imputed(values, impute, features, name)
    reading |= {
        "n_samples": n_samples,
        "n_features": n_features,
        "samples": samples[:5],
        "features": features[:5],
        "first_features": _ranges(values, features),
        "range": [float(values.min()), float(values.max())],
    }
    if labels is not None:
        reading["n_classes"] = len(set(labels.tolist()) - {""})
        reading["n_without_class"] = int((labels == "").sum())
    kind = None if raw.layer is None else kind_of_layer(values, *raw.layer)
    columns = {roles.names[j]: raw.text(j) for j in roles.dropped[:MAX_BESIDE]}
    return Table(values, samples, features, labels, reading, kind, columns | raw.beside)


def sample_names(raw: RawTable, roles: Roles, name: str) -> list[str]:
    """Return the samples' names, numbers where there are none; all are different."""
    n_samples = len(raw.values)
    samples = [str(i + 1) for i in range(n_samples)]
    if roles.ids is not None:
        samples = [read_back(cell.strip()) for cell in raw.text(roles.ids)]
    elif raw.samples is not None:
        samples = [str(each) for each in raw.samples]
    if len(set(samples)) < len(samples):
        seen: set[str] = set()
        twice = next(s for s in samples if s in seen or seen.add(s))  # type: ignore[func-returns-value]
        raise Refused(
            f"{name!r} has the sample {twice[:60]!r} more than once; give each its own "
            "name, or name that column with --label-column (label_column) if it holds "
            "known classes."
        )
    return samples


def _described(raw: RawTable, roles: Roles, door: Door, ending: str) -> dict[str, Any]:
    """Return what was read, for people and for summary.json."""
    names = roles.names
    whole = _whole_columns(raw.values)
    n_whole = sum(bool(whole[j]) for j in roles.features if j not in raw.words)
    return {
        "file": door.name,
        "format": ending.lstrip("."),
        "n_samples": len(raw.values),
        "n_features": len(roles.features),
        "names_of_columns": raw.columns is not None,
        "features": [names[j] for j in roles.features[:5]],
        "whole_number_features": n_whole,
        "sample_names": _origin(raw, roles),
        "classes": None if roles.classes is None else names[roles.classes],
        "left_out": [names[j] for j in roles.dropped[:20]],
        "n_left_out": len(roles.dropped),
        "suspicious": [each.clause for each in roles.doubts],
        "notes": list(roles.notes),
    }


def _whole_columns(values: NDArray[Any]) -> NDArray[np.bool_]:
    whole = np.ones(values.shape[1], dtype=bool)
    for start in range(0, len(values), _ROWS):
        part = values[start : start + _ROWS]
        whole &= ((part == np.rint(part)) | np.isnan(part)).all(axis=0)
    return whole


def _ranges(values: NDArray[np.floating], features: list[str]) -> list[dict[str, Any]]:
    """Return type and range of the first features."""
    return [
        {
            "name": name,
            "type": "whole numbers" if (column == np.rint(column)).all() else "numbers",
            "min": float(column.min()),
            "max": float(column.max()),
        }
        for name, column in zip(features[:5], values.T[:5], strict=True)
    ]


def _origin(raw: RawTable, roles: Roles) -> str:
    if roles.ids is not None:
        return f"column {roles.names[roles.ids]!r}"
    return "numbers from 1" if raw.samples is None else "the file's own index"
