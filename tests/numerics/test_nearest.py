"""Nearest rows against all pairs, at every scale and offset."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from mdec.numerics import nearest
from mdec.numerics.nearest import NearestRows, SearchIndex, at_common_scale
from mdec.numerics.sparse_rows import NearestSparseRows


def naive(old: np.ndarray, new: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    apart = ((old[None] - new[:, None]) ** 2).sum(axis=2)
    order = np.argsort(apart, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(apart, order, axis=1)


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e9])
@pytest.mark.parametrize("n_features", [1, 7, 300])
def test_like_all_pairs(offset: float, n_features: int) -> None:
    rng = np.random.default_rng(n_features)
    old = offset + rng.normal(size=(400, n_features))
    new = offset + rng.normal(size=(23, n_features))
    index, squared = NearestRows(old).nearest(new, 9)
    expected, distances = naive(old, new, 9)
    np.testing.assert_array_equal(index, expected)
    np.testing.assert_allclose(squared, distances, rtol=1e-12)


def test_tight_groups_far_apart() -> None:
    rng = np.random.default_rng(0)
    far = np.where(np.arange(300) % 2, 1e8, -1e8)[:, None]
    old = far + rng.normal(size=(300, 5))
    new = old[:40] + rng.normal(size=(40, 5))
    np.testing.assert_array_equal(
        NearestRows(old).nearest(new, 6)[0], naive(old, new, 6)[0]
    )


def test_ties_go_to_the_first_rows() -> None:
    old = np.zeros((100, 3))
    old[60:] = 1.0
    index, squared = NearestRows(old).nearest(np.array([[1.0, 1.0, 1.0]]), 5)
    assert index.tolist() == [[60, 61, 62, 63, 64]]
    assert squared.tolist() == [[0.0] * 5]


def test_blocks_and_company_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    old, new = rng.normal(size=(200, 12)), rng.normal(size=(30, 12))
    whole = NearestRows(old).nearest(new, 4)
    monkeypatch.setattr(nearest, "TILE_ENTRIES", 900)
    for some, all_of_them in zip(NearestRows(old).nearest(new, 4), whole, strict=True):
        np.testing.assert_array_equal(some, all_of_them)


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1e30, 1e200])
def test_a_common_scale(scale: float) -> None:
    rng = np.random.default_rng(1)
    old, new = rng.normal(size=(50, 4)), rng.normal(size=(6, 4))
    expected = naive(old, new, 5)[0]
    search, asked = at_common_scale(scale * old, scale * new)
    np.testing.assert_array_equal(NearestRows(search).nearest(asked, 5)[0], expected)


def test_one_outlier_does_not_blur_the_rest() -> None:
    rng = np.random.default_rng(2)
    old, new = rng.normal(size=(300, 6)), rng.normal(size=(10, 6))
    old[17] = 1e20
    np.testing.assert_array_equal(
        NearestRows(old).nearest(new, 7)[0], naive(old, new, 7)[0]
    )


@pytest.mark.parametrize("n_new", [1, 40])
@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_subspaces_of_rows_that_are_made_ready_once(n_new: int, offset: float) -> None:
    rng = np.random.default_rng(4)
    # Whole numbers over 2**10 stay exact at the offset.
    old = offset + np.round(2**10 * rng.normal(size=(300, 30))) / 2**10
    new = offset + np.round(2**10 * rng.normal(size=(n_new, 30))) / 2**10
    known = SearchIndex(old)
    for n_features in (1, 5, 20):
        features = rng.choice(30, n_features, replace=False)
        search = NearestRows(known, features)
        index, squared = search.nearest(new[:, features], 6)
        expected, distances = naive(old[:, features], new[:, features], 6)
        np.testing.assert_array_equal(index, expected)
        np.testing.assert_allclose(squared, distances, rtol=1e-12)
        np.testing.assert_array_equal(search.rows(index[0]), old[index[0]][:, features])


def test_more_features_than_products_add_up_at_once() -> None:
    rng = np.random.default_rng(6)
    old, new = rng.normal(size=(80, 2500)), rng.normal(size=(9, 2500))
    np.testing.assert_array_equal(
        NearestRows(old).nearest(new, 5)[0], naive(old, new, 5)[0]
    )


@pytest.mark.parametrize("far", [1e15, 1e60, 1e120])
def test_a_new_row_far_beyond_float32(far: float) -> None:
    rng = np.random.default_rng(7)
    old, new = rng.normal(size=(90, 4)), rng.normal(size=(5, 4))
    old[:40] *= 1e12
    new[2] = [far, 0.0, 0.0, 0.0]
    np.testing.assert_array_equal(
        NearestRows(old).nearest(new, 6)[0], naive(old, new, 6)[0]
    )


def test_what_rounding_leaves_in_doubt_is_asked_in_double(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Groups so tight that float32 about their common middle tells nobody apart.
    rng = np.random.default_rng(8)
    groups = 1e6 * rng.normal(size=(2, 6))
    old = groups[np.arange(200) % 2] + rng.normal(size=(200, 6))
    new = groups[np.arange(20) % 2] + rng.normal(size=(20, 6))
    asked = []
    double = NearestRows._round_double

    def counted(self: NearestRows, rows: np.ndarray) -> tuple:
        asked.append(len(rows))
        return double(self, rows)

    monkeypatch.setattr(NearestRows, "_round_double", counted)
    expected = naive(old, new, 7)[0]
    np.testing.assert_array_equal(NearestRows(old).nearest(new, 7)[0], expected)
    assert asked == [20]
    plain = rng.normal(size=(200, 6))
    NearestRows(plain).nearest(plain[:20] + 0.5, 7)
    assert asked == [20]


def test_sparse_rows_too_close_for_float64_are_at_no_distance() -> None:
    values = np.column_stack([np.ones(40), 1e-170 * np.arange(1.0, 41.0)])
    rows = sparse.csr_array(values)
    index, squared = NearestSparseRows(rows).nearest(rows, 3)
    np.testing.assert_array_equal(squared, 0.0)
    np.testing.assert_array_equal(index, np.broadcast_to(np.arange(3), (40, 3)))
