"""``mdec predict``: a model and a new table in, clusters of its rows out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

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
from mdec.estimator import MDEC
from mdec.results import read_result_model
from mdec.results.tables import format_csv, place_table
from mdec.tables.budget import display_name


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
    columns, summary = place_table(
        fitted.set_params(n_jobs=jobs), steps, table, display_name(file)
    )
    write_atomically(out, format_csv(columns))
    where = {"model": str(model), "file": display_name(file), "out": str(out)}
    return summary | where
