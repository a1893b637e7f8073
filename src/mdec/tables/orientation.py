"""Which way round a table is: genes in rows, as R has them, or samples."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

import numpy as np

from mdec.tables.budget import ReadBudget, list_names
from mdec.tables.columns import (
    RawTable,
    TableOptions,
    compile_words,
    from_texts,
    is_number,
    number,
    plain_name,
)
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


def orient(
    raw: RawTable, options: TableOptions, budget: ReadBudget
) -> tuple[RawTable, TableOptions]:
    """Put samples in rows, as the user says or as the names tell.

    Parameters
    ----------
    raw : RawTable
        The table as the file has it.
    options : TableOptions
        What the user says; without a word on `transpose` the names are looked at.
    budget : ReadBudget
        Is asked for the memory if cells have to be turned.

    Returns
    -------
    raw : RawTable
        The table, with a note if its names have decided, and with doubts.
    options : TableOptions
        What they still say of it.
    """
    turn, sure, evidence = options.transpose, True, ""
    said = turn is False or options.index is not None or options.id_column is not None
    if not said and raw.samples is None and raw.columns is not None:
        raw = _name_features_first(raw)
    n_text = 0 if turn else _count_text_rows(raw)
    # Units, and names in two rows, stand above a column that is measured or counts.
    units = n_text > 0 and raw.samples is None and _is_measured(raw.text(0)[n_text:])
    if turn is False or units:
        return _leave_out_rows(raw, n_text), options
    if turn is None:
        evidence, sure, asked = _find_evidence(raw, options, n_text)
        if evidence == _TEXT_ROW and n_text == 1 and _are_units(raw):
            return _leave_out_rows(raw, n_text), options
        turn = sure or asked
        if evidence and not turn:
            raw.notes.append(
                f"if features are in rows ({evidence}), say transpose=True"
            )
    if not turn:
        return raw, options
    if not sure:
        clause = (
            f"the file may have features in rows and samples in columns ({evidence}); "
            "say which with transpose=True or transpose=False"
        )
        raw.doubt("orientation", clause, transpose=True)
    turned, rest = _turn(raw, options, budget)
    if evidence and sure:
        note = (
            f"the file is read with features in rows and samples in columns "
            f"({evidence}); if its rows are samples, say transpose=False"
        )
        turned.notes.insert(0, note)
    return turned, rest


def _name_features_first(raw: RawTable) -> RawTable:
    """Put the names of features before columns of words that describe them."""
    named = 0 not in raw.words or _OF_FEATURES.fullmatch(plain_name(raw.name(0)))
    for j in [] if named else sorted(raw.words)[:_TEXT_ROWS]:
        cells = [cell.strip() for cell in raw.text(j)]
        if _differ(cells) and _are_features(cells):
            rest = [k for k in range(raw.values.shape[1]) if k != j]
            return raw.select([j, *rest]) if j else raw
    return raw


def _is_measured(cells: Sequence[str]) -> bool:
    """Tell whether cells are numbers that name nothing: fractions, or a count."""
    numbers = [number(cell) if is_number(cell) else 0.0 for cell in cells]
    counted = [str(i) for i in range(len(cells))] == list(cells)
    return counted or any(each % 1.0 > 0.0 for each in numbers)


def _are_units(raw: RawTable) -> bool:
    """Tell whether text below the names of a few columns is none of classes."""
    cells = [raw.text(j)[0].strip() for j in range(1, raw.values.shape[1])]
    words = [cell for cell in cells if cell]
    return len(raw.values) > len(cells) and 2 * len(set(words)) > len(words)


def _leave_out_rows(raw: RawTable, n_rows: int) -> RawTable:
    """Leave out the first rows, of text, so that the numbers below can be read."""
    if not n_rows:
        return raw
    columns = range(raw.values.shape[1])
    left = from_texts([raw.text(j)[n_rows:] for j in columns], raw.columns)
    below = [raw.text(j)[0].strip() for j in columns]
    note = f"row 2 holds text in every column ({list_names(below, 2)}) and is left out"
    joint, top = [], ""
    for name, more in zip(raw.columns or (), below, strict=False):
        # A name of several columns may stand above the first of them alone.
        top = name or top
        joint.append(f"{top} {more}".strip())
    if joint and _differ(joint) and not _differ(raw.names):
        left.columns, note = joint, "the first two rows together name the columns"
    left.notes = [*raw.notes, note]
    left.samples = None if raw.samples is None else raw.samples[n_rows:]
    return left


def _find_evidence(
    raw: RawTable, options: TableOptions, n_text: int
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
    if options.known_features is not None:
        names = {*options.known_features}
        if names <= {*raw.columns} or not names <= {*rows}:
            return nothing
        return "they have the names of the model's features", True, False
    asked = [options.label_column, options.id_column, *options.features]
    asked += options.category_columns
    pairs = [(name, each) for each in asked if each for name in columns]
    if any(name == each or fnmatchcase(name, each) for name, each in pairs):
        return nothing
    if options.label_column and options.label_column in rows:
        return f"one of the rows is {options.label_column!r}", True, False
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
    if not (sure or by_rows or n_text):
        return nothing
    return "; ".join(evidence), sure, genes or n_text > 0


def _count_text_rows(raw: RawTable) -> int:
    """Return how many first rows hold text in every column, with numbers below."""
    places = list(range(0 if raw.samples is not None else 1, raw.values.shape[1]))
    if len(places) < 3 or len(raw.words.intersection(places)) < len(places) / 2:
        return 0
    found = 0
    for j in raw.words.intersection(places):
        cells = raw.text(j)
        wrong = [i for i, cell in enumerate(cells) if not is_number(cell)]
        if len(wrong) == len(cells):  # a description of the rows
            continue
        found = max(found, len(wrong))
        if not wrong or wrong[-1] >= min(_TEXT_ROWS, len(cells) - 2):
            return 0
    # What has no unit has no number beside the units either.
    rest = [j for j in places if j not in raw.words]
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


def _turn(
    raw: RawTable, options: TableOptions, budget: ReadBudget
) -> tuple[RawTable, TableOptions]:
    """Exchange rows and columns; return what the options still say of the result.

    Columns in doubt are taken as their cures say.
    """
    drop = tuple(each for each in options.drop if each in raw.names)
    names_only = TableOptions(drop=drop, index=options.index, transpose=True)
    sides = replace(raw, doubts=[], notes=[])
    roles = find_roles(sides, names_only, budget)
    unclear = [each.clause for each in sides.doubts if each.kind == "identifier"]
    if unclear and roles.ids is None and raw.samples is None:
        clause = f"{unclear[0].partition(';')[0]}; say with index=True or index=False "
        raw.doubt("index", f"{clause}whether it names the features", index=True)
        roles = find_roles(sides, replace(names_only, index=True), budget)
    samples = []
    for j in roles.features:
        name = roles.names[j]
        word, about = plain_name(name), (_OF_FEATURES, _ABOUT_FEATURES)
        what = "describes features" if any(p.fullmatch(word) for p in about) else ""
        if j in raw.words and not any(is_number(c) for c in raw.text(j) if c.strip()):
            what = "holds no numbers"
        if what:
            clause = (
                f"column {name[:60]!r} {what}, and samples are in columns; leave it "
                f"out with drop=[{name!r}]"
            )
            raw.doubt("text", clause, transpose=True, drop=[name])
        else:
            samples.append(j)
    names = (
        raw.samples if roles.ids is None else [c.strip() for c in raw.text(roles.ids)]
    )
    turned = raw.select(samples).transpose(names, budget)
    label, heads = options.label_column, turned.samples
    if label not in turned.names and re.fullmatch(r"[1-9]\d{0,6}", label or ""):
        # The number of a row of the file; the first one may hold the classes.
        numbered = dict(enumerate(turned.names, turned.first_row))
        label = numbered.get(int(label or 0), label)
        if label == "1" and heads is not None:
            label, turned.labels = None, heads
    left = tuple(each for each in options.drop if each not in drop)
    rest = replace(options, label_column=label, drop=left, index=None, transpose=False)
    return turned, rest
