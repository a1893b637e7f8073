"""What suits each kind of values, for all members or drawn by each."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mdec.preparation.steps import (
    centered,
    sample_totals,
    scaled_to_total,
    stabilized,
    variance_order,
)

Array = NDArray[np.floating]


@dataclass(frozen=True)
class Recipe:
    """What is good for one kind of values; docs/quality.md tells how it was found.

    Attributes
    ----------
    power : float
        Of the transform, see `stabilized`.
    share : float
        Share of the most variable features that is kept.
    drawn_powers : tuple of float
        Powers that the members of a diversified ensemble draw from.
    totals : bool
        Samples are scaled to the same sum first.
    center : bool
        Each sample's mean is subtracted after the power.
    """

    power: float = 1.0
    share: float = 1.0
    drawn_powers: tuple[float, ...] = (1.0,)
    totals: bool = False
    center: bool = False


RECIPES = {
    "counts": Recipe(0.0, drawn_powers=(0.0,), totals=True),
    "log-counts": Recipe(),
    "intensities": Recipe(0.75, drawn_powers=(0.75, 0.5)),
    "logged": Recipe(share=0.3, center=True),
    "ratios": Recipe(0.0, drawn_powers=(0.0,)),
    "log-ratios": Recipe(share=0.2, center=True),
    "other": Recipe(),
}

# Shares of the most variable features that members of a diversified ensemble draw.
SHARES = (0.1, 1.0)


@dataclass(frozen=True, eq=False)
class Preparation:
    """What training samples taught about one power; new samples change nothing in it.

    Attributes
    ----------
    power : float
        Of the transform.
    total : float or None
        Sum that samples are scaled to.
    center : bool
        Whether each sample's mean is subtracted.
    order : ndarray of shape (n_features,)
        Features from the most to the least variable, after all this.
    """

    power: float
    total: float | None
    center: bool
    order: NDArray[np.int64]


@dataclass(frozen=True)
class Draw:
    """The preparation of one member of a diversified ensemble.

    Attributes
    ----------
    power : float
        Of the transform.
    share : float
        Share of the most variable features.
    """

    power: float
    share: float


def learn_preparation(X: Array, kind: str, power: float) -> Preparation:
    """Learn from training samples all that preparing others takes.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Training samples.
    kind : str
        What the values are, see `KINDS`.
    power : float
        Of the transform.

    Returns
    -------
    Preparation
        Serves every member that draws this power.

    Examples
    --------
    >>> X = np.array([[1.0, 4.0, 9.0], [1.0, 16.0, 9.0]])
    >>> learn_preparation(X, "intensities", 0.5).order
    array([1, 0, 2])
    """
    recipe = RECIPES[kind]
    total = float(np.median(sample_totals(X))) if recipe.totals else None
    everything = np.arange(X.shape[1])
    learnt = Preparation(power, total, recipe.center, everything)
    return replace(learnt, order=variance_order(prepared(X, learnt, everything)))


def prepared(X: Array, preparation: Preparation, features: NDArray[np.int64]) -> Array:
    """Return some features of samples, prepared.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Samples with all their features, those of training or new ones.
    preparation : Preparation
        What was learnt from the training samples.
    features : ndarray
        Numbers of the features wanted.

    Returns
    -------
    ndarray of shape (n_samples, len(features))
        Each sample's values depend on that sample alone.

    Examples
    --------
    >>> X = np.array([[1.0, 4.0, 9.0], [1.0, 16.0, 9.0]])
    >>> learnt = learn_preparation(X, "intensities", 0.5)
    >>> prepared(X, learnt, learnt.order[:1])
    array([[2.],
           [4.]])
    """
    rows = X if preparation.total is None else scaled_to_total(X, preparation.total)
    if not preparation.center:
        return stabilized(rows[:, features], preparation.power)
    return centered(stabilized(rows, preparation.power))[:, features]


def draw_preparation(kind: str, rng: np.random.Generator) -> Draw:
    """Draw the preparation of one member.

    Parameters
    ----------
    kind : str
        What the values are, see `KINDS`.
    rng : Generator
        Source of the draw.

    Returns
    -------
    Draw
        A power that suits the kind, and a share from 10 to 100 %, each doubling of it
        as likely as another.

    Examples
    --------
    >>> draw_preparation("log-ratios", np.random.default_rng(0)).power
    1.0
    """
    powers = RECIPES[kind].drawn_powers
    power = powers[rng.integers(len(powers))]
    low, high = SHARES
    return Draw(power, low * (high / low) ** rng.random())
