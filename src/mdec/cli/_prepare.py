"""What `mdec fit` does to the values first, and how it tells of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec.preparation import (
    DRAWN,
    RECIPES,
    ExpressionPreparation,
    Recipe,
    kind_of_values,
)
from mdec.tables import Table

Array = NDArray[np.floating]

PREPARE = ("auto", "none", "expression", "diversified")
OFF = "--prepare none"


@dataclass(frozen=True, eq=False)
class Prepared:
    """The values to cluster, and what was found and done.

    Attributes
    ----------
    values : ndarray of shape (n_samples, n_features)
        What the ensemble is made of.
    seen : ndarray of shape (n_samples, n_features)
        As the members see them: differs from `values` if they draw their own.
    feature_names : sequence of str
        Of the columns of `seen`.
    drawn : str or None
        The parameter `preparation` of `generate_ensemble`.
    told : dict
        What the values are (kind), what was done (prepared), why (reason), and what
        turns it off (flag), in words; None where there is nothing to say.
    fitted : ExpressionPreparation or None
        What was done, to be done to new samples as well.
    """

    values: Array
    seen: Array
    feature_names: Sequence[str]
    drawn: str | None
    told: dict[str, Any]
    fitted: ExpressionPreparation | None = None


def prepare_values(
    table: Table, values: Array, how: str, transform: str, *, drawable: bool = True
) -> Prepared:
    """Decide what the values are and prepare them as asked.

    Parameters
    ----------
    table : Table
        What was read.
    values : ndarray of shape (n_samples, n_features)
        Its values, transformed.
    how : {"auto", "none", "expression", "diversified"}
        "auto" prepares expression values and leaves all others alone, "expression"
        refuses others, "diversified" leaves it to the members.
    transform : str
        What was asked for; values are not prepared on top of it.
    drawable : bool
        Whether members can be made that draw their own preparation.

    Returns
    -------
    Prepared
        With the values themselves where nothing is done.
    """
    if how == "none":
        return _left(table, values, None, f"{OFF} was given.")
    if transform != "none" and how == "auto":
        return _left(table, values, None, f"--transform {transform} was given.")
    if transform != "none":
        raise ValueError(
            f"--prepare {how} and --transform {transform} would change the values "
            "twice; give one of them."
        )
    if how == "diversified":
        return _diversified(table, values, *kind_of_values(values))
    kind, reason = kind_of_values(values)
    if table.kind is not None:
        kind, reason = table.kind, f"The file itself says that these are {table.kind}."
    if how == "expression" and kind == "other":
        raise ValueError(
            f"--prepare expression finds no expression values ({reason.rstrip('.')}); "
            f"use {OFF} or --prepare diversified, or name their kind in Python with "
            "mdec.preparation.ExpressionPreparation(kind=...)."
        )
    if how == "auto" and kind in DRAWN and drawable:
        return _diversified(table, values, kind, reason)
    steps = recipe_steps(RECIPES[kind])
    if not steps:
        more = "" if kind == "other" else " They need no more."
        return _left(table, values, kind, reason + more)
    preparation = ExpressionPreparation(kind).fit(values)
    seen = preparation.transform(values)
    names = preparation.get_feature_names_out(table.feature_names).tolist()
    told = _told(kind, steps, reason)
    return Prepared(seen, seen, names, None, told, preparation)


def _diversified(table: Table, values: Array, kind: str, reason: str) -> Prepared:
    recipe = RECIPES[kind]
    steps = recipe_steps(replace(recipe, share=1.0), recipe.drawn_powers)
    low, high = recipe.drawn_shares
    if low < 1.0:
        steps.append(
            "each base clustering takes the most variable features, a share of its own "
            f"from {low:.0%} to {high:.0%}"
        )
    seen = ExpressionPreparation(kind, share=1.0).fit_transform(values)
    told = _told(kind, steps, reason)
    return Prepared(values, seen, table.feature_names, "diversified", told)


def _left(table: Table, values: Array, kind: str | None, reason: str) -> Prepared:
    told = {"kind": kind, "prepared": None, "reason": reason, "flag": None}
    return Prepared(values, values, table.feature_names, None, told)


def _told(kind: str, steps: list[str], reason: str) -> dict[str, Any]:
    done = "; ".join(steps)
    return {"kind": kind, "prepared": done, "reason": reason, "flag": OFF}


def recipe_steps(recipe: Recipe, powers: tuple[float, ...] = ()) -> list[str]:
    """Say what a recipe does, in its order; nothing for one that leaves all alone.

    Parameters
    ----------
    recipe : Recipe
        What is done.
    powers : tuple of float, default=()
        Powers that members draw from instead of the recipe's own.

    Returns
    -------
    list of str
        A clause for each step.

    Examples
    --------
    >>> recipe_steps(RECIPES["log-ratios"])
    ["each sample's mean is subtracted", 'the 20% most variable features are kept']
    >>> recipe_steps(RECIPES["other"])
    []
    """
    powers = powers or (recipe.power,)
    steps = {
        "each sample is scaled to the same sum": recipe.totals,
        _power_step(powers): set(powers) != {1.0},
        "each sample's mean is subtracted": recipe.center,
        f"the {recipe.share:.0%} most variable features are kept": recipe.share < 1.0,
    }
    return [words for words, taken in steps.items() if taken]


def _power_step(powers: tuple[float, ...]) -> str:
    """Say what happens to a value, and how often if members draw it.

    Examples
    --------
    >>> _power_step((0.75,))
    'each value x becomes x^0.75'
    >>> _power_step((1.0, 1.0, 0.5))
    'each value x becomes x^0.5 in 1 of 3 base clusterings and stays x in the others'
    """
    shown = {each: f"x^{each:g}" if each else "log2(1 + x)" for each in powers}
    if len(shown) == 1:
        return f"each value x becomes {shown[powers[0]]}"
    odds = [
        f"{shown[each]} in {powers.count(each)} of {len(powers)} base clusterings"
        for each in dict.fromkeys(powers)
        if each != 1.0
    ]
    rest = " and stays x in the others" if 1.0 in powers else ""
    return f"each value x becomes {', '.join(odds)}{rest}"


def told_lines(told: dict[str, Any]) -> list[str]:
    """Return what the terminal shows of it."""
    if told["prepared"] is None:
        return [f"Not prepared: {told['reason']}"]
    kind = "no expression values" if told["kind"] == "other" else told["kind"]
    return [
        f"Found {kind}: {told['reason']}",
        f"Prepared: {told['prepared']}. Turn this off with {told['flag']}.",
    ]
