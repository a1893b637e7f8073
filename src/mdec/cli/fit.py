"""``mdec fit``: a table in, clusters and a report out."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from mdec._support.folders import claimed
from mdec.base.kernels import KERNELS
from mdec.cli._asked import ASKED, matrix_memory, parse_asked
from mdec.cli._model import Kept, Steps
from mdec.cli._options import (
    DEFAULT_GB,
    AsJson,
    Consensus,
    Drop,
    Header,
    IdColumn,
    Impute,
    Index,
    Jobs,
    MaxGb,
    Number,
    Out,
    Quiet,
    Seed,
    Transpose,
    Variable,
    Weighting,
)
from mdec.cli._output import examples, show_reading, show_summary, shown_size
from mdec.cli._prepare import PREPARE, prepare_values, told_lines
from mdec.cli._recipe import fit_recipe
from mdec.cli._run import run
from mdec.cli._views import read_views, ready_views, side_by_side, told_views
from mdec.cli._work import Request, anndata_package, parse_k, parse_pair
from mdec.consensus import CONSENSUS
from mdec.generation import resolved_base
from mdec.rows import opened
from mdec.tables.door import shown_name
from mdec.tables.reading import read_table
from mdec.tables.roles import Doubtful
from mdec.tables.values import TRANSFORMS, transformed
from mdec.weights import WEIGHTINGS

EPILOG = examples(
    "mdec fit patients.csv --dry-run",
    "mdec fit expression.csv --transpose --out genes",
    "mdec fit patients.csv --label-column class --k 2:12 --jobs -1",
    "mdec fit cells.h5ad --variable obsm/X_pca --write-h5ad clustered.h5ad",
    "mdec fit expression.csv --view methylation.csv --view proteins.csv",
)

NO_MODEL_OF_VIEWS = (
    "mdec predict places samples of one table; use MultiViewMDEC.save in Python"
)


def command(
    file: Annotated[
        Path,
        typer.Argument(
            help="Text (.csv, .tsv, .txt, .gct, also .gz), .xlsx, .parquet, .npz, "
            ".npy, .mat, .mtx or .h5ad; - for standard input."
        ),
    ],
    k: Number = "auto",
    out: Out = Path("mdec-result"),
    transpose: Transpose = False,
    label_column: Annotated[
        str | None, typer.Option(help="Column of known classes, to score against.")
    ] = None,
    id_column: IdColumn = None,
    drop: Drop = None,
    features: Annotated[
        list[str] | None,
        typer.Option(help="Column to cluster, a name or pattern; may be repeated."),
    ] = None,
    header: Header = None,
    index: Index = None,
    variable: Variable = None,
    impute: Impute = None,
    transform: Annotated[str, typer.Option(help=f"{', '.join(TRANSFORMS)}.")] = "none",
    prepare: Annotated[
        str,
        typer.Option(
            help="Look what the values are and prepare expression data first: "
            f"{', '.join(PREPARE)}."
        ),
    ] = "auto",
    consensus: Consensus = "hierarchical",
    ensemble_size: Annotated[int, typer.Option(help="Base clusterings.")] = 100,
    sampling_ratio: Annotated[
        float, typer.Option(help="Share of the features in each.")
    ] = 0.5,
    kernel: Annotated[
        str,
        typer.Option(
            help=f"{', '.join(KERNELS)}; of several, joined by commas, each base "
            "clustering draws its own."
        ),
    ] = "scaled_gaussian",
    mu_range: Annotated[str, typer.Option(help="Widths of the kernel.")] = "0.2:0.8",
    n_neighbors_range: Annotated[str, typer.Option(help="Neighbours.")] = "5:20",
    base_n_clusters_range: Annotated[
        str | None, typer.Option(help="Clusters per base clustering, such as 2:14.")
    ] = None,
    weighting: Weighting = "entropy",
    base: Annotated[
        str, typer.Option(help="Base clusterings by graph, by landmark, or auto.")
    ] = "graph",
    sample_ratio: Annotated[
        float, typer.Option(help="Share of the samples in each base clustering.")
    ] = 1.0,
    device: Annotated[
        str, typer.Option(help="Where to make base clusterings: cpu, cuda or auto.")
    ] = "cpu",
    seed: Seed = 0,
    jobs: Jobs = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a run that was stopped.")
    ] = False,
    model: Annotated[
        bool, typer.Option(help="Whether to write model.npz, for mdec predict.")
    ] = True,
    view: Annotated[
        list[Path] | None,
        typer.Option(
            help="Further table of the same samples, matched by name; may be repeated."
        ),
    ] = None,
    min_confidence: Annotated[
        float | None,
        typer.Option(min=0.0, max=1.0, help="Samples held less firmly get cluster -1."),
    ] = None,
    write: Annotated[
        str | None,
        typer.Option(help=f"Further tables, such as {','.join(ASKED)}."),
    ] = None,
    write_h5ad: Annotated[
        Path | None,
        typer.Option(help="Copy of an .h5ad file, with the clusters in obs and obsm."),
    ] = None,
    max_gb: MaxGb = DEFAULT_GB,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what was read, and stop.")
    ] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Cluster a table of samples by features and write labels and a report."""
    start = time.perf_counter()
    name = shown_name(file)
    if write_h5ad is not None:
        _check_h5ad(file, write_h5ad)
    reading: dict[str, Any] = {
        "transpose": transpose,
        "label_column": label_column,
        "id_column": id_column,
        "drop": tuple(drop or ()),
        "features": tuple(features or ()),
        "header": header,
        "index": index,
        "variable": variable,
        "impute": impute,
        "max_bytes": int(max_gb * 2**30),
    }
    try:
        table = read_table(file, **reading)
    except Doubtful as doubt:
        if dry_run and doubt.reading is not None:
            show_reading(doubt.reading, as_json=as_json)
        raise
    settings = {
        "ensemble_size": ensemble_size,
        "sampling_ratio": sampling_ratio,
        "kernel": kernel.split(",") if "," in kernel else kernel,
        **_ranges(mu_range, n_neighbors_range, base_n_clusters_range),
        "base": base,
        "sample_ratio": sample_ratio,
        "device": device,
    }
    _check_choices(consensus, weighting, transform, prepare)
    if jobs == 0:
        raise ValueError("--jobs 0 does no work; give 1 or more, or -1 for all cores.")
    parse_k(k, len(table.values))
    values = transformed(table.values, transform)
    drawable = resolved_base(base, device, opened(values)) == ("graph", "cpu")
    ready = prepare_values(table, values, prepare, transform, drawable=drawable)
    tables, more = read_views(table, file, view or (), reading)
    views = None
    shape = f"{values.shape[0]} samples x {values.shape[1]} features"
    seen, feature_names = ready.seen, ready.feature_names
    if len(tables) > 1:
        views = ready_views(
            tables, ready, settings, transform, prepare, drawable=drawable
        )
        table.reading["notes"] = [*table.reading["notes"], *more]
        seen, feature_names = side_by_side(views)
        counted = [f"{n} ({v.ready.values.shape[1]})" for n, v in views.items()]
        shape = f"{values.shape[0]} samples x features of {', '.join(counted)}"
    if ready.drawn is not None:
        settings["preparation"] = ready.drawn
    asked = parse_asked(write, len(values))
    described = {
        "file": name,
        "shape": shape,
        "transform": transform,
        "prepare": prepare,
        "k": k,
        "consensus": consensus,
        **settings,
        "weighting": weighting,
        **({} if min_confidence is None else {"min_confidence": min_confidence}),
        "seed": seed,
        "command": shlex.join(["mdec", *sys.argv[1:]]),
    }
    if dry_run:
        plan = {
            key: described[key]
            for key in ("transform", "prepare", "k", "ensemble_size", "consensus")
        }
        plan |= {**ready.told, "seed": seed, "out": str(out)}
        if views is not None:
            plan["views"] = list(views)
        show_reading(table.reading, plan, as_json=as_json)
        return
    steps = Steps.of(table, transform, ready.fitted, ready.told["prepared"])
    request = Request(
        k,
        consensus,
        weighting,
        table.sample_names,
        f"Clusters of {name}",
        described,
        values=seen,
        feature_names=feature_names,
        preparation=ready.told if views is None else None,
        raw=values if ready.told["prepared"] and views is None else None,
        known=table.labels,
        columns=table.columns,
        python=None
        if views is not None
        else fit_recipe(
            str(file),
            reading,
            transform,
            ready.told["kind"] if ready.told["prepared"] and not ready.drawn else None,
            {"consensus": consensus, "weighting": weighting, **settings}
            | {"min_confidence": min_confidence, "random_state": seed},
        ),
        reading=table.reading,
        seed=seed,
        n_jobs=jobs,
        h5ad=None if write_h5ad is None else (file, write_h5ad),
        kept=Kept(ready.values, steps, settings) if model and views is None else None,
        min_confidence=min_confidence,
        asked=asked,
        without_model=NO_MODEL_OF_VIEWS if model and views is not None else None,
        timings={"reading": time.perf_counter() - start},
    )
    if not (quiet or as_json):
        _say_what_was_read(table.reading, transform, transpose)
        if "consensus" in asked:
            n_bytes = shown_size(matrix_memory(len(values)))
            typer.echo(f"The consensus matrix takes {n_bytes} of memory.")
        if prepare != "none":
            for line in told_lines(ready.told) if views is None else told_views(views):
                typer.echo(line)
    with claimed(out):
        summary = run(
            ready.values,
            request,
            settings,
            out,
            views=views,
            resume=resume,
            quiet=quiet or as_json,
        )
    show_summary(summary, quiet=quiet, as_json=as_json)


def _ranges(mu: str, n_neighbors: str, base_n_clusters: str | None) -> dict[str, Any]:
    base = None
    if base_n_clusters is not None:
        base = parse_pair(base_n_clusters, "--base-n-clusters-range", int)
    return {
        "mu_range": parse_pair(mu, "--mu-range", float),
        "n_neighbors_range": parse_pair(n_neighbors, "--n-neighbors-range", int),
        "base_n_clusters_range": base,
    }


def _check_h5ad(file: Path, target: Path) -> None:
    """Raise before a long run what would fail at its end."""
    if file.suffix.lower() != ".h5ad" or target.suffix.lower() != ".h5ad":
        raise ValueError(
            "--write-h5ad writes a copy of an .h5ad file; give one to read and a name "
            "that ends in .h5ad."
        )
    if not target.parent.is_dir():
        raise ValueError(f"--write-h5ad: {str(target.parent)!r} is no folder.")
    anndata_package()


def _check_choices(
    consensus: str, weighting: str, transform: str, prepare: str
) -> None:
    for name, value, choices in (
        ("--consensus", consensus, tuple(CONSENSUS)),
        ("--weighting", weighting, tuple(WEIGHTINGS)),
        ("--transform", transform, TRANSFORMS),
        ("--prepare", prepare, PREPARE),
    ):
        if value not in choices:
            raise ValueError(f"{name} {value} is not one of {', '.join(choices)}.")


def _say_what_was_read(
    reading: dict[str, Any], transform: str, transpose: bool
) -> None:
    n_samples, n_features = reading["n_samples"], reading["n_features"]
    typer.echo(
        f"Read {n_samples} samples ({reading['samples'][0][:40]!r}, ...; named by "
        f"{reading['sample_names']}) with {n_features} features "
        f"({reading['features'][0][:40]!r}, ...); transform: {transform}."
    )
    if reading["missing"]:
        typer.echo(f"{reading['missing']} missing values were filled in.")
    if reading.get("n_without_class"):
        typer.echo(f"{reading['n_without_class']} samples have no known class.")
    for note in reading["notes"]:
        typer.echo(f"Note: {note}.")
    if not transpose and n_samples > 10 * n_features and n_samples > 500:
        typer.echo("If the samples are in columns, use --transpose.")
