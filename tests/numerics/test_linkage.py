"""Average linkage on a square and on a triangle of pairs."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from mdec.consensus.dendrogram import tie_shift
from mdec.numerics import loops


def drawn_factor(n_rows: int, n_members: int, seed: int) -> sparse.csr_array:
    """Return a row of ones for each sample, of few clusters, so that many pairs tie."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(4, size=(n_rows, n_members))
    columns = (labels + 4 * np.arange(n_members)).ravel()
    indptr = n_members * np.arange(n_rows + 1)
    values = np.sqrt(rng.choice([0.25, 0.5, 1.0], size=4 * n_members))[columns]
    shape = (n_rows, 4 * n_members)
    return sparse.csr_array((values, columns.astype(np.int32), indptr), shape=shape)


def merged(
    factor: sparse.csr_array, sizes: NDArray[np.int64], *, square: bool
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    arrays = factor.indptr.astype(np.int64), factor.indices.astype(np.int32)
    shift = tie_shift(float(factor.power(2).sum(axis=1).max()), np.float64)
    if square:
        return loops.linkage_of_products(
            *arrays, factor.data, factor.shape[1], sizes, shift
        )
    triangle = np.empty(loops.triangle_entries(factor.shape[0]))
    loops.triangle_of_products(*arrays, factor.data, factor.shape[1], triangle)
    return loops.average_linkage(triangle, sizes, shift)


@pytest.mark.parametrize("n_rows", [2, 3, 9, 16, 17, 70, 131])
@pytest.mark.parametrize("n_members", [3, 8])
def test_square_and_triangle_merge_the_same(n_rows: int, n_members: int) -> None:
    factor = drawn_factor(n_rows, n_members, seed=n_rows)
    sizes = np.random.default_rng(0).integers(1, 5, size=n_rows)
    pairs, heights = merged(factor, sizes, square=True)
    others, their_heights = merged(factor, sizes, square=False)
    np.testing.assert_array_equal(pairs, others)
    np.testing.assert_array_equal(heights, their_heights)


@pytest.mark.parametrize("square", [True, False])
def test_heights_are_those_of_scipy(square: bool) -> None:
    rng = np.random.default_rng(5)
    factor = sparse.csr_array(rng.random((60, 12)))
    _, heights = merged(factor, np.ones(60, dtype=np.int64), square=square)
    far = 20.0 - factor.toarray() @ factor.toarray().T
    np.fill_diagonal(far, 0.0)
    expected = linkage(squareform(far, checks=False), "average")[:, 2]
    np.testing.assert_allclose(np.sort(20.0 - heights), expected)
