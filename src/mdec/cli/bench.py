"""``mdec bench``: run a study, and report on its records."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar

from mdec.cli._output import examples
from mdec.experiments.records import read_records
from mdec.experiments.run import Progress, run_study
from mdec.experiments.study import narrow, read_study, study_names
from mdec.report.document import write_report

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
) -> None:
    """Run what is not recorded yet; safe to stop and to start again."""
    chosen = narrow(
        read_study(study),
        datasets=dataset or (),
        methods=method or (),
        repetitions=repetitions,
    )
    target = records or Path(f"{chosen.name}.jsonl")
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Bar(*columns) as bar:
        task = bar.add_task("starting", total=None)

        def show(now: Progress) -> None:
            left = "" if now.eta is None else f"{timedelta(seconds=int(now.eta))} left"
            bar.update(
                task,
                total=now.n_runs,
                completed=now.n_done,
                description=f"{left}  {now.last}",
            )

        end = run_study(
            chosen, target, n_jobs=jobs, retry=retry, offline=offline, notify=show
        )
        show(end)
    for name, reason in end.unavailable.items():
        typer.echo(f"left out {name}: {reason}", err=True)
    typer.echo(
        f"{end.n_done} of {end.n_runs} runs in {target}, {end.n_failed} new ones "
        f"without labels; next: mdec bench report {target}"
    )


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
