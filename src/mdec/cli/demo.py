"""``mdec demo``: everything once, on handwritten digits that come along."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import typer
from sklearn.datasets import load_digits

from mdec.cli.fit import fit_and_write
from mdec.cli.options import PATH, OutputOptions, WorkOptions, option, with_groups
from mdec.cli.output import examples, result_parts, show
from mdec.estimator import MDEC
from mdec.report import RunNotes
from mdec.report.solutions import scores
from mdec.results import result_files
from mdec.tables import Table

EPILOG = examples("mdec demo", "mdec demo --out digits --jobs 2")

N_FITTED = 600
N_NEW = 200


@dataclass(frozen=True)
class DemoOutputOptions(OutputOptions):
    """Where the result goes."""

    out: Path = option(
        Path("mdec-demo"), "Folder of the results.", "--out", "-o", **PATH
    )


@with_groups
def command(work: WorkOptions, output: DemoOutputOptions) -> None:
    """Cluster handwritten digits, place new ones, and write the report."""
    digits = load_digits()
    X, known = digits.data[:N_FITTED], digits.target[:N_FITTED]
    new = slice(N_FITTED, N_FITTED + N_NEW)
    table = Table(
        X,
        [f"digit {i}" for i in range(N_FITTED)],
        [f"pixel {i // 8}, {i % 8}" for i in range(X.shape[1])],
        np.array([str(digit) for digit in known]),
    )
    settings = {
        "data": "scikit-learn's digits",
        "shape": f"{X.shape[0]} x {X.shape[1]}",
        "k": "auto",
        "consensus": "hierarchical",
        "seed": 0,
        "command": "mdec demo",
    }
    notes = RunNotes("Clusters of handwritten digits", settings)
    model = MDEC("auto", n_jobs=work.jobs, random_state=0)
    names = result_files((), N_FITTED, model=True)
    given: dict[str, Any] = {"resume": True, "table": table, "notes": notes}
    summary = fit_and_write(model, X, output, names, **given)
    show(summary, result_parts, output)
    if not output.silent:
        score = scores(digits.target[new], model.predict(digits.data[new]))["nmi_max"]
        typer.echo(
            f"{N_NEW} new digits, placed without clustering again: NMI {score:.3f}"
        )
    if not output.silent:
        typer.echo(f"Explore it in a browser: mdec app {output.out}")
    if not output.as_json:
        typer.echo(f"Report: {(output.out / 'report.html').resolve()}")
