"""``mdec consensus``: clusters from base clusterings that the user brings."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from mdec._support.files import check_not_replaced
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
from mdec.consensus.matrix import (
    METHODS,
    check_matrix,
    from_matrix,
    matrix_associations,
)
from mdec.ensemble import Ensemble
from mdec.report import RunNotes
from mdec.results import (
    ENSEMBLE,
    MAIN_FILES,
    MODEL,
    claim_result,
    own_files,
    read_model_beside,
    result_files,
    tables_of,
    write_matrix_result,
    write_result,
)
from mdec.tables.arrays import check_archive
from mdec.tables.budget import TableFile, display_name
from mdec.tables.clusterings import read_base_clusterings, read_consensus_matrix


@dataclass(frozen=True)
class LabelOptions(LayoutOptions):
    """How base clusterings, or a matrix, are laid out."""

    matrix: bool = option("The file is a consensus matrix; needs --k.", False)


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
    own = own_files(output.out)
    # The ensemble of a folder may be clustered again in it: it is written as it was.
    others = {*MAIN_FILES, MODEL, *own} - ({ENSEMBLE} & own)
    check_not_replaced([file], [output.out / name for name in others])
    find = cut_matrix if layout.matrix else combine
    output.show(find(file, clusters, layout, output), result_parts)


def combine(
    file: Path, clusters: ClusterOptions, layout: LayoutOptions, output: OutputOptions
) -> dict[str, Any]:
    """Cluster the ensemble of a file and write the result."""
    ensemble, members, notes = _read_ensemble(file, layout)
    model, steps = read_model_beside(file, ensemble, layout.max_bytes)
    if model is not None:
        notes.append(f"Values and features come from {MODEL!r} beside it")
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
    names = result_files((), n_samples, model=model is not None)
    claim = claim_result(output.out, names, overwrite=output.overwrite)
    with claim, progress_bars(quiet=output.silent):
        clustering = choose_number(
            lambda k: cluster_ensemble(ensemble, replace(settings, n_clusters=k), rows),
            settings.n_clusters,
            test=clusters.test or not rows,
        )
        return write_result(
            clustering,
            output.out,
            table=tables_of(ensemble, samples, rows, reading),
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
        given = layout.parameters(read_base_clusterings)
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


def cut_matrix(
    file: Path, clusters: ClusterOptions, layout: LayoutOptions, output: OutputOptions
) -> dict[str, Any]:
    """Cluster a consensus matrix, write labels.csv and summary.json."""
    find = clusters.consensus_function
    if find not in METHODS:
        raise ValueError(
            f"--consensus {find} needs the clusterings themselves; a consensus matrix "
            f"is clustered by {' or '.join(METHODS)}."
        )
    matrix, names = read_consensus_matrix(
        file, **layout.parameters(read_consensus_matrix)
    )
    similarity = check_matrix(matrix)
    number = parse_k(clusters.k, len(similarity))
    if not isinstance(number, int):
        raise ValueError(
            f"--k {clusters.k}: a consensus matrix alone does not say how many "
            "clusters there are; give a number, such as --k 4."
        )
    labels = from_matrix(similarity, number, consensus=find, random_state=clusters.seed)
    association = matrix_associations(similarity, labels)
    return write_matrix_result(
        labels,
        association,
        names,
        output.out,
        origin={"file": display_name(file), "consensus": find, "seed": clusters.seed},
        overwrite=output.overwrite,
    )
