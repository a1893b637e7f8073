"""The form of all baselines: a consensus function, and an estimator of the two steps.

Each thing is said in one place. A consensus function describes what is its own, and
`documented` completes its docstring by what all share. An estimator is a
dataclass of the function's options; `estimator_of` gives it the docstring that follows
from its two steps, generation and consensus, and the constraints of scikit-learn that
follow from its type hints.
"""

from __future__ import annotations

import typing
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, fields
from inspect import signature
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin, _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import validate_data

from mdec._support.parallel import single_threaded_blas
from mdec._support.random import RandomState
from mdec.baselines._docs import completed_by, entries, joined, listed, sections
from mdec.baselines._generation import (
    generate_kmeans_ensemble,
    generate_stratified_ensemble,
)
from mdec.ensemble import Ensemble

Consensus = Callable[..., NDArray[np.int32]]
Function = TypeVar("Function", bound=Consensus)
Estimator = TypeVar("Estimator", bound="type[Baseline]")

# Parameters of estimators, with what scikit-learn checks in `fit`.
Count = Annotated[int, Interval(Integral, 1, None, closed="left")]
Positive = Annotated[float, Interval(Real, 0, None, closed="neither")]
Share = Annotated[float, Interval(Real, 0, 1, closed="right")]
Bounds = Annotated[tuple[int, int], tuple, list]
Seed = Annotated[RandomState, "random_state", np.random.Generator]

FLOATS = (np.float64, np.float32)

_SHARED = """
Parameters
----------
ensemble : Ensemble
    The base clusterings.
n_clusters : int
    Number of clusters.
random_state : int, RandomState, Generator or None
    Not used: there is nothing random in it.

Returns
-------
ndarray of shape (n_samples,)
    Labels, numbered in the order of first samples.

Examples
--------
>>> ensemble = Ensemble.from_labels([[0, 0], [0, 0], [1, 1], [1, 1]])
>>> NAME(ensemble, 2, OPTIONS)
array([0, 0, 1, 1], dtype=int32)
"""

_EXAMPLE = """\
>>> from sklearn.datasets import make_blobs
>>> X, _ = make_blobs(60, n_features=20, centers=3, random_state=0)
>>> model = NAME(3, ensemble_size=20, OPTIONS)
>>> model.fit(X).n_clusters_
3"""


def documented(
    like: Consensus | None = None, *, example: str = "random_state=0"
) -> Callable[[Function], Function]:
    """Complete the docstring of a consensus function by what it need not say.

    Parameters that it does not describe, its result and its references are those of
    the function `like`, the rest is what all share. The options in its example are
    `example`.
    """
    shared = sections(_SHARED.replace("OPTIONS", example))
    if like is not None:
        related = sections(like.__doc__)
        sections_of_both = ("Parameters", "Returns", "References")
        shared |= {name: related[name] for name in sections_of_both}
    return completed_by(shared)


@typing.dataclass_transform(eq_default=False, kw_only_default=True)
def estimator_of(
    consensus: Consensus, example: str = "random_state=0"
) -> Callable[[Estimator], Estimator]:
    """Make an estimator of a class whose fields are a consensus function's options.

    The options in its example are `example`.
    """

    def decorate(cls: Estimator) -> Estimator:
        cls._consensus = staticmethod(consensus)
        cls.__doc__ = _docstring(cls, example)
        dataclass(eq=False, repr=False, kw_only=True)(cls)
        hints = typing.get_type_hints(cls, include_extras=True)
        cls._parameter_constraints = {
            each.name: _constraints(hints[each.name]) for each in fields(cls)
        }
        # `help` shows plain types, not what is checked.
        plain = typing.get_type_hints(cls)
        for name in cls._parameter_constraints:
            cls.__init__.__annotations__[name] = plain[name]
        return cls

    return decorate


@dataclass(eq=False, repr=False)
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

    n_clusters: Count = 8
    _: KW_ONLY
    ensemble_size: Count = 100
    base_n_clusters_range: Bounds | None = None
    n_jobs: int | None = None
    random_state: Seed = None

    _consensus: ClassVar[Consensus]
    _generate: ClassVar[Callable[..., Ensemble]] = staticmethod(
        generate_kmeans_ensemble
    )
    _origin: ClassVar[str] = (
        "Base clusterings come from k-means on all features with random numbers of "
        "clusters."
    )
    _parameter_constraints: ClassVar[dict[str, list[Any]]]

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
        if self.n_clusters > len(data):
            raise ValueError(
                f"n_clusters={self.n_clusters} is more than n_samples={len(data)}; ask "
                "for at most one cluster per sample."
            )
        self.ensemble_ = self._generate(data, **self._options(self._generate))
        options = self._options(self._consensus)
        # An integer for both steps: a generator would give the second other numbers.
        options["random_state"] = self.ensemble_.parameters["entropy"]
        with single_threaded_blas():
            self.labels_ = self._consensus(self.ensemble_, **options)
        self.n_clusters_ = int(self.labels_.max()) + 1
        self._settle(data)
        return self

    def _settle(self, data: NDArray[np.floating]) -> None:
        """Keep what else a method needs of the rows: nothing, unless it predicts."""

    def _options(self, function: Callable[..., Any]) -> dict[str, Any]:
        """Return those of the parameters that a function takes."""
        given = self.get_params(deep=False)
        taken = signature(function).parameters
        return {name: given[name] for name in taken if name in given}


@dataclass(eq=False, repr=False, kw_only=True)
class StratifiedBaseline(Baseline):
    """Generate an ensemble by k-means on stratified samples of the features."""

    sampling_ratio: Share = 0.5
    n_strata: Count | None = None

    _generate = staticmethod(generate_stratified_ensemble)
    _origin = (
        "Base clusterings come from k-means on random features, drawn alike from\n"
        "strata of similar ones."
    )


def _constraints(hint: Any) -> list[Any]:
    """Return the constraints of scikit-learn that a type hint stands for."""
    if typing.get_origin(hint) is Annotated:
        return list(hint.__metadata__)
    if typing.get_origin(hint) in (typing.Union, UnionType):
        return [each for part in typing.get_args(hint) for each in _constraints(part)]
    return [{bool: "boolean", int: Integral, NoneType: None}.get(hint, hint)]


def _docstring(cls: type[Baseline], options: str) -> str:
    """Write what an estimator is from what its two steps say of themselves."""
    consensus, generate = cls._consensus, cls._generate
    found, made = sections(consensus.__doc__), sections(generate.__doc__)
    texts = entries(found["Parameters"]) | entries(made["Parameters"])
    texts["n_clusters"] = texts["n_clusters"].replace(
        "int", f"int, default={cls.n_clusters}", 1
    )
    # Every consensus function takes the ensemble first and the seed last.
    names = [*signature(consensus).parameters][1:-1]
    names += [*signature(generate).parameters][1:]
    attributes = sections(Baseline.__doc__)["Attributes"]
    example = _EXAMPLE.replace("NAME", cls.__name__).replace("OPTIONS", options)
    return joined(
        {
            "": f"{cls.__doc__}\n\n{cls._origin}\n\nConsensus: {found['']}",
            "Parameters": listed(texts, names),
            "Attributes": f"labels_ : {found['Returns']}\n{attributes}",
            "Returns": "",
            "See Also": f"mdec.baselines.{consensus.__name__} : The consensus alone.\n"
            f"mdec.baselines.{generate.__name__} : The base clusterings alone.",
            "Notes": f"{made['Notes']}\n\n{found['Notes']}",
            "References": f"{made['References']}\n\n{found['References']}".lstrip(),
            "Examples": example,
        }
    )
