"""The baselines as estimators, which make their own ensemble.

An estimator is a class that names its consensus function: its parameters, what is
checked of them and its docstring follow from the two functions that it calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, ClassVar, Self, get_type_hints

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClusterMixin, _fit_context
from sklearn.utils.validation import check_is_fitted, validate_data

from mdec._support.arrays import Array
from mdec._support.parallel import single_threaded_blas
from mdec.bench.baselines._generation import (
    FLOATS,
    generate_kmeans_ensemble,
    generate_stratified_ensemble,
    nearest_base_clusters,
)
from mdec.bench.baselines._options import (
    NATURAL,
    Consensus,
    Labels,
    constraints,
    read_sections,
    write_docstring,
)
from mdec.clustering import check_n_clusters
from mdec.confidence import sum_profiles
from mdec.ensemble import Ensemble
from mdec.prediction import nearest_profiles
from mdec.weights import uniform_weights

# The consensus functions by the names of their estimators, in the order of the paper's
# tables, and the ensemble that each takes there.
BASELINES: dict[str, Consensus] = {}
GENERATION: dict[str, str] = {}

_EXAMPLE = """\
>>> from sklearn.datasets import make_blobs
>>> X, _ = make_blobs(60, n_features=20, centers=3, random_state=0)
>>> model = NAME(3, ensemble_size=20, OPTIONS)
>>> model.fit(X).n_clusters_
3"""


class Baseline(ClusterMixin, BaseEstimator):
    """Generate an ensemble by k-means on all features, then find its consensus.

    Attributes
    ----------
    ensemble_ : Ensemble
        The base clusterings.
    n_clusters_ : int
        Number of clusters in `labels_`.
    n_features_in_ : int
        Number of features seen in `fit`.
    """

    n_clusters: int

    _consensus: ClassVar[Consensus]
    _generate: ClassVar[Callable[..., Ensemble]] = staticmethod(
        generate_kmeans_ensemble
    )
    _parameter_constraints: ClassVar[dict[str, list[Any]]]

    def __init_subclass__(
        cls, consensus: Consensus | None = None, example: str = "random_state=0"
    ) -> None:
        """Give a method its parameters; the options in its example are `example`."""
        super().__init_subclass__()
        if consensus is None:
            return
        cls._consensus = staticmethod(consensus)
        BASELINES[cls.__name__] = consensus
        GENERATION[cls.__name__] = cls._generate.__name__.split("_")[1]
        found, made = constraints(consensus), constraints(cls._generate)
        # The seed of both steps comes once, at the end.
        limits = {name: found[name] for name in found if name not in made} | made
        cls._parameter_constraints = {"n_clusters": [NATURAL], **limits}
        hints = get_type_hints(cls._generate) | get_type_hints(consensus)
        cls.__annotations__ = {name: hints[name] for name in cls._parameter_constraints}
        cls.n_clusters = 8
        given = signature(cls._generate).parameters | signature(consensus).parameters
        for name in limits:
            setattr(cls, name, field(default=given[name].default, kw_only=True))
        dataclass(eq=False, repr=False)(cls)
        cls.__doc__ = _describe(cls, example)

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
        data = validate_data(self, X, dtype=FLOATS, ensure_min_samples=3)
        check_n_clusters(self.n_clusters, len(data))
        self.ensemble_ = self._generate(data, **self._options(self._generate))
        options = self._options(self._consensus)
        # An integer for both steps: a generator would give the second other numbers.
        options["random_state"] = self.ensemble_.parameters["entropy"]
        with single_threaded_blas():
            self.labels_ = self._consensus(self.ensemble_, **options)
        self.n_clusters_ = int(self.labels_.max()) + 1
        if hasattr(self, "predict"):
            self._rows = data
        return self

    def _options(self, function: Callable[..., Any]) -> dict[str, Any]:
        """Return those of the parameters that a function takes."""
        given = self.get_params(deep=False)
        taken = signature(function).parameters.keys()
        return {name: given[name] for name in given.keys() & taken}


class StratifiedBaseline(Baseline):
    """Generate an ensemble by k-means on stratified samples of the features."""

    _generate = staticmethod(generate_stratified_ensemble)


class PlacingBaseline(Baseline):
    """A baseline that has a rule for new rows.

    Base clusterings by k-means say where a new row belongs: to the nearest centre. A
    method that then compares a sample with whole clusters says the same of a new row.
    The others do not: a balanced partition has no rule for one more sample, and the
    walks of PTA and PTGP and the graph of SPCE are those of the training samples.
    """

    # Weights of the base clusters in the consensus, and whether it compares
    # co-associations over the roots of the degrees.
    _weigh: ClassVar[Callable[..., Array]] = staticmethod(uniform_weights)
    _by_degree: ClassVar[bool] = False

    _rows: Array

    def predict(self, X: ArrayLike) -> Labels:
        """Return the clusters of new rows.

        In each base clustering a new row joins the base cluster with the nearest
        centre; it then joins the cluster with the largest mean co-association, as the
        method weights it.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features)
            New rows.

        Returns
        -------
        ndarray of shape (n_new,)
            Clusters with the numbers of `labels_`. Rows of `fit` nearly always get
            their own cluster, but not by rule; for those use `labels_`.
        """
        check_is_fitted(self, "ensemble_")
        new = validate_data(self, X, dtype=FLOATS, reset=False)
        ensemble, clusters = self.ensemble_, self.ensemble_.split(self.labels_)
        with single_threaded_blas():
            base = nearest_base_clusters(self._rows, new, ensemble)
            weights = self._weigh(ensemble, **self._options(self._weigh))
            profiles = sum_profiles(ensemble, clusters, weights, self.n_clusters_)
            means = profiles.means(by_degree=self._by_degree)
            return nearest_profiles(base, ensemble.offsets, means, weights)


def _describe(cls: type[Baseline], options: str) -> str:
    """Write what an estimator is from what its two steps say of themselves."""
    consensus, generate = cls._consensus, cls._generate
    found, made = read_sections(consensus.__doc__), read_sections(generate.__doc__)
    attributes = read_sections(Baseline.__doc__).get("Attributes", "")
    own = {
        heading: "\n\n".join(each[heading] for each in (made, found) if heading in each)
        for heading in ("Notes", "References")
    } | {
        "": f"{cls.__doc__}\n\nGeneration: {made['']}\n\nConsensus: {found['']}",
        "Attributes": f"labels_ : {found.get('Returns')}\n{attributes}",
        "Returns": "",
        "See Also": f"mdec.baselines.{consensus.__name__} : The consensus alone.\n"
        f"mdec.baselines.{generate.__name__} : The base clusterings alone.",
        "Examples": _EXAMPLE.replace("OPTIONS", options).replace("NAME", cls.__name__),
    }
    text = write_docstring(signature(cls).parameters, found, made, own)
    return text.replace("n_clusters : int\n", "n_clusters : int, default=8\n", 1)
