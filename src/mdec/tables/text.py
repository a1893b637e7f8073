"""Text tables and workbooks: separators, decimal points, comments, formulas.

pandas parses them; what it would let pass, such as rows of different lengths, is
refused here. The sheet of a workbook is read as the text that it could be saved as.
"""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from mdec._support.optional import import_optional
from mdec.tables.budget import TableFile, ending_of, list_names, read_bytes
from mdec.tables.cells import (
    MISSING,
    as_text,
    is_missing,
    is_number,
    number,
    plain_numbers,
)
from mdec.tables.columns import (
    ENOUGH,
    Doubt,
    RawTable,
    has_role,
    is_class_name,
    is_id_name,
    is_unnamed,
)
from mdec.tables.roles import ambiguity

TEXT_ENDINGS = (".csv", ".tsv", ".tab", ".txt", ".data")

# Bytes in memory while text is read: for each byte of it, for each line, and for each
# cell that pandas turns into a number, or that becomes a text of its own.
_COPIES, _PER_LINE, _PER_CELL, _PER_TEXT = 5, 120, 42, 160
# The objects of a workbook's cells take so many times the bytes of its XML.
_XML_COPIES = 12
# A page with less than this share of another's numbers holds notes beside a table.
_FEW_NUMBERS = 0.1
_SEPARATORS = ("\t", ";", ",", "|", " ")
# Rows and cells that are looked at to find the separator and the decimal point.
_ROWS, _CELLS = 50, 10_000
# Lines that may stand above a table or below it, and the share of its own rows.
_TITLES, _EVEN = 10, 0.6
_MISSING_WORDS = sorted(
    {form for word in MISSING for form in (word, word.upper(), word.title(), "NaN")}
)

# What spreadsheets take for the start of a formula, wide forms included.
_FORMULA = "=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20"


def escape_formula(name: str) -> str:
    """Return a cell that spreadsheets show as it is and never compute.

    Examples
    --------
    >>> escape_formula("=1+1"), escape_formula("s1"), escape_formula("-5")
    ("'=1+1", 's1', '-5')
    """
    risky = re.match(f"'*[{_FORMULA}]", name) and not is_number(name)
    return f"'{name}" if risky else name


def unescape_formula(cell: str) -> str:
    """Return the name that `escape_formula` wrote.

    Examples
    --------
    >>> [unescape_formula(cell) for cell in ("'=1+1", "s1", escape_formula("'=a"))]
    ['=1+1', 's1', "'=a"]
    """
    escaped = cell[:1] == "'" and re.match(f"'+[{_FORMULA}]", cell)
    return cell[1:] if escaped else cell


@dataclass(frozen=True)
class Sheet:
    """Rows of text that all have the same number of cells.

    Attributes
    ----------
    file : TableFile
        Is asked for the memory, and named in messages.
    lines : list of str
        Without comments and blank lines.
    separator, decimal : str
        A space stands for any run of spaces.
    first : list of str
        Cells of the first row.
    named : bool
        Whether the first row is surely one of names.
    quoted : bool
        Whether cells may stand between quotation marks.
    notes : list of str
        What else there is in the file.
    doubts : list of Doubt
        Which other rows might be meant.
    """

    file: TableFile
    lines: list[str]
    separator: str
    decimal: str
    first: list[str]
    named: bool = False
    quoted: bool = True
    notes: list[str] = field(default_factory=list)
    doubts: list[Doubt] = field(default_factory=list)

    def parse(self, start: int, n_bytes: int, **options: Any) -> Any:
        """Return rows as a pandas frame of columns with numbers, for bytes by cell."""
        n_cells = (len(self.lines) - start) * len(options.get("usecols", self.first))
        n_letters = sum(map(len, self.lines)) + len(self.lines)
        self.file.require_memory(n_bytes * n_cells + 5 * n_letters)
        try:
            return pandas().read_csv(
                io.BytesIO("\n".join(self.lines[start:]).encode()),
                sep=r"\s+" if self.separator == " " else self.separator,
                header=None,
                index_col=False,
                skipinitialspace=True,
                low_memory=False,
                skip_blank_lines=False,
                quoting=csv.QUOTE_MINIMAL if self.quoted else csv.QUOTE_NONE,
                **options,
            )
        except (pandas().errors.ParserError, OverflowError) as error:
            raise self.file.damage("a text table") from error

    def texts(self, start: int, places: Iterable[int]) -> dict[int, list[str]]:
        """Return columns exactly as they are written, by their place."""
        as_written: dict[str, Any] = {"dtype": str, "na_filter": False}
        frame = self.parse(start, _PER_TEXT, usecols=sorted(places), **as_written)
        return {int(place): frame[place].tolist() for place in frame.columns}

    def numbers(self, start: int) -> RawTable:
        """Return the rows from one on; columns of words with their text."""
        how: dict[str, Any] = {"na_values": _MISSING_WORDS, "keep_default_na": False}
        # From 3.1 on pandas reads the numbers that Python's float does.
        if tuple(map(int, pandas().__version__.split(".")[:2])) < (3, 1):
            how["float_precision"] = "round_trip"
        frame = self.parse(start, _PER_CELL, decimal=self.decimal, **how)
        if frame.shape != (len(self.lines) - start, len(self.first)):
            raise self.file.damage("a text table")
        numeric = np.array([each.kind in "fiub" for each in frame.dtypes])
        if numeric.all():
            return RawTable(frame.to_numpy(dtype=np.float64))
        raw = RawTable(np.full(frame.shape, np.nan))
        raw.values[:, numeric] = frame.loc[:, numeric].to_numpy(dtype=np.float64)
        others = np.flatnonzero(~numeric).tolist()
        raw.parse(self.texts(start, others), self.decimal)
        return raw


def read_text(file: TableFile, *, as_written: bool = False) -> RawTable:
    """Read a text table, compressed or not, or a sheet of a workbook.

    The text of all columns is kept as it is written, or of those alone that may be
    words, names or classes: 007 is not 7. A column of labels may stand alone.
    """
    sheet = read_sheet(file)
    first, header = sheet.first, file.header
    if len(first) == 1 and not as_written:
        raise file.error("has one column and needs two or more; check its separator.")
    if len(sheet.lines) == 1:
        raise file.error("has a row of names and no numbers below it.")
    raw = sheet.numbers(1)
    if header is None:
        header = sheet.named or _first_row_is_names(
            first, raw, sheet.decimal, labels=as_written
        )
    if header is None:
        shown = ", ".join(cell.strip()[:20] for cell in first[:4])
        clause = (
            f"the first row ({shown}, ...) may hold names or a sample; say which with "
            "header=True or header=False"
        )
        sheet.doubts.append(Doubt("layout", clause, {"header": True}))
    if header is False:
        raw = sheet.numbers(0)
    else:
        raw.columns = [unescape_formula(cell.strip()) for cell in first]
    wanted = {j for j, name in enumerate(raw.names) if has_role(name, file)} | {0}
    wanted = {*range(len(first))} if as_written else wanted
    if missing := wanted - set(raw.texts):
        raw.texts |= sheet.texts(int(header is not False), missing)
    for j, cells in raw.texts.items():
        raw.texts[j] = [unescape_formula(c) if c[:1] == "'" else c for c in cells]
    raw.notes, raw.doubts = sheet.notes, sheet.doubts
    # Separators at the ends of lines make columns without names and numbers.
    kept = list(range(raw.values.shape[1]))
    for j in reversed(kept):
        unnamed = j == len(kept) - 1 if raw.columns is None else is_unnamed(raw.name(j))
        if unnamed and j not in raw.words and np.isnan(raw.values[:, j]).all():
            kept = [k for k in kept if k != j]
    return raw.select(kept) if 1 < len(kept) < raw.values.shape[1] else raw


def _first_row_is_names(
    first: Sequence[str], below: RawTable, decimal: str, *, labels: bool
) -> bool | None:
    """Tell by the columns below whether a row names them; None if both may be.

    Numbers that are labels occur again in their columns, unless a row of names counts.
    """
    cells = [cell.strip() for cell in first]
    numbers = [j for j in range(len(cells)) if j not in below.words]
    # A row of classes below the names of samples has no name of its own.
    if not cells[0] and all(cells[1:]) and all(c.strip() for c in below.text(0)[1:]):
        return True
    if labels:
        beside = cells[len({*below.text(0)}) == len(below.values) :]
        counts = ([str(i + k) for i in range(len(beside))] for k in (0, 1))
        if len(beside) > 2 and beside in counts:
            return True if len(beside) > 3 else None
    if any(cells[j] in below.texts[j] for j in below.words if cells[j]):
        return False
    if not numbers:
        return True if len(cells) > 1 or is_class_name(cells[0]) else None
    wordy = {j for j in numbers if not is_number(cells[j], decimal)}
    # Na may be sodium, above numbers.
    tops = [c for c in map(cells.__getitem__, numbers) if not is_missing(c)]
    tops = [top for top in tops if is_number(top, decimal)]
    counted = all(re.fullmatch(r"\d+", top) for top in tops)
    distinct = len(set(tops)) == len(tops)
    if wordy:
        return True if labels or (counted and distinct) else None
    if labels and any(cells[j] in below.text(j) for j in numbers):
        return False
    named = (is_id_name(cells[j]) or is_class_name(cells[j]) for j in below.words)
    if counted and distinct and any(named):
        return True
    if len(tops) < len(numbers) or not distinct or len(tops) < 2:
        return False
    row = np.array([number(top, decimal) for top in tops])
    return _is_row_of_names(row, counted, below.values[:, numbers])


def _is_row_of_names(
    row: NDArray[np.float64], counted: bool, below: NDArray[np.float64]
) -> bool | None:
    """Compare a first row of distinct numbers with the numbers below it."""
    whole = np.isnan(below) | (below == np.rint(below))
    fractions = (~whole).any(axis=0).mean() > 0.5 and not whole.all(axis=1).any()
    rising = row.size >= 4 and bool((np.diff(row) > 0.0).all())
    if rising:
        rising = bool(((np.diff(below, axis=1) > 0.0).all(axis=1)).mean() <= 0.1)
    least = np.fmin.reduce(below, axis=0, initial=np.inf)
    greatest = np.fmax.reduce(below, axis=0, initial=-np.inf)
    outside = (row < least) | (row > greatest)
    far = len(below) >= ENOUGH and bool(outside.mean() > 0.5)
    ordered = bool((np.diff(row) == 1.0).all()) and row[0] in (0.0, 1.0)
    if not counted:
        return None if rising and far and row.size >= ENOUGH else False
    if (fractions and (rising or far or ordered)) or (rising and (ordered or far)):
        return True
    return None if fractions or ordered or far else False


def read_sheet(file: TableFile) -> Sheet:
    """Return the rows of a text file or of a workbook's page, checked to be a table."""
    if ending_of(file.path)[0] == ".xlsx":
        return _read_page(file)
    # Spreadsheets leave rows of nothing but separators, and may name these first.
    lines, notes = read_lines(file, file.path)
    lines = [line for line in lines if line.strip(' \t,;|"')]
    lines = lines[bool(lines and re.fullmatch('"?sep=.*', lines[0])) :]
    if len(lines) > 2 and re.fullmatch(r"[|+]?( *:?-+:? *[|+])+( *:?-+:?)?", lines[1]):
        # A line below the names, and bars at both ends, as in Markdown.
        lines = [line.strip(" |") for line in (lines[0], *lines[2:])]
    rows = [line for line in lines if not _is_comment(line)]
    if not rows:
        raise file.error("is empty.")
    signs = max(sum(line.count(s) for line in rows[:_ROWS]) for s in _SEPARATORS)
    file.require_memory(_PER_TEXT * signs)
    separator = _find_separator(rows[:_ROWS], file.path)
    if separator == " ":
        lines = [line.replace("\t", " ").strip() for line in lines]
        rows = [line for line in lines if not _is_comment(line)]
    try:
        records, widths = _split_records(rows, separator)
    except csv.Error as error:
        raise file.error(f"is not a table: {error}.") from error
    kept, more = _find_table(records, separator, max(widths[-_ROWS:]))
    records, widths, notes = records[kept], widths[kept], notes + more
    top = records[0].partition("\n")[0]
    if marked := _look_at_comments(lines, top, separator, file):
        records, widths = [marked, *records], [widths[0], *widths]
    first, named = _split_cells(records[0], separator), bool(marked)
    if len(records) > 1 and len(first) == widths[1] - 1:
        if all(record.endswith(separator) for record in records[1:]):
            # Each row ends with a separator, but that of the names.
            records[0], first = records[0] + separator, [*first, ""]
        else:
            # write.table of R leaves out the name of the column of row names.
            first, named = ["", *first], True
            records[0] = separator.replace(" ", '"" ') + records[0]
        widths[0] += 1
    if len(set(widths)) > 1:
        odd = next(i for i, width in enumerate(widths) if width != widths[0])
        raise file.error(
            f"has {widths[0]} cells in its first row and {widths[odd]} in row "
            f"{odd + 1}; every row needs the same number."
        )
    again = records[0] in records[2:] and records[1] != records[0]
    if again and not any(map(is_number, filter(None, first))):
        # Tables that were joined have several rows of names; classes stand below them.
        others = [record for record in records[1:] if record != records[0]]
        if any(map(is_number, _split_cells(others[0], separator))):
            records = [records[0], *others]
            notes.append("the row of names stands there again and is left out")
    decimal = _find_decimal(records, separator)
    return Sheet(file, records, separator, decimal, first, named, notes=notes)


def _find_table(
    records: list[str], separator: str, width: int
) -> tuple[slice, list[str]]:
    """Find the rows between lines of one cell of text, as titles and sources have."""
    start, stop = 0, len(records)
    while start < min(_TITLES, stop - 2) and _is_lone(records[start], separator, width):
        start += 1
    # A name without numbers is a sample of missing values, unless none has a name.
    named = not is_number(_split_cells(records[(start + stop) // 2], separator)[0])
    while stop > max(start + 2, len(records) - _TITLES) and _is_lone(
        records[stop - 1], separator, width, short=named
    ):
        stop -= 1
    notes = [
        f"what stands {where} the table is left out ({title!r})"
        for where, part in (("above", records[:start]), ("below", records[stop:]))
        for title in [record.strip(f'{separator}" ')[:40] for record in part[:1]]
    ]
    return slice(start, stop), notes


def _is_lone(record: str, separator: str, width: int, *, short: bool = False) -> bool:
    """Tell whether a row of a wider table has one cell, or one that is filled."""
    cells = _split_cells(record, separator)
    words = [cell for cell in cells if cell.strip()]
    lone = len(cells if short else words) == 1 and not is_number(words[0])
    return width > 2 and lone


def read_lines(file: TableFile, path: Path) -> tuple[list[str], list[str]]:
    """Return the lines of a text file, whichever system wrote it, and notes on it.

    Signs of text that may end lines too are left alone.
    """
    content = read_bytes(file, path, copies=_COPIES)
    n_lines = content.count(b"\n") + content.count(b"\r") + 1
    notes = []
    try:
        wide = content[:2] in (b"\xff\xfe", b"\xfe\xff")
        text = content.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", "replace")
        notes.append("the file is not UTF-8 and is read as Windows-1252, as Latin-1")
    if "\x00" in text:
        raise file.damage("a text table")
    file.require_memory(2 * sys.getsizeof(text) + _PER_LINE * n_lines)
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), notes


def _is_comment(line: str) -> bool:
    mark = line[:1] in ("#", "%", "!")
    return mark and not re.match(r"#(N/A|DIV|VALUE|REF|NUM|NAME|NULL)", line, re.I)


def _look_at_comments(
    lines: list[str], first: str, separator: str, file: TableFile
) -> str:
    """Return the last comment before the rows, if it is their row of names.

    One below the first row that may well be a sample is refused.
    """
    cells, start = _split_cells(first, separator), lines.index(first)
    for comment in filter(_is_comment, lines[start:]):
        found = _split_cells(comment, separator)
        if len(found) == len(cells) and any(is_number(c) for c in found[1:] if c):
            clause = (
                f"the row of {found[0][:60]!r} begins like a comment and has as many "
                "cells as the others; put quotation marks around its name if it is a "
                "sample, else delete the row"
            )
            raise ambiguity(file, [clause])
    above = ["", *filter(_is_comment, lines[:start])][-1].lstrip("#%!").strip(" ")
    fits = 1 < len(cells) == len(_split_cells(above, separator))
    return above if fits and any(map(is_number, cells)) else ""


def _split_cells(line: str, separator: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=separator, skipinitialspace=True))
    except (csv.Error, StopIteration):
        return [line]


def _find_separator(lines: list[str], path: Path) -> str:
    """Return the sign that cuts the rows into the most numbers, evenly.

    If none does it is a comma, a semicolon or a tabulator, whichever is usual.
    """
    best, found = (False, 0.0), ""
    spaced = [line.replace("\t", " ") for line in lines]
    for some, separator in product((lines, spaced), _SEPARATORS):
        if found and some is spaced:
            break
        try:
            records, _ = _split_records([line.strip(" ") for line in some], separator)
        except csv.Error:
            continue
        if 2 < len(records) < len(lines) == _ROWS:
            records.pop()  # it may go on
        rows = [_split_cells(record, separator) for record in records]
        widths = [len(row) for row in rows[1:] or rows]
        width = max(set(widths), key=widths.count)
        # Titles above the rows, and notes below them, have one cell.
        uneven = any(each not in (1, width) for each in widths[1:])
        uneven |= len(rows[0]) not in (1, width, width - 1)
        if width == 1 or uneven or widths.count(width) < _EVEN * len(widths):
            continue
        cells = _thin_out([row for row in rows[1:] or rows if len(row) == width])
        share = sum(is_number(c) or is_number(c, ",") for c in cells) / len(cells)
        score = len(rows[0]) > 1, round(share, 9)
        if not found or score > best:
            best, found = score, separator
    if not found and path.suffix.lower() != ".csv" and "\t" in lines[0]:
        return "\t"
    return found or max("\t,;", key=lines[0].count)


def _thin_out(rows: list[list[str]]) -> list[str]:
    """Return cells from everywhere; an odd step meets all columns of most tables."""
    cells = [cell for row in rows for cell in row]
    return cells[:: len(cells) // _CELLS | 1]


def _find_decimal(lines: list[str], separator: str) -> str:
    """Return the sign with which more cells are numbers, the point if both do."""
    some = lines[1 : _ROWS + 1]
    if separator == "," and not any('"' in line for line in some):
        return "."
    cells = _thin_out([_split_cells(line, separator) for line in some])
    points, commas = (
        sum(is_number(c, sign) or plain_numbers([c], sign) is not None for c in cells)
        for sign in ".,"
    )
    return "," if commas > points else "."


def _split_records(lines: list[str], separator: str) -> tuple[list[str], list[int]]:
    """Return the rows as text, and how many cells each has."""
    if separator != " " and not any('"' in line for line in lines):
        return lines, [line.count(separator) + 1 for line in lines]
    rows = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    records: list[str] = []
    widths, start = [], 0
    for row in rows:
        # A quoted cell may go on in the next line.
        records.append("\n".join(lines[start : rows.line_num]))
        widths.append(len(row))
        start = rows.line_num
    return records, widths


def pandas() -> Any:
    """Return pandas, or say how to install it."""
    return import_optional(
        "pandas", needed_for="reading text tables", install="mdec[data]"
    )


def _read_page(file: TableFile) -> Sheet:
    """Return the rows of a page of a workbook, the one that holds a table."""
    openpyxl = import_optional(
        "openpyxl", needed_for="reading .xlsx files", install="mdec[data]"
    )
    with file.parsing("an .xlsx workbook"):
        with ZipFile(file.path) as archive:
            n_bytes = sum(each.file_size for each in archive.infolist())
        file.take(n_bytes, copies=_XML_COPIES)
        # From memory, so that the file is closed whatever happens.
        content = io.BytesIO(file.path.read_bytes())
        book = openpyxl.load_workbook(content, read_only=True, data_only=True)
        titles, name = [page.title for page in book.worksheets], file.variable
        if name and name not in titles:
            raise file.unknown_name("sheet", name, titles)
        asked = [name] if name else titles
        pages = {title: _read_rows(book[title], file) for title in asked}
    most = max(n_numbers for _, n_numbers in pages.values())
    likely = [title for title in asked if pages[title][1] > _FEW_NUMBERS * most]
    best = likely[0] if likely else max(asked, key=lambda t: len(pages[t][0].lines))
    found, listed = pages[best][0], list_names(titles, 20)
    if len(found.lines) < 2:
        raise file.error("has no rows of numbers in that sheet.")
    if len(likely) > 1:
        clause = (
            f"{len(likely)} of the sheets {listed} hold tables; say which with "
            f"variable={best!r}"
        )
        found.doubts.append(Doubt("layout", clause, {"variable": best}))
    if len(titles) > 1:
        found.notes.insert(0, f"the file has the sheets {listed}, and {best!r} is read")
    return found


def _read_rows(page: Any, file: TableFile) -> tuple[Sheet, int]:
    """Return the rows of a page without those above its table, and how many numbers."""
    # Pages may claim more rows and columns than they have.
    page.reset_dimensions()
    lines: list[str] = []
    widths: list[int] = []
    n_numbers = 0
    for row in page.iter_rows(values_only=True):
        cells = [as_text(value) for value in row]
        if not any(cell.strip() for cell in cells):
            continue
        # A text may stand in many cells and is in the file but once.
        file.take(sum(len(cell) + 1 for cell in cells), copies=0)
        n_numbers += sum(type(value) in (int, float) for value in row)
        cells = [c.replace('"', '""') for c in cells]
        cells = [f'"{c}"' if re.search('[\t"\n\r]', c) else c for c in cells]
        lines.append("\t".join(cells))
        widths.append(len(cells))
    width = max(widths, default=0)
    file.take(8 * width * len(lines))
    lines = [a + "\t" * (width - n) for a, n in zip(lines, widths, strict=True)]
    kept, notes = _find_table(lines, "\t", width) if lines else (slice(0), [])
    lines, first = lines[kept], _split_cells("".join(lines[kept][:1]), "\t")
    decimal = _find_decimal(lines, "\t")
    return Sheet(file, lines, "\t", decimal, first, notes=notes), n_numbers


def read_gct(file: TableFile) -> RawTable:
    """Read a .gct table, version 1.2 or 1.3, compressed or not; genes become columns.

    Of the descriptions of samples in version 1.3 only the known classes are kept.
    """
    lines = [line for line in read_lines(file, file.path)[0] if line.strip()]
    version, sizes = (lines[0].strip(), lines[1].split()) if lines[2:] else ("", [])
    needed = {"#1.2": 2, "#1.3": 4}.get(version)
    if len(sizes) != needed or not all(re.fullmatch("[0-9]+", n) for n in sizes):
        raise file.damage("a .gct table of version 1.2 or 1.3")
    n_rows, n_samples, beside, above = (int(n) for n in [*sizes, "1", "0"][:4])
    width, head = 1 + beside + n_samples, 3 + above
    uneven = any(line.count("\t") != width - 1 for line in lines[2:])
    if uneven or len(lines) != head + n_rows:
        raise file.damage(f"a .gct table of the {' x '.join(sizes)} that it claims")
    first = [cell.strip() for cell in lines[2].split("\t")]
    rows = [lines[2], *lines[head:]]
    sheet = Sheet(file, rows, "\t", ".", first, named=True, quoted=False)
    raw = sheet.numbers(1)
    raw.columns, genes = first, [cell.strip() for cell in sheet.texts(1, [0])[0]]
    table = raw.select(list(range(1 + beside, width))).transpose(genes, file)
    for cells in (line.split("\t") for line in lines[3:head]):
        if cells[0] == file.label_column:
            table.labels = cells[1 + beside :]
    table.settled = True
    return table
