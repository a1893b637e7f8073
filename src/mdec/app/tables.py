"""How a table is read: what `mdec fit --dry-run` says, for a page."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from mdec.app.folder import Folder
from mdec.cli.fit import fit_lines
from mdec.cli.inputs import read_inputs
from mdec.cli.options import (
    ClusterOptions,
    InputOptions,
    MethodOptions,
    make_group,
    name_flags,
    parse_k,
    suggest_command,
)
from mdec.tables.budget import ReadBudget, display_name
from mdec.tables.columns import RawTable, TableOptions
from mdec.tables.reading import READERS, check_ending
from mdec.tables.roles import AmbiguousTableError, Roles, find_roles

Groups = tuple[InputOptions, ClusterOptions, MethodOptions]

# The page has no say in these.
_WITHHELD = {"view", "max_gb", "device"}

# Cells and columns of the preview.
_ROWS, _COLUMNS, _CELL = 8, 60, 40


def parse_options(given: Mapping[str, Any], max_gb: float) -> Groups:
    """Return the groups of options of `mdec fit` that a page asks for.

    Parameters
    ----------
    given : mapping
        Options by the names of their fields; None and empty lists are not given.
    max_gb : float
        The limit of the page.

    Returns
    -------
    tuple of dataclasses
        How to read, what to make of the base clusterings, and how to make them.
    """
    known: dict[str, Any] = {}
    groups = InputOptions, ClusterOptions, MethodOptions
    for group in groups:
        hints = get_type_hints(group)
        for each in fields(group):
            value = given.get(each.name)
            if value in (None, [], "") or each.name in _WITHHELD:
                known[each.name] = each.default
                continue
            if not _fits(value, hints[each.name]):
                raise ValueError(f"{each.name} cannot be {str(value)[:80]!r}.")
            known[each.name] = value
    known["max_gb"] = max_gb
    made = [make_group(group, known) for group in groups]
    return made[0], made[1], made[2]


def _fits(value: Any, hint: Any) -> bool:
    """Tell whether a value of JSON has a type.

    Examples
    --------
    >>> _fits(["a"], list[str] | None), _fits("a", int | None), _fits(True, int)
    (True, False, False)
    """
    if get_origin(hint) is list:
        of = get_args(hint)[0]
        return isinstance(value, list) and all(_fits(each, of) for each in value)
    kinds = [each for each in get_args(hint) if each is not NoneType]
    if kinds:
        return any(_fits(value, each) for each in kinds)
    if isinstance(value, bool) or hint is bool:
        return isinstance(value, bool) and hint is bool
    return isinstance(value, int | float if hint is float else hint)


def command_words(file: str, given: Mapping[str, Any], out: str) -> list[str]:
    """Return the arguments with which `mdec` does what a page asks for."""
    flags = {}
    for group in (InputOptions, ClusterOptions, MethodOptions):
        for each in fields(group):
            value = given.get(each.name)
            if value in (None, [], "", each.default) or each.name in _WITHHELD:
                continue
            flags[each.name] = value if isinstance(value, bool | list) else str(value)
    return shlex.split(suggest_command(["fit", file], flags | {"out": out}))[1:]


def look_at(
    folder: Folder, file: str, given: Mapping[str, Any], out: str, find: str = ""
) -> dict[str, Any]:
    """Read a table as `mdec fit` would, and say what was read and would be done.

    Parameters
    ----------
    folder : Folder
        Where the file is.
    file : str
        Its name there.
    given : mapping
        Options of `mdec fit`.
    out : str
        Name of the result.
    find : str, default=""
        Part of the names of columns to show first.

    Returns
    -------
    dict
        Numbers, words and lists. `error` has what stands in the way, and `cure` the
        options with which the table is read.
    """
    path = folder.path(file)
    name = folder.name(path)
    words = command_words(name, given, out)
    found: dict[str, Any] = {"file": name, "error": None, "cure": {}, "python": None}
    found |= {"command": shlex.join(["mdec", *words]), "reading": None, "lines": []}
    try:
        groups = parse_options(given, folder.max_bytes / 2**30)
        found["preview"] = _preview(path, groups[0], find)
        found |= _dry_run(path, Path(name), *groups)
    except AmbiguousTableError as error:
        found |= {"error": name_flags(error.findings), "cure": error.cure}
        found["reading"] = error.reading
    except (ValueError, OSError, MemoryError, ImportError, RuntimeError) as error:
        found["error"] = name_flags(str(error))
    return found


def _dry_run(
    path: Path,
    name: Path,
    source: InputOptions,
    clusters: ClusterOptions,
    method: MethodOptions,
) -> dict[str, Any]:
    """Return what was read, what would be done to it, and the lines of Python."""
    model = method.estimator(clusters)
    inputs = read_inputs(path, source, model)
    number = parse_k(clusters.k, len(inputs.first.values))
    model.set_params(preparation=inputs.preparation)
    return {
        "reading": inputs.first.table.reading,
        "lines": inputs.lines if source.prepare != "none" else [],
        "shape": inputs.shape,
        "python": fit_lines(name, source, inputs.first, model, number),
    }


def _preview(path: Path, source: InputOptions, find: str) -> dict[str, Any] | None:
    """Return the first cells of a file and the role of each column."""
    given = source.parameters(TableOptions) | {"variable": source.variable or ""}
    for name in ("drop", "features", "category_columns"):
        given[name] = tuple(given.get(name) or ())
    options = TableOptions(**given)
    budget = ReadBudget(display_name(path), source.max_bytes)
    reader = READERS[check_ending(path, budget)]
    try:
        raw = reader(path, budget, options)
    except AmbiguousTableError:  # whether there is a row of names
        raw = reader(path, budget, replace(options, header=True))
    roles = Roles(raw.names)
    if not source.transpose:
        try:
            roles = find_roles(raw, options, budget)
        except ValueError:  # said by the dry run
            roles = find_roles(raw, TableOptions(), budget)
    places = _choose_columns(raw, roles, find)
    apart = set(source.annotate or ())
    return {
        "n_rows": len(raw.values),
        "n_columns": len(roles.names),
        "samples": [str(each)[:_CELL] for each in (raw.samples or ())[:_ROWS]],
        "columns": [
            {
                "name": roles.names[j],
                "role": _role(roles, j, apart),
                "words": j in raw.words,
                "doubt": _in_doubt(roles, j),
                "cells": [cell[:_CELL] for cell in _cells(raw, j)],
            }
            for j in places
        ],
    }


def _cells(raw: RawTable, column: int) -> list[str]:
    part = RawTable(raw.values[:_ROWS], texts=raw.texts)
    return part.text(column)[:_ROWS]


def _choose_columns(raw: RawTable, roles: Roles, find: str) -> list[int]:
    """Return the columns to show: what is looked for, what is special, the first."""
    every = range(len(roles.names))
    wanted = [j for j in every if find and find.lower() in roles.names[j].lower()]
    plain = set(roles.features) - raw.words
    special = [j for j in every if j not in plain or _in_doubt(roles, j)]
    chosen = dict.fromkeys([*wanted, *special[:_COLUMNS], *every[:_COLUMNS]])
    return sorted(list(chosen)[:_COLUMNS])


def _role(roles: Roles, column: int, apart: set[str]) -> str:
    if column == roles.classes:
        return "class"
    if column == roles.ids:
        return "id"
    if column in roles.encoded:
        return "category"
    if column in roles.dropped:
        return "annotation" if roles.names[column] in apart else "ignore"
    return "feature"


def _in_doubt(roles: Roles, column: int) -> bool:
    name = roles.names[column]
    start = f"column {name[:60]!r}"
    return any(start in doubt.clause for doubt in roles.doubts)
