"""How a table is read: what `mdec fit --dry-run` says, for a page."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from mdec.app.folder import ERRORS, Folder
from mdec.cli import options as cli
from mdec.cli.fit import fit_lines, introduce
from mdec.cli.inputs import read_run
from mdec.tables.budget import TableFile, ending_of
from mdec.tables.columns import RawTable
from mdec.tables.reading import READERS, WITH_VARIABLES, check_ending
from mdec.tables.roles import AmbiguousTableError, find_roles

GROUPS = (cli.InputOptions, cli.ClusterOptions, cli.MethodOptions)

# The page has no say in these.
_WITHHELD = {"max_gb", "device"}

# Rows and columns of the preview, and the letters of a cell.
_ROWS, _COLUMNS, _CELL = 8, 60, 40


def given_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of `mdec fit` that a page sets, by their names."""
    found = {}
    for each in (each for group in GROUPS for each in fields(group)):
        value = given.get(each.name)
        if value not in (None, [], "", each.default) and each.name not in _WITHHELD:
            found[each.name] = value
    return found


def make_groups(folder: Folder, given: Mapping[str, Any]) -> list[Any]:
    """Return what a page sets as `mdec fit` takes it, or raise what cannot be."""
    known = {each.name: each.default for group in GROUPS for each in fields(group)}
    asked = given_options(given)
    known |= asked | {"max_gb": folder.max_bytes / 2**30}
    known["view"] = [folder.path(each) for each in asked.get("view", ())]
    return [cli.make_group(group, known) for group in GROUPS]


def command_words(file: str, given: Mapping[str, Any], out: str) -> list[str]:
    """Return the arguments with which `mdec` does what a page sets."""
    flags = {
        name: value if isinstance(value, bool | list) else str(value)
        for name, value in given_options(given).items()
    }
    return shlex.split(cli.suggest_command(["fit", file], flags | {"out": out}))[1:]


def look_at(
    folder: Folder, file: str, given: Mapping[str, Any], out: str, find: str = ""
) -> dict[str, Any]:
    """Read a table as `mdec fit` would, and say what was read and would be done.

    `error` is what stands in the way, and `cure` has the options with which the table
    is read. Columns whose names contain `find` are shown.
    """
    path = folder.path(file)
    name = folder.name(path)
    command = shlex.join(["mdec", *command_words(name, given, out)])
    found: dict[str, Any] = {"file": name, "command": command, "out": out}
    found |= {"error": None, "cure": {}, "reading": None, "lines": [], "python": None}
    found["parts"] = list_parts(path, folder.max_bytes)
    try:
        source, clusters, method = make_groups(folder, given)
        found["preview"] = _preview(path, source, find)
        run = read_run(path, source, clusters, method)
        found |= {
            "reading": run.first.table.reading,
            "lines": [*introduce(run)],
            "shape": run.shape,
        }
        if not run.views:
            named = replace(run, file=Path(name))
            found["python"] = fit_lines(named, run.model.n_clusters)
    except AmbiguousTableError as error:
        found |= {"error": cli.name_flags(error.findings), "cure": error.cure}
        found["reading"] = error.reading
    except ERRORS as error:
        found["error"] = cli.name_flags(str(error))
    return found


def list_parts(path: Path, max_bytes: int) -> list[str]:
    """Return the sheets or arrays of a file, of which one is read.

    Its reader lists them when it is asked for one that is not there. None of a file
    that is damaged: why, the reader says.
    """
    ending = ending_of(path)[0]
    if ending in WITH_VARIABLES:
        try:
            READERS[ending](TableFile(path, variable="\0", max_bytes=max_bytes))
        except ERRORS as error:
            return [*getattr(error, "names", ())]
    return []


def _preview(path: Path, source: cli.InputOptions, find: str) -> dict[str, Any]:
    """Return the first cells of a file and the role of each column."""
    given: dict[str, Any] = source.parameters(TableFile)
    several = {name: tuple(each) for name, each in given.items() if type(each) is list}
    table = TableFile(path, **given | several)
    raw = READERS[check_ending(table)](table)
    if not source.transpose:
        try:
            raw = find_roles(raw, table)
        except ValueError:  # the dry run says it
            raw = find_roles(raw, TableFile(path))
    doubts = [doubt.clause for doubt in raw.doubts]
    apart = source.annotate or ()
    role: dict[int | None, str] = dict.fromkeys(raw.encoded, "category")
    for j in raw.dropped:
        role[j] = "annotation" if raw.name(j) in apart else "ignore"
    role |= {raw.ids: "id", raw.classes: "class"}
    columns = [
        {
            "name": name,
            "role": role.get(j, "feature"),
            "words": j in raw.words,
            "doubt": any(f"column {name[:60]!r}" in each for each in doubts),
        }
        for j, name in enumerate(raw.names)
    ]
    head = RawTable(raw.values[:_ROWS], texts=raw.texts)
    ranked = sorted(range(len(columns)), key=lambda j: _rank(columns[j], find.lower()))
    shown = sorted(ranked[:_COLUMNS])
    for j in shown:
        columns[j]["cells"] = [cell[:_CELL] for cell in head.text(j)[:_ROWS]]
    return {
        "n_rows": len(raw.values),
        "n_columns": len(columns),
        "samples": [str(each)[:_CELL] for each in (raw.samples or ())[:_ROWS]],
        "columns": [columns[j] for j in shown],
    }


def _rank(column: dict[str, Any], find: str) -> tuple[bool, ...]:
    """Return which columns to show first: what is looked for, and what is special."""
    wanted = bool(find) and find in column["name"].lower()
    return not wanted, column["role"] == "feature", not column["doubt"]
