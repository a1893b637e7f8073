"""The report of a study: tables, figures and pages in one folder."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from mdec._support.files import write_atomically
from mdec._support.optional import import_optional
from mdec.experiments.published import (
    compare,
    published_bars,
    published_points,
    published_table,
)
from mdec.experiments.ranking import (
    RankTest,
    average_rank,
    average_score,
    rank_test,
    top_counts,
)
from mdec.experiments.records import OK, RunRecord, Store
from mdec.experiments.study import Shown, shown_in_report
from mdec.experiments.summary import (
    LONG_COLUMNS,
    METRIC_TITLES,
    ScoreTable,
    failures,
    long_rows,
    places,
    ran_on,
    score_table,
    spoken,
    swept_parameters,
)
from mdec.experiments.sweep import Part, Sweep, comparable_parts, sweep
from mdec.report import figures as drawn
from mdec.report.rank_diagram import CriticalDifferenceDisplay
from mdec.report.tables import RENDERERS, Cell, Rows, caption, plain_rows, score_rows

_PUBLISHED = ("nmi_max", "ari", "seconds", "cpu_seconds")
_CLOCKS = {
    "cpu_seconds": "One worker on one core; the paper's are seconds of the clock.",
    "seconds": "Seconds of the clock with one worker for each run; other work on the "
    "machine makes them longer than those of the CPU.",
}


@dataclass
class Figure:
    """A figure of the report, as file name, caption and drawing."""

    name: str
    caption: str
    drawing: Any


@dataclass
class Section:
    """A part of the report: a table, if it has headers, and figures under it.

    The name is the file name of the table, and the text a line under the heading.
    """

    name: str
    heading: str
    text: str = ""
    headers: Sequence[str] = ()
    rows: Rows = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)

    @property
    def tables(self) -> dict[str, str]:
        """The table as text, by format."""
        if not self.headers:
            return {}
        return {kind: show(self.headers, self.rows) for kind, show in RENDERERS.items()}


def write_report(
    store: Store,
    folder: str | os.PathLike[str],
    *,
    metrics: Sequence[str] = (),
    published: bool | None = None,
    with_figures: bool = True,
) -> list[Path]:
    """Write the report of a study from its records.

    Parameters
    ----------
    store : Store
        From `read_records`.
    folder : path-like
        Where to write report.md, report.html, scores.csv, tables/ and figures/.
    metrics : sequence of str
        Scores to show; empty for those that the study asks for.
    published : bool, default=None
        Print the paper's numbers and the differences; None as the study says.
    with_figures : bool, default=True
        Draw figures, which needs matplotlib.

    Returns
    -------
    list of Path
        The files written.
    """
    if not store.runs:
        raise ValueError("there are no runs in these records yet; run the study first.")
    jinja2 = import_optional("jinja2", needed_for="reports", install="mdec[report]")
    shown = shown_in_report(store.study)
    if metrics:
        shown = replace(shown, metrics=metrics)
    if published is not None:
        shown = replace(shown, published=published)
    sections = list(_sections(store, shown, with_figures))
    target = Path(folder)
    rows = long_rows(store, shown.metrics)
    written = [_write(target / "scores.csv", _as_csv(rows))]
    for section in sections:
        for kind, text in section.tables.items():
            written.append(_write(target / "tables" / f"{section.name}.{kind}", text))
        for figure in section.figures:
            (target / "figures").mkdir(parents=True, exist_ok=True)
            path = target / "figures" / figure.name
            written += drawn.save_figure(figure.drawing, path)
    content = {
        "title": store.study.get("title", store.study["name"]),
        "origin": _origin(store),
        "sections": sections,
    }
    for kind in ("md", "html"):
        template = resources.files("mdec.report") / "templates" / f"study.{kind}"
        environment = jinja2.Environment(autoescape=kind == "html")
        page = environment.from_string(template.read_text("utf-8")).render(content)
        written.append(_write(target / f"report.{kind}", page))
    return written


def _sections(store: Store, shown: Shown, with_figures: bool) -> Iterator[Section]:
    swept = swept_parameters(store.study)
    for metric in shown.metrics:
        if swept:
            yield from _sweep_sections(store, metric, shown, with_figures)
            continue
        table = score_table(store, metric)
        section = _score_section(table, shown.published)
        if with_figures and shown.critical_difference and len(table.methods) > 2:
            section.figures = [_rank_figure(table.in_common())]
        yield section
        if shown.published and metric in _PUBLISHED:
            yield _summary_section(table.in_common())
            yield _distance_section(table)
    if shown.times:
        yield from _time_sections(store, shown, with_figures)
    lost = failures(store)
    if lost:
        headers = ["dataset", "method", "status", "runs", "reason"]
        yield Section("failures", "Runs without labels", "", headers, plain_rows(lost))


def _time_sections(store: Store, shown: Shown, with_figures: bool) -> Iterator[Section]:
    """Yield the times on each processor apart, and those with a device."""
    found = places(store)
    for number, place in enumerate(found):
        # What a device does costs no CPU seconds.
        clocks = ["seconds"] if " with " in place else ["cpu_seconds", "seconds"]
        for metric in clocks:
            table = score_table(store, metric, partial(_is_at, place))
            section = _score_section(table, shown.published)
            section.text += f" {_CLOCKS[metric]}"
            if len(found) > 1:
                section.name += f"_{number + 1}"
                section.heading += f", on {place}"
            if with_figures and number == 0 and metric == "cpu_seconds":
                words = f"{METRIC_TITLES[metric]}, of each method on each dataset."
                growth = drawn.growth_figure(store, table)
                section.figures = [Figure("growth", words, growth)]
            yield section


def _is_at(place: str, record: RunRecord) -> bool:
    return ran_on(record) == place


def _score_section(table: ScoreTable, beside: bool) -> Section:
    title = METRIC_TITLES[table.metric]
    known = beside and table.metric in _PUBLISHED
    published = published_table(table.metric) if known else None
    text = caption(table)
    if not table.lower_is_better and len(table.methods) > 2:
        text += f" {_test_sentence(table.in_common())}"
    headers = ["dataset", *table.methods]
    rows = score_rows(table, published)
    return Section(table.metric, title, text, headers, rows)


def _summary_section(table: ScoreTable) -> Section:
    """Return the summary rows beside those of the paper on the same datasets."""
    paper = published_table(table.metric, table.datasets, table.methods)
    both, columns = (table, paper), []
    for means in (average_score, average_rank):
        columns += [[f"{value:.2f}" for value in means(each)] for each in both]
    columns += [[str(count) for count in top_counts(each)] for each in both]
    headers = ["method", "average score", "paper", "average rank", "paper"]
    rows = zip(table.methods, *columns, strict=True)
    return Section(
        f"{table.metric}_summary",
        f"{METRIC_TITLES[table.metric].split(' (')[0]}: summary beside the paper's",
        f"Both from the same {len(table.datasets)} datasets and methods.",
        [*headers, "among the first three", "paper"],
        plain_rows([["-" if v == "nan" else v for v in row] for row in rows]),
    )


def _sweep_sections(
    store: Store, metric: str, shown: Shown, with_figures: bool
) -> Iterator[Section]:
    """Yield means against the first parameter, for each part whose means compare."""
    x = next(iter(swept_parameters(store.study)))
    for number, part in enumerate(comparable_parts(store, metric)):
        section = _sweep_section(store, metric, x, part, shown.published)
        if number:
            section.name += f"_{number + 1}"
        if with_figures:
            section.figures = list(_figures(store, metric, part, shown, section.name))
        yield section
        kinds = part.by_kind()
        for kind, alike in kinds.items() if len(kinds) > 1 else ():
            inner = _sweep_section(store, metric, x, alike, shown.published)
            inner.name = f"{section.name}_{kind.replace(' ', '_')}"
            inner.heading += f", {kind}"
            yield inner
    if with_figures and shown.curves is not None:
        title = METRIC_TITLES[metric]
        words = f"{title} against {shown.curves.label}, dataset by dataset."
        grid = drawn.grid_figure(store, metric, shown.curves)
        figure = Figure(f"{metric}_datasets", words, grid)
        yield Section(f"{metric}_datasets", f"{title}: each dataset", figures=[figure])


def _sweep_section(
    store: Store, metric: str, x: str, part: Part, published: bool
) -> Section:
    scores = sweep(store, metric, x, part.holds)
    best = np.nan_to_num(scores.mean, nan=-np.inf).argmax(axis=0)
    notes = _paper_notes(scores, x, part) if published else {}
    rows: Rows = []
    for i, value in enumerate(scores.values):
        found = zip(scores.mean[i], scores.error[i], best == i, strict=True)
        cells = [
            _swept_cell(*each, notes.get((i, j), "")) for j, each in enumerate(found)
        ]
        rows.append((spoken(value), cells))
    text = (
        f"Means over {_number(part)} ({', '.join(part.datasets)}) of "
        f"{_counted(score_table(store, metric, part.holds))}, ± the standard error "
        "over runs; the best of each column is marked."
    )
    heading = f"{METRIC_TITLES[metric]}, {_number(part)}"
    return Section(metric, heading, text, [x, *scores.columns], rows)


def _number(part: Part) -> str:
    n_datasets = len(part.datasets)
    return "1 dataset" if n_datasets == 1 else f"{n_datasets} datasets"


def _counted(table: ScoreTable) -> str:
    """Return how many runs there are, and how many of each in a cell."""
    counts = table.counts[table.counts > 0]
    low, high = counts.min(), counts.max()
    each = f"{low}" if low == high else f"{low} to {high}"
    return f"{counts.sum()} runs, {each} of each"


def _paper_notes(scores: Sweep, x: str, part: Part) -> dict[tuple[int, int], str]:
    """Return the paper's numbers by row and column, in words."""
    # The first of the columns of a method has what the paper's tables were made with.
    first: dict[str, int] = {}
    for j, column in enumerate(scores.columns):
        first.setdefault(column.split(",")[0], j)
    return {
        (i, first[method]): f"paper {mean:.2f}"
        for method, means in _points(scores, x, part).items()
        for i, mean in enumerate(means)
        if not np.isnan(mean)
    }


def _points(scores: Sweep, x: str, part: Part) -> dict[str, Any]:
    return published_points(
        scores.metric, x, scores.values, part.datasets, part.methods
    )


def _swept_cell(mean: float, error: float, best: bool, note: str) -> Cell:
    if np.isnan(mean):
        return Cell("-")
    spread = "" if np.isnan(error) else f"{error:.2f}"
    return Cell(f"{mean:.2f}", spread, note, int(best))


def _test_sentence(table: ScoreTable) -> str:
    test = rank_test(table)
    if test.p_value != test.p_value:  # NaN: nothing to test
        return "Too few datasets or methods for a test of the ranks."
    return (
        f"Friedman's test of equal ranks: chi-square {test.statistic:.2f}, p = "
        f"{test.p_value:.2g}; Nemenyi's critical difference at {test.alpha:g} is "
        f"{test.critical_difference:.2f} mean ranks over {test.n_datasets} datasets. "
        f"Not told apart from the best, {_leaders(table, test)}."
    )


def _leaders(table: ScoreTable, test: RankTest) -> str:
    best = int(test.mean_ranks.argmin())
    behind = test.mean_ranks - test.mean_ranks[best]
    near = [
        table.methods[j]
        for j in np.argsort(test.mean_ranks, kind="stable")
        if j != best and behind[j] <= test.critical_difference
    ]
    return f"{table.methods[best]}: {', '.join(near) or 'none'}"


def _distance_section(table: ScoreTable) -> Section:
    """Return how far each method is from its published scores."""
    headers = ["method", "datasets", "average score", "paper", "mean difference"]
    rows = [
        (
            each.method,
            each.n_datasets,
            f"{each.ours:.2f}",
            f"{each.published:.2f}",
            f"{each.mean:+.2f}",
            f"{each.mean_absolute:.2f}",
            ", ".join(f"{name} {gap:+.1f}" for name, gap in each.far) or "none",
        )
        for each in compare(table)
    ]
    return Section(
        f"{table.metric}_distance",
        f"{METRIC_TITLES[table.metric].split(' (')[0]}: distance from the paper",
        "Over all datasets with both scores. Far off is more than 3 points and two "
        "published standard deviations.",
        [*headers, "mean absolute difference", "far off"],
        plain_rows(rows),
    )


def _rank_figure(table: ScoreTable) -> Figure:
    return Figure(
        f"{table.metric}_ranks",
        f"Mean ranks by {METRIC_TITLES[table.metric]}; bars join methods that cannot "
        "be told apart.",
        CriticalDifferenceDisplay.from_table(table).plot().figure,
    )


def _figures(
    store: Store, metric: str, part: Part, shown: Shown, name: str
) -> Iterator[Figure]:
    title, over = METRIC_TITLES[metric], f"mean over {_number(part)}"
    for axis, kind in ((shown.curves, "curves"), (shown.bars, "bars")):
        if axis is None:
            continue
        scores = sweep(store, metric, axis.x, part.holds)
        if kind == "curves":
            paper = _points(scores, axis.x, part) if shown.published else {}
            curves = drawn.CurvesDisplay(scores, axis.label, paper)
            drawing = drawn.curves_figure(curves, split=axis.split)
            words = f"{title} against {axis.label}, {over}; bands are standard errors"
            beside = "stars are the paper's tables, over the same datasets"
        else:
            known = published_bars(metric, axis.x, scores.values)
            paper = known if shown.published else {}
            drawing = drawn.BarsDisplay(scores, axis.label, paper).plot().figure
            words = f"{title} by {axis.label}, {over}; whiskers are standard errors"
            beside = "diamonds are the paper's text, over thirty datasets"
        words += f" over runs; {beside}." if paper else " over runs."
        yield Figure(f"{name}_{kind}", words, drawing)


def _origin(store: Store) -> str:
    runs = list(store.runs.values())
    n_ok = sum(run["status"] == OK for run in runs)
    told = {v["mdec"] for run in runs if (v := run.get("versions"))}
    versions = sorted(told - {"unknown"})
    machines = sorted({ran_on(run) for run in runs if run.get("machine")})
    return (
        f"Study {store.study['name']}: {len(runs)} runs, {n_ok} with labels; mdec "
        f"{', '.join(versions) or 'unknown'} on {', '.join(machines) or 'unknown'}."
    )


def _as_csv(rows: list[tuple[Any, ...]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([LONG_COLUMNS, *rows])
    return text.getvalue()


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text.encode())
    return path
