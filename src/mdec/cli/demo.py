"""``mdec demo``: everything once, on handwritten digits that come along."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import typer
from sklearn.datasets import load_digits

from mdec._support.folders import claimed
from mdec.cli._model import MODEL, Kept, Steps
from mdec.cli._options import Jobs, Out, Quiet
from mdec.cli._output import examples, show_summary
from mdec.cli._run import run
from mdec.cli._work import Request
from mdec.estimator import MDEC
from mdec.evaluation import nmi_max

EPILOG = examples("mdec demo", "mdec demo --out digits --jobs 2")

N_FITTED = 600
N_NEW = 200


def command(
    out: Out = Path("mdec-demo"), jobs: Jobs = None, quiet: Quiet = False
) -> None:
    """Cluster handwritten digits, place new ones, and write the report."""
    digits = load_digits()
    X, new = digits.data[:N_FITTED], digits.data[N_FITTED : N_FITTED + N_NEW]
    settings: dict[str, Any] = {"ensemble_size": 100}
    request = Request(
        "auto",
        "hierarchical",
        "entropy",
        [f"digit {i}" for i in range(N_FITTED)],
        "Clusters of handwritten digits",
        {"data": "scikit-learn's digits", "shape": f"{X.shape[0]} x {X.shape[1]}"}
        | {"k": "auto", "consensus": "hierarchical", "seed": 0, "command": "mdec demo"},
        values=X,
        feature_names=[f"pixel {i // 8}, {i % 8}" for i in range(X.shape[1])],
        known=np.array([str(digit) for digit in digits.target[:N_FITTED]]),
        n_jobs=jobs,
        kept=Kept(X, Steps(X.shape[1], None), settings),
    )
    with claimed(out):
        summary = run(X, request, settings, out, resume=True, quiet=quiet)
    show_summary(summary, quiet=quiet, as_json=False)
    predicted = MDEC.load(out / MODEL).predict(new)
    score = nmi_max(digits.target[N_FITTED : N_FITTED + N_NEW], predicted)
    if not quiet:
        typer.echo(
            f"{N_NEW} new digits, placed without clustering again: NMI {score:.3f}"
        )
    typer.echo(f"Report: {(out / 'report.html').resolve()}")
