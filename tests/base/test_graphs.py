"""Similarity graphs: the formulas pair by pair, and the search against all pairs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from scipy.stats import rankdata

from mdec.base.graphs import (
    _nearness,
    _search_within,
    graph_from_distances,
    similarity_graph,
)
from mdec.base.kernels import KERNELS
from mdec.numerics.digits import nine_digits
from mdec.numerics.neighbors import BlockedDistances, squared_distances

POINTS = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [5.0, 5.0], [6.0, 5.0]])


def naive_graph(X: np.ndarray, kernel: str, k: int, mu: float) -> np.ndarray:
    """Return the graph by loops over pairs, for samples without copies."""
    n = len(X)
    S = np.zeros((n, n))
    order = np.zeros((n, n))  # larger is kept first
    if kernel.startswith("scaled"):
        d = np.zeros((n, n))
        for i in range(n):
            for j in range(n):
                d[i, j] = sum((a - b) ** 2 for a, b in zip(X[i], X[j], strict=True))
                if kernel == "scaled_exponential":
                    d[i, j] = math.sqrt(d[i, j])
        rho = [
            sum(sorted(d[i, j] for j in range(n) if j != i)[:k]) / k for i in range(n)
        ]
        for i in range(n):
            for j in range(n):
                width = mu * (rho[i] + rho[j] + d[i, j]) / 3.0
                if kernel == "scaled_exponential":
                    S[i, j] = math.exp(-d[i, j] / width)
                    order[i, j] = -d[i, j]
                else:
                    ratio = d[i, j] / width
                    S[i, j] = math.exp(-0.5 * ratio**2) / math.sqrt(2 * math.pi) / width
                    order[i, j] = S[i, j]
    else:
        rows = rankdata(X, axis=1) if kernel == "spearman" else X
        for i in range(n):
            for j in range(n):
                a, b = rows[i], rows[j]
                if kernel != "cosine":
                    a, b = a - a.mean(), b - b.mean()
                S[i, j] = max(a @ b / math.sqrt((a @ a) * (b @ b)), 0.0)
                order[i, j] = S[i, j]
    kept = np.zeros((n, n))
    for i in range(n):
        others = [j for j in range(n) if j != i]
        for j in sorted(others, key=lambda j: (-order[i, j], j))[:k]:
            kept[i, j] = S[i, j]
    return np.maximum(kept, kept.T)


def all_pairs(
    X: np.ndarray, kernel: str, k: int, mu: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all similarities, their order of choice, and the graph, in float64.

    Distances are made of differences, so that no digit is lost, and rounded as
    documented. The neighbour distance has the documented floor for samples with copies.
    """
    X = X.astype(np.float64)
    if kernel.startswith("scaled"):
        d = nine_digits(cdist(X, X, "sqeuclidean"))
        if kernel == "scaled_exponential":
            d = np.sqrt(d)
        np.fill_diagonal(d, np.inf)
        rho = np.sort(d, axis=1)[:, :k].mean(axis=1)
        positive = rho[rho > 0.0]
        rho = np.maximum(rho, min(1e-6 * np.median(positive), positive.min()))
        np.fill_diagonal(d, 0.0)
        width = mu * (rho[:, None] + rho[None, :] + d) / 3.0
        if kernel == "scaled_exponential":
            S, order = np.exp(-d / width), -d
        else:
            S = np.exp(-0.5 * (d / width) ** 2) / (math.sqrt(2 * math.pi) * width)
            order = S.copy()
    else:
        rows = rankdata(X, axis=1) if kernel == "spearman" else X
        if kernel != "cosine":
            rows = rows - rows.mean(axis=1, keepdims=True)
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        S = np.maximum(rows @ rows.T, 0.0)
        order = S.copy()
    np.fill_diagonal(S, 0.0)
    np.fill_diagonal(order, -np.inf)
    chosen = np.argsort(-order, axis=1, kind="stable")[:, :k]
    kept = np.zeros_like(S)
    np.put_along_axis(kept, chosen, np.take_along_axis(S, chosen, 1), 1)
    return S, order, np.maximum(kept, kept.T)


def assert_graph(W: np.ndarray, expected: np.ndarray, rtol: float = 1e-5) -> None:
    np.testing.assert_array_equal(W > 0.0, expected > 0.0)
    np.testing.assert_allclose(W, expected, rtol=rtol, atol=0.0)


def assert_graph_up_to_ties(
    X: np.ndarray, W: np.ndarray, kernel: str, k: int, mu: float
) -> None:
    """Where entries of a row tie for the last place, any of them may be kept."""
    S, order, _ = all_pairs(X, kernel, k, mu)
    last = -np.sort(-order, axis=1)[:, k - 1 : k]
    slack = 1e-5 * np.abs(last)
    surely = (order > last + slack) | (order > last + slack).T
    never = (order < last - slack) & (order < last - slack).T
    np.fill_diagonal(never, True)
    assert np.all(W[surely & (S > 0.0)] > 0.0)
    assert not W[never].any()
    stored = W > 0.0
    np.testing.assert_allclose(W[stored], S[stored], rtol=1e-5)
    # Each row keeps its k best: as many and as large as choosing from all gives.
    best = -np.sort(-np.where(stored, order, -np.inf), axis=1)[:, :k]
    expected = -np.sort(-order, axis=1)[:, :k]
    np.testing.assert_allclose(best, expected, rtol=1e-5, atol=1e-12)


def gaussian(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(1300, 20))


def densities(rng: np.random.Generator) -> np.ndarray:
    centers = rng.normal(0.0, 20.0, (8, 12))
    widths = 10.0 ** np.linspace(-2, 1, 8)
    group = rng.integers(8, size=1400)
    return centers[group] + widths[group, None] * rng.normal(size=(1400, 12))


def nested_densities(rng: np.random.Generator) -> np.ndarray:
    """A tight core inside a wide cloud: the largest similarities are not nearest."""
    widths = np.where(rng.random(1200) < 0.3, 0.02, 1.0)
    return widths[:, None] * rng.normal(size=(1200, 3))


def far_groups(rng: np.random.Generator) -> np.ndarray:
    centers = rng.normal(0.0, 100.0, (6, 10))
    group = rng.integers(6, size=1200)
    return 1e4 + centers[group] + 0.05 * rng.normal(size=(1200, 10))


def heavy_tails(rng: np.random.Generator) -> np.ndarray:
    return rng.standard_t(1.5, size=(1300, 8))


def line(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(1200, 1))


def plane(rng: np.random.Generator) -> np.ndarray:
    return rng.uniform(size=(1500, 2))


def skewed(rng: np.random.Generator) -> np.ndarray:
    return np.exp(2.0 * rng.normal(size=(1200, 30)))


def integers(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 4, size=(1200, 6)).astype(float)


def copies(rng: np.random.Generator) -> np.ndarray:
    X = rng.normal(size=(1200, 10))
    X[rng.permutation(1200)[:400]] = X[0]
    return X


UNTIED = [
    gaussian,
    densities,
    nested_densities,
    far_groups,
    heavy_tails,
    line,
    plane,
    skewed,
]
TIED = [integers, copies]


def ids(shape: object) -> str:
    return getattr(shape, "__name__", str(shape))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("k", [1, 3, 7])
def test_double_loop(kernel: str, k: int) -> None:
    X = np.random.default_rng(k).normal(size=(25, 31))
    W = similarity_graph(X, kernel, k, 0.4).toarray()
    assert_graph(W, naive_graph(X, kernel, k, 0.4), rtol=1e-7)
    assert_graph(all_pairs(X, kernel, k, 0.4)[2], naive_graph(X, kernel, k, 0.4), 1e-7)


def test_worked_example_of_the_released_kernel() -> None:
    W = similarity_graph(POINTS, "scaled_gaussian", 2, 0.5).toarray()
    expected = np.zeros((5, 5))
    for i, j, value in [
        (0, 1, 0.240504),
        (0, 2, 0.020136),
        (1, 2, 0.010749),
        (3, 4, 0.057079),
        (2, 3, 0.000056),
        (2, 4, 0.000032),
    ]:
        expected[i, j] = expected[j, i] = value
    np.testing.assert_allclose(W, expected, atol=5e-7)
    np.testing.assert_array_equal(W > 0.0, expected > 0.0)


def test_worked_example_of_the_printed_kernel() -> None:
    W = similarity_graph(POINTS, "scaled_exponential", 2, 0.5).toarray()
    expected = np.zeros((5, 5))
    for i, j, value in [
        (0, 1, 0.232933),
        (0, 2, 0.118129),
        (1, 2, 0.105769),
        (2, 3, 0.046027),
        (2, 4, 0.041830),
        (3, 4, 0.484058),
    ]:
        expected[i, j] = expected[j, i] = value
    np.testing.assert_allclose(W, expected, atol=5e-7)
    np.testing.assert_array_equal(W > 0.0, expected > 0.0)


@pytest.mark.parametrize("shape", UNTIED, ids=ids)
@pytest.mark.parametrize(("k", "mu"), [(5, 0.2), (20, 2.0)])
def test_search_finds_the_graph_of_all_pairs(shape, k: int, mu: float) -> None:
    X = shape(np.random.default_rng(k))
    W = similarity_graph(X, "scaled_gaussian", k, mu).toarray()
    _, _, expected = all_pairs(X, "scaled_gaussian", k, mu)
    assert_graph(W, expected)


@pytest.mark.parametrize("shape", TIED, ids=ids)
@pytest.mark.parametrize(("k", "mu"), [(5, 0.2), (12, 0.5), (20, 2.0)])
def test_search_among_ties(shape, k: int, mu: float) -> None:
    X = shape(np.random.default_rng(k))
    W = similarity_graph(X, "scaled_gaussian", k, mu).toarray()
    assert_graph_up_to_ties(X, W, "scaled_gaussian", k, mu)


@pytest.mark.parametrize("shape", [gaussian, densities, far_groups, plane], ids=ids)
def test_search_with_the_printed_kernel(shape) -> None:
    X = shape(np.random.default_rng(9))
    W = similarity_graph(X, "scaled_exponential", 8, 0.4).toarray()
    assert_graph(W, all_pairs(X, "scaled_exponential", 8, 0.4)[2])


@pytest.mark.parametrize("shape", TIED, ids=ids)
def test_search_among_ties_with_the_printed_kernel(shape) -> None:
    X = shape(np.random.default_rng(9))
    W = similarity_graph(X, "scaled_exponential", 8, 0.4).toarray()
    assert_graph_up_to_ties(X, W, "scaled_exponential", 8, 0.4)


@pytest.mark.parametrize("kernel", ["cosine", "correlation", "spearman"])
@pytest.mark.parametrize("shape", [gaussian, skewed], ids=ids)
def test_search_with_plain_similarities(shape, kernel: str) -> None:
    X = shape(np.random.default_rng(9))
    W = similarity_graph(X, kernel, 8, 0.4).toarray()
    S, _, expected = all_pairs(X, kernel, 8, 0.4)
    if kernel == "spearman":  # ranks tie
        assert_graph_up_to_ties(X, W, kernel, 8, 0.4)
    else:
        assert_graph(W, expected)
    assert S.max() <= 1.0 + 1e-12


@pytest.mark.parametrize("kernel", ["scaled_gaussian", "scaled_exponential"])
def test_few_samples_far_from_the_origin(kernel: str) -> None:
    X = far_groups(np.random.default_rng(2))[:300]
    W = similarity_graph(X, kernel, 7, 0.5).toarray()
    assert_graph(W, all_pairs(X, kernel, 7, 0.5)[2])


@pytest.mark.parametrize("n_samples", [200, 1200])
def test_graph_does_not_depend_on_the_precision_of_storage(n_samples: int) -> None:
    X = np.random.default_rng(0).normal(size=(n_samples, 9)).astype(np.float32)
    single = similarity_graph(X, "scaled_gaussian", 6, 0.5).toarray()
    double = similarity_graph(X.astype(np.float64), "scaled_gaussian", 6, 0.5)
    assert_graph(single, double.toarray())


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_samples", [60, 1200])
def test_shape_of_every_graph(kernel: str, n_samples: int) -> None:
    X = np.random.default_rng(1).normal(1.0, 1.0, size=(n_samples, 7))
    W = similarity_graph(X, kernel, 6, 0.5)
    dense = W.toarray()
    np.testing.assert_array_equal(dense, dense.T)
    assert not np.diag(dense).any()
    assert dense.min() >= 0.0
    assert np.all(np.isfinite(dense))
    counts = (dense > 0.0).sum(axis=1)
    assert counts.min() >= 6
    assert counts.sum() <= 2 * 6 * n_samples


@pytest.mark.parametrize("n_samples", [80, 1200])
@pytest.mark.parametrize("factor", [1e-6, 3.0, 1e7])
def test_scale_of_the_data_is_one_factor_for_all_edges(
    n_samples: int, factor: float
) -> None:
    X = np.random.default_rng(5).normal(size=(n_samples, 6))
    W = similarity_graph(X, "scaled_gaussian", 7, 0.4).toarray()
    scaled = similarity_graph(factor * X, "scaled_gaussian", 7, 0.4).toarray()
    assert_graph(scaled * factor**2, W)
    W = similarity_graph(X, "scaled_exponential", 7, 0.4).toarray()
    scaled = similarity_graph(factor * X, "scaled_exponential", 7, 0.4).toarray()
    assert_graph(scaled, W)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_samples=st.integers(4, 40),
    power=st.integers(-20, 20),
    mu=st.floats(0.1, 3.0),
    kernel=st.sampled_from(["scaled_gaussian", "scaled_exponential"]),
)
def test_properties_of_small_graphs(
    seed: int, n_samples: int, power: int, mu: float, kernel: str
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, int(rng.integers(1, 8))))
    k = int(rng.integers(1, n_samples))
    W = similarity_graph(X, kernel, k, mu).toarray()
    np.testing.assert_array_equal(W, W.T)
    assert not np.diag(W).any()
    assert W.min() >= 0.0
    # A power of two rescales without rounding.
    unit = 4.0**power if kernel == "scaled_gaussian" else 1.0
    scaled = similarity_graph(2.0**power * X, kernel, k, mu).toarray()
    np.testing.assert_allclose(scaled * unit, W, rtol=1e-9)
    order = rng.permutation(n_samples)
    permuted = similarity_graph(X[order], kernel, k, mu).toarray()
    np.testing.assert_allclose(permuted, W[np.ix_(order, order)], rtol=1e-7)


def test_all_neighbors_may_be_kept() -> None:
    X = np.random.default_rng(0).normal(size=(6, 3))
    W = similarity_graph(X, "scaled_gaussian", 5, 0.5).toarray()
    np.testing.assert_array_equal(W > 0.0, ~np.eye(6, dtype=bool))


def test_known_distances_give_the_same_graph() -> None:
    X = np.random.default_rng(0).normal(size=(50, 3))
    D = squared_distances(X)
    np.fill_diagonal(D, np.nan)  # not read
    for kernel in ("scaled_gaussian", "scaled_exponential"):
        known = graph_from_distances(D, kernel, 4, 0.5).toarray()
        assert_graph(known, similarity_graph(X, kernel, 4, 0.5).toarray(), 1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_input_is_left_alone(kernel: str) -> None:
    X = np.random.default_rng(0).normal(size=(50, 3))
    D = squared_distances(X / np.linalg.norm(X, axis=1, keepdims=True))
    X_before, D_before = X.copy(), D.copy()
    graph_from_distances(D, kernel, 4, 0.5)
    similarity_graph(X, kernel, 4, 0.5)
    np.testing.assert_array_equal(D, D_before)
    np.testing.assert_array_equal(X, X_before)


def test_a_third_of_all_rows_identical_in_a_small_graph() -> None:
    rng = np.random.default_rng(6)
    X = rng.normal(size=(120, 5))
    X[:40] = X[0]
    W = similarity_graph(X, "scaled_gaussian", 6, 0.5).toarray()
    assert_graph(W, all_pairs(X, "scaled_gaussian", 6, 0.5)[2])


def near_simplex(rng: np.random.Generator) -> np.ndarray:
    """Every sample is as far from every other, but for the last digits of float32."""
    return np.eye(1100) + 1e-6 * rng.normal(size=(1100, 1100))


def tight_core(rng: np.random.Generator) -> np.ndarray:
    """A group ten thousand times tighter than the rest, without any copies."""
    X = rng.normal(size=(1200, 8))
    X[:300] *= 1e-4
    return X


@pytest.mark.parametrize("shape", [near_simplex, tight_core], ids=ids)
@pytest.mark.parametrize("kernel", ["scaled_gaussian", "scaled_exponential"])
def test_search_where_single_precision_is_blind(shape, kernel: str) -> None:
    X = shape(np.random.default_rng(0))
    W = similarity_graph(X, kernel, 6, 0.5).toarray()
    assert_graph(W, all_pairs(X, kernel, 6, 0.5)[2])


def test_few_samples_with_a_tight_core() -> None:
    X = tight_core(np.random.default_rng(0))[200:900]
    W = similarity_graph(X, "scaled_gaussian", 6, 0.5).toarray()
    assert_graph(W, all_pairs(X, "scaled_gaussian", 6, 0.5)[2])


def test_binary_data_of_very_many_features() -> None:
    """Few distinct values round alike, so that errors of a long sum have one sign."""
    rng = np.random.default_rng(0)
    X = (rng.random((1010, 20_000)) < 0.5).astype(np.float32)
    W = similarity_graph(X, "scaled_exponential", 5, 0.5).toarray()
    counts = X.sum(axis=1, dtype=np.float64)
    D = counts[:, None] + counts - 2.0 * (X @ X.T)  # whole numbers, exact
    np.fill_diagonal(D, np.inf)
    kept = np.zeros(D.shape, dtype=bool)
    first = np.argsort(D, axis=1, kind="stable")[:, :5]
    np.put_along_axis(kept, first, True, axis=1)
    np.testing.assert_array_equal(W > 0.0, kept | kept.T)


@pytest.mark.parametrize("kernel", ["scaled_gaussian", "scaled_exponential"])
def test_search_keeps_the_first_of_equals(kernel: str) -> None:
    """Whole numbers have exact distances, so that ties are ties."""
    X = np.random.default_rng(3).integers(0, 3, size=(1100, 5)).astype(float)
    X = X[np.sort(np.unique(X, axis=0, return_index=True)[1])]
    # Far copies of the pattern bring the samples above those looked at all together.
    X = np.concatenate([X + 64.0 * shift for shift in range(6)])
    assert len(X) > 1000
    W = similarity_graph(X, kernel, 6, 0.5).toarray()
    assert_graph(W, all_pairs(X, kernel, 6, 0.5)[2], rtol=1e-9)


def test_rows_searched_among_all_pairs_find_their_nearest() -> None:
    X = np.random.default_rng(4).normal(size=(300, 3))
    nearest = np.argsort(cdist(X, X), axis=1)[:, 1:5]
    for searched in ([0], [0, 150], [7, 299]):
        limit = np.full(len(X), -1.0)
        limit[searched] = np.inf
        rows, columns, _ = _search_within(
            BlockedDistances(X), limit, -limit, 4, _nearness
        )
        for row in searched:
            assert set(columns[rows == row]) == set(nearest[row])


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_samples", [300, 1100])
def test_of_many_copies_the_first_are_kept(n_samples: int, kernel: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_samples, 6))
    copies = np.sort(rng.choice(n_samples, 60, replace=False))
    X[copies] = rng.normal(size=6)
    k = 6
    kept = similarity_graph(X, kernel, k, 0.5).toarray()[np.ix_(copies, copies)] > 0.0
    place = np.arange(60)
    first = np.minimum(place[:, None], place) < k
    np.fill_diagonal(first, False)
    np.testing.assert_array_equal(kept, first)


def test_values_that_are_not_finite_are_refused() -> None:
    X = np.random.default_rng(0).normal(size=(1100, 4))
    X[3, 2] = np.inf
    with pytest.raises(ValueError, match="not finite"), np.errstate(invalid="ignore"):
        similarity_graph(X, "scaled_gaussian", 5, 0.5)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_samples", [300, 1100])
def test_the_order_of_features_decides_no_tie(kernel: str, n_samples: int) -> None:
    """Distances of few values tie, and their sums round in the order of features."""
    rng = np.random.default_rng(2)
    X = rng.integers(0, 2, (n_samples, 41)).astype(float)
    expected = similarity_graph(X, kernel, 6, 0.5)
    for _ in range(3):
        found = similarity_graph(X[:, rng.permutation(41)], kernel, 6, 0.5)
        np.testing.assert_array_equal(found.indices, expected.indices)
        np.testing.assert_allclose(found.data, expected.data, rtol=1e-8)
