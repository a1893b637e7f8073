"""Tables of samples by features, read from the files people have."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from mdec._support.memory import MAX_BYTES
from mdec.preparation import kind_of_values
from mdec.preparation.recipes import fill_zeros
from mdec.tables.arrays import (
    find_matrix,
    read_arrow,
    read_mat,
    read_mtx,
    read_npy,
    read_npz,
    read_parquet,
)
from mdec.tables.budget import (
    COMPRESSIONS,
    STANDARD_INPUT,
    ReadBudget,
    display_name,
    ending_of,
    list_names,
)
from mdec.tables.columns import (
    MAX_BESIDE,
    Doubt,
    RawTable,
    TableOptions,
    as_text,
    encode_category,
    leave_out_totals,
)
from mdec.tables.hdf5 import read_h5ad
from mdec.tables.orientation import orient
from mdec.tables.roles import (
    CATEGORIES,
    DATES,
    Roles,
    class_names,
    find_cure,
    find_roles,
    name_row,
    raise_doubts,
)
from mdec.tables.text import TEXT_ENDINGS, read_gct, read_text

IMPUTATIONS = ("median", "knn")
_CHOICES = {"impute": IMPUTATIONS, "categories": CATEGORIES, "dates": DATES}
MAX_FEATURES = 1_000_000
# Bytes in memory for each number, and for each sample or feature, of a table beside
# what was read of it.
_PER_NUMBER, _PER_NAME = 20, 300

# A reader takes the file, what it may take of memory, and what the user says of it.
READERS: dict[str, Callable[[Path, ReadBudget, TableOptions], RawTable]] = {
    **dict.fromkeys(TEXT_ENDINGS, read_text),
    ".gct": read_gct,
    ".mtx": read_mtx,
    ".xlsx": read_text,
    ".parquet": read_parquet,
    ".feather": read_arrow,
    ".arrow": read_arrow,
    ".npz": read_npz,
    ".npy": read_npy,
    ".mat": read_mat,
    ".h5ad": read_h5ad,
}
ENDINGS = tuple(READERS)
_COMPRESSIBLE = (*TEXT_ENDINGS, ".gct", ".mtx")
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
        What the file says the values are, one of `mdec.preparation.KINDS`: AnnData
        files name their layers. None where the values must tell.
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
    source = find_matrix(Path(given.pop("path")))
    options = TableOptions(**given)
    budget = ReadBudget(display_name(source), max_bytes)
    for name, choices in _CHOICES.items():
        if given[name] is not None and given[name] not in choices:
            raise ValueError(
                f"{name}={given[name]!r} is not one of {', '.join(choices)}."
            )
    raw, ending = _read_file(source, budget, options), ending_of(source)[0]
    turned, roles, reading = _take_roles(raw, options, budget, ending)
    doubts = [*raw.doubts, *turned.doubts]
    if not doubts:
        return _finish(turned, roles, budget, reading, options)

    def attempt(cure: dict[str, Any]) -> list[Doubt]:
        more: dict[str, Any] = {
            name: [*given[name], *value] if isinstance(value, list) else value
            for name, value in cure.items()
        }
        said, marked = replace(options, **more), raw
        if "missing" in cure:
            marked = deepcopy(raw)
            marked.mark_missing(cure["missing"])
        turned, roles, reading = _take_roles(marked, said, budget, ending)
        if turned.doubts:
            return turned.doubts
        table = _finish(turned, roles, budget, reading, said)
        numbers = table.values[:, table.groups < 0]
        if cure.get("categories") == "encode" and kind_of_values(numbers)[0] != "other":
            # Expression values are not clustered together with categories.
            cure["categories"] = "annotate"
        return []

    doubts, cure = find_cure(doubts, attempt)
    reading["suspicious"] = [each.clause for each in doubts]
    return raise_doubts(doubts, budget, cure, reading)


def _read_file(source: Path, budget: ReadBudget, options: TableOptions) -> RawTable:
    """Return what a file holds."""
    ending = check_ending(source, budget)
    if options.variable and ending not in WITH_VARIABLES:
        raise budget.error(
            f"holds one table only; variable=... is for {', '.join(WITH_VARIABLES)}."
        )
    raw = READERS[ending](source, budget, options)
    raw.mark_missing(options.missing)
    raw = leave_out_totals(raw)
    n_names = sum(raw.values.shape)
    needed = _PER_NAME * n_names + _PER_NUMBER * raw.values.size
    budget.require_memory(needed, "read fewer samples or features")
    return raw


def _take_roles(
    raw: RawTable, options: TableOptions, budget: ReadBudget, ending: str
) -> tuple[RawTable, Roles, dict[str, Any]]:
    """Put samples in rows and give each column its role; say what was read."""
    raw = replace(raw, words={*raw.words}, notes=[*raw.notes], doubts=[])
    if ending not in _ORIENTED:
        raw, options = orient(raw, options, budget)
    roles = find_roles(raw, options, budget)
    _number_repeated(raw, options.label_column)
    _note_gaps(raw, roles, options.impute)
    return raw, roles, _describe(raw, roles, budget, ending, options.label_column)


def _number_repeated(raw: RawTable, label_column: str | None) -> None:
    """Number samples whose names stand outside the columns and repeat, with a note."""
    heads = [str(each) for each in raw.samples or ()]
    if len(set(heads)) == len(heads):
        return
    raw.beside = {"name": heads, **raw.beside}
    raw.samples = [str(i + 1) for i in range(len(heads))]
    note = (
        f"names of samples repeat ({list_names(heads, 2)}), so that they are numbered"
    )
    if raw.first_row and label_column is None and raw.labels is None:
        note += "; if these are classes, say label_column='1'"
    raw.notes.append(note)


def check_ending(source: Path, budget: ReadBudget) -> str:
    """Return the ending that says how a file is read, or raise if there is none."""
    if str(source) != STANDARD_INPUT and not source.is_file():
        raise ValueError(f"{str(source)!r} is not a file; check its name.")
    ending, compression = ending_of(source)
    if ending not in ENDINGS or (compression and ending not in _COMPRESSIBLE):
        raise budget.error(
            f"has no ending that mdec reads; use {', '.join(ENDINGS)}, text also with "
            f"{', '.join(COMPRESSIONS)}."
        )
    return ending


def _check_shape(
    raw: RawTable, roles: Roles, budget: ReadBudget, least_samples: int
) -> None:
    n_samples = raw.values.shape[0]
    n_features = len(roles.features) + sum(map(len, roles.encoded.values()))
    if n_samples < least_samples or n_features > MAX_FEATURES:
        raise budget.error(
            f"has {n_samples} samples in rows and {n_features} features in columns, "
            f"and needs {least_samples} samples; transpose it if samples are in its "
            "columns."
        )
    if n_features < 2:
        raise budget.error(
            f"has {n_features} columns of numbers and needs two or more; check its "
            "separator."
        )


def _finish(
    raw: RawTable,
    roles: Roles,
    budget: ReadBudget,
    reading: dict[str, Any],
    options: TableOptions,
) -> Table:
    """Return a table of finite numbers, or raise one sentence."""
    _check_shape(raw, roles, budget, options.least_samples)
    samples = name_samples(raw, roles, budget)
    precision = np.float32 if raw.values.dtype == np.float32 else np.float64
    values: NDArray[Any] = raw.values
    if roles.features != list(range(values.shape[1])):
        values = values[:, roles.features]
    if issparse(values):
        values = values.astype(precision, copy=False)
    else:
        values = np.ascontiguousarray(values, dtype=precision)
    unnamed = "feature " if raw.columns is None else ""
    features = [f"{unnamed}{roles.names[j]}" for j in roles.features]
    labels = _read_classes(raw, roles, budget)
    n_missing = 0 if issparse(values) else int(np.isnan(values).sum())
    reading |= {"missing": n_missing, "impute": options.impute}
    if options.impute is not None and n_missing:
        values = _impute_missing(values, options.impute)
    encoding = {roles.names[j]: each for j, each in roles.encoded.items()}
    for j, each in roles.encoded.items():
        ones = encode_category(raw.text(j), each).astype(precision)
        values = np.hstack([values, ones])
        features += [f"{roles.names[j]}={value}" for value in each]
    reading |= {
        "n_features": len(features),
        "samples": samples[:5],
        "features": features[:5],
        "first_features": _ranges(values, features),
        "range": [float(values.min()), float(values.max())],
    }
    if labels is not None:
        reading["n_classes"] = len(set(labels.tolist()) - {""})
        reading["n_without_class"] = int((labels == "").sum())
    columns = {roles.names[j]: raw.text(j) for j in roles.dropped[:MAX_BESIDE]}
    columns |= raw.beside
    named = values, samples, features, labels, reading
    return Table(*named, raw.kind, columns, encoding)


def _note_gaps(raw: RawTable, roles: Roles, impute: str | None) -> None:
    """Add to the doubts that values are infinite, or missing and not filled in."""
    if issparse(raw.values):
        return
    numbers = [j for j in roles.features if j not in raw.words]
    names = [roles.names[j] for j in numbers]

    def first(cells: NDArray[np.bool_]) -> str:
        row, column = np.argwhere(cells)[0]
        name = name_row(raw, roles, int(row))
        return f"sample {name!r}, column {names[column][:60]!r}"

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


def _impute_missing(values: NDArray[np.floating], how: str) -> NDArray[np.floating]:
    """Fill in the feature's median, or the mean of the five nearest samples with it.

    Examples
    --------
    >>> _impute_missing(np.array([[1.0], [np.nan], [4.0], [9.0]]), "median").ravel()
    array([1., 4., 4., 9.])
    """
    from sklearn.impute import KNNImputer, SimpleImputer

    imputer = KNNImputer() if how == "knn" else SimpleImputer(strategy="median")
    filled: NDArray[np.floating] = imputer.fit_transform(values)
    return filled


def _read_classes(
    raw: RawTable, roles: Roles, budget: ReadBudget
) -> NDArray[np.str_] | None:
    if roles.classes is not None:
        labels = class_names(raw.text(roles.classes))
    elif raw.labels is not None:
        labels = class_names([as_text(each) for each in raw.labels])
    else:
        return None
    if labels.size != raw.values.shape[0]:
        raise budget.error(
            f"has {labels.size} known classes for {raw.values.shape[0]} samples."
        )
    if not (labels != "").any():
        raise budget.error("has no known class at all in that column.")
    return labels


def name_samples(raw: RawTable, roles: Roles, budget: ReadBudget) -> list[str]:
    """Return the samples' names, numbers where there are none; all are different."""
    samples = [str(i + 1) for i in range(raw.values.shape[0])]
    if roles.ids is not None:
        samples = [cell.strip() for cell in raw.text(roles.ids)]
    elif raw.samples is not None:
        samples = [str(each) for each in raw.samples]
    if len(set(samples)) < len(samples):
        twice = next(name for name, count in Counter(samples).items() if count > 1)
        raise budget.error(
            f"has the sample {twice[:60]!r} more than once; give each its own name, or "
            "name that column with label_column=... if it holds known classes."
        )
    return samples


def _describe(
    raw: RawTable,
    roles: Roles,
    budget: ReadBudget,
    ending: str,
    label_column: str | None,
) -> dict[str, Any]:
    """Return what was read, for people and for summary.json."""
    names = roles.names
    classes = None if raw.labels is None else label_column or "the file's own"
    if roles.classes is not None:
        classes = names[roles.classes]
    numbers = [str(i + 1) for i in range(raw.values.shape[0])]
    counted = raw.samples is None or list(raw.samples) == numbers
    origin = "numbers from 1" if counted else "the file's own index"
    if roles.ids is not None:
        origin = f"column {names[roles.ids]!r}"
    return {
        "file": budget.name,
        "format": ending.lstrip("."),
        "n_samples": raw.values.shape[0],
        "n_features": len(roles.features),
        "names_of_columns": raw.columns is not None,
        "features_in_rows": raw.first_row > 0,
        "features": [names[j] for j in roles.features[:5]],
        "sample_names": origin,
        "classes": classes,
        "categories": [names[j] for j in roles.encoded],
        "left_out": [names[j] for j in roles.dropped[:20]],
        "n_left_out": len(roles.dropped),
        "suspicious": [each.clause for each in raw.doubts],
        "notes": raw.notes,
    }


def _ranges(values: NDArray[np.floating], features: list[str]) -> list[dict[str, Any]]:
    """Return type and range of the first features."""
    first = fill_zeros(values[:, :5])
    return [
        {
            "name": name,
            "type": "whole numbers" if (column == np.rint(column)).all() else "numbers",
            "min": float(column.min()),
            "max": float(column.max()),
        }
        for name, column in zip(features[:5], first.T, strict=True)
    ]


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
