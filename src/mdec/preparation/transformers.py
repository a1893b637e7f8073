"""The steps and the decision as scikit-learn transformers, for a Pipeline."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import (
    BaseEstimator,
    OneToOneFeatureMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import (
    _check_feature_names_in,
    check_is_fitted,
    validate_data,
)

from mdec._support.arrays import Array
from mdec.preparation import kinds, recipes, units


class _Transformer(TransformerMixin, BaseEstimator):
    """A transformer that says what it learns, and how it changes samples."""

    n_features_in_: int
    _accept_sparse: ClassVar[str | bool] = False

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002
        """Learn from training samples what preparing others takes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Values.
        y : object, default=None
            Not used.

        Returns
        -------
        object
            The fitted transformer.
        """
        self._learn(self._validate(X))
        return self

    def transform(self, X: ArrayLike) -> Array:
        """Return the samples, each changed by itself.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Values.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
            Their new values.
        """
        check_is_fitted(self)
        return self._change(self._validate(X, reset=False))

    def _validate(self, X: ArrayLike, *, reset: bool = True) -> Any:
        how = {"dtype": (np.float64, np.float32), "accept_sparse": self._accept_sparse}
        return validate_data(self, X, reset=reset, **how)

    def _learn(self, X: Any) -> None:
        """Set the attributes that depend on the training samples."""

    def _change(self, X: Any) -> Array:
        """Return the new values of checked samples."""
        return X


class VarianceStabilizer(OneToOneFeatureMixin, _Transformer):
    """Take a power of each value, so that variance grows less with the mean.

    Parameters
    ----------
    power : float, default=0.5
        1 does nothing, 1/2 is the square root, 0 the logarithm of one plus the value.
        Zeros stay zero and negative values keep their sign, see `stabilize`.

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

    def _change(self, X: Array) -> Array:
        return recipes.stabilize(X, self.power)


class SampleScaler(OneToOneFeatureMixin, _Transformer):
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

    def _learn(self, X: Array) -> None:
        self.total_ = float(np.median(recipes.sample_totals(X)))

    def _change(self, X: Array) -> Array:
        if self.scale == "total":
            factors = recipes.total_factors(X, self.total_)[:, None]
            X = (X * factors).astype(X.dtype, copy=False)
        if self.center:
            X = recipes.center_samples(X)
        return recipes.scale_to_spread(X) if self.scale == "spread" else X


class MostVariable(SelectorMixin, _Transformer):
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

    def _learn(self, X: Array) -> None:
        self.order_ = recipes.variance_order(X)

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        kept = recipes.leading_features(self.order_, self.share)
        return np.isin(np.arange(self.order_.size), kept)


class ExpressionPreparation(_Transformer):
    """Recognise the kind of values, and prepare them accordingly.

    Counts and abundances of reads (TPM, FPKM, RPKM) are scaled to the same sum and
    logged, unless they have been, and the 2,000 genes are kept that vary most for
    their mean, of those in at least three samples; sparse rows stay sparse until then.
    Of more than 4,000 samples, 50 principal components stand for these genes.
    Raw intensities are raised to the power 3/4. Ratios are logged. Log-ratios and
    logged intensities are centred sample by sample, and the features that vary most
    are kept. Everything else, such as images, embeddings, standardised features and
    ordinary tables, is left alone.

    Parameters
    ----------
    kind : str, default="auto"
        "counts", "log-counts", "abundances", "log-abundances", "intensities", "logged",
        "ratios", "log-ratios" or "other" to overrule what is recognised.
    share : float, default=None
        Share of the most variable features to keep; None takes what suits the kind.
    n_top_genes : int, default=None
        How many of the most variable features to keep, instead of a share.
    n_components : int, default=None
        How many principal components at most to return in place of the features that
        are kept; 0 for none. None takes what suits the kind and the number of samples.

    Attributes
    ----------
    kind_ : str
        What the values are.
    reason_ : str
        Why, in words.
    preparation_ : Preparation
        What was learnt from the training samples.
    features_ : ndarray
        Numbers of the features that are kept.
    components_ : Components or None
        Principal components of these, where they are returned.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kind": [StrOptions({"auto", *recipes.KINDS})],
        "share": [Interval(Real, 0.0, 1.0, closed="right"), None],
        "n_top_genes": [Interval(Integral, 1, None, closed="left"), None],
        "n_components": [Interval(Integral, 0, None, closed="left"), None],
    }
    _accept_sparse = "csr"

    def __init__(
        self,
        kind: str = "auto",
        share: float | None = None,
        n_top_genes: int | None = None,
        n_components: int | None = None,
    ) -> None:
        self.kind = kind
        self.share = share
        self.n_top_genes = n_top_genes
        self.n_components = n_components

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _learn(self, X: Array | sparse.csr_array) -> None:
        if self.share is not None and self.n_top_genes is not None:
            raise ValueError("share and n_top_genes both say how many; give one.")
        if self.kind == "auto":
            self.kind_, self.reason_ = kinds.kind_of_values(X)
        else:
            self.kind_, self.reason_ = self.kind, f"You said {self.kind}."
        recipe = recipes.RECIPES[self.kind_]
        rows = recipes.fill_zeros(X) if recipe.n_top is None else X
        learnt = recipes.learn_preparation(rows, self.kind_, recipe.power)
        share = recipe.share if self.share is None else self.share
        n_top = recipe.n_top if self.share is None else None
        n_top = n_top if self.n_top_genes is None else self.n_top_genes
        if n_top is None:
            self.features_ = recipes.leading_features(learnt.order, share)
        else:
            self.features_ = np.sort(learnt.order[: learnt.n_expressed][:n_top])
        self.preparation_, self.components_ = learnt, None
        n_samples, n_kept, most = X.shape[0], self.features_.size, recipes.N_COMPONENTS
        n_components = self.n_components
        if n_components is None:
            many = n_kept > most and n_samples > max(recipes.MANY_CELLS, n_kept)
            n_components = most if many and recipe.n_top is not None else 0
        if n_components:
            kept = recipes.prepare(X, learnt, self.features_)
            self.components_ = recipes.Components.of(kept, n_components)

    def _change(self, X: Array | sparse.csr_array) -> Array:
        kept = recipes.prepare(X, self.preparation_, self.features_)
        return kept if self.components_ is None else self.components_.apply(kept)

    def get_feature_names_out(
        self, input_features: ArrayLike | None = None
    ) -> NDArray[np.object_]:
        """Return the names of the features that are kept, or number the components.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the features; None for those seen in `fit`.

        Returns
        -------
        ndarray of str
            Names of what `transform` returns.
        """
        check_is_fitted(self)
        if self.components_ is not None:
            return np.array(self.components_.names, dtype=object)
        return _check_feature_names_in(self, input_features)[self.features_]


class UnitScaler(OneToOneFeatureMixin, _Transformer):
    """Put measurements in different units on one scale.

    Each feature then has mean 0 and standard deviation 1; one of two values has them
    one apart, so that a yes or no alone decides no neighbours. Features with heavy
    tails are measured from their median, by the spread that their quartiles tell, and
    values far out are drawn in by the inverse hyperbolic sine. Images, embeddings,
    expression, counts, percentages of one whole and standardised values are left as
    they are.

    Parameters
    ----------
    always : bool, default=False
        Scale without looking whether units differ.

    Attributes
    ----------
    mixed_ : bool
        Whether the features are scaled.
    reason_ : str
        Why, in words and numbers.
    scales_ : FeatureScales
        What was learnt from the training samples.

    See Also
    --------
    ExpressionPreparation : The same for expression values.

    Examples
    --------
    >>> X = [[25.0, 31000.0], [61.0, 52000.0], [43.0, 87000.0]]
    >>> UnitScaler().fit_transform(X).std(axis=0)
    array([1., 1.])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"always": ["boolean"]}

    def __init__(self, always: bool = False) -> None:
        self.always = always

    def _learn(self, X: Array) -> None:
        names = getattr(self, "feature_names_in_", None)
        self.mixed_, self.reason_ = units.find_mixed_units(X, names)
        if self.always:
            self.mixed_, self.reason_ = True, "You said so."
        self.scales_ = units.learn_scales(X)

    def _change(self, X: Array) -> Array:
        return units.scale_features(X, self.scales_) if self.mixed_ else X
