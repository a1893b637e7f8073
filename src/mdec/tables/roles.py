"""Which columns are names, features and classes: decided here for every format.

So the same table is read in the same way from each. What looks like an identifier or a
class becomes a feature only on request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from mdec.preparation.kinds import MIN_FEATURES
from mdec.tables.budget import TableError, TableFile, list_names
from mdec.tables.cells import (
    as_text,
    category_values,
    is_number,
    kind_of_words,
    parse_dates,
)
from mdec.tables.columns import (
    Doubt,
    RawTable,
    few_codes,
    find_day_codes,
    find_sentinel,
    is_class_name,
    is_id_name,
    is_unnamed,
    looks_like,
    never_repeating,
)

# What may be done with columns of categories and of dates.
CATEGORIES = ("encode", "annotate")
DATES = ("number", "annotate")

# What is said of a column that is hardly a feature, and what may be done about it.
_NAME = "name the samples by it with id_column={name!r}"
_SCORE = "score against it with label_column={name!r}"
_DROP = "leave it out with drop=[{name!r}]"
_ALL = "cluster every column with features=['*']"
_ENCODE = "make features of it with categories='encode'"
_ASIDE = "set them aside to colour the map with"
_LEAVE = "leave the column out with drop=[{name!r}]"
_FILL = "fill it in with {marks} and impute='median'"
_WORDS = "holds no numbers and may be known classes"
_TEXT_ROW = "holds text in every column: are these the classes"
_WORDING: dict[str, tuple[str, ...]] = {
    "identifier": ("({start}, ...) looks like an identifier;", _NAME, _DROP, _ALL),
    "classes": ("({values}) looks like known classes;", _SCORE, _DROP, _ALL),
    "classes in words": (f"({{values}}) {_WORDS};", _SCORE, _DROP, _ENCODE),
    "classes of rows": (f"{_TEXT_ROW} ({{values}})?", _SCORE, _DROP, _ENCODE),
    "categories": (
        "({values}) holds categories;",
        "make features of such columns with categories='encode'",
        f"{_ASIDE} categories='annotate'",
    ),
    "dates": (
        "({cell}, ...) holds dates;",
        "make numbers of such columns with dates='number'",
        f"{_ASIDE} dates='annotate'",
    ),
    "no gene": ("counts reads of no gene;", _DROP),
    "text": ("holds no numbers but {cell!r};", _NAME, _DROP),
    "saved": ("holds numbers that are saved as words;", "save them as numbers", _DROP),
    "mixed": ("{odd!r} is not a number;", "correct it", _LEAVE),
    "marked": ("{odd!r} is not a number;", _FILL, _LEAVE),
}
_CHOICES = {"categories": "encode", "dates": "number"}

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

    findings: str
    cure: dict[str, Any]
    reading: dict[str, Any] | None


def ambiguity(
    file: TableFile,
    clauses: Sequence[str],
    cure: Mapping[str, Any] | None = None,
    reading: dict[str, Any] | None = None,
) -> AmbiguousTableError:
    """Return the error for all that may be meant in several ways, in one list."""
    lines = [f"\n- {clause}" for clause in clauses[:_MOST_DOUBTS]]
    if len(clauses) > _MOST_DOUBTS:
        lines.append(f"\n- and {len(clauses) - _MOST_DOUBTS} more")
    findings = words = f"{file.name!r} may be meant in several ways:{''.join(lines)}"
    if len(clauses) == 1:
        findings = words = f"{file.name!r}: {clauses[0]}."
    elif cure:
        listed = ", ".join(f"{name}={value!r}" for name, value in cure.items())
        words = f"{findings}\nSay all at once: {listed}."
    error = AmbiguousTableError(words)
    error.findings, error.cure, error.reading = findings, dict(cure or {}), reading
    return error


def find_cure(
    doubts: Sequence[Doubt], attempt: Callable[[dict[str, Any]], Sequence[Doubt]]
) -> tuple[Sequence[Doubt], dict[str, Any]]:
    """Return all doubts, with those that the first ones hide, and what cures them.

    The attempt reads the table with some parameters and returns the doubts that are
    left, or raises a `TableError`; the cure is empty if no parameters read the table.
    """
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
    return doubts, {}


def _join_cures(doubts: Sequence[Doubt], *, keep: bool) -> dict[str, Any]:
    """Return what cures all doubts; names and classes are in one column each.

    With `keep` what may be names or classes becomes features, where too few are left.
    """
    cure: dict[str, Any] = {}
    for doubt in doubts:
        parts = doubt.cure
        if keep and doubt.kind in ("identifier", "classes"):
            words = "categories='encode'" in doubt.clause
            parts = {"categories": "encode"} if words else {"features": ["*"]}
        for name, value in parts.items():
            if name in ("label_column", "id_column") and name in cure:
                name, value = "drop", [value]
            if isinstance(value, list):
                value = [*dict.fromkeys([*cure.get(name, ()), *value])]
            cure[name] = value
    # Those of columns come last.
    return dict(sorted(cure.items(), key=lambda item: isinstance(item[1], list)))


def find_roles(raw: RawTable, file: TableFile) -> RawTable:
    """Return a table of samples in rows with the role of each column.

    Doubts and notes are added to those of the table.
    """
    sides = {"rows": raw.samples, "columns": raw.columns}
    for (what, names), n in zip(sides.items(), raw.values.shape, strict=True):
        if names is not None and len(names) != n:
            raise file.error(
                f"has names for {len(names)} {what}, but {n} of them; transpose it if "
                "it has samples in columns."
            )
    words = {*raw.words} | (set() if raw.settled else find_day_codes(raw))
    raw = replace(raw, words={*words}, notes=[*raw.notes], doubts=[*raw.doubts])
    raw.encoded = {}
    if file.label_column is not None and raw.labels is None:
        raw.classes = find_column(raw, file.label_column, file)
        raw.labels = raw.text(raw.classes)
    left = leave_out(raw, file)
    if file.known_features is not None and raw.columns is not None:
        return _take_known_features(raw, left, file)
    if file.index and left and raw.ids is None:
        raw.ids = left[0]
    elif file.index is None and not raw.named:
        raw.ids = _find_names(raw, left, repeat=bool(file.transpose))
    left = _take_words(raw, [j for j in left if j != raw.ids], file)
    # Words that became numbers, as dates do, are what the user says.
    asked = words - raw.words
    if file.features:
        asked = _match_columns(raw, file.features, file)
        exact = {j for j in asked if raw.name(j) in file.features}
        if file.id_column is None and raw.ids in exact:
            left, raw.ids = sorted({*left, *exact} - {raw.classes}), None
        chosen = [j for j in left if j in asked and j not in raw.words - exact]
        raw.dropped += [j for j in left if j not in chosen]
        raw.encoded = {j: each for j, each in raw.encoded.items() if j in asked}
        left = chosen
    raw.features = left
    if raw.ids is not None and not (file.id_column or file.transpose):
        _note_repeats(raw, raw.ids)
    if file.index is False:
        asked.add(0)
    sure = (asked | set(left) if raw.settled else asked) - raw.words
    _note_doubts(raw, [j for j in left if j not in sure])
    return raw


def leave_out(raw: RawTable, file: TableFile) -> list[int]:
    """Find the samples' names and what is left out; return the other columns."""
    if file.id_column is not None:
        raw.ids = find_column(raw, file.id_column, file)
    taken = {raw.classes, raw.ids}
    raw.dropped = sorted(_match_columns(raw, file.drop, file) - taken)
    taken.update(raw.dropped)
    return [j for j in range(raw.values.shape[1]) if j not in taken]


def find_column(raw: RawTable, name: str, file: TableFile) -> int:
    """Return the place of a column, or raise unless there is one of that name."""
    names = raw.names
    if name not in names:
        raise file.unknown_name("column", name, names)
    if names.count(name) > 1:
        raise file.error(
            f"has {names.count(name)} columns {name!r}; give each its own name."
        )
    return names.index(name)


def _match_columns(raw: RawTable, patterns: Sequence[str], file: TableFile) -> set[int]:
    found: set[int] = set()
    for pattern in patterns:
        # A name may itself contain characters that patterns use.
        names = enumerate(raw.names)
        match = {j for j, n in names if pattern == n or fnmatchcase(n, pattern)}
        if not match:
            raise file.unknown_name("column", pattern, raw.names)
        found |= match
    return found


def _find_names(raw: RawTable, left: list[int], *, repeat: bool = False) -> int | None:
    """Return the column of the samples' names, if one is plainly that."""
    if left and left[0] in raw.words:
        named = raw.columns is not None and is_id_name(raw.name(left[0]))
        return left[0] if repeat or named or raw.all_differ(left[0]) else None
    if not left or raw.columns is None:
        return None
    likely = [j for j in left if is_id_name(raw.name(j)) and raw.all_differ(j)]
    return likely[0] if left[0] in likely or len(likely) == 1 else None


def _take_words(raw: RawTable, columns: list[int], file: TableFile) -> list[int]:
    """Encode or set aside categories and dates as asked; return the other columns."""
    coded = _match_columns(raw, file.category_columns, file)
    left = []
    for j in columns:
        kind = kind_of_words(raw.text(j)) if j in raw.words else ""
        asked = file.dates == "number" or raw.name(j) in file.features
        if kind == "dates" and asked:
            _read_days(raw, j)
        as_category = j in coded or (kind == "categories" and file.categories)
        if as_category and file.categories != "annotate":
            raw.encoded[j] = category_values(raw.text(j))
        elif as_category or (kind == "dates" and file.dates == "annotate"):
            raw.dropped.append(j)
        else:
            left.append(j)
    return left


def _read_days(raw: RawTable, column: int) -> None:
    """Make numbers of a column of dates."""
    raw.values = raw.values.copy()  # others may hold the same array
    raw.values[:, column] = parse_dates(raw.text(column))
    raw.words.discard(column)


def _take_known_features(raw: RawTable, left: list[int], file: TableFile) -> RawTable:
    """Take the features of a model in its order, and the samples' names beside them."""
    known = file.known_features or ()
    places = {raw.name(j): j for j in left}
    if missing := [name for name in known if name not in places]:
        raise file.error(
            f"lacks {len(missing)} of the model's {len(known)} features: "
            f"{list_names(missing, 5)}; give a table that has them, under the names "
            "that the model was fitted with."
        )
    wanted = {name: places[name] for name in known}
    others = [j for j in left if raw.name(j) not in wanted]
    if twice := [j for j in left if wanted.get(raw.name(j), j) != j]:
        raise file.error(
            f"has more than one column {raw.name(twice[0])[:60]!r}; give each its own "
            "name."
        )
    if not raw.named and file.index is not False:
        raw.ids = _find_names(raw, others)
    encoding = file.encoding or {}
    raw.encoded = {wanted[name]: list(values) for name, values in encoding.items()}
    raw.features = [j for j in wanted.values() if j not in raw.encoded]
    raw.dropped += [j for j in others if j != raw.ids]
    for j in [j for j in raw.features if j in raw.words]:
        if kind_of_words(raw.text(j)) == "dates":
            _read_days(raw, j)
        else:
            clause = _describe_doubt("mixed", raw, j).clause.partition(";")[0]
            raw.doubt("words", f"{clause}; correct it")
    return raw


def _note_repeats(raw: RawTable, column: int) -> None:
    """Write down that a column that is named like an identifier names no samples."""
    name, cells = raw.name(column), raw.sample_names
    if len(set(cells)) < len(cells):
        twice = Counter(cells).most_common(1)[0][0]
        clause = (
            f"column {name[:60]!r} should name the samples and has {twice[:60]!r} more "
            f"than once; leave it out with drop=[{name!r}], or score against it with "
            f"label_column={name!r} if it holds known classes"
        )
        coded = (
            raw.labels is None
            and is_unnamed(name)
            and kind_of_words(cells) == "categories"
        )
        cure: dict[str, Any] = {"label_column": name} if coded else {"drop": [name]}
        raw.doubt("repeated", clause, **cure)


def _note_doubts(raw: RawTable, columns: list[int]) -> None:
    """Write down what is hardly a feature, and how to say what it is."""
    rest = [j for j in columns if j not in raw.words]
    texts = {j: kind_of_words(raw.text(j)) for j in columns if j in raw.words}
    mixed = [raw.text(j) for j, kind in texts.items() if kind == "mixed"]
    odd = Counter(c.strip() for cells in mixed for c in cells if not is_number(c))
    # Words among numbers that speak of no value: they repeat, or name a limit.
    marks = {word for word, n in odd.items() if n > 1 or word[0] in "<>"}
    alone = list(texts.values()).count("categories") == 1
    ends = 0, raw.values.shape[1] - 1
    for j in columns:
        kind = texts.get(j) or looks_like(raw, j, rest)
        if kind == "categories" and raw.labels is None:
            # They may be known classes: by name, or alone at an end.
            unnamed = raw.first_row > 0 and not raw.name(j)
            likely = is_class_name(raw.name(j)) or unnamed or (alone and j in ends)
            kind = "classes" if likely else kind
        if kind:
            raw.doubts.append(_describe_doubt(kind, raw, j, marks))
    # Of very many columns some are like that by chance.
    few = rest if len(rest) < MIN_FEATURES else []
    if unusual := [raw.name(j) for j in never_repeating(raw, few)]:
        more = f"; if they name the samples, say id_column={unusual[0]!r}"
        note = f"whole numbers that never repeat: {list_names(unusual)}"
        raw.notes.append(note if raw.named else note + more)
    if codes := [raw.name(j) for j in few_codes(raw, few)]:
        raw.notes.append(
            f"a few whole numbers, taken as amounts: {list_names(codes)}; if they are "
            f"codes, say category_columns=[{codes[0]!r}]"
        )
    for j in sorted(raw.signs.intersection(raw.features))[:3]:
        cell = next(cell for cell in raw.text(j) if not is_number(cell))
        what = "thousands are separated in" if cell[-1:].isdigit() else "numbers of"
        more = "" if cell[-1:].isdigit() else " are read without their signs"
        raw.notes.append(f"{what} {raw.name(j)!r}{more} ({cell})")
    if (far := find_sentinel(raw, rest)) is not None:
        name, mark = raw.name(far[0]), as_text(far[1])
        raw.notes.append(
            f"{mark} lies far from the other numbers of {name!r}; if it marks missing "
            f"values, say missing=['{mark}']"
        )


def _describe_doubt(
    kind: str, raw: RawTable, column: int, marks: Collection[str] = ()
) -> Doubt:
    """Return what is said of a column that is hardly a feature, and its cure.

    The marks are words that may stand for missing values.
    """
    name, cells, wording = raw.name(column), raw.text(column), kind
    cure: dict[str, Any] = {"drop": [name]}
    where = f"column {name[:60]!r}"
    if raw.first_row:
        where = f"row {raw.first_row + column}, {name[:60]!r},"
    free = not raw.named and raw.all_differ(column)
    odd = list(dict.fromkeys(c.strip() for c in cells if not is_number(c)))
    if kind in ("identifier", "text") and free:
        behind = column + 1 in raw.words and kind_of_words(raw.text(column + 1))
        named = behind in ("text", "mixed") and raw.all_differ(column + 1)
        cure = cure if kind == "identifier" and named else {"id_column": name}
    elif kind == "classes":
        if column in raw.words:
            wording = "classes of rows" if raw.first_row else "classes in words"
        if raw.labels is None:
            cure = {"label_column": name}
    elif kind in _CHOICES:
        cure = {kind: _CHOICES[kind]}
    elif kind == "mixed" and not odd:
        wording = "saved"  # as a format with types may say
    elif kind == "mixed":
        row = next(i for i, cell in enumerate(cells) if not is_number(cell))
        where = f"sample {raw.sample_names[row][:60]!r}, {where}:"
        if odd[:_MOST_DOUBTS] == [word for word in odd if word in marks]:
            wording, cure = "marked", {"missing": odd, "impute": "median"}
    values = category_values(cells)
    said = {
        "name": name,
        "start": ", ".join(cells[:3]),
        "cell": next((cell for cell in cells if cell.strip()), "")[:40],
        "odd": "".join(odd[:1])[:40],
        "marks": " and ".join(f"missing=[{word!r}]" for word in odd),
        "values": f"{len(values)} values: {', '.join(each[:40] for each in values[:3])}"
        + (", ..." if len(values) > 3 else ""),
    }
    found, *ways = (each.format(**said) for each in _WORDING[wording])
    ways = ways if free else [way for way in ways if not way.startswith("name ")]
    listed = ", or ".join(filter(None, [", ".join(ways[:-1]), ways[-1]]))
    return Doubt(kind, f"{where} {found} {listed}", cure)
