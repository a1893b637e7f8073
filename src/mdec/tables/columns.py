"""The columns of a table: what readers hand over, and what names and numbers say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec.tables.budget import ReadBudget
from mdec.tables.words import MISSING, strip_thousands

# Columns that are no features are kept for display, at most this many.
MAX_BESIDE = 12

# Compared in small letters, without spaces and signs.
_ID_NAME = re.compile(
    "(sample|patient|subject|participant|donor|individual|barcode|cell|row|case|obs|"
    "observation|gene|probe|probeset|feature)s?(id|ids|name|names)?|ids?|index|idx|"
    "names?|uuid|(geo)?accession|mrn|gsm|entrez(id)?|ensembl(id)?|symbol|idref"
)
_CLASS_NAME = re.compile(
    "(known)?class(es)?|labels?|targets?|y|groups?|clusters?|category|diagnosis|"
    "species|(cell|sub|tumou?r|cancer)?types?|outcome|(ground)?truth|gnd|phenotype"
)

# Bytes in memory for each cell of a table of text that is turned.
_PER_CELL = 160

# A run of at least so many numbers is not monotone by chance.
ENOUGH = 8

# Columns that are looked at to tell what is usual in a table.
_MOST_COLUMNS = 200
_MOST_CLASSES = 30


@dataclass(frozen=True)
class TableOptions:
    """What the user says about a table: parameters of `read_table`, which has them all.

    A variable of "" looks for the usual ones; `known` are the columns of a model, and
    `encoding` has the values of those that hold categories. With `sparse` a matrix that
    a file keeps without its zeros stays so, if all its numbers are finite.
    """

    label_column: str | None = None
    id_column: str | None = None
    drop: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    header: bool | None = None
    index: bool | None = None
    variable: str = ""
    transpose: bool | None = None
    categories: str | None = None
    category_columns: tuple[str, ...] = ()
    dates: str | None = None
    known: tuple[str, ...] | None = None
    encoding: Mapping[str, Sequence[str]] = field(default_factory=dict)
    sparse: bool = False


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
    thousands : set of int
        Columns of numbers with signs between their thousands.
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
    first_row : int
        Number of the file's row that the first column was, in a table that was turned;
        0 in others.
    """

    values: NDArray[Any]
    columns: list[str] | None = None
    words: set[int] = field(default_factory=set)
    texts: dict[int, list[str]] = field(default_factory=dict)
    thousands: set[int] = field(default_factory=set)
    samples: Sequence[str] | None = None
    labels: Sequence[Any] | NDArray[Any] | None = None
    beside: dict[str, list[str]] = field(default_factory=dict)
    settled: bool = False
    kind: str | None = None
    notes: list[str] = field(default_factory=list)
    first_row: int = 0

    @property
    def names(self) -> list[str]:
        """Names of the columns, their numbers from 1 where the file has none."""
        return self.columns or [str(i + 1) for i in range(self.values.shape[1])]

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
            plain = strip_thousands(cells, decimal)
            try:
                values = [number(cell, decimal) for cell in plain or cells]
                self.values[:, place] = values
                self.thousands |= {place} if plain else set()
            except ValueError:
                self.words.add(place)
                if decimal == ",":
                    cells = [
                        c.replace(",", ".") if is_number(c, ",") else c for c in cells
                    ]
            self.texts[place] = cells

    def select(self, columns: list[int]) -> RawTable:
        """Return some of the columns, without what stands outside but the classes."""
        place = {old: new for new, old in enumerate(columns)}
        return RawTable(
            self.values[:, columns],
            None if self.columns is None else [self.columns[j] for j in columns],
            {place[j] for j in self.words if j in place},
            {place[j]: self.texts[j] for j in self.texts if j in place},
            {place[j] for j in self.thousands if j in place},
            labels=self.labels,
            notes=self.notes,
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
        turned.labels, turned.notes = self.labels, list(self.notes)
        turned.first_row = 1 if self.columns is None else 2
        turned.samples = self.columns
        return turned


def number(cell: str, decimal: str = ".") -> float:
    """Return the number in a cell of text, NaN for a missing one.

    Raises
    ------
    ValueError
        If the cell holds something else; Python's 1_000 is no number in a table.

    Examples
    --------
    >>> number("1e-3"), number("2,5", ","), number("NA")
    (0.001, 2.5, nan)
    """
    word = cell.strip()
    if word.lower() in MISSING:
        return float("nan")
    if "_" in word or (decimal == "," and "." in word):
        raise ValueError(f"{word!r} is not a number")
    return float(word.replace(decimal, "."))


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
    word = name.strip()
    if re.fullmatch(r"(Unnamed: ?\d+)?|.+[ _.\-](id|ID|Id)|.*[a-z](ID|Id)", word):
        return True
    return _ID_NAME.fullmatch(_plain(word)) is not None


def is_class_name(name: str) -> bool:
    """Tell whether a column's name speaks of classes.

    Examples
    --------
    >>> [is_class_name(n) for n in ("Class", "cell_type", "target", "TP53")]
    [True, True, True, False]
    """
    return _CLASS_NAME.fullmatch(_plain(name)) is not None


def has_role(name: str, asked: Iterable[str | None]) -> bool:
    """Tell whether a column is asked for, or named like an identifier or a class."""
    return name in asked or is_id_name(name) or is_class_name(name)


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


def is_whole(values: NDArray[np.floating]) -> bool:
    """Tell whether all numbers of a column that are there are whole."""
    present = _present(values)
    return present.size > 0 and bool((present == np.rint(present)).all())


def _present(values: NDArray[np.floating]) -> NDArray[np.floating]:
    return values[~np.isnan(values)] if values.dtype.kind == "f" else values


def looks_like(raw: RawTable, name: str, column: int, rest: list[int]) -> str:
    """Return what a column of numbers is rather than a feature, "" if it is one."""
    values = raw.values[:, column]
    if raw.columns and is_id_name(name) and is_whole(values):
        return "identifier"
    if raw.columns and is_class_name(name) and _is_coded(values, named=True):
        return "classes"
    if _counts_rows(values, 3 if raw.columns else ENOUGH):
        return "identifier"
    if column == rest[0] and _leads_with_ids(raw, rest):
        return "identifier"
    if column in (rest[0], rest[-1]) and _alone_coded(raw, column, rest):
        return "classes"
    return ""


def _thin_out(columns: list[int]) -> list[int]:
    return columns[:: max(1, len(columns) // _MOST_COLUMNS)]


def _counts_rows(values: NDArray[np.floating], enough: int) -> bool:
    """Tell whether a column is 0, 1, 2, ... or 1, 2, 3, ..."""
    if len(values) < enough or values[0] not in (0, 1) or values[1] != values[0] + 1:
        return False
    return bool((values == values[0] + np.arange(len(values))).all())


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
    return sum(is_whole(each) for each in others) < len(others) / 2


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
