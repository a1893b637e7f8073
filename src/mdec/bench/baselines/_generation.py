"""Ensembles of the baselines: k-means on all features, or on stratified samples."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from sklearn.cluster import KMeans
from sklearn.utils import check_array

from mdec._support.arrays import Array
from mdec._support.parallel import map_parallel, single_threaded_blas
from mdec._support.random import RandomState, member_stream, root_entropy
from mdec.bench.baselines._options import (
    Labels,
    check_options,
    read_sections,
    write_docstring,
)
from mdec.confidence import cluster_indicator
from mdec.consensus.partitions import number_by_appearance
from mdec.ensemble import Ensemble
from mdec.ensemble.draws import (
    base_n_clusters_bounds,
    check_cluster_range,
    subspace_size,
)
from mdec.numerics.kmeans import MAX_ITER
from mdec.numerics.nearest import at_common_scale
from mdec.numerics.transfer import nearest_centers
from mdec.rows.blocks import as_rows, refuse_useless

Bounds = tuple[int, int] | None

# The features of a member, as an index of columns.
Features = slice | NDArray[np.int64]

FLOATS = (np.float64, np.float32)

# From this many samples on, base clusterings are made in float32.
SINGLE_PRECISION_SAMPLES = 1000


@check_options
def generate_kmeans_ensemble(
    X: ArrayLike,
    *,
    ensemble_size: int = 100,
    base_n_clusters_range: Bounds = None,
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
    shared = ensemble_size, base_n_clusters_range, n_jobs, random_state
    return _generate(X, shared, generation="kmeans")


@check_options
def generate_stratified_ensemble(
    X: ArrayLike,
    *,
    max_features: float = 0.5,
    n_strata: int | None = None,
    ensemble_size: int = 100,
    base_n_clusters_range: Bounds = None,
    n_jobs: int | None = None,
    random_state: RandomState = None,
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
    return _generate(X, shared, generation="stratified", **own)


_SHARED = (generate_kmeans_ensemble.__doc__ or "").replace("te_kmeans", "te_stratified")
generate_stratified_ensemble.__doc__ = write_docstring(
    signature(generate_stratified_ensemble).parameters,
    *map(read_sections, (_SHARED, generate_stratified_ensemble.__doc__)),
)


def _generate(
    X: ArrayLike,
    shared: tuple[int, Bounds, int | None, RandomState],
    **own: Any,
) -> Ensemble:
    """Make an ensemble that keeps what all members share, and its own parameters."""
    ensemble_size, bounds, n_jobs, random_state = shared
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
    given = rows, parameters
    columns = map_parallel(_cluster_member, members, shared=given, n_jobs=n_jobs)
    return Ensemble(np.stack(list(columns), axis=1), parameters=parameters)


def _cluster_member(
    member: tuple[int, Features], X: Array, parameters: Mapping[str, Any]
) -> Labels:
    index, features = member
    entropy, (low, high) = parameters["entropy"], parameters["base_n_clusters_range"]
    draw = member_stream(entropy, index, "n_clusters")
    n_clusters = int(draw.integers(low, high, endpoint=True))
    rng = member_stream(entropy, index, "kmeans")
    labels = kmeans_once(X[:, features], n_clusters, rng)
    return np.unique(labels, return_inverse=True)[1].astype(np.int32)


def kmeans_once(X: Array, n_clusters: int, rng: np.random.Generator) -> Labels:
    """Return the labels of one run of scikit-learn's k-means from one start."""
    # Most data have more distinct values in some column, which is found at once.
    if not any(np.unique(column).size >= n_clusters for column in X.T[:3]):
        n_clusters = min(n_clusters, len(np.unique(X, axis=0)))
    if n_clusters < 2:
        return np.zeros(len(X), dtype=np.int32)
    seed = int(rng.integers(2**31 - 1))
    run = KMeans(n_clusters, n_init=1, max_iter=MAX_ITER, tol=0.0, random_state=seed)
    labels: Labels = run.fit_predict(X)
    return labels


def rotate(X: Array) -> Array:
    """Return centred points with the same distances, in the fewest coordinates."""
    centred = X - X.mean(axis=0)
    if X.shape[1] <= X.shape[0]:
        return centred
    with single_threaded_blas():
        U, s, _ = linalg.svd(centred, full_matrices=False)
    return U * s


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
    """
    varying = np.flatnonzero(np.ptp(X, axis=0) > 0.0)
    n_strata = n_strata or math.isqrt(X.shape[1])
    columns = np.ascontiguousarray(X[:, varying].T)
    grouped = kmeans_once(rotate(columns), min(n_strata, varying.size), rng)
    numbered = number_by_appearance(grouped, n_clusters=1)
    strata = np.full(X.shape[1], numbered.max() + 1, dtype=np.int32)
    strata[varying] = numbered
    return strata


def draw_stratified(
    strata: Labels, max_features: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    r"""Draw :math:`n_g = \max(1, \lfloor \tau D_g + 1/2 \rfloor)` of each stratum g."""
    chosen = []
    for stratum in np.unique(strata):
        features = np.flatnonzero(strata == stratum)
        size = max(1, subspace_size(features.size, max_features))
        chosen.append(rng.choice(features, size=size, replace=False))
    return np.sort(np.concatenate(chosen))


def nearest_base_clusters(X: Array, X_new: Array, ensemble: Ensemble) -> Labels:
    """Return the base cluster with the nearest centre, in each member.

    X is what the ensemble was made of; the labels are those of its clusters.
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
