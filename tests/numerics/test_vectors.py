"""Blocks of vectors against NumPy, also where vectors depend on each other."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from mdec.numerics import eigen
from mdec.numerics.loops import vectors as loops
from mdec.numerics.loops.lanes import column_groups, pad_columns


def padded_block(n: int, width: int, seed: int = 0) -> np.ndarray:
    block = np.random.default_rng(seed).normal(size=(n, width)).astype(np.float32)
    return pad_columns(block)


@pytest.mark.parametrize("width", [1, 15, 16, 17, 40])
def test_columns_are_padded_by_zeros(width: int) -> None:
    block = padded_block(5, width)
    assert block.shape[1] % 8 == 0
    assert width <= block.shape[1] < max(width + 16, 33)
    assert not block[:, width:].any()


def test_groups_of_columns_follow_one_another() -> None:
    for n_lanes in range(1, 14):
        groups = list(column_groups(16 * n_lanes))
        lanes = [len(group) for _, group in groups]
        assert sum(lanes) == n_lanes
        assert max(lanes) <= 4
        assert max(lanes) - min(lanes) <= 1
        assert [start for start, _ in groups] == [
            16 * sum(lanes[:place]) for place in range(len(lanes))
        ]


@pytest.mark.parametrize("n", [40, 41, 42, 43])
def test_products_above_the_diagonal(n: int) -> None:
    left, right = padded_block(n, 19, 1), padded_block(n, 19, 2)
    expected = left.T.astype(float) @ right.astype(float)
    found = loops.inner_products(left, right)
    np.testing.assert_allclose(np.triu(found), np.triu(expected), atol=1e-12)


def test_products_with_a_small_matrix() -> None:
    block, matrix = padded_block(30, 19), np.random.default_rng(3).normal(size=(19, 19))
    found = loops.multiply(block, matrix)
    np.testing.assert_allclose(found[:, :19], block[:, :19] @ matrix, atol=1e-5)
    assert not found[:, 19:].any()


@pytest.mark.parametrize("spread", [1.0, 1e-3, 1e-6])
def test_a_basis_is_orthonormal_and_spans_the_same(spread: float) -> None:
    rng = np.random.default_rng(5)
    wide = rng.normal(size=(200, 21)) * np.geomspace(1.0, spread, 21)
    block = pad_columns((wide @ rng.normal(size=(21, 21))).astype(np.float32))
    before = block[:, :21].astype(float)
    loops.orthonormalize(block, 21)
    basis = block[:, :21].astype(float)
    np.testing.assert_allclose(basis.T @ basis, np.eye(21), atol=2e-6)
    left = before - basis @ (basis.T @ before)
    assert np.linalg.norm(left) < 1e-5 * np.linalg.norm(before)


def test_vectors_that_are_copies_of_others_still_give_a_basis() -> None:
    block = padded_block(100, 12)
    block[:, 7] = block[:, 2] + np.float32(1e-6) * block[:, 3]
    block[:, 5] = 0.0
    loops.orthonormalize(block, 12)
    assert np.isfinite(block).all()
    used = block[:, [c for c in range(12) if c not in (5, 7)]].astype(float)
    np.testing.assert_allclose(used.T @ used, np.eye(10), atol=1e-5)


def test_known_vectors_are_left_out() -> None:
    block, known = padded_block(60, 9), np.zeros((60, 3), dtype=np.float32)
    roots = np.random.default_rng(0).random(60) + 0.5
    component = np.arange(60) % 3
    for c in range(3):
        inside = component == c
        known[inside, c] = roots[inside] / np.linalg.norm(roots[inside])
    expected = block - known @ (known.T @ block)
    loops.leave_out(block, known)
    np.testing.assert_allclose(block, expected, atol=1e-6)


def symmetric(case: str) -> np.ndarray:
    rng = np.random.default_rng(1)
    if case == "zeros":
        return np.zeros((7, 7))
    if case == "diagonal":
        return np.diag(rng.normal(size=9))
    if case == "equal values":
        basis = np.linalg.qr(rng.normal(size=(12, 12))).Q
        return basis @ np.diag([1.0] * 5 + [0.5] * 4 + [-1.0] * 3) @ basis.T
    if case == "mostly zero values":
        groups = rng.integers(0, 6, 150)
        return np.round((groups[:, None] == groups) / np.bincount(groups)[groups], 9)
    n = int(case)
    matrix = rng.normal(size=(n, n))
    return matrix + matrix.T


SMALL = ["1", "2", "3", "30", "90"]


@pytest.mark.parametrize(
    "case", [*SMALL, "zeros", "diagonal", "equal values", "mostly zero values"]
)
def test_eigenvectors_of_small_matrices(case: str) -> None:
    matrix = symmetric(case)
    # Only what is on and above the diagonal is read.
    values, vectors = loops.symmetric_eigenvectors(np.triu(matrix) + 0.0)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix)[::-1], atol=1e-12)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(len(matrix)), atol=1e-12)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-12)


def test_what_cannot_converge_is_an_error() -> None:
    with pytest.raises(np.linalg.LinAlgError, match="converge"):
        loops.symmetric_eigenvectors(np.full((4, 4), np.nan))


def test_norms_of_what_is_left() -> None:
    block, image = padded_block(33, 5, 1), padded_block(33, 5, 2)
    values = np.linspace(1.0, 0.2, 5)
    expected = np.linalg.norm(image[:, :5] - values * block[:, :5], axis=0)
    found = loops.residual_norms(block, image, values)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("shuffled", [False, True])
def test_products_have_the_same_digits_in_every_order_of_rows(
    shuffled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(5)
    near = [rng.random(300 - k) for k in (1, 2, 7)]
    chain = sparse.diags_array(near, offsets=[1, 2, 7], shape=(300, 300))
    W = sparse.csr_array(chain + chain.T) / 6.0
    if shuffled:
        order = rng.permutation(300)
        W = W[order][:, order]
        W.sort_indices()
    block = rng.normal(size=(300, 16)).astype(np.float32)
    expected = eigen.SparseOperator(W).chebyshev(block, 5, 1.3, 0.1)
    monkeypatch.setattr(eigen, "CACHED_ORDER", 100)
    operator = eigen.SparseOperator(W)
    assert (operator.order is not None) == shuffled
    np.testing.assert_array_equal(operator.chebyshev(block, 5, 1.3, 0.1), expected)


def test_matrices_of_unequal_widths_are_solved_as_each_alone():
    rng, widths = np.random.default_rng(0), np.array([30, 7, 1, 22])
    padded = np.zeros((4, 32, 32))
    for matrix, width in zip(padded, widths, strict=True):
        rows = rng.normal(size=(50, width))
        matrix[:width, :width] = rows.T @ rows

    def in_halves(work, widths):
        return [work(slice(0, 2)), work(slice(2, len(widths)))]

    vectors = np.empty(padded.shape, dtype=np.float32)
    values = loops.eigenvectors_of_each(padded, widths, vectors, in_halves)
    for m, width in enumerate(widths):
        alone = loops.symmetric_eigenvectors(padded[m, :width, :width])
        np.testing.assert_array_equal(values[m, :width], alone[0])
        expected = alone[1].astype(np.float32)
        np.testing.assert_array_equal(vectors[m, :width, :width], expected)
        assert not vectors[m, width:].any()
