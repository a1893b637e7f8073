"""Columns of the table that are no features, as the map and the list show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec.report.clustering.described import Column, Labels
from mdec.tables.raw import MAX_BESIDE, is_number, number

# Numbers with more different values are drawn on a scale, words with more are only
# listed.
_FEW_NUMBERS, _FEW_WORDS = 12, 40

KNOWN = "known class"


def described_columns(
    known: NDArray[Any] | None,
    columns: Mapping[str, Sequence[str]] | None,
    rows: Labels,
) -> list[Column]:
    """Return the known classes and the other columns, of some rows."""
    given = {} if known is None else {KNOWN: [str(each) for each in known.tolist()]}
    for name, cells in (columns or {}).items():
        given[name if name not in given else f"{name} (column)"] = list(cells)
    shown = list(given.items())[: MAX_BESIDE + 1]
    return [
        described_column(name, [cells[i] for i in rows], classes=name == KNOWN)
        for name, cells in shown
    ]


def described_column(name: str, cells: list[str], *, classes: bool = False) -> Column:
    """Return a column as classes, as numbers, or as words that are only listed.

    Examples
    --------
    >>> described_column("sex", ["f", "m", "f"])["kind"]
    'classes'
    >>> described_column("age", [str(i) for i in range(40)])["kind"]
    'numbers'
    """
    levels, codes = np.unique(np.array(cells, dtype=np.str_), return_inverse=True)
    kind, values = "classes", np.empty(0)
    numeric = all(is_number(cell) for cell in levels.tolist())
    if numeric and levels.size > _FEW_NUMBERS and not classes:
        kind, values = "numbers", np.array([number(cell) for cell in cells])
    elif levels.size > _FEW_WORDS and not classes:
        kind = "words"
    words = levels.tolist()
    if numeric:
        order = np.argsort([number(cell) for cell in words], kind="stable")
        place = np.empty(order.size, dtype=np.int64)
        place[order] = np.arange(order.size)
        words, codes = [words[i] for i in order], place[codes]
    return {
        "name": name,
        "kind": kind,
        "levels": words,
        "codes": codes,
        "values": values,
    }
