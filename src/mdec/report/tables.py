"""Tables of scores as Markdown, HTML and LaTeX."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mdec.experiments.ranking import average_rank, average_score, ranks, top_counts
from mdec.experiments.summary import ScoreTable

N_MARKED = 3


@dataclass(frozen=True)
class Cell:
    """One entry of a table.

    The mean, or the status of a method without a score; the standard deviation, empty
    where there is none; a note on the number of runs where it is not the usual one, and
    on the published value with the difference to it; and the place, 1 for the best of
    the row, up to 3, 0 for all others.
    """

    text: str
    spread: str = ""
    note: str = ""
    place: int = 0


Rows = list[tuple[str, list[Cell]]]
Renderer = Callable[[Sequence[str], Rows], str]


def score_rows(table: ScoreTable, published: ScoreTable | None = None) -> Rows:
    """Return the cells of a table, the best three of each row marked.

    One row for each dataset, then average score, average rank and top three, over the
    datasets on which every method was run. Published
    numbers are printed beside the scores, with the difference.
    """
    places = ranks(table)
    usual = _usual_count(table)
    rows: Rows = []
    for i, dataset in enumerate(table.datasets):
        cells = []
        for j, method in enumerate(table.methods):
            if table.status[i, j]:
                cells.append(Cell(str(table.status[i, j])))
                continue
            notes = []
            if table.counts[i, j] != usual:
                notes.append(_runs(int(table.counts[i, j])))
            notes += _beside(table, published, dataset, method)
            mean, place = f"{table.mean[i, j]:.2f}", int(places[i, j])
            spread = f"{table.std[i, j]:.2f}" if table.counts[i, j] > 1 else ""
            marked = place <= N_MARKED < len(table.methods)
            cells.append(Cell(mean, spread, ", ".join(notes), place if marked else 0))
        rows.append((dataset, cells))
    return rows if table.lower_is_better else rows + _summary_rows(table.in_common())


def _usual_count(table: ScoreTable) -> int:
    counts = table.counts[table.counts > 0]
    return int(np.bincount(counts).argmax()) if counts.size else 0


def _beside(
    table: ScoreTable, published: ScoreTable | None, dataset: str, method: str
) -> list[str]:
    known = published is not None and method in published.methods
    if published is None or not known or dataset not in published.datasets:
        return []
    i, j = published.datasets.index(dataset), published.methods.index(method)
    value = published.mean[i, j]
    if np.isnan(value):
        return [f"paper {published.status[i, j]}"]
    row, column = table.datasets.index(dataset), table.methods.index(method)
    # Adding zero turns a rounded minus zero into zero.
    difference = round(float(table.mean[row, column] - value), 2) + 0.0
    return [f"paper {value:.2f}, {difference:+.2f}"]


def _summary_rows(table: ScoreTable) -> Rows:
    means, positions, top = average_score(table), average_rank(table), top_counts(table)
    return [
        ("average score", [Cell("-" if np.isnan(m) else f"{m:.2f}") for m in means]),
        ("average rank", [Cell(f"{position:.2f}") for position in positions]),
        ("top three", [Cell(str(count)) for count in top]),
    ]


def caption(table: ScoreTable) -> str:
    """Return one sentence that says what the numbers are."""
    unit = "Seconds" if table.lower_is_better else "Percent"
    text = (
        f"{unit}, mean ± standard deviation of {_runs(_usual_count(table))} unless a "
        "cell says otherwise."
    )
    n_common = len(table.in_common().datasets)
    if table.lower_is_better or n_common == len(table.datasets):
        return text
    return (
        f"{text} Averages, ranks and tests are over the {n_common} datasets on which "
        "every method was run."
    )


def _runs(count: int) -> str:
    return f"{count} run" if count == 1 else f"{count} runs"


def plain_rows(rows: Sequence[Sequence[object]]) -> Rows:
    """Return rows of values as cells, the first value naming the row."""
    return [(str(row[0]), [Cell(str(value)) for value in row[1:]]) for row in rows]


def markdown(headers: Sequence[str], rows: Rows) -> str:
    """Return a Markdown table; the best is bold in brackets, the next two bold.

    Examples
    --------
    >>> print(markdown(["set", "A"], [("x", [Cell("1.00", "0.10", place=1)])]))
    | set | A |
    |---|---|
    | x | **[1.00 ± 0.10]** |
    <BLANKLINE>
    """

    def show(cell: Cell) -> str:
        text = cell.text + (f" ± {cell.spread}" if cell.spread else "")
        if cell.place:
            text = f"**[{text}]**" if cell.place == 1 else f"**{text}**"
        return (text + (f" ({cell.note})" if cell.note else "")).replace("|", "\\|")

    lines = ["| " + " | ".join(headers) + " |", "|" + "---|" * len(headers)]
    for name, cells in rows:
        lines.append("| " + " | ".join([name, *map(show, cells)]) + " |")
    return "\n".join(lines) + "\n"


def to_html(headers: Sequence[str], rows: Rows) -> str:
    """Return an HTML table; all text is escaped."""

    def show(cell: Cell) -> str:
        text = html.escape(cell.text)
        if cell.spread:
            text += f" <small>± {html.escape(cell.spread)}</small>"
        if cell.note:
            text += f"<br><small>{html.escape(cell.note)}</small>"
        style = f' class="place-{cell.place}"' if cell.place else ""
        return f"<td{style}>{text}</td>"

    head = "".join(f"<th>{html.escape(header)}</th>" for header in headers)
    lines = ["<table>", f"<thead><tr>{head}</tr></thead>", "<tbody>"]
    for name, cells in rows:
        inner = "".join(map(show, cells))
        lines.append(f"<tr><th>{html.escape(name)}</th>{inner}</tr>")
    return "\n".join([*lines, "</tbody>", "</table>"]) + "\n"


_LATEX = str.maketrans(
    {sign: f"\\{sign}" for sign in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}"}
    | {"^": r"\textasciicircum{}"}
)


def latex(headers: Sequence[str], rows: Rows) -> str:
    """Return a LaTeX tabular with the marks of the Markdown table."""

    def show(cell: Cell) -> str:
        text = cell.text.translate(_LATEX)
        if cell.place:
            text = rf"\textbf{{{text}}}"
        if cell.spread:
            text += rf"$_{{\pm {cell.spread}}}$"
        if cell.place == 1:
            text = f"[{text}]"
        if cell.note:
            text += rf" {{\scriptsize ({cell.note.translate(_LATEX)})}}"
        return text

    lines = [
        rf"\begin{{tabular}}{{l{'r' * (len(headers) - 1)}}}",
        r"\hline",
        " & ".join(header.translate(_LATEX) for header in headers) + r" \\",
        r"\hline",
    ]
    for name, cells in rows:
        row = " & ".join([name.translate(_LATEX), *map(show, cells)])
        # A bracket after a line end would be read as its optional argument.
        lines.append(("{}" + row if row.startswith("[") else row) + r" \\")
    return "\n".join([*lines, r"\hline", r"\end{tabular}"]) + "\n"


RENDERERS: dict[str, Renderer] = {"md": markdown, "html": to_html, "tex": latex}
