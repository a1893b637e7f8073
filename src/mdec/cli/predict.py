"""``mdec predict``: a model and a new table in, clusters of its rows out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from mdec._support.files import write_atomically
from mdec.cli._model import Steps, read_kept
from mdec.cli._options import (
    DEFAULT_GB,
    AsJson,
    Drop,
    Header,
    IdColumn,
    Impute,
    Index,
    Jobs,
    MaxGb,
    Quiet,
    Transpose,
    Variable,
)
from mdec.cli._output import examples, show_prediction, table_csv
from mdec.confidence import AMBIGUOUS
from mdec.estimator.new_rows import Placed
from mdec.tables import Table, read_table
from mdec.tables.door import shown_name
from mdec.tables.text import shown_as_text

EPILOG = examples(
    "mdec predict mdec-result/model.npz new.csv",
    "mdec predict genes/model.npz new.csv --transpose --out new-clusters.csv",
)


def command(
    model: Annotated[
        Path, typer.Argument(help="model.npz of a result, or what MDEC.save wrote.")
    ],
    file: Annotated[
        Path, typer.Argument(help="New table, in any format that mdec fit reads.")
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Table of the clusters.")
    ] = Path("predicted.csv"),
    transpose: Transpose = False,
    id_column: IdColumn = None,
    drop: Drop = None,
    header: Header = None,
    index: Index = None,
    variable: Variable = None,
    impute: Impute = None,
    jobs: Jobs = None,
    max_gb: MaxGb = DEFAULT_GB,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Place the samples of a new table in the clusters of a model.

    Features are matched by name. What was done to the training table is done to the
    new one. Rows unlike anything in training are flagged.
    """
    max_bytes = int(max_gb * 2**30)
    fitted, steps = read_kept(model, max_bytes)
    table = read_table(
        file,
        transpose=transpose,
        id_column=id_column,
        drop=drop or (),
        header=header,
        index=index,
        variable=variable,
        impute=impute,
        max_bytes=max_bytes,
        known_features=steps.names,
        least_samples=1,
    )
    notes = _matched(table, steps, shown_name(file))
    found = fitted.set_params(n_jobs=jobs).place(_as_fitted(fitted, steps, table))
    found = found._replace(unlike=found.unlike | steps.off_level(table.values))
    summary = _summary(found, table, notes)
    summary |= {"model": str(model), "file": shown_name(file), "out": str(out)}
    columns = {
        "sample": [shown_as_text(name) for name in table.sample_names],
        "cluster": found.clusters.tolist(),
        "confidence": [f"{value:.4f}" for value in found.confidence],
        "unlike_training": ["true" if each else "false" for each in found.unlike],
    }
    write_atomically(out, table_csv(columns))
    show_prediction(summary, quiet=quiet, as_json=as_json)


def _as_fitted(model: Any, steps: Steps, table: Table) -> Any:
    """Return the prepared values, with names if the model was fitted with names."""
    values = steps.apply(table.values)
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return values
    import pandas

    return pandas.DataFrame(values, columns=names)


def _matched(table: Table, steps: Steps, name: str) -> list[str]:
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
    extra = table.reading["n_left_out"]
    if not extra:
        return []
    shown = ", ".join(repr(each[:40]) for each in table.reading["left_out"][:3])
    more = ", ..." if extra > 3 else ""
    are = "column is no feature" if extra == 1 else "columns are no features"
    return [f"{extra} {are} of the model: {shown}{more}"]


def _summary(found: Placed, table: Table, notes: list[str]) -> dict[str, Any]:
    return {
        "n_samples": len(table.sample_names),
        "clusters": [
            {
                "cluster": int(cluster),
                "size": int(np.sum(found.clusters == cluster)),
                "confidence": float(found.confidence[found.clusters == cluster].mean()),
                "unlike_training": int(found.unlike[found.clusters == cluster].sum()),
            }
            for cluster in np.unique(found.clusters)
        ],
        "mean_confidence": float(found.confidence.mean()),
        "n_ambiguous": int((found.confidence < AMBIGUOUS).sum()),
        "n_unlike_training": int(found.unlike.sum()),
        "notes": notes,
    }
