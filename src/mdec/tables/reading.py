"""Tables of samples by features, read from the files people have."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from mdec._support.memory import MAX_BYTES
from mdec.preparation import kind_of_values
from mdec.preparation.recipes import fill_zeros
from mdec.tables import arrays, hdf5, text
from mdec.tables.budget import (
    COMPRESSIONS,
    STANDARD_INPUT,
    TableFile,
    ending_of,
    list_names,
)
from mdec.tables.cells import as_text, class_names
from mdec.tables.columns import MAX_BESIDE, Doubt, RawTable, leave_out_totals
from mdec.tables.orientation import orient
from mdec.tables.roles import CATEGORIES, DATES, ambiguity, find_cure, find_roles

IMPUTATIONS = ("median", "knn")
_CHOICES = {"impute": IMPUTATIONS, "categories": CATEGORIES, "dates": DATES}
MAX_FEATURES = 1_000_000
# Bytes in memory for each number, and for each sample or feature, of a table beside
# what was read of it.
_PER_NUMBER, _PER_NAME = 20, 300

READERS: dict[str, Callable[[TableFile], RawTable]] = {
    **dict.fromkeys(text.TEXT_ENDINGS, text.read_text),
    ".gct": text.read_gct,
    ".mtx": arrays.read_mtx,
    ".xlsx": text.read_text,
    **dict.fromkeys((".parquet", ".feather", ".arrow"), arrays.read_columns),
    ".npz": arrays.read_npz,
    ".npy": arrays.read_npy,
    ".mat": arrays.read_mat,
    ".h5ad": hdf5.read_h5ad,
}
ENDINGS = tuple(READERS)
_COMPRESSIBLE = (*text.TEXT_ENDINGS, ".gct", ".mtx")
WITH_VARIABLES = (".xlsx", ".npz", ".mat", ".h5ad")
# Their readers put samples in rows; the others give the table as the file has it.
_ORIENTED = (".gct", ".mtx", ".npz", ".mat")


@dataclass(frozen=True)
class Table:
    """Numbers with names.

    Attributes
    ----------
    values : ndarray or csr_array of shape (n_samples, n_features)
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
        What the file says the values are, see `mdec.preparation.recipes.KINDS`, as
        AnnData files name their layers. None where the values must tell.
    columns : dict of str to list of str
        The first columns that are not features, as they are written.
    encoding : dict of str to list of str
        Columns of categories and their values, each of which is a feature; these are
        the last ones.
    """

    values: Any
    sample_names: list[str]
    feature_names: list[str]
    labels: NDArray[Any] | None = None
    reading: dict[str, Any] = field(default_factory=dict)
    kind: str | None = None
    columns: dict[str, list[str]] = field(default_factory=dict)
    encoding: dict[str, list[str]] = field(default_factory=dict)

    @property
    def groups(self) -> NDArray[np.int64]:
        """Number of the category that each feature is a value of, -1 for others."""
        sizes = [len(values) for values in self.encoding.values()]
        own = np.full(len(self.feature_names) - sum(sizes), -1)
        return np.concatenate([own, np.repeat(np.arange(len(sizes)), sizes)])


def read_table(
    path: str | os.PathLike[str],
    *,
    transpose: bool | None = None,
    label_column: str | None = None,
    id_column: str | None = None,
    drop: Sequence[str] = (),
    features: Sequence[str] = (),
    header: bool | None = None,
    index: bool | None = None,
    variable: str | None = None,
    missing: Sequence[str] = (),
    impute: str | None = None,
    categories: str | None = None,
    category_columns: Sequence[str] = (),
    dates: str | None = None,
    max_bytes: int = MAX_BYTES,
    known_features: Sequence[str] | None = None,
    encoding: Mapping[str, Sequence[str]] | None = None,
    least_samples: int = 3,
    sparse: bool = False,
) -> Table:
    """Read a table by the ending of its name.

    Parameters
    ----------
    path : path-like
        A .csv, .tsv, .tab, .txt, .gct or .mtx file, also compressed (.gz, .bz2, .xz,
        .zip), a .xlsx, .parquet, .feather, .arrow, .npz, .npy, .mat or .h5ad file, a
        folder with one .mtx file, or "-" for text from standard input.
    transpose : bool, default=None
        True if the file has features in rows, as expression tables often have; None
        looks at the names of rows and columns.
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
    missing : sequence of str, default=()
        What marks missing values beside the usual words, such as "-999".
    impute : {"median", "knn"}, default=None
        How to fill in missing values; None refuses them.
    categories : {"encode", "annotate"}, default=None
        Columns of a few different words: "encode" makes a feature of each word,
        "annotate" sets the columns aside for display; None refuses them.
    category_columns : sequence of str, default=()
        Columns of numbers that are codes, not amounts, names or shell patterns; they
        are encoded, or set aside, like words.
    dates : {"number", "annotate"}, default=None
        Columns of dates: days since 1970, or set aside for display; None refuses them.
    max_bytes : int
        A file that claims more is refused before anything is allocated.
    known_features : sequence of str, default=None
        Names of the columns of a model: these are taken, in that order, and all other
        columns are left out. A table without names is read as usual.
    encoding : mapping of str to sequence of str, default=None
        Values of those that hold categories.
    least_samples : int, default=3
        Fewer are refused; new samples may be fewer than those of a clustering.
    sparse : bool, default=False
        Whether a matrix that an .h5ad file keeps without its zeros stays sparse.

    Returns
    -------
    Table
        At least three samples and two features.

    Raises
    ------
    ValueError
        What is wrong with the file, in one sentence; or what may be meant in several
        ways, all of it in one list, and the parameters that say which.
    """
    given: dict[str, Any] = dict(locals())
    file = TableFile(arrays.find_matrix(Path(given.pop("path"))), **given)
    for name, choices in _CHOICES.items():
        if given[name] is not None and given[name] not in choices:
            raise ValueError(
                f"{name}={given[name]!r} is not one of {', '.join(choices)}."
            )
    ending = check_ending(file)
    if variable and ending not in WITH_VARIABLES:
        raise file.error(
            f"holds one table only; variable=... is for {', '.join(WITH_VARIABLES)}."
        )
    raw = leave_out_totals(READERS[ending](file).mark_missing(missing))
    n_names = sum(raw.values.shape)
    file.require_memory(_PER_NAME * n_names + _PER_NUMBER * raw.values.size)
    read, said = _take_roles(raw, file)
    if not read.doubts:
        return _finish(read, said)

    def attempt(cure: dict[str, Any]) -> list[Doubt]:
        more: dict[str, Any] = {
            name: [*given[name], *value] if isinstance(value, list) else value
            for name, value in cure.items()
        }
        # What the reader doubts is taken as its cure says.
        marked = replace(raw.mark_missing(cure.get("missing", ())), doubts=[])
        read, said = _take_roles(marked, replace(file, **more))
        if read.doubts:
            return read.doubts
        table = _finish(read, said)
        numbers = table.values[:, table.groups < 0]
        if cure.get("categories") == "encode" and kind_of_values(numbers)[0] != "other":
            # Expression values are not clustered together with categories.
            cure["categories"] = "annotate"
        return []

    doubts, cure = find_cure(read.doubts, attempt)
    reading = _describe(replace(read, doubts=[*doubts]), said)
    raise ambiguity(file, reading["suspicious"], cure, reading)


def check_ending(file: TableFile) -> str:
    """Return the ending that says how a file is read, or raise if there is none."""
    path = str(file.path)
    if path != STANDARD_INPUT and not file.path.is_file():
        raise ValueError(f"{path!r} is not a file; check its name.")
    ending, compression = ending_of(file.path)
    if ending not in ENDINGS or (compression and ending not in _COMPRESSIBLE):
        raise file.error(
            f"has no ending that mdec reads; use {', '.join(ENDINGS)}, text also with "
            f"{', '.join(COMPRESSIONS)}."
        )
    return ending


def _take_roles(raw: RawTable, file: TableFile) -> tuple[RawTable, TableFile]:
    """Put samples in rows and give each column its role, with doubts and notes.

    The file is returned with what the user still says of the table that way round.
    """
    if ending_of(file.path)[0] not in _ORIENTED:
        raw, file = orient(raw, file)
    raw = find_roles(raw, file)
    heads = [str(each) for each in raw.samples or ()]
    if len(set(heads)) < len(heads):
        raw.beside = {"name": heads, **raw.beside}
        raw.samples = [str(i + 1) for i in range(len(heads))]
        listed = list_names(heads, 2)
        note = f"names of samples repeat ({listed}), so that they are numbered"
        if raw.first_row and file.label_column is None and raw.labels is None:
            note += "; if these are classes, say label_column='1'"
        raw.notes.append(note)
    if not issparse(raw.values):
        _note_gaps(raw, file.impute)
    return raw, file


def _note_gaps(raw: RawTable, impute: str | None) -> None:
    """Add to the doubts that values are infinite, or missing and not filled in."""
    numbers = [j for j in raw.features if j not in raw.words]
    names = [raw.name(j) for j in numbers]

    def first(cells: NDArray[np.bool_]) -> str:
        row, column = np.argwhere(cells)[0]
        sample = raw.sample_names[row]
        return f"sample {sample[:60]!r}, column {names[column][:60]!r}"

    if (infinite := np.isinf(raw.values)[:, numbers]).any():
        marks = sorted(map(str, {*raw.values[:, numbers][infinite].tolist()}))
        cure = f"correct it, or fill it in with missing=[{marks[0]!r}]"
        clause = f"{first(infinite)}: the value is infinite; {cure} and impute='median'"
        raw.doubt("infinite", clause, missing=marks, impute="median")
    gaps = np.isnan(raw.values)[:, numbers]
    filled = ~gaps.all(axis=0)
    for name in (names[place] for place in np.flatnonzero(~filled)):
        where = f"there is no value at all in column {name[:60]!r}"
        raw.doubt("empty", f"{where}; leave it out with drop=[{name!r}]", drop=[name])
    gaps &= filled
    if impute is None and gaps.any():
        one = gaps.sum() == 1
        missing = "is 1 missing value" if one else f"are {gaps.sum()} missing values"
        clause = (
            f"there {missing}, in {gaps.any(axis=1).sum()} of {len(gaps)} samples and "
            f"{gaps.any(axis=0).sum()} of {gaps.shape[1]} features, the first in "
            f"{first(gaps)}; fill them in with impute='median' or impute='knn', or "
            "leave columns out with drop=..."
        )
        raw.doubt("missing", clause, impute="median")


def _finish(raw: RawTable, file: TableFile) -> Table:
    """Return a table of finite numbers, or raise one sentence."""
    n_samples, impute = raw.values.shape[0], file.impute
    n_features = len(raw.features) + sum(map(len, raw.encoded.values()))
    least = file.least_samples
    if n_samples < least or n_features > MAX_FEATURES:
        raise file.error(
            f"has {n_samples} samples in rows and {n_features} features in columns, "
            f"and needs {least} samples; transpose it if samples are in its columns."
        )
    if n_features < 2:
        raise file.error(
            f"has {n_features} columns of numbers and needs two or more; check its "
            "separator."
        )
    check_names(raw, file)
    precision = np.float32 if raw.values.dtype == np.float32 else np.float64
    values: Any = raw.values
    if raw.features != list(range(values.shape[1])):
        values = values[:, raw.features]
    n_missing = 0
    if issparse(values):
        values = values.astype(precision, copy=False)
    else:
        values = np.ascontiguousarray(values, dtype=precision)
        n_missing = int(np.isnan(values).sum())
    if impute is not None and n_missing:
        from sklearn.impute import KNNImputer, SimpleImputer

        filler = KNNImputer() if impute == "knn" else SimpleImputer(strategy="median")
        values = filler.fit_transform(values)
    unnamed = "feature " if raw.columns is None else ""
    features = [f"{unnamed}{raw.name(j)}" for j in raw.features]
    for j, words in raw.encoded.items():
        # A missing category has zeros.
        cells = np.array([cell.strip() for cell in raw.text(j)])[:, None]
        values = np.hstack([values, (cells == np.array(words)).astype(precision)])
        features += [f"{raw.name(j)}={word}" for word in words]
    first = zip(features, fill_zeros(values[:, :5]).T, strict=False)
    reading = _describe(raw, file) | {
        "missing": n_missing,
        "impute": impute,
        "n_features": len(features),
        "samples": raw.sample_names[:5],
        "features": features[:5],
        "first_features": [
            {
                "name": name,
                "type": "whole numbers" if (x == np.rint(x)).all() else "numbers",
                "min": float(x.min()),
                "max": float(x.max()),
            }
            for name, x in first
        ],
        "range": [float(values.min()), float(values.max())],
    }
    labels = _read_classes(raw, file)
    if labels is not None:
        reading["n_classes"] = len(set(labels.tolist()) - {""})
        reading["n_without_class"] = int((labels == "").sum())
    columns = {raw.name(j): raw.text(j) for j in raw.dropped[:MAX_BESIDE]} | raw.beside
    encoding = {raw.name(j): words for j, words in raw.encoded.items()}
    named = raw.sample_names, features, labels, reading
    return Table(values, *named, raw.kind, columns, encoding)


def _read_classes(raw: RawTable, file: TableFile) -> NDArray[np.str_] | None:
    if raw.labels is None:
        return None
    labels, n_samples = class_names([*map(as_text, raw.labels)]), raw.values.shape[0]
    if labels.size != n_samples:
        raise file.error(f"has {labels.size} known classes for {n_samples} samples.")
    if not (labels != "").any():
        raise file.error("has no known class at all in that column.")
    return labels


def check_names(raw: RawTable, file: TableFile) -> None:
    """Raise one sentence if the names of samples repeat."""
    name, count = Counter(raw.sample_names).most_common(1)[0]
    if count > 1:
        raise file.error(
            f"has the sample {name[:60]!r} more than once; give each its own name, or "
            "name that column with label_column=... if it holds known classes."
        )


def _describe(raw: RawTable, file: TableFile) -> dict[str, Any]:
    """Return what was read, for people and for summary.json."""
    classes = "the file's own" if file.label_column is None else file.label_column
    numbers = [str(i + 1) for i in range(raw.values.shape[0])]
    counted = raw.samples is None or list(raw.samples) == numbers
    origin = "numbers from 1" if counted else "the file's own index"
    return {
        "file": file.name,
        "format": ending_of(file.path)[0].lstrip("."),
        "n_samples": raw.values.shape[0],
        "n_features": len(raw.features),
        "names_of_columns": raw.columns is not None,
        "features_in_rows": raw.first_row > 0,
        "features": [raw.name(j) for j in raw.features[:5]],
        "sample_names": origin if raw.ids is None else f"column {raw.name(raw.ids)!r}",
        "classes": None if raw.labels is None else classes,
        "categories": [raw.name(j) for j in raw.encoded],
        "left_out": [raw.name(j) for j in raw.dropped[:20]],
        "n_left_out": len(raw.dropped),
        "suspicious": [each.clause for each in raw.doubts],
        "notes": raw.notes,
    }


def distinct_names(files: Sequence[Path]) -> list[str]:
    """Return different names of files, the shortest that do.

    Examples
    --------
    >>> distinct_names([Path("a/genes.csv"), Path("b/genes.tsv")])
    ['genes.csv', 'genes.tsv']
    """
    stems = [each.name.split(".")[0] or each.name for each in files]
    names = stems if len(set(stems)) == len(stems) else [each.name for each in files]
    if len(set(names)) < len(names):
        names = [f"{name} ({i + 1})" for i, name in enumerate(names)]
    return names


def match_samples(first: Table, table: Table, first_name: str, name: str) -> Table:
    """Return a table with the samples of another one, in its order.

    A note in the reading of the other one says which samples of the table are left out.
    """
    unnamed = {
        each.reading["sample_names"] == "numbers from 1" for each in (first, table)
    }
    if len(unnamed) > 1:
        raise ValueError(
            f"samples of several tables are matched by name, and only one of the first "
            f"table and {name!r} has names; give both, see id_column=...."
        )
    rows = {sample: row for row, sample in enumerate(table.sample_names)}
    missing = [sample for sample in first.sample_names if sample not in rows]
    if missing:
        raise ValueError(
            f"{name!r} lacks {len(missing)} of the {len(first.sample_names)} samples "
            f"({list_names(missing)}); leave them out of the first table, or spell "
            "their names alike."
        )
    found = [rows.pop(sample) for sample in first.sample_names]
    if rows:
        first.reading["notes"].append(
            f"{len(rows)} samples of {name!r} are not in {first_name!r} and left out "
            f"({list_names(list(rows))})"
        )
    return replace(table, values=table.values[found], sample_names=first.sample_names)
