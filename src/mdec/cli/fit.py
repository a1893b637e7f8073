"""``mdec fit``: a table in, clusters and a report out."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.filesize import decimal

from mdec._support.files import check_files, check_not_replaced
from mdec._support.optional import import_optional
from mdec._support.progress import duration
from mdec.anndata import default_consensus
from mdec.cli.options import (
    ClusterOptions,
    FitOutputOptions,
    InputOptions,
    MethodOptions,
    OutputOptions,
    command_line,
    name_flags,
    parse_k,
    with_groups,
)
from mdec.cli.output import progress_bars, reading_parts, result_parts, resumable
from mdec.clustering import Clustering, NumberOfClusters, check_n_clusters
from mdec.estimator import MDEC, MultiViewMDEC
from mdec.estimator.costs import estimate_memory, estimate_seconds
from mdec.generation import resolve_base
from mdec.preparation.recipes import MANY_CELLS, N_COMPONENTS
from mdec.report import RunNotes
from mdec.results import MODEL, result_files, write_result
from mdec.results.tables import check_extra_tables, matrix_memory
from mdec.rows import as_rows
from mdec.selection.rule import MAX_MEMBERS
from mdec.tables import read_table
from mdec.tables.budget import display_name
from mdec.tables.hdf5 import check_h5ad
from mdec.tables.reading import distinct_names, match_samples
from mdec.tables.roles import AmbiguousTableError
from mdec.tables.steps import UNITS, PreparedTable, TableSteps, prepare_table

OFF = "--prepare none"

# Work above which a shorter way is proposed, and the features that this way takes.
LONG_SECONDS, FEW_FEATURES = 60.0, 2000

# What is done to the values where no genes are chosen for all base clusterings.
HINDERING = {"transform": ("log", "standardise"), "prepare": ("none", "diversified")}

# Columns that are named are those of the first table.
NO_COLUMNS: dict[str, Any] = {
    **dict.fromkeys(["label_column", "variable"]),
    **dict.fromkeys(["drop", "features", "category_columns"], ()),
}

# Why a consensus function is taken that nobody asked for.
FOR_CELLS = (
    "The consensus is spectral, which suits counts and abundances of reads better "
    "than the hierarchical one; choose with --consensus."
)

# Parts of a reading that name parameters.
SENTENCES = ("suspicious", "notes")

# What the summary says of the base clusterings.
BASE_PARAMETERS = (
    *("ensemble_size", "max_features", "kernel", "mu_range", "n_neighbors_range"),
    *("base_n_clusters_range", "base", "max_samples", "device", "weighting"),
)


@with_groups
def fit(
    file: Annotated[
        Path,
        typer.Argument(
            help="Text (.csv, .tsv, .txt, .gct, also .gz), .xlsx, .parquet, .feather, "
            ".npz, .npy, .mat, .mtx or .h5ad; - for standard input."
        ),
    ],
    source: InputOptions,
    clusters: ClusterOptions,
    method: MethodOptions,
    output: FitOutputOptions,
) -> None:
    """Cluster a table of samples by features and write labels and a report.

    Examples
    --------
    mdec fit patients.csv --dry-run
    mdec fit expression.csv --transpose --out genes
    mdec fit patients.csv --label-column class --k 2:12 --jobs -1
    mdec fit cells.h5ad --k 10 --write-h5ad clustered.h5ad
    mdec fit expression.csv --view methylation.csv --view proteins.csv
    """
    start, files = time.perf_counter(), [file, *(source.view or ())]
    if output.write_h5ad is not None:
        _check_h5ad(files, output.write_h5ad, source)
    try:
        run = read_run(file, source, clusters, method)
    except AmbiguousTableError as error:
        if output.dry_run and error.reading is not None:
            _show_plan(error.reading, {}, output)
        raise
    settings = _describe(run, clusters)
    n_samples = len(run.first.values)
    check_extra_tables(output.extra_tables, n_samples)
    if output.dry_run:
        named = ("transform", "prepare", "k", "ensemble_size", "consensus")
        plan = {name: settings[name] for name in named} | run.words
        plan |= {"seed": settings["seed"], "estimated work": run.estimate()}
        plan |= {"views": run.views} if run.views else {}
        _show_plan(run.first.table.reading, plan | {"out": str(output.out)}, output)
        return
    output.tell(*introduce(run, output.extra_tables))
    title, read = f"Clusters of {settings['file']}", time.perf_counter() - start
    notes = RunNotes(title, settings, timings={"reading": read})
    if not run.views:
        told: Any = {"preparation": run.words, "raw": run.first.raw}
        notes = replace(notes, **told, python=partial(fit_lines, run))
    summary = fit_and_write(
        MultiViewMDEC(run.model) if run.views else run.model,
        run.each("values"),
        output,
        result_files(output.extra_tables, n_samples, model=output.model),
        read=files,
        resume=output.resume,
        test=clusters.test,
        table=run.each("table"),
        steps=run.steps,
        extra_tables=output.extra_tables,
        h5ad=None if output.write_h5ad is None else (file, output.write_h5ad),
        max_bytes=source.max_bytes,
        notes=notes,
    )
    output.show(summary, result_parts)


@dataclass(frozen=True, eq=False)
class Run:
    """What a run reads, one table or several views by their names, and its estimator.

    Whether the consensus `serves_cells` says that it is spectral, though nobody asked
    for it.
    """

    file: Path
    source: InputOptions
    tables: dict[str, PreparedTable]
    model: MDEC
    serves_cells: bool = False

    @property
    def first(self) -> PreparedTable:
        """The table, or that of the first view."""
        return next(iter(self.tables.values()))

    @property
    def views(self) -> list[str]:
        """Names of the views; none for one table."""
        return list(self.tables) if len(self.tables) > 1 else []

    def each(self, name: str) -> Any:
        """Return an attribute of the table, or of each view."""
        found = {key: getattr(table, name) for key, table in self.tables.items()}
        return found if self.views else found.popitem()[1]

    @property
    def steps(self) -> TableSteps:
        """What was done to the table; of views in words alone."""
        if not self.views:
            return self.first.steps
        done = self.each("steps")
        said = {n: each.description for n, each in done.items() if each.description}
        words = "; ".join(f"{name}: {each}" for name, each in said.items())
        n_features = sum(each.n_features for each in done.values())
        return TableSteps(n_features, None, description=words)

    @property
    def words(self) -> dict[str, str | None]:
        """What the first table holds, what is done to it, why, and how not to."""
        words = self.first.words
        return {**words, "flag": OFF if words["prepared"] else None}

    @property
    def shape(self) -> str:
        """The size in words."""
        size = f"{len(self.first.values)} samples x"
        if not self.views:
            return f"{size} {self.first.steps.n_features} features"
        widths = {n: each.values.shape[1] for n, each in self.tables.items()}
        listed = ", ".join(f"{name} ({width})" for name, width in widths.items())
        return f"{size} features of {listed}"

    def describe_preparation(self) -> Iterator[str]:
        """Yield lines on what was found in each table and what is done to it."""
        for name, each in self.tables.items():
            start, words = f"{name}: " if self.views else "", each.words
            if words["prepared"] is None:
                yield f"{start}Not prepared: {words['reason']}"
                continue
            kind = words["kind"] if words["kind"] != "other" else "no expression values"
            yield f"{start}Found {kind}: {words['reason']}"
            yield f"{start}Prepared: {words['prepared']}. Turn this off with {OFF}."

    def estimate(self) -> str:
        """Say about how much work it is, and what would shorten work that is long."""
        seconds, source = self.seconds(), self.source
        tables = [each.values for each in self.tables.values()]
        gigabytes = estimate_memory(tables, self.model) / 1e9
        words = f"about {duration(seconds)} of processor time for the base clusterings"
        words += f" and {gigabytes:.1f} GB of memory"
        many = len(self.first.values) > MANY_CELLS
        shorter = self.seconds(N_COMPONENTS if many else FEW_FEATURES)
        if source.n_top_genes is None and seconds > max(LONG_SECONDS, 2.0 * shorter):
            given = {name: getattr(source, name) for name in HINDERING}
            against = [f"--{f} {v}" for f, v in given.items() if v in HINDERING[f]]
            place = f" in place of {' and '.join(against)}" if against else ""
            way = f"--n-top-genes {FEW_FEATURES}{place}"
            words += f"; with {way}, about {duration(shorter)}"
        return words

    def seconds(self, most: float = math.inf) -> float:
        """Estimate the processor seconds of all base clusterings.

        Further ones are made to choose the number of clusters. Tables may keep `most`
        features at most.
        """
        model, total = self.model, 0.0
        size = model.ensemble_size
        if not isinstance(model.n_clusters, int):
            size += min(size, MAX_MEMBERS)
        for each in self.tables.values():
            base, _ = resolve_base(str(model.base), model.device, as_rows(each.values))
            n, d = each.values.shape
            seen = n * model.max_samples, min(d, most) * model.max_features
            total += size * estimate_seconds(base, *seen)
        return total


def read_run(
    file: Path, source: InputOptions, clusters: ClusterOptions, method: MethodOptions
) -> Run:
    """Read the tables of a run, prepare each by itself, and make the estimator.

    Further tables have the samples of the first, in its order. What names no column
    holds for all.
    """
    model, files = method.estimator(clusters), [file, *(source.view or ())]
    first = source.read(file, sparse=True)
    first.reading["notes"] = [name_flags(each) for each in first.reading["notes"]]
    names = distinct_names(files)
    tables = {names[0]: first}
    for name, other in zip(names[1:], files[1:], strict=True):
        table = source.read(other, **NO_COLUMNS, sparse=True)
        words = display_name(file), display_name(other)
        tables[name] = match_samples(first, table, *words)
    how: Any = source.prepare, source.transform
    genes = source.n_top_genes
    prepared = {n: prepare_table(t, *how, n_top_genes=genes) for n, t in tables.items()}
    drawn = {n: each.preparation for n, each in prepared.items() if each.preparation}
    alone = prepared[names[0]].preparation
    number = parse_k(clusters.k, first.values.shape[0])
    how = (drawn or None) if len(files) > 1 else alone
    model.set_params(n_clusters=number, preparation=how)
    suiting = {default_consensus(each.words) for each in prepared.values()}
    cells = clusters.consensus is None and suiting == {"spectral"}
    if cells:
        model.set_params(consensus="spectral")
    return Run(file, source, prepared, model, cells)


def fit_and_write(
    model: MDEC | MultiViewMDEC,
    X: Any,
    output: OutputOptions,
    names: Sequence[str],
    *,
    read: Sequence[Path] = (),
    resume: bool,
    test: bool = True,
    **result: Any,
) -> dict[str, Any]:
    """Fit an estimator to values, resumably, and return the summary of its result.

    Parameters
    ----------
    names : sequence of str
        The files to write, see `mdec.results.result_files`.
    read : sequence of Path, default=()
        The files that were read.
    resume : bool
        Whether to go on with a run that was stopped.
    test : bool, default=True
        Whether to test if there are groups at all, where their number is chosen.
    **result
        Further parameters of `write_result`.
    """
    prefix = "" if isinstance(model, MDEC) else "estimator__"

    def set_parameter(name: str, value: Any) -> MDEC | MultiViewMDEC:
        return model.set_params(**{f"{prefix}{name}": value})

    with (
        output.claim(names, read),
        progress_bars(quiet=output.silent),
        resumable(output.out, resume=resume) as checkpoint,
    ):
        set_parameter("checkpoint", checkpoint)
        found = choose_number(
            lambda k: set_parameter("n_clusters", k).fit(X).clustering_,
            model.get_params()[f"{prefix}n_clusters"],
            # Whether several tables have groups is never tested.
            test=test or bool(prefix),
        )
        # The lines of Python in the report are made of the model's parameters.
        set_parameter("checkpoint", None)
        kept = model.with_clustering(found) if MODEL in names else None
        return write_result(found, output.out, model=kept, claim=False, **result)


def choose_number(
    cluster: Callable[[Any], Clustering], wanted: NumberOfClusters, *, test: bool
) -> Clustering:
    """Cluster into a number of clusters that is given, or chosen with or without test.

    Without one, the ensemble is clustered as one cluster first, which tests nothing.
    """
    if test or isinstance(wanted, int):
        return cluster(wanted)
    made = cluster(1)
    ks = check_n_clusters(wanted, len(made.labels))
    settings = replace(made.settings, n_clusters=wanted)
    found = replace(made, settings=settings, selection=made.compare_k(ks)).recluster()
    return replace(found, timings=made.timings | found.timings)


def _check_h5ad(files: Sequence[Path], target: Path, source: InputOptions) -> None:
    """Raise before a long run what would fail at its end."""
    if files[0].suffix.lower() != ".h5ad" or target.suffix.lower() != ".h5ad":
        raise ValueError(
            "--write-h5ad writes a copy of an .h5ad file; give one to read and a name "
            "that ends in .h5ad."
        )
    if source.transpose:
        raise ValueError(
            "--write-h5ad writes clusters of observations, and --transpose clusters "
            "the variables; give one of them."
        )
    check_files([target])
    check_not_replaced(files, [target])
    if files[0].is_file():
        check_h5ad(files[0], source.max_bytes)
    import_optional("anndata", needed_for="--write-h5ad", install="mdec[anndata]")


def _describe(run: Run, clusters: ClusterOptions) -> dict[str, Any]:
    """Return what the summary and the report say of the parameters."""
    model = run.model
    optional = {
        "preparation": run.first.preparation,
        "min_confidence": model.min_confidence,
        "consensus_choice": FOR_CELLS if run.serves_cells else None,
    }
    return {
        "file": display_name(run.file),
        "shape": run.shape,
        "transform": run.source.transform,
        "prepare": run.source.prepare,
        "k": clusters.k,
        "consensus": model.consensus,
        **{name: getattr(model, name) for name in BASE_PARAMETERS},
        **{name: value for name, value in optional.items() if value is not None},
        "seed": model.random_state,
        "command": command_line(),
    }


def _show_plan(
    reading: dict[str, Any], plan: dict[str, Any], output: FitOutputOptions
) -> None:
    """Print what was read and what would be done, however quiet the command is."""
    named = [name for name in SENTENCES if name in reading]
    said = {name: list(map(name_flags, reading[name])) for name in named}
    known = {"reading": reading | said, "plan": plan or None}
    replace(output, quiet=False).show(known, reading_parts)


def introduce(run: Run, extra_tables: Sequence[str] = ()) -> Iterator[str]:
    """Yield lines on what was read, what is done to it, and how long that takes."""
    reading = run.first.table.reading
    n_samples, n_features = reading["n_samples"], reading["n_features"]
    yield (
        f"Read {n_samples} samples ({reading['samples'][0][:40]!r}, ...; named by "
        f"{reading['sample_names']}) with {n_features} features "
        f"({reading['features'][0][:40]!r}, ...); transform: {run.source.transform}."
    )
    if reading["missing"]:
        yield f"{reading['missing']} missing values were filled in."
    if reading.get("n_without_class"):
        yield f"{reading['n_without_class']} samples have no known class."
    yield from (f"Note: {note}." for note in reading["notes"])
    if "consensus" in extra_tables:
        n_bytes = decimal(matrix_memory(n_samples))
        yield f"The consensus matrix takes {n_bytes} of memory."
    yield from run.describe_preparation() if run.source.prepare != "none" else ()
    if run.serves_cells:
        yield FOR_CELLS
    yield f"Estimated work: {run.estimate()}."


def fit_lines(run: Run, n_clusters: NumberOfClusters) -> str:
    """Return the lines of Python that give the clusters of one table again."""
    source, table = run.source, run.first
    read = [repr(str(run.file)), *_arguments(read_table, source.parameters(read_table))]
    imports = ["from mdec import MDEC", "from mdec.tables import read_table"]
    steps = [f"table = read_table({', '.join(read)})", "X = table.values"]
    how = ""
    if source.transform != "none":
        how = f"transform={source.transform!r}"
    elif table.raw is not None and table.preparation is None:
        how = "'auto'" if table.words["kind"] in (UNITS, "other") else "'expression'"
    if how:
        imports.append("from mdec.tables.steps import prepare_table")
        genes = source.n_top_genes
        how += "" if genes is None else f", n_top_genes={genes}"
        steps[1] = f"X = prepare_table(table, {how}).values"
    # The number of jobs changes no label.
    given = run.model.get_params() | {"n_clusters": 8, "n_jobs": None}
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
