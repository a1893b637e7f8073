"""Each similarity against its formula written out for one pair."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mdec.base.kernels import (
    KERNELS,
    angular_coordinates,
    greatest_unseen_similarity,
    mean_neighbor_distance,
    scaled_exponential_similarity,
    scaled_gaussian_similarity,
    scaling_term,
)
from mdec.base.landmarks import coordinates
from mdec.ensemble.draws import draw_kernel_params
from mdec.ensemble.plan import Plan

POINTS = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [5.0, 5.0], [6.0, 5.0]])

positive = st.floats(1e-3, 1e3)


def neighbor_means(distances: np.ndarray, k: int) -> np.ndarray:
    """Return the mean of the k smallest entries of each row, without the diagonal."""
    means = []
    for i, row in enumerate(distances):
        others = sorted(value for j, value in enumerate(row) if j != i)
        means.append(sum(others[:k]) / k)
    return np.array(means)


def test_kernel_names() -> None:
    assert set(KERNELS) == {
        "scaled_gaussian",
        "scaled_exponential",
        "cosine",
        "correlation",
        "spearman",
    }


def test_worked_example_of_the_printed_kernel() -> None:
    distances = np.linalg.norm(POINTS[:, None] - POINTS[None], axis=2)
    rho = mean_neighbor_distance(neighbor_means(distances, 2))
    expected = [1.5, 1.618034, 2.118034, 3.415476, 3.854102]
    np.testing.assert_allclose(rho, expected, atol=5e-7)
    for i, j, scale, similarity in [
        (0, 1, 1.372678, 0.232933),
        (3, 4, 2.756526, 0.484058),
    ]:
        found = scaling_term(distances[i, j], rho[i], rho[j])
        assert float(found) == pytest.approx(scale, abs=5e-7)
        value = scaled_exponential_similarity(distances[i, j], found, 0.5)
        assert float(value) == pytest.approx(similarity, abs=5e-7)


def test_worked_example_of_the_released_kernel() -> None:
    distances = ((POINTS[:, None] - POINTS[None]) ** 2).sum(axis=2)
    rho = mean_neighbor_distance(neighbor_means(distances, 2))
    np.testing.assert_allclose(rho, [2.5, 3.0, 4.5, 17.5, 23.0])
    for i, j, scale, similarity in [
        (0, 1, 2.166667, 0.240504),
        (0, 2, 3.666667, 0.020136),
        (1, 2, 4.166667, 0.010749),
        (3, 4, 13.833333, 0.057079),
    ]:
        found = scaling_term(distances[i, j], rho[i], rho[j])
        assert float(found) == pytest.approx(scale, abs=5e-7)
        value = scaled_gaussian_similarity(distances[i, j], found, 0.5)
        assert float(value) == pytest.approx(similarity, abs=5e-7)


@given(distance=st.floats(0.0, 1e3), scale=positive, mu=st.floats(0.05, 5.0))
def test_scaled_gaussian_is_the_normal_density(
    distance: float, scale: float, mu: float
) -> None:
    value = float(scaled_gaussian_similarity(distance, scale, mu))
    density = stats.norm.pdf(distance, loc=0.0, scale=mu * scale)
    assert value == pytest.approx(density, rel=1e-9, abs=1e-300)


@given(distance=st.floats(0.0, 1e3), scale=positive, mu=st.floats(0.05, 5.0))
def test_scaled_exponential_formula(distance: float, scale: float, mu: float) -> None:
    value = float(scaled_exponential_similarity(distance, scale, mu))
    assert value == pytest.approx(math.exp(-distance / (mu * scale)), rel=1e-12)
    assert 0.0 <= value <= 1.0


def test_mean_neighbor_distance_is_untouched_without_copies() -> None:
    means = np.random.default_rng(0).uniform(0.5, 2.0, 50)
    np.testing.assert_array_equal(mean_neighbor_distance(means), means)


def test_mean_neighbor_distance_floor() -> None:
    means = np.array([0.0, 0.0, 1.0, 2.0, 9.0])
    np.testing.assert_allclose(
        mean_neighbor_distance(means, 1e-3), [2e-3, 2e-3, 1.0, 2.0, 9.0]
    )


def test_mean_neighbor_distance_of_copies_only() -> None:
    with pytest.raises(ValueError, match="copies"):
        mean_neighbor_distance(np.zeros(4))


@given(
    seen=positive,
    further=st.floats(0.0, 1e3),
    rho=positive,
    far_rho=positive,
    share=st.floats(0.0, 1.0),
    mu=st.floats(0.05, 5.0),
)
def test_bound_on_unseen_similarities_holds(
    seen: float, further: float, rho: float, far_rho: float, share: float, mu: float
) -> None:
    """No sample at least as far, of at most that neighbour distance, is above it."""
    distance, other = seen + further, share * far_rho
    scale = (rho + other + distance) / 3.0
    value = stats.norm.pdf(distance, scale=mu * scale)
    bound = greatest_unseen_similarity(
        np.array([seen]), np.array([rho]), np.array([far_rho]), mu
    )
    assert value <= bound[0] * (1.0 + 1e-9)


@pytest.mark.parametrize("kernel", ["cosine", "correlation", "spearman"])
def test_angular_products_are_the_named_similarity(kernel: str) -> None:
    X = np.random.default_rng(3).normal(size=(12, 9))
    X[4, :5] = 1.0  # ties within a row
    unit = angular_coordinates(X, kernel)
    for i in range(12):
        for j in range(12):
            a, b = X[i], X[j]
            expected = {
                "cosine": lambda a=a, b=b: (
                    a @ b / math.sqrt(float(a @ a) * float(b @ b))
                ),
                "correlation": lambda a=a, b=b: stats.pearsonr(a, b).statistic,
                "spearman": lambda a=a, b=b: stats.spearmanr(a, b).statistic,
            }[kernel]()
            assert unit[i] @ unit[j] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kernel", ["cosine", "correlation", "spearman"])
def test_rows_without_direction(kernel: str) -> None:
    X = np.random.default_rng(3).normal(size=(6, 4))
    X[[1, 4]] = 0.0
    unit = angular_coordinates(X, kernel)
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1.0)
    similarity = unit @ unit.T
    assert similarity[1, 4] == pytest.approx(1.0)
    assert np.abs(similarity[1, [0, 2, 3, 5]]).max() == 0.0


def test_kernel_parameters_cover_their_ranges() -> None:
    rng = np.random.default_rng(0)
    draws = [draw_kernel_params(1000, (5, 20), (0.2, 0.8), rng) for _ in range(2000)]
    ks, mus = np.array(draws).T
    counts = np.bincount(ks.astype(int))
    assert set(np.flatnonzero(counts)) == set(range(5, 21))
    # Each k has 125 draws in expectation; 5 standard deviations are 54.
    assert np.abs(counts[5:] - 125).max() < 54
    assert mus.min() >= 0.2
    assert mus.max() <= 0.8
    assert abs(mus.mean() - 0.5) < 5 * 0.6 / math.sqrt(12 * 2000)


@pytest.mark.parametrize(
    ("n_samples", "expected"), [(3, {2}), (5, {4}), (8, {5, 6, 7})]
)
def test_neighbors_are_fewer_than_samples(n_samples: int, expected: set[int]) -> None:
    rng = np.random.default_rng(0)
    found = {
        draw_kernel_params(n_samples, (5, 20), (0.2, 0.8), rng)[0] for _ in range(500)
    }
    assert found == expected


def test_the_floor_acts_on_copies_alone() -> None:
    means = np.array([0.0, 1e-12, 1.0, 2.0, 3.0])
    np.testing.assert_array_equal(
        mean_neighbor_distance(means), [1e-12, 1e-12, 1.0, 2.0, 3.0]
    )


@pytest.mark.parametrize("kernel", ["cosine", "correlation", "spearman"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_directions_do_not_depend_on_the_scale(kernel: str, dtype: type) -> None:
    X = np.random.default_rng(3).normal(size=(6, 5)).astype(dtype)
    ends = (-1000, -500, 500, 1000) if dtype is np.float64 else (-120, -90, 90, 120)
    for power in ends:
        rows = X.copy()
        rows[::2] = np.ldexp(rows[::2], power)
        np.testing.assert_allclose(
            angular_coordinates(rows, kernel), angular_coordinates(X, kernel), rtol=1e-5
        )


@pytest.mark.parametrize("kernel", ["correlation", "spearman"])
def test_a_constant_row_has_no_direction(kernel: str) -> None:
    X = np.random.default_rng(0).normal(size=(4, 7))
    X[1], X[2] = 0.1, 1e9 / 3.0
    unit = angular_coordinates(X, kernel)
    assert unit.shape == (4, 8)
    np.testing.assert_array_equal(unit[:, -1], [0.0, 1.0, 1.0, 0.0])
    assert not unit[1:3, :-1].any()


@pytest.mark.parametrize("kernel", ["correlation", "spearman"])
@pytest.mark.parametrize("n_features", [1, 2])
def test_few_features_correlate_against_a_baseline(kernel: str, n_features: int):
    X = np.random.default_rng(0).normal(size=(6, n_features))
    unit = angular_coordinates(X, kernel)
    baseline = np.zeros((6, 3 - n_features))
    rows = np.hstack([X, baseline])
    rows = rows if kernel == "correlation" else stats.rankdata(rows, axis=1)
    np.testing.assert_allclose(unit @ unit.T, np.corrcoef(rows), atol=1e-12)
    assert len(np.unique(np.round(unit @ unit.T, 6))) > 2 or n_features == 1


def test_the_baseline_is_for_fewer_than_three_features() -> None:
    X = np.random.default_rng(0).normal(size=(6, 3))
    for kernel in ("cosine", "correlation", "spearman"):
        assert angular_coordinates(X, kernel).shape == X.shape
        width = 1 if kernel == "cosine" else 3
        assert angular_coordinates(X[:, :1] + 9.0, kernel).shape == (6, width)
    lost = angular_coordinates(np.array([[0.0, 0.0], [1.0, 1.0]]), "correlation")
    np.testing.assert_array_equal(lost[:, -1], [1.0, 0.0])


@pytest.mark.parametrize("n_features", [2, 4])
def test_blocks_have_one_width_with_and_without_lost_rows(n_features: int) -> None:
    rows = np.random.default_rng(0).normal(size=(5, n_features))
    rows[0] = 0.0
    everything = np.arange(n_features)
    for kernel in ("cosine", "correlation", "spearman"):
        whole = coordinates(rows, everything, kernel)
        blocks = [coordinates(rows[i : i + 1], everything, kernel) for i in range(5)]
        np.testing.assert_allclose(np.vstack(blocks), whole, atol=1e-12)


LEAST = {"scaled_gaussian": 1, "cosine": 2, "correlation": 3, "spearman": 3}


@pytest.mark.parametrize(
    ("kernel", "sizes"),
    [
        ("scaled_gaussian", [1, 1, 2, 5]),
        ("cosine", [1, 2, 2, 5]),
        ("correlation", [1, 2, 3, 5]),
        ("spearman", [1, 2, 3, 5]),
    ],
)
def test_a_member_draws_as_many_features_as_its_kernel_needs(kernel: str, sizes: list):
    for n_features, size in zip([1, 2, 3, 10], sizes, strict=True):
        plan = Plan(20, n_features, entropy=0, kernel=kernel)
        member = plan.member(0)
        assert plan.features(member).size == plan.n_drawn == size
        among = np.arange(n_features) + 7
        np.testing.assert_array_equal(
            plan.features(member, among), plan.features(member) + 7
        )
    few = Plan(20, 10, entropy=0, kernel=kernel, max_features=0.1)
    assert few.features(few.member(0)).size == few.n_drawn == LEAST[kernel]
