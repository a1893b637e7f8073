"""Ensembles of the baselines: protocol, strata, seeds, exact shortcuts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from mdec._support.random import member_stream
from mdec.baselines import generate_kmeans_ensemble, generate_stratified_ensemble
from mdec.bench.baselines._generation import (
    draw_stratified,
    feature_strata,
    kmeans_once,
    rotate,
)

GENERATORS = [generate_kmeans_ensemble, generate_stratified_ensemble]


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(50, 120)) + 3.0 * (np.arange(50) % 3)[:, None]


@pytest.mark.parametrize("generate", GENERATORS)
def test_numbers_of_clusters_follow_the_protocol(generate, X) -> None:
    ensemble = generate(X, ensemble_size=60, random_state=0)
    assert ensemble.labels.shape == (50, 60)
    counts = ensemble.cluster_counts
    assert (counts.min(), counts.max()) == (2, math.ceil(math.sqrt(50)))
    drawn = [member_stream(0, m, "n_clusters").integers(2, 9) for m in range(60)]
    np.testing.assert_array_equal(counts, drawn)


@pytest.mark.parametrize("generate", GENERATORS)
def test_members_do_not_depend_on_how_many_or_how(generate, X) -> None:
    ensemble = generate(X, ensemble_size=12, random_state=5)
    few = generate(X, ensemble_size=4, random_state=5)
    np.testing.assert_array_equal(few.labels, ensemble.labels[:, :4])
    threads = generate(X, ensemble_size=12, random_state=5, n_jobs=3)
    np.testing.assert_array_equal(threads.labels, ensemble.labels)
    other = generate(X, ensemble_size=12, random_state=6)
    assert not np.array_equal(other.labels, ensemble.labels)


def test_rotation_keeps_distances(X) -> None:
    rotated = rotate(X)
    assert rotated.shape == (50, 50)
    np.testing.assert_allclose(pdist(rotated), pdist(X), rtol=1e-10)
    np.testing.assert_allclose(pdist(rotate(X[:, :7])), pdist(X[:, :7]), rtol=1e-12)


def test_kmeans_labels_are_a_fixed_point(X) -> None:
    labels = kmeans_once(X, 6, np.random.default_rng(0))
    centers = np.stack([X[labels == k].mean(axis=0) for k in range(6)])
    distances = ((X[:, None] - centers) ** 2).sum(axis=2)
    np.testing.assert_array_equal(distances.argmin(axis=1), labels)


def test_duplicate_rows_limit_the_clusters() -> None:
    X = np.repeat(np.eye(4), 25, axis=0)
    for generate in GENERATORS:
        ensemble = generate(X, ensemble_size=10, random_state=0)
        assert ensemble.cluster_counts.max() <= 4


def test_strata_are_groups_of_similar_features() -> None:
    rng = np.random.default_rng(0)
    base = rng.normal(size=(40, 3)) * 10
    kind = np.arange(36) % 3
    X = base[:, kind] + 0.01 * rng.normal(size=(40, 36))
    X = np.hstack([X, np.full((40, 2), 7.0)])
    strata = feature_strata(X, 3, np.random.default_rng(1))
    np.testing.assert_array_equal(strata[:36], kind)
    np.testing.assert_array_equal(strata[36:], 3)
    assert feature_strata(X, None, np.random.default_rng(1)).max() <= math.isqrt(38)


def test_every_stratum_gives_its_share() -> None:
    strata = np.repeat([0, 1, 2], [10, 5, 1])
    drawn = draw_stratified(strata, 0.5, np.random.default_rng(0))
    np.testing.assert_array_equal(np.bincount(strata[drawn]), [5, 3, 1])
    assert np.unique(drawn).size == drawn.size


@pytest.mark.parametrize("generate", GENERATORS)
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"ensemble_size": 0}, "'ensemble_size' parameter .* Got 0 instead"),
        ({"base_n_clusters_range": (1, 3)}, r"base_n_clusters_range=\(1, 3\) must"),
        ({"base_n_clusters_range": (2, 51)}, "more clusters than the 50 samples"),
    ],
)
def test_bad_parameters_are_named(generate, parameters, message, X) -> None:
    with pytest.raises(ValueError, match=message):
        generate(X, **parameters)


def test_bad_strata_are_named(X) -> None:
    with pytest.raises(ValueError, match=r"'n_strata' parameter .* Got 0"):
        generate_stratified_ensemble(X, n_strata=0)
    with pytest.raises(ValueError, match=r"'max_features' parameter .* Got 0"):
        generate_stratified_ensemble(X, max_features=0.0)


@pytest.mark.parametrize("generate", GENERATORS)
def test_constant_data_are_refused(generate) -> None:
    with pytest.raises(ValueError, match="all 10 samples are equal"):
        generate(np.ones((10, 4)))
