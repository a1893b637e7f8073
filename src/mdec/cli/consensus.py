"""``mdec consensus``: clusters from base clusterings that the user brings."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from mdec._support.folders import claimed
from mdec.cli._matrix import cut_matrix
from mdec.cli._model import MODEL, Kept, read_kept
from mdec.cli._options import (
    DEFAULT_GB,
    AsJson,
    Consensus,
    Drop,
    Header,
    IdColumn,
    Index,
    MaxGb,
    Number,
    Out,
    Quiet,
    Seed,
    Weighting,
)
from mdec.cli._output import examples, progress_bars, show_cut, show_summary
from mdec.cli._work import Request, finish, parse_k
from mdec.consensus import CONSENSUS
from mdec.ensemble import Ensemble
from mdec.generation import rows_as_seen
from mdec.rows import opened
from mdec.tables.binary import check_archive
from mdec.tables.clusterings import read_base_clusterings
from mdec.tables.door import Door, shown_name
from mdec.weights import WEIGHTINGS

EPILOG = examples(
    "mdec consensus clusterings.csv --k auto --out combined",
    "mdec consensus mdec-result/ensemble.npz --k 4 --out four",
    "mdec consensus consensusMatrix.csv --matrix --k 4 --out cut",
)


def command(
    file: Annotated[
        Path,
        typer.Argument(
            help="Text, .xlsx or .parquet with one clustering in each column, or an "
            "ensemble.npz; - for standard input."
        ),
    ],
    k: Number = "auto",
    out: Out = Path("mdec-result"),
    consensus: Consensus = "hierarchical",
    weighting: Weighting = "entropy",
    id_column: IdColumn = None,
    drop: Drop = None,
    header: Header = None,
    index: Index = None,
    matrix: Annotated[
        bool,
        typer.Option("--matrix", help="The file is a consensus matrix; needs --k."),
    ] = False,
    seed: Seed = 0,
    max_gb: MaxGb = DEFAULT_GB,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Combine your own base clusterings; empty cells, NA and -1 are left out."""
    if consensus not in CONSENSUS or weighting not in WEIGHTINGS:
        raise ValueError(
            f"--consensus is one of {', '.join(CONSENSUS)}, --weighting one of "
            f"{', '.join(WEIGHTINGS)}."
        )
    max_bytes = int(max_gb * 2**30)
    if matrix:
        with claimed(out):
            summary = cut_matrix(file, k, consensus, out, seed, max_bytes)
        show_cut(summary, quiet=quiet, as_json=as_json)
        return
    came = Came()
    if file.suffix.lower() == ".npz" and file.is_file():
        check_archive(file, Door(file.name, max_bytes))
        ensemble = Ensemble.load(file)
        came = _run_of(file, ensemble, max_bytes)
        numbers = [str(i + 1) for i in range(ensemble.n_samples)]
        names = list(ensemble.names.get("samples", numbers))
        members = [f"clustering {m + 1}" for m in range(len(ensemble))]
    else:
        labels, names, members = read_base_clusterings(
            file,
            header=header,
            index=index,
            id_column=id_column,
            drop=drop or (),
            max_bytes=max_bytes,
        )
        ensemble = Ensemble.from_labels(labels)
    reading = {
        "file": shown_name(file),
        "n_samples": ensemble.n_samples,
        "n_members": len(ensemble),
        "samples": names[:5],
        "members": members[:5],
        "missing": int((ensemble.labels < 0).sum()),
        "notes": came.notes,
    }
    if not (quiet or as_json):
        typer.echo(
            f"Read {len(names)} samples ({names[0][:40]!r}, ...) with {len(members)} "
            f"base clusterings ({members[0][:40]!r}, ...); {reading['missing']} labels "
            "are missing."
        )
        for note in came.notes:
            typer.echo(f"{note}.")
    parse_k(k, ensemble.n_samples)
    settings = {
        "file": shown_name(file),
        "shape": f"{ensemble.n_samples} samples x {len(ensemble)} base clusterings",
        "k": k,
        "consensus": consensus,
        "weighting": weighting,
        "seed": seed,
        "command": shlex.join(["mdec", *sys.argv[1:]]),
    }
    request = Request(
        k,
        consensus,
        weighting,
        names,
        f"Consensus of {shown_name(file)}",
        settings,
        values=came.values,
        feature_names=came.features,
        known=came.classes,
        reading=reading,
        seed=seed,
        kept=came.kept,
        min_confidence=None if came.kept is None else came.kept.min_confidence,
    )
    with claimed(out), progress_bars(quiet=quiet or as_json) as hooks:
        summary = finish(ensemble, request, out, hooks["null"])
    show_summary(summary, quiet=quiet, as_json=as_json)


@dataclass(frozen=True, eq=False)
class Came:
    """What is known of the run that an ensemble comes from.

    Attributes
    ----------
    values : ndarray of shape (n_samples, n_features) or None
        The data as members saw them.
    features : tuple of str or None
        Names of their columns.
    classes : ndarray of str of shape (n_samples,) or None
        Known classes.
    kept : Kept or None
        What a new model is written from.
    notes : list of str
        Where all this comes from, in sentences without their points.
    """

    values: NDArray[np.floating] | None = None
    features: tuple[str, ...] | None = None
    classes: NDArray[np.str_] | None = None
    kept: Kept | None = None
    notes: list[str] = field(default_factory=list)


def _run_of(file: Path, ensemble: Ensemble, max_bytes: int) -> Came:
    """Take names from the ensemble's file, and values from the model beside it."""
    names, notes = ensemble.names, []
    classes = np.array(names["classes"]) if "classes" in names else None
    if "samples" in names:
        what = "Names of samples" if classes is None else "Names and known classes"
        notes.append(f"{what} come from {file.name!r}")
    beside = file.with_name(MODEL)
    if not ensemble.members or not beside.is_file():
        return Came(classes=classes, notes=notes)
    model, steps = read_kept(beside, max_bytes)
    rows, same = (
        model.training_rows_,
        np.array_equal(model.ensemble_.labels, ensemble.labels),
    )
    if not same or len(rows) != ensemble.n_samples:
        return Came(classes=classes, notes=notes)
    notes.append(f"Values and features come from {MODEL!r} beside it")
    parameters = model.get_params()
    seen = rows_as_seen(opened(rows), ensemble.plan)
    features = names.get("features") or tuple(
        f"feature {j + 1}" for j in range(seen.shape[1])
    )
    return Came(seen, features, classes, Kept(rows, steps, parameters), notes)
