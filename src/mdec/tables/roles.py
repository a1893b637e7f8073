"""Which columns are names, features and classes: decided here for every format.

So the same table is read in the same way from each. What looks like an identifier or a
class becomes a feature only on request.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mdec.tables.budget import ReadBudget, TableError
from mdec.tables.columns import (
    RawTable,
    TableOptions,
    few_codes,
    is_class_name,
    is_id_name,
    is_number,
    is_whole,
    looks_like,
    never_repeating,
)
from mdec.tables.words import (
    MISSING_CLASS,
    category_values,
    kind_of_words,
    parse_dates,
)

# What may be done with columns of categories and of dates.
CATEGORIES = ("encode", "annotate")
DATES = ("number", "annotate")

# What takes a column away from the features.
_ROLES = {"drop", "id_column", "label_column"}

# Doubts that are listed one by one.
_MOST_DOUBTS = 12


class AmbiguousTableError(TableError):
    """A table that may be meant in several ways; the message names the parameters.

    Attributes
    ----------
    findings : str
        The message without the parameters in its last line.
    cure : dict
        Parameters of `read_table` with which the table is read.
    reading : dict or None
        What was read so far, for those who want to look.
    """

    def __init__(self, message: str, cure: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.findings = message
        self.cure = dict(cure or {})
        self.reading: dict[str, Any] | None = None


class Doubt(NamedTuple):
    """What stands in the way of reading a table: what to say of it, and what to do.

    The cure has parameters of `read_table`.
    """

    kind: str
    clause: str
    cure: Mapping[str, Any]


@dataclass
class Roles:
    """What each column is.

    Attributes
    ----------
    names : list of str
        Names of all columns, their numbers from 1 where the file has none.
    features : list of int
        Columns to cluster.
    ids, classes : int or None
        Columns of the samples' names and of known classes.
    dropped : list of int
        Columns left out.
    encoded : dict of int to list of str
        Columns of categories that become features, and their values.
    doubts : list of Doubt
        What may be meant in several ways.
    notes : list of str
        What is odd, and was read all the same.
    """

    names: list[str]
    features: list[int] = field(default_factory=list)
    ids: int | None = None
    classes: int | None = None
    dropped: list[int] = field(default_factory=list)
    encoded: dict[int, list[str]] = field(default_factory=dict)
    doubts: list[Doubt] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def find_roles(raw: RawTable, options: TableOptions, budget: ReadBudget) -> Roles:
    """Give each column its role.

    Parameters
    ----------
    raw : RawTable
        Samples in rows.
    options : TableOptions
        What the user says.
    budget : ReadBudget
        Names the file in messages.

    Returns
    -------
    Roles
        With doubts, which the caller raises or shows.
    """
    _check_shape(raw, budget)
    roles = Roles(raw.names)
    if options.label_column is not None and raw.labels is None:
        roles.classes = find_column(roles.names, options.label_column, budget)
    left = leave_out(roles, options, budget)
    if options.known is not None and raw.columns is not None:
        return _take_known_features(raw, options, roles, left, budget)
    if options.index and left and roles.ids is None:
        roles.ids = left[0]
    elif options.index is None and roles.ids is None and raw.samples is None:
        roles.ids = _find_names(raw, left, repeat=options.transpose)
    left = _take_words(raw, roles, [j for j in left if j != roles.ids], options, budget)
    asked: set[int] = set()
    if options.features:
        asked = _match_columns(roles.names, options.features, budget)
        exact = {j for j in asked if roles.names[j] in options.features}
        if options.id_column is None and roles.ids in exact:
            left, roles.ids = sorted({*left, *exact} - {roles.classes}), None
        words = raw.words - exact
        chosen = [j for j in left if j in asked and j not in words]
        roles.dropped += [j for j in left if j not in chosen]
        roles.encoded = {j: roles.encoded[j] for j in roles.encoded if j in asked}
        left = chosen
    roles.features = left
    if options.index is False and 0 in left:
        asked.add(0)
    sure = asked | set(left) - raw.words if raw.settled else asked
    _note_doubts(raw, roles, [j for j in left if j not in sure])
    return roles


def _take_words(
    raw: RawTable,
    roles: Roles,
    columns: list[int],
    options: TableOptions,
    budget: ReadBudget,
) -> list[int]:
    """Encode or set aside categories and dates as asked; return the other columns."""
    coded = _match_columns(roles.names, options.category_columns, budget)
    left = []
    for j in columns:
        kind = kind_of_words(raw.text(j)) if j in raw.words else ""
        if kind == "dates" and options.dates == "number":
            _read_days(raw, j)
        as_category = j in coded or (kind == "categories" and options.categories)
        if as_category and options.categories != "annotate":
            roles.encoded[j] = category_values(raw.text(j))
        elif as_category or (kind == "dates" and options.dates == "annotate"):
            roles.dropped.append(j)
        else:
            left.append(j)
    return left


def _read_days(raw: RawTable, column: int) -> None:
    """Make numbers of a column of dates."""
    raw.values[:, column] = parse_dates(raw.text(column))
    raw.words.discard(column)


def raise_doubts(
    roles: Roles,
    budget: ReadBudget,
    reading: dict[str, Any] | None = None,
    *,
    least_columns: int = 2,
) -> None:
    """Raise all doubts in one list, with what reads the table and what was read."""
    if not roles.doubts:
        return
    cure = _join_cures(roles)
    taken = [each for each in roles.doubts if _ROLES & each.cure.keys()]
    if len(roles.features) + len(roles.encoded) - len(taken) < least_columns:
        # Nothing would be left to cluster.
        cure = {}
    words = findings = f"{budget.name!r}: {roles.doubts[0].clause}."
    if len(roles.doubts) > 1:
        lines = [f"\n- {each.clause}" for each in roles.doubts[:_MOST_DOUBTS]]
        if len(roles.doubts) > _MOST_DOUBTS:
            lines.append(f"\n- and {len(roles.doubts) - _MOST_DOUBTS} more")
        listed = ", ".join(f"{name}={value!r}" for name, value in cure.items())
        findings = f"{budget.name!r} may be meant in several ways:{''.join(lines)}"
        words = f"{findings}\nSay all at once: {listed}." if cure else findings
    error = AmbiguousTableError(words, cure)
    error.findings, error.reading = findings, reading
    raise error


def _join_cures(roles: Roles) -> dict[str, Any]:
    """Return what cures all doubts; names and classes are in one column each."""
    cure: dict[str, Any] = {}
    drop: list[str] = []
    for doubt in roles.doubts:
        for name, value in doubt.cure.items():
            if name == "drop":
                drop += value
            elif name in ("label_column", "id_column") and name in cure:
                drop.append(value)
            else:
                cure[name] = value
    return cure | ({"drop": drop} if drop else {})


def class_names(cells: Sequence[str]) -> NDArray[np.str_]:
    """Return classes as text, "" where there is none.

    Examples
    --------
    >>> class_names(["a", " NA", "", "none"]).tolist()
    ['a', '', '', 'none']
    >>> class_names(["1.0", "nan", "2.0"]).tolist()
    ['1', '', '2']
    """
    words = [cell.strip() for cell in cells]
    words = ["" if word.lower() in MISSING_CLASS else word for word in words]
    if all(re.fullmatch(r"-?\d+\.0|", word) for word in words):
        # Numbers beside missing ones, as pandas writes them.
        words = [word.removesuffix(".0") for word in words]
    return np.array(words, dtype=str)


def _check_shape(raw: RawTable, budget: ReadBudget) -> None:
    if raw.values.dtype.kind not in "fiub":
        raise budget.error(f"holds {raw.values.dtype} and not real numbers.")
    rows, columns = raw.values.shape
    for what, names, length in (
        ("rows", raw.samples, rows),
        ("columns", raw.columns, columns),
    ):
        if names is not None and len(names) != length:
            raise budget.error(
                f"has names for {len(names)} {what}, but {length} of them; transpose "
                "it if it has samples in columns."
            )


def leave_out(roles: Roles, options: TableOptions, budget: ReadBudget) -> list[int]:
    """Find the samples' names and what is left out; return the other columns."""
    if options.id_column is not None:
        roles.ids = find_column(roles.names, options.id_column, budget)
    taken = {roles.classes, roles.ids}
    roles.dropped = sorted(_match_columns(roles.names, options.drop, budget) - taken)
    return [j for j in range(len(roles.names)) if j not in {*taken, *roles.dropped}]


def _take_known_features(
    raw: RawTable,
    options: TableOptions,
    roles: Roles,
    left: list[int],
    budget: ReadBudget,
) -> Roles:
    """Take the features of a model in its order, and the samples' names beside them."""
    known = options.known or ()
    places = {roles.names[j]: j for j in left}
    missing = [name for name in known if name not in places]
    if missing:
        listed = ", ".join(repr(name[:60]) for name in missing[:5])
        more = ", ..." if len(missing) > 5 else ""
        raise budget.error(
            f"lacks {len(missing)} of the model's {len(known)} features: "
            f"{listed}{more}; give a table that has them (with transpose=True if they "
            "are in its rows), under the names that the model was fitted with."
        )
    wanted = set(known)
    twice = [j for j in left if roles.names[j] in wanted and places[roles.names[j]] > j]
    if twice:
        raise budget.error(
            f"has more than one column {roles.names[twice[0]][:60]!r}; give each its "
            "own name."
        )
    others = [j for j in left if roles.names[j] not in wanted]
    if roles.ids is None and raw.samples is None and options.index is not False:
        roles.ids = _find_names(raw, others)
    columns = {name: places[name] for name in known}
    roles.encoded = {columns[n]: list(each) for n, each in options.encoding.items()}
    roles.features = [j for j in columns.values() if j not in roles.encoded]
    roles.dropped += [j for j in others if j != roles.ids]
    for j in roles.features:
        if j in raw.words and kind_of_words(raw.text(j)) == "dates":
            _read_days(raw, j)
        elif j in raw.words:
            clause = _describe_mixed(raw, roles, j)[0].partition(";")[0]
            roles.doubts.append(Doubt("words", f"{clause}; correct it", {}))
    return roles


def find_column(names: list[str], name: str, budget: ReadBudget) -> int:
    """Return the place of a column, or raise unless there is one of that name."""
    if name not in names:
        raise budget.unknown_name("column", name, names)
    if names.count(name) > 1:
        raise budget.error(
            f"has {names.count(name)} columns {name!r}; give each its own name."
        )
    return names.index(name)


def _match_columns(
    names: list[str], patterns: tuple[str, ...], budget: ReadBudget
) -> set[int]:
    found: set[int] = set()
    for pattern in patterns:
        # A name may itself contain characters that patterns use.
        match = {
            j
            for j, name in enumerate(names)
            if name == pattern or fnmatchcase(name, pattern)
        }
        if not match:
            raise budget.unknown_name("column", pattern, names)
        found |= match
    return found


def _find_names(raw: RawTable, left: list[int], *, repeat: bool = False) -> int | None:
    """Return the column of the samples' names, if one is plainly that."""
    if left and left[0] in raw.words:
        first = left[0]
        named = raw.columns is not None and is_id_name(raw.columns[first])
        return first if repeat or named or _all_differ(raw, first) else None
    if not left or raw.columns is None:
        return None
    likely = [j for j in left if is_id_name(raw.columns[j]) and _all_differ(raw, j)]
    return likely[0] if left[0] in likely or len(likely) == 1 else None


def _all_differ(raw: RawTable, column: int) -> bool:
    if column not in raw.words and not is_whole(raw.values[:, column]):
        return False
    cells = raw.text(column)
    return len(set(cells)) == len(cells)


def _note_doubts(raw: RawTable, roles: Roles, columns: list[int]) -> None:
    """Write down what is hardly a feature, and how to say what it is."""
    rest = [j for j in columns if j not in raw.words]
    texts = {j: kind_of_words(raw.text(j)) for j in columns if j in raw.words}
    for j in columns:
        kind = texts.get(j) or looks_like(raw, roles.names[j], j, rest)
        if kind == "text" and any(is_number(c) for c in raw.text(j) if c.strip()):
            kind = "mixed"
        if kind == "categories" and _may_be_classes(raw, roles, j, texts):
            kind = "classes"
        if kind:
            roles.doubts.append(Doubt(kind, *_DESCRIPTIONS[kind](raw, roles, j)))
    if unusual := never_repeating(raw, rest):
        listed = ", ".join(repr(roles.names[j][:40]) for j in unusual[:3])
        roles.notes.append(f"whole numbers that never repeat: {listed}")
    if codes := few_codes(raw, rest):
        listed = ", ".join(repr(roles.names[j][:40]) for j in codes[:3])
        roles.notes.append(
            f"a few whole numbers, taken as amounts: {listed}; if they are codes, say "
            f"category_columns=[{roles.names[codes[0]]!r}]"
        )
    for j in sorted(raw.thousands.intersection(roles.features))[:3]:
        cell = next(cell for cell in raw.text(j) if re.search("[.,]", cell))
        roles.notes.append(f"thousands are separated in {roles.names[j]!r} ({cell})")


def _may_be_classes(
    raw: RawTable, roles: Roles, column: int, texts: Mapping[int, str]
) -> bool:
    """Tell whether categories are rather known classes: by name, or alone at an end."""
    if roles.classes is not None or raw.labels is not None:
        return False
    alone = list(texts.values()).count("categories") == 1
    ends = (0, len(roles.names) - 1)
    return is_class_name(roles.names[column]) or (alone and column in ends)


def _describe_identifier(
    raw: RawTable, roles: Roles, column: int
) -> tuple[str, dict[str, Any]]:
    name, cells = roles.names[column], raw.text(column)
    free = roles.ids is None and raw.samples is None and _all_differ(raw, column)
    cure = {"id_column": name} if free else {"drop": [name]}
    return (
        f"column {name[:60]!r} ({', '.join(cells[:3])}, ...) looks like an identifier; "
        f"name the samples by it with id_column={name!r}, leave it out with "
        f"drop=[{name!r}], or cluster every column with features=['*']"
    ), cure


def _describe_classes(
    raw: RawTable, roles: Roles, column: int
) -> tuple[str, dict[str, Any]]:
    name = roles.names[column]
    free = roles.classes is None and raw.labels is None
    what = "looks like known classes"
    if column in raw.words:
        what = "holds no numbers and may be known classes"
    return (
        f"column {name[:60]!r} ({_list_values(raw, column)}) {what}; score against it "
        f"with label_column={name!r}, leave it out with drop=[{name!r}], or "
        + (
            "make features of it with categories='encode'"
            if column in raw.words
            else "cluster every column with features=['*']"
        )
    ), ({"label_column": name} if free else {"drop": [name]})


def _describe_categories(
    raw: RawTable, roles: Roles, column: int
) -> tuple[str, dict[str, Any]]:
    return (
        f"column {roles.names[column][:60]!r} ({_list_values(raw, column)}) holds "
        "categories; make features of such columns with categories='encode', or set "
        "them aside to colour the map with categories='annotate'"
    ), {"categories": "encode"}


def _describe_dates(
    raw: RawTable, roles: Roles, column: int
) -> tuple[str, dict[str, Any]]:
    shown = next(cell for cell in raw.text(column) if cell.strip())
    return (
        f"column {roles.names[column][:60]!r} ({shown[:40]}, ...) holds dates; make "
        "numbers of such columns with dates='number', or set them aside to colour the "
        "map with dates='annotate'"
    ), {"dates": "number"}


def _describe_text(
    raw: RawTable, roles: Roles, column: int
) -> tuple[str, dict[str, Any]]:
    name, cells = roles.names[column], raw.text(column)
    shown = next((cell for cell in cells if cell.strip()), "")
    words = f"column {name[:60]!r} holds no numbers but {shown[:40]!r}"
    drop = f"leave it out with drop=[{name!r}]"
    if roles.ids is None and raw.samples is None and _all_differ(raw, column):
        naming = f"name the samples by it with id_column={name!r}"
        return f"{words}; {naming}, or {drop}", {"id_column": name}
    return f"{words}; {drop}", {"drop": [name]}


def _describe_mixed(
    raw: RawTable, roles: Roles, column: int
) -> tuple[str, dict[str, Any]]:
    name, cells = roles.names[column], raw.text(column)
    wrong = [i for i, cell in enumerate(cells) if not is_number(cell)]
    if not wrong:  # a format with types may say that numbers are words
        return (
            f"column {name[:60]!r} holds numbers that are saved as words; save them as "
            f"numbers, or leave it out with drop=[{name!r}]"
        ), {"drop": [name]}
    row = wrong[0]
    sample, cell = name_row(raw, roles, row), cells[row].strip()[:40]
    return (
        f"sample {sample!r}, column {name[:60]!r}: {cell!r} is not a number; correct "
        f"it, or leave the column out with drop=[{name!r}]"
    ), {"drop": [name]}


def name_row(raw: RawTable, roles: Roles, row: int) -> str:
    """Return the name of a sample, its number from 1 where it has none."""
    samples = raw.samples if roles.ids is None else raw.text(roles.ids)
    return str(row + 1) if samples is None else str(samples[row])[:60]


def _list_values(raw: RawTable, column: int) -> str:
    """Return how many different values a column has, and the first of them."""
    found = category_values(raw.text(column))
    first = ", ".join(each[:40] for each in found[:3])
    return f"{len(found)} values: {first}{', ...' if len(found) > 3 else ''}"


# What each kind of doubt says of a column of a table, and its cure.
_DESCRIPTIONS = {
    "identifier": _describe_identifier,
    "classes": _describe_classes,
    "categories": _describe_categories,
    "dates": _describe_dates,
    "text": _describe_text,
    "mixed": _describe_mixed,
}
