"""Preparing expression values: what they are, and what should be done to them first."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    OneToOneFeatureMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.feature_selection import SelectorMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import (
    _check_feature_names_in,
    check_is_fitted,
    validate_data,
)

Array = NDArray[np.floating]

# What values can be; "other" is left alone.
KINDS = ("counts", "log-counts", "intensities", "logged", "log-ratios", "other")

# Fewer features are an ordinary table, or an embedding.
MIN_FEATURES = 100

# Samples that are looked at to tell what the values are.
_SAMPLES = 1000

# In one sample of raw expression a few genes outshine the rest: its skewness is above
# 4 on every raw set of the paper, and at most 2.2 on its images.
_RAW_SKEWNESS = 3.0

# Excess kurtosis of one sample: above 1.4 for the log-ratios of the paper, near 0 for
# embeddings.
_RATIO_KURTOSIS = 1.0

# Correlation of a sample with the mean of all, where genes keep their levels.
_AGREEMENT = 0.7

# The largest logarithm of expression lies here, to base 2 or e.
_LOGGED = (8.0, 25.0)


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
    "log-ratios": Recipe(share=0.2, center=True),
    "other": Recipe(),
}

# Shares of the most variable features that members of a diversified ensemble draw.
SHARES = (0.1, 1.0)


def stabilized(X: Array, power: float) -> Array:
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
    >>> stabilized(np.array([-4.0, 0.0, 9.0]), 0.5)
    array([-2.,  0.,  3.])
    >>> stabilized(np.array([-1.0, 0.0, 7.0]), 0.0)
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


def scaled_to_total(X: Array, total: float) -> Array:
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
    >>> scaled_to_total(np.array([[1.0, 3.0], [0.0, 0.0]]), 8.0)
    array([[2., 6.],
           [0., 0.]])
    """
    totals = sample_totals(X)
    factors = np.divide(total, totals, out=np.ones_like(totals), where=totals > 0.0)
    return (X * factors[:, None]).astype(X.dtype, copy=False)


def centered(X: Array) -> Array:
    """Subtract each sample's mean.

    Examples
    --------
    >>> centered(np.array([[1.0, 3.0], [5.0, 5.0]]))
    array([[-1.,  1.],
           [ 0.,  0.]])
    """
    means = X.mean(axis=1, keepdims=True, dtype=np.float64)
    return (X - means).astype(X.dtype, copy=False)


def scaled_to_spread(X: Array) -> Array:
    """Divide each sample by its standard deviation.

    Samples of equal values have none and are left as they are.

    Examples
    --------
    >>> scaled_to_spread(np.array([[4.0, 8.0], [5.0, 5.0]]))
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
    >>> prepared(X, learnt, leading_features(learnt.order, 1 / 3))
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


def kind_of_values(X: Array) -> tuple[str, str]:
    """Tell what values are, and how one sees it.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
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
    if X.shape[1] < MIN_FEATURES:
        return "other", f"{X.shape[1]} features are too few for expression data."
    low, high = float(X.min()), float(X.max())
    if max(-low, high) <= 1.0:
        return "other", (
            "All values lie between -1 and 1, as bits, proportions, unit vectors and "
            "scaled features do."
        )
    step = math.ceil(X.shape[0] / _SAMPLES)
    rows = X[::step].astype(np.float64)
    return _kind_of_signed(X, rows) if low < 0.0 else _kind_of_positive(rows)


def _kind_of_positive(rows: Array) -> tuple[str, str]:
    low, high = float(rows.min()), float(rows.max())
    whole = bool((rows == np.rint(rows)).all())
    at_top = np.count_nonzero(rows == high)
    if whole and high <= 255.0 and at_top > 0.005 * np.count_nonzero(rows):
        return "other", f"Whole numbers pile up at the largest, {high:g}, as in images."
    if np.allclose(sample_totals(rows), 100.0, rtol=1e-3):
        return "other", "Every sample sums to 100: these are percentages."
    if not whole and high <= _LOGGED[1] and _logs_of_counts(rows):
        return "log-counts", (
            "Undoing the logarithm gives each sample whole multiples of one number: "
            "these are counts, scaled and logged."
        )
    skewness = _typical_moment(rows, 3)
    if skewness >= _RAW_SKEWNESS and whole and low == 0.0:
        return "counts", (
            "Whole numbers from zero, a few of them far above the rest (skewness "
            f"{skewness:.1f} in a typical sample): these are counts."
        )
    if skewness >= _RAW_SKEWNESS:
        return "intensities", (
            "No value is negative and a few are far above the rest (skewness "
            f"{skewness:.1f} in a typical sample): these are raw intensities."
        )
    # Zeros are what is left of silent genes, or of neurons; genes have their levels.
    silent = np.mean(rows == 0.0) > 0.01 and _typical_agreement(rows) < _AGREEMENT
    if not whole and not silent and _LOGGED[0] <= high <= _LOGGED[1]:
        return "logged", (
            f"Values reach from {low:.3g} to {high:.3g} without a long tail, as "
            "logarithms of intensities do."
        )
    return "other", (
        f"Values from {low:.3g} to {high:.3g} are neither raw nor logged expression: "
        f"skewness {skewness:.1f} in a typical sample."
    )


def _kind_of_signed(X: Array, rows: Array) -> tuple[str, str]:
    low, high = float(rows.min()), float(rows.max())
    spreads = feature_spreads(X)
    varying = np.log(spreads[spreads > 0.0])
    # Were all true spreads alike, their logarithms would still differ by about this.
    if varying.size < 2 or varying.std() <= 0.05 + 1.0 / math.sqrt(X.shape[0]):
        return "other", "All features vary alike, as standardised ones do."
    relative = rows / max(-low, high)
    lengths = np.linalg.norm(relative, axis=1)
    if lengths.std() <= 1e-3 * lengths.mean():
        return "other", "All samples have the same length, as embeddings have."
    places = np.argsort(np.argsort(-spreads, kind="stable"), kind="stable")
    if np.corrcoef(places, np.arange(places.size))[0, 1] > 0.9:
        return "other", "Features come in the order of their variance: a projection."
    skewness, kurtosis = _typical_moment(rows, 3), _typical_moment(rows, 4) - 3.0
    if skewness >= _RAW_SKEWNESS and high > _LOGGED[1]:
        return "intensities", (
            f"A few values are far above the rest (skewness {skewness:.1f} in a "
            "typical sample): these are raw intensities less a background."
        )
    offset = float(np.median(np.median(relative, axis=1))) / relative.std()
    if offset >= 0.5 and low >= -_LOGGED[0] and _LOGGED[0] <= high <= _LOGGED[1]:
        return "logged", (
            f"Values reach from {low:.3g} to {high:.3g} and most are positive, as "
            "logarithms of scaled counts are."
        )
    wide = X.shape[1] > X.shape[0] and max(-low, high) <= _LOGGED[1]
    if wide and abs(offset) < 0.5 and kurtosis >= _RATIO_KURTOSIS:
        return "log-ratios", (
            f"Values from {low:.3g} to {high:.3g} lie around zero with heavy tails "
            f"(excess kurtosis {kurtosis:.1f} in a typical sample): these are "
            "log-ratios."
        )
    return "other", (
        f"Values from {low:.3g} to {high:.3g} on both sides of zero are no log-ratios: "
        f"excess kurtosis {kurtosis:.1f} and skewness {skewness:.1f} in a typical "
        "sample."
    )


def _typical_moment(rows: Array, degree: int) -> float:
    """Return the median over the samples of a standardised moment."""
    standardised = scaled_to_spread(centered(rows))
    return float(np.median(np.mean(standardised**degree, axis=1)))


def _typical_agreement(rows: Array) -> float:
    """Return the median correlation of samples with the mean of all."""
    mean = scaled_to_spread(centered(rows.mean(axis=0, keepdims=True)))
    return float(np.median(np.mean(scaled_to_spread(centered(rows)) * mean, axis=1)))


def _logs_of_counts(rows: Array) -> bool:
    """Tell whether samples are log(1 + c n) of counts n, with a c of their own."""
    shares = []
    for row in rows:
        values = np.expm1(row[row > 0.0])
        multiples = values / values.min(initial=math.inf)
        # Larger ones are not whole any more after rounding to float32.
        multiples = multiples[(multiples > 1.5) & (multiples < 1000.0)]
        if multiples.size:
            shares.append(np.mean(np.abs(multiples - np.rint(multiples)) < 0.02))
    return len(shares) > len(rows) / 2 and float(np.median(shares)) > 0.9


def kind_of_layer(X: Array, layer: str | None, uns: Iterable[str]) -> str | None:
    """Tell what the values of an AnnData layer are by its name, where that is clear.

    Parameters
    ----------
    X : ndarray
        The layer's values; with negative ones the name is not trusted.
    layer : str or None
        Its name; None for ``X``.
    uns : iterable of str
        Keys of ``uns``, where Scanpy notes that ``X`` was logged.

    Returns
    -------
    str or None
        "counts", "log-counts", or None where the values must tell.

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


class VarianceStabilizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Take a power of each value, so that variance grows less with the mean.

    Parameters
    ----------
    power : float, default=0.5
        1 does nothing, 1/2 is the square root, 0 the logarithm of one plus the value.
        Zeros stay zero and negative values keep their sign, see `stabilized`.

    Examples
    --------
    >>> VarianceStabilizer().fit_transform([[4.0, 0.0], [-9.0, 1.0]])
    array([[ 2.,  0.],
           [-3.,  1.]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "power": [Interval(Real, 0.0, 1.0, closed="both")]
    }

    def __init__(self, power: float = 0.5) -> None:
        self.power = power

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002
        """Check the values; nothing is learnt."""
        _checked(self, X, reset=True)
        return self

    def transform(self, X: ArrayLike) -> Array:
        """Return the values to the power."""
        check_is_fitted(self)
        return stabilized(_checked(self, X), self.power)


class SampleScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Make samples comparable: centre each, and give all the same spread or sum.

    Parameters
    ----------
    center : bool, default=True
        Subtract each sample's mean.
    scale : {"none", "spread", "total"}, default="none"
        "spread" divides each sample by its standard deviation; "total" scales each
        to the median sum of the training samples, before it is centred.

    Attributes
    ----------
    total_ : float
        Median sum of the training samples.

    Examples
    --------
    >>> SampleScaler().fit_transform([[1.0, 3.0], [5.0, 5.0]])
    array([[-1.,  1.],
           [ 0.,  0.]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "center": ["boolean"],
        "scale": [StrOptions({"none", "spread", "total"})],
    }

    def __init__(self, center: bool = True, scale: str = "none") -> None:
        self.center = center
        self.scale = scale

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002
        """Learn the median sum of the samples."""
        self.total_ = float(np.median(sample_totals(_checked(self, X, reset=True))))
        return self

    def transform(self, X: ArrayLike) -> Array:
        """Return the samples, each scaled by itself."""
        check_is_fitted(self)
        rows = _checked(self, X)
        if self.scale == "total":
            rows = scaled_to_total(rows, self.total_)
        if self.center:
            rows = centered(rows)
        return scaled_to_spread(rows) if self.scale == "spread" else rows


class MostVariable(SelectorMixin, BaseEstimator):
    """Keep the features that vary most among the training samples.

    Parameters
    ----------
    share : float, default=0.3
        Share of the features to keep; at least one is kept.

    Attributes
    ----------
    order_ : ndarray of shape (n_features_in_,)
        The features from the most to the least variable.

    Examples
    --------
    >>> MostVariable(0.5).fit_transform([[0.0, 1.0], [0.0, 3.0]])
    array([[1.],
           [3.]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "share": [Interval(Real, 0.0, 1.0, closed="right")]
    }

    def __init__(self, share: float = 0.3) -> None:
        self.share = share

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002
        """Order the features by their variance."""
        self.order_ = variance_order(_checked(self, X, reset=True))
        return self

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        mask = np.zeros(self.order_.size, dtype=bool)
        mask[leading_features(self.order_, self.share)] = True
        return mask


class ExpressionPreparation(TransformerMixin, BaseEstimator):
    """Look at the values, decide what they are, and prepare them accordingly.

    Raw intensities are raised to the power 3/4. Counts are scaled to the same sum and
    logged; counts that have been are left alone. Log-ratios and logged intensities are
    centred sample by sample, and the features that vary most are kept. Everything
    else, such as images, embeddings, standardised features and ordinary tables, is
    left alone.

    Parameters
    ----------
    kind : str, default="auto"
        "counts", "log-counts", "intensities", "logged", "log-ratios" or "other" where
        you know better than the values tell.
    share : float, default=None
        Share of the most variable features to keep; None takes what suits the kind.

    Attributes
    ----------
    kind_ : str
        What the values are.
    reason_ : str
        How one sees it, in words.
    preparation_ : Preparation
        What was learnt from the training samples.
    features_ : ndarray
        Numbers of the features that are kept.

    See Also
    --------
    VarianceStabilizer, SampleScaler, MostVariable : The steps, to choose by hand.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.exp(rng.normal(5.0, 2.0, size=(20, 500)))
    >>> preparation = ExpressionPreparation().fit(X)
    >>> preparation.kind_
    'intensities'
    """

    n_features_in_: int

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kind": [StrOptions({"auto", *KINDS})],
        "share": [Interval(Real, 0.0, 1.0, closed="right"), None],
    }

    def __init__(self, kind: str = "auto", share: float | None = None) -> None:
        self.kind = kind
        self.share = share

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002
        """Decide what the values are, and which features are kept."""
        rows = _checked(self, X, reset=True)
        if self.kind == "auto":
            self.kind_, self.reason_ = kind_of_values(rows)
        else:
            self.kind_, self.reason_ = self.kind, f"You said {self.kind}."
        recipe = RECIPES[self.kind_]
        share = recipe.share if self.share is None else self.share
        self.preparation_ = learn_preparation(rows, self.kind_, recipe.power)
        self.features_ = leading_features(self.preparation_.order, share)
        return self

    def transform(self, X: ArrayLike) -> Array:
        """Return samples prepared as those of training were."""
        check_is_fitted(self)
        return prepared(_checked(self, X), self.preparation_, self.features_)

    def get_feature_names_out(
        self, input_features: ArrayLike | None = None
    ) -> NDArray[np.object_]:
        """Return the names of the features that are kept."""
        check_is_fitted(self)
        return _check_feature_names_in(self, input_features)[self.features_]


def _checked(estimator: BaseEstimator, X: ArrayLike, *, reset: bool = False) -> Array:
    return validate_data(estimator, X, dtype=(np.float64, np.float32), reset=reset)
