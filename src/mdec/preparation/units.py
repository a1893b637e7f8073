"""Measurements in different units: how one sees them, and one scale for all.

Of ages beside incomes the feature with the largest numbers would decide every distance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mdec._support.arrays import Array
from mdec.preparation import recipes
from mdec.preparation.kinds import MIN_FEATURES, SAMPLES

# Spreads that differ by less may be those of one unit.
_FACTOR = 10.0

# So many whole numbers close together are codes or small counts; fewer features than
# the second number do not show a law.
_MOST_CODES, _ENOUGH = 10, 5

# Standard deviation over mean: nine of ten features of raw expression and of counts
# have at least 0.5 in the sets of the paper and of single cells.
_ONE_UNIT = 0.4

# Logarithms and ratios have levels within the first factor, spreads within the second.
_LEVELS, _SPREADS = 4.0, 30.0

# Standard deviation over that of a normal distribution with the same quartiles; below
# this, standardising does as well or better.
_HEAVY = 3.0
_QUARTILES = 1.349

# Share of the variance that leaves next to nothing for the other features.
_NEARLY_ALL = 0.95


@np.errstate(over="ignore")
def find_mixed_units(
    X: Array, feature_names: Sequence[str] | None = None
) -> tuple[bool, str]:
    """Tell whether features are measured in different units, and how one sees it.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Finite values.
    feature_names : sequence of str, optional
        Names for the reason.

    Returns
    -------
    mixed : bool
        False for images, embeddings, expression, counts, percentages of one whole and
        standardised values, and wherever nothing speaks clearly for units.
    reason : str
        A sentence with the numbers that decide it.

    Examples
    --------
    >>> X = np.array([[25.0, 31000.0], [61.0, 52000.0], [43.0, 87000.0]])
    >>> mixed, reason = find_mixed_units(X, ["age", "income"])
    >>> print(reason)
    Spreads differ 1600-fold, from 15 ('age') to 23000 ('income').
    """
    if X.shape[1] >= MIN_FEATURES:
        return False, f"{X.shape[1]} features are too many for units of their own."
    rows = X[:: math.ceil(X.shape[0] / SAMPLES)].astype(np.float64)
    if np.abs(rows).max() <= 1.0:
        return False, "All values lie between -1 and 1."
    lows, highs = rows.min(axis=0), rows.max(axis=0)
    if lows.min() >= 0.0:
        totals, spans = (rows / highs.max()).sum(axis=1), (highs - lows) / highs.max()
        if np.ptp(totals) <= min(1e-3 * totals.mean(), 0.1 * spans.max()):
            return False, "Every sample has the same sum: these are parts of one whole."
    places = np.flatnonzero(highs > lows)
    if places.size < 2:
        return False, "Fewer than two features vary."
    rows, lows, highs = rows[:, places], lows[places], highs[places]
    whole = (rows == np.rint(rows)).all(axis=0)
    codes = whole & (highs - lows <= 2 * _MOST_CODES)
    codes &= np.array([np.unique(column).size <= _MOST_CODES for column in rows.T])
    # A code that is rare is as large as one that is not.
    spreads = np.where(codes, highs / 2.0 - lows / 2.0, feature_widths(rows))
    order = np.argsort(spreads, kind="stable")
    cut = places.size // 20
    order = order[cut : places.size - cut]
    ends = order[0], order[-1]
    factor = float(spreads[ends[1]] / spreads[ends[0]])
    if factor < _FACTOR:
        return False, f"The features' spreads differ {_round(factor)}-fold only."
    shown = [_round(spreads[j]) for j in ends]
    if feature_names is not None:
        names = [str(feature_names[places[j]])[:40] for j in ends]
        shown = [f"{s} ({n!r})" for s, n in zip(shown, names, strict=True)]
    differ = f"Spreads differ {_round(factor)}-fold, from {shown[0]} to {shown[1]}"
    for holds, doubt in _signs_of_one_unit(rows, whole, codes, factor):
        if holds:
            return False, f"{differ}, but {doubt}."
    return True, f"{differ}."


def _round(value: float) -> str:
    """Return a number of two digits, without an exponent where it is not huge.

    Examples
    --------
    >>> _round(1574.2), _round(0.0312)
    ('1600', '0.031')
    """
    return f"{float(f'{value:.2g}'):g}"


def _signs_of_one_unit(
    rows: Array, whole: NDArray[np.bool_], codes: NDArray[np.bool_], factor: float
) -> Iterator[tuple[bool, str]]:
    """Yield what may speak for one unit in spite of different spreads, and if it does.

    The first that does counts.
    """
    yield bool(codes.all()), "all values are codes"
    lows, medians = rows.min(axis=0), np.abs(np.median(rows, axis=0))
    positive = bool(lows.min() >= 0.0)
    from_zero = positive and float(np.mean(lows <= 0.1 * medians)) >= 0.8
    counted = bool(whole.all()) and from_zero and len(lows) >= _ENOUGH
    yield counted, "whole numbers from zero up are counts"
    measured = rows[:, ~codes]
    both = (measured.min(axis=0) < 0.0) & (measured.max(axis=0) > 0.0)
    sides = "most features lie on both sides of zero, as in a projection"
    yield bool(both.mean() > 0.5), sides
    # Small counts have zeros, and stand beside whole numbers only.
    kinds = codes.mean() > 0.2 and not (whole.all() and (lows[codes] == 0.0).all())
    sizes = np.abs(measured).max(axis=0)
    means = np.abs((measured / sizes).mean(axis=0)) * sizes
    ratios = feature_widths(measured) / np.where(means > 0.0, means, 1.0)
    ratio, enough = float(np.quantile(ratios, 0.1)), ratios.size >= _ENOUGH
    yield (
        positive and not kinds and enough and ratio >= _ONE_UNIT,
        (
            "they grow with the means, as in expression and counts (standard deviation "
            f"over mean: {ratio:.2f} or more in nine of ten features)"
        ),
    )
    levels = medians[~codes]
    near = bool(levels.max() <= _LEVELS * levels.min()) and factor < _SPREADS
    alike = "all features have about the same level, as logarithms have"
    yield near and enough, alike


def feature_widths(X: Array) -> NDArray[np.float64]:
    """Return the features' standard deviations, however large or small they are.

    Examples
    --------
    >>> feature_widths(np.array([[0.0, 1e300], [4.0, -1e300]]))
    array([2.e+000, 1.e+300])
    """
    relative, sizes = recipes.relative_sizes(X, 0)
    return np.std(relative, axis=0, dtype=np.float64) * sizes[0]


def describe_dominance(X: Array, feature_names: Sequence[str] | None = None) -> str:
    """Say that a few features of a table decide all distances, if they do.

    A sentence with cause and cure, "" if all features count, or if units do not differ.

    Examples
    --------
    >>> describe_dominance(np.array([[1.0, 3.0], [2.0, 1.0]]))
    ''
    """
    if X.shape[1] >= MIN_FEATURES:
        return ""
    rows = X[:: math.ceil(X.shape[0] / SAMPLES)]
    widths = feature_widths(rows)
    order = np.argsort(-widths, kind="stable")
    shares = (widths[order] / (widths.max() or 1.0)) ** 2
    shares = np.cumsum(shares) / (shares.sum() or 1.0)
    n_heavy = int(np.searchsorted(shares, _NEARLY_ALL)) + 1
    few = n_heavy <= max(1, X.shape[1] // 5) and X.shape[1] > 1
    if not few or not find_mixed_units(X)[0]:
        return ""
    place = order[0]
    name = place if feature_names is None else repr(str(feature_names[place])[:40])
    return (
        f"{shares[n_heavy - 1]:.0%} of the variance lies in {n_heavy} of "
        f"{X.shape[1]} features (feature {name} above all), so that the others hardly "
        "count; put measurements in different units on one scale first, with "
        "mdec.preparation.UnitScaler()."
    )


@dataclass(frozen=True, eq=False)
class FeatureScales:
    """What puts features on one scale.

    Attributes
    ----------
    centers, widths : ndarray of shape (n_features,)
        What is subtracted and divided by: mean and standard deviation, or the median
        and the spread by quartiles.
    heavy : ndarray of bool of shape (n_features,)
        Features with heavy tails, which the inverse hyperbolic sine draws in.
    """

    centers: NDArray[np.floating]
    widths: NDArray[np.floating]
    heavy: NDArray[np.bool_]


def standard_scales(X: Array, groups: NDArray[np.int64] | None = None) -> FeatureScales:
    """Return means and standard deviations; the values of a category weigh as one.

    Examples
    --------
    >>> standard_scales(np.array([[0.0, 1.0], [4.0, 1.0]])).widths
    array([2., 1.])
    """
    spreads = X.std(axis=0)
    if groups is not None:
        spreads = join_spreads(spreads, groups)
    widths = np.where(spreads > 0.0, spreads, 1.0)
    return FeatureScales(X.mean(axis=0), widths, np.zeros(widths.size, dtype=bool))


def learn_scales(X: Array, groups: NDArray[np.int64] | None = None) -> FeatureScales:
    """Learn from training samples what puts their features on one scale.

    Constant features become zero, and those of two values have them one apart, so that
    a yes or no counts as much as a difference of one standard deviation. `groups` has
    the number of the category that a feature of zeros and ones is a value of, -1 for
    all others; the features of a category weigh as one together.

    Examples
    --------
    >>> learn_scales(np.array([[0.0, 5.0], [3.0, 1.0], [6.0, 1.0]])).widths.round(2)
    array([2.45, 4.  ])
    """
    relative, sizes = recipes.relative_sizes(X, 0)
    low, center, high = np.quantile(relative, [0.25, 0.5, 0.75], axis=0)
    spreads, bulk = relative.std(axis=0), (high - low) / _QUARTILES
    lows, highs = relative.min(axis=0), relative.max(axis=0)
    two = ((relative == lows) | (relative == highs)).all(axis=0)
    heavy = ~two & (bulk > 0.0) & (spreads > _HEAVY * bulk)
    widths = np.where(two, highs - lows, np.where(heavy, bulk, spreads))
    if groups is not None:
        own = np.where(groups < 0, widths, relative.std(axis=0))
        heavy, widths = heavy & (groups < 0), join_spreads(own, groups)
    # Equal values may differ from their mean by rounding.
    widths = np.where((highs > lows) & (widths > 1e-12), widths, 1.0)
    centers = np.where(heavy, center, relative.mean(axis=0))
    return FeatureScales(centers * sizes[0], widths * sizes[0], heavy)


def join_spreads(
    spreads: NDArray[np.floating], groups: NDArray[np.int64]
) -> NDArray[np.floating]:
    """Return the spreads, for all features of a group that of the group together.

    Examples
    --------
    >>> join_spreads(np.array([2.0, 3.0, 4.0]), np.array([-1, 0, 0]))
    array([2., 5., 5.])
    """
    if (groups < 0).all():
        return spreads
    joint = np.sqrt(np.bincount(groups + 1, weights=spreads**2))[groups + 1]
    return np.where(groups < 0, spreads, joint).astype(spreads.dtype)


def scale_features(X: Array, scales: FeatureScales) -> Array:
    """Return samples with all features on one scale, each changed by itself.

    Examples
    --------
    >>> X = np.array([[0.0, 10.0], [4.0, 30.0]])
    >>> scale_features(X, standard_scales(X))
    array([[-1., -1.],
           [ 1.,  1.]])
    """
    scaled = (X - scales.centers) / scales.widths
    scaled[:, scales.heavy] = np.arcsinh(scaled[:, scales.heavy])
    return scaled.astype(X.dtype, copy=False)
