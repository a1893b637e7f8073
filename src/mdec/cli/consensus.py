"""``mdec consensus``: clusters from base clusterings that the user brings."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from mdec._support.folders import claimed
from mdec.cli._output import progress_bars, show_summary
from mdec.cli._work import Request, finish, parse_k
from mdec.cli.fit import (
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
from mdec.consensus import CONSENSUS
from mdec.ensemble import Ensemble
from mdec.tables.binary import check_archive
from mdec.tables.door import Door, shown_name
from mdec.tables.reading import read_base_clusterings
from mdec.weights import WEIGHTINGS


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
    if file.suffix.lower() == ".npz" and file.is_file():
        check_archive(file, Door(file.name, max_bytes))
        ensemble = Ensemble.load(file)
        names = [str(i + 1) for i in range(ensemble.n_samples)]
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
    }
    if not (quiet or as_json):
        typer.echo(
            f"Read {len(names)} samples ({names[0][:40]!r}, ...) with {len(members)} "
            f"base clusterings ({members[0][:40]!r}, ...); {reading['missing']} labels "
            "are missing."
        )
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
        reading=reading,
        seed=seed,
    )
    with claimed(out), progress_bars(quiet=quiet or as_json) as hooks:
        summary = finish(ensemble, request, out, hooks["null"])
    show_summary(summary, quiet=quiet, as_json=as_json)
