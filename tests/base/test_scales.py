"""Data of any scale and offset gives what the centred data of unit scale gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.metrics import adjusted_rand_score

from mdec import generate_ensemble
from mdec.base.graphs import similarity_graph
from mdec.base.kernels import KERNELS
from mdec.base.landmarks import Landmarks, tie_block, tie_rows
from mdec.numerics.landmark_search import index_landmarks, nearest_landmarks
from mdec.numerics.loops import landmarks
from mdec.numerics.magnitude import TOO_WIDE

SCALES = (1e-310, 1e-150, 1e-23, 1e20, 1e150, 1e300)
SHIFTED = (1e3, 1e6, 1e9)


def groups(n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n_samples)
    centers = 3.0 * rng.normal(size=(4, 10))
    y = np.arange(n_samples) % 4
    return centers[y] + rng.normal(size=(n_samples, 10)), y


def pattern(X: np.ndarray, kernel: str) -> np.ndarray:
    graph = similarity_graph(X, kernel, 7, 0.5)
    assert np.all(np.isfinite(graph.data))
    return graph.toarray() > 0.0


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_samples", [600, 1500])
def test_graphs_at_any_scale(n_samples: int, kernel: str) -> None:
    X, _ = groups(n_samples)
    expected = pattern(X, kernel)
    for scale in SCALES if kernel.startswith("scaled") else (1e-170, 1e170):
        found = pattern(scale * X, kernel)
        # Of subnormal numbers a few digits are left.
        allowed = 0.02 * expected.sum() if scale < 1e-300 else 0
        assert (found != expected).sum() <= allowed, scale


@pytest.mark.parametrize("kernel", ["scaled_gaussian", "scaled_exponential"])
@pytest.mark.parametrize("n_samples", [600, 1500])
def test_graphs_at_any_offset(n_samples: int, kernel: str) -> None:
    X, _ = groups(n_samples)
    for offset in SHIFTED:
        # What is left of the digits, brought back without rounding.
        moved = X + offset
        np.testing.assert_array_equal(
            pattern(moved, kernel), pattern(moved - offset, kernel)
        )


@pytest.mark.parametrize("kernel", ["scaled_gaussian", "scaled_exponential"])
@pytest.mark.parametrize("n_samples", [600, 1500])
@pytest.mark.parametrize("apart", [1e5, 1e7, 1e8])
def test_graphs_of_groups_far_apart(n_samples: int, kernel: str, apart: float) -> None:
    rng = np.random.default_rng(0)
    half = rng.normal(size=(n_samples // 2, 8))
    # Powers of two, so that the same digits are left in both groups.
    shift = 2.0 ** round(np.log2(apart))
    moved = np.concatenate([half - shift, half + shift])
    found = pattern(moved, kernel)
    expected = pattern(moved[: len(half)] + shift, kernel)
    np.testing.assert_array_equal(found[: len(half), : len(half)], expected)
    assert not found[: len(half), len(half) :].any()


@pytest.mark.parametrize("n_samples", [600, 1500])
@pytest.mark.parametrize("far", [1e4, 1e20, 1e60, 1e150])
def test_one_row_far_away_leaves_the_others_alone(n_samples: int, far: float) -> None:
    X, _ = groups(n_samples)
    alone = pattern(X, "scaled_exponential")
    found = pattern(np.vstack([X, np.full((1, 10), far)]), "scaled_exponential")
    np.testing.assert_array_equal(found[:-1, :-1], alone)
    assert found[-1].sum() == 7


@pytest.mark.parametrize("n_samples", [600, 1500])
def test_tight_groups_on_unit_vectors(n_samples: int) -> None:
    rng = np.random.default_rng(1)
    X = np.ones((n_samples, 12)) + 1e-4 * rng.normal(size=(n_samples, 12))
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    order = cdist(unit, unit)
    np.fill_diagonal(order, np.inf)
    kept = np.zeros(order.shape, dtype=bool)
    np.put_along_axis(kept, np.argsort(order, axis=1)[:, :7], True, axis=1)
    np.testing.assert_array_equal(pattern(X, "cosine"), kept | kept.T)


@pytest.mark.parametrize("n_samples", [600, 1500])
def test_magnitudes_that_cannot_be_squared_are_refused(n_samples: int) -> None:
    X, _ = groups(n_samples)
    X[-1] = 1e300
    with pytest.raises(ValueError, match=TOO_WIDE[:40]):
        similarity_graph(1e-10 * X, "scaled_gaussian", 7, 0.5)
    X *= 1e-250
    X[-1] = 1e290
    with pytest.raises(ValueError, match=TOO_WIDE[:40]):
        similarity_graph(X, "scaled_gaussian", 7, 0.5)


@pytest.mark.parametrize("n_samples", [600, 1500])
def test_single_precision_near_its_end(n_samples: int) -> None:
    X, _ = groups(n_samples)
    X = X.astype(np.float32)
    expected = pattern(X.astype(np.float64), "scaled_gaussian")
    for scale in (2.0**-140, 2.0**120):
        scaled = X * np.float32(scale)
        as_double = pattern(scaled.astype(np.float64), "scaled_gaussian")
        np.testing.assert_array_equal(pattern(scaled, "scaled_gaussian"), as_double)
    np.testing.assert_array_equal(as_double, expected)


SETTINGS: dict[str, Any] = {"ensemble_size": 3, "random_state": 0}


@pytest.mark.parametrize("kernel", ["scaled_gaussian", "scaled_exponential", "cosine"])
@pytest.mark.parametrize(
    ("n_samples", "base"), [(600, "graph"), (1100, "graph"), (900, "landmark")]
)
def test_members_at_any_scale(n_samples: int, base: str, kernel: str) -> None:
    X, _ = groups(n_samples)
    expected = generate_ensemble(X, kernel=kernel, base=base, **SETTINGS).labels
    for power in (-700, -70, 60, 500, 1000):
        scaled = np.ldexp(X, power)
        found = generate_ensemble(scaled, kernel=kernel, base=base, **SETTINGS)
        np.testing.assert_array_equal(found.labels, expected, err_msg=str(power))


@pytest.mark.parametrize(("n_samples", "base"), [(600, "graph"), (900, "landmark")])
def test_members_at_any_offset(n_samples: int, base: str) -> None:
    X, _ = groups(n_samples)
    for offset in (1e6, 1e9):
        moved = X + offset
        found = generate_ensemble(moved, base=base, **SETTINGS).labels
        expected = generate_ensemble(moved - offset, base=base, **SETTINGS).labels
        agreement = [
            adjusted_rand_score(a, b) for a, b in zip(found.T, expected.T, strict=True)
        ]
        assert min(agreement) > 0.99


def test_landmarks_of_groups_far_apart() -> None:
    """Beside such offsets float32 has no digits left for what is inside a group."""
    rng = np.random.default_rng(3)
    places = np.array([[0.0, 0.0], [1.0, 1.0], [1e5, 0.0], [1e5 + 1.0, 1.0]])
    y = np.arange(1200) % 4
    X = np.repeat(places[y], 10, axis=1) + 0.1 * rng.normal(size=(1200, 20))
    settings = {**SETTINGS, "base_n_clusters_range": (4, 4), "base": "landmark"}
    for labels in generate_ensemble(X, **settings).labels.T:
        assert adjusted_rand_score(y, labels) > 0.9


def test_landmarks_beside_rows_far_away() -> None:
    X, y = groups(800)
    plain = generate_ensemble(X, base="landmark", **SETTINGS).labels
    X[::200] = 1e20 * np.arange(1, 5)[:, None]
    found = generate_ensemble(X, base="landmark", **SETTINGS).labels
    rest = np.arange(800) % 200 != 0
    for a, b in zip(plain[rest].T, found[rest].T, strict=True):
        assert adjusted_rand_score(y[rest], b) > 0.8 * adjusted_rand_score(y[rest], a)


@pytest.mark.parametrize("kernel", ["cosine", "correlation", "spearman"])
def test_angular_landmarks_may_all_be_copies(kernel: str) -> None:
    X, _ = groups(20)
    ensemble = generate_ensemble(
        np.repeat(X, 40, axis=0), base="landmark", kernel=kernel, **SETTINGS
    )
    assert not ensemble.failures
    for labels in ensemble.labels.T:
        assert np.all(labels.reshape(20, 40) == labels[::40, None])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", ["scaled_gaussian", "scaled_exponential"])
def test_a_row_that_coincides_with_landmarks(kernel: str, dtype: type) -> None:
    """Its own distance is the floor, which weighs beside landmarks that are copies."""
    points = np.repeat([[0.0], [5.0], [9.0]], 3, axis=0).astype(dtype)
    rho = np.array([1e-7] * 3 + [1.0] * 6, dtype=dtype)
    index = index_landmarks(points, np.random.default_rng(0))
    member = Landmarks(np.arange(1), kernel, 3, 0.5, np.zeros(1), index, rho, 1.0)
    found = tie_rows(np.zeros((1, 1), dtype=dtype), member)
    np.testing.assert_array_equal(found.index, [[0, 1, 2]])
    scale = (1e-7 + 1e-7 + 0.0) / 3.0
    expected = 1.0
    if kernel == "scaled_gaussian":
        expected = 1.0 / (np.sqrt(2.0 * np.pi) * 0.5 * scale)
    np.testing.assert_allclose(found.weights, expected, rtol=1e-5)
    # A row that is merely near has its own distance, however small.
    near = tie_rows(np.full((1, 1), 1e-5, dtype=dtype), member).weights
    distance = 1e-10 if kernel == "scaled_gaussian" else 1e-5
    scale = (2.0 * distance + 1e-7) / 3.0
    expected = np.exp(-distance / (0.5 * scale))
    if kernel == "scaled_gaussian":
        width = 0.5 * scale
        expected = np.exp(-0.5 * (distance / width) ** 2)
        expected /= np.sqrt(2.0 * np.pi) * width
    np.testing.assert_allclose(near, expected, rtol=1e-4)


@pytest.mark.parametrize("value", [1e30, 1e300, np.finfo(np.float64).max])
def test_rows_out_of_all_bounds_are_tied_to_landmarks(value: float) -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(40, 3)).astype(np.float32)
    index, rho = index_landmarks(points, rng), np.ones(40, dtype=np.float32)
    drawn = "scaled_gaussian", 5, 0.5
    member = Landmarks(np.arange(3), *drawn, np.zeros(3), index, rho, 1.0)
    found = tie_block(np.array([[value, -value, value], [0.0, 0.0, 0.0]]), member)
    assert found.index.max() < 40
    assert len(set(found.index[0].tolist())) == 5
    assert np.all(np.isfinite(found.weights))


def test_no_landmark_is_made_up() -> None:
    """Scores that are not finite leave places unwritten, which nothing may read."""
    scores = np.array([[0.0, 1.0, 2.0], [np.nan, np.inf, 0.0]])
    index = np.full((2, 2), 60_000, dtype=np.uint16)
    assert not landmarks.smallest_columns(scores, index)
    assert index.max() < 3
    points = np.array([[0.0], [1.0], [2.0]], dtype=np.float32)
    prepared = index_landmarks(points, np.random.default_rng(0))
    rows = np.array([[np.nan]], dtype=np.float32)
    with pytest.raises(ValueError, match="not finite"), np.errstate(invalid="ignore"):
        nearest_landmarks(rows, prepared, 2)
