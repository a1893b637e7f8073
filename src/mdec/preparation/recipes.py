"""What suits each kind of values, for all members or drawn by each."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mdec.preparation.steps import (
    centered,
    leading_features,
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
        Powers that the members of a diversified ensemble draw from; one that stands
        twice is drawn twice as often.
    drawn_shares : tuple of float
        Least and largest share of the most variable features that they draw.
    totals : bool
        Samples are scaled to the same sum first.
    center : bool
        Each sample's mean is subtracted after the power.
    """

    power: float = 1.0
    share: float = 1.0
    drawn_powers: tuple[float, ...] = (1.0,)
    drawn_shares: tuple[float, float] = (0.1, 1.0)
    totals: bool = False
    center: bool = False


RECIPES = {
    "counts": Recipe(0.0, drawn_powers=(0.0,), totals=True),
    "log-counts": Recipe(),
    "intensities": Recipe(
        0.75, drawn_powers=(1.0, 1.0, 0.75, 0.35), drawn_shares=(1.0, 1.0)
    ),
    "logged": Recipe(share=0.3, center=True),
    "ratios": Recipe(0.0, drawn_powers=(0.0,)),
    "log-ratios": Recipe(share=0.2, center=True),
    "other": Recipe(),
}

# Kinds of which members do better, each by its own draw, than all by one recipe.
DRAWN = ("intensities",)


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


@dataclass(frozen=True, eq=False)
class Versions:
    """The data as members see them: as they are, or once for each drawn power.

    Attributes
    ----------
    plain : ndarray of shape (n_samples, n_features)
        As they are.
    learnt : dict of Preparation
        What was learnt from training samples, by power; empty without preparation.
    made : dict of ndarray
        The data prepared, by power.
    about_mean : ndarray of shape (n_samples, n_features) or None
        The data as they are, each feature about its mean, where the squares of all
        fit into float64: members need not see to either again.
    """

    plain: Array
    learnt: dict[float, Preparation] = field(default_factory=dict)
    made: dict[float, Array] = field(default_factory=dict)
    about_mean: Array | None = None

    @classmethod
    def of(
        cls, X: Array, kind: str | None, learnt: dict[float, Preparation] | None = None
    ) -> Self:
        """Prepare data for members that draw their own preparation.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Training samples, or new ones.
        kind : str or None
            What the values are; None for no preparation.
        learnt : dict of Preparation, optional
            What training samples taught; None learns from X.

        Returns
        -------
        Versions
            One copy of the data for each power that members may draw.
        """
        if kind is None:
            return cls(X)
        if learnt is None:
            powers = RECIPES[kind].drawn_powers
            learnt = {power: learn_preparation(X, kind, power) for power in powers}
        whole = np.arange(X.shape[1])
        made = {power: prepared(X, each, whole) for power, each in learnt.items()}
        return cls(X, learnt, made)

    def seen(self, draw: Draw | None) -> tuple[Array, NDArray[np.int64] | None]:
        """Return the data that a member sees, and the features it may draw from."""
        if draw is None:
            return self.plain, None
        order = self.learnt[draw.power].order
        return self.made[draw.power], leading_features(order, draw.share)


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
        A power that suits the kind, and a share of the features, each doubling of it
        as likely as another.

    Examples
    --------
    >>> draw_preparation("log-ratios", np.random.default_rng(0)).power
    1.0
    """
    powers = RECIPES[kind].drawn_powers
    power = powers[rng.integers(len(powers))]
    low, high = RECIPES[kind].drawn_shares
    return Draw(power, low * (high / low) ** rng.random())
