"""``mdec fit``: a table in, clusters and a report out."""

from __future__ import annotations

import inspect
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from mdec._support.files import check_not_replaced
from mdec._support.optional import import_optional
from mdec.cli.inputs import Inputs, read_inputs
from mdec.cli.options import (
    ClusterOptions,
    FitOutputOptions,
    InputOptions,
    MethodOptions,
    OutputOptions,
    PrintOptions,
    name_flags,
    parse_k,
    with_groups,
)
from mdec.cli.output import examples, format_size, reading_parts, result_parts, show
from mdec.cli.progress import progress_bars, resumable
from mdec.clustering import Clustering, NumberOfClusters, check_n_clusters
from mdec.estimator import MDEC
from mdec.estimator.multiview import MultiViewMDEC
from mdec.report import RunNotes
from mdec.results import (
    MODEL,
    claim_result,
    own_files,
    result_files,
    write_result,
)
from mdec.results.tables import check_extra_tables, matrix_memory
from mdec.tables import read_table
from mdec.tables.budget import display_name
from mdec.tables.hdf5 import check_h5ad
from mdec.tables.roles import AmbiguousTableError
from mdec.tables.steps import UNITS, PreparedTable

EPILOG = examples(
    "mdec fit patients.csv --dry-run",
    "mdec fit expression.csv --transpose --out genes",
    "mdec fit patients.csv --label-column class --k 2:12 --jobs -1",
    "mdec fit cells.h5ad --k 10 --write-h5ad clustered.h5ad",
    "mdec fit expression.csv --view methylation.csv --view proteins.csv",
)

# Why a consensus function is taken that nobody asked for.
FOR_CELLS = (
    "The consensus is spectral, which serves counts and abundances of reads better "
    "than the hierarchical one; choose with --consensus."
)

# What the summary says of the base clusterings.
BASE_PARAMETERS = (
    *("ensemble_size", "max_features", "kernel", "mu_range", "n_neighbors_range"),
    *("base_n_clusters_range", "base", "max_samples", "device"),
)


@with_groups
def command(
    file: Annotated[
        Path,
        typer.Argument(
            help="Text (.csv, .tsv, .txt, .gct, also .gz), .xlsx, .parquet, .npz, "
            ".npy, .mat, .mtx or .h5ad; - for standard input."
        ),
    ],
    source: InputOptions,
    clusters: ClusterOptions,
    method: MethodOptions,
    output: FitOutputOptions,
) -> None:
    """Cluster a table of samples by features and write labels and a report."""
    start, model = time.perf_counter(), method.estimator(clusters)
    if output.write_h5ad is not None:
        _check_h5ad(file, output.write_h5ad, source)
    try:
        inputs = read_inputs(file, source)
    except AmbiguousTableError as error:
        if output.dry_run and error.reading is not None:
            known: dict[str, Any] = {"reading": dict(error.reading), "plan": None}
            for part in ("suspicious", "notes"):
                known["reading"][part] = list(map(name_flags, error.reading[part]))
            show(known, reading_parts, PrintOptions(as_json=output.as_json))
        raise
    n_samples = len(inputs.first.values)
    number = parse_k(clusters.k, n_samples)
    model.set_params(n_clusters=number, preparation=inputs.preparation)
    for_cells = clusters.consensus is None and inputs.of_cells
    if for_cells:
        model.set_params(consensus="spectral")
    settings = _describe(file, source, inputs, model, clusters.k)
    settings |= {"consensus_choice": FOR_CELLS} if for_cells else {}
    check_extra_tables(output.extra_tables, n_samples)
    names = result_files(output.extra_tables, n_samples, model=output.model)
    written = [output.out / name for name in {*names, *own_files(output.out)}]
    copies = [] if output.write_h5ad is None else [output.write_h5ad]
    check_not_replaced([file, *(source.view or ())], [*written, *copies])
    if output.dry_run:
        plan = _plan(settings, inputs) | {"out": str(output.out)}
        known = {"reading": inputs.first.table.reading, "plan": plan}
        show(known, reading_parts, PrintOptions(as_json=output.as_json))
        return
    if not output.silent:
        _announce(source, inputs, output)
        if for_cells:
            typer.echo(FOR_CELLS)
    notes = RunNotes(
        title=f"Clusters of {settings['file']}",
        settings=settings,
        timings={"reading": time.perf_counter() - start},
    )
    if not inputs.views:
        notes = replace(
            notes,
            preparation=inputs.words,
            raw=inputs.first.raw,
            python=partial(fit_lines, file, source, inputs.first, model),
        )
    summary = fit_and_write(
        MultiViewMDEC(model) if inputs.views else model,
        inputs.each("values"),
        output,
        names,
        resume=output.resume,
        test=clusters.test,
        table=inputs.each("table"),
        steps=inputs.steps,
        extra_tables=output.extra_tables,
        h5ad=None if output.write_h5ad is None else (file, output.write_h5ad),
        max_bytes=source.max_bytes,
        notes=notes,
    )
    show(summary, result_parts, output)


def fit_and_write(
    model: MDEC | MultiViewMDEC,
    X: Any,
    output: OutputOptions,
    names: Sequence[str],
    *,
    resume: bool,
    test: bool = True,
    **result: Any,
) -> dict[str, Any]:
    """Fit an estimator, resumably, and write its result.

    Parameters
    ----------
    model : MDEC or MultiViewMDEC
        The estimator.
    X : ndarray, or mapping of str to ndarray
        The values to fit it to.
    output : OutputOptions
        Where to write.
    names : sequence of str
        The files to write, see `mdec.results.result_files`.
    resume : bool
        Whether to go on with a run that was stopped.
    test : bool, default=True
        Whether to test if there are groups at all, where their number is chosen.
    **result
        Further parameters of `write_result`.

    Returns
    -------
    dict
        The summary.
    """
    parameter = "checkpoint" if isinstance(model, MDEC) else "estimator__checkpoint"
    with (
        claim_result(output.out, names, overwrite=output.overwrite),
        progress_bars(quiet=output.silent),
        resumable(output.out, resume=resume) as checkpoint,
    ):
        model.set_params(**{parameter: checkpoint})
        wanted = getattr(model, "n_clusters", 1)
        if test or isinstance(wanted, int):  # several tables are never tested
            model.fit(X)
        else:
            made = model.set_params(n_clusters=1).fit(X).clustering_
            model = model.with_clustering(choose_untested(made, wanted))
        model.set_params(**{parameter: None})
        return write_result(
            model.clustering_,
            output.out,
            model=model if MODEL in names else None,
            claim=False,
            **result,
        )


def choose_untested(made: Clustering, wanted: NumberOfClusters) -> Clustering:
    """Choose the number of clusters of an ensemble without a test for any groups."""
    ks = check_n_clusters(wanted, len(made.labels))
    settings = replace(made.settings, n_clusters=wanted)
    found = replace(made, settings=settings, selection=made.compare_k(ks)).recluster()
    return replace(found, timings=made.timings | found.timings)


def _check_h5ad(file: Path, target: Path, source: InputOptions) -> None:
    """Raise before a long run what would fail at its end."""
    if file.suffix.lower() != ".h5ad" or target.suffix.lower() != ".h5ad":
        raise ValueError(
            "--write-h5ad writes a copy of an .h5ad file; give one to read and a name "
            "that ends in .h5ad."
        )
    if source.transpose:
        raise ValueError(
            "--write-h5ad writes clusters of observations, and --transpose clusters "
            "the variables; give one of them."
        )
    if not target.parent.is_dir():
        raise ValueError(f"--write-h5ad: {str(target.parent)!r} is no folder.")
    if file.is_file():
        check_h5ad(file, source.max_bytes)
    import_optional("anndata", needed_for="--write-h5ad", install="mdec[anndata]")


def _describe(
    file: Path, source: InputOptions, inputs: Inputs, model: MDEC, k: str
) -> dict[str, Any]:
    """Return what the summary and the report say of the parameters."""
    optional = {
        "preparation": inputs.first.preparation,
        "min_confidence": model.min_confidence,
    }
    return {
        "file": display_name(file),
        "shape": inputs.shape,
        "transform": source.transform,
        "prepare": source.prepare,
        "k": k,
        "consensus": model.consensus,
        **{name: getattr(model, name) for name in (*BASE_PARAMETERS, "weighting")},
        **{name: value for name, value in optional.items() if value is not None},
        "seed": model.random_state,
        "command": shlex.join(["mdec", *sys.argv[1:]]),
    }


def _plan(settings: dict[str, Any], inputs: Inputs) -> dict[str, Any]:
    """Return what a dry run says would be done."""
    names = "transform", "prepare", "k", "ensemble_size", "consensus"
    plan = {name: settings[name] for name in names} | inputs.words
    views = {"views": inputs.views} if inputs.views else {}
    return plan | {"seed": settings["seed"]} | views


def _announce(source: InputOptions, inputs: Inputs, output: FitOutputOptions) -> None:
    """Print what was read and what is done to it."""
    reading = inputs.first.table.reading
    n_samples, n_features = reading["n_samples"], reading["n_features"]
    typer.echo(
        f"Read {n_samples} samples ({reading['samples'][0][:40]!r}, ...; named by "
        f"{reading['sample_names']}) with {n_features} features "
        f"({reading['features'][0][:40]!r}, ...); transform: {source.transform}."
    )
    if reading["missing"]:
        typer.echo(f"{reading['missing']} missing values were filled in.")
    if reading.get("n_without_class"):
        typer.echo(f"{reading['n_without_class']} samples have no known class.")
    for note in reading["notes"]:
        typer.echo(f"Note: {note}.")
    if "consensus" in output.extra_tables:
        n_bytes = format_size(matrix_memory(n_samples))
        typer.echo(f"The consensus matrix takes {n_bytes} of memory.")
    for line in inputs.lines if source.prepare != "none" else ():
        typer.echo(line)


def fit_lines(
    file: Path,
    source: InputOptions,
    table: PreparedTable,
    model: MDEC,
    n_clusters: NumberOfClusters,
) -> str:
    """Return the lines of Python that give the clusters of one table again."""
    read = [repr(str(file)), *_arguments(read_table, source.parameters(read_table))]
    imports = ["from mdec import MDEC", "from mdec.tables import read_table"]
    steps = [f"table = read_table({', '.join(read)})", "X = table.values"]
    how = ""
    if source.transform != "none":
        how = f"transform={source.transform!r}"
    elif table.raw is not None and table.preparation is None:
        how = "'auto'" if table.words["kind"] in (UNITS, "other") else "'expression'"
    if how and source.n_top_genes is not None:
        how += f", n_top_genes={source.n_top_genes}"
    if how:
        imports.append("from mdec.tables.steps import prepare_table")
        steps[1] = f"X = prepare_table(table, {how}).values"
    # The number of jobs changes no label.
    given = model.get_params() | {"n_clusters": 8, "n_jobs": None}
    number = repr(n_clusters) if isinstance(n_clusters, str) else str(n_clusters)
    made = ", ".join([number, *_arguments(MDEC, given)])
    return "\n".join([*imports, "", *steps, f"labels = MDEC({made}).fit_predict(X)"])


def _arguments(of: Callable[..., Any], values: Mapping[str, Any]) -> list[str]:
    """Return the values that differ from the defaults, as arguments in their order."""
    return [
        f"{name}={values[name]!r}"
        for name, each in inspect.signature(of).parameters.items()
        if name in values and values[name] != each.default
    ]
