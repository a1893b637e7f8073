"""``mdec bench``: run a study, and report on its records."""

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

from mdec._support.progress import duration
from mdec.cli._options import Quiet
from mdec.cli._output import examples
from mdec.experiments.records import read_records
from mdec.experiments.run import Notify, run_study
from mdec.experiments.run import Progress as StudyProgress
from mdec.experiments.study import narrow, read_study, study_names
from mdec.report.document import write_report

# Where nobody watches, lines are kept.
SECONDS_BETWEEN_LINES = 10.0

app = typer.Typer(
    help="Studies: datasets x methods x repetitions.", no_args_is_help=True
)


@app.command("list", epilog=examples("mdec bench list"))
def list_command() -> None:
    """List the studies that come with the package."""
    for name in study_names():
        typer.echo(f"{name:16} {read_study(name).title}")


@app.command(
    epilog=examples(
        "mdec bench run paper-tables --jobs 2",
        "mdec bench run my-study.toml --dataset DS-05",
    )
)
def run(
    study: Annotated[str, typer.Argument(help="A .toml file, or a study's name.")],
    records: Annotated[
        Path | None, typer.Option(help="File of records; else NAME.jsonl.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Runs at the same time.")] = 1,
    dataset: Annotated[
        list[str] | None, typer.Option(help="Only these ids, names or kinds.")
    ] = None,
    method: Annotated[list[str] | None, typer.Option(help="Only these.")] = None,
    repetitions: Annotated[
        int | None, typer.Option(help="At most so many of each.")
    ] = None,
    retry: Annotated[
        bool, typer.Option("--retry", help="Repeat runs that gave no labels.")
    ] = False,
    offline: Annotated[
        bool, typer.Option("--offline", help="Download nothing.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Run what is not recorded yet; safe to stop and to start again."""
    chosen = narrow(
        read_study(study),
        datasets=dataset or (),
        methods=method or (),
        repetitions=repetitions,
    )
    target = records or Path(f"{chosen.name}.jsonl")
    with _told_progress(quiet=quiet) as show:
        end = run_study(
            chosen, target, n_jobs=jobs, retry=retry, offline=offline, notify=show
        )
    for name, reason in end.unavailable.items():
        typer.echo(f"left out {name}: {reason}", err=True)
    if not quiet:
        typer.echo(
            f"{end.n_done} of {end.n_runs} runs in {target}, {end.n_failed} new ones "
            f"without labels; next: mdec bench report {target}"
        )


@contextmanager
def _told_progress(*, quiet: bool) -> Iterator[Notify | None]:
    """Yield what shows how far a study is: a bar on a terminal, elsewhere lines."""
    console = Console(stderr=True)
    if quiet:
        yield None
    elif console.is_terminal:
        columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
        with Progress(*columns, console=console) as bar:
            task = bar.add_task("starting", total=None)

            def move(now: StudyProgress) -> None:
                bar.update(
                    task,
                    total=now.n_runs,
                    completed=now.n_done,
                    description=escape(_how_far(now)),
                )

            yield move
    else:
        last = -SECONDS_BETWEEN_LINES

        def write(now: StudyProgress) -> None:
            nonlocal last
            due = time.monotonic() - last >= SECONDS_BETWEEN_LINES
            if due or now.n_done == now.n_runs:
                last = time.monotonic()
                counts = f"{now.n_done} of {now.n_runs} runs"
                typer.echo(f"mdec: {counts}, {_how_far(now)}", err=True)

        yield write


def _how_far(now: StudyProgress) -> str:
    if now.eta is None or now.n_done == now.n_runs:
        return now.last
    return f"about {duration(now.eta)} left, {now.last}"


@app.command(epilog=examples("mdec bench report paper-tables.jsonl"))
def report(
    records: Annotated[Path, typer.Argument(help="File that `bench run` wrote.")],
    output: Annotated[
        Path | None, typer.Option(help="Folder; else RECORDS-report.")
    ] = None,
    metric: Annotated[
        list[str] | None, typer.Option(help="Scores, instead of the study's.")
    ] = None,
    published: Annotated[
        bool | None, typer.Option(help="Print the paper's numbers beside ours.")
    ] = None,
    figures: Annotated[bool, typer.Option(help="Draw figures.")] = True,
) -> None:
    """Write tables, figures and pages from records; nothing is fitted again."""
    if not records.is_file():
        raise FileNotFoundError(f"there is no file {records}; check the path.")
    stem = records.name.removesuffix(".gz").removesuffix(".jsonl")
    folder = output or records.with_name(f"{stem}-report")
    files = write_report(
        read_records(records),
        folder,
        metrics=metric or (),
        published=published,
        with_figures=figures,
    )
    typer.echo(f"{len(files)} files in {folder}; start with {folder / 'report.html'}")
