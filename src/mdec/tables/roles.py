"""Which columns are names, features and classes: the one place.

Every format comes here, so that the same table is read in the same way from each. What
looks like an identifier or a class is never a feature without being asked for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec.tables.columns import is_whole, looks_like, never_repeating
from mdec.tables.door import Door, Refused, not_there
from mdec.tables.headers import is_id_name
from mdec.tables.raw import MISSING, MISSING_CLASS, RawTable, is_number


class Doubtful(Refused):
    """A table that may be meant in two ways; one sentence names the flags.

    Attributes
    ----------
    reading : dict or None
        What was read so far, for those who want to look.
    """

    reading: dict[str, Any] | None = None


@dataclass(frozen=True)
class Doubt:
    """A column that is hardly a feature.

    Attributes
    ----------
    kind : {"words", "identifier", "classes"}
        What it looks like.
    clause : str
        What it holds, and the flags that say what it is.
    """

    kind: str
    clause: str


@dataclass(frozen=True)
class Wishes:
    """What the user said about the columns.

    Attributes
    ----------
    label_column, id_column : str or None
        Columns of known classes and of the samples' names.
    drop, features : tuple of str
        Names or shell patterns of columns to leave out, and of those to cluster.
    index : bool or None
        Whether the first column holds names; None looks.
    known : tuple of str or None
        Names of the features of a model, in its order; other columns are left out
        without a doubt.
    """

    label_column: str | None = None
    id_column: str | None = None
    drop: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    index: bool | None = None
    known: tuple[str, ...] | None = None


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
    doubts : list of Doubt
        Columns that may be meant in two ways.
    notes : list of str
        What is odd, and was read all the same.
    """

    names: list[str]
    features: list[int] = field(default_factory=list)
    ids: int | None = None
    classes: int | None = None
    dropped: list[int] = field(default_factory=list)
    doubts: list[Doubt] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def find_roles(raw: RawTable, wishes: Wishes, door: Door) -> Roles:
    """Give each column its role.

    Parameters
    ----------
    raw : RawTable
        Samples in rows.
    wishes : Wishes
        What the user said.
    door : Door
        Names the file in sentences.

    Returns
    -------
    Roles
        With doubts, which the caller raises or shows.
    """
    _check_shape(raw, door)
    n_columns = raw.values.shape[1]
    roles = Roles(raw.columns or [str(i + 1) for i in range(n_columns)])
    if wishes.label_column is not None and raw.labels is None:
        roles.classes = _place(roles.names, wishes.label_column, door)
    if wishes.id_column is not None:
        roles.ids = _place(roles.names, wishes.id_column, door)
    taken = {roles.classes, roles.ids}
    roles.dropped = sorted(_matching(roles.names, wishes.drop, door) - taken)
    left = [j for j in range(n_columns) if j not in {*taken, *roles.dropped}]
    if wishes.known is not None and raw.columns is not None:
        return _known_features(raw, wishes, roles, left, door)
    if wishes.index and left and roles.ids is None:
        roles.ids = left[0]
    elif wishes.index is None and roles.ids is None and raw.samples is None:
        roles.ids = _names_column(raw, roles, left)
    left = [j for j in left if j != roles.ids]
    asked: set[int] = set()
    if wishes.features:
        asked = _matching(roles.names, wishes.features, door)
        exact = {j for j in asked if roles.names[j] in wishes.features}
        if wishes.id_column is None and roles.ids in exact:
            left, roles.ids = sorted({*left, *exact} - {roles.classes}), None
        chosen = [j for j in left if j in asked and (j in exact or j not in raw.words)]
        roles.dropped += [j for j in left if j not in chosen]
        left = chosen
    roles.features = left
    if wishes.index is False and 0 in left:
        asked.add(0)
    sure = asked | set(left) - raw.words if raw.settled else asked
    _doubt(raw, roles, [j for j in left if j not in sure])
    return roles


def _known_features(
    raw: RawTable, wishes: Wishes, roles: Roles, left: list[int], door: Door
) -> Roles:
    """Take the features of a model in its order, and the samples' names beside them."""
    known = wishes.known or ()
    places = {roles.names[j]: j for j in left}
    missing = [name for name in known if name not in places]
    if missing:
        shown = ", ".join(repr(name[:60]) for name in missing[:5])
        more = ", ..." if len(missing) > 5 else ""
        raise Refused(
            f"{door.name!r} lacks {len(missing)} of the model's {len(known)} features: "
            f"{shown}{more}; give a table that has them (with --transpose if they are "
            "in its rows), under the names that the model was fitted with."
        )
    wanted = set(known)
    twice = [j for j in left if roles.names[j] in wanted and places[roles.names[j]] > j]
    if twice:
        raise Refused(
            f"{door.name!r} has more than one column {roles.names[twice[0]][:60]!r}; "
            "give each its own name."
        )
    others = [j for j in left if roles.names[j] not in wanted]
    if roles.ids is None and raw.samples is None and wishes.index is not False:
        roles.ids = _names_column(raw, roles, others)
    roles.features = [places[name] for name in known]
    roles.dropped += [j for j in others if j != roles.ids]
    words = [j for j in roles.features if j in raw.words]
    roles.doubts = [Doubt("words", _worded(raw, roles, j)) for j in words]
    return roles


def _check_shape(raw: RawTable, door: Door) -> None:
    if raw.values.dtype.kind not in "fiub":
        raise Refused(f"{door.name!r} holds {raw.values.dtype} and not real numbers.")
    for what, names, length in (
        ("rows", raw.samples, raw.values.shape[0]),
        ("columns", raw.columns, raw.values.shape[1]),
    ):
        if names is not None and len(names) != length:
            raise Refused(
                f"{door.name!r} has names for {len(names)} {what}, but {length} of "
                "them; transpose it if it has samples in columns."
            )


def find_member_roles(
    names: list[str] | None,
    columns: Sequence[list[str]],
    wishes: Wishes,
    door: Door,
    *,
    indexed: bool,
) -> Roles:
    """Give each column of a table of labels its role.

    Parameters
    ----------
    names : list of str or None
        Names of the columns.
    columns : sequence of list of str
        Their cells.
    wishes : Wishes
        What the user said; features are the clusterings to take.
    door : Door
        Names the file in sentences.
    indexed : bool
        Whether the samples have names outside the columns.

    Returns
    -------
    Roles
        Whose features are the clusterings.
    """
    roles = Roles(names or [str(i + 1) for i in range(len(columns))])
    if wishes.id_column is not None:
        roles.ids = _place(roles.names, wishes.id_column, door)
    roles.dropped = sorted(_matching(roles.names, wishes.drop, door) - {roles.ids})
    left = [j for j in range(len(columns)) if j not in {roles.ids, *roles.dropped}]
    looked_for = wishes.index is None and not indexed and len(left) > 1
    if roles.ids is None and left and (wishes.index or looked_for):
        differ = len(set(columns[left[0]])) == len(columns[left[0]])
        if wishes.index or differ or (names and is_id_name(names[left[0]])):
            roles.ids = left.pop(0)
    roles.features = left
    if wishes.features:
        roles.features = [_place(roles.names, name, door) for name in wishes.features]
        roles.dropped += [j for j in left if j not in roles.features]
        return roles
    for j in left:
        present = [cell for cell in columns[j] if not absent(cell)]
        numbers = [float(cell) for cell in present if is_number(cell)]
        measured = any(not each.is_integer() for each in numbers)
        if measured or (len(present) > 10 and len(set(present)) == len(present)):
            name = roles.names[j]
            roles.doubts.append(
                Doubt(
                    "identifier",
                    f"column {name[:60]!r} holds {len(set(present))} different values "
                    f"({present[0][:20]}, ...) and no clustering; leave it out with "
                    f"--drop {name!r}, or name the samples by it with --id-column "
                    f"{name!r}",
                )
            )
    return roles


def raise_doubts(
    roles: Roles, door: Door, reading: dict[str, Any] | None = None
) -> None:
    """Raise the first of the doubts, with what was read so far."""
    if roles.doubts:
        more = f" ({len(roles.doubts)} such columns)" if len(roles.doubts) > 1 else ""
        error = Doubtful(f"{door.name!r}: {roles.doubts[0].clause}{more}.")
        error.reading = reading
        raise error


def absent(cell: str) -> bool:
    """Tell whether a cell says that a clustering leaves the sample out."""
    word = cell.strip()
    return word.lower() in MISSING or word in ("-1", "-1.0")


def _place(names: list[str], name: str, door: Door) -> int:
    if name not in names:
        raise not_there(door, "column", name, names)
    if names.count(name) > 1:
        raise Refused(
            f"{door.name!r} has {names.count(name)} columns {name!r}; give each its "
            "own name."
        )
    return names.index(name)


def _matching(names: list[str], patterns: tuple[str, ...], door: Door) -> set[int]:
    found: set[int] = set()
    for pattern in patterns:
        # A name may itself hold signs that patterns use.
        match = {
            j
            for j, name in enumerate(names)
            if name == pattern or fnmatchcase(name, pattern)
        }
        if not match:
            raise not_there(door, "column", pattern, names)
        found |= match
    return found


def _names_column(raw: RawTable, roles: Roles, left: list[int]) -> int | None:
    """Return the column of the samples' names, if one is plainly that."""
    if not left:
        return None
    if left[0] in raw.words:
        return left[0]
    if raw.columns is None:
        return None
    likely = [j for j in left if is_id_name(roles.names[j]) and _all_differ(raw, j)]
    if left[0] in likely or len(likely) == 1:
        return likely[0]
    return None


def _all_differ(raw: RawTable, column: int) -> bool:
    if column not in raw.words and not is_whole(raw.values[:, column]):
        return False
    cells = raw.text(column)
    return len(set(cells)) == len(cells)


def _doubt(raw: RawTable, roles: Roles, columns: list[int]) -> None:
    """Write down which columns are hardly features, and how to say what they are."""
    rest = [j for j in columns if j not in raw.words]
    clauses = {"words": _worded, "identifier": _identifier, "classes": _classes}
    for j in columns:
        kind = "words" if j in raw.words else looks_like(raw, roles.names[j], j, rest)
        if kind:
            roles.doubts.append(Doubt(kind, clauses[kind](raw, roles, j)))
    if noted := never_repeating(raw, rest):
        shown = ", ".join(repr(roles.names[j][:40]) for j in noted[:3])
        roles.notes.append(f"whole numbers that never repeat: {shown}")


def _worded(raw: RawTable, roles: Roles, column: int) -> str:
    name = roles.names[column]
    cells = raw.texts[column]
    bad = [i for i, cell in enumerate(cells) if not is_number(cell)]
    flag = "--label-column" if roles.classes is None else "--id-column"
    if len(bad) > len(cells) / 2:
        return (
            f"column {name[:60]!r} holds no numbers but {cells[bad[0]][:40]!r}; name "
            f"it with {flag} {name!r}, or leave it out with --drop {name!r}"
        )
    row = bad[0]
    sample = str(row + 1)
    if roles.ids is not None:
        sample = raw.text(roles.ids)[row]
    elif raw.samples is not None:
        sample = raw.samples[row]
    return (
        f"sample {sample[:60]!r}, column {name[:60]!r}: {cells[row].strip()[:40]!r} is "
        f"not a number; mend it, or leave the column out with --drop {name!r}"
    )


def _identifier(raw: RawTable, roles: Roles, column: int) -> str:
    name = roles.names[column]
    first = ", ".join(raw.text(column)[:3])
    return (
        f"column {name[:60]!r} ({first}, ...) looks like an identifier; name the "
        f"samples by it with --id-column {name!r}, leave it out with --drop {name!r}, "
        "or cluster every column with --features '*'"
    )


def _classes(raw: RawTable, roles: Roles, column: int) -> str:
    name = roles.names[column]
    found = sorted(set(raw.text(column)) - {""})
    first = ", ".join(found[:3]) + (", ..." if len(found) > 3 else "")
    return (
        f"column {name[:60]!r} ({len(found)} values: {first}) looks like known "
        f"classes; score against it with --label-column {name!r}, leave it out with "
        f"--drop {name!r}, or cluster every column with --features '*'"
    )


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
