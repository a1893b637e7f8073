"""What is done to the values of a table before a model sees them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdec._support.arrays import Array
from mdec._support.memory import require_memory
from mdec.preparation import ExpressionPreparation, find_mixed_units, kind_of_values
from mdec.preparation.kinds import MIN_FEATURES
from mdec.preparation.recipes import (
    MANY_CELLS,
    MIN_CELLS,
    RECIPES,
    Components,
    Preparation,
    Recipe,
    fill_zeros,
    prepare,
)
from mdec.preparation.units import (
    FeatureScales,
    learn_scales,
    scale_features,
    standard_scales,
)
from mdec.tables.budget import TableError, list_names
from mdec.tables.reading import Table

TRANSFORMS = ("none", "log", "standardise")
UNITS = "measurements in different units"
# Samples of a sparse table that are kept as they were, to show their distribution.
_SHOWN_SAMPLES = 50


@dataclass(frozen=True, eq=False)
class TableSteps:
    """The way from the values of a table to the rows that a model takes.

    Attributes
    ----------
    n_features : int
        Features of the table.
    names : tuple of str or None
        Their names; None if the table has none, or some twice.
    transform : str
        One of `TRANSFORMS`.
    description : str
        What is done, in words; "" for nothing.
    arrays : dict of ndarray
        What was learnt from the training table: means and spreads of its features, or
        their scales; the order of the prepared ones and those that are kept; and, where
        preparing subtracts the means of samples, the least and greatest mean that is
        not odd.
    preparation : dict or None
        The rest of what `ExpressionPreparation` learnt.
    encoding : dict of str to list of str
        Columns of categories and their values, see `Table`.
    """

    n_features: int
    names: tuple[str, ...] | None
    transform: str = "none"
    description: str = ""
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    preparation: dict[str, Any] | None = None
    encoding: dict[str, list[str]] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the columns of the table before categories are encoded."""
        if self.names is None:
            return None
        n_encoded = sum(len(values) for values in self.encoding.values())
        return (*self.names[: self.n_features - n_encoded], *self.encoding)

    @classmethod
    def from_table(
        cls,
        table: Table,
        transform: str = "none",
        fitted: ExpressionPreparation | FeatureScales | None = None,
        words: str | None = None,
    ) -> Self:
        """Collect what is done to a training table: its transform, then what is fitted.

        The words say what the latter does.
        """
        arrays: dict[str, NDArray[Any]] = {}
        rest = None
        if transform == "standardise":
            scales = standard_scales(table.values, table.groups)
            arrays |= {"means": scales.centers, "spreads": scales.widths}
        if isinstance(fitted, FeatureScales):
            arrays |= {f"scale_{n}": each for n, each in vars(fitted).items()}
        elif fitted is not None:
            learnt = fitted.preparation_
            arrays |= {"order": learnt.order, "features": fitted.features_}
            if fitted.components_ is not None:
                found = vars(fitted.components_)
                arrays |= {f"component_{n}": np.asarray(x) for n, x in found.items()}
            rest = {n: getattr(learnt, n) for n in ("power", "total", "center")}
            if learnt.center:
                # The samples' means, and as much again as they span, or for equal
                # ones a typical sample's spread.
                means = table.values.mean(axis=1, dtype=np.float64)
                spreads = table.values.std(axis=1, dtype=np.float64)
                room = max(np.ptp(means), float(np.median(spreads)))
                arrays["levels"] = np.array([means.min() - room, means.max() + room])
        done = None if transform == "none" else f"transform {transform}"
        names = tuple(table.feature_names)
        named = table.reading.get("names_of_columns") and len({*names}) == len(names)
        return cls(
            len(names),
            names if named else None,
            transform,
            "; ".join(filter(None, [done, words])),
            arrays,
            rest,
            table.encoding,
        )

    @property
    def components(self) -> Components | None:
        """What stands for the prepared features; None for themselves."""
        if "component_means" not in self.arrays:
            return None
        names = "component_means", "component_loadings", "component_exponent"
        means, loadings, exponent = (self.arrays[name] for name in names)
        return Components(means, loadings, int(exponent))

    def apply(self, values: Array) -> Array:
        """Return the values of a new table as the model takes them."""
        prepared, components = self.prepare(values), self.components
        return prepared if components is None else components.apply(prepared)

    def prepare(self, values: Array) -> Array:
        """Return the features of a new table that are kept, prepared."""
        if self.transform == "standardise":
            values = (values - self.arrays["means"]) / self.arrays["spreads"]
        else:
            values = transform_values(values, self.transform)
        if "scale_centers" in self.arrays:
            found = (self.arrays[f"scale_{n}"] for n in ("centers", "widths", "heavy"))
            return scale_features(values, FeatureScales(*found))
        if self.preparation is None:
            return values
        recipe = Preparation(**self.preparation, order=self.arrays["order"])
        return prepare(values, recipe, self.arrays["features"])

    def find_odd_means(self, values: Array) -> NDArray[np.bool_]:
        """Find samples of a new table that lose a mean which no training sample has.

        The table is as it was read; prepared, such samples may look familiar.
        """
        if "levels" not in self.arrays:
            return np.zeros(len(values), dtype=bool)
        means = transform_values(values, self.transform).mean(axis=1, dtype=np.float64)
        low, high = self.arrays["levels"]
        return (means < low) | (means > high)

    def to_json(self) -> dict[str, Any]:
        """Return all but the arrays."""
        content = {name: each for name, each in vars(self).items() if name != "arrays"}
        return content | {"told": content.pop("description")}

    @classmethod
    def from_json(
        cls, content: Mapping[str, Any], arrays: dict[str, NDArray[Any]], n_taken: int
    ) -> Self:
        """Return what `to_json` and the arrays were written from, or raise.

        `n_taken` is the number of features that the model takes.
        """
        names, rest = content["names"], dict(content)
        known = None if names is None else tuple(names)
        rest |= {"names": known, "description": rest.pop("told")}
        steps = cls(**rest, arrays=arrays)
        if steps.transform not in TRANSFORMS:
            raise ValueError("there is no such transform")
        if known is not None and len(known) != steps.n_features:
            raise ValueError("names and features do not fit each other")
        for column, values in steps.encoding.items():
            if not {f"{column}={value}" for value in values} <= set(known or ()):
                raise ValueError("names and categories do not fit each other")
        # Before anything is made of that size: some array has it, or the model.
        sizes = [a.size for n, a in arrays.items() if n in ("means", "order")]
        if any(size != steps.n_features for size in sizes or [n_taken]):
            raise ValueError("there are other features")
        steps.find_odd_means(np.ones((1, steps.n_features)))
        if steps.apply(np.ones((1, steps.n_features))).shape[1] != n_taken:
            raise ValueError("the model takes other features")
        return steps


@dataclass(frozen=True, eq=False)
class PreparedTable:
    """A table that is ready to be clustered.

    Attributes
    ----------
    table : Table
        With the values as the report shows them.
    steps : TableSteps
        What was done, to be done to new samples as well.
    words : dict
        What the values are (kind), what is done to them (prepared), and why (reason);
        None where there is nothing to say.
    values : ndarray of shape (n_samples, n_seen)
        What an estimator is fitted to: those of the table, their principal components,
        or the values as they were if base clusterings prepare them.
    preparation : {None, "diversified"}
        The parameter of `MDEC`: whether base clusterings draw their own.
    raw : ndarray of shape (n_samples, n_features) or None
        The values before they were prepared, if they are; of sparse ones some samples.
    """

    table: Table
    steps: TableSteps
    words: dict[str, str | None]
    values: Array
    preparation: str | None = None
    raw: Array | None = None


class _Decision(NamedTuple):
    """What is fitted to a table, and what is said of its values."""

    reason: str
    kind: str | None = None
    prepared: str | None = None
    fitted: ExpressionPreparation | FeatureScales | None = None


def prepare_table(
    table: Table,
    prepare: str = "auto",
    transform: str = "none",
    *,
    n_top_genes: int | None = None,
) -> PreparedTable:
    """Decide what the values of a table are and prepare them accordingly.

    Parameters
    ----------
    table : Table
        What was read.
    prepare : {"auto", "none", "expression", "diversified"}
        "auto" prepares expression values, puts measurements in different units on one
        scale and leaves all others alone; "expression" refuses others, "diversified"
        leaves it to the base clusterings.
    transform : str
        One of `TRANSFORMS`; values are not prepared on top of it.
    n_top_genes : int, optional
        How many of the most variable features are kept; None for what suits the values.

    Returns
    -------
    PreparedTable
        With the values themselves where nothing is done, filled in if they are sparse.
    """
    given = {"prepare": prepare} if prepare in ("none", "diversified") else {}
    given = {"transform": transform} if transform != "none" else given
    if n_top_genes is not None and given:
        name, value = given.popitem()
        raise TableError(
            f"n_top_genes={n_top_genes} chooses genes once for all base clusterings, "
            f"after preparing the values, and {name}={value!r} does not; give one of "
            "them."
        )
    if prepare == "none":
        found = _Decision("Preparing is turned off.")
    elif prepare == "auto" and transform != "none":
        found = _Decision(f"The values are transformed: {transform}.")
    elif transform != "none":
        raise TableError(
            f"prepare={prepare!r} and transform={transform!r} would change the values "
            "twice; give one of them."
        )
    elif table.encoding and prepare == "auto":
        found = _decide_categories(table)
    else:
        table, found = _decide_kind(table, prepare, n_top_genes)
    fitted = found.fitted
    table = table if fitted is not None else _fill_table(table)
    drawn = prepare == "diversified" and fitted is not None
    steps = TableSteps.from_table(table, transform, fitted, found.prepared)
    raw, names = table.values, table.feature_names
    if isinstance(fitted, ExpressionPreparation):
        names = [names[j] for j in fitted.features_]
    shown = replace(table, values=steps.prepare(raw), feature_names=names)
    components = steps.components
    values = shown.values if components is None else components.apply(shown.values)
    if drawn:
        # What base clusterings do by themselves is done to no new table before.
        steps, values = TableSteps.from_table(table), raw
    if sparse.issparse(raw):
        raw = fill_zeros(raw[:: -(-raw.shape[0] // _SHOWN_SAMPLES)])
    words = {n: getattr(found, n) for n in ("kind", "prepared", "reason")}
    how, before = "diversified" if drawn else None, None if fitted is None else raw
    return PreparedTable(shown, steps, words, values, how, before)


def _decide_kind(
    table: Table, prepare: str, n_top_genes: int | None
) -> tuple[Table, _Decision]:
    """Learn what suits the kind of values, of a table that is filled in for it."""
    drawn = prepare == "diversified"
    kind, reason = kind_of_values(table.values)
    if table.kind is not None and not drawn:
        kind, reason = table.kind, f"The file itself says that these are {table.kind}."
    if prepare == "expression" and kind == "other":
        raise TableError(
            f"prepare='expression' finds no expression values ({reason.rstrip('.')}); "
            "use prepare='none' or prepare='diversified', or name their kind with "
            "mdec.preparation.ExpressionPreparation(kind=...)."
        )
    recipe, names = RECIPES[kind], table.feature_names
    # Genes of cells are chosen first, which leaves few zeros to fill in.
    if drawn or recipe.n_top is None:
        table = _fill_table(table)
    if kind == "other" and prepare == "auto" and len(names) < MIN_FEATURES:
        mixed, why = find_mixed_units(table.values, names)
        if mixed:
            return table, _scale_units(table, why)
        reason = f"{reason} {why}"
    # Base clusterings that draw their own preparation see all features.
    how: dict[str, Any] = {"share": 1.0, "n_components": 0} if drawn else {}
    fitted = ExpressionPreparation(kind, n_top_genes=n_top_genes, **how)
    n_kept = fitted.fit(table.values).features_.size
    counted = recipe.n_top is not None or n_top_genes is not None
    shown = n_kept if counted and n_kept < len(names) else None
    done = describe_recipe(recipe, drawn=drawn, n_kept=shown)
    if fitted.components_ is not None:
        number = len(fitted.components_.names)
        which = f"{number} principal components stand for them, as there are more than"
        done = "; ".join(filter(None, [done, f"{which} {MANY_CELLS} samples"]))
    if not done:
        reason += "" if kind == "other" else " They need no more."
        return table, _Decision(reason, kind)
    return table, _Decision(reason, kind, done, fitted)


def _decide_categories(table: Table) -> _Decision:
    """Learn what puts numbers and the categories beside them on one scale."""
    numbers = table.values[:, table.groups < 0]
    if not numbers.shape[1]:
        return _Decision("All features are values of categories.")
    kind, reason = kind_of_values(numbers)
    if kind != "other":
        raise TableError(
            f"expression values ({reason.rstrip('.')}) are not clustered together with "
            "categories; set these aside with categories='annotate'."
        )
    return _scale_units(table, "Categories stand beside numbers.")


def _scale_units(table: Table, reason: str) -> _Decision:
    """Learn what puts all features on one scale, and say so."""
    scales = learn_scales(table.values, table.groups)
    done = "each feature is standardised"
    if heavy := [table.feature_names[j] for j in np.flatnonzero(scales.heavy)]:
        done += f", by median and quartiles where tails are heavy ({list_names(heavy)})"
    if table.encoding:
        done += "; a category weighs as one feature"
    return _Decision(reason, UNITS, done, scales)


def _fill_table(table: Table) -> Table:
    """Return a table with the zeros that sparse values leave out."""
    if not sparse.issparse(table.values):
        return table
    shape, size = table.values.shape, table.values.dtype.itemsize
    require_memory(
        size * math.prod(shape),
        f"filling in the zeros of {shape[0]} x {shape[1]} values",
        "keep fewer features, or prepare the values",
    )
    return replace(table, values=fill_zeros(table.values))


def describe_recipe(
    recipe: Recipe, *, drawn: bool = False, n_kept: int | None = None
) -> str:
    """Say what a recipe does, in its order; nothing for one that leaves all alone.

    Parameters
    ----------
    recipe : Recipe
        What is done.
    drawn : bool, default=False
        Whether base clusterings draw the power and the share of features.
    n_kept : int, optional
        How many features are kept, where that is said in numbers; None for all.

    Returns
    -------
    str
        A clause for each step.

    Examples
    --------
    >>> describe_recipe(RECIPES["log-ratios"])
    "each sample's mean is subtracted; the 20% most variable features are kept"
    >>> describe_recipe(RECIPES["other"])
    ''
    >>> print(describe_recipe(RECIPES["log-counts"], n_kept=50))
    the 50 genes that vary most for their mean are kept, of those in at least 3 samples
    """
    powers = recipe.drawn_powers if drawn else (recipe.power,)
    low, high = recipe.drawn_shares if drawn else (recipe.share, recipe.share)
    share = f"the {low:.0%} most variable features are kept"
    if drawn:
        share = (
            "each base clustering takes the most variable features, a share of its own "
            f"from {low:.0%} to {high:.0%}"
        )
    elif n_kept is not None and recipe.n_top is not None:
        share = (
            f"the {n_kept} genes that vary most for their mean are kept, of those in "
            f"at least {MIN_CELLS} samples"
        )
    elif n_kept is not None:
        share = f"the {n_kept} most variable features are kept"
    shown = {each: f"x^{each:g}" if each else "log2(1 + x)" for each in powers}
    # How often a value becomes that, if base clusterings draw it.
    odds = [
        f"{shown[each]} in {powers.count(each)} of {len(powers)} base clusterings"
        for each in shown
        if each != 1.0
    ]
    becomes = ", ".join(odds) if len(shown) > 1 else shown[powers[0]]
    becomes += " and stays x in the others" if len(shown) > 1 and 1.0 in shown else ""
    steps = {
        "each sample is scaled to the same sum": recipe.totals,
        f"each value x becomes {becomes}": set(powers) != {1.0},
        "each sample's mean is subtracted": recipe.center,
        share: low < 1.0 or n_kept is not None,
    }
    return "; ".join(words for words, taken in steps.items() if taken)


def transform_values(values: NDArray[np.floating], how: str) -> NDArray[np.floating]:
    """Return the values after one of the usual transformations.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_features)
        Finite numbers.
    how : {"none", "log", "standardise"}
        "log" is log2(x + 1); "standardise" gives each feature mean 0 and standard
        deviation 1, and leaves constant features at 0.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        A new array, or `values` itself for "none".

    Examples
    --------
    >>> transform_values(np.array([[0.0, 1.0], [3.0, 1.0]]), "log")
    array([[0., 1.],
           [2., 1.]])
    """
    if how == "none":
        return values
    if how == "log":
        if values.min() < 0.0:
            raise ValueError(
                "the log transform needs numbers from 0 up and the table has negative "
                "ones; use none or standardise."
            )
        return np.log2(values + 1.0)
    if how != "standardise":
        raise ValueError(f"transform={how!r} is not one of {', '.join(TRANSFORMS)}.")
    return scale_features(values, standard_scales(values))
