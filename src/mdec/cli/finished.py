"""``mdec predict`` and ``mdec compare``: what is done with finished results."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, Any

import numpy as np
import typer

from mdec._support.files import (
    atomic_file,
    check_files,
    check_not_replaced,
    write_atomically,
)
from mdec._support.optional import import_optional
from mdec.cli.options import (
    PATH,
    FileOptions,
    PrintOptions,
    ReadOptions,
    WorkOptions,
    option,
    out_option,
    with_groups,
)
from mdec.cli.output import comparison_parts, prediction_parts
from mdec.confidence import AMBIGUOUS
from mdec.consensus.partitions import match_clusters
from mdec.estimator import MDEC
from mdec.report.solutions import scores
from mdec.results import read_result_model
from mdec.results.tables import format_csv, format_rows
from mdec.tables import Table
from mdec.tables.budget import TableFile, display_name, list_names
from mdec.tables.clusterings import read_base_clusterings
from mdec.tables.steps import TableSteps
from mdec.tables.text import escape_formula

# Columns that labels.csv and predicted.csv call their clusters.
CLUSTER = "cluster"
PICTURES = (".png", ".svg", ".pdf")

_COLUMN = "Column of the clustering in {}; the only one, or 'cluster', if absent."


@dataclass(frozen=True)
class TableOutputOptions(PrintOptions):
    """Where the table of new samples goes."""

    out: Path = out_option("predicted.csv", "Table of the clusters.")


@with_groups
def predict(
    model: Annotated[
        Path, typer.Argument(help="model.npz of a result, or what MDEC.save wrote.")
    ],
    file: Annotated[
        Path, typer.Argument(help="New table, in any format that mdec fit reads.")
    ],
    reading: ReadOptions,
    work: WorkOptions,
    output: TableOutputOptions,
) -> None:
    """Assign the samples of a new table to the clusters of a model.

    Features are matched by name. What was done to the training table is done to the
    new one. Rows unlike anything in training are flagged.

    Examples
    --------
    mdec predict mdec-result/model.npz new.csv
    mdec predict genes/model.npz new.csv --transpose --out new-clusters.csv
    """
    found = place_samples(model, file, reading, output.out, work.n_jobs)
    output.show(found, prediction_parts)


def place_samples(
    model: Path, file: Path, reading: ReadOptions, out: Path, jobs: int | None = None
) -> dict[str, Any]:
    """Place the samples of a table, write where, and return it in short."""
    check_files([out])
    check_not_replaced([model, file], [out])
    fitted, steps = read_result_model(model, reading.max_bytes)
    if not isinstance(fitted, MDEC):
        raise ValueError(
            f"{str(model)!r} is a model of several tables, and mdec predict takes one; "
            "use MultiViewMDEC.load in Python."
        )
    table = reading.read(
        file, known_features=steps.columns, encoding=steps.encoding, least_samples=1
    )
    notes = _match_features(table, steps, display_name(file))
    rows: Any = steps.apply(table.values)
    if hasattr(fitted, "feature_names_in_"):
        import pandas

        rows = pandas.DataFrame(rows, columns=fitted.feature_names_in_)
    clusters, sure, unlike = fitted.set_params(n_jobs=jobs).place(rows)
    unlike = unlike | steps.find_odd_means(table.values)
    columns = {
        "sample": [escape_formula(each) for each in table.sample_names],
        "cluster": clusters.tolist(),
        "confidence": [f"{value:.4f}" for value in sure],
        "unlike_training": ["true" if each else "false" for each in unlike],
    }
    write_atomically(out, format_csv(columns))
    return {
        "n_samples": len(clusters),
        "clusters": [
            {
                "cluster": int(cluster),
                "size": int(np.sum(clusters == cluster)),
                "confidence": float(sure[clusters == cluster].mean()),
                "unlike_training": int(unlike[clusters == cluster].sum()),
            }
            for cluster in np.unique(clusters)
        ],
        "mean_confidence": float(sure.mean()),
        "n_ambiguous": int((sure < AMBIGUOUS).sum()),
        "n_unlike_training": int(unlike.sum()),
        "notes": notes,
        "model": str(model),
        "file": display_name(file),
        "out": str(out),
    }


def _match_features(table: Table, steps: TableSteps, name: str) -> list[str]:
    """Return notes on how features were found, or raise if they do not fit."""
    n_found = table.values.shape[1]
    if n_found != steps.n_features:
        raise ValueError(
            f"{name!r} has {n_found} features and the model {steps.n_features}, and "
            "without names on both sides they are matched by position; give the table "
            "with the names, or the columns, of the training table."
        )
    if steps.names is None or not table.reading["names_of_columns"]:
        which = "the model" if steps.names is None else repr(name)
        return [f"{which} has no names of features; they were matched by position"]
    n_extra = table.reading["n_left_out"]
    if not n_extra:
        return []
    are = "column is not a feature" if n_extra == 1 else "columns are not features"
    extra = list_names(table.reading["left_out"])
    return [f"{n_extra} {are} of the model: {extra}"]


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
        file, column=column, **reading.parameters(TableFile)
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
