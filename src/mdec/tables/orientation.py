"""Which way round a table is: genes in rows, as R has them, or samples."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

import numpy as np

from mdec.tables.budget import TableFile, list_names
from mdec.tables.cells import is_number, number
from mdec.tables.columns import RawTable, compile_words, from_texts, plain_name
from mdec.tables.roles import find_roles

_OF_FEATURES = compile_words("columns", "features")
_ABOUT_FEATURES = compile_words("columns", "about_features")
_FEATURE, _GENES, _SAMPLE, _COUNTED = (
    compile_words("rows", what, re.IGNORECASE)
    for what in ("features", "genes", "samples", "counted")
)

# Share of the names that decides, and of those with a digit that are codes.
_SHARE, _MOST_CODED = 0.5, 0.8

# Names that are looked at, of a table of very many.
_MOST_NAMES = 5000

# What is said of classes, or of units, below the names.
_TEXT_ROW = "row 2 holds text in every column"

# More rows of text than this are no classes above numbers.
_TEXT_ROWS = 10


def orient(raw: RawTable, file: TableFile) -> tuple[RawTable, TableFile]:
    """Put samples in rows, as the user says or as the names tell.

    Parameters
    ----------
    raw : RawTable
        The table as the file has it.
    file : TableFile
        What the user says; without a word on `transpose` the names are looked at.

    Returns
    -------
    raw : RawTable
        The table, with a note if its names have decided, and with doubts.
    file : TableFile
        With what the user still says of it.
    """
    raw = replace(raw, notes=[*raw.notes], doubts=[*raw.doubts])
    turn, sure, evidence = file.transpose, True, ""
    said = turn is False or file.index is not None or file.id_column is not None
    if not said and raw.samples is None and raw.columns is not None:
        raw = _name_features_first(raw)
    n_text = 0 if turn else _count_text_rows(raw)
    # Units, and names in two rows, stand above a column that is measured or counts.
    first = raw.text(0)[n_text:] if n_text and raw.samples is None else []
    units = bool(first) and [str(i) for i in range(len(first))] == first
    units |= any(number(cell) % 1.0 > 0.0 for cell in first if is_number(cell))
    if turn is None and not units:
        evidence, sure, asked = _find_evidence(raw, file, n_text)
        if evidence == _TEXT_ROW and n_text == 1:
            # Units differ from column to column, and the columns are few.
            below = [raw.text(j)[0].strip() for j in range(1, raw.values.shape[1])]
            words = list(filter(None, below))
            units = 2 * len(set(words)) > len(words) and len(raw.values) > len(below)
        turn = sure or asked
    if units or file.transpose is False:
        return _leave_out_rows(raw, n_text), file
    if not turn:
        note = f"if features are in rows ({evidence}), say transpose=True"
        raw.notes += [note] if evidence else []
        return raw, file
    if not sure:
        clause = (
            f"the file may have features in rows and samples in columns ({evidence}); "
            "say which with transpose=True or transpose=False"
        )
        raw.doubt("orientation", clause, transpose=True)
    elif evidence:
        note = (
            f"the file is read with features in rows and samples in columns "
            f"({evidence}); if its rows are samples, say transpose=False"
        )
        raw.notes.insert(0, note)
    return _turn(raw, file)


def _name_features_first(raw: RawTable) -> RawTable:
    """Put the names of features before columns of words that describe them."""
    named = 0 not in raw.words or _OF_FEATURES.fullmatch(plain_name(raw.name(0)))
    for j in [] if named else sorted(raw.words)[:_TEXT_ROWS]:
        cells = [cell.strip() for cell in raw.text(j)]
        if _differ(cells) and _are_features(cells):
            rest = [k for k in range(raw.values.shape[1]) if k != j]
            return raw.select([j, *rest]) if j else raw
    return raw


def _leave_out_rows(raw: RawTable, n_rows: int) -> RawTable:
    """Leave out the first rows, of text, so that the numbers below can be read."""
    if not n_rows:
        return raw
    cells = [raw.text(j) for j in range(raw.values.shape[1])]
    below = [column[0].strip() for column in cells]
    columns = raw.columns
    note = f"row 2 holds text in every column ({list_names(below, 2)}) and is left out"
    joint, top = [], ""
    for name, more in zip(raw.columns or (), below, strict=False):
        # A name of several columns may stand above the first of them alone.
        top = name or top
        joint.append(f"{top} {more}".strip())
    if joint and _differ(joint) and not _differ(raw.names):
        columns, note = joint, "the first two rows together name the columns"
    left = from_texts([column[n_rows:] for column in cells], columns)
    left.notes, left.doubts = [*raw.notes, note], raw.doubts
    left.samples = None if raw.samples is None else raw.samples[n_rows:]
    return left


def _find_evidence(
    raw: RawTable, file: TableFile, n_text: int
) -> tuple[str, bool, bool]:
    """Return what speaks for features in rows; whether it is sure, or to be asked for.

    Names that the user gives of columns, or of rows, decide alone; `n_text` rows hold
    text in every column.
    """
    nothing = "", False, False
    if raw.settled or raw.columns is None or min(raw.values.shape) < 3:
        return nothing
    head, columns, rows = "", raw.columns, list(raw.samples or ())
    if not rows:
        head, columns = columns[0], columns[1:]
        rows = [cell.strip() for cell in raw.text(0)]
    if file.known_features is not None:
        names = {*file.known_features}
        if names <= {*raw.columns} or not names <= {*rows}:
            return nothing
        return "they have the names of the model's features", True, False
    asked = [file.label_column, file.id_column, *file.features]
    asked += file.category_columns
    if any(
        fnmatchcase(n, each) or n == each for each in asked if each for n in columns
    ):
        return nothing
    if file.label_column and file.label_column in rows:
        return f"one of the rows is {file.label_column!r}", True, False
    if _are_features(columns) or _share(_SAMPLE, rows) >= _SHARE:
        return nothing
    n_words = len(raw.words - ({0} if raw.samples is None else set()))
    if not n_text and len(columns) - n_words < 3:  # too few columns would be samples
        return nothing
    evidence = []
    if _OF_FEATURES.fullmatch(plain_name(head)) and _differ(rows):
        evidence.append(f"{head!r} names the rows")
    if genes := _are_features(rows[n_text:]):
        evidence.append(f"rows are {list_names(rows[n_text:], 2)}")
    by_rows, samples = bool(evidence), _share(_SAMPLE, columns) >= _SHARE
    if n_text:
        evidence.append(_TEXT_ROW)
    if like_samples := samples or _are_codes(columns):
        evidence.append(f"columns are {list_names(columns, 2)}")
    long = len(rows) > len(columns)
    sure = (by_rows and (like_samples or n_text > 0)) or (
        long and (samples or (n_text > 0 and like_samples))
    )
    found = "; ".join(evidence), sure, genes or n_text > 0
    return found if sure or by_rows or n_text else nothing


def _count_text_rows(raw: RawTable) -> int:
    """Return how many first rows hold text in every column, with numbers below."""
    places = {*range(0 if raw.samples is not None else 1, raw.values.shape[1])}
    wordy, found = raw.words & places, 0
    if len(places) < 3 or len(wordy) < len(places) / 2:
        return 0
    for cells in map(raw.text, wordy):
        wrong = [i for i, cell in enumerate(cells) if not is_number(cell)]
        if len(wrong) == len(cells):  # a description of the rows
            continue
        found = max(found, len(wrong))
        if not wrong or wrong[-1] >= min(_TEXT_ROWS, len(cells) - 2):
            return 0
    # What has no unit has no number beside the units either.
    rest = sorted(places - wordy)
    return found if np.isnan(raw.values[:found, rest]).all() else 0


def _share(pattern: re.Pattern[str], names: Sequence[str]) -> float:
    """Return the share of the names that have a form."""
    some = names[:_MOST_NAMES]
    return sum(pattern.fullmatch(each) is not None for each in some) / max(len(some), 1)


def _are_features(names: Sequence[str]) -> bool:
    """Tell whether names are those of genes, probes and the like."""
    n_known = len(set(filter(_GENES.fullmatch, names)))
    return n_known > 1 or _share(_FEATURE, names) >= _SHARE


def _are_codes(names: Sequence[str]) -> bool:
    """Tell whether names repeat, or have digits, and are not counted ones."""
    if _share(_COUNTED, names) >= _SHARE:
        return False
    coded = sum(any(map(str.isdecimal, each)) for each in names)
    return coded >= _MOST_CODED * len(names) or not _differ(names)


def _differ(names: Sequence[str]) -> bool:
    return len(set(names)) == len(names)


def _turn(raw: RawTable, file: TableFile) -> tuple[RawTable, TableFile]:
    """Exchange rows and columns; return what the options still say of the result.

    Columns in doubt are taken as their cures say.
    """
    drop = tuple(each for each in file.drop if each in raw.names)
    names_only = TableFile(file.path, True, drop=drop, index=file.index)
    bare = replace(raw, doubts=[])
    sides = find_roles(bare, names_only)
    unclear = [each.clause for each in sides.doubts if each.kind == "identifier"]
    if unclear and not sides.named:
        clause = f"{unclear[0].partition(';')[0]}; say with index=True or index=False "
        raw.doubt("index", f"{clause}whether it names the features", index=True)
        sides = find_roles(bare, replace(names_only, index=True))
    samples = []
    for j in sides.features:
        name, what = raw.name(j), ""
        if any(p.fullmatch(plain_name(name)) for p in (_OF_FEATURES, _ABOUT_FEATURES)):
            what = "describes features"
        if j in sides.words and not any(is_number(c) for c in raw.text(j) if c.strip()):
            what = "holds no numbers"
        if what:
            clause = (
                f"column {name[:60]!r} {what}, and samples are in columns; leave it "
                f"out with drop=[{name!r}]"
            )
            raw.doubt("text", clause, transpose=True, drop=[name])
        else:
            samples.append(j)
    names = sides.sample_names if sides.named else None
    sides = replace(sides, notes=raw.notes, doubts=raw.doubts)
    turned = sides.select(samples).transpose(names, file)
    label, heads = file.label_column, turned.samples
    if label not in turned.names and re.fullmatch(r"[1-9]\d{0,6}", label or ""):
        # The number of a row of the file; the first one may hold the classes.
        numbered = dict(enumerate(turned.names, turned.first_row))
        label = numbered.get(int(label or 0), label)
        if label == "1" and heads is not None:
            label, turned.labels = None, heads
    left = tuple(each for each in file.drop if each not in drop)
    rest = replace(file, transpose=False, label_column=label, drop=left, index=None)
    return turned, rest
