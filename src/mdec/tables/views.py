"""Several tables of the same samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mdec.tables.budget import list_names
from mdec.tables.reading import Table


def distinct_names(files: Sequence[Path]) -> list[str]:
    """Return different names of files, the shortest that do.

    Examples
    --------
    >>> distinct_names([Path("a/genes.csv"), Path("b/genes.tsv")])
    ['genes.csv', 'genes.tsv']
    """
    stems = [each.name.split(".")[0] or each.name for each in files]
    names = stems if len(set(stems)) == len(stems) else [each.name for each in files]
    if len(set(names)) < len(names):
        names = [f"{name} ({i + 1})" for i, name in enumerate(names)]
    return names


def match_samples(first: Table, table: Table, first_name: str, name: str) -> Table:
    """Return a table with the samples of another one, in its order.

    A note in the reading of the other one says which samples of the table are left out.
    """
    unnamed = {
        each.reading["sample_names"] == "numbers from 1" for each in (first, table)
    }
    if len(unnamed) > 1:
        raise ValueError(
            f"samples of several tables are matched by name, and only one of the first "
            f"table and {name!r} has names; give both, see id_column=...."
        )
    rows = {sample: row for row, sample in enumerate(table.sample_names)}
    missing = [sample for sample in first.sample_names if sample not in rows]
    if missing:
        raise ValueError(
            f"{name!r} lacks {len(missing)} of the {len(first.sample_names)} samples "
            f"({list_names(missing)}); leave them out of the first table, or spell "
            "their names alike."
        )
    found = [rows.pop(sample) for sample in first.sample_names]
    if rows:
        first.reading["notes"].append(
            f"{len(rows)} samples of {name!r} are not in {first_name!r} and left out "
            f"({list_names(list(rows))})"
        )
    return replace(table, values=table.values[found], sample_names=first.sample_names)
