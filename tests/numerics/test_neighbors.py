"""Blocked nearest neighbours against looking at every pair."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

from mdec.numerics import neighbors
from mdec.numerics.loops import dense
from mdec.numerics.magnitude import at_safe_scale
from mdec.numerics.neighbors import (
    BlockedDistances,
    NeighborPairs,
    distances_about_mean,
    nearest_pairs,
    squared_distances,
)
from mdec.numerics.sparse_rows import SparseDistances


def graph_of(pairs: NeighborPairs) -> csr_array:
    """Return the squared distances of pairs, both ways."""
    ends = np.append(pairs.low, pairs.high), np.append(pairs.high, pairs.low)
    shape = (pairs.radius.size, pairs.radius.size)
    return csr_array((np.tile(pairs.squared, 2), ends), shape=shape)


def test_single_precision_is_left_alone_unless_it_is_huge() -> None:
    X = np.array([[1.0, -3.0]], dtype=np.float32)
    assert at_safe_scale(X) is X
    for huge in (X * np.float32(2.0**101), -X * np.float32(2.0**101)):
        assert at_safe_scale(huge).dtype == np.float64


def test_products_tell_whether_distances_lost_digits() -> None:
    X = np.random.default_rng(0).normal(size=(20, 5))
    plain = X @ X.T
    assert dense.products_to_distances(plain, plain.diagonal().copy()) == 0
    np.testing.assert_allclose(plain, cdist(X, X, "sqeuclidean"), 1e-9, 1e-12)
    X[7] = X[3] + 1e-6
    close = X @ X.T
    close[3, 7] = 0.0  # not symmetric: one side alone lost digits
    assert dense.products_to_distances(close, close.diagonal().copy()) == 1
    np.testing.assert_array_equal(np.argwhere(close == -1.0), [[7, 3]])


def test_squared_distances_by_double_loop() -> None:
    X = np.random.default_rng(0).normal(size=(15, 4))
    D = squared_distances(X)
    for i in range(15):
        for j in range(15):
            expected = sum((a - b) ** 2 for a, b in zip(X[i], X[j], strict=True))
            assert D[i, j] == pytest.approx(expected, rel=1e-9, abs=1e-13)
    np.testing.assert_array_equal(D, D.T)
    assert not np.diag(D).any()


def test_copies_are_never_at_negative_distance() -> None:
    X = np.repeat(np.random.default_rng(0).normal(5.0, 1.0, (10, 30)), 3, axis=0)
    assert squared_distances(X).min() >= 0.0


def test_only_rows_with_a_lost_distance_are_asked_for() -> None:
    X = np.random.default_rng(0).normal(size=(20, 5))
    X[7], X[11] = X[3], X[15] + 1e-9
    asked: list[int] = []

    def original(rows: np.ndarray) -> np.ndarray:
        asked.extend(rows)
        return X[rows]

    D = distances_about_mean(X - X.mean(axis=0), original)
    assert asked == [3, 7, 11, 15]
    np.testing.assert_allclose(D, cdist(X, X, "sqeuclidean"), rtol=1e-9, atol=0.0)
    np.testing.assert_array_equal(D, D.T)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n_samples", "k"), [(3, 2), (40, 39), (700, 7), (1100, 1)])
def test_nearest_pairs_hold_the_nearest(
    dtype: type[np.floating], n_samples: int, k: int
) -> None:
    X = np.random.default_rng(n_samples).normal(size=(n_samples, 6)).astype(dtype)
    found = nearest_pairs(BlockedDistances(X), k)
    D = cdist(X.astype(np.float64), X.astype(np.float64), "sqeuclidean")
    np.fill_diagonal(D, np.inf)
    tolerance = 1e-5 if dtype is np.float32 else 1e-9
    graph = graph_of(found)
    assert graph.shape == (n_samples, n_samples)
    stored = graph.toarray() > 0.0
    np.testing.assert_array_equal(stored, stored.T)
    np.testing.assert_allclose(graph.toarray()[stored], D[stored], rtol=tolerance)
    for i in range(n_samples):
        row = np.sort(graph.data[graph.indptr[i] : graph.indptr[i + 1]])
        np.testing.assert_allclose(row[:k], np.sort(D[i])[:k], rtol=tolerance)


def test_radius_separates_known_from_unknown_pairs() -> None:
    rng = np.random.default_rng(1)
    X = (rng.normal(size=(900, 5)) * rng.exponential(5.0, (900, 1))).astype(np.float32)
    found = nearest_pairs(BlockedDistances(X), 9)
    D = cdist(X.astype(np.float64), X.astype(np.float64), "sqeuclidean")
    unknown = graph_of(found).toarray() == 0.0
    np.fill_diagonal(unknown, False)
    larger = np.maximum(found.radius[:, None], found.radius[None, :])
    assert np.all(D[unknown] >= larger[unknown] * (1.0 - 1e-6))
    # A bound that is always zero would hold too, and be of no use.
    assert np.median(found.radius / np.sort(D, axis=1)[:, 8]) > 0.99


@pytest.mark.parametrize("tile", [64, 100, 5000])
def test_tiles_do_not_change_the_pairs(
    monkeypatch: pytest.MonkeyPatch, tile: int
) -> None:
    X = np.random.default_rng(2).normal(size=(600, 5)).astype(np.float32)
    expected = graph_of(nearest_pairs(BlockedDistances(X), 6))
    monkeypatch.setattr(neighbors, "TILE", tile)
    found = graph_of(nearest_pairs(BlockedDistances(X), 6))
    np.testing.assert_array_equal(found.toarray(), expected.toarray())


def test_copies_are_found_at_distance_zero() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(600, 8)).astype(np.float32)
    X[200:400] = X[0]
    graph = graph_of(nearest_pairs(BlockedDistances(X), 5))
    copies = np.r_[0, 200:400]
    for i in copies:
        row = np.sort(graph.data[graph.indptr[i] : graph.indptr[i + 1]])
        assert not row[:5].any()


def test_distances_keep_their_digits_beside_large_norms() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5)) + np.where(np.arange(60) % 2, 1e8, -1e8)[:, None]
    X[7] = X[3]
    np.testing.assert_allclose(squared_distances(X), cdist(X, X, "sqeuclidean"), 1e-9)
    assert squared_distances(X)[3, 7] == 0.0


@pytest.mark.parametrize("n_features", [40, 700, 12_000])
@pytest.mark.parametrize("kind", ["normal", "binary"])
def test_rounding_stays_within_its_bound(n_features: int, kind: str) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, n_features))
    if kind == "binary":
        X = (X > 0.3).astype(float)
    blocked = BlockedDistances(X)
    D = cdist(X, X, "sqeuclidean")
    np.fill_diagonal(D, np.nan)
    rounded = blocked.block(slice(None), slice(None))
    rows = np.arange(200)
    for i in range(200):
        others = np.delete(rows, i)
        most = blocked.rounded_at_most(np.full(199, i), D[i, others])
        assert np.all(rounded[i, others] <= most)
        least = blocked.at_least(np.full(199, i), rounded[i, others])
        assert np.all(least <= D[i, others])
        # A bound that is far off would hold too, and be of no use.
        assert np.median(least / D[i, others]) > 0.99


def test_a_row_far_away_does_not_blur_the_others() -> None:
    X = np.random.default_rng(0).normal(size=(600, 5))
    X[10] = 1e15
    found = nearest_pairs(BlockedDistances(X), 7)
    D = cdist(X, X, "sqeuclidean")
    np.fill_diagonal(D, np.inf)
    others = np.delete(np.arange(600), 10)
    assert np.median(found.radius[others] / np.sort(D, axis=1)[others, 6]) > 0.99


@pytest.mark.parametrize("power", [-1060, -1000, 0, 900, 1000])
def test_a_power_of_two_brings_data_to_a_safe_scale(power: int) -> None:
    X = np.array([[0.0, 1.0], [-3.0, 0.25]])
    safe = at_safe_scale(np.ldexp(X, power))
    assert np.all(np.isfinite(safe**2))
    assert np.count_nonzero(safe**2) == 3
    # One factor for all, a power of two.
    factor = safe[0, 1]
    np.testing.assert_array_equal(safe, factor * X)
    assert math.frexp(factor)[0] == 0.5


@pytest.mark.parametrize("kind", [neighbors.BlockedDistances, SparseDistances])
def test_one_row_without_a_length_is_refused(kind: type) -> None:
    X = np.random.default_rng(0).normal(size=(9, 4))
    X[5, 2] = 1e200
    rows = csr_array(X) if kind is SparseDistances else X
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="too large"):
        kind(rows)


@pytest.mark.parametrize("shuffled", [False, True])
def test_rows_in_any_order_have_the_same_neighbors(shuffled: bool) -> None:
    rng = np.random.default_rng(2)
    group = np.repeat(np.arange(12), 100)
    X = 9.0 * rng.normal(size=(12, 6))[group] + rng.normal(size=(1200, 6))
    if shuffled:
        X = X[rng.permutation(1200)]
    distances = BlockedDistances(X)
    # Rows that come in groups stay; others are brought together.
    assert (np.diff(distances.order) > 0).all() != shuffled
    pairs = nearest_pairs(distances, 9)
    exact = cdist(X, X, "sqeuclidean")
    np.fill_diagonal(exact, np.inf)
    ninth = np.sort(exact, axis=1)[:, 8]
    found = graph_of(pairs).toarray()
    np.testing.assert_allclose(found[found > 0.0], exact[found > 0.0], rtol=1e-8)
    assert (found > 0.0)[exact <= ninth[:, None]].all()
    assert (pairs.radius <= np.where(found > 0.0, np.inf, exact).min(axis=1)).all()
