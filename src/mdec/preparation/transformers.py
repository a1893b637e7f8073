"""The steps and the decision as scikit-learn transformers, for a Pipeline."""

from __future__ import annotations

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

from mdec.preparation.kinds import KINDS, kind_of_values
from mdec.preparation.recipes import RECIPES, learn_preparation, prepared
from mdec.preparation.steps import (
    centered,
    leading_features,
    sample_totals,
    scaled_to_spread,
    scaled_to_total,
    stabilized,
    variance_order,
)

Array = NDArray[np.floating]


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
        """Check the values; nothing is learnt.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Values.
        y : object, default=None
            Not used.

        Returns
        -------
        VarianceStabilizer
            The fitted transformer.
        """
        _checked(self, X, reset=True)
        return self

    def transform(self, X: ArrayLike) -> Array:
        """Return the values to the power.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Values.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Stabilised values.
        """
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
        """Learn the median sum of the samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Values.
        y : object, default=None
            Not used.

        Returns
        -------
        SampleScaler
            The fitted transformer.
        """
        self.total_ = float(np.median(sample_totals(_checked(self, X, reset=True))))
        return self

    def transform(self, X: ArrayLike) -> Array:
        """Return the samples, each scaled by itself.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Values.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Scaled values.
        """
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
    order_ : ndarray of shape (n_features,)
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
        """Order the features by their variance.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Values.
        y : object, default=None
            Not used.

        Returns
        -------
        MostVariable
            The fitted transformer.
        """
        self.order_ = variance_order(_checked(self, X, reset=True))
        return self

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        mask = np.zeros(self.order_.size, dtype=bool)
        mask[leading_features(self.order_, self.share)] = True
        return mask


class ExpressionPreparation(TransformerMixin, BaseEstimator):
    """Look at the values, decide what they are, and prepare them accordingly.

    Raw intensities are raised to the power 3/4. Ratios are logged. Counts are scaled
    to the same sum and logged; counts that have been are left alone. Log-ratios and
    logged intensities are centred sample by sample, and the features that vary most
    are kept. Everything else, such as images, embeddings, standardised features and
    ordinary tables, is left alone.

    Parameters
    ----------
    kind : str, default="auto"
        "counts", "log-counts", "intensities", "logged", "ratios", "log-ratios" or
        "other" where you know better than the values tell.
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
        """Decide what the values are, and which features are kept.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Values.
        y : object, default=None
            Not used.

        Returns
        -------
        ExpressionPreparation
            The fitted transformer.
        """
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
        """Return samples prepared as those of training were.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Values.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
            Prepared values.
        """
        check_is_fitted(self)
        return prepared(_checked(self, X), self.preparation_, self.features_)

    def get_feature_names_out(
        self, input_features: ArrayLike | None = None
    ) -> NDArray[np.object_]:
        """Return the names of the features that are kept.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the features; None for those seen in `fit`.

        Returns
        -------
        ndarray of str
            Names of the features that are kept.
        """
        check_is_fitted(self)
        return _check_feature_names_in(self, input_features)[self.features_]


def _checked(estimator: BaseEstimator, X: ArrayLike, *, reset: bool = False) -> Array:
    return validate_data(estimator, X, dtype=(np.float64, np.float32), reset=reset)
