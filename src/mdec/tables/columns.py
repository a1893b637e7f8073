"""The columns of a table: what readers hand over, and what names and numbers say."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.resources import files
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mdec._support.memory import MAX_BYTES
from mdec.tables.budget import ReadBudget

WORDS = tomllib.loads((files("mdec.tables") / "words.toml").read_text("utf-8"))
MISSING_CLASS = frozenset(WORDS["missing"]["classes"])
MISSING = MISSING_CLASS.union(WORDS["missing"]["numbers"])


def compile_words(where: str, what: str, flags: int = 0) -> re.Pattern[str]:
    """Return the pattern of names that words.toml lists."""
    return re.compile("|".join(WORDS[where][what]), flags)


_ID_NAME = compile_words("columns", "identifiers")
_CLASS_NAME = compile_words("columns", "classes")
_NO_GENE = compile_words("rows", "no_gene")
_TOTAL = compile_words("rows", "totals")

# More different words are names or free text.
_MOST_VALUES = 30

# Ways to write dates; the first, without a form, is that of ISO.
_CLOCKS = WORDS["dates"]["clocks"]
_DAYS = product(WORDS["dates"]["days"], WORDS["dates"]["times"])
_DATES = ("", *_CLOCKS, *map("".join, _DAYS))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Currencies, shares and units beside numbers, and signs between their thousands.
_MEASURE = re.compile(
    r"(?P<sign>[+\u2212-]?)(?P<before>[$\u20ac\xa3\xa5\u20b9]|[A-Z]{3}\s)?\s?"
    r"(?P<number>[+\u2212-]?[.,]?\d[\d.,'\u2019 \xa0\u202f]*?)"
    r"(?P<after>\s?[%\u2030$\u20ac\xa3\xa5\u20b9]|"
    r"\s?\xb0?[A-Za-z\xb5\u03bc]{1,8}[\xb2\xb3]?(/[\w.]{1,8})?)?"
)
_GROUPED = r"[1-9]\d{0,2}([%s'\u2019 \xa0\u202f])\d{3}(\1\d{3})*(%s\d+)?"
_THOUSANDS = {
    ".": re.compile(_GROUPED % (",", r"\.")),
    ",": re.compile(_GROUPED % (r"\.", ",")),
}

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


@dataclass(frozen=True)
class TableOptions:
    """What the user says about a table: the parameters of `read_table`."""

    transpose: bool | None = None
    label_column: str | None = None
    id_column: str | None = None
    drop: Sequence[str] = ()
    features: Sequence[str] = ()
    header: bool | None = None
    index: bool | None = None
    variable: str | None = None
    missing: Sequence[str] = ()
    impute: str | None = None
    categories: str | None = None
    category_columns: Sequence[str] = ()
    dates: str | None = None
    max_bytes: int = MAX_BYTES
    known_features: Sequence[str] | None = None
    encoding: Mapping[str, Sequence[str]] | None = None
    least_samples: int = 3
    sparse: bool = False


class Doubt(NamedTuple):
    """What stands in the way of reading a table: what to say of it, and what to do.

    The cure has parameters of `read_table`.
    """

    kind: str
    clause: str
    cure: Mapping[str, Any]


@dataclass
class RawTable:
    """The columns of a table.

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
    notes : list of str
        What is odd, and was read all the same.
    doubts : list of Doubt
        What may be meant in several ways.
    first_row : int
        Number of the file's row that the first column was, in a table that was turned;
        0 in others.
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
    notes: list[str] = field(default_factory=list)
    doubts: list[Doubt] = field(default_factory=list)
    first_row: int = 0

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

    def mark_missing(self, marks: Sequence[str]) -> None:
        """Take some cells for missing values, as they are written.

        Examples
        --------
        >>> raw = from_texts([["1", "-9", "x"], ["2", "3", "4"]], None)
        >>> raw.mark_missing(["-9", "x"])
        >>> raw.values[:, 0], raw.words
        (array([ 1., nan, nan]), set())
        """
        for mark in marks:
            if is_number(mark):
                self.values[self.values == number(mark)] = np.nan
        for j in self.words.copy():
            cells = ["" if c.strip() in marks else c for c in self.texts[j]]
            if cells != self.texts[j]:
                self.words.discard(j)
                self.parse({j: cells})

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

    def transpose(self, rows: Sequence[str] | None, budget: ReadBudget) -> RawTable:
        """Return the table with rows and columns exchanged.

        Parameters
        ----------
        rows : sequence of str or None
            Names of the rows.
        budget : ReadBudget
            Is asked for the memory if cells have to be turned one by one.

        Returns
        -------
        RawTable
            Its rows are named by the columns of this one.
        """
        names = None if rows is None else list(rows)
        if self.words:
            cure = "leave columns of words out, or turn the table before"
            budget.require_memory(_PER_CELL * self.values.size, cure)
            cells = [self.text(column) for column in range(self.values.shape[1])]
            turned = from_texts([list(row) for row in zip(*cells, strict=True)], names)
        else:
            turned = RawTable(self.values.T, names)
        turned.labels, turned.doubts = self.labels, self.doubts
        turned.notes = list(self.notes)
        turned.first_row = 1 if self.columns is None else 2
        turned.samples = self.columns
        return turned


def number(cell: str, decimal: str = ".") -> float:
    """Return the number in a cell of text, NaN for a missing one.

    Raises
    ------
    ValueError
        If the cell holds something else; Python's 1_000 is not a number in a table.

    Examples
    --------
    >>> number("1e-3"), number("2,5", ","), number("NA")
    (0.001, 2.5, nan)
    """
    word = cell.strip().replace("\N{MINUS SIGN}", "-")
    if word.lower() in MISSING:
        return float("nan")
    if "_" in word or (decimal == "," and "." in word):
        raise ValueError(f"{word!r} is not a number")
    return float(word.replace(decimal, "."))


def plain_numbers(
    cells: Sequence[str], decimal: str = ".", *, units: bool = True
) -> list[float] | None:
    """Return numbers without the signs beside them and between their thousands.

    Parameters
    ----------
    cells : sequence of str
        As they are written.
    decimal : str
        Their decimal point.
    units : bool, default=True
        Whether they may have letters after them.

    Returns
    -------
    list of float or None
        None unless all have the same currency, share or unit, or none of them, and
        signs between their thousands are in the right places; parentheses are minus.

    Examples
    --------
    >>> plain_numbers(["23,341", "980", "1,200,000.5"])
    [23341.0, 980.0, 1200000.5]
    >>> plain_numbers(["$5", "($1,700)", ""]), plain_numbers(["1,5 cm", "NA"], ",")
    ([5.0, -1700.0, nan], [1.5, nan])
    >>> plain_numbers(["23,3", "980"]) is plain_numbers(["1 cm", "1 kg"]) is None
    True
    """
    found, signs = [], set()
    for cell in cells:
        word = cell.strip()
        if word.lower() in MISSING:
            found.append(math.nan)
            continue
        inside = re.fullmatch(r"\((.+)\)", word)
        match = _MEASURE.fullmatch(f"-{inside[1]}" if inside else word)
        if match is None or re.match(r"0\d", match["number"]):
            return None
        size = match["number"]
        if _THOUSANDS[decimal].fullmatch(size.lstrip("+\u2212-")):
            size = re.sub(rf"[^\d{decimal}+\u2212-]", "", size)
        if not is_number(size, decimal):
            return None
        signs.add((match["before"], match["after"]))
        found.append(number(match["sign"] + size, decimal))
    after = next(iter(signs))[1] if len(signs) == 1 else None
    lettered = after is not None and after.strip()[-1].isalpha()
    return found if len(signs) == 1 and (units or not lettered) else None


def reads_as(cell: str, decimal: str) -> bool:
    """Tell whether a cell is a number, perhaps with signs beside or inside it."""
    return is_number(cell, decimal) or plain_numbers([cell], decimal) is not None


def is_number(cell: str, decimal: str = ".") -> bool:
    """Tell whether a cell of text is a number, missing ones included.

    Examples
    --------
    >>> is_number("1e-3"), is_number("NA"), is_number("TP53")
    (True, True, False)
    """
    try:
        number(cell, decimal)
    except ValueError:
        return False
    return True


def as_text(value: Any) -> str:
    """Return a value as a table would write it: whole numbers without a point.

    Examples
    --------
    >>> as_text(2.0), as_text(2.5), as_text(None), as_text(float("nan")), as_text("a")
    ('2', '2.5', '', '', 'a')
    """
    # pd.NA answers no comparison.
    if value is None or type(value).__name__ == "NAType" or value != value:
        return ""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


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
    note = f"the last row, {name!r}, sums up the others and is left out"
    return replace(
        raw,
        values=raw.values[:-1],
        texts={j: cells[:-1] for j, cells in raw.texts.items()},
        samples=None if raw.samples is None else raw.samples[:-1],
        labels=None if raw.labels is None else raw.labels[:-1],
        notes=[*raw.notes, note],
    )


def from_texts(columns: Sequence[list[str]], names: list[str] | None) -> RawTable:
    """Return a table of columns of text; those of numbers only become numbers."""
    shape = (len(columns[0]) if columns else 0, len(columns))
    raw = RawTable(np.full(shape, np.nan), names)
    raw.parse(dict(enumerate(columns)))
    return raw


def is_id_name(name: str) -> bool:
    """Tell whether a column's name speaks of an identifier.

    Examples
    --------
    >>> [is_id_name(n) for n in ("Sample ID", "patient_id", "Unnamed: 0", "BID", "MYC")]
    [True, True, True, False, False]
    """
    if is_unnamed(name):
        return True
    if re.fullmatch(r".+[ _.\-](id|ID|Id)|.*[a-z](ID|Id)", name.strip()):
        return True
    return _ID_NAME.fullmatch(plain_name(name)) is not None


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


def has_role(name: str, asked: Iterable[str | None]) -> bool:
    """Tell whether a column is asked for, or named like an identifier or a class."""
    return name in asked or is_id_name(name) or is_class_name(name)


def plain_name(name: str) -> str:
    """Return a name in small letters, without spaces and signs."""
    return re.sub(r"[\W_]", "", name).lower()


def is_whole(values: NDArray[np.floating]) -> bool:
    """Tell whether all numbers of a column that are there are whole."""
    present = _present(values)
    return present.size > 0 and bool((present == np.rint(present)).all())


def _present(values: NDArray[np.floating]) -> NDArray[np.floating]:
    return values[~np.isnan(values)] if values.dtype.kind == "f" else values


def looks_like(
    raw: RawTable, column: int, rest: list[int], ends: tuple[int, int], *, named: bool
) -> str:
    """Return what a column of numbers is rather than a feature, "" if it is one.

    Parameters
    ----------
    raw : RawTable
        The table.
    column : int
        The column.
    rest : list of int
        All columns of numbers that may be features.
    ends : tuple of int
        The first column of the table, beside its names, and the last one.
    named : bool
        Whether another column names the samples.
    """
    values, name = raw.values[:, column], raw.name(column)
    if _NO_GENE.fullmatch(name):
        return "no gene"
    if raw.columns and is_id_name(name) and is_whole(values):
        codes = is_unnamed(name) and column in ends and _is_coded(values, named=True)
        return "classes" if codes else "identifier"
    if raw.columns and is_class_name(name) and _is_coded(values, named=True):
        return "classes"
    # 0, 1, 2, ... or 1, 2, 3, ...
    counted = len(values) >= (3 if raw.columns else ENOUGH) and values[0] in (0, 1)
    if counted and (values == values[0] + np.arange(len(values))).all():
        return "identifier"
    if column == ends[0] and not named and _leads_with_ids(raw, rest):
        return "identifier"
    return "classes" if column in ends and _alone_coded(raw, column, rest) else ""


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


def _thin_out(columns: list[int]) -> list[int]:
    return columns[:: max(1, len(columns) // _MOST_COLUMNS)]


def _like_ids(values: NDArray[np.floating]) -> bool:
    return (
        len(values) >= ENOUGH
        and is_whole(values)
        and np.unique(values).size == len(values)
    )


def _leads_with_ids(raw: RawTable, rest: list[int]) -> bool:
    """Tell whether the first column is a list of identifiers and no feature."""
    values = raw.values[:, rest[0]]
    if not _like_ids(values):
        return False
    steps = np.sign(np.diff(values.astype(np.float64)))
    if abs(steps.sum()) == steps.size:
        return True
    others = [raw.values[:, j] for j in _thin_out(rest[1:])]
    if not others or any(_like_ids(each) for each in others):
        return False
    fractions = sum(not is_whole(each) for each in others)
    return fractions > len(others) / 2 or len(values) >= _RARELY_ALL


def _is_coded(values: NDArray[np.floating], *, named: bool) -> bool:
    """Tell whether whole numbers are few enough to be classes."""
    if not is_whole(values):
        return False
    present = _present(values)
    codes, sizes = np.unique(present, return_counts=True)
    few = 2 <= codes.size <= min(_MOST_CLASSES, max(2, present.size // 3))
    if named or not few:
        return bool(few)
    in_order = codes[0] in (0, 1) and bool((np.diff(codes) == 1).all())
    return bool(sizes.min() > 1 and (in_order or codes.tolist() == [-1, 1]))


def _alone_coded(raw: RawTable, column: int, rest: list[int]) -> bool:
    """Tell whether a column at either end holds codes where the others do not."""
    if not _is_coded(raw.values[:, column], named=False) or len(rest) < 2:
        return False
    others = _thin_out([j for j in rest if j != column])
    coded = sum(_is_coded(raw.values[:, j], named=True) for j in others)
    return coded <= 0.1 * len(others)


def never_repeating(raw: RawTable, columns: list[int]) -> list[int]:
    """Return the columns of whole numbers that never repeat, if these are rare."""
    sample = _thin_out(columns)
    found = [j for j in sample if _like_ids(raw.values[:, j])]
    return found if len(found) <= max(1.0, 0.05 * len(sample)) else []


def few_codes(raw: RawTable, columns: list[int]) -> list[int]:
    """Return columns of three to ten whole numbers from 1 on, if these are rare."""
    sample = _thin_out(columns)
    coded = [j for j in sample if _is_coded(raw.values[:, j], named=False)]
    codes = {j: np.unique(_present(raw.values[:, j])) for j in coded}
    found = [j for j in coded if 3 <= codes[j].size <= 10 and codes[j][0] == 1]
    return found if len(found) <= len(sample) / 2 else []


def kind_of_words(cells: Sequence[str]) -> str:
    """Tell what a column of words holds.

    Parameters
    ----------
    cells : sequence of str
        As they are written.

    Returns
    -------
    {"dates", "categories", "text"}
        Categories are two to thirty different words, on average of four samples each.

    Examples
    --------
    >>> kind_of_words(["2024-01-31", "2024-02-01"]), kind_of_words(["a", "b", "a", "a"])
    ('dates', 'categories')
    >>> kind_of_words(["TP53", "MYC", "EGFR"])
    'text'
    """
    if parse_dates(cells) is not None:
        return "dates"
    present = [cell.strip() for cell in cells if not is_missing(cell)]
    few = len(set(present)) <= min(_MOST_VALUES, max(2, len(present) // 4))
    few &= 1 < len(set(present)) < len(present)
    return "categories" if few else "text"


def is_missing(cell: str) -> bool:
    """Tell whether a cell of words says that there is none."""
    return cell.strip().lower() in MISSING_CLASS


def parse_dates(cells: Sequence[str]) -> NDArray[np.float64] | None:
    """Return the dates in cells of text as days since 1970.

    Parameters
    ----------
    cells : sequence of str
        As they are written, all in one way; 3/4/2024 is the third of April unless
        another cell rules that out.

    Returns
    -------
    ndarray of shape (n_cells,) or None
        NaN where a cell is missing; None if one is no date, or all are missing.

    Examples
    --------
    >>> parse_dates(["2.1.1970", "", "3.1.1970 12:00"]) is None
    True
    >>> parse_dates(["2.1.1970", "", "11.1.1970"])
    array([ 1., nan, 10.])
    """
    words = [cell.strip() for cell in cells]
    different = {word for word in words if word.lower() not in MISSING}
    if not different or not all(re.search(r"\d", word) for word in different):
        return None
    for form in _DATES:
        try:
            days = {word: _parse_day(word, form) for word in different}
        except ValueError:
            continue
        return np.array([days.get(word, math.nan) for word in words])
    return None


def _parse_day(word: str, form: str) -> float:
    """Return a date as days since 1970; one without a form is written as ISO says."""
    clock = form in _CLOCKS
    # 1:2 is a ratio and no time of the day.
    usual = r"\d?\d:\d\d(:\d\d)?" if clock else r"\d{4}-\d\d-\d\d.*"
    if (clock or not form) and not re.fullmatch(usual, word):
        raise ValueError(f"{word!r} is not a date")
    found = datetime.strptime(word, form) if form else datetime.fromisoformat(word)
    known = found if found.tzinfo else found.replace(tzinfo=UTC)
    seconds = (known - _EPOCH).total_seconds()
    return (seconds % 86_400.0 if clock else seconds) / 86_400.0


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
    likely = np.flatnonzero(~((raw.values[0] < low) | (raw.values[0] > high))).tolist()
    found = set()
    for j in (j for j in likely if j not in raw.words and is_whole(raw.values[:, j])):
        days = _present(raw.values[:, j])
        month, day = days // 100 % 100, days % 100
        fits = (days >= low) & (days <= high) & (month >= 1) & (month <= 12)
        if (fits & (day >= 1) & (day <= 31)).all():
            found.add(j)
    return found


def encode_category(cells: Sequence[str], values: Sequence[str]) -> NDArray[np.float64]:
    """Return a column of ones and zeros for each value; a missing one has zeros.

    Examples
    --------
    >>> encode_category(["b", " a", "NA"], ["a", "b"])
    array([[0., 1.],
           [1., 0.],
           [0., 0.]])
    """
    words = np.array([cell.strip() for cell in cells])
    return (words[:, None] == np.array(list(values))).astype(np.float64)


def category_values(cells: Sequence[str]) -> list[str]:
    """Return the different words of a column, sorted; whole numbers by their size.

    Examples
    --------
    >>> category_values(["b", "a", "b", ""]), category_values(["10", "9"])
    (['a', 'b'], ['9', '10'])
    """
    found = {cell.strip() for cell in cells if not is_missing(cell)}
    numbers = all(re.fullmatch(r"-?\d+", word) for word in found)
    return sorted(found, key=int) if numbers else sorted(found)
