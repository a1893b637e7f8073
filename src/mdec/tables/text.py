"""Text tables: separators, decimal points, comments, and cells that are shown as text.

pandas parses them; what it would let pass, such as rows of different lengths, is
refused here.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.memory import require_memory
from mdec._support.optional import import_optional
from mdec.tables.door import Door, Refused, damaged, unpacked
from mdec.tables.headers import first_row_is_names, is_class_name, is_id_name
from mdec.tables.raw import MISSING, RawTable, from_texts, is_number, number, turned
from mdec.tables.roles import Doubtful

TEXT_ENDINGS = (".csv", ".tsv", ".tab", ".txt", ".gct")

# Bytes held for each byte of text while it is read, and for each of its cells.
_COPIES, _PER_CELL = 5, 42
_SEPARATORS = ("\t", ";", ",", "|", " ")
_LOOKED_AT = 50
_CELLS_LOOKED_AT = 10_000
_MISSING_WORDS = sorted(
    {form for word in MISSING for form in (word, word.upper(), word.title(), "NaN")}
)

# What spreadsheets take for the start of a formula, wide forms included.
_FORMULA = "=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20"


@dataclass(frozen=True)
class Sheet:
    """Rows of text that all have the same number of cells.

    Attributes
    ----------
    lines : list of str
        Without comments and blank lines.
    separator, decimal : str
        A space stands for any run of spaces.
    first : list of str
        Cells of the first row.
    named : bool
        Whether the first row is surely one of names.
    """

    lines: list[str]
    separator: str
    decimal: str
    first: list[str]
    named: bool


def shown_as_text(name: str) -> str:
    """Return a cell that spreadsheets show as it is and never compute.

    Examples
    --------
    >>> shown_as_text("=1+1"), shown_as_text("s1"), shown_as_text("-5")
    ("'=1+1", 's1', '-5')
    """
    risky = re.match(f"'*[{_FORMULA}]", name) and not is_number(name)
    return f"'{name}" if risky else name


def read_back(cell: str) -> str:
    """Return the name that `shown_as_text` wrote.

    Examples
    --------
    >>> read_back("'=1+1"), read_back("s1"), read_back(shown_as_text("'=a"))
    ('=1+1', 's1', "'=a")
    """
    return cell[1:] if re.match(f"'+[{_FORMULA}]", cell) else cell


def read_text(
    path: Path, door: Door, header: bool | None = None, asked: Iterable[str] = ()
) -> RawTable:
    """Read a text table.

    Parameters
    ----------
    path : Path
        The file, compressed or not.
    door : Door
        Weighs what it unpacks to.
    header : bool or None
        Whether the first row holds names; None looks.
    asked : iterable of str
        Columns whose text is kept as it is written.

    Returns
    -------
    RawTable
        As the file has it.
    """
    sheet = read_sheet(path, door)
    if len(sheet.first) == 1:
        raise Refused(
            f"{door.name!r} has one column and needs two or more; check its separator."
        )
    if len(sheet.lines) == 1:
        raise Refused(f"{door.name!r} has a row of names and no numbers below it.")
    below = _parsed(sheet, sheet.lines[1:], door)
    if header is None:
        header = sheet.named or first_row_is_names(sheet.first, below, sheet.decimal)
    if header is None:
        raise doubtful_header(door, sheet.first)
    lines = sheet.lines[1:] if header else sheet.lines
    raw = below if header else _parsed(sheet, lines, door)
    names = [read_back(cell.strip()) for cell in sheet.first] if header else None
    _keep_text(raw, names, sheet, lines, frozenset(asked))
    return _without_empty(raw, names)


def doubtful_header(door: Door, first: Sequence[str]) -> Doubtful:
    """Return the error for a first row that may be names or a sample."""
    shown = ", ".join(cell.strip()[:20] for cell in first[:4])
    return Doubtful(
        f"the first row of {door.name!r} ({shown}, ...) may hold names or a sample; "
        "say which with --header or --no-header (header)."
    )


def read_sheet(path: Path, door: Door) -> Sheet:
    """Return the rows of a text file, checked to be a table."""
    content = unpacked(path, door, copies=_COPIES)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refused(
            f"{door.name!r} is not UTF-8 text; save it again as UTF-8."
        ) from error
    if "\x00" in text:
        raise damaged(door, "a text table")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    # Spreadsheets leave rows of nothing but separators.
    lines = [line for line in lines if line.strip(' \t,;|"')]
    kept = [line for line in lines if not _is_comment(line)]
    if not kept:
        raise Refused(f"{door.name!r} is empty.")
    separator = _separator(kept[:_LOOKED_AT], path)
    marked = _marked_header(lines, kept, separator)
    kept = [*marked, *kept]
    if separator == " ":
        kept = [line.replace("\t", " ").strip() for line in kept]
    kept, widths, first = _records(kept, separator, door)
    named = bool(marked)
    if len(kept) > 1 and len(first) == widths[1] - 1:
        # write.table of R leaves out the name of the column of row names.
        first, named = ["", *first], True
        kept[0] = separator.replace(" ", '"" ') + kept[0]
        widths[0] += 1
    if len(set(widths)) > 1:
        odd = next(i for i, width in enumerate(widths) if width != widths[0])
        raise Refused(
            f"{door.name!r} has {widths[0]} cells in its first row and {widths[odd]} "
            f"in row {odd + 1}; every row needs the same number."
        )
    require_memory(
        _PER_CELL * len(kept) * len(first),
        f"reading {door.name!r}",
        "save it as .npy or .parquet, which need far less",
    )
    return Sheet(kept, separator, _decimal(kept, separator), first, named)


def text_columns(sheet: Sheet, lines: list[str], places: Iterable[int]) -> Any:
    """Return columns exactly as they are written, by their place."""
    frame = _pandas().read_csv(
        _bytes(lines),
        usecols=sorted(places),
        dtype=str,
        na_filter=False,
        **_dialect(sheet),
    )
    return {int(place): frame[place].tolist() for place in frame.columns}


def read_numbers(
    content: bytes, n_rows: int, n_columns: int, door: Door
) -> NDArray[np.float64]:
    """Return rows of numbers that nothing but spaces separate.

    Parameters
    ----------
    content : bytes
        The rows.
    n_rows, n_columns : int
        What there has to be.
    door : Door
        Names the file in sentences.

    Returns
    -------
    ndarray of shape (n_rows, n_columns)
        The numbers that Python's float gives.
    """
    pandas = _pandas()
    if n_rows == 0 and not content.strip():
        return np.empty((0, n_columns))
    try:
        frame = pandas.read_csv(
            io.BytesIO(content), sep=r"\s+", header=None, dtype=np.float64, **_exact()
        )
    except (ValueError, OverflowError) as error:
        raise damaged(door, "a list of numbers") from error
    if frame.shape != (n_rows, n_columns) or frame.isna().to_numpy().any():
        raise damaged(door, f"a list of {n_rows} numbers, as it claims")
    values: NDArray[np.float64] = frame.to_numpy()
    return values


def _is_comment(line: str) -> bool:
    return line.startswith("#") and not line.upper().startswith("#N/A")


def _marked_header(lines: list[str], kept: list[str], separator: str) -> list[str]:
    """Return the last comment before the rows, if it is their row of names."""
    leading = [line for line in lines[: lines.index(kept[0])] if _is_comment(line)]
    if not leading:
        return []
    names = leading[-1].lstrip("#").strip(" ")
    width = len(_cells(kept[0], separator))
    numbers = [is_number(cell) for cell in _cells(kept[0], separator)]
    if width > 1 and len(_cells(names, separator)) == width and any(numbers):
        return [names]
    return []


def _cells(line: str, separator: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=separator, skipinitialspace=True))
    except (csv.Error, StopIteration):
        return [line]


def _separator(lines: list[str], path: Path) -> str:
    """Return the sign that cuts the rows into the most numbers, evenly."""
    best, found = -1.0, ""
    for separator in _SEPARATORS:
        rows = [_cells(line.strip(" "), separator) for line in lines]
        widths = {len(row) for row in rows[1:] or rows}
        if len(widths) > 1 or widths == {1}:
            continue
        if len(rows[0]) not in (max(widths), max(widths) - 1):
            continue
        cells = _some([cell for row in rows[1:] or rows for cell in row])
        share = sum(is_number(c) or is_number(c, ",") for c in cells) / len(cells)
        if share > best + 1e-9:
            best, found = share, separator
    if found:
        return found
    first = lines[0]
    if path.suffix.lower() != ".csv" and "\t" in first:
        return "\t"
    return max("\t,;", key=first.count)


def _some(cells: list[str]) -> list[str]:
    """Return cells from everywhere; an odd step meets all columns of most tables."""
    return cells[:: len(cells) // _CELLS_LOOKED_AT | 1]


def _decimal(lines: list[str], separator: str) -> str:
    if separator == ",":
        return "."
    rows = [_cells(line, separator) for line in lines[1 : _LOOKED_AT + 1]]
    cells = _some([cell for row in rows for cell in row])
    point = any("." in cell and is_number(cell) for cell in cells)
    comma = any("," in cell and is_number(cell, ",") for cell in cells)
    return "," if comma and not point else "."


def _records(
    lines: list[str], separator: str, door: Door
) -> tuple[list[str], list[int], list[str]]:
    """Return the rows as text, how many cells each has, and the cells of the first."""
    if separator != " " and not any('"' in line for line in lines):
        widths = [line.count(separator) + 1 for line in lines]
        return lines, widths, lines[0].split(separator)
    rows = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    records: list[str] = []
    widths, start = [], 0
    first: list[str] = []
    try:
        for row in rows:
            first = first or row
            # A quoted cell may go on in the next line.
            records.append("\n".join(lines[start : rows.line_num]))
            widths.append(len(row))
            start = rows.line_num
    except csv.Error as error:
        raise Refused(f"{door.name!r} is not a table: {error}.") from error
    return records, widths, first


def _pandas() -> Any:
    return import_optional(
        "pandas", needed_for="reading text tables", install="mdec[data]"
    )


def _bytes(lines: list[str]) -> io.BytesIO:
    return io.BytesIO("\n".join(lines).encode())


def _dialect(sheet: Sheet) -> dict[str, Any]:
    return {
        "sep": r"\s+" if sheet.separator == " " else sheet.separator,
        "header": None,
        "index_col": False,
        "skipinitialspace": True,
        "low_memory": False,
        "skip_blank_lines": False,
    }


def _exact() -> dict[str, str]:
    """Return what makes pandas read the same numbers as Python's float."""
    version = tuple(int(part) for part in _pandas().__version__.split(".")[:2])
    # From 3.1 on that is the default, and asking for it is deprecated.
    return {} if version >= (3, 1) else {"float_precision": "round_trip"}


def _parsed(sheet: Sheet, lines: list[str], door: Door) -> RawTable:
    """Return the columns of some rows; those of words with their text."""
    pandas = _pandas()
    try:
        frame = pandas.read_csv(
            _bytes(lines),
            decimal=sheet.decimal,
            na_values=_MISSING_WORDS,
            keep_default_na=False,
            **_dialect(sheet),
            **_exact(),
        )
    except (pandas.errors.ParserError, OverflowError) as error:
        raise damaged(door, "a text table") from error
    if frame.shape != (len(lines), len(sheet.first)):
        raise damaged(door, "a text table")
    numeric = np.array([each.kind in "fiub" for each in frame.dtypes])
    if numeric.all():
        return RawTable(frame.to_numpy(dtype=np.float64))
    values = np.full(frame.shape, np.nan)
    values[:, numeric] = frame.loc[:, numeric].to_numpy(dtype=np.float64)
    others = np.flatnonzero(~numeric).tolist()
    texts = text_columns(sheet, lines, others)
    words = set()
    for place in others:
        try:
            values[:, place] = [number(c, sheet.decimal) for c in texts[place]]
        except ValueError:
            words.add(place)
            if sheet.decimal == ",":
                texts[place] = [_pointed(cell) for cell in texts[place]]
    return RawTable(values, None, words, texts)


def _pointed(cell: str) -> str:
    return cell.replace(",", ".") if is_number(cell, ",") else cell


def _keep_text(
    raw: RawTable,
    names: list[str] | None,
    sheet: Sheet,
    lines: list[str],
    asked: frozenset[str],
) -> None:
    """Keep the text of columns that may be names or classes: 007 is not 7."""
    shown = names or [str(i + 1) for i in range(raw.values.shape[1])]
    wanted = {
        j
        for j, name in enumerate(shown)
        if j == 0 or name in asked or is_id_name(name) or is_class_name(name)
    }
    missing = wanted - set(raw.texts)
    if missing:
        raw.texts |= text_columns(sheet, lines, missing)


def _without_empty(raw: RawTable, names: list[str] | None) -> RawTable:
    """Leave out a last column that a separator at the end of each row makes."""
    last = raw.values.shape[1] - 1
    raw.columns = names
    unnamed = names is None or not names[last]
    empty = last not in raw.words and bool(np.isnan(raw.values[:, last]).all())
    if last > 1 and unnamed and empty:
        raw.values = raw.values[:, :last]
        raw.texts.pop(last, None)
        raw.columns = None if names is None else names[:last]
    return raw


def read_gct(path: Path, door: Door, label_column: str | None) -> RawTable:
    """Read a .gct table, version 1.2 or 1.3; samples in rows.

    Parameters
    ----------
    path : Path
        The file, compressed or not.
    door : Door
        Weighs what it unpacks to.
    label_column : str or None
        The one row of 1.3's descriptions of samples that is kept.

    Returns
    -------
    RawTable
        Genes in columns.
    """
    text = unpacked(path, door, copies=_COPIES).decode("utf-8-sig", "replace")
    lines = [line for line in text.splitlines() if line.strip()]
    version, sizes = (
        (lines[0].strip(), lines[1].split()) if len(lines) > 2 else ("", [])
    )
    needed = {"#1.2": 2, "#1.3": 4}.get(version)
    if len(sizes) != needed or not all(re.fullmatch("[0-9]+", n) for n in sizes):
        raise damaged(door, "a .gct table of version 1.2 or 1.3")
    counts = [int(each) for each in sizes]
    beside, above = (counts[2], counts[3]) if version == "#1.3" else (1, 0)
    rows = [line.split("\t") for line in lines[2:]]
    width = 1 + beside + counts[1]
    if any(len(row) != width for row in rows) or len(rows) != 1 + above + counts[0]:
        raise damaged(door, f"a .gct table of the {' x '.join(sizes)} that it claims")
    chosen = [
        row
        for place, row in enumerate(rows[1:])
        if place >= above or row[0] == label_column
    ]
    samples = [cell.strip() for cell in rows[0][1 + beside :]]
    columns = [list(column) for column in zip(*chosen, strict=True)][1 + beside :]
    table = turned(from_texts(columns, samples), [row[0].strip() for row in chosen])
    table.settled = True
    return table
