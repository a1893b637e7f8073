"""``mdec predict``: a model and a new table in, clusters of its rows out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from mdec._support.files import check_files, check_not_replaced, write_atomically
from mdec.cli.options import (
    PrintOptions,
    ReadOptions,
    WorkOptions,
    out_option,
    with_groups,
)
from mdec.cli.output import prediction_parts
from mdec.confidence import AMBIGUOUS
from mdec.estimator import MDEC
from mdec.results import read_result_model
from mdec.results.tables import format_csv
from mdec.tables import Table
from mdec.tables.budget import display_name, list_names
from mdec.tables.steps import TableSteps
from mdec.tables.text import escape_formula


@dataclass(frozen=True)
class TableOutputOptions(PrintOptions):
    """Where the table of new samples goes."""

    out: Path = out_option("predicted.csv", "Table of the clusters.")


@with_groups
def predict(
    model: Annotated[
        Path, typer.Argument(help="model.npz of a result, or what MDEC.save wrote.")
    ],
    file: Annotated[
        Path, typer.Argument(help="New table, in any format that mdec fit reads.")
    ],
    reading: ReadOptions,
    work: WorkOptions,
    output: TableOutputOptions,
) -> None:
    """Assign the samples of a new table to the clusters of a model.

    Features are matched by name. What was done to the training table is done to the
    new one. Rows unlike anything in training are flagged.

    Examples
    --------
    mdec predict mdec-result/model.npz new.csv
    mdec predict genes/model.npz new.csv --transpose --out new-clusters.csv
    """
    found = place_samples(model, file, reading, output.out, work.n_jobs)
    output.show(found, prediction_parts)


def place_samples(
    model: Path, file: Path, reading: ReadOptions, out: Path, jobs: int | None = None
) -> dict[str, Any]:
    """Place the samples of a table, write where, and return it in short."""
    check_files([out])
    check_not_replaced([model, file], [out])
    fitted, steps = read_result_model(model, reading.max_bytes)
    if not isinstance(fitted, MDEC):
        raise ValueError(
            f"{str(model)!r} is a model of several tables, and mdec predict takes one; "
            "use MultiViewMDEC.load in Python."
        )
    table = reading.read(
        file, known_features=steps.columns, encoding=steps.encoding, least_samples=1
    )
    notes = _match_features(table, steps, display_name(file))
    rows: Any = steps.apply(table.values)
    if hasattr(fitted, "feature_names_in_"):
        import pandas

        rows = pandas.DataFrame(rows, columns=fitted.feature_names_in_)
    clusters, sure, unlike = fitted.set_params(n_jobs=jobs).place(rows)
    unlike = unlike | steps.find_odd_means(table.values)
    columns = {
        "sample": [escape_formula(each) for each in table.sample_names],
        "cluster": clusters.tolist(),
        "confidence": [f"{value:.4f}" for value in sure],
        "unlike_training": ["true" if each else "false" for each in unlike],
    }
    write_atomically(out, format_csv(columns))
    return {
        "n_samples": len(clusters),
        "clusters": [
            {
                "cluster": int(cluster),
                "size": int(np.sum(clusters == cluster)),
                "confidence": float(sure[clusters == cluster].mean()),
                "unlike_training": int(unlike[clusters == cluster].sum()),
            }
            for cluster in np.unique(clusters)
        ],
        "mean_confidence": float(sure.mean()),
        "n_ambiguous": int((sure < AMBIGUOUS).sum()),
        "n_unlike_training": int(unlike.sum()),
        "notes": notes,
        "model": str(model),
        "file": display_name(file),
        "out": str(out),
    }


def _match_features(table: Table, steps: TableSteps, name: str) -> list[str]:
    """Return notes on how features were found, or raise if they do not fit."""
    n_found = table.values.shape[1]
    if n_found != steps.n_features:
        raise ValueError(
            f"{name!r} has {n_found} features and the model {steps.n_features}, and "
            "without names on both sides they are matched by position; give the table "
            "with the names, or the columns, of the training table."
        )
    if steps.names is None or not table.reading["names_of_columns"]:
        which = "the model" if steps.names is None else repr(name)
        return [f"{which} has no names of features; they were matched by position"]
    n_extra = table.reading["n_left_out"]
    if not n_extra:
        return []
    are = "column is not a feature" if n_extra == 1 else "columns are not features"
    extra = list_names(table.reading["left_out"])
    return [f"{n_extra} {are} of the model: {extra}"]
