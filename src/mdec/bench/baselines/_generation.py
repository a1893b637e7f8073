"""Ensembles for the baselines: k-means on all features or on stratified samples."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from inspect import signature
from numbers import Real
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval

from mdec._support.arrays import Array
from mdec._support.parallel import map_parallel, single_threaded_blas
from mdec._support.random import RandomState, member_stream, root_entropy
from mdec.bench.baselines._functions import (
    Bounds,
    Count,
    Labels,
    Seed,
    read_sections,
    validate_options,
    write_docstring,
)
from mdec.consensus.partitions import number_by_appearance
from mdec.ensemble import Ensemble
from mdec.ensemble.draws import base_n_clusters_bounds, check_cluster_range
from mdec.numerics.kmeans import MAX_ITER
from mdec.rows.blocks import as_rows, refuse_useless

FLOATS = (np.float64, np.float32)

# From this many samples on, base clusterings are made in float32.
SINGLE_PRECISION_SAMPLES = 1000

Share = Annotated[float, Interval(Real, 0, 1, closed="right")]

# The features of a member, as an index of columns.
Features = slice | NDArray[np.int64]


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
    rows, parameters = _prepare(X, "kmeans", base_n_clusters_range, random_state)
    return _generate(rotate(rows), parameters, ensemble_size, n_jobs)


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
    rows, parameters = _prepare(X, "stratified", base_n_clusters_range, random_state)
    parameters |= {"max_features": max_features, "n_strata": n_strata}
    return _generate(rows, parameters, ensemble_size, n_jobs)


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
        size = max(1, math.floor(max_features * features.size + 0.5))
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

    Each centre of the start is the best of 2 + ln K candidates. Start and iteration are
    those of scikit-learn, which draws the same numbers from the same seed, in loops
    that need less time.
    """
    from mdec.numerics.loops import elkan

    X = np.ascontiguousarray(X)
    n_clusters = min(n_clusters, _count_distinct(X, n_clusters))
    if n_clusters < 2:
        return np.zeros(len(X), dtype=np.int32)
    draw = np.random.RandomState(int(rng.integers(2**31 - 1)))
    first = draw.choice(len(X), p=np.full(len(X), 1.0 / len(X)))
    uniforms = draw.uniform(size=(n_clusters - 1, 2 + int(np.log(n_clusters))))
    start = elkan.greedy_start(X, first, uniforms)
    labels: Labels = elkan.elkan(X, X[start], MAX_ITER)
    return labels


def _count_distinct(X: Array, enough: int) -> int:
    """Return the number of distinct rows, or `enough` if there are as many."""
    if any(np.unique(column).size >= enough for column in X.T[:3]):
        return enough
    return min(enough, len(np.unique(X, axis=0)))


def _prepare(
    X: ArrayLike,
    generation: str,
    bounds: tuple[int, int] | None,
    random_state: RandomState,
) -> tuple[Array, dict[str, Any]]:
    """Return the rows, and what all members share, which the ensemble keeps."""
    rows: Array = check_array(X, dtype=FLOATS, ensure_min_samples=3)
    refuse_useless(as_rows(rows))
    n_samples, n_features = rows.shape
    bounds = bounds or base_n_clusters_bounds(n_samples, "graph")
    return rows, {
        "entropy": root_entropy(random_state),
        "generation": generation,
        "n_samples": n_samples,
        "n_features": n_features,
        "base_n_clusters_range": check_cluster_range(bounds, n_samples, None),
    }


def _generate(
    X: Array, parameters: dict[str, Any], ensemble_size: int, n_jobs: int | None
) -> Ensemble:
    # Centred, so that float32 loses nothing that matters.
    rows = X - X.mean(axis=0)
    if len(X) >= SINGLE_PRECISION_SAMPLES:
        rows = rows.astype(np.float32)
    members = enumerate(member_features(X, parameters, ensemble_size))
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
