"""What values are: expression of some kind, measurements in different units, or other.

Of ages beside incomes the feature with the largest numbers would decide every distance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import gen_batches

from mdec._support.arrays import Array
from mdec.preparation import recipes

# Fewer features are an ordinary table, or an embedding.
MIN_FEATURES = 100

# Samples that are looked at to tell what the values are, and numbers of theirs.
_SAMPLES, _NUMBERS = 1000, 2**22
# Numbers that are filled in at a time.
_BLOCK = 2**18

# In one sample of raw expression a few genes outshine the rest: its skewness is above
# 4 on every raw set of the paper, and at most 2.2 on its images.
_RAW_SKEWNESS = 3.0

# Excess kurtosis of one sample: above 1.4 for the log-ratios of the paper, near 0 for
# embeddings.
_RATIO_KURTOSIS = 1.0

# Ratios to a reference, and abundances per million, have their median near 1.
_RATIOS = (0.25, 4.0)

# Correlation of a sample with the mean of all, where genes keep their levels: in bulk,
# and in single cells, of whose genes only some are seen.
_AGREEMENT, _CELL_AGREEMENT = 0.7, 0.3

# The largest logarithm of expression lies here, to base 2 or e; to base 10 of
# abundances from 300 to 10 million.
_LOGGED = (8.0, 25.0)
_LOGGED_10 = (2.5, 7.0)

# Reads fall on no copy of many genes in a cell, and on none of some in a tissue; arrays
# measure a background everywhere.
_SILENT = 0.1
_GENES = 1000

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


def kind_of_values(X: Array | sparse.csr_array) -> tuple[str, str]:
    """Tell what values are, and how one sees it.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Finite values.

    Returns
    -------
    kind : str
        One of `KINDS`; "other" where nothing speaks clearly for expression data.
    reason : str
        A sentence.

    Examples
    --------
    >>> kind, reason = kind_of_values(np.ones((5, 4)))
    >>> kind
    'other'
    >>> print(reason)
    4 features are too few for expression data.
    """
    return next((kind, reason) for holds, kind, reason in _rules(X) if holds)


def _rules(X: Array | sparse.csr_array) -> Iterator[tuple[bool, str, str]]:
    """Yield whether values are of a kind, which, and how one sees it; the first counts.

    The last holds always.
    """
    reason = f"{X.shape[1]} features are too few for expression data."
    yield X.shape[1] < MIN_FEATURES, "other", reason
    low, high = float(X.min()), float(X.max())
    reason = (
        "All values lie between -1 and 1, as bits, proportions, unit vectors and "
        "scaled features do."
    )
    yield max(-low, high) <= 1.0, "other", reason
    step = math.ceil(X.shape[0] / max(1, min(_SAMPLES, _NUMBERS // X.shape[1])))
    if low < 0.0:
        yield from _rules_of_signed(recipes.fill_zeros(X), X[::step])
    else:
        yield from _rules_of_positive(X[::step])


def _rules_of_positive(
    rows: Array | sparse.csr_array,
) -> Iterator[tuple[bool, str, str]]:
    low, high = float(rows.min()), float(rows.max())
    whole = bool(_of_each(rows, lambda part: (part == np.rint(part)).all(axis=1)).all())
    n_filled = _of_each(rows, lambda part: np.count_nonzero(part, axis=1)).sum()
    at_top = _of_each(rows, lambda part: (part == high).sum(axis=1)).sum()
    reason = f"Whole numbers pile up at the largest, {high:g}, as in images."
    yield whole and high <= 255.0 and at_top > 0.005 * n_filled, "other", reason
    reason = "Every sample sums to 100: these are percentages."
    yield np.allclose(recipes.sample_totals(rows), 100.0, rtol=1e-3), "other", reason
    reason = (
        "Undoing the logarithm gives each sample whole multiples of one number: "
        "these are counts, scaled and logged."
    )
    logs = not whole and high <= _LOGGED[1] and _logs_of_counts(rows)
    yield logs, "log-counts", reason
    skewness = _typical_moment(rows, 3)
    raw = skewness >= _RAW_SKEWNESS
    shown = f"skewness {skewness:.1f} in a typical sample"
    far = f"far above the rest ({shown})"
    reason = f"Whole numbers from zero, a few of them {far}: these are counts."
    yield raw and whole and low == 0.0, "counts", reason
    n_numbers = rows.shape[0] * rows.shape[1]
    silent = float((n_numbers - n_filled) / n_numbers)
    if not whole and silent >= _SILENT:
        zeros = f"{silent:.0%} of the values are zero"
        reason = (
            f"{zeros}, none is negative and a few are {far}: these are abundances of "
            "reads, such as TPM, FPKM or RPKM."
        )
        yield raw and high > _LOGGED[1], "abundances", reason
        reason = (
            f"{zeros} and the largest is {high:.3g}, as logarithms of abundances of "
            f"reads are, to base {'10' if high <= _LOGGED_10[1] else '2 or e'}."
        )
        logs = rows.shape[1] >= _GENES and _LOGGED_10[0] <= high <= _LOGGED[1]
        agreeing = logs and _typical_agreement(rows) >= _CELL_AGREEMENT
        yield agreeing, "log-abundances", reason
    middle = float(np.median(_of_each(rows, lambda part: np.median(part, axis=1))))
    reason = (
        f"No value is negative, a few are {far} and half are below {middle:.2g}: these "
        "are ratios."
    )
    yield raw and _RATIOS[0] <= middle <= _RATIOS[1], "ratios", reason
    reason = f"No value is negative and a few are {far}: these are raw intensities."
    yield raw, "intensities", reason
    # Zeros are what is left of silent genes, or of neurons; genes have their levels.
    neurons = silent > 0.01 and _typical_agreement(rows) < _AGREEMENT
    span, logs = f"from {low:.3g} to {high:.3g}", _LOGGED[0] <= high <= _LOGGED[1]
    reason = f"Values reach {span} without a long tail"
    reason += ", as logarithms of intensities do."
    yield logs and not whole and not neurons, "logged", reason
    reason = f"Values {span} are neither raw nor logged expression: {shown}."
    yield True, "other", reason


def _rules_of_signed(
    X: Array, some: Array | sparse.csr_array
) -> Iterator[tuple[bool, str, str]]:
    rows = recipes.fill_zeros(some).astype(np.float64)
    low, high = float(rows.min()), float(rows.max())
    spreads = recipes.feature_spreads(X)
    varying = np.log(spreads[spreads > 0.0])
    # Were all true spreads alike, their logarithms would still differ by about this.
    alike = varying.size < 2 or varying.std() <= 0.05 + 1.0 / math.sqrt(X.shape[0])
    yield alike, "other", "All features vary alike, as standardised ones do."
    relative = rows / max(-low, high)
    lengths = np.linalg.norm(relative, axis=1)
    alike = lengths.std() <= 1e-3 * lengths.mean()
    yield alike, "other", "All samples have the same length, as embeddings have."
    places = np.argsort(np.argsort(-spreads, kind="stable"), kind="stable")
    ordered = np.corrcoef(places, np.arange(places.size))[0, 1] > 0.9
    reason = "Features come in the order of their variance: a projection."
    yield ordered, "other", reason
    skewness, kurtosis = _typical_moment(rows, 3), _typical_moment(rows, 4) - 3.0
    reason = (
        f"A few values are far above the rest (skewness {skewness:.1f} in a typical "
        "sample): these are raw intensities less a background."
    )
    yield skewness >= _RAW_SKEWNESS and high > _LOGGED[1], "intensities", reason
    offset = float(np.median(np.median(relative, axis=1))) / relative.std()
    logs = low >= -_LOGGED[0] and _LOGGED[0] <= high <= _LOGGED[1]
    span = f"from {low:.3g} to {high:.3g}"
    reason = f"Values reach {span} and most are positive"
    reason += ", as logarithms of scaled counts are."
    yield logs and offset >= 0.5, "logged", reason
    wide = X.shape[1] > X.shape[0] and max(-low, high) <= _LOGGED[1]
    tails = f"excess kurtosis {kurtosis:.1f}"
    reason = (
        f"Values {span} lie around zero with heavy tails ({tails} in a typical "
        "sample): these are log-ratios."
    )
    around = wide and abs(offset) < 0.5 and kurtosis >= _RATIO_KURTOSIS
    yield around, "log-ratios", reason
    reason = (
        f"Values {span} around zero are not log-ratios: {tails} and skewness "
        f"{skewness:.1f} in a typical sample."
    )
    yield True, "other", reason


def _of_each(
    rows: Array | sparse.csr_array, measure: Callable[[Array], Array]
) -> NDArray[Any]:
    """Return a measure of each row; a few rows at a time are filled in."""
    some = gen_batches(rows.shape[0], max(1, _BLOCK // rows.shape[1]))
    parts = (recipes.fill_zeros(rows[each]).astype(np.float64) for each in some)
    return np.concatenate([measure(part) for part in parts])


def _typical_moment(rows: Array | sparse.csr_array, degree: int) -> float:
    """Return the median over the samples of a standardised moment."""
    found = _of_each(rows, lambda part: (_standardised(part) ** degree).mean(axis=1))
    return float(np.median(found))


def _typical_agreement(rows: Array | sparse.csr_array) -> float:
    """Return the median correlation of samples with the mean of all."""
    mean = _standardised(rows.mean(axis=0, dtype=np.float64).reshape(1, -1))
    found = _of_each(rows, lambda part: (_standardised(part) * mean).mean(axis=1))
    return float(np.median(found))


def _standardised(rows: Array) -> Array:
    return recipes.scale_to_spread(recipes.center_samples(rows))


def _logs_of_counts(rows: Array | sparse.csr_array) -> bool:
    """Tell whether samples are log(1 + c n) of counts n, with a c of their own."""

    def share(row: Array) -> float:
        values = np.expm1(row[row > 0.0])
        multiples = values / values.min(initial=math.inf)
        # Larger ones are not whole any more after rounding to float32.
        multiples = multiples[(multiples > 1.5) & (multiples < 1000.0)]
        near = np.abs(multiples - np.rint(multiples)) < 0.02
        return float(near.mean()) if near.size else math.nan

    shares = _of_each(rows, lambda part: np.array([share(row) for row in part]))
    known = shares[~np.isnan(shares)]
    return known.size > shares.size / 2 and float(np.median(known)) > 0.9


def kind_of_layer(
    X: Array | sparse.csr_array, layer: str | None, uns: Iterable[str]
) -> str | None:
    """Tell what the values of an AnnData layer are by its name, where that is clear.

    The name is None for ``X``, of which Scanpy notes in ``uns`` that it was logged. It
    is not trusted with negative values; without an answer the values must tell.

    Examples
    --------
    >>> kind_of_layer(np.ones((2, 2)), "counts", [])
    'counts'
    >>> kind_of_layer(np.ones((2, 2)), None, ["log1p"])
    'log-counts'
    """
    name = (layer or "").lower()
    if X.min() < 0.0 or name.startswith("scale"):
        return None
    if "log" in name or (layer is None and "log1p" in uns):
        return "log-counts"
    return "counts" if "count" in name or name in ("raw", "umi") else None


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
    rows = X[:: math.ceil(X.shape[0] / _SAMPLES)].astype(np.float64)
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
    rows = X[:: math.ceil(X.shape[0] / _SAMPLES)]
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
