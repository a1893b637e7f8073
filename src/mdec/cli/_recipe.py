"""The lines of Python that give the clusters of a command again."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from mdec.estimator import MDEC
from mdec.tables.reading import read_table

# Given the number of clusters that was made.
Recipe = Callable[[int], str]


def _given(of: Callable[..., Any], options: dict[str, Any]) -> list[str]:
    """Return the options that differ from the defaults, as arguments."""
    defaults = inspect.signature(of).parameters
    return [
        f"{name}={value!r}"
        for name, value in options.items()
        if value != defaults[name].default
    ]


def fit_recipe(
    file: str,
    reading: dict[str, Any],
    transform: str,
    prepared: str | None,
    settings: dict[str, Any],
) -> Recipe:
    """Return the lines of `mdec fit`.

    Parameters
    ----------
    file : str
        Path of the table.
    reading : dict
        Options of `read_table`.
    transform : str
        Option of `transformed`.
    prepared : str or None
        Kind of the values, if they were prepared before they were clustered.
    settings : dict
        Parameters of `MDEC` but the number of clusters.

    Returns
    -------
    callable
        Takes the number of clusters and returns the lines.

    Examples
    --------
    >>> lines = fit_recipe("a.csv", {"transpose": True}, "none", None, {"base": "auto"})
    >>> print(lines(3))
    from mdec import MDEC
    from mdec.tables import read_table
    <BLANKLINE>
    table = read_table('a.csv', transpose=True)
    X = table.values
    labels = MDEC(3, base='auto').fit_predict(X)
    """
    called = ", ".join([repr(file), *_given(read_table, reading)])
    imports = ["from mdec import MDEC", "from mdec.tables import read_table"]
    steps = [f"table = read_table({called})", "X = table.values"]
    if transform != "none":
        imports.append("from mdec.tables.values import transformed")
        steps.append(f"X = transformed(X, {transform!r})")
    if prepared is not None:
        imports.insert(1, "from mdec.preparation import ExpressionPreparation")
        steps.append(f"X = ExpressionPreparation({prepared!r}).fit_transform(X)")
    options = _given(MDEC, settings)

    def lines(n_clusters: int) -> str:
        arguments = ", ".join([str(n_clusters), *options])
        last = f"labels = MDEC({arguments}).fit_predict(X)"
        return "\n".join([*imports, "", *steps, last])

    return lines


def consensus_recipe(path: str, consensus: str, weighting: str, seed: int) -> Recipe:
    """Return the lines that cluster a stored ensemble; takes what `Request` has."""

    def lines(n_clusters: int) -> str:
        arguments = f"ensemble, {n_clusters}, random_state={seed}"
        imports = ["from mdec import Ensemble"]
        imports.append(f"from mdec.consensus import {consensus}")
        if weighting == "uniform":
            imports.append("from mdec.weights import uniform_weights")
            arguments += ", weights=uniform_weights(ensemble)"
        steps = [f"ensemble = Ensemble.load({path!r})"]
        steps.append(f"labels = {consensus}({arguments})")
        return "\n".join([*imports, "", *steps])

    return lines
