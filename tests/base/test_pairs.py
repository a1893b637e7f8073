"""Matrices that are given: what is read as what, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

from mdec.base.graphs import similarity_graph
from mdec.base.kernels import SIMILARITY
from mdec.base.pairs import Pairs, compare_new_pairs


def distances(n_samples: int = 12, seed: int = 0) -> np.ndarray:
    X = np.random.default_rng(seed).normal(size=(n_samples, 4))
    return squareform(pdist(X))


def changed(D: np.ndarray, *entries: tuple[int, int, float]) -> np.ndarray:
    D = D.copy()
    for i, j, value in entries:
        D[i, j] = value
    return D


@pytest.mark.parametrize("kernel", SIMILARITY)
def test_euclidean_distances_give_the_graph_of_their_rows(kernel: str) -> None:
    X = np.random.default_rng(0).normal(size=(30, 4))
    D = squareform(pdist(X))
    found = Pairs.of(D, "metric").graph(kernel, 5, 0.4).toarray()
    expected = similarity_graph(X, kernel, 5, 0.4).toarray()
    np.testing.assert_allclose(found, expected, rtol=1e-7)


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e-9, 1e9, 1e150, 1e300])
@pytest.mark.parametrize("kernel", SIMILARITY)
def test_the_scale_changes_one_factor(kernel: str, scale: float) -> None:
    D = distances()
    plain = Pairs.of(D, "metric").graph(kernel, 4, 0.4).toarray()
    found = Pairs.of(scale * D, "metric").graph(kernel, 4, 0.4).toarray()
    np.testing.assert_array_equal(found > 0.0, plain > 0.0)
    ratio = found[plain > 0.0] / plain[plain > 0.0]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-6)


def test_similarities_are_kept_as_they_are() -> None:
    rng = np.random.default_rng(0)
    S = np.corrcoef(rng.normal(size=(20, 6)))
    found = Pairs.of(3.0 * S, "metric").graph("scaled_gaussian", 4, 0.5).toarray()
    expected = np.zeros_like(S)
    for i, row in enumerate(S - 2.0 * np.eye(20)):
        nearest = np.argsort(-row, kind="stable")[:4]
        expected[i, nearest] = np.maximum(S[i, nearest], 0.0)
    np.testing.assert_allclose(found, np.maximum(expected, expected.T), atol=1e-12)
    tiny = Pairs.of(np.where(np.eye(20) > 0, 1.0, 1e-30 * np.abs(S)), "metric")
    assert (tiny.graph("scaled_gaussian", 4, 0.5).data > 0.0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_is_forgiven(dtype: type) -> None:
    D = distances().astype(dtype)
    slack = float(np.sqrt(np.finfo(dtype).eps) * D.max())
    noisy = changed(D, (2, 5, D[2, 5] + slack / 3), (4, 4, slack / 3))
    noisy = changed(noisy, (1, 7, -slack / 3), (7, 1, 0.0))
    given = Pairs.of(noisy, "metric")
    assert not given.similar
    np.testing.assert_array_equal(given.values, given.values.T)
    np.testing.assert_array_equal(given.values.diagonal(), 0.0)
    assert given.values[1, 7] == 0.0
    S = np.exp(-D)
    assert Pairs.of(changed(S, (3, 3, S[3, 3] + slack / 9)), "metric").similar


REFUSED: dict[str, tuple[Any, str]] = {
    "asymmetric": (
        changed(distances(), (2, 5, 9.0)),
        "must be symmetric; samples 2 and 5 have 9, samples 5 and 2 ",
    ),
    "negative": (
        changed(distances(), (3, 8, -1.0), (8, 3, -1.0)),
        "never negative; samples 3 and 8 have -1",
    ),
    "nan": (changed(distances(), (6, 1, np.nan)), "samples 6 and 1 have nan"),
    "inf": (changed(distances(), (6, 1, np.inf)), "samples 6 and 1 have inf"),
    "one diagonal": (
        changed(distances(), (4, 4, 1.0)),
        r"diagonal must be zero.*samples 4 and 4 have 1, samples 0 and 0 0",
    ),
    "other diagonal": (
        changed(np.exp(-distances()), (4, 4, 0.5)),
        r"diagonal must be zero.*samples 0 and 0 have 1, samples 4 and 4 0.5",
    ),
    "negative diagonal": (-np.eye(4) - 1.0, "diagonal must be zero"),
    "more similar than itself": (
        changed(np.eye(6), (1, 4, 2.0), (4, 1, 2.0)),
        r"no similarity exceeds.*samples 1 and 4 have 2, the diagonal 1",
    ),
    "not square": (np.ones((4, 3)), r"square matrix.*not one of shape \(4, 3\)"),
    "flat": (np.ones(4), "square matrix"),
    "bare rows": (np.arange(9.0).reshape(3, 3) + 1.0, "diagonal must be zero"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_the_first_offending_pair_is_named(case: str) -> None:
    matrix, message = REFUSED[case]
    with pytest.raises(ValueError, match=message) as caught:
        Pairs.of(matrix, "metric='precomputed'")
    assert str(caught.value).startswith("metric='precomputed'")


def test_a_late_pair_is_found_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mdec.base.pairs._ENTRIES", 30)
    with pytest.raises(ValueError, match="samples 9 and 11 have 5"):
        Pairs.of(changed(distances(), (9, 11, 5.0), (10, 11, 5.0)), "metric")


@pytest.mark.parametrize("found", [[["a", "b"], ["b", "a"]], [[None, 1], [1, None]]])
def test_what_is_no_number_is_a_type_error(found: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"metric.*(numbers|samples)"):
        Pairs.of(found, "metric")


def test_new_rows_share_the_scale() -> None:
    D = distances()
    for scale in (1e-200, 1.0, 1e200):
        old, new, similar = compare_new_pairs(scale * D, scale * D[:3])
        assert not similar
        np.testing.assert_allclose(new / old.max(), D[:3] ** 2 / (D**2).max())
    with pytest.raises(ValueError, match="new row 1 to training row 2 is -3"):
        compare_new_pairs(D, changed(D[:3], (1, 2, -3.0)))
    S = 5.0 * np.exp(-D)
    old, new, similar = compare_new_pairs(S, S[:3])
    assert similar
    np.testing.assert_allclose(new, -S[:3] / 5.0)
