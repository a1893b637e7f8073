"""``mdec datasets``: what there is, where it lies, and how to get it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from mdec.cli._output import examples
from mdec.datasets import (
    BASE_URL,
    data_dir,
    dataset_info,
    fetch_dataset,
    list_datasets,
)

app = typer.Typer(help="The paper's datasets.", no_args_is_help=True)

Folder = Annotated[
    Path | None,
    typer.Option("--folder", help="Folder of raw files; else MDEC_DATA, else yours."),
]


@app.command("list", epilog=examples("mdec datasets list"))
def list_command(
    kind: Annotated[
        str | None,
        typer.Option(help="gene expression, image, speech or built-in."),
    ] = None,
    folder: Folder = None,
) -> None:
    """List the datasets, and which of them are on disk."""
    table = Table("id", "name", "N", "D", "K", "kind", "on disk", box=None)
    for info in list_datasets(kind):
        shape = (info.n_samples, info.n_features, info.n_classes)
        here = (
            "yes" if _on_disk(info.id, folder) else "by hand" if info.manual else "no"
        )
        table.add_row(info.id, info.name, *map(str, shape), info.kind, here)
    Console().print(table)


def _on_disk(name: str, folder: Path | None) -> bool:
    try:
        fetch_dataset(name, folder=folder, download=False)
    except FileNotFoundError:
        return False
    return True


@app.command(epilog=examples("mdec datasets info DS-05"))
def info(name: Annotated[str, typer.Argument(help="Id or name.")]) -> None:
    """Show what is known about a dataset."""
    found = dataset_info(name)
    typer.echo(f"{found.id}  {found.name}")
    typer.echo(
        f"{found.n_samples} samples, {found.n_features} features, "
        f"{found.n_classes} classes, {found.kind}"
    )
    typer.echo(f"source: {found.source}")
    if found.citation:
        typer.echo(f"citation: {found.citation}")
    for label, text in (("note", found.note), ("to be supplied", found.manual)):
        if text:
            typer.echo(f"{label}: {text}")
    for file in found.files:
        typer.echo(f"file: {file.url()} ({file.size} bytes, sha256 {file.sha256})")
    if found.data_sha256:
        typer.echo(f"as loaded: data sha256 {found.data_sha256}")
        typer.echo(f"as loaded: classes sha256 {found.classes_sha256}")


@app.command(epilog=examples("mdec datasets fetch DS-05 DS-20"))
def fetch(
    names: Annotated[
        list[str] | None, typer.Argument(help="Ids or names; none for all.")
    ] = None,
    folder: Folder = None,
    mirror: Annotated[
        str, typer.Option(help="Address that serves owner/name/commit/path.")
    ] = BASE_URL,
) -> None:
    """Download datasets, checking every byte."""
    wanted = names or [entry.id for entry in list_datasets() if not entry.manual]
    for name in wanted:
        paths = fetch_dataset(name, folder=folder, progress=True, base_url=mirror)
        typer.echo(f"{dataset_info(name).id}: {len(paths)} file(s) in place")


@app.command(epilog=examples("mdec datasets path DS-05"))
def path(
    name: Annotated[
        str | None, typer.Argument(help="Id or name; none for the folder of all.")
    ] = None,
    folder: Folder = None,
) -> None:
    """Print where the files of a dataset lie."""
    if name is None:
        typer.echo(data_dir(folder))
        return
    for file in fetch_dataset(name, folder=folder, download=False):
        typer.echo(file)
