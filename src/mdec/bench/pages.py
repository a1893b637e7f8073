"""The report of a study: tables, figures and pages in one folder."""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mdec._support.files import write_atomically
from mdec._support.optional import import_optional
from mdec.bench import figures, summary
from mdec.bench.records import OK, Parameters, Record, Records
from mdec.bench.summary import (
    METRIC_TITLES,
    ScoreTable,
    Sweep,
    hardware,
    published_table,
    score_table,
)

_CLOCKS = {
    "cpu_seconds": "One worker on one core; the paper's are seconds of the clock.",
    "seconds": "Seconds of the clock with one worker for each run; other work on the "
    "machine makes them longer than those of the CPU.",
}

# How scores against a parameter are drawn, with what of the paper, and in what words.
_DRAWINGS = {
    "curves": (
        *(figures.curves_figure, summary.published_points, "against", "bands"),
        "; stars are the paper's tables, over the same datasets",
    ),
    "bars": (
        *(figures.bars_figure, summary.published_bars, "by", "whiskers"),
        "; diamonds are the paper's text, over thirty datasets",
    ),
}

TABLE_FORMATS = ("md", "html", "tex")
# The best of a row is bold in brackets, the next two are bold.
N_MARKED = 3
_LATEX = str.maketrans(
    {sign: f"\\{sign}" for sign in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}"}
    | {"^": r"\textasciicircum{}"}
)


class Cell(NamedTuple):
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


class Figure(NamedTuple):
    """A figure of the report: file name, caption and the function that draws it."""

    name: str
    caption: str
    draw: Callable[[], Any]


Rows = list[tuple[str, list[Cell]]]


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


def write_report(
    records: Records,
    folder: str | os.PathLike[str],
    *,
    metrics: Sequence[str] = (),
    published: bool | None = None,
    with_figures: bool = True,
) -> list[Path]:
    """Write the report of a study from its records, and return the files written.

    Parameters
    ----------
    records : Records
        From `read_records`.
    folder : path-like
        Where to write report.md, report.html, scores.csv, tables/ and figures/.
    metrics : sequence of str
        Scores to show; empty for those that the study asks for.
    published : bool, default=None
        Print the paper's numbers and the differences; None as the study says.
    with_figures : bool, default=True
        Draw figures, which needs matplotlib.
    """
    if not records.runs:
        raise ValueError("there are no runs in these records yet; run the study first.")
    import_optional("jinja2", needed_for="reports", install="mdec[report]")
    options = {"metrics": ("nmi_max", "ari"), **records.study.get("report", {})}
    options["metrics"] = metrics or options["metrics"]
    if published is not None:
        options["published"] = published
    sections = list(_sections(records, options))
    if not with_figures:
        sections = [replace(each, figures=[]) for each in sections if each.headers]
    # All is computed and drawn before anything is written.
    shown = [figure for section in sections for figure in section.figures]
    drawings = {figure.name: figure.draw() for figure in shown}
    texts = {"scores.csv": _scores_csv(records, options["metrics"])}
    for section in sections:
        for kind in TABLE_FORMATS if section.headers else ():
            table = render(f"table.{kind}", section=section)
            texts[f"tables/{section.name}.{kind}"] = table
    title, origin = records.study.get("title", records.study["name"]), _origin(records)
    for kind in ("md", "html"):
        page = render(f"study.{kind}", title=title, origin=origin, sections=sections)
        texts[f"report.{kind}"] = page
    written = []
    for name, text in texts.items():
        written.append(Path(folder) / name)
        written[-1].parent.mkdir(parents=True, exist_ok=True)
        write_atomically(written[-1], text.encode())
    for name, drawing in drawings.items():
        written += figures.save_figure(drawing, Path(folder) / "figures" / name)
    return written


def _scores_csv(records: Records, metrics: Sequence[str]) -> str:
    """Return all means as one table, a row for each metric, dataset and method."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["metric", "dataset", "method", "mean", "std", "runs", "status"])
    for table in (score_table(records, metric) for metric in metrics):
        for i, j in np.ndindex(table.mean.shape):
            names = table.metric, table.datasets[i], table.methods[j]
            scores = [f"{each[i, j]:.4f}" for each in (table.mean, table.std)]
            known = ["" if score == "nan" else score for score in scores]
            status = table.status[i, j] or OK
            writer.writerow([*names, *known, table.counts[i, j], status])
    return text.getvalue()


def _origin(records: Records) -> str:
    runs = list(records.runs.values())
    n_ok = sum(run["status"] == OK for run in runs)
    versions = {v["mdec"] for run in runs if (v := run.get("versions"))} - {"unknown"}
    machines = {hardware(run) for run in runs if run.get("machine")}
    return (
        f"Study {records.study['name']}: {len(runs)} runs, {n_ok} with labels; mdec "
        f"{', '.join(sorted(versions)) or 'unknown'} on "
        f"{', '.join(sorted(machines)) or 'unknown'}."
    )


def _sections(records: Records, options: Parameters) -> Iterator[Section]:
    grid = summary.parameter_grid(records.study)
    published = options.get("published", False)
    for metric in options["metrics"]:
        table = score_table(records, metric)
        if grid:
            yield from _sweep_sections(table, grid, options)
            continue
        common = table.in_common()
        section = score_section(table, published)
        if options.get("critical_difference") and len(table.methods) > 2:
            words = f"Mean ranks by {METRIC_TITLES[metric]}; bars join methods that "
            caption = f"{words}do not differ significantly."
            draw = partial(figures.rank_figure, common)
            section.figures.append(Figure(f"{metric}_ranks", caption, draw))
        yield section
        if published and published_table(metric).datasets:
            yield summary_section(common)
            yield distance_section(table)
    # The times on each processor apart, and those with a device.
    runs = records.runs.values()
    used = Counter(hardware(run) for run in runs if run["status"] == OK)
    names = [name for name, _ in used.most_common()] if options.get("times") else []
    for number, name in enumerate(names, 1):
        # What a device does costs no CPU seconds.
        for metric in ["seconds"] if " with " in name else ["cpu_seconds", "seconds"]:
            table = score_table(records, metric, partial(_ran_on, name))
            section = score_section(table, published)
            section.text += f" {_CLOCKS[metric]}"
            if len(names) > 1:
                section.name += f"_{number}"
                section.heading += f", on {name}"
            if number == 1 and metric == "cpu_seconds":
                words = f"{METRIC_TITLES[metric]}, of each method on each dataset."
                draw = partial(figures.growth_figure, records, table)
                section.figures.append(Figure("growth", words, draw))
            yield section
    lost = Counter(
        (run["dataset"], run["method"], run["status"], run["message"])
        for run in runs
        if run["status"] != OK
    )
    if lost:
        rows = [(*key[:3], lost[key], key[3]) for key in sorted(lost)]
        headers = ["dataset", "method", "status", "runs", "reason"]
        yield Section("failures", "Runs without labels", "", headers, plain_rows(rows))


def _ran_on(name: str, record: Record) -> bool:
    return hardware(record) == name


def score_section(table: ScoreTable, with_published: bool) -> Section:
    """Return the scores of all methods on all datasets, with what they are."""
    published = None
    if with_published:
        published = published_table(table.metric, table.datasets, table.methods)
    text = describe_scores(table)
    if not table.lower_is_better and len(table.methods) > 2:
        text += f" {describe_test(table.in_common())}"
    headers = ["dataset", *table.methods]
    rows = score_rows(table, published)
    return Section(table.metric, METRIC_TITLES[table.metric], text, headers, rows)


def describe_scores(table: ScoreTable) -> str:
    """Return one sentence that says what the numbers are."""
    text = (
        f"{'Seconds' if table.lower_is_better else 'Percent'}, mean ± standard "
        f"deviation of {_count(_usual_count(table), 'run')} unless a cell says "
        "otherwise."
    )
    n_common = len(table.in_common().datasets)
    if table.lower_is_better or n_common == len(table.datasets):
        return text
    return (
        f"{text} Averages, ranks and tests are over the {n_common} datasets on which "
        "every method was run."
    )


def describe_test(table: ScoreTable) -> str:
    """Return what Friedman's and Nemenyi's tests say of the ranks."""
    test = summary.rank_test(table)
    if np.isnan(test.p_value):
        return "Too few datasets or methods for a test of the ranks."
    best, *others = test.order()
    behind = test.mean_ranks - test.mean_ranks[best]
    near = [table.methods[j] for j in others if behind[j] <= test.critical_difference]
    return (
        f"Friedman's test of equal ranks: chi-square {test.statistic:.2f}, p = "
        f"{test.p_value:.2g}; Nemenyi's critical difference at {summary.ALPHA:g} is "
        f"{test.critical_difference:.2f} mean ranks over {test.n_datasets} datasets. "
        f"No significant difference from the best, {table.methods[best]}: "
        f"{', '.join(near) or 'none'}."
    )


def score_rows(table: ScoreTable, published: ScoreTable | None = None) -> Rows:
    """Return the cells of a table, the best three of each row marked.

    One row for each dataset, then average score, average rank and top three, over the
    datasets on which every method was run. Published numbers, of the same datasets and
    methods, are printed beside the scores, with the difference.
    """
    places = table.ranks().astype(int)
    places[(places > N_MARKED) | (len(table.methods) <= N_MARKED)] = 0
    usual = _usual_count(table)
    rows: Rows = [(name, []) for name in table.datasets]
    for i, j in np.ndindex(table.mean.shape):
        if table.status[i, j]:
            rows[i][1].append(Cell(str(table.status[i, j])))
            continue
        mean, count = table.mean[i, j], int(table.counts[i, j])
        notes = [_count(count, "run")] if count != usual else []
        if published is not None and not np.isnan(value := published.mean[i, j]):
            # Adding zero turns a rounded minus zero into zero.
            difference = round(float(mean - value), 2) + 0.0
            notes.append(f"paper {value:.2f}, {difference:+.2f}")
        elif published is not None and published.status[i, j] != summary.NOT_RUN:
            notes.append(f"paper {published.status[i, j]}")
        spread = f"{table.std[i, j]:.2f}" if count > 1 else ""
        place = int(places[i, j])
        rows[i][1].append(Cell(f"{mean:.2f}", spread, ", ".join(notes), place))
    if table.lower_is_better:
        return rows
    names = ("average score", "average rank", "top three")
    ends = zip(names, _summarize(table.in_common()), strict=True)
    return rows + plain_rows([(name, *texts) for name, texts in ends])


def plain_rows(rows: Sequence[Sequence[object]]) -> Rows:
    """Return rows of values as cells, the first value naming the row."""
    return [(str(row[0]), [Cell(str(value)) for value in row[1:]]) for row in rows]


def summary_section(table: ScoreTable) -> Section:
    """Return the summary rows beside those of the paper on the same datasets."""
    paper = published_table(table.metric, table.datasets, table.methods)
    pairs = zip(_summarize(table), _summarize(paper), strict=True)
    columns = [column for pair in pairs for column in pair]
    headers = ["method", "average score", "paper", "average rank", "paper"]
    return Section(
        f"{table.metric}_summary",
        f"{summary.short_title(table.metric)}: summary beside the paper's",
        f"Both from the same {len(table.datasets)} datasets and methods.",
        [*headers, "among the first three", "paper"],
        plain_rows(list(zip(table.methods, *columns, strict=True))),
    )


def distance_section(table: ScoreTable) -> Section:
    """Return how far each method is from its published scores."""
    paper = published_table(table.metric, table.datasets, table.methods)
    rows = []
    for j, method in enumerate(table.methods):
        gaps = table.mean[:, j] - paper.mean[:, j]
        both = ~np.isnan(gaps)
        if both.any():
            far = np.flatnonzero(np.abs(gaps) > np.maximum(3.0, 2.0 * paper.std[:, j]))
            words = [f"{table.datasets[i]} {gaps[i]:+.1f}" for i in far]
            means = [f"{each.mean[both, j].mean():.2f}" for each in (table, paper)]
            gap = gaps[both]
            means += [f"{gap.mean():+.2f}", f"{np.abs(gap).mean():.2f}"]
            rows.append((method, gap.size, *means, ", ".join(words) or "none"))
    headers = ["method", "datasets", "average score", "paper", "mean difference"]
    return Section(
        f"{table.metric}_distance",
        f"{summary.short_title(table.metric)}: distance from the paper",
        "Over all datasets with both scores. Far off is more than 3 points and two "
        "published standard deviations.",
        [*headers, "mean absolute difference", "far off"],
        plain_rows(rows),
    )


def _sweep_sections(
    table: ScoreTable, grid: dict[str, list[Any]], options: Parameters
) -> Iterator[Section]:
    """Yield means against the first parameter, for each part whose means compare."""
    x, metric, published = next(iter(grid)), table.metric, options.get("published")
    title = METRIC_TITLES[metric]
    axes = {kind: options[kind] for kind in _DRAWINGS if kind in options}
    for axis in axes.values():
        if axis["x"] not in grid:
            raise ValueError(
                f"the study does not vary {axis['x']!r}; name a varied parameter."
            )
    for number, part in enumerate(summary.comparable_parts(table), 1):
        section = _sweep_section(summary.sweep(part, x, grid[x]), published)
        section.name += f"_{number}" if number > 1 else ""
        n_datasets = _count(len(part.datasets), "dataset")
        for kind, axis in axes.items():
            draw, of_paper, versus, spread, beside = _DRAWINGS[kind]
            scores = summary.sweep(part, axis["x"], grid[axis["x"]])
            paper = of_paper(scores) if published else {}
            words = (
                f"{title} {versus} {axis['label']}, mean over {n_datasets}; {spread} "
                f"are standard errors over runs{beside if paper else ''}."
            )
            drawn = partial(draw, scores, axis, paper)
            section.figures.append(Figure(f"{section.name}_{kind}", words, drawn))
        yield section
        kinds = part.by_kind()
        for kind, alike in kinds.items() if len(kinds) > 1 else ():
            inner = _sweep_section(summary.sweep(alike, x, grid[x]), published)
            inner.name = f"{section.name}_{kind.replace(' ', '_')}"
            inner.heading += f", {kind}"
            yield inner
    if axis := axes.get("curves"):
        words = f"{title} against {axis['label']}, dataset by dataset."
        drawn = partial(figures.grid_figure, table, axis, grid[axis["x"]])
        figure = Figure(f"{metric}_datasets", words, drawn)
        yield Section(f"{metric}_datasets", f"{title}: each dataset", figures=[figure])


def _sweep_section(scores: Sweep, with_published: bool | None) -> Section:
    """Return a row of means for each value of a parameter, the best marked."""
    metric, datasets = scores.table.metric, scores.table.datasets
    best = np.nan_to_num(scores.mean, nan=-np.inf).argmax(axis=0)
    paper = summary.published_points(scores) if with_published else {}
    rows: Rows = [(summary.format_value(value), []) for value in scores.values]
    for j, column in enumerate(scores.columns):
        # The first of the columns of a method has the settings of the paper's tables.
        points = paper.pop(summary.method_of(column), np.full(len(rows), np.nan))
        for i, (_, cells) in enumerate(rows):
            mean, error = scores.mean[i, j], scores.error[i, j]
            note = "" if np.isnan(points[i]) else f"paper {points[i]:.2f}"
            spread = "" if np.isnan(error) else f"{error:.2f}"
            cell = Cell(f"{mean:.2f}", spread, note, int(best[j] == i))
            cells.append(Cell("-") if np.isnan(mean) else cell)
    counts = scores.table.counts[scores.table.counts > 0]
    each = " to ".join(map(str, dict.fromkeys([counts.min(), counts.max()])))
    n_datasets = _count(len(datasets), "dataset")
    text = (
        f"Means over {n_datasets} ({', '.join(datasets)}) of {counts.sum()} runs, "
        f"{each} of each, ± the standard error over runs; the best of each column is "
        "marked."
    )
    heading = f"{METRIC_TITLES[metric]}, {n_datasets}"
    return Section(metric, heading, text, [scores.x, *scores.columns], rows)


def _summarize(table: ScoreTable) -> list[list[str]]:
    """Return average scores, average ranks and top-three counts of all methods."""
    means = table.average_score, table.average_rank
    texts = [["-" if np.isnan(m) else f"{m:.2f}" for m in each] for each in means]
    return [*texts, [str(count) for count in table.top_counts()]]


def _usual_count(table: ScoreTable) -> int:
    counts = table.counts[table.counts > 0]
    return int(np.bincount(counts).argmax()) if counts.size else 0


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def render(template: str, **content: Any) -> str:
    """Fill in a template of the package; one for HTML escapes all text."""
    jinja2 = import_optional("jinja2", needed_for="reports", install="mdec[report]")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("mdec.bench"),
        autoescape=template.endswith(".html"),
        keep_trailing_newline=True,
    )
    environment.filters["latex"] = lambda text: text.translate(_LATEX)
    return str(environment.get_template(template).render(content))
