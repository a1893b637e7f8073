"""New samples in the clusters of a result."""

from __future__ import annotations

from typing import Any

import numpy as np

from mdec.confidence import AMBIGUOUS
from mdec.estimator import MDEC
from mdec.prediction import PlacedRows
from mdec.tables import Table
from mdec.tables.budget import list_names
from mdec.tables.steps import TableSteps
from mdec.tables.text import escape_formula


def place_table(
    model: MDEC, steps: TableSteps, table: Table, name: str
) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """Place the samples of a table in the clusters of a model.

    Parameters
    ----------
    model : MDEC
        The fitted estimator.
    steps : TableSteps
        What is done to the table first.
    table : Table
        With the features of the training table.
    name : str
        What errors and notes call it.

    Returns
    -------
    columns : dict of list
        Of predicted.csv: the cluster of each sample, how sure it is, and whether the
        sample is unlike any in training.
    summary : dict
        Sizes and confidences of the clusters, and notes on how features were found.
    """
    notes = match_features(table, steps, name)
    rows: Any = steps.apply(table.values)
    if hasattr(model, "feature_names_in_"):
        import pandas

        rows = pandas.DataFrame(rows, columns=model.feature_names_in_)
    placed = model.place(rows)
    placed = placed._replace(unlike=placed.unlike | steps.find_odd_means(table.values))
    columns = {
        "sample": [escape_formula(each) for each in table.sample_names],
        "cluster": placed.clusters.tolist(),
        "confidence": [f"{value:.4f}" for value in placed.confidence],
        "unlike_training": ["true" if each else "false" for each in placed.unlike],
    }
    return columns, summarize(placed) | {"notes": notes}


def match_features(table: Table, steps: TableSteps, name: str) -> list[str]:
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


def summarize(placed: PlacedRows) -> dict[str, Any]:
    """Return sizes and confidences of the clusters of new rows."""
    clusters, sure, unlike = placed
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
    }
