"""``mdec bench`` and ``mdec datasets``: studies and their records, and the data."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from typer import Argument, Option

from mdec._support.progress import duration
from mdec.bench.datasets import (
    BASE_URL,
    data_dir,
    dataset_info,
    fetch_dataset,
    list_datasets,
)
from mdec.bench.pages import write_report
from mdec.bench.records import Parameters, read_records
from mdec.bench.run import Notify, StudyProgress, run_study
from mdec.bench.study import narrow, read_study, study_names

# Off a terminal every line stays.
SECONDS_BETWEEN_LINES = 10.0


bench_app = typer.Typer(
    help="Run studies: datasets x methods x repetitions.", no_args_is_help=True
)
datasets_app = typer.Typer(
    help="List, describe and fetch the paper's datasets.", no_args_is_help=True
)

Folder = Annotated[
    Path | None,
    Option("--folder", help="Folder of raw files; else MDEC_DATA, else yours."),
]


@bench_app.command("list", epilog="Examples:\n\nmdec bench list")
def list_studies() -> None:
    """List the studies that come with the package."""
    for name in study_names():
        typer.echo(f"{name:16} {read_study(name).title}")


@bench_app.command(
    epilog="Examples:\n\nmdec bench run paper-tables --jobs 2\n\n"
    "mdec bench run my-study.toml --dataset DS-05"
)
def run(
    study: Annotated[str, Argument(help="A .toml file, or a study's name.")],
    records: Annotated[
        Path | None, Option(help="File of records; else NAME.jsonl.")
    ] = None,
    jobs: Annotated[int, Option(help="Runs at the same time.")] = 1,
    dataset: Annotated[
        list[str] | None, Option(help="Only these ids, names or kinds.")
    ] = None,
    method: Annotated[list[str] | None, Option(help="Only these.")] = None,
    repetitions: Annotated[int | None, Option(help="At most so many of each.")] = None,
    retry: Annotated[
        bool, Option("--retry", help="Repeat runs that gave no labels.")
    ] = False,
    offline: Annotated[bool, Option("--offline", help="Download nothing.")] = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="Print errors only.")] = False,
) -> None:
    """Run what is not recorded yet; safe to stop and to start again."""
    part: Parameters = {"datasets": dataset or (), "methods": method or ()}
    chosen = narrow(read_study(study), **part, repetitions=repetitions)
    target = records or Path(f"{chosen.name}.jsonl")
    with _show_progress(quiet=quiet) as show:
        how: Parameters = {"n_jobs": jobs, "retry": retry, "offline": offline}
        end = run_study(chosen, target, **how, notify=show)
    for name, reason in end.unavailable.items():
        typer.echo(f"left out {name}: {reason}", err=True)
    if not quiet:
        typer.echo(
            f"{end.n_done} of {end.n_runs} runs in {target}, {end.n_failed} new ones "
            f"without labels; next: mdec bench report {target}"
        )


@contextmanager
def _show_progress(*, quiet: bool) -> Iterator[Notify | None]:
    """Yield a hook that shows progress: a bar on a terminal, elsewhere lines."""
    console = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    lines = not console.is_terminal
    last = -SECONDS_BETWEEN_LINES
    with Progress(*columns, console=console, disable=quiet or lines) as bar:
        task = bar.add_task("starting", total=None)

        def show(now: StudyProgress) -> None:
            nonlocal last
            left = f"about {duration(now.eta)} left, " if now.eta else ""
            text = f"{left}{now.last}"
            bar.update(task, description=escape(text))
            bar.update(task, total=now.n_runs, completed=now.n_done)
            due = time.monotonic() - last >= SECONDS_BETWEEN_LINES
            if lines and (due or now.n_done == now.n_runs):
                last = time.monotonic()
                done = f"{now.n_done} of {now.n_runs} runs"
                typer.echo(f"mdec: {done}, {text}", err=True)

        yield None if quiet else show


@bench_app.command(epilog="Examples:\n\nmdec bench report paper-tables.jsonl")
def report(
    records: Annotated[Path, Argument(help="File that `bench run` wrote.")],
    output: Annotated[Path | None, Option(help="Folder; else RECORDS-report.")] = None,
    metric: Annotated[
        list[str] | None, Option(help="Scores, instead of the study's.")
    ] = None,
    published: Annotated[
        bool | None, Option(help="Print the paper's numbers beside ours.")
    ] = None,
    figures: Annotated[bool, Option(help="Draw figures.")] = True,
) -> None:
    """Write tables, figures and pages from records; nothing is fitted again."""
    if not records.is_file():
        raise FileNotFoundError(f"there is no file {records}; check the path.")
    stem = records.name.removesuffix(".gz").removesuffix(".jsonl")
    folder = output or records.with_name(f"{stem}-report")
    shown: Parameters = {"metrics": metric or (), "published": published}
    files = write_report(read_records(records), folder, with_figures=figures, **shown)
    typer.echo(f"{len(files)} files in {folder}; start with {folder / 'report.html'}")


@datasets_app.command("list", epilog="Examples:\n\nmdec datasets list")
def list_known_datasets(
    kind: Annotated[
        str | None,
        Option(help="gene expression, image, speech, single cells, built-in."),
    ] = None,
    folder: Folder = None,
) -> None:
    """List the datasets, and which of them are on disk."""
    table = Table("id", "name", "N", "D", "K", "kind", "on disk", box=None)
    for info in list_datasets(kind):
        shape = (info.n_samples, info.n_features, info.n_classes)
        here = "yes"
        try:
            fetch_dataset(info.id, folder=folder, download=False)
        except FileNotFoundError:
            here = "by hand" if info.manual else "no"
        table.add_row(info.id, info.name, *map(str, shape), info.kind, here)
    Console().print(table)


@datasets_app.command(epilog="Examples:\n\nmdec datasets info DS-05")
def info(name: Annotated[str, Argument(help="Id or name.")]) -> None:
    """Show what is known about a dataset."""
    found = dataset_info(name)
    typer.echo(f"{found.id}  {found.name}")
    typer.echo(
        f"{found.n_samples} samples, {found.n_features} features, "
        f"{found.n_classes} classes, {found.kind}"
    )
    for label, text in {
        "source": found.source,
        "citation": found.citation,
        "note": found.note,
        "to be supplied": found.manual,
    }.items():
        if text:
            typer.echo(f"{label}: {text}")
    for file in found.files:
        typer.echo(f"file: {file.url()} ({file.size} bytes, sha256 {file.sha256})")
    if found.data_sha256:
        typer.echo(f"as loaded: data sha256 {found.data_sha256}")
        typer.echo(f"as loaded: classes sha256 {found.classes_sha256}")


@datasets_app.command(epilog="Examples:\n\nmdec datasets fetch DS-05 DS-20")
def fetch(
    names: Annotated[
        list[str] | None, Argument(help="Ids or names; none for all.")
    ] = None,
    folder: Folder = None,
    mirror: Annotated[
        str, Option(help="Address that serves owner/name/commit/path.")
    ] = BASE_URL,
) -> None:
    """Download datasets, checking every byte."""
    wanted = names or [entry.id for entry in list_datasets() if not entry.manual]
    for name in wanted:
        paths = fetch_dataset(name, folder=folder, progress=True, base_url=mirror)
        typer.echo(f"{dataset_info(name).id}: {len(paths)} file(s) in place")


@datasets_app.command(epilog="Examples:\n\nmdec datasets path DS-05")
def path(
    name: Annotated[
        str | None, Argument(help="Id or name; none for the folder of all.")
    ] = None,
    folder: Folder = None,
) -> None:
    """Print where the files of a dataset lie."""
    if name is None:
        typer.echo(data_dir(folder))
        return
    for file in fetch_dataset(name, folder=folder, download=False):
        typer.echo(file)
