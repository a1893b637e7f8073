"""A run that can be stopped and taken up again: base clusterings, then the result."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

from mdec.cli._output import progress_bars
from mdec.cli._views import TableView, made_views
from mdec.cli._work import Request, finish
from mdec.ensemble import Ensemble
from mdec.generation import generate_ensemble, refuse_unseen

CHECKPOINT = "checkpoint"
EXIT_STOPPED = 130


def run(
    values: NDArray[np.floating],
    request: Request,
    settings: dict[str, Any],
    out: Path,
    *,
    views: Mapping[str, TableView] | None = None,
    resume: bool = False,
    quiet: bool = False,
) -> dict[str, Any]:
    """Make the ensemble, resumably, then the clusters and the report.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_features)
        The data, transformed and prepared.
    request : Request
        What was asked for.
    settings : dict
        Parameters of `generate_ensemble`.
    out : Path
        Folder of the results, and of the checkpoint until they are there.
    views : mapping of TableView, optional
        Several tables to make members of, in place of `values` and `settings`.
    resume : bool
        Go on with the folder's checkpoint; without it an old one is refused.
    quiet : bool
        Show no progress.

    Returns
    -------
    dict
        The summary.
    """
    folder = out / CHECKPOINT
    if folder.exists() and not resume:
        raise ValueError(
            f"{str(folder)!r} holds a run that was stopped; add --resume to go on with "
            "it, or give another --out."
        )
    with progress_bars(quiet=quiet) as hooks:
        start = time.perf_counter()
        try:
            ensemble: Ensemble
            if views is not None:
                ensemble = made_views(
                    views, folder, request.n_jobs, request.seed, hooks["members"]
                )
            else:
                ensemble = generate_ensemble(
                    values,
                    checkpoint=folder,
                    n_jobs=request.n_jobs,
                    random_state=request.seed,
                    progress=hooks["members"],
                    **settings,
                )
            refuse_unseen(ensemble)
            request.timings["base clusterings"] = time.perf_counter() - start
            summary = finish(ensemble, request, out, hooks["null"])
        except KeyboardInterrupt:
            kept = len(list(folder.rglob("member-??????.npz")))
            typer.echo(
                f"mdec: stopped; {kept} base clusterings are kept in {str(folder)!r}, "
                "and the same command with --resume goes on from there.",
                err=True,
            )
            raise typer.Exit(EXIT_STOPPED) from None
    shutil.rmtree(folder)
    return summary
