"""Several tables of the same samples: matched by name, each with its own members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.progress import Progress
from mdec._support.random import view_entropy
from mdec.cli._prepare import Prepared, prepare_values, told_lines
from mdec.ensemble import Ensemble
from mdec.generation import generate_ensemble
from mdec.tables import Table
from mdec.tables.door import shown_name
from mdec.tables.reading import read_table
from mdec.tables.values import transformed

Array = NDArray[np.floating]

# Of the reading of the first table, what holds for the others too.
_SHARED = ("transpose", "id_column", "header", "index", "impute", "max_bytes")


@dataclass(frozen=True, eq=False)
class TableView:
    """One of the tables, ready for its members.

    Attributes
    ----------
    ready : Prepared
        Its values.
    settings : dict
        Parameters of `generate_ensemble`.
    """

    ready: Prepared
    settings: dict[str, Any]


def read_views(
    first: Table, file: Path, files: Sequence[Path], reading: Mapping[str, Any]
) -> tuple[dict[str, Table], list[str]]:
    """Read further tables of the samples of a first one, in its order.

    Parameters
    ----------
    first : Table
        What was read first.
    file : Path
        Its file.
    files : sequence of Path
        The others.
    reading : mapping
        Options of `read_table` for the first; those that say how a file is written
        hold for all.

    Returns
    -------
    tables : dict of Table
        By the names of the files, the first among them.
    notes : list of str
        What was left out.
    """
    names = _view_names([file, *files])
    options = {name: reading[name] for name in _SHARED}
    tables, notes = {names[0]: first}, []
    for name, each in zip(names[1:], files, strict=True):
        table = read_table(each, **options)
        rows, extra = _matched_rows(first, table, shown_name(each))
        if extra:
            notes.append(
                f"{len(extra)} samples of {shown_name(each)!r} are not in "
                f"{shown_name(file)!r} and left out ({_listed(extra)})"
            )
        tables[name] = replace(
            table, values=table.values[rows], sample_names=first.sample_names
        )
    return tables, notes


def _view_names(files: Sequence[Path]) -> list[str]:
    """Return different names of files, the shortest that do."""
    stems = [each.name.split(".")[0] or each.name for each in files]
    found = stems if len(set(stems)) == len(stems) else [each.name for each in files]
    if len(set(found)) < len(found):
        found = [f"{name} ({i + 1})" for i, name in enumerate(found)]
    return found


def _matched_rows(first: Table, table: Table, name: str) -> tuple[list[int], list[str]]:
    """Return the rows of the first table's samples, and the samples it has not."""
    unnamed = [
        each.reading["sample_names"] == "numbers from 1" for each in (first, table)
    ]
    if any(unnamed) and not all(unnamed):
        raise ValueError(
            f"samples of several tables are matched by name, and only one of the first "
            f"table and {name!r} has names; give both, see --id-column."
        )
    place = {sample: row for row, sample in enumerate(table.sample_names)}
    missing = [sample for sample in first.sample_names if sample not in place]
    if missing:
        raise ValueError(
            f"{name!r} lacks {len(missing)} of the {len(first.sample_names)} samples "
            f"({_listed(missing)}); leave them out of the first table, or spell their "
            "names alike."
        )
    rows = [place[sample] for sample in first.sample_names]
    taken = set(first.sample_names)
    return rows, [sample for sample in table.sample_names if sample not in taken]


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name[:40]) for name in names[:3])
    return shown + (", ..." if len(names) > 3 else "")


def ready_views(
    tables: Mapping[str, Table],
    first: Prepared,
    settings: Mapping[str, Any],
    transform: str,
    prepare: str,
    *,
    drawable: bool,
) -> dict[str, TableView]:
    """Prepare each table by itself, as the first one was.

    Parameters
    ----------
    tables : mapping of Table
        All tables; the first has been prepared.
    first : Prepared
        How.
    settings : mapping
        Parameters of `generate_ensemble`.
    transform, prepare : str
        As in `prepare_values`.
    drawable : bool
        As there.

    Returns
    -------
    dict of TableView
        By name.
    """
    found = {}
    for number, (name, table) in enumerate(tables.items()):
        values = transformed(table.values, transform)
        ready = first
        if number:
            ready = prepare_values(table, values, prepare, transform, drawable=drawable)
        own = dict(settings) | {"preparation": ready.drawn}
        found[name] = TableView(ready, own)
    return found


def told_views(views: Mapping[str, TableView]) -> list[str]:
    """Return in words how each table was prepared."""
    return [
        f"{name}: {line}"
        for name, view in views.items()
        for line in told_lines(view.ready.told)
    ]


def made_views(
    views: Mapping[str, TableView],
    folder: Path,
    n_jobs: int | None,
    seed: int,
    progress: Progress | None,
) -> Ensemble:
    """Make the members of each view, resumably, and join them.

    As `mdec.MultiViewMDEC` does with the same seed and names.

    Parameters
    ----------
    views : mapping of TableView
        By name.
    folder : Path
        Of the checkpoints.
    n_jobs : int or None
        Members made at the same time.
    seed : int
        The seed.
    progress : callable or None
        Told of finished members, of all views together.

    Returns
    -------
    Ensemble
        Of all views.
    """
    parts = {}
    for number, (name, view) in enumerate(views.items()):
        tell = None if progress is None else _shifted(progress, number, len(views))
        parts[name] = generate_ensemble(
            view.ready.values,
            checkpoint=folder / f"view-{number + 1}",
            n_jobs=n_jobs,
            random_state=view_entropy(seed, name),
            progress=tell,
            **view.settings,
        )
        names = {"features": tuple(view.ready.feature_names)}
        if len(names["features"]) == view.ready.values.shape[1]:
            parts[name] = replace(parts[name], names=names)
    return Ensemble.concatenate(parts)


def _shifted(progress: Progress, number: int, n_views: int) -> Progress:
    def told(done: int, total: int) -> None:
        progress(number * total + done, n_views * total)

    return told


def side_by_side(views: Mapping[str, TableView]) -> tuple[Array, list[str]]:
    """Return the values of all views as members see them, and names of the columns."""
    values = np.concatenate([view.ready.seen for view in views.values()], axis=1)
    names = [
        f"{name}: {feature}"
        for name, view in views.items()
        for feature in view.ready.feature_names
    ]
    return values, names
