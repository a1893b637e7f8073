"""Average linkage by chains and by passes over the triangle of all pairs."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.cluster import hierarchy
from scipy.spatial.distance import pdist, squareform

from mdec.consensus.dendrogram import sort_merges, tie_shift
from mdec.numerics.loops import linkage


def merge(
    A: NDArray[np.floating], sizes: NDArray[np.int64], shift: float, *, passes: bool
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    pairs = squareform(A, checks=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linkage, "CHAINED_ROWS", 0 if passes else len(A))
        found = linkage.average_linkage(pairs, sizes, A.dtype.type(shift))
    return sort_merges(*found)


def similarities_with_ties(n_rows: int, n_members: int) -> sparse.csr_array:
    """Return a factor with few weights and few clusters, so that many pairs tie."""
    rng = np.random.default_rng(n_rows)
    labels = rng.integers(4, size=(n_rows, n_members))
    columns = (labels + 4 * np.arange(n_members)).ravel()
    indptr = n_members * np.arange(n_rows + 1)
    values = np.sqrt(rng.choice([0.25, 0.5, 1.0], size=4 * n_members))[columns]
    shape = (n_rows, 4 * n_members)
    return sparse.csr_array((values, columns.astype(np.int32), indptr), shape=shape)


@pytest.mark.parametrize("n_rows", [2, 3, 9, 16, 17, 70, 131, 600])
@pytest.mark.parametrize("n_members", [3, 8])
def test_passes_and_chains_merge_the_same_under_ties(
    n_rows: int, n_members: int
) -> None:
    factor = similarities_with_ties(n_rows, n_members)
    sizes = np.random.default_rng(0).integers(1, 5, size=n_rows)
    A = squareform(linkage.products_of_pairs(factor, np.float64), checks=False)
    expected = (factor @ factor.T).toarray()
    largest = float(expected.diagonal().max())
    np.fill_diagonal(expected, 0.0)
    np.testing.assert_allclose(A, expected, rtol=1e-14)
    shift = tie_shift(largest, np.float64)
    pairs, heights = merge(A, sizes, shift, passes=False)
    found = merge(A, sizes, shift, passes=True)
    np.testing.assert_array_equal(found[0], pairs)
    np.testing.assert_allclose(found[1], heights, rtol=1e-13)


@pytest.mark.parametrize("n_rows", [2, 3, 9, 64, 301])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_heights_are_those_of_scipy(n_rows: int, dtype: type) -> None:
    rng = np.random.default_rng(n_rows)
    A = np.exp(-squareform(pdist(rng.normal(size=(n_rows, 3))))).astype(dtype)
    sizes = rng.integers(1, 5, size=n_rows)
    pairs, heights = merge(A, sizes, 0.0, passes=True)
    expected, expected_heights = merge(A, sizes, 0.0, passes=False)
    np.testing.assert_array_equal(pairs, expected)
    np.testing.assert_allclose(heights, expected_heights, rtol=1e-5)
    copies = np.repeat(np.arange(n_rows), sizes)
    distances = 1.0 - A[np.ix_(copies, copies)].astype(np.float64)
    distances[copies[:, None] == copies] = 0.0
    tree = hierarchy.average(squareform(distances, checks=False))
    np.testing.assert_allclose(
        heights,
        1.0 - tree[tree[:, 2] > 0.0, 2],
        atol=1e-6 if dtype is np.float32 else 1e-14,
    )


def test_where_few_are_mutual_chains_go_on() -> None:
    # Every row is most similar to the first one, so one pair at a time may merge.
    n_rows = 90
    ranks = np.arange(n_rows, dtype=np.float64)
    A = 1.0 - np.maximum.outer(ranks, ranks) / n_rows
    pairs, _ = merge(A, np.ones(n_rows, dtype=np.int64), 0.0, passes=True)
    np.testing.assert_array_equal(pairs[:, 0], 0)
    np.testing.assert_array_equal(pairs[:, 1], np.arange(1, n_rows))


def test_of_equals_the_lowest_mutual_neighbours_merge() -> None:
    # Halves and quarters are exact, so nothing but the order of the rows decides.
    rng = np.random.default_rng(0)
    A = rng.integers(1, 4, size=(40, 40)).astype(np.float32) / 4.0
    A = np.maximum(A, A.T)
    ones = np.ones(40, dtype=np.int64)
    pairs, heights = merge(A, ones, 0.0, passes=True)
    expected, expected_heights = merge(A, ones, 0.0, passes=False)
    at_once = heights == A.max()
    np.testing.assert_array_equal(pairs[at_once], expected[at_once])
    np.testing.assert_allclose(heights, expected_heights, rtol=1e-5)


def test_what_members_leave_out_divides_the_products() -> None:
    factor = similarities_with_ties(30, 8)
    present = np.random.default_rng(1).integers(2, size=(30, 8)).astype(np.float64)
    found = linkage.products_of_pairs(factor, np.float64, present)
    products, both = (factor @ factor.T).toarray(), present @ present.T
    expected = np.divide(products, both, out=products, where=both > 0)
    assert (both == 0).any()
    np.testing.assert_allclose(found, expected[np.triu_indices(30, 1)], rtol=1e-14)


def test_a_chain_goes_on_where_a_pass_ends() -> None:
    """Regions, their names, weights and similarities are handed over."""
    A = squareform(linkage.products_of_pairs(similarities_with_ties(300, 3), float))
    ranks = np.arange(300, dtype=np.float64)
    # A third of the rows have twins; the others come one after the other.
    A = 10.0 - np.maximum.outer(ranks, ranks) / 300 + 1e-3 * A
    A[0:200:2, 1:200:2] += np.eye(100)
    A[1:200:2, 0:200:2] += np.eye(100)
    sizes = np.random.default_rng(1).integers(1, 5, size=300)
    lengths = []
    with pytest.MonkeyPatch.context() as patch:
        chain = linkage._merge_chain
        patch.setattr(
            linkage,
            "_merge_chain",
            lambda pairs, size, *rest: (
                lengths.append(size.size) or chain(pairs, size, *rest)
            ),
        )
        found = merge(A, sizes, 0.0, passes=True)
        expected = merge(A, sizes, 0.0, passes=False)
    assert 2 < lengths[0] <= 200
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-13)
