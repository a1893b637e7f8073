"""Which columns are names, features and classes: decided here for every format.

So the same table is read in the same way from each. What looks like an identifier or a
class becomes a feature only on request.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from mdec.preparation.kinds import MIN_FEATURES
from mdec.tables.budget import ReadBudget, TableError, list_names
from mdec.tables.columns import (
    MISSING_CLASS,
    Doubt,
    RawTable,
    TableOptions,
    as_text,
    category_values,
    few_codes,
    find_day_codes,
    find_sentinel,
    is_class_name,
    is_id_name,
    is_number,
    is_unnamed,
    is_whole,
    kind_of_words,
    looks_like,
    never_repeating,
    parse_dates,
)

# What may be done with columns of categories and of dates.
CATEGORIES = ("encode", "annotate")
DATES = ("number", "annotate")

# Doubts that are listed one by one.
_MOST_DOUBTS = 12

# How often doubts may come up once others are cured.
_ATTEMPTS = 5


class AmbiguousTableError(TableError):
    """A table that may be meant in several ways; the message names the parameters.

    Attributes
    ----------
    findings : str
        The message without the parameters in its last line.
    cure : dict
        Parameters of `read_table` with which the table is read; those that are lists
        are added to the ones that are given.
    reading : dict or None
        What was read so far, for those who want to look.
    """

    def __init__(self, message: str, cure: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.findings = message
        self.cure = dict(cure or {})
        self.reading: dict[str, Any] | None = None


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
    """

    names: list[str]
    features: list[int] = field(default_factory=list)
    ids: int | None = None
    classes: int | None = None
    dropped: list[int] = field(default_factory=list)
    encoded: dict[int, list[str]] = field(default_factory=dict)


def find_roles(raw: RawTable, options: TableOptions, budget: ReadBudget) -> Roles:
    """Give each column its role; doubts and notes are added to the table's.

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
        Of all columns.
    """
    _check_shape(raw, budget)
    roles = Roles(raw.names)
    raw.words |= set() if raw.settled else find_day_codes(raw)
    if options.label_column is not None and raw.labels is None:
        roles.classes = find_column(roles.names, options.label_column, budget)
    left = leave_out(roles, options, budget)
    if options.known_features is not None and raw.columns is not None:
        return _take_known_features(raw, options, roles, left, budget)
    if options.index and left and roles.ids is None:
        roles.ids = left[0]
    elif options.index is None and roles.ids is None and raw.samples is None:
        roles.ids = _find_names(raw, left, repeat=bool(options.transpose))
    words = set(raw.words)
    left = _take_words(raw, roles, [j for j in left if j != roles.ids], options, budget)
    # Words that became numbers, as dates do, are what the user says.
    asked = words - raw.words
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
    if roles.ids is not None and not (options.id_column or options.transpose):
        _note_repeats(raw, roles, roles.ids)
    if options.index is False:
        asked.add(0)
    sure = (asked | set(left) if raw.settled else asked) - raw.words
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
        asked = options.dates == "number" or roles.names[j] in options.features
        if kind == "dates" and asked:
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
    raw.values = raw.values.copy()  # others may hold the same array
    raw.values[:, column] = parse_dates(raw.text(column))
    raw.words.discard(column)


def raise_doubts(
    doubts: Sequence[Doubt],
    budget: ReadBudget,
    cure: Mapping[str, Any],
    reading: dict[str, Any] | None = None,
) -> NoReturn:
    """Raise all doubts in one list, with what reads the table and what was read."""
    findings = f"{budget.name!r}: {doubts[0].clause}."
    if len(doubts) > 1:
        lines = [f"\n- {each.clause}" for each in doubts[:_MOST_DOUBTS]]
        if len(doubts) > _MOST_DOUBTS:
            lines.append(f"\n- and {len(doubts) - _MOST_DOUBTS} more")
        findings = f"{budget.name!r} may be meant in several ways:{''.join(lines)}"
    words = findings
    if len(doubts) > 1 and cure:
        listed = ", ".join(f"{name}={value!r}" for name, value in cure.items())
        words = f"{findings}\nSay all at once: {listed}."
    error = AmbiguousTableError(words, cure)
    error.findings, error.reading = findings, reading
    raise error


def find_cure(
    doubts: Sequence[Doubt], attempt: Callable[[dict[str, Any]], Sequence[Doubt]]
) -> tuple[list[Doubt], dict[str, Any]]:
    """Return what cures all doubts, tried out, and those that come up on the way.

    Parameters
    ----------
    doubts : sequence of Doubt
        What stands in the way.
    attempt : callable
        Reads the table with some parameters and returns the doubts that are left, or
        raises a `TableError`.

    Returns
    -------
    doubts : list of Doubt
        The same, and those that the first ones hide.
    cure : dict
        Parameters with which the table is read; empty if there are none.
    """
    found = list(doubts)
    for keep in (False, True):
        listed = list(doubts)
        for _ in range(_ATTEMPTS):
            cure = _join_cures(listed, keep=keep)
            try:
                more = attempt(cure)
            except TableError:
                break
            if not more:
                return listed, cure
            listed += [each for each in more if each not in listed]
    return found, {}


def _join_cures(doubts: Sequence[Doubt], *, keep: bool) -> dict[str, Any]:
    """Return what cures all doubts; names and classes are in one column each.

    With `keep` what may be names or classes becomes features, where too few are left.
    """
    cure: dict[str, Any] = {}
    lists: dict[str, list[str]] = {}
    for doubt in doubts:
        parts = doubt.cure
        if keep and doubt.kind in ("identifier", "classes"):
            words = "categories='encode'" in doubt.clause
            parts = {"categories": "encode"} if words else {"features": ["*"]}
        for name, value in parts.items():
            if name in ("label_column", "id_column") and name in cure:
                lists.setdefault("drop", []).append(value)
            elif isinstance(value, list):
                listed = lists.setdefault(name, [])
                listed += [each for each in value if each not in listed]
            else:
                cure[name] = value
    return cure | lists


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
    known = options.known_features or ()
    places = {roles.names[j]: j for j in left}
    missing = [name for name in known if name not in places]
    if missing:
        raise budget.error(
            f"lacks {len(missing)} of the model's {len(known)} features: "
            f"{list_names(missing, 5)}; give a table that has them, under the names "
            "that the model was fitted with."
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
    encoding = options.encoding or {}
    roles.encoded = {columns[name]: list(each) for name, each in encoding.items()}
    roles.features = [j for j in columns.values() if j not in roles.encoded]
    roles.dropped += [j for j in others if j != roles.ids]
    for j in roles.features:
        if j in raw.words and kind_of_words(raw.text(j)) == "dates":
            _read_days(raw, j)
        elif j in raw.words:
            clause = _describe_doubt("mixed", raw, roles, j).clause.partition(";")[0]
            raw.doubt("words", f"{clause}; correct it")
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
    names: list[str], patterns: Sequence[str], budget: ReadBudget
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
    named = roles.ids is not None or raw.samples is not None
    ends = int(roles.ids == 0), len(roles.names) - 1
    texts = {j: kind_of_words(raw.text(j)) for j in columns if j in raw.words}
    for j, kind in texts.items():
        if kind == "text" and any(is_number(c) for c in raw.text(j) if c.strip()):
            texts[j] = "mixed"
    mixed = [raw.text(j) for j, kind in texts.items() if kind == "mixed"]
    odd = Counter(c.strip() for cells in mixed for c in cells if not is_number(c))
    # Words among numbers that speak of no value: they repeat, or name a limit.
    marks = {word for word, n in odd.items() if n > 1 or word[0] in "<>"}
    for j in columns:
        kind = texts.get(j) or looks_like(raw, j, rest, ends, named=named)
        if kind == "categories" and _may_be_classes(raw, roles, j, texts):
            kind = "classes"
        if kind:
            raw.doubts.append(_describe_doubt(kind, raw, roles, j, marks))
    # Of very many columns some are like that by chance.
    few = rest if len(rest) < MIN_FEATURES else []
    if unusual := [roles.names[j] for j in never_repeating(raw, few)]:
        more = f"; if they name the samples, say id_column={unusual[0]!r}"
        note = f"whole numbers that never repeat: {list_names(unusual)}"
        raw.notes.append(note if named else note + more)
    if codes := [roles.names[j] for j in few_codes(raw, few)]:
        raw.notes.append(
            f"a few whole numbers, taken as amounts: {list_names(codes)}; if they are "
            f"codes, say category_columns=[{codes[0]!r}]"
        )
    for j in sorted(raw.signs.intersection(roles.features))[:3]:
        cell = next(cell for cell in raw.text(j) if not is_number(cell))
        what = "thousands are separated in" if cell[-1:].isdigit() else "numbers of"
        more = "" if cell[-1:].isdigit() else " are read without their signs"
        raw.notes.append(f"{what} {roles.names[j]!r}{more} ({cell})")
    if (far := find_sentinel(raw, rest)) is not None:
        name, mark = roles.names[far[0]], as_text(far[1])
        raw.notes.append(
            f"{mark} lies far from the other numbers of {name!r}; if it marks missing "
            f"values, say missing=['{mark}']"
        )


def _note_repeats(raw: RawTable, roles: Roles, column: int) -> None:
    """Write down that a column that is named like an identifier names no samples."""
    name, cells = roles.names[column], [cell.strip() for cell in raw.text(column)]
    if len(set(cells)) < len(cells):
        twice = Counter(cells).most_common(1)[0][0]
        clause = (
            f"column {name[:60]!r} should name the samples and has {twice[:60]!r} more "
            f"than once; leave it out with drop=[{name!r}], or score against it with "
            f"label_column={name!r} if it holds known classes"
        )
        free = roles.classes is None and raw.labels is None
        coded = free and is_unnamed(name) and kind_of_words(cells) == "categories"
        cure: dict[str, Any] = {"label_column": name} if coded else {"drop": [name]}
        raw.doubt("repeated", clause, **cure)


def _may_be_classes(
    raw: RawTable, roles: Roles, column: int, texts: Mapping[int, str]
) -> bool:
    """Tell whether categories are rather known classes: by name, or alone at an end."""
    if roles.classes is not None or raw.labels is not None:
        return False
    alone = list(texts.values()).count("categories") == 1
    ends, name = (0, len(roles.names) - 1), roles.names[column]
    unnamed = raw.first_row > 0 and not name
    return is_class_name(name) or unnamed or (alone and column in ends)


def _describe_doubt(
    kind: str,
    raw: RawTable,
    roles: Roles,
    column: int,
    marks: Collection[str] = (),
) -> Doubt:
    """Return what is said of a column that is hardly a feature, and its cure.

    The marks are words that may stand for missing values.
    """
    name, cells = roles.names[column], raw.text(column)
    where = f"column {name[:60]!r}"
    if raw.first_row:
        where = f"row {raw.first_row + column}, {name[:60]!r},"
    free = roles.ids is None and raw.samples is None and _all_differ(raw, column)
    words, first = column in raw.words, next((c for c in cells if c.strip()), "")
    to_name = f"name the samples by it with id_column={name!r}"
    drop, every = f"leave it out with drop=[{name!r}]", "features=['*']"
    cure: dict[str, Any] = {"drop": [name]}
    behind = column + 1 in raw.words and kind_of_words(raw.text(column + 1)) == "text"
    counted = kind == "identifier" and behind and _all_differ(raw, column + 1)
    if kind in ("identifier", "text") and free and not counted:
        cure = {"id_column": name}
    if kind == "identifier":
        found = f"({', '.join(cells[:3])}, ...) looks like an identifier"
        cures = [to_name] if free else []
        cures += [drop, f"cluster every column with {every}"]
    elif kind == "classes":
        found = f"({_list_values(cells)}) looks like known classes"
        if words:
            found = f"({_list_values(cells)}) holds no numbers and may be known classes"
        if words and raw.first_row:
            where += " holds text in every column:"
            found = f"are these the classes ({_list_values(cells)})?"
        features = "make features of it with categories='encode'"
        last = features if words else f"cluster every column with {every}"
        cures = [f"score against it with label_column={name!r}", drop, last]
        if roles.classes is None and raw.labels is None:
            cure = {"label_column": name}
    elif kind in ("categories", "dates"):
        dated = kind == "dates"
        shown = f"{first[:40]}, ..." if dated else _list_values(cells)
        how, made = (DATES[0], "numbers") if dated else (CATEGORIES[0], "features")
        found, cure = f"({shown}) holds {kind}", {kind: how}
        cures = [
            f"make {made} of such columns with {kind}={how!r}",
            f"set them aside to colour the map with {kind}='annotate'",
        ]
    elif kind == "no gene":
        found, cures = "counts reads of no gene", [drop]
    elif kind == "text":
        found = f"holds no numbers but {first[:40]!r}"
        cures = [to_name, drop] if free else [drop]
    elif wrong := [i for i, cell in enumerate(cells) if not is_number(cell)]:
        where = f"sample {name_row(raw, roles, wrong[0])!r}, {where}:"
        found = f"{cells[wrong[0]].strip()[:40]!r} is not a number"
        cures = ["correct it", f"leave the column out with drop=[{name!r}]"]
        odd = list(dict.fromkeys(cells[i].strip() for i in wrong))
        if odd[:_MOST_DOUBTS] == [word for word in odd if word in marks]:
            listed = " and ".join(f"missing=[{word!r}]" for word in odd)
            cures[0] = f"fill it in with {listed} and impute='median'"
            cure = {"missing": odd, "impute": "median"}
    else:  # a format with types may say that numbers are words
        found = "holds numbers that are saved as words"
        cures = ["save them as numbers", drop]
    stop = "" if found.endswith("?") else ";"
    said = ", or ".join([", ".join(cures[:-1]), cures[-1]] if cures[1:] else cures)
    return Doubt(kind, f"{where} {found}{stop} {said}", cure)


def name_row(raw: RawTable, roles: Roles, row: int) -> str:
    """Return the name of a sample, its number from 1 where it has none."""
    samples = raw.samples if roles.ids is None else raw.text(roles.ids)
    return str(row + 1) if samples is None else str(samples[row])[:60]


def _list_values(cells: Sequence[str]) -> str:
    """Return how many different values a column has, and the first of them."""
    found = category_values(cells)
    first = ", ".join(each[:40] for each in found[:3])
    return f"{len(found)} values: {first}{', ...' if len(found) > 3 else ''}"
