"""What all baselines share: ensembles, checked options, docstrings and estimators.

The type hint of an option says what scikit-learn checks of it. A consensus function
describes what is its own, and `consensus_function` adds what all share. An estimator is
a class that names its consensus function: its parameters, what is checked of them and
its docstring follow from the two functions that it calls.
"""

from __future__ import annotations

import math
import re
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial, wraps
from inspect import cleandoc, signature
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Self, TypeVar, get_type_hints

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from sklearn.base import BaseEstimator, ClusterMixin, _fit_context
from sklearn.cluster import KMeans
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval, validate_params
from sklearn.utils.validation import check_is_fitted, validate_data

from mdec._support.arrays import Array
from mdec._support.parallel import map_parallel, single_threaded_blas
from mdec._support.random import RandomState, member_stream, root_entropy
from mdec.clustering import check_n_clusters
from mdec.confidence import cluster_indicator, sum_profiles
from mdec.consensus import spectral
from mdec.consensus.partitions import number_by_appearance, trivial_partition
from mdec.ensemble import Ensemble
from mdec.ensemble.draws import (
    base_n_clusters_bounds,
    check_cluster_range,
    subspace_size,
)
from mdec.numerics.kmeans import MAX_ITER
from mdec.numerics.nearest import at_common_scale
from mdec.numerics.transfer import nearest_centers
from mdec.prediction import nearest_profiles
from mdec.rows.blocks import as_rows, refuse_useless
from mdec.weights import uniform_weights

Labels = NDArray[np.int32]
Consensus = Callable[..., Labels]
Function = TypeVar("Function", bound=Callable[..., Any])

NATURAL = Interval(Integral, 1, None, closed="left")
Count = Annotated[int, NATURAL]
Positive = Annotated[float, Interval(Real, 0, None, closed="neither")]
Share = Annotated[float, Interval(Real, 0, 1, closed="right")]
Bounds = Annotated[tuple[int, int], tuple, list]
Seed = Annotated[
    RandomState,
    *(Interval(Integral, 0, None, closed="left"), np.random.RandomState),
    *(np.random.Generator, None),
]

# The features of a member, as an index of columns.
Features = slice | NDArray[np.int64]

FLOATS = (np.float64, np.float32)

# From this many samples on, base clusterings are made in float32.
SINGLE_PRECISION_SAMPLES = 1000

# Rows of a table of pairs that are filled together.
BLOCK = 128

_HEADINGS = (
    *("", "Parameters", "Attributes", "Returns", "See Also", "Notes"),
    *("References", "Examples"),
)

_CONSENSUS_EXAMPLE = """\
>>> ensemble = Ensemble.from_labels([[0, 0], [0, 0], [1, 1], [1, 1]])
>>> NAME(ensemble, 2, OPTIONS)
array([0, 0, 1, 1], dtype=int32)"""

_ESTIMATOR_EXAMPLE = """\
>>> from sklearn.datasets import make_blobs
>>> X, _ = make_blobs(60, n_features=20, centers=3, random_state=0)
>>> model = NAME(3, ensemble_size=20, OPTIONS)
>>> model.fit(X).n_clusters_
3"""


def option_constraints(function: Callable[..., Any]) -> dict[str, list[Any]]:
    """Return what scikit-learn checks of a function's options, from their hints.

    Examples
    --------
    >>> def walk(X, *, steps: Count | None = None, lazy: bool = False): ...
    >>> option_constraints(walk)["lazy"]
    ['boolean']
    """
    hints = typing.get_type_hints(function, include_extras=True)
    return {
        name: _constraints(hints[name])
        for name, each in signature(function).parameters.items()
        if each.kind is each.KEYWORD_ONLY
    }


def _constraints(hint: Any) -> list[Any]:
    if typing.get_origin(hint) is Annotated:
        return list(hint.__metadata__)
    if typing.get_origin(hint) in (typing.Union, UnionType):
        return [each for part in typing.get_args(hint) for each in _constraints(part)]
    return [{bool: "boolean", int: Integral, NoneType: None}.get(hint, hint)]


def validate_options(function: Function) -> Function:
    """Let scikit-learn check the options of every call."""
    validate = validate_params(
        option_constraints(function), prefer_skip_nested_validation=True
    )
    return typing.cast(Function, validate(function))


def consensus_function(
    like: Consensus = spectral, *, example: str = "random_state=0"
) -> Callable[[Function], Function]:
    """Answer what is trivial, check the options, and complete the docstring.

    Parameters that the function does not describe, its result and its references are
    those of the function `like`. The options in its example are `example`.
    """

    def decorate(function: Function) -> Function:
        @wraps(function)
        def consensus(ensemble: Ensemble, n_clusters: int, **options: Any) -> Any:
            trivial = trivial_partition(ensemble.n_samples, n_clusters)
            if trivial is not None:
                return trivial
            return function(ensemble, n_clusters, **options)

        related = read_sections(like.__doc__)
        taken = related.keys() & {"Parameters", "Returns", "References"}
        shown = _CONSENSUS_EXAMPLE.replace("OPTIONS", example)
        shown = shown.replace("NAME", function.__name__)
        consensus.__doc__ = write_docstring(
            signature(function).parameters,
            {heading: related[heading] for heading in taken} | {"Examples": shown},
            read_sections(function.__doc__),
        )
        return validate_options(typing.cast(Function, consensus))

    return decorate


def read_sections(docstring: str | None) -> dict[str, str]:
    """Return the text under each heading of a docstring; the opening has none.

    Examples
    --------
    >>> read_sections("Add numbers.\\n\\n    Notes\\n    -----\\n    Slowly.")
    {'': 'Add numbers.', 'Notes': 'Slowly.'}
    """
    # Docstrings are None where Python drops them (-OO).
    text = cleandoc(docstring or "")
    opening, *rest = re.split(r"\n*^([A-Z][A-Za-z ]+)\n-{3,}\n", text, flags=re.M)
    return {"": opening, **dict(zip(rest[::2], rest[1::2], strict=True))}


def write_docstring(names: Iterable[str], *sources: dict[str, str]) -> str:
    """Write a docstring with the sections of others, the later before the earlier.

    What is said of parameters is taken one by one, for these names in their order.
    """
    parts: dict[str, str] = {}
    texts: dict[str, str] = {}
    for sections in sources:
        parts |= sections
        _, *rest = re.split(r"^(\w+) : ", sections.get("Parameters", ""), flags=re.M)
        texts |= zip(rest[::2], map(str.rstrip, rest[1::2]), strict=True)
    entries = [f"{name} : {texts[name]}" for name in names if name in texts]
    parts["Parameters"] = "\n".join(entries)
    return "\n\n".join(
        f"{heading}\n{'-' * len(heading)}\n{parts[heading]}".lstrip()
        for heading in _HEADINGS
        if parts.get(heading)
    )


@validate_options
def generate_kmeans_ensemble(
    X: ArrayLike,
    *,
    ensemble_size: Count = 100,
    base_n_clusters_range: Bounds | None = None,
    n_jobs: int | None = None,
    random_state: Seed = None,
) -> Ensemble:
    r"""Make an ensemble of k-means clusterings on all features.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        At least three samples, not all equal; no missing values.
    ensemble_size : int, default=100
        M, the number of base clusterings, as in the paper's tables.
    base_n_clusters_range : tuple of int, default=None
        Interval of their numbers of clusters :math:`K_m`, drawn uniformly; None is 2 to
        :math:`\lceil\sqrt N\rceil`.
    n_jobs : int, default=None
        Base clusterings made at the same time, as in joblib; changes no label.
    random_state : int, RandomState, Generator or None, default=None
        Seed; an integer makes the result repeatable. The first base clusterings do not
        depend on `ensemble_size`.

    Returns
    -------
    Ensemble
        A member has fewer than :math:`K_m` clusters only if there are fewer distinct
        samples in the features that it looks at.

    Notes
    -----
    Each member is one run of k-means from one k-means++ start, at most 100
    iterations. The start tries several candidates for each centre, as scikit-learn
    does: of the usual starts this one comes nearest to the published scores, which is
    our calibration. With more features than samples the samples are first rotated into
    as many coordinates as there are samples, which keeps every distance.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(30, 8))
    >>> generate_kmeans_ensemble(X, ensemble_size=5, random_state=0)
    Ensemble(5 members, 30 samples, 19 base clusters)
    """
    shared = ensemble_size, base_n_clusters_range, n_jobs, random_state
    return _generate(X, {"generation": "kmeans"}, *shared)


@validate_options
def generate_stratified_ensemble(
    X: ArrayLike,
    *,
    max_features: Share = 0.5,
    n_strata: Count | None = None,
    ensemble_size: Count = 100,
    base_n_clusters_range: Bounds | None = None,
    n_jobs: int | None = None,
    random_state: Seed = None,
) -> Ensemble:
    r"""Make an ensemble of k-means clusterings on stratified samples of the features.

    Parameters
    ----------
    max_features : float, default=0.5
        Share of each stratum of features that a base clustering looks at. The value is
        our calibration: it is the ratio of MDEC and comes near the published scores.
    n_strata : int, default=None
        Strata of features; None is :math:`\lfloor\sqrt D\rfloor`, the choice of the
        nearest public code.

    Notes
    -----
    The strata are the clusters of one k-means run on the columns of X; features
    without variation form one more. Member m takes :math:`\max(1, \lfloor \tau D_g +
    1/2 \rfloor)` features of each stratum g and clusters the samples in them.

    References
    ----------
    L. Jing, K. Tian, J. Z. Huang, "Stratified feature sampling method for ensemble
    clustering of high dimensional data", Pattern Recognition 48(11), 2015. The
    details of the sampling are not given there and are filled in as stated above.
    """
    shared = ensemble_size, base_n_clusters_range, n_jobs, random_state
    own = {"max_features": max_features, "n_strata": n_strata}
    return _generate(X, {"generation": "stratified", **own}, *shared)


_SHARED = (generate_kmeans_ensemble.__doc__ or "").replace("te_kmeans", "te_stratified")
generate_stratified_ensemble.__doc__ = write_docstring(
    signature(generate_stratified_ensemble).parameters,
    *map(read_sections, (_SHARED, generate_stratified_ensemble.__doc__)),
)


def member_features(
    X: Array, parameters: Mapping[str, Any], n_members: int
) -> Iterator[Features]:
    """Yield the features of each member, which follow from the rows and the seed."""
    if parameters["generation"] == "kmeans":
        yield from [slice(None)] * n_members
        return
    entropy = parameters["entropy"]
    with single_threaded_blas():
        rng = member_stream(entropy, 0, "strata")
        strata = feature_strata(X, parameters["n_strata"], rng)
    for index in range(n_members):
        rng = member_stream(entropy, index, "subspace")
        yield draw_stratified(strata, parameters["max_features"], rng)


def feature_strata(X: Array, n_strata: int | None, rng: np.random.Generator) -> Labels:
    r"""Group the features by k-means on the columns of X.

    None is :math:`\lfloor\sqrt D\rfloor` strata; features without variation share one
    more, the last.

    Examples
    --------
    >>> X = np.array([[0.0, 0.1, 9.0, 3.0], [1.0, 1.1, 5.0, 3.0]])
    >>> feature_strata(X, 2, np.random.default_rng(0))[[0, 3]].tolist()
    [0, 2]
    """
    varying = np.flatnonzero(np.ptp(X, axis=0) > 0.0)
    if n_strata is None:
        n_strata = math.isqrt(X.shape[1])
    columns = np.ascontiguousarray(X[:, varying].T)
    grouped = kmeans_once(rotate(columns), min(n_strata, varying.size), rng)
    numbered = number_by_appearance(grouped, n_clusters=1)
    strata = np.full(X.shape[1], numbered.max() + 1, dtype=np.int32)
    strata[varying] = numbered
    return strata


def draw_stratified(
    strata: Labels, max_features: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    r"""Draw the same share of every stratum, at least one feature of each.

    :math:`n_g = \max(1, \lfloor \tau D_g + 1/2 \rfloor)` features of stratum g.

    Examples
    --------
    >>> draw_stratified(np.array([0, 0, 0, 0, 1]), 0.5, np.random.default_rng(0)).size
    3
    """
    chosen = []
    for stratum in np.unique(strata):
        features = np.flatnonzero(strata == stratum)
        size = max(1, subspace_size(features.size, max_features))
        chosen.append(rng.choice(features, size=size, replace=False))
    return np.sort(np.concatenate(chosen))


def rotate(X: Array) -> Array:
    """Return centred points with the same distances, in the fewest coordinates.

    Examples
    --------
    >>> rotate(np.array([[0.0, 3.0, 0.0], [4.0, 0.0, 0.0]])).shape
    (2, 2)
    """
    centred = X - X.mean(axis=0)
    if X.shape[1] <= X.shape[0]:
        return centred
    with single_threaded_blas():
        U, s, _ = linalg.svd(centred, full_matrices=False)
    return U * s


def kmeans_once(X: Array, n_clusters: int, rng: np.random.Generator) -> Labels:
    """Return the labels of one k-means run from one k-means++ start.

    Both are those of scikit-learn.
    """
    n_clusters = min(n_clusters, _count_distinct(X, n_clusters))
    if n_clusters < 2:
        return np.zeros(len(X), dtype=np.int32)
    seed = int(rng.integers(2**31 - 1))
    run = KMeans(n_clusters, n_init=1, max_iter=MAX_ITER, tol=0.0, random_state=seed)
    labels: Labels = run.fit_predict(X)
    return labels


def _count_distinct(X: Array, enough: int) -> int:
    """Return the number of distinct rows, or `enough` if there are as many."""
    if any(np.unique(column).size >= enough for column in X.T[:3]):
        return enough
    return min(enough, len(np.unique(X, axis=0)))


def _generate(
    X: ArrayLike,
    own: Mapping[str, Any],
    ensemble_size: int,
    bounds: tuple[int, int] | None,
    n_jobs: int | None,
    random_state: RandomState,
) -> Ensemble:
    """Make an ensemble that keeps what all members share, and its own parameters."""
    rows: Array = check_array(X, dtype=FLOATS, ensure_min_samples=3)
    refuse_useless(as_rows(rows))
    n_samples, n_features = rows.shape
    bounds = bounds or base_n_clusters_bounds(n_samples, "graph")
    parameters = {
        "entropy": root_entropy(random_state),
        "n_samples": n_samples,
        "n_features": n_features,
        "base_n_clusters_range": check_cluster_range(bounds, n_samples, None),
        **own,
    }
    members = enumerate(member_features(rows, parameters, ensemble_size))
    if own["generation"] == "kmeans":
        rows = rotate(rows)
    # Centred, so that float32 loses nothing that matters.
    rows = rows - rows.mean(axis=0)
    if n_samples >= SINGLE_PRECISION_SAMPLES:
        rows = rows.astype(np.float32)
    cluster = partial(_cluster_member, rows, parameters)
    columns = list(map_parallel(cluster, members, n_jobs=n_jobs))
    return Ensemble(np.stack(columns, axis=1), parameters=parameters)


def _cluster_member(
    X: Array, parameters: dict[str, Any], member: tuple[int, Features]
) -> Labels:
    index, features = member
    entropy, (low, high) = parameters["entropy"], parameters["base_n_clusters_range"]
    draw = member_stream(entropy, index, "n_clusters")
    n_clusters = int(draw.integers(low, high, endpoint=True))
    rng = member_stream(entropy, index, "kmeans")
    labels = kmeans_once(X[:, features], n_clusters, rng)
    return np.unique(labels, return_inverse=True)[1].astype(np.int32)


def agreement_blocks(
    ensemble: Ensemble, weights: Array | None = None
) -> Iterator[tuple[slice, Array]]:
    """Yield some rows of the summed weights of the members that join two samples.

    Members weigh one if no weights are given; one that leaves a sample out joins it
    with none, not even with itself.

    Examples
    --------
    >>> ensemble = Ensemble.from_labels([[0, 0], [0, 1], [1, 1]])
    >>> [(_, counts)] = agreement_blocks(ensemble)
    >>> counts.tolist()
    [[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0]]
    """
    members = ensemble.indicator()
    others = members.T.tocsr()
    if weights is not None:
        of_clusters = np.repeat(weights, ensemble.cluster_counts)
        others.data *= np.repeat(of_clusters, ensemble.cluster_sizes)
    for first in range(0, ensemble.n_samples, BLOCK):
        rows = slice(first, first + BLOCK)
        yield rows, (members[rows] @ others).toarray()


def agreements(ensemble: Ensemble, weights: Array | None = None) -> Array:
    """Return the table of which `agreement_blocks` yields some rows at a time."""
    table = np.empty((ensemble.n_samples, ensemble.n_samples))
    for rows, sums in agreement_blocks(ensemble, weights):
        table[rows] = sums
    return table


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
        found, made = option_constraints(consensus), option_constraints(cls._generate)
        # The seed of both steps comes once, at the end.
        limits = {name: found[name] for name in found if name not in made} | made
        cls._parameter_constraints = {"n_clusters": [NATURAL], **limits}
        # `help` shows plain types, not what is checked.
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
        self._keep_rows(data)
        return self

    def _keep_rows(self, data: Array) -> None:
        """Keep what a method needs to predict: nothing, unless it does."""

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

    def _keep_rows(self, data: Array) -> None:
        self._rows = data

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


def nearest_base_clusters(X: Array, X_new: Array, ensemble: Ensemble) -> Labels:
    """Return the base cluster with the nearest centre, in each member.

    X is what `generate_kmeans_ensemble` or `generate_stratified_ensemble` made the
    ensemble of; the labels are those of its clusters.
    """
    old, new = at_common_scale(X, X_new)
    center = old.mean(axis=0)
    old, new = old - center, new - center
    base = np.empty((len(new), len(ensemble)), dtype=np.int32)
    members = member_features(X, ensemble.parameters, len(ensemble))
    for member, features in enumerate(members):
        n_clusters = int(ensemble.cluster_counts[member])
        groups = cluster_indicator(ensemble.labels[:, member], n_clusters)
        centers = groups @ old[:, features] / groups.sum(axis=1)[:, None]
        inside = np.ascontiguousarray(new[:, features])
        base[:, member] = nearest_centers(inside, centers)
    return base


def _describe(cls: type[Baseline], options: str) -> str:
    """Write what an estimator is from what its two steps say of themselves."""
    consensus, generate = cls._consensus, cls._generate
    found, made = read_sections(consensus.__doc__), read_sections(generate.__doc__)
    attributes = read_sections(Baseline.__doc__).get("Attributes", "")
    both = {
        heading: "\n\n".join(each[heading] for each in (made, found) if heading in each)
        for heading in ("Notes", "References")
    }
    own = {
        "": f"{cls.__doc__}\n\nGeneration: {made['']}\n\nConsensus: {found['']}",
        "Attributes": f"labels_ : {found.get('Returns')}\n{attributes}",
        "Returns": "",
        "See Also": f"mdec.baselines.{consensus.__name__} : The consensus alone.\n"
        f"mdec.baselines.{generate.__name__} : The base clusterings alone.",
        "Examples": _ESTIMATOR_EXAMPLE.replace("OPTIONS", options).replace(
            "NAME", cls.__name__
        ),
    }
    text = write_docstring(signature(cls).parameters, found, made, own | both)
    return text.replace("n_clusters : int\n", "n_clusters : int, default=8\n", 1)
