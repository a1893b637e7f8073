"""What people see of a command: how far it is, and in the end its result."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import typer
from rich.console import Console, RenderableType
from rich.filesize import decimal
from rich.progress import MofNCompleteColumn, Progress
from rich.table import Table
from rich.text import Text

from mdec._support.progress import Progress as Hook
from mdec._support.progress import duration, progress_to
from mdec.engines.checkpoint import HEADER
from mdec.numerics.loops.jit import report_compiling
from mdec.tables.budget import list_names

Summary = dict[str, Any]

CHECKPOINT = "checkpoint"
EXIT_STOPPED = 130


def result_parts(summary: Summary) -> Iterator[RenderableType]:
    """Yield the K table, the clusters and the files of a result.

    That of a consensus matrix has clusters and files alone.
    """
    if "criteria" in summary:
        yield criteria_table(summary)
        yield f"Suggested K: {summary['suggested_n_clusters']}. {summary['reason']}\n"
        for each in summary["candidates"]:
            share = f"({100 * each['score']:.0f} % of the largest score)"
            yield f"  {each['n_clusters']}: {each['sentence']} {share}"
    yield record_table("Clusters", summary["clusters"])
    if "view_support" in summary:
        yield number_table(
            "Support by view",
            ["view", *(str(row["cluster"]) for row in summary["clusters"])],
            [[row["view"][:40], *row["clusters"]] for row in summary["view_support"]],
        )
    if scores := summary.get("scores"):
        yield (
            f"Against the known classes: NMI {scores['nmi_max']:.3f} (divided by the "
            f"larger entropy), ARI {scores['ari']:.3f}"
        )
    if "n_ambiguous" in summary:
        yield ambiguity_line(summary)
    if "n_left_out" in summary:
        yield f"{summary['n_left_out']} samples are left out (cluster -1)"
    model = summary.get("model", {})
    if "left_out" in model:
        yield f"No model was written: {model['left_out']}."
    for name, path in summary["files"].items():
        size = f" ({decimal(model['bytes'])})" if name == "model.npz" else ""
        yield Text(f"  {path}{size}")


def prediction_parts(summary: Summary) -> Iterator[RenderableType]:
    """Yield where new samples were placed."""
    yield from (f"Note: {note}." for note in summary["notes"])
    yield record_table("New samples", summary["clusters"])
    yield ambiguity_line(summary)
    if summary["n_unlike_training"]:
        yield (
            f"{summary['n_unlike_training']} of {summary['n_samples']} samples are "
            "unlike anything in training; their clusters mean little."
        )
    yield Text(f"  {summary['out']}")


def comparison_parts(summary: Summary) -> Iterator[RenderableType]:
    """Yield two clusterings side by side."""
    for which in ("a", "b"):
        if names := summary[f"only_in_{which}"]:
            yield (
                f"{len(names)} samples are only in {which.upper()} and left out: "
                f"{list_names(names)}."
            )
    yield number_table(
        "Samples in both",
        ["A / B", *(name[:20] for name in summary["clusters_b"])],
        [
            [name[:20], *(count or "." for count in counts)]
            for name, counts in zip(
                summary["clusters_a"], summary["counts"], strict=True
            )
        ],
    )
    yield (
        f"{summary['n_samples']} samples: ARI {summary['ari']:.3f}, NMI "
        f"{summary['nmi_max']:.3f} (divided by the larger entropy)"
    )
    yield from (Text(f"  {path}") for path in summary["files"])


def reading_parts(summary: Summary) -> Iterator[RenderableType]:
    """Yield what was read and what would be done."""
    read = {name.replace("_", " "): v for name, v in summary["reading"].items()}
    for name, value in (read | (summary["plan"] or {})).items():
        values = value if isinstance(value, list) else [value]
        if words := "; ".join(_format_value(each) for each in values):
            yield Text(f"{name:<22} {words}")


def _format_value(value: Any) -> str:
    if isinstance(value, dict):
        low, high = _format_value(value["min"]), _format_value(value["max"])
        return f"{value['name']} ({value['type']}, {low} to {high})"
    if isinstance(value, float):
        return f"{value:.6g}"
    words = {"None": "none", "True": "yes", "False": "no", "": "''"}
    return words.get(str(value), str(value))


def criteria_table(summary: Summary) -> Table:
    """Return the K table with the suggestion marked."""
    names = ["score", "eigengap", "merge_gap", "agreement", "silhouette", "pac"]
    mark = {summary["suggested_n_clusters"]: " *"}
    rows = [
        [
            f"{row['n_clusters']}{mark.get(row['n_clusters'], '')}",
            *(f"{row[name]:.3f}" if name in row else "" for name in names),
        ]
        for row in summary["criteria"]
    ]
    header = ["K", *(name.replace("_", " ") for name in names)]
    return number_table("Number of clusters", header, rows)


def record_table(title: str, records: Sequence[Mapping[str, Any]]) -> Table:
    """Return a table of clusters, records of the same keys."""
    names = [{"size": "samples"}.get(key, key.replace("_", " ")) for key in records[0]]
    return number_table(title, names, [list(each.values()) for each in records])


def number_table(
    title: str, header: Sequence[str], rows: Iterable[Sequence[Any]]
) -> Table:
    """Return a table of names on the left and numbers on the right."""
    table = Table(title=title, title_justify="left", box=None)
    for place, name in enumerate(header):
        table.add_column(Text(name), justify="right" if place else "left")
    for row in rows:
        cells = (f"{c:.2f}" if isinstance(c, float) else str(c) for c in row)
        table.add_row(*map(Text, cells))
    return table


def ambiguity_line(summary: Summary) -> str:
    """Return how many samples are ambiguous."""
    if summary["mean_confidence"] is None:
        return "all samples are in one cluster, so that none is ambiguous"
    return (
        f"{summary['n_ambiguous']} of {summary['n_samples']} samples are ambiguous; "
        f"mean confidence {summary['mean_confidence']:.2f}"
    )


@contextmanager
def progress_bars(*, quiet: bool) -> Iterator[None]:
    """Show how far the long steps are: bars on a terminal, and lines elsewhere."""
    if quiet:
        yield
        return
    columns = *Progress.get_default_columns(), MofNCompleteColumn()
    bars = Progress(*columns, console=Console(stderr=True))

    def show_bar(description: str) -> Hook:
        started: list[Any] = []

        def advance(done: int, total: int) -> None:
            if not started:
                bars.start()
                started.append(bars.add_task(description, total=total))
            bars.update(started[0], completed=done, total=total)

        return advance

    make = show_bar if bars.console.is_terminal else ProgressLines().hook
    hooks = {
        "members": make("base clusterings"),
        "null": make("testing whether there are groups"),
    }
    compiling = report_compiling(lambda line: bars.console.print(f"mdec: {line}"))
    try:
        with compiling, progress_to(**hooks):
            yield
    finally:
        if bars.tasks:
            bars.stop()


class ProgressLines:
    """Lines that say, every tenth of a step, how long the rest of it will take."""

    def __init__(self) -> None:
        self.last = time.monotonic()

    def hook(self, description: str) -> Hook:
        """Return a hook of one step, which begins where the one before has ended."""
        start, before = self.last, 0

        def advance(done: int, total: int) -> None:
            nonlocal start, before
            if before == 0 or done < before:
                start, before = self.last, 0
            self.last = time.monotonic()
            tenths, before = 10 * before // total, done
            if done < total and 10 * done // total == tenths:
                return
            left = (self.last - start) * (total - done) / max(done, 1)
            rest = f", about {duration(left)} left" if done < total else ""
            typer.echo(f"mdec: {description}: {done} of {total}{rest}", err=True)

        return advance


@contextmanager
def resumable(out: Path, *, resume: bool) -> Iterator[Path]:
    """Yield the folder of the checkpoint of a run, which goes when the run is done.

    Parameters
    ----------
    out : Path
        Folder of the results, and of the checkpoint until they are there.
    resume : bool
        Go on with an old checkpoint; without it one is refused.
    """
    folder = out / CHECKPOINT
    if not resume and any(folder.rglob(HEADER)):
        raise ValueError(
            f"{str(folder)!r} has a run that was stopped; add --resume to continue "
            "it, or give another --out."
        )
    try:
        yield folder
    except KeyboardInterrupt:
        n_members = len(list(folder.rglob("member-??????.npz")))
        typer.echo(
            f"mdec: stopped; {n_members} base clusterings are kept in {str(folder)!r}, "
            "and the same command with --resume continues.",
            err=True,
        )
        raise typer.Exit(EXIT_STOPPED) from None
    for each in [*folder.glob("view-*"), folder]:
        for file in [*each.glob("member-*"), each / HEADER]:
            file.unlink(missing_ok=True)
        with suppress(OSError):  # other files in it, and so the folder, stay
            each.rmdir()
