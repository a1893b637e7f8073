"""``mdec compare``: two clusterings of the same samples side by side."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, Any

import numpy as np
import typer

from mdec._support.files import atomic_file, check_files, check_not_replaced
from mdec._support.optional import import_optional
from mdec.cli.options import (
    PATH,
    FileOptions,
    PrintOptions,
    option,
    out_option,
    with_groups,
)
from mdec.cli.output import comparison_parts
from mdec.consensus.partitions import match_clusters
from mdec.report.solutions import scores
from mdec.results.tables import format_rows
from mdec.tables.budget import list_names
from mdec.tables.clusterings import read_base_clusterings
from mdec.tables.text import escape_formula

# Columns that labels.csv and predicted.csv call their clusters.
CLUSTER = "cluster"
PICTURES = (".png", ".svg", ".pdf")

_COLUMN = "Column of the clustering in {}; the only one, or 'cluster', if absent."


@dataclass(frozen=True)
class SideOptions(FileOptions):
    """Which columns are compared."""

    column_a: str | None = option(_COLUMN.format("A"))
    column_b: str | None = option(_COLUMN.format("B"))


@dataclass(frozen=True)
class FileOutputOptions(PrintOptions):
    """Files to write."""

    out: Path | None = out_option(None, "Picture: a .png, .svg or .pdf file.")
    table: Path | None = option("Contingency table as a .csv file.", None, **PATH)


@with_groups
def compare(
    a: Annotated[Path, typer.Argument(help="Table of labels, or folder of a result.")],
    b: Annotated[Path, typer.Argument(help="The same, to compare it with.")],
    reading: SideOptions,
    output: FileOutputOptions,
) -> None:
    """Compare two clusterings: ARI, NMI, and which clusters are which.

    Samples are matched by their names. Clusters of B stand in the order that matches
    those of A best.

    Examples
    --------
    mdec compare result-a result-b
    mdec compare result/labels.csv truth.csv --out compared.svg
    mdec compare result result --column-b known_class
    """
    out, table = output.out, output.table
    if out is not None and out.suffix.lower() not in PICTURES:
        raise ValueError(f"--out {out} is not a picture; give {', '.join(PICTURES)}.")
    written = [each for each in (out, table) if each is not None]
    check_files(written)
    files = [each / "labels.csv" if each.is_dir() else each for each in (a, b)]
    check_not_replaced(files, written)
    if len({each.resolve() for each in written}) < len(written):
        raise ValueError("--out and --table name one file; give two.")
    first = _read(files[0], reading.column_a, reading)
    second = _read(files[1], reading.column_b, reading)
    shared = [name for name in first if name in second]
    if len(shared) < 2:
        raise ValueError(
            f"{str(a)!r} and {str(b)!r} share {len(shared)} samples by name; compare "
            "clusterings of the same samples, or name them with --id-column."
        )
    left, right = (
        np.array([side[name] for name in shared]) for side in (first, second)
    )
    rows, columns, counts = match_clusters(left, right)
    summary = {
        "a": str(a),
        "b": str(b),
        "n_samples": len(shared),
        "only_in_a": [name for name in first if name not in second],
        "only_in_b": [name for name in second if name not in first],
        **scores(left, right),
        "clusters_a": rows,
        "clusters_b": columns,
        "counts": counts.tolist(),
        "files": [str(each) for each in written],
    }
    with ExitStack() as both:  # or neither
        if table is not None:
            names = [escape_formula(each) for each in (CLUSTER, *columns)]
            cells = zip(map(escape_formula, rows), *counts.T.tolist(), strict=True)
            both.enter_context(atomic_file(table)).write(format_rows(names, cells))
        if out is not None:
            _draw(both.enter_context(atomic_file(out)), out.suffix, summary)
    output.show(summary, comparison_parts)


def _read(file: Path, column: str | None, reading: FileOptions) -> dict[str, str]:
    """Return the cluster of each sample that has one, by its name."""
    if not file.is_file():
        raise ValueError(
            f"{str(file)!r} is not a file; give a table of labels or a result folder."
        )
    if column is None and file.suffix.lower() == ".csv":
        with file.open(encoding="utf-8", errors="replace") as lines:
            names = lines.readline(10_000).strip().split(",")
        column = CLUSTER if CLUSTER in names else None
    labels, samples, members = read_base_clusterings(
        file, column=column, **reading.parameters(read_base_clusterings)
    )
    if len(members) > 1:
        raise ValueError(
            f"{file.name!r} holds {len(members)} clusterings ({list_names(members)}); "
            "say which with --column-a or --column-b."
        )
    pairs = zip(samples, labels[:, 0].tolist(), strict=True)
    return {name: label for name, label in pairs if label is not None}


def _draw(file: IO[bytes], ending: str, summary: dict[str, Any]) -> None:
    figures = import_optional(
        "matplotlib.figure", needed_for="the picture", install="mdec[report]"
    )
    counts = np.array(summary["counts"])
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    size = [max(3.5, 0.45 * n + 2.0) for n in counts.shape[::-1]]
    figure = figures.Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    axes.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    for i, j in np.ndindex(*counts.shape):
        shade = "white" if shares[i, j] > 0.6 else "black"
        if counts[i, j]:
            axes.text(j, i, str(counts[i, j]), ha="center", va="center", color=shade)
    for which, names in (("x", summary["clusters_b"]), ("y", summary["clusters_a"])):
        # Dollar signs would start a formula.
        shown = [name[:20].replace("$", r"\$") for name in names]
        upright = which == "x" and max(map(len, shown)) > 4
        axes.set(**{f"{which}ticks": range(len(names)), f"{which}ticklabels": shown})
        axes.tick_params(axis=which, length=0, rotation=90 if upright else 0)
    axes.set(xlabel="B", ylabel="A")
    axes.set_title(f"ARI {summary['ari']:.3f}, NMI {summary['nmi_max']:.3f}")
    figure.savefig(file, format=ending.lower().lstrip("."), dpi=150)
