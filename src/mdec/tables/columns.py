"""The columns of a table: what readers hand over, and what names and numbers say."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mdec.tables.budget import TableFile
from mdec.tables.cells import WORDS, as_text, is_number, number, plain_numbers


def compile_words(where: str, what: str, flags: int = 0) -> re.Pattern[str]:
    """Return the pattern of names that words.toml lists."""
    return re.compile("|".join(WORDS[where][what]), flags)


_ID_NAME = compile_words("columns", "identifiers")
_CLASS_NAME = compile_words("columns", "classes")
_NO_GENE = compile_words("rows", "no_gene")
_TOTAL = compile_words("rows", "totals")

# Numbers that stand for missing ones in many tables.
_SENTINELS = {sign * (10.0**k - 1.0) for k in range(2, 6) for sign in (-1, 1)}

# Columns that are no features are kept for display, at most this many.
MAX_BESIDE = 12

# Bytes in memory for each cell of a table of text that is turned.
_PER_CELL = 160

# A run of at least so many numbers is not monotone by chance.
ENOUGH = 8

# So many amounts hardly differ all from each other, as identifiers do.
_RARELY_ALL = 50

# Columns that are looked at to tell what is usual in a table.
_MOST_COLUMNS = 200
_MOST_CLASSES = 30


class Doubt(NamedTuple):
    """What stands in the way of reading a table: what to say of it, and what to do.

    The cure has parameters of `read_table`.
    """

    kind: str
    clause: str
    cure: Mapping[str, Any]


@dataclass
class RawTable:
    """The columns of a table, what each is, and what is odd or in doubt.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_columns)
        The numbers, NaN where they are missing and in columns of words.
    columns : list of str or None
        Names of the columns, where the file has them.
    words : set of int
        Columns that do not hold numbers only.
    texts : dict of int to list of str
        Columns as they are written: those of words, and those whose numbers may turn
        out to be names or classes. Empty cells are "".
    signs : set of int
        Columns of numbers with signs beside them or between their thousands.
    samples : sequence of str or None
        Names of the rows that stand outside the columns.
    labels : sequence or None
        Known classes that stand outside the columns; None and NaN where missing.
    beside : dict of str to list of str
        Columns that stand beside the table and are neither names nor known classes.
    settled : bool
        Whether the format itself says that every column of numbers is a feature.
    kind : str or None
        What the file says that the values are.
    first_row : int
        Number of the file's row that the first column was, in a table that was turned;
        0 in others.
    notes : list of str
        What is odd, and was read all the same.
    doubts : list of Doubt
        What may be meant in several ways.
    ids, classes : int or None
        Columns of the samples' names and of known classes.
    features, dropped : list of int
        Columns to cluster, and those left out.
    encoded : dict of int to list of str
        Columns of categories that become features, and their values.
    """

    values: NDArray[Any]
    columns: list[str] | None = None
    words: set[int] = field(default_factory=set)
    texts: dict[int, list[str]] = field(default_factory=dict)
    signs: set[int] = field(default_factory=set)
    samples: Sequence[str] | None = None
    labels: Sequence[Any] | NDArray[Any] | None = None
    beside: dict[str, list[str]] = field(default_factory=dict)
    settled: bool = False
    kind: str | None = None
    first_row: int = 0
    notes: list[str] = field(default_factory=list)
    doubts: list[Doubt] = field(default_factory=list)
    ids: int | None = None
    classes: int | None = None
    features: list[int] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)
    encoded: dict[int, list[str]] = field(default_factory=dict)

    def doubt(self, kind: str, clause: str, **cure: Any) -> None:
        """Note what may be meant in several ways, and its cure."""
        self.doubts.append(Doubt(kind, clause, cure))

    @property
    def names(self) -> list[str]:
        """Names of the columns, their numbers from 1 where the file has none."""
        return [self.name(column) for column in range(self.values.shape[1])]

    def name(self, column: int) -> str:
        """Return the name of a column."""
        return self.columns[column] if self.columns else str(column + 1)

    def text(self, column: int) -> list[str]:
        """Return a column as it is written, "" where a value is missing."""
        if column in self.texts:
            return self.texts[column]
        return [as_text(value) for value in self.values[:, column].tolist()]

    @property
    def named(self) -> bool:
        """Whether the samples have names."""
        return self.ids is not None or self.samples is not None

    @property
    def sample_names(self) -> list[str]:
        """Names of the samples, numbers from 1 where the file has none."""
        if self.ids is not None:
            return [cell.strip() for cell in self.text(self.ids)]
        if self.samples is not None:
            return [str(each) for each in self.samples]
        return [str(i + 1) for i in range(self.values.shape[0])]

    def all_differ(self, column: int) -> bool:
        """Tell whether the words or the whole numbers of a column never repeat."""
        cells = self.text(column)
        named = column in self.words or is_whole(self.values[:, column])
        return named and len(set(cells)) == len(cells)

    def parse(self, texts: dict[int, list[str]], decimal: str = ".") -> None:
        """Take over columns of text, as numbers where all their cells are numbers.

        Parameters
        ----------
        texts : dict of int to list of str
            Cells by the place of their column.
        decimal : str
            Decimal point of the cells; words are kept with "." in their numbers.
        """
        for place, cells in texts.items():
            self.texts[place] = cells
            try:
                self.values[:, place] = [number(cell, decimal) for cell in cells]
                continue
            except ValueError:
                # Names of samples may end in a letter, all of them in the same.
                named = place == 0 and len({*cells}) == len(cells)
                named &= not any(decimal in cell for cell in cells)
                plain = plain_numbers(cells, decimal, units=not named)
            if plain is not None:
                self.values[:, place] = plain
                self.signs.add(place)
                continue
            self.words.add(place)
            if decimal == ",":
                self.texts[place] = [
                    c.replace(",", ".") if is_number(c, ",") else c for c in cells
                ]

    def mark_missing(self, marks: Sequence[str]) -> RawTable:
        """Return the table with some cells missing, as they are written.

        Examples
        --------
        >>> raw = from_texts([["1", "-9", "x"], ["2", "3", "4"]], None)
        >>> raw = raw.mark_missing(["-9", "x"])
        >>> raw.values[:, 0], raw.words
        (array([ 1., nan, nan]), set())
        """
        if not marks:
            return self
        values = self.values.astype(np.result_type(self.values, np.float32))
        for mark in filter(is_number, marks):
            values[values == number(mark)] = np.nan
        marked = replace(self, values=values, words={*self.words}, texts={**self.texts})
        marked.signs = {*self.signs}
        for j in self.words:
            cells = ["" if c.strip() in marks else c for c in self.texts[j]]
            if cells != self.texts[j]:
                marked.words.discard(j)
                marked.parse({j: cells})
        return marked

    def select(self, columns: list[int]) -> RawTable:
        """Return some of the columns, without what stands outside but the classes."""
        place = {old: new for new, old in enumerate(columns)}
        return RawTable(
            self.values[:, columns],
            None if self.columns is None else [self.columns[j] for j in columns],
            {place[j] for j in self.words if j in place},
            {place[j]: self.texts[j] for j in self.texts if j in place},
            {place[j] for j in self.signs if j in place},
            labels=self.labels,
            notes=self.notes,
            doubts=self.doubts,
        )

    def transpose(self, rows: Sequence[str] | None, file: TableFile) -> RawTable:
        """Return the table with rows and columns exchanged.

        Its columns have the names of the rows, its rows those of these columns. The
        file is asked for the memory if cells have to be turned one by one.
        """
        names = None if rows is None else list(rows)
        if self.words:
            file.require_memory(_PER_CELL * self.values.size)
            cells = [self.text(column) for column in range(self.values.shape[1])]
            turned = from_texts([list(row) for row in zip(*cells, strict=True)], names)
        else:
            turned = RawTable(self.values.T, names)
        turned.labels, turned.doubts = self.labels, self.doubts
        turned.notes, turned.samples = list(self.notes), self.columns
        turned.first_row = 1 if self.columns is None else 2
        return turned


def as_matrix(values: NDArray[Any], file: TableFile) -> NDArray[Any]:
    """Return values, or raise unless they are real numbers in rows and columns."""
    if values.ndim != 2:
        dimensions = f"holds an array of {values.ndim} dimensions"
        raise file.error(f"{dimensions}; a table has two.")
    if values.dtype.kind not in "fiub":
        raise file.error(f"holds {values.dtype} and not real numbers.")
    return values


def from_texts(columns: Sequence[list[str]], names: list[str] | None) -> RawTable:
    """Return a table of columns of text; those of numbers only become numbers."""
    shape = (len(columns[0]) if columns else 0, len(columns))
    raw = RawTable(np.full(shape, np.nan), names)
    raw.parse(dict(enumerate(columns)))
    return raw


def leave_out_totals(raw: RawTable) -> RawTable:
    """Leave out a last row that is the sum or the mean of those above it.

    Examples
    --------
    >>> raw = from_texts([["a", "b", "Total"], ["1", "2", "3"], ["4", "0", "4"]], None)
    >>> leave_out_totals(raw).notes
    ["the last row, 'Total', sums up the others and is left out"]
    """
    if not isinstance(raw.values, np.ndarray) or len(raw.values) < 3:
        return raw
    name = str((raw.text(0) if raw.samples is None else raw.samples)[-1])
    if not _TOTAL.fullmatch(name.strip().lower()):
        return raw
    numeric = [j for j in range(raw.values.shape[1]) if j not in raw.words]
    values = raw.values[:, numeric].astype(np.float64)
    filled = ~np.isnan(values[-1])
    above, last = values[:-1, filled], values[-1, filled]
    sums = np.isclose(last, np.nansum(above, axis=0), rtol=1e-2)
    means = np.isclose(last, np.nanmean(above, axis=0), rtol=1e-2)
    if not last.size or np.mean(sums | means) < 0.5:
        note = f"the last row is called {name!r}; delete it if it sums up the others"
        return replace(raw, notes=[*raw.notes, note])
    left = replace(raw, values=raw.values[:-1])
    left.texts = {j: cells[:-1] for j, cells in raw.texts.items()}
    left.samples = None if raw.samples is None else raw.samples[:-1]
    left.labels = None if raw.labels is None else raw.labels[:-1]
    note = f"the last row, {name!r}, sums up the others and is left out"
    left.notes = [*raw.notes, note]
    return left


def is_id_name(name: str) -> bool:
    """Tell whether a column's name speaks of an identifier.

    Examples
    --------
    >>> [is_id_name(n) for n in ("Sample ID", "patient_id", "Unnamed: 0", "BID", "MYC")]
    [True, True, True, False, False]
    """
    ends = re.fullmatch(r".+[ _.\-](id|ID|Id)|.*[a-z](ID|Id)", name.strip())
    return bool(ends or is_unnamed(name) or _ID_NAME.fullmatch(plain_name(name)))


def is_unnamed(name: str) -> bool:
    """Tell whether a column has no name of its own, or the one that pandas gives it."""
    return re.fullmatch(r"(Unnamed: ?\d+)?", name.strip()) is not None


def is_class_name(name: str) -> bool:
    """Tell whether a column's name speaks of classes.

    Examples
    --------
    >>> [is_class_name(n) for n in ("Class", "cell_type", "target", "TP53")]
    [True, True, True, False]
    """
    return _CLASS_NAME.fullmatch(plain_name(name)) is not None


def has_role(name: str, file: TableFile) -> bool:
    """Tell whether a column is asked for, or named like an identifier or a class."""
    asked = name in (file.label_column, file.id_column)
    return asked or is_id_name(name) or is_class_name(name)


def plain_name(name: str) -> str:
    """Return a name in small letters, without spaces and signs."""
    return re.sub(r"[\W_]", "", name).lower()


def _present(values: NDArray[np.floating]) -> NDArray[np.floating]:
    return values[~np.isnan(values)] if values.dtype.kind == "f" else values


def is_whole(values: NDArray[np.floating]) -> bool:
    """Tell whether all numbers of a column that are there are whole."""
    present = _present(values)
    return present.size > 0 and bool((present == np.rint(present)).all())


def _never_repeats(values: NDArray[np.floating]) -> bool:
    """Tell whether there are enough numbers, all whole and different."""
    enough = len(values) >= ENOUGH and is_whole(values)
    return enough and np.unique(values).size == len(values)


def _codes(values: NDArray[np.floating], *, named: bool = False) -> list[float]:
    """Return the whole numbers of a column if they are few enough to be classes.

    If the column has no name that says so, they have to count from 0 or 1, or to be
    signs, and each of them to repeat.
    """
    if not is_whole(values):
        return []
    codes, sizes = np.unique(_present(values), return_counts=True)
    few = 2 <= codes.size <= min(_MOST_CLASSES, max(2, sizes.sum() // 3))
    counted = codes[0] in (0, 1) and bool((np.diff(codes) == 1).all())
    usual = sizes.min() > 1 and (counted or codes.tolist() == [-1, 1])
    return codes.tolist() if few and (named or usual) else []


def _thin_out(columns: list[int]) -> list[int]:
    return columns[:: max(1, len(columns) // _MOST_COLUMNS)]


def looks_like(raw: RawTable, column: int, rest: list[int]) -> str:
    """Return what a column of numbers is rather than a feature, "" if it is one.

    The rest are all columns of numbers that may be features.
    """
    values, name = raw.values[:, column], raw.name(column)
    ends = int(raw.ids == 0), raw.values.shape[1] - 1
    if _NO_GENE.fullmatch(name):
        return "no gene"
    if raw.columns and is_id_name(name) and is_whole(values):
        codes = is_unnamed(name) and column in ends and _codes(values, named=True)
        return "classes" if codes else "identifier"
    if raw.columns and is_class_name(name) and _codes(values, named=True):
        return "classes"
    # 0, 1, 2, ... or 1, 2, 3, ...
    counted = len(values) >= (3 if raw.columns else ENOUGH) and values[0] in (0, 1)
    if counted and (values == values[0] + np.arange(len(values))).all():
        return "identifier"
    if column == ends[0] and not raw.named and _leads_with_ids(raw, rest):
        return "identifier"
    if column not in ends or len(rest) < 2 or not _codes(values):
        return ""
    others = _thin_out([j for j in rest if j != column])
    coded = sum(bool(_codes(raw.values[:, j], named=True)) for j in others)
    return "classes" if coded <= 0.1 * len(others) else ""


def _leads_with_ids(raw: RawTable, rest: list[int]) -> bool:
    """Tell whether the first column is a list of identifiers and no feature."""
    values = raw.values[:, rest[0]]
    if not _never_repeats(values):
        return False
    steps = np.sign(np.diff(values.astype(np.float64)))
    if abs(steps.sum()) == steps.size:
        return True
    others = [raw.values[:, j] for j in _thin_out(rest[1:])]
    if not others or any(map(_never_repeats, others)):
        return False
    fractions = sum(not is_whole(each) for each in others)
    return fractions > len(others) / 2 or len(values) >= _RARELY_ALL


def never_repeating(raw: RawTable, columns: list[int]) -> list[int]:
    """Return the columns of whole numbers that never repeat, if these are rare."""
    sample = _thin_out(columns)
    found = [j for j in sample if _never_repeats(raw.values[:, j])]
    return found if len(found) <= max(1.0, 0.05 * len(sample)) else []


def few_codes(raw: RawTable, columns: list[int]) -> list[int]:
    """Return columns of three to ten whole numbers from 1 on, if these are rare."""
    sample = _thin_out(columns)
    codes = {j: _codes(raw.values[:, j]) for j in sample}
    found = [j for j, each in codes.items() if 3 <= len(each) <= 10 and each[0] == 1]
    return found if len(found) <= len(sample) / 2 else []


def find_sentinel(raw: RawTable, columns: list[int]) -> tuple[int, float] | None:
    """Return a column with a number such as -999 far from all its others, and that.

    Examples
    --------
    >>> raw = RawTable(np.array([[3.5, -999.0, 4.0, np.nan, -999.0]]).T)
    >>> find_sentinel(raw, [0])
    (0, -999.0)
    """
    for j in _thin_out(columns):
        present = _present(raw.values[:, j])
        ends = {present.min(), present.max()} if present.size else set()
        for mark in ends & _SENTINELS:
            others = present[present != mark]
            if others.size and np.abs(others - mark).min() > 2.0 * np.ptp(others) > 0.0:
                return j, float(mark)
    return None


def find_day_codes(raw: RawTable) -> set[int]:
    """Return the columns of whole numbers that are dates, such as 20240131.

    Examples
    --------
    >>> find_day_codes(RawTable(np.array([[20240131.0, 1.0], [20231224.0, 2.0]])))
    {0}
    """
    if not isinstance(raw.values, np.ndarray) or not len(raw.values):
        return set()
    low, high = 19000101, 20991231
    # An empty first cell tells nothing.
    likely = np.flatnonzero(~((raw.values[0] < low) | (raw.values[0] > high)))

    def are_days(days: NDArray[np.floating]) -> bool:
        month, day = days // 100 % 100, days % 100
        fits = (days >= low) & (days <= high) & (month >= 1) & (month <= 12)
        return bool((fits & (day >= 1) & (day <= 31)).all())

    whole = {j for j in likely.tolist() if is_whole(raw.values[:, j])} - raw.words
    return {j for j in whole if are_days(_present(raw.values[:, j]))}
