"""What the commands share: an ensemble in, labels and a report out."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.files import write_atomically
from mdec._support.folders import replaced_together
from mdec._support.optional import import_optional
from mdec._support.parallel import single_threaded_blas
from mdec._support.progress import Progress
from mdec.cli._asked import ASKED_FILES, write_asked
from mdec.cli._model import MODEL, Kept
from mdec.cli._output import table_csv
from mdec.cli._recipe import Recipe, consensus_recipe
from mdec.confidence import (
    confidence,
    firm_labels,
    item_consensus,
    second_choice,
)
from mdec.consensus import CONSENSUS
from mdec.ensemble import Ensemble
from mdec.report.clustering import Description, describe_clustering, render_report
from mdec.selection.rule import KSelection, select_n_clusters
from mdec.tables.containers import write_back
from mdec.tables.text import shown_as_text
from mdec.weights import WEIGHTINGS


@dataclass
class Request:
    """What a command was asked for, beside the ensemble.

    Attributes
    ----------
    k : str
        "5", "auto" or "2:12".
    consensus, weighting : str
        As in `MDEC`.
    sample_names : sequence of str
        One name per sample.
    title : str
        Heading of the report.
    settings : dict
        What the summary and the report say of the parameters.
    values, feature_names, known
        The data as members see them, the names of its columns and known classes,
        where there are any.
    columns : mapping of str to sequence of str or None
        Other columns of the table, to colour the samples by.
    python : callable or None
        Gives lines of Python for the number of clusters; None for those that cluster
        the ensemble of the results.
    preparation : dict or None
        What was found and done before, as `prepare_values` tells it.
    raw : ndarray or None
        The data before, if something was done.
    reading : dict or None
        What was read, as `read_table` tells it.
    seed : int
        Seed of what is random after the ensemble.
    n_jobs : int or None
        Work done at the same time.
    kept : Kept or None
        What the model is written from; None writes none.
    h5ad : tuple of Path or None
        AnnData file that was read, and the one to write with the clusters in it.
    min_confidence : float or None
        Samples held less firmly have the cluster -1 in labels.csv.
    asked : sequence of str
        Further tables to write, of `mdec.cli._asked.ASKED`.
    without_model : str or None
        Why no model is written, if people may expect one.
    timings : dict of float
        Seconds by step.
    """

    k: str
    consensus: str
    weighting: str
    sample_names: Sequence[str]
    title: str
    settings: dict[str, Any]
    values: NDArray[np.floating] | None = None
    feature_names: Sequence[str] | None = None
    known: NDArray[Any] | None = None
    columns: Mapping[str, Sequence[str]] | None = None
    python: Recipe | None = None
    preparation: dict[str, Any] | None = None
    raw: NDArray[np.floating] | None = None
    reading: dict[str, Any] | None = None
    seed: int = 0
    n_jobs: int | None = None
    kept: Kept | None = None
    h5ad: tuple[Path, Path] | None = None
    min_confidence: float | None = None
    asked: Sequence[str] = ()
    without_model: str | None = None
    timings: dict[str, float] = field(default_factory=dict)


def parse_k(k: str, n_samples: int) -> tuple[int | None, list[int] | None]:
    """Return the number asked for, or the numbers to compare; both None for auto.

    Examples
    --------
    >>> parse_k("5", 100), parse_k("2:4", 100), parse_k("auto", 100)
    ((5, None), (None, [2, 3, 4]), (None, None))
    """
    if k == "auto":
        return None, None
    low, colon, high = k.partition(":")
    if not low.isdecimal() or (colon and not high.isdecimal()):
        raise ValueError(f"--k {k} is not understood; give 5, auto or 2:12.")
    if not colon:
        if not 1 <= int(low) <= n_samples:
            raise ValueError(f"--k {k} must lie between 1 and the {n_samples} samples.")
        return int(low), None
    numbers = list(range(max(int(low), 2), int(high) + 1))
    if not numbers or numbers[-1] >= min(n_samples, 1000):
        raise ValueError(
            f"--k {k} must be a range from 2 up, below the number of samples."
        )
    return None, numbers


def parse_pair(words: str, name: str, kind: type) -> tuple[Any, Any]:
    """Return the two ends of an option such as 0.2:0.8.

    Examples
    --------
    >>> parse_pair("5:20", "--neighbors", int)
    (5, 20)
    """
    try:
        low, high = (kind(word) for word in words.split(":"))
    except ValueError as error:
        raise ValueError(
            f"{name} {words} is not understood; give two numbers such as 5:20."
        ) from error
    return low, high


def select(
    ensemble: Ensemble, request: Request, progress: Progress | None
) -> tuple[int, KSelection]:
    """Return the number of clusters to make, and the criteria."""
    number, numbers = parse_k(request.k, ensemble.n_samples)
    selection = select_n_clusters(
        ensemble,
        # A number that was asked for needs no test against one cluster, and views have
        # no one table to draw from.
        X=request.values if number is None and not ensemble.views else None,
        k_range=numbers,
        weighting=request.weighting,
        allow_one=numbers is None,
        n_jobs=request.n_jobs,
        seed=request.seed,
        progress=progress,
    )
    return number or selection.n_clusters, selection


def finish(
    ensemble: Ensemble, request: Request, out: Path, progress: Progress | None = None
) -> dict[str, Any]:
    """Cluster an ensemble, write the files and return the summary.

    Parameters
    ----------
    ensemble : Ensemble
        The base clusterings.
    request : Request
        What was asked for.
    out : Path
        Folder of labels.csv, signatures.csv, report.html, ensemble.npz, model.npz,
        summary.json and what was asked for, which are replaced together; `claimed` by
        the command.
    progress : callable, default=None
        Told of the draws of the null reference.

    Returns
    -------
    dict
        The content of summary.json.
    """
    start = time.perf_counter()
    weights = WEIGHTINGS[request.weighting](ensemble)
    n_clusters, selection = select(ensemble, request, progress)
    request.timings["choosing K"] = time.perf_counter() - start
    start = time.perf_counter()
    with single_threaded_blas():
        labels = CONSENSUS[request.consensus](
            ensemble, n_clusters, weights, random_state=request.seed
        )
    request.timings["consensus"] = time.perf_counter() - start
    start = time.perf_counter()
    described = describe_clustering(
        ensemble,
        labels,
        weights,
        selection,
        sample_names=request.sample_names,
        values=request.values,
        feature_names=request.feature_names,
        known=request.known,
        columns=request.columns,
        preparation=request.preparation,
        raw=request.raw,
        settings=request.settings,
        python=_python(request, out)(n_clusters),
        again=_again(request, out),
        title=request.title,
    )
    page = render_report(described)
    request.timings["report"] = time.perf_counter() - start
    summary = _summary(described, request, out)
    association = item_consensus(ensemble, labels, weights)
    columns = _label_columns(association, labels, request)
    if request.min_confidence is not None:
        summary["n_left_out"] = columns["cluster"].count(-1)
    if request.h5ad is not None:
        source, target = request.h5ad
        least = request.min_confidence
        _write_h5ad(source, target, ensemble, labels, weights, summary, least)
    # Those of an earlier run would speak of other clusters.
    with replaced_together(out, gone=[MODEL, *ASKED_FILES]) as folder:
        write_atomically(folder / "labels.csv", table_csv(columns))
        with single_threaded_blas():
            written = write_asked(
                folder,
                request.asked,
                ensemble,
                weights,
                association,
                columns,
                selection.table["n_clusters"].tolist(),
            )
        summary["files"] |= {name: str(out / name) for name in written}
        write_atomically(folder / "signatures.csv", _signatures_csv(described))
        named = replace(ensemble, names=_names(ensemble, request))
        named.save(folder / "ensemble.npz")
        if request.kept is not None:
            left_out = request.kept.too_large()
            summary["model"] = {"left_out": left_out}
            if left_out is None:
                made = ensemble, labels, weights
                size = request.kept.write(
                    folder / MODEL, *made, **_decided(request, n_clusters)
                )
                summary["model"] = {"bytes": size}
                summary["files"][MODEL] = str(out / MODEL)
        elif request.without_model is not None:
            summary["model"] = {"left_out": request.without_model}
        write_atomically(folder / "report.html", page.encode())
        write_atomically(
            folder / "summary.json", json.dumps(summary, indent=1).encode()
        )
    return summary


def _python(request: Request, out: Path) -> Recipe:
    if request.python is not None:
        return request.python
    path, seed = str(out / "ensemble.npz"), request.seed
    return consensus_recipe(path, request.consensus, request.weighting, seed)


def _again(request: Request, out: Path) -> str:
    words = ["mdec", "consensus", str(out / "ensemble.npz")]
    if request.weighting != "entropy":
        words += ["--weighting", request.weighting]
    return shlex.join(
        [*words, *(["--seed", str(request.seed)] if request.seed else [])]
    )


def _write_h5ad(
    source: Path,
    target: Path,
    ensemble: Ensemble,
    labels: NDArray[np.int32],
    weights: NDArray[np.floating],
    summary: dict[str, Any],
    least: float | None,
) -> None:
    adata = anndata_package().read_h5ad(source)
    told = {"params": summary["parameters"], "reason": summary["reason"]}
    write_back(adata, ensemble, labels, weights, told, min_confidence=least)
    # HDF5 writes to a name and not to an open file.
    beside = target.with_name(f".mdec-{target.name}")
    try:
        adata.write_h5ad(beside)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
    summary["files"][target.name] = str(target)


def anndata_package() -> Any:
    """Return anndata, or raise one sentence that says how to install it."""
    return import_optional(
        "anndata", needed_for="--write-h5ad", install="mdec[anndata]"
    )


def _decided(request: Request, n_clusters: int) -> dict[str, Any]:
    return {
        "n_clusters": n_clusters,
        "consensus": request.consensus,
        "weighting": request.weighting,
        "n_jobs": request.n_jobs,
        "random_state": request.seed,
        "min_confidence": request.min_confidence,
    }


def _names(ensemble: Ensemble, request: Request) -> dict[str, tuple[str, ...]]:
    """Return the names that the ensemble's file keeps for later runs."""
    names = {"samples": tuple(request.sample_names)}
    if request.known is not None:
        names["classes"] = tuple(str(each) for each in request.known)
    features = request.feature_names
    if features and len(features) == ensemble.parameters.get("n_features"):
        names["features"] = tuple(features)
    return names


def _label_columns(
    association: NDArray[np.floating], labels: NDArray[np.int32], request: Request
) -> dict[str, list[Any]]:
    sure = confidence(association, labels)
    second = second_choice(association, labels)
    columns: dict[str, list[Any]] = {
        "sample": [shown_as_text(name) for name in request.sample_names],
        "cluster": firm_labels(labels, sure, request.min_confidence).tolist(),
        "confidence": [f"{value:.4f}" for value in sure],
        "second_choice": ["" if other < 0 else other for other in second.tolist()],
    }
    if request.known is not None:
        columns["known_class"] = [shown_as_text(n) for n in request.known.tolist()]
    return columns


def _signatures_csv(described: Description) -> bytes:
    """Return the features that set the clusters apart; none without values."""
    rows = described["signatures"]
    return table_csv(
        {
            "cluster": [row["cluster"] for row in rows],
            "feature": [shown_as_text(row["name"]) for row in rows],
            "effect": [f"{row['effect']:.4f}" for row in rows],
            "mean_inside": [f"{row['inside']:.6g}" for row in rows],
            "mean_outside": [f"{row['outside']:.6g}" for row in rows],
        }
    )


def _summary(described: Description, request: Request, out: Path) -> dict[str, Any]:
    selection = described["selection"]
    null = selection["null"]
    told, support = request.preparation, described["support"]
    return {
        "n_samples": described["n_samples"],
        "n_clusters": described["n_clusters"],
        "suggested_n_clusters": selection["suggested"],
        "reason": selection["reason"],
        "one_cluster_p_value": None if null is None else null["p_value"],
        "criteria": selection["rows"],
        "clusters": described["clusters"],
        **({} if support is None else {"view_support": support}),
        "mean_confidence": described["mean_confidence"],
        "n_ambiguous": described["n_ambiguous"],
        "scores": described["scores"],
        "n_members": described["n_members"],
        "n_failed_members": described["n_failed"],
        "reading": request.reading,
        **({} if told is None else {"preparation": told}),
        "parameters": request.settings,
        "seed": request.seed,
        "timings_s": {k: round(v, 3) for k, v in request.timings.items()},
        "versions": described["versions"],
        "files": {
            name: str(out / name)
            for name in (
                "labels.csv",
                "signatures.csv",
                "report.html",
                "ensemble.npz",
                "summary.json",
            )
        },
    }
