"""The folder that the page may see: its results, its tables and how they are read."""

from __future__ import annotations

import json
import os
import re
import shlex
import threading
from collections.abc import AsyncIterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from mdec._support.files import atomic_file
from mdec._support.memory import MAX_BYTES
from mdec.cli import options as cli
from mdec.cli.fit import fit_lines, introduce, read_run
from mdec.engines.checkpoint import HEADER
from mdec.results import SUMMARY, own_files
from mdec.tables.budget import TableFile, ending_of
from mdec.tables.columns import RawTable
from mdec.tables.reading import ENDINGS, READERS, WITH_VARIABLES, check_ending
from mdec.tables.roles import AmbiguousTableError, find_roles

UPLOADS = "mdec-uploads"

# What is answered with one sentence.
ERRORS = (ValueError, LookupError, TypeError, OSError, MemoryError, ImportError)

GROUPS = (cli.InputOptions, cli.ClusterOptions, cli.MethodOptions)
DEFAULTS = {each.name: each.default for group in GROUPS for each in fields(group)}

# The page has no say in these.
_WITHHELD = {"max_gb", "device"}

# Rows and columns of the preview, and the letters of a cell.
_ROWS, _COLUMNS, _CELL = 8, 60, 40

# Files and folders that are listed, and what is no part of a new name.
_MOST = 200
_ODD = re.compile(r"[^\w.()+ -]+")


class Folder:
    """A folder that nothing leads out of, neither names nor links.

    A file that arrives and takes more than `max_bytes` is refused.
    """

    def __init__(self, root: Path, max_bytes: int = MAX_BYTES) -> None:
        self.root, self.max_bytes = root.resolve(strict=True), max_bytes
        self.writing = threading.Lock()  # for what is written in results

    def path(self, name: object) -> Path:
        """Return the place of a name in the folder; raise if it leads elsewhere."""
        given = Path(str(name))
        path = self.root / given
        hidden = any(part.startswith(".mdec-") for part in given.parts)
        if not given.parts or "\0" in str(name) or ".." in given.parts or hidden:
            path = self.root.parent
        # Links and drives lead elsewhere as well.
        if not path.is_relative_to(self.root) or path.resolve() != path:
            raise ValueError(
                f"{str(name)[:80]!r} is not a file in {str(self.root)!r}, or a link; "
                "start mdec app in the folder that holds it."
            )
        return path

    def name(self, path: Path) -> str:
        """Return how a path of the folder is written on a command line."""
        name = path.relative_to(self.root).as_posix()
        return f"./{name}" if name.startswith("-") else name

    def tables(self) -> list[str]:
        """Return the files that can be read, those that arrived included."""
        found: list[str] = []
        for place in (self.root, self.root / UPLOADS):
            if place.is_dir() and not place.is_symlink():
                inside = [each for each in place.iterdir() if not each.is_symlink()]
                found += [self.name(each) for each in inside if each.is_file()]
        readable = (each for each in found if ending_of(Path(each))[0] in ENDINGS)
        return sorted(readable)[:_MOST]

    def results(self) -> list[dict[str, Any]]:
        """Return the results in the folder, the newest first, and runs that stopped."""
        found: list[dict[str, Any]] = []
        for each in os.scandir(self.root):
            if not each.is_dir(follow_symlinks=False) or each.name.startswith("."):
                continue
            about = {"name": each.name, "time": each.stat().st_mtime}
            if summary := read_summary(Path(each.path)):
                names = "n_samples", "n_clusters"
                found.append(about | {name: summary.get(name) for name in names})
            elif any(Path(each.path, "checkpoint").glob(f"**/{HEADER}")):
                found.append(about | {"stopped": True})
        return sorted(found, key=lambda row: row["time"], reverse=True)[:_MOST]

    def free_name(self, stem: str) -> str:
        """Return a name for the folder of a new result."""
        return _free(self.root, clean(stem) or "table", "{}-result{}")

    async def receive(self, name: str, chunks: AsyncIterator[bytes]) -> str:
        """Write a file that arrives under a name that is free, and return that name.

        A file that breaks off, or is too large, leaves nothing behind.
        """
        stem, dot, ending = clean(Path(name.replace("\\", "/")).name).partition(".")
        if ending_of(Path(f"x.{ending}"))[0] not in ENDINGS:
            raise ValueError(
                f"{name[:80]!r} has no ending that mdec reads; use one of "
                f"{', '.join(ENDINGS)}."
            )
        place = self.path(UPLOADS)
        place.mkdir(exist_ok=True)
        target = place / _free(place, stem or "table", f"{{}}{{}}{dot}{ending}")
        size = 0
        try:
            with atomic_file(target) as file:
                async for chunk in chunks:
                    size += len(chunk)
                    self.check_size(size)
                    file.write(chunk)
        except OSError as error:
            raise OSError(
                f"{name[:80]!r} could not be kept ({error.strerror or error}); make "
                "room on the disk, or give its path."
            ) from error
        return self.name(target)

    def check_size(self, size: int) -> None:
        """Raise if a file takes more than it may."""
        if size > self.max_bytes:
            raise ValueError(
                f"the file takes more than {self.max_bytes / 2**30:g} GB; give its "
                "path, or start mdec app with a larger --max-gb."
            )


def clean(name: str) -> str:
    """Return a name that every system takes."""
    return _ODD.sub("-", name)[-80:].strip(" .-")


def _free(place: Path, stem: str, form: str) -> str:
    """Return the first name of a form that nothing in a folder has."""
    number, name = 2, form.format(stem, "")
    while os.path.lexists(place / name):
        number, name = number + 1, form.format(stem, f"-{number}")
    return name


def read_summary(folder: Path) -> dict[str, Any]:
    """Return the summary of a result; nothing if the folder holds none."""
    if (folder / SUMMARY).is_symlink() or not own_files(folder):
        return {}
    content: dict[str, Any] = json.loads((folder / SUMMARY).read_bytes())
    return content


def given_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of `mdec fit` that a page sets, by their names."""
    return {
        name: given[name]
        for name, default in DEFAULTS.items()
        if given.get(name) not in (None, [], "", default) and name not in _WITHHELD
    }


def make_groups(folder: Folder, given: Mapping[str, Any]) -> list[Any]:
    """Return what a page sets as `mdec fit` takes it, or raise what cannot be."""
    asked = given_options(given)
    known = DEFAULTS | asked | {"max_gb": folder.max_bytes / 2**30}
    known["view"] = [folder.path(each) for each in asked.get("view", ())]
    return [cli.make_group(group, known) for group in GROUPS]


def command_words(file: str, given: Mapping[str, Any], out: str) -> list[str]:
    """Return the arguments with which `mdec` does what a page sets."""
    asked = given_options(given).items()
    flags = {n: v if isinstance(v, bool | list) else str(v) for n, v in asked}
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
    """Return the first cells of a file and the role of each column.

    Of many columns those that are looked for come first, and what is no plain feature.
    """
    given: dict[str, Any] = source.parameters(TableFile)
    several = {name: tuple(each) for name, each in given.items() if type(each) is list}
    table = TableFile(path, **given | several)
    raw = READERS[check_ending(table)](table)
    if not source.transpose:
        try:
            raw = find_roles(raw, table)
        except ValueError:  # the dry run says it
            raw = find_roles(raw, TableFile(path))
    special: dict[int | None, str] = dict.fromkeys(raw.encoded, "category")
    for j in raw.dropped:
        apart = raw.name(j) in (source.annotate or ())
        special[j] = "annotation" if apart else "ignore"
    special |= {raw.ids: "id", raw.classes: "class"}
    names, find = list(raw.names), find.lower()
    doubts = " ".join(doubt.clause for doubt in raw.doubts)
    doubted = [f"column {name[:60]!r}" in doubts for name in names]

    def rank(j: int) -> tuple[bool, ...]:
        sought = bool(find) and find in names[j].lower()
        return not sought, j not in special, not doubted[j]

    head = RawTable(raw.values[:_ROWS], texts=raw.texts)
    return {
        "n_rows": len(raw.values),
        "n_columns": len(names),
        "samples": [str(each)[:_CELL] for each in (raw.samples or ())[:_ROWS]],
        "columns": [
            {
                "name": names[j],
                "role": special.get(j, "feature"),
                "words": j in raw.words,
                "doubt": doubted[j],
                "cells": [cell[:_CELL] for cell in head.text(j)[:_ROWS]],
            }
            for j in sorted(sorted(range(len(names)), key=rank)[:_COLUMNS])
        ],
    }
