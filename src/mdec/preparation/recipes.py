"""The steps of preparing values, and which of them suit each kind of values."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mdec._support.arrays import Array


def stabilize(X: Array, power: float) -> Array:
    r"""Return values whose variance grows less with their mean.

    Parameters
    ----------
    X : ndarray
        Values.
    power : float
        1 leaves them as they are, 1/2 is the square root, 0 is :math:`\log_2(1 + x)`.

    Returns
    -------
    ndarray
        Of the same shape and precision.

    Notes
    -----
    Zero stays zero. A negative value, as background subtraction leaves it, becomes
    minus what its size becomes: order and sign are kept, and noise around zero stays
    noise around zero.

    Examples
    --------
    >>> stabilize(np.array([-4.0, 0.0, 9.0]), 0.5)
    array([-2.,  0.,  3.])
    >>> stabilize(np.array([-1.0, 0.0, 7.0]), 0.0)
    array([-1.,  0.,  3.])
    """
    if power == 1.0:
        return X
    sizes = np.abs(X)
    return np.copysign(sizes**power if power else np.log1p(sizes) / math.log(2.0), X)


def sample_totals(X: Array) -> NDArray[np.float64]:
    """Return the sum of each sample, such as the library size of counts.

    Examples
    --------
    >>> sample_totals(np.array([[1.0, 2.0], [0.0, 0.0]]))
    array([3., 0.])
    """
    return X.sum(axis=1, dtype=np.float64)


def scale_to_total(X: Array, total: float) -> Array:
    """Scale each sample to the same sum.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Counts.
    total : float
        The sum; that of a typical training sample keeps the values' size.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        Samples without a positive sum are left as they are.

    Examples
    --------
    >>> scale_to_total(np.array([[1.0, 3.0], [0.0, 0.0]]), 8.0)
    array([[2., 6.],
           [0., 0.]])
    """
    totals = sample_totals(X)
    factors = np.divide(total, totals, out=np.ones_like(totals), where=totals > 0.0)
    return (X * factors[:, None]).astype(X.dtype, copy=False)


def center_samples(X: Array) -> Array:
    """Subtract each sample's mean.

    Examples
    --------
    >>> center_samples(np.array([[1.0, 3.0], [5.0, 5.0]]))
    array([[-1.,  1.],
           [ 0.,  0.]])
    """
    means = X.mean(axis=1, keepdims=True, dtype=np.float64)
    return (X - means).astype(X.dtype, copy=False)


def scale_to_spread(X: Array) -> Array:
    """Divide each sample by its standard deviation.

    Samples of equal values have none and are left as they are.

    Examples
    --------
    >>> scale_to_spread(np.array([[4.0, 8.0], [5.0, 5.0]]))
    array([[2., 4.],
           [5., 5.]])
    """
    # Relative to the largest value, so that squares neither overflow nor vanish.
    sizes = np.abs(X).max(axis=1, keepdims=True).astype(np.float64)
    sizes[sizes == 0.0] = 1.0
    relative = X / sizes
    spreads = relative.std(axis=1, keepdims=True)
    # Equal values may differ from their mean by rounding.
    some = spreads > 1e-12
    return np.where(some, relative / np.where(some, spreads, 1.0), X).astype(X.dtype)


def variance_order(X: Array) -> NDArray[np.int64]:
    """Return the features from the most to the least variable.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Values.

    Returns
    -------
    ndarray of shape (n_features,)
        Feature numbers; equal ones in their order.

    Examples
    --------
    >>> variance_order(np.array([[0.0, 0.0, 1.0], [0.0, 2.0, 2.0]]))
    array([1, 2, 0])
    """
    return np.argsort(-feature_spreads(X), kind="stable")


def feature_spreads(X: Array) -> NDArray[np.float64]:
    """Return the features' standard deviations, relative to the largest value of all.

    Examples
    --------
    >>> feature_spreads(np.array([[0.0, 2.0], [1.0, 2.0]]))
    array([0.25, 0.  ])
    """
    return np.std(X / (float(np.abs(X).max()) or 1.0), axis=0, dtype=np.float64)


def leading_features(order: NDArray[np.int64], share: float) -> NDArray[np.int64]:
    """Return the leading share of ordered features, at least one, sorted by number.

    Examples
    --------
    >>> leading_features(np.array([3, 0, 2, 1]), 0.5)
    array([0, 3])
    """
    # Not one more where the product was rounded up.
    size = max(1, math.ceil(share * order.size - 1e-9))
    return np.sort(order[:size])


@dataclass(frozen=True)
class Recipe:
    """What suits one kind of values; docs/quality.md says how it was found.

    Attributes
    ----------
    power : float
        Of the transform, see `stabilize`.
    share : float
        Share of the most variable features that is kept.
    drawn_powers : tuple of float
        Powers that the members of a diversified ensemble draw from; one that is listed
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

# Kinds for which members do better each with its own draw than all with one recipe.
DRAWN = ("intensities",)


@dataclass(frozen=True, eq=False)
class Preparation:
    """What is learnt from training samples for one power of the transform.

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
    """Learn from training samples what preparing others takes.

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
    return replace(learnt, order=variance_order(prepare(X, learnt, everything)))


def prepare(X: Array, preparation: Preparation, features: NDArray[np.int64]) -> Array:
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
    >>> prepare(X, learnt, learnt.order[:1])
    array([[2.],
           [4.]])
    """
    rows = X if preparation.total is None else scale_to_total(X, preparation.total)
    if not preparation.center:
        return stabilize(rows[:, features], preparation.power)
    return center_samples(stabilize(rows, preparation.power))[:, features]


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
        made = {power: prepare(X, each, whole) for power, each in learnt.items()}
        return cls(X, learnt, made)

    def select(self, draw: Draw | None) -> tuple[Array, NDArray[np.int64] | None]:
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
