"""``mdec demo`` and ``mdec app``: everything once, and all of it in a browser."""

from __future__ import annotations

import importlib
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import typer
from sklearn.datasets import load_digits

from mdec._support.memory import MAX_BYTES
from mdec._support.optional import import_optional
from mdec.cli.fit import fit_and_write
from mdec.cli.options import (
    OUTPUT,
    OutputOptions,
    WorkOptions,
    option,
    out_option,
    with_groups,
)
from mdec.cli.output import result_parts
from mdec.estimator import MDEC
from mdec.report import RunNotes
from mdec.report.solutions import scores
from mdec.results import result_files
from mdec.tables import Table

N_FITTED = 600
N_DIGITS = 10
N_NEW = 200


@dataclass(frozen=True)
class DemoOutputOptions(OutputOptions):
    """Where the result goes."""

    out: Path = out_option("mdec-demo")


@with_groups
def demo(work: WorkOptions, output: DemoOutputOptions) -> None:
    """Cluster handwritten digits into ten, assign new ones, and write the report.

    Examples
    --------
    mdec demo
    mdec demo --out digits --jobs 2
    """
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
        "k": N_DIGITS,
        "consensus": "hierarchical",
        "seed": 0,
        "command": "mdec demo",
    }
    notes = RunNotes("Clusters of handwritten digits", settings)
    model = MDEC(N_DIGITS, n_jobs=work.n_jobs, random_state=0)
    names = result_files((), N_FITTED, model=True)
    given: dict[str, Any] = {"resume": True, "table": table, "notes": notes}
    output.show(fit_and_write(model, X, output, names, **given), result_parts)
    if not output.silent:
        score = scores(digits.target[new], model.predict(digits.data[new]))["nmi_max"]
        # Run by its path, as by make demo, it may not be found by its name.
        program = "mdec" if shutil.which("mdec") else sys.argv[0]
        output.tell(
            f"{N_NEW} new digits, placed without clustering again: NMI {score:.3f}",
            f"Explore it in a browser: {program} app {output.out}",
        )
    if not output.as_json:
        typer.echo(f"Report: {(output.out / 'report.html').resolve()}")


@dataclass(frozen=True)
class ServerOptions:
    """Where the page is, and how much it takes."""

    PANEL: ClassVar[str] = OUTPUT

    port: int = option("Port on 127.0.0.1; 0 takes a free one.", 0, min=0, max=65535)
    browser: bool = option("Whether to open the browser.", True)
    max_gb: float = option("Largest file, in GB.", MAX_BYTES / 2**30, min=0.001)


@with_groups
def app(
    server: ServerOptions,
    file: Annotated[
        Path | None, typer.Argument(help="Table to open, or folder of a result.")
    ] = None,
) -> None:
    """Open a page to read a table, cluster it and explore the result.

    It sees the folder that it is started in, and nobody else sees it. Ctrl-C ends it.

    Examples
    --------
    mdec app
    mdec app patients.csv
    mdec app mdec-demo
    """
    for name in ("starlette", "uvicorn"):
        import_optional(name, needed_for="mdec app", install=name)
    # Whoever does not open the page loads none of it.
    importlib.import_module("mdec.app.server").serve(
        Path.cwd(),
        file,
        port=server.port,
        browser=server.browser,
        max_bytes=int(server.max_gb * 2**30),
    )
