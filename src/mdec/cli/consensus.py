"""``mdec consensus``: clusters from base clusterings that the user brings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from scipy import sparse

from mdec import results
from mdec._support.files import replace_together, write_atomically
from mdec.cli.fit import choose_number
from mdec.cli.options import (
    ClusterOptions,
    LayoutOptions,
    OutputOptions,
    command_line,
    option,
    parse_k,
    with_groups,
)
from mdec.cli.output import progress_bars, result_parts
from mdec.clustering import Settings, cluster_ensemble
from mdec.confidence import confidence, second_choice
from mdec.consensus import matrix as matrices
from mdec.ensemble import Ensemble
from mdec.prediction import TrainingRows
from mdec.report import RunNotes
from mdec.report.solutions import cluster_rows
from mdec.results.tables import format_csv, label_columns
from mdec.tables import Table
from mdec.tables.arrays import check_archive
from mdec.tables.budget import TableFile, display_name
from mdec.tables.clusterings import read_base_clusterings, read_consensus_matrix


@dataclass(frozen=True)
class LabelOptions(LayoutOptions):
    """How base clusterings, or a matrix, are laid out."""

    matrix: bool = option(
        "The file is a consensus matrix; needs --k.", False, "--matrix"
    )


@with_groups
def consensus(
    file: Annotated[
        Path,
        typer.Argument(
            help="Text, .xlsx or .parquet with one clustering in each column, or an "
            "ensemble.npz; - for standard input."
        ),
    ],
    layout: LabelOptions,
    clusters: ClusterOptions,
    output: OutputOptions,
) -> None:
    """Combine your own base clusterings; empty cells, NA and -1 are left out.

    Examples
    --------
    mdec consensus clusterings.csv --k auto --out combined
    mdec consensus mdec-result/ensemble.npz --k 4 --out four
    mdec consensus consensusMatrix.csv --matrix --k 4 --out cut
    """
    find = cut_matrix if layout.matrix else combine
    output.show(find(file, clusters, layout, output), result_parts)


def combine(
    file: Path, clusters: ClusterOptions, layout: LayoutOptions, output: OutputOptions
) -> dict[str, Any]:
    """Cluster the ensemble of a file and write the result."""
    ensemble, members, notes = _read_ensemble(file, layout)
    model: Any = None
    beside, steps = file.with_name(results.MODEL), None
    if ensemble.members and beside.is_file():
        found, found_steps = results.read_result_model(beside, layout.max_bytes)
        if np.array_equal(found.clustering_.ensemble.labels, ensemble.labels):
            model, steps = found, found_steps
            notes.append(f"Values and features come from {results.MODEL!r} beside it")
    n_samples, n_members = ensemble.labels.shape
    samples = list(ensemble.names.get("samples", map(str, range(1, n_samples + 1))))
    reading = {
        "file": display_name(file),
        "n_samples": n_samples,
        "n_members": n_members,
        "samples": samples[:5],
        "members": members[:5],
        "missing": int((ensemble.labels < 0).sum()),
        "notes": notes,
    }
    output.tell(
        f"Read {n_samples} samples ({samples[0][:40]!r}, ...) with {n_members} base "
        f"clusterings ({members[0][:40]!r}, ...); {reading['missing']} labels are "
        "missing.",
        *(f"{note}." for note in notes),
    )
    settings = Settings(
        parse_k(clusters.k, n_samples),
        clusters.consensus_function,
        clusters.weighting,
        None if model is None else model.clustering_.settings.min_confidence,
        clusters.seed,
    )
    described = {
        "file": display_name(file),
        "shape": f"{n_samples} samples x {n_members} base clusterings",
        **asdict(clusters),
        "command": command_line(),
    }
    rows = () if model is None else model.clustering_.rows
    names = results.result_files((), n_samples, model=model is not None)
    with output.claim(names, [file]), progress_bars(quiet=output.silent):
        clustering = choose_number(
            lambda k: cluster_ensemble(ensemble, replace(settings, n_clusters=k), rows),
            settings.n_clusters,
            test=clusters.test or not rows,
        )
        return results.write_result(
            clustering,
            output.out,
            table=_name_rows(ensemble, samples, rows, reading),
            model=None if model is None else model.with_clustering(clustering),
            steps=steps,
            notes=RunNotes(f"Consensus of {display_name(file)}", described),
            claim=False,
        )


def _read_ensemble(
    file: Path, layout: LayoutOptions
) -> tuple[Ensemble, list[str], list[str]]:
    """Return base clusterings, their names, and notes on where names come from."""
    if file.suffix.lower() != ".npz" or not file.is_file():
        given = layout.parameters(TableFile)
        labels, samples, members = read_base_clusterings(file, **given)
        names = {"samples": tuple(samples)}
        return replace(Ensemble.from_labels(labels), names=names), members, []
    check_archive(TableFile(file, max_bytes=layout.max_bytes))
    ensemble, notes = Ensemble.load(file), []
    if "samples" in ensemble.names:
        known = "classes" in ensemble.names
        what = "Names and known classes" if known else "Names of samples"
        notes.append(f"{what} come from {file.name!r}")
    return ensemble, [f"clustering {m + 1}" for m in range(len(ensemble))], notes


def _name_rows(
    ensemble: Ensemble,
    samples: list[str],
    rows: Sequence[TrainingRows],
    reading: dict[str, Any],
) -> Table | dict[str, Table]:
    """Return the names and known classes of an ensemble, with the values of a model."""
    classes = ensemble.names.get("classes")
    known = None if classes is None else np.array(classes)
    bare = Table(np.empty((len(samples), 0)), samples, [], known, reading)
    seen = [each.as_seen() for each in rows]
    if not seen or any(sparse.issparse(X) or len(X) < len(samples) for X in seen):
        return bare
    views = [view.name for view in ensemble.views]
    parts = [ensemble.view(i) for i in range(len(views))] or [ensemble]
    tables = []
    for X, part in zip(seen, parts, strict=True):
        numbers = [f"feature {j + 1}" for j in range(X.shape[1])]
        names = list(part.names.get("features", numbers))
        tables.append(replace(bare, values=X, feature_names=names))
    return dict(zip(views, tables, strict=True)) if views else tables[0]


def cut_matrix(
    file: Path, clusters: ClusterOptions, layout: LayoutOptions, output: OutputOptions
) -> dict[str, Any]:
    """Cluster a consensus matrix, write labels.csv and summary.json."""
    find, out = clusters.consensus_function, output.out
    if find not in matrices.METHODS:
        raise ValueError(
            f"--consensus {find} needs the clusterings themselves; a consensus matrix "
            f"is clustered by {' or '.join(matrices.METHODS)}."
        )
    given = layout.parameters(read_consensus_matrix)
    matrix, names = read_consensus_matrix(file, **given)
    similarity = matrices.check_matrix(matrix)
    number = parse_k(clusters.k, len(similarity))
    if not isinstance(number, int):
        raise ValueError(
            f"--k {clusters.k}: a consensus matrix alone does not say how many "
            "clusters there are; give a number, such as --k 4."
        )
    chosen: Any = {"consensus": find, "random_state": clusters.seed}
    labels = matrices.from_matrix(similarity, number, **chosen)
    association = matrices.matrix_associations(similarity, labels)
    sure, second = confidence(association, labels), second_choice(association, labels)
    numbers = np.arange(association.shape[1])
    files = ["labels.csv", results.SUMMARY]
    summary = {
        "file": display_name(file),
        "consensus": find,
        "seed": clusters.seed,
        "n_samples": len(labels),
        "n_clusters": len(numbers),
        "clusters": cluster_rows(association, labels, sure, numbers),
        "mean_confidence": float(sure.mean()),
        "files": {name: str(out / name) for name in files},
    }
    table = format_csv(label_columns(names, labels, sure, second))
    gone = results.own_files(out)
    with output.claim(files, [file]), replace_together(out, gone=gone) as new:
        write_atomically(new / "labels.csv", table)
        write_atomically(new / results.SUMMARY, json.dumps(summary, indent=1).encode())
    return summary
