"""Tables with typed columns: Parquet by Arrow, workbooks by openpyxl."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np

from mdec._support.optional import import_optional
from mdec.tables.door import DAMAGED, Door, Refused, damaged, not_there
from mdec.tables.headers import first_row_is_names, is_class_name, is_id_name
from mdec.tables.raw import RawTable, as_text, from_texts
from mdec.tables.text import doubtful_header

# A cell of a workbook holds an object for each some bytes of its XML.
_XML_COPIES = 12


def read_parquet(path: Path, door: Door, asked: Iterable[str] = ()) -> RawTable:
    """Read a Parquet file; an index of its own names the rows.

    Parameters
    ----------
    path : Path
        The file.
    door : Door
        Weighs what its metadata claim.
    asked : iterable of str
        Columns whose text is kept.

    Returns
    -------
    RawTable
        As the file has it.
    """
    for package in ("pandas", "pyarrow"):
        import_optional(package, needed_for="reading Parquet", install="mdec[data]")
    from pyarrow import parquet
    from pyarrow.lib import ArrowException

    broken = (*DAMAGED, ArrowException)
    try:
        with path.open("rb") as source, parquet.ParquetFile(source) as file:
            header = file.metadata
            groups = [header.row_group(i) for i in range(header.num_row_groups)]
            claimed = 8 * header.num_rows * header.num_columns
            door.admit(max(claimed, sum(each.total_byte_size for each in groups)))
            frame = file.read(use_threads=False).to_pandas()
        return _from_frame(frame, frozenset(asked))
    except Refused:
        raise
    except (*broken, MemoryError) as error:
        raise damaged(door, "a Parquet file") from error


def _from_frame(frame: Any, asked: frozenset[str]) -> RawTable:
    names = [str(name) for name in frame.columns]
    values = np.full(frame.shape, np.nan)
    words, texts = set(), {}
    for place, name in enumerate(names):
        column = frame.iloc[:, place]
        if column.dtype.kind in "fiub":
            values[:, place] = column.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            words.add(place)
        role = name in asked or is_id_name(name) or is_class_name(name)
        if place in words or place == 0 or role:
            texts[place] = [as_text(value) for value in column]
    samples = None
    if type(frame.index).__name__ != "RangeIndex":
        samples = [as_text(value) for value in frame.index]
    return RawTable(values, names, words, texts, samples)


def read_xlsx(path: Path, door: Door, sheet: str, header: bool | None) -> RawTable:
    """Read a sheet of a workbook.

    Parameters
    ----------
    path : Path
        The file.
    door : Door
        Weighs what the archive claims.
    sheet : str
        Name of the sheet; "" takes the first.
    header : bool or None
        Whether the first row holds names; None looks.

    Returns
    -------
    RawTable
        As the sheet has it.
    """
    first, columns = sheet_columns(path, door, sheet)
    below = from_texts(columns, None)
    if header is None:
        header = first_row_is_names(first, below)
    if header is None:
        raise doubtful_header(door, first)
    if header:
        below.columns = [cell.strip() for cell in first]
        return below
    return from_texts([[a, *b] for a, b in zip(first, columns, strict=True)], None)


def sheet_columns(
    path: Path, door: Door, sheet: str
) -> tuple[list[str], list[list[str]]]:
    """Return the first row of a sheet and the columns below it, as text."""
    openpyxl = import_optional(
        "openpyxl", needed_for="reading .xlsx files", install="mdec[data]"
    )
    try:
        with ZipFile(path) as archive:
            claimed = sum(each.file_size for each in archive.infolist())
    except DAMAGED as error:
        raise damaged(door, "an .xlsx workbook") from error
    door.admit(claimed, copies=_XML_COPIES)
    try:
        # From memory, so that the file is closed whatever happens.
        content = io.BytesIO(path.read_bytes())
        book = openpyxl.load_workbook(content, read_only=True, data_only=True)
        if sheet and sheet not in book.sheetnames:
            raise not_there(door, "sheet", sheet, book.sheetnames)
        page = book[sheet] if sheet else book.worksheets[0]
        # Sheets may claim more rows and columns than they have.
        page.reset_dimensions()
        rows = [[as_text(v) for v in row] for row in page.iter_rows(values_only=True)]
    except Refused:
        raise
    except DAMAGED as error:
        raise damaged(door, "an .xlsx workbook") from error
    rows = [row for row in rows if any(cell.strip() for cell in row)]
    if len(rows) < 2:
        raise Refused(f"{door.name!r} has no rows of numbers in that sheet.")
    width = max(len(row) for row in rows)
    door.admit(8 * width * len(rows))
    rows = [row + [""] * (width - len(row)) for row in rows]
    return rows[0], [list(column) for column in zip(*rows[1:], strict=True)]
