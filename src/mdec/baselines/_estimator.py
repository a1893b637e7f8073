"""The shell that all baseline estimators share."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin, _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import validate_data

from mdec._support.parallel import single_threaded_blas
from mdec._support.random import RandomState
from mdec.baselines._generation import (
    generate_kmeans_ensemble,
    generate_stratified_ensemble,
)
from mdec.ensemble import Ensemble

Consensus = Callable[..., NDArray[np.int32]]


class BaselineEstimator(ClusterMixin, BaseEstimator):
    """Generate an ensemble by k-means on all features, then find its consensus.

    A subclass names its consensus function in `_function` and those of its own
    parameters that the function takes in `_options`.
    """

    _function: ClassVar[Consensus]
    _options: ClassVar[tuple[str, ...]] = ()
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "ensemble_size": [Interval(Integral, 1, None, closed="left")],
        "base_n_clusters_range": [tuple, list, None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        ensemble_size: int = 100,
        base_n_clusters_range: tuple[int, int] | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.ensemble_size = ensemble_size
        self.base_n_clusters_range = base_n_clusters_range
        self.n_jobs = n_jobs
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            At least three samples, not all equal; no missing values.
        y : object, default=None
            Not used.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        data = validate_data(
            self, X, dtype=(np.float64, np.float32), ensure_min_samples=3
        )
        if self.n_clusters > len(data):
            raise ValueError(
                f"n_clusters={self.n_clusters} is more than n_samples={len(data)}; ask "
                "for at most one cluster per sample."
            )
        self.ensemble_ = self._generate(data)
        with single_threaded_blas():
            self.labels_ = self._consensus(self.ensemble_)
        self.n_clusters_ = int(self.labels_.max()) + 1
        return self

    def _generate(self, X: NDArray[np.floating]) -> Ensemble:
        return generate_kmeans_ensemble(
            X,
            ensemble_size=self.ensemble_size,
            base_n_clusters_range=self.base_n_clusters_range,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )

    def _consensus(self, ensemble: Ensemble) -> NDArray[np.int32]:
        return type(self)._function(
            ensemble,
            self.n_clusters,
            **{name: getattr(self, name) for name in self._options},
            random_state=ensemble.parameters["entropy"],
        )


class StratifiedEstimator(BaselineEstimator):
    """Generate an ensemble by k-means on stratified samples of the features."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaselineEstimator._parameter_constraints,
        "sampling_ratio": [Interval(Real, 0, 1, closed="right")],
        "n_strata": [Interval(Integral, 1, None, closed="left"), None],
    }

    # Set by the subclasses, beside the options of their consensus functions.
    sampling_ratio: float
    n_strata: int | None

    def _generate(self, X: NDArray[np.floating]) -> Ensemble:
        return generate_stratified_ensemble(
            X,
            sampling_ratio=self.sampling_ratio,
            n_strata=self.n_strata,
            ensemble_size=self.ensemble_size,
            base_n_clusters_range=self.base_n_clusters_range,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )
