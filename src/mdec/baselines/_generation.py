"""Ensembles for the baselines: k-means on all features or on stratified samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from functools import partial
from itertools import repeat
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from sklearn.utils import check_array

from mdec._support.parallel import map_ordered, single_threaded_blas
from mdec._support.random import RandomState, member_stream, root_entropy
from mdec.baselines._docs import completed_by, sections
from mdec.consensus.partitions import numbered_by_appearance
from mdec.ensemble import Ensemble
from mdec.ensemble.limits import base_n_clusters_bounds
from mdec.numerics.kmeans import MAX_ITER
from mdec.rows.blocks import opened, refuse_useless

Array = NDArray[np.floating]

# From this many samples on, base clusterings are made in float32.
SINGLE_PRECISION_SAMPLES = 1000


def generate_kmeans_ensemble(
    X: ArrayLike,
    *,
    ensemble_size: int = 100,
    base_n_clusters_range: tuple[int, int] | None = None,
    n_jobs: int | None = None,
    random_state: RandomState = None,
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
    data = _checked(X)
    shared = _Shared.checked(data, "kmeans", base_n_clusters_range, random_state)
    make = partial(_kmeans_member, _prepared(rotate(data)), shared)
    return _generate(make, asdict(shared), ensemble_size, n_jobs)


@completed_by(sections(generate_kmeans_ensemble.__doc__))
def generate_stratified_ensemble(
    X: ArrayLike,
    *,
    sampling_ratio: float = 0.5,
    n_strata: int | None = None,
    ensemble_size: int = 100,
    base_n_clusters_range: tuple[int, int] | None = None,
    n_jobs: int | None = None,
    random_state: RandomState = None,
) -> Ensemble:
    r"""Make an ensemble of k-means clusterings on stratified samples of the features.

    Parameters
    ----------
    sampling_ratio : float, default=0.5
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

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(30, 8))
    >>> generate_stratified_ensemble(X, ensemble_size=5, random_state=0)
    Ensemble(5 members, 30 samples, 19 base clusters)
    """
    data = _checked(X)
    if not 0.0 < sampling_ratio <= 1.0:
        raise ValueError(
            f"sampling_ratio={sampling_ratio} must be above 0 and at most 1."
        )
    if n_strata is not None and n_strata < 1:
        raise ValueError(f"n_strata={n_strata} must be 1 or more.")
    shared = _Shared.checked(data, "stratified", base_n_clusters_range, random_state)
    with single_threaded_blas():
        rng = member_stream(shared.entropy, 0, "strata")
        strata = feature_strata(data, n_strata, rng)
    make = partial(_stratified_member, _prepared(data), strata, sampling_ratio, shared)
    own = {"sampling_ratio": sampling_ratio, "n_strata": n_strata}
    return _generate(make, asdict(shared) | own, ensemble_size, n_jobs)


def features_of_members(X: Array, ensemble: Ensemble) -> Iterator[NDArray[np.int64]]:
    """Yield the features of each member of an ensemble, drawn again from its seed.

    X is what the ensemble was made of.
    """
    given = ensemble.parameters
    shared = _Shared(**{each.name: given[each.name] for each in fields(_Shared)})
    if shared.generation == "kmeans":
        yield from repeat(np.arange(X.shape[1]), len(ensemble))
        return
    strata = feature_strata(X, given["n_strata"], shared.stream(0, "strata"))
    for index in range(len(ensemble)):
        rng = shared.stream(index, "subspace")
        yield draw_stratified(strata, given["sampling_ratio"], rng)


def feature_strata(
    X: Array, n_strata: int | None, rng: np.random.Generator
) -> NDArray[np.int32]:
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
    numbered = numbered_by_appearance(grouped, n_clusters=1)
    strata = np.full(X.shape[1], numbered.max() + 1, dtype=np.int32)
    strata[varying] = numbered
    return strata


def draw_stratified(
    strata: NDArray[np.int32], sampling_ratio: float, rng: np.random.Generator
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
        size = max(1, math.floor(sampling_ratio * features.size + 0.5))
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


def kmeans_once(
    X: Array, n_clusters: int, rng: np.random.Generator
) -> NDArray[np.int32]:
    """Return the labels of one k-means run from one k-means++ start.

    Each centre of the start is the best of 2 + ln K candidates. Start and iteration are
    those of scikit-learn, which draws the same numbers from the same seed, in loops
    that need less time.
    """
    from mdec.numerics import loops

    X = np.ascontiguousarray(X)
    n_clusters = min(n_clusters, _distinct(X, n_clusters))
    if n_clusters < 2:
        return np.zeros(len(X), dtype=np.int32)
    draw = np.random.RandomState(int(rng.integers(2**31 - 1)))
    first = draw.choice(len(X), p=np.full(len(X), 1.0 / len(X)))
    uniforms = draw.uniform(size=(n_clusters - 1, 2 + int(np.log(n_clusters))))
    start = loops.greedy_start(X, first, uniforms)
    labels: NDArray[np.int32] = loops.elkan(X, X[start], MAX_ITER)
    return labels


def _distinct(X: Array, enough: int) -> int:
    """Return the number of distinct rows, or `enough` if there are as many."""
    if any(np.unique(column).size >= enough for column in X.T[:3]):
        return enough
    return min(enough, len(np.unique(X, axis=0)))


def _checked(X: ArrayLike) -> Array:
    data: Array = check_array(X, dtype=(np.float64, np.float32), ensure_min_samples=3)
    refuse_useless(opened(data))
    return data


@dataclass(frozen=True)
class _Shared:
    """What all members share."""

    entropy: int
    generation: str
    n_samples: int
    n_features: int
    base_n_clusters_range: tuple[int, int]

    @classmethod
    def checked(
        cls,
        X: Array,
        generation: str,
        base_n_clusters_range: tuple[int, int] | None,
        random_state: RandomState,
    ) -> Self:
        low, high = base_n_clusters_range or base_n_clusters_bounds(len(X), "graph")
        if not 2 <= low <= high <= len(X):
            raise ValueError(
                f"base_n_clusters_range={(low, high)} must be (low, high), low 2 or "
                f"more, high at most the {len(X)} samples."
            )
        entropy, (n_samples, n_features) = root_entropy(random_state), X.shape
        return cls(entropy, generation, n_samples, n_features, (low, high))

    def stream(self, index: int, name: str) -> np.random.Generator:
        return member_stream(self.entropy, index, name)


def _prepared(X: Array) -> Array:
    """Centre, so that float32 loses nothing that matters, and choose the precision."""
    centred = X - X.mean(axis=0)
    if len(X) >= SINGLE_PRECISION_SAMPLES:
        return centred.astype(np.float32)
    return centred


def _kmeans_member(X: Array, shared: _Shared, index: int) -> NDArray[np.int32]:
    draw = shared.stream(index, "n_clusters")
    n_clusters = int(draw.integers(*shared.base_n_clusters_range, endpoint=True))
    labels = kmeans_once(X, n_clusters, shared.stream(index, "kmeans"))
    return np.unique(labels, return_inverse=True)[1].astype(np.int32)


def _stratified_member(
    X: Array, strata: NDArray[np.int32], ratio: float, shared: _Shared, index: int
) -> NDArray[np.int32]:
    features = draw_stratified(strata, ratio, shared.stream(index, "subspace"))
    return _kmeans_member(X[:, features], shared, index)


def _generate(
    make: Callable[[int], NDArray[np.int32]],
    parameters: dict[str, Any],
    ensemble_size: int,
    n_jobs: int | None,
) -> Ensemble:
    if ensemble_size < 1:
        raise ValueError(
            f"ensemble_size={ensemble_size} makes no member; use 1 or more."
        )
    columns = list(map_ordered(make, range(ensemble_size), n_jobs=n_jobs))
    return Ensemble(np.stack(columns, axis=1), parameters=parameters)
