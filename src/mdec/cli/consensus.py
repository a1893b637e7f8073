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
from mdec.cli.fit import AsJson, Consensus, Number, Out, Quiet, Seed, Weighting
from mdec.consensus import CONSENSUS
from mdec.ensemble import Ensemble
from mdec.tables.reading import read_base_clusterings
from mdec.weights import WEIGHTINGS


def command(
    file: Annotated[
        Path,
        typer.Argument(
            help="CSV or TSV with one clustering in each column, or an ensemble.npz."
        ),
    ],
    k: Number = "auto",
    out: Out = Path("mdec-result"),
    consensus: Consensus = "hierarchical",
    weighting: Weighting = "entropy",
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Combine your own base clusterings; empty cells, NA and -1 are left out."""
    if consensus not in CONSENSUS or weighting not in WEIGHTINGS:
        raise ValueError(
            f"--consensus is one of {', '.join(CONSENSUS)}, --weighting one of "
            f"{', '.join(WEIGHTINGS)}."
        )
    if file.suffix.lower() == ".npz":
        ensemble = Ensemble.load(file)
        names = [str(i + 1) for i in range(ensemble.n_samples)]
    else:
        labels, names, _ = read_base_clusterings(file)
        ensemble = Ensemble.from_labels(labels)
    parse_k(k, ensemble.n_samples)
    settings = {
        "file": file.name,
        "shape": f"{ensemble.n_samples} samples x {len(ensemble)} base clusterings",
        "k": k,
        "consensus": consensus,
        "weighting": weighting,
        "seed": seed,
        "command": shlex.join(["mdec", *sys.argv[1:]]),
    }
    request = Request(
        k, consensus, weighting, names, f"Consensus of {file.name}", settings, seed=seed
    )
    with claimed(out), progress_bars(quiet=quiet or as_json) as hooks:
        summary = finish(ensemble, request, out, hooks["null"])
    show_summary(summary, quiet=quiet, as_json=as_json)
