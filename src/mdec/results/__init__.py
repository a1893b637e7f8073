"""A clustering as a folder of files: labels, report, ensemble, model and summary."""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from mdec._support.archives import DAMAGED, parts_that_fit
from mdec._support.files import (
    check_not_replaced,
    claim_folder,
    replace_together,
    write_atomically,
)
from mdec._support.memory import MAX_BYTES
from mdec.clustering import Clustering, Settings
from mdec.ensemble import Ensemble
from mdec.estimator import MDEC, MultiViewMDEC
from mdec.estimator.persistence import read_model, write_model
from mdec.report import Description, RunNotes, describe_clustering, render_report
from mdec.report.compute import join_tables
from mdec.results.tables import (
    check_extra_tables,
    extra_files,
    format_csv,
    label_columns,
    name_extra_file,
    signature_columns,
)
from mdec.tables import Table
from mdec.tables.hdf5 import write_h5ad
from mdec.tables.steps import TableSteps

MODEL = "model.npz"
ENSEMBLE = "ensemble.npz"
SUMMARY = "summary.json"
# Names and colours that people gave to clusters.
CLUSTER_NAMES = "cluster-names.json"

# What every result has, and all that may be in its folder.
MAIN_FILES = ("labels.csv", "signatures.csv", "report.html", ENSEMBLE, SUMMARY)
RESULT_FILES = (
    *MAIN_FILES[:-1],
    *(MODEL, "consensus.csv", "consensus.npy", "labels-for-every-k.csv"),
    *("membership.csv", CLUSTER_NAMES, SUMMARY),
)

# A longer summary is none of ours.
SUMMARY_BYTES = 2**26

# Training rows that take more are not stored: the file would be slow to write and read.
MODEL_BYTES = 500_000_000


def write_result(
    clustering: Clustering,
    folder: str | os.PathLike[str],
    *,
    table: Table | Mapping[str, Table] | None = None,
    model: MDEC | MultiViewMDEC | None = None,
    steps: TableSteps | None = None,
    extra_tables: Sequence[str] = (),
    h5ad: tuple[Path, Path] | None = None,
    max_bytes: int = MAX_BYTES,
    notes: RunNotes | None = None,
    overwrite: bool = False,
    claim: bool = True,
) -> dict[str, Any]:
    """Write a clustering to a folder, whose files are replaced together.

    The summary lists the files of a result. Those of an earlier result in the folder
    are replaced or removed, and everything else in it is left alone.

    Parameters
    ----------
    clustering : Clustering
        The result: ``model.clustering_``, or of `mdec.clustering.cluster_ensemble`.
    folder : path-like
        Gets labels.csv, signatures.csv, report.html, ensemble.npz, summary.json and
        what is asked for.
    table : Table or mapping of str to Table, optional
        Names, known classes and the values that the report shows; one for each view.
    model : MDEC or MultiViewMDEC, optional
        The fitted estimator, to be written as model.npz.
    steps : TableSteps, optional
        What was done to the table before it was fitted.
    extra_tables : sequence of str, default=()
        Further tables to write, of `mdec.results.tables.EXTRA_TABLES`.
    h5ad : pair of Path, optional
        An AnnData file, and where to write a copy with the clusters in it.
    max_bytes : int, default=4 GiB
        An AnnData file that claims to unpack to more is refused.
    notes : RunNotes, optional
        What the report and the summary say of the run.
    overwrite : bool, default=False
        Whether to replace files of these names that no summary in the folder lists;
        else they are refused.
    claim : bool, default=True
        False if the folder is claimed by the caller, see `claim_result`.

    Returns
    -------
    dict
        The content of summary.json.
    """
    notes, out = notes or RunNotes(), Path(folder)
    n_samples = clustering.ensemble.n_samples
    check_extra_tables(extra_tables, n_samples)
    joined = join_tables(table, n_samples)
    described, page, timings = _make_report(clustering, joined, notes, out)
    summary = _summarize(described, joined, timings)
    columns = label_columns(
        joined.sample_names,
        clustering.firm_labels,
        clustering.confidence,
        clustering.second_choice,
        joined.labels,
    )
    contents = {
        "labels.csv": format_csv(columns),
        "signatures.csv": format_csv(signature_columns(described)),
        "report.html": page.encode(),
        **dict(extra_files(extra_tables, clustering, columns)),
    }
    copy: AbstractContextManager[None] = nullcontext()
    if h5ad is not None:
        known = {"params": summary["parameters"], "reason": summary["reason"]}
        copy = write_h5ad(*h5ad, clustering, known, max_bytes=max_bytes)
    names = result_files(extra_tables, n_samples, model=model is not None)
    with (
        claim_result(out, names, overwrite=overwrite) if claim else nullcontext(),
        copy,
        replace_together(out, gone=own_files(out)) as new,
    ):
        for name, content in contents.items():
            write_atomically(new / name, content)
        _name_ensemble(clustering.ensemble.gather(), joined, table, steps).save(
            new / ENSEMBLE
        )
        if model is not None:
            summary["model"] = _write_model(new / MODEL, model, steps)
        there = [name for name in RESULT_FILES if (new / name).exists()]
        paths = [*(out / name for name in (*there, SUMMARY)), *(h5ad or ())[1:]]
        summary["files"] = {path.name: str(path) for path in paths}
        write_atomically(new / SUMMARY, json.dumps(summary, indent=1).encode())
    return summary


def result_files(
    extra_tables: Sequence[str], n_samples: int, *, model: bool
) -> list[str]:
    """Return the names of the files of a result, before it is there."""
    extra = [name_extra_file(name, n_samples) for name in extra_tables]
    return [*MAIN_FILES, *extra, *([MODEL] if model else [])]


def own_files(folder: Path) -> set[str]:
    """Return the names of the files of the result in a folder, by its own summary."""
    path = folder / SUMMARY
    try:
        if path.stat().st_size > SUMMARY_BYTES:
            return set()
        names = set(json.loads(path.read_bytes())["files"])
    except (OSError, *DAMAGED):
        return set()
    return names & set(RESULT_FILES)


@contextmanager
def claim_result(
    folder: Path,
    names: Sequence[str],
    *,
    read: Sequence[Path] = (),
    overwrite: bool = False,
) -> Iterator[None]:
    """Reserve the folder of a result, or raise before the work what would be lost.

    Parameters
    ----------
    folder : Path
        The folder, see `mdec._support.files.claim_folder`.
    names : sequence of str
        Files that are going to be written.
    read : sequence of Path, default=()
        Files that may not be replaced, but for an ensemble of an earlier result: it is
        written as it was.
    overwrite : bool, default=False
        Whether files that no summary in the folder lists may be replaced.
    """
    with claim_folder(folder):
        own = own_files(folder)
        lost = {*names, *own} - ({ENSEMBLE} & own)
        check_not_replaced(read, [folder / name for name in lost])
        others = [n for n in names if os.path.lexists(folder / n) and n not in own]
        if others and not overwrite:
            raise ValueError(
                f"{os.fspath(folder)!r} has {', '.join(map(repr, others))} from "
                "elsewhere, which the result would replace; give another folder, or "
                "say overwrite=True."
            )
        yield


def _make_report(
    clustering: Clustering, table: Table, notes: RunNotes, out: Path
) -> tuple[Description, str, dict[str, float]]:
    """Return what the report shows, its page, and the seconds of all steps."""
    timings = {**notes.timings, **clustering.timings}
    start = time.perf_counter()
    if clustering.criteria is not clustering.selection:
        timings["choosing K"] = time.perf_counter() - start
    start, settings = time.perf_counter(), clustering.settings
    words = ["mdec", "consensus", str(out / ENSEMBLE)]
    if settings.weighting != "entropy":
        words += ["--weighting", settings.weighting]
    words += ["--seed", str(settings.seed)] if settings.seed else []
    python = notes.python or partial(_consensus_lines, settings, out)
    notes = replace(notes, python=python, again=shlex.join(words))
    described = describe_clustering(clustering, table=table, notes=notes)
    page = render_report(described)
    timings["report"] = time.perf_counter() - start
    return described, page, timings


def _consensus_lines(settings: Settings, out: Path, n_clusters: int) -> str:
    """Return lines of Python that cluster the ensemble of a result."""
    find, arguments = settings.consensus, f"ensemble, {n_clusters}"
    lines = ["from mdec import Ensemble", f"from mdec.consensus import {find}"]
    arguments += f", random_state={settings.seed}"
    if settings.weighting == "uniform":
        lines.append("from mdec.weights import uniform_weights")
        arguments += ", weights=uniform_weights(ensemble)"
    lines += ["", f"ensemble = Ensemble.load({str(out / ENSEMBLE)!r})"]
    return "\n".join([*lines, f"labels = {find}({arguments})"])


def _name_ensemble(
    ensemble: Ensemble,
    joined: Table,
    table: Table | Mapping[str, Table] | None,
    steps: TableSteps | None,
) -> Ensemble:
    """Return the ensemble with the names that its file keeps for later runs."""
    names = {"samples": tuple(joined.sample_names)}
    if joined.labels is not None:
        names["classes"] = tuple(str(each) for each in joined.labels)
    views = ensemble.views
    if isinstance(table, Mapping):
        views = tuple(
            replace(view, features=_features(table[view.name], view.parameters))
            for view in views
        )
    elif steps is not None and steps.components is not None:
        names["features"] = tuple(steps.components.names)
    elif features := _features(joined, ensemble.parameters):
        names["features"] = features
    return replace(ensemble, names=names, views=views)


def _features(table: Table, parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the features, if they are those that were clustered."""
    fit = len(table.feature_names) == parameters.get("n_features")
    return tuple(table.feature_names) if fit else ()


def _write_model(
    path: Path, model: MDEC | MultiViewMDEC, steps: TableSteps | None
) -> dict[str, Any]:
    """Write a model and return the bytes of its file, or why it is left out."""
    size = sum(each.rows.data.nbytes for each in model.clustering_.rows)
    if size > MODEL_BYTES:
        return {
            "left_out": f"its training rows take {size / 1e6:.0f} MB, more than the "
            f"{MODEL_BYTES / 1e6:.0f} MB that are stored; use MDEC.save in Python"
        }
    write_model(
        path, model, *(() if steps is None else (steps.to_json(), steps.arrays))
    )
    return {"bytes": path.stat().st_size}


def read_result_model(
    path: Path, max_bytes: int = MAX_BYTES
) -> tuple[MDEC | MultiViewMDEC, TableSteps]:
    """Read a model and what is done to new tables before it.

    The file was written by `write_result`, or by the ``save`` of an estimator, without
    any steps; one that claims to unpack to more than `max_bytes` is refused.
    """
    if not path.is_file():
        raise ValueError(f"{os.fspath(path)!r} is not a file; check its name.")
    model, content, arrays = read_model(path, (MDEC, MultiViewMDEC), max_bytes)
    n_features = sum(each.plan.n_features for each in model.clustering_.rows)
    if content:
        with parts_that_fit(path):
            return model, TableSteps.from_json(content, arrays, n_features)
    names = getattr(model, "feature_names_in_", None)
    return model, TableSteps(n_features, None if names is None else tuple(names))


def _summarize(
    described: Description, table: Table, timings: Mapping[str, float]
) -> dict[str, Any]:
    clustering, notes = described["clustering"], described["notes"]
    selection, support = clustering.criteria, described["support"]
    ensemble = clustering.ensemble.gather()
    own, null = described["solutions"][described["chosen"]], selection.null
    summary = {
        "n_samples": ensemble.n_samples,
        "n_clusters": clustering.n_clusters,
        "suggested_n_clusters": selection.n_clusters,
        "reason": selection.reason,
        "candidates": described["candidates"],
        "one_cluster_p_value": None if null is None else null.p_value,
        "criteria": described["criteria"],
        "clusters": own["clusters"],
        **({} if support is None else {"view_support": support}),
        # In one cluster there is no other that a sample could be near to.
        "mean_confidence": own["mean_confidence"] if own["n_clusters"] > 1 else None,
        "n_ambiguous": own["n_ambiguous"],
        "scores": own["scores"],
        "n_members": len(ensemble),
        "n_failed_members": len(ensemble.failures),
        "reading": table.reading or None,
        **({} if notes.preparation is None else {"preparation": notes.preparation}),
        "parameters": dict(notes.settings),
        "seed": notes.settings.get("seed"),
        "timings_s": {step: round(each, 3) for step, each in timings.items()},
        "versions": described["versions"],
    }
    if clustering.settings.min_confidence is not None:
        summary["n_left_out"] = int((clustering.firm_labels < 0).sum())
    return summary
