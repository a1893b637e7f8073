"""Consensus matrices: clustered where they are meant, refused where labels are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from sklearn.metrics import adjusted_rand_score

from mdec import Ensemble
from mdec.coassociation import locally_weighted_coassociation
from mdec.consensus import from_matrix, hierarchical
from mdec.consensus.matrix import METHODS, matrix_associations

pandas = pytest.importorskip("pandas")


def planted(n: int = 40, seed: int = 0) -> tuple[np.ndarray, Ensemble]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    noisy = rng.random((n, 25)) < 0.25
    labels = np.where(noisy, rng.integers(0, 3, (n, 25)), y[:, None])
    return y, Ensemble.from_labels(labels)


@pytest.mark.parametrize("consensus", METHODS)
def test_a_matrix_is_clustered(consensus: str) -> None:
    y, ensemble = planted()
    A = locally_weighted_coassociation(ensemble)
    found = from_matrix(A, 3, consensus=consensus, random_state=0)
    assert adjusted_rand_score(y, found) == 1.0
    assert found[0] == 0


def test_linkage_is_exact() -> None:
    _, ensemble = planted(60, 1)
    weights = np.random.default_rng(0).uniform(0.3, 1.0, ensemble.n_base_clusters)
    A = locally_weighted_coassociation(ensemble, weights)
    tree = linkage(squareform(1.0 - A, checks=False), "average")
    for k in (1, 2, 5, 11, 60):
        found = from_matrix(A, k)
        assert found.max() + 1 == k
        if k < 60:  # where older versions of SciPy leave two samples together
            assert adjusted_rand_score(found, fcluster(tree, k, "maxclust")) == 1.0
        np.testing.assert_array_equal(found, hierarchical(ensemble, k, weights))


def test_associations_are_means_of_the_matrix() -> None:
    _, ensemble = planted(20)
    A = locally_weighted_coassociation(ensemble)
    labels = from_matrix(A, 4)
    found = matrix_associations(A, labels)
    for i in range(20):
        for k in range(4):
            others = [j for j in np.flatnonzero(labels == k) if j != i]
            expected = A[i, others].mean() if others else 1.0
            assert found[i, k] == pytest.approx(expected)


GOOD = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 1.0]])


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (GOOD[:2], r"shape \(2, 3\)"),
        (
            GOOD + 0.1 * np.eye(3, k=1) * np.eye(3)[:, :1],
            "samples 0 and 1 have 0.6 and 0.5",
        ),
        (3 * GOOD, "0 to 3; divide counts"),
        (1.0 - GOOD, "ones on its diagonal"),
        (GOOD - 0.1 * np.diag([0, 0, 1]), "ones on its diagonal"),
        (GOOD - 0.1 * (GOOD == 0.0), "0 to 1, got -0.1 to 1"),
        (np.where(GOOD == 0.2, np.nan, GOOD), "no number for samples 1 and 2"),
        ([[1.0]], "at least two rows"),
    ],
)
def test_what_is_no_matrix_is_said(matrix, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        from_matrix(matrix, 2)


def test_numbers_and_methods_are_checked() -> None:
    for k in (0, 4, 2.5):
        with pytest.raises(ValueError, match=f"n_clusters={k}"):
            from_matrix(GOOD, k)
    with pytest.raises(ValueError, match="'bipartite' is not one of"):
        from_matrix(GOOD, 2, consensus="bipartite")


RANDOM = np.random.default_rng(0).random((5, 5))


@pytest.mark.parametrize(
    "labels",
    [
        RANDOM,
        RANDOM.astype(np.float32),
        RANDOM.tolist(),
        RANDOM.astype(object),
        RANDOM.astype(str),
        RANDOM.astype(str).astype(object),
        pandas.DataFrame(RANDOM),
        pandas.DataFrame(RANDOM).astype("Float64"),
        pandas.DataFrame({"a": [0, 1, 1], "b": ["0.5", "1", "2"]}),
        [[0, 0.5], [1, 1.0], [1, 2.0]],
        np.array([["0.5"], ["1.0"], [""]]),
    ],
)
def test_measurements_are_no_labels(labels) -> None:
    with pytest.raises(ValueError, match=r"base clustering \d holds .* mdec.MDEC"):
        Ensemble.from_labels(labels)


@pytest.mark.parametrize(
    "labels",
    [
        GOOD,
        GOOD.astype(np.float32).tolist(),
        pandas.DataFrame(GOOD),
        (GOOD > 0.3).astype(int),
        (GOOD > 0.3).astype(int).astype(str),
    ],
)
def test_a_matrix_is_no_table_of_labels(labels) -> None:
    with pytest.raises(ValueError, match=r"consensus matrix of 3 .*from_matrix"):
        Ensemble.from_labels(labels)


@pytest.mark.parametrize(
    "labels",
    [
        np.ones((4, 4)),
        [[1, 0], [0, 1]],
        [["1.5a"], ["b"], ["c"]],
        [["0.5", "x"], ["word", "y"]],
        np.array([[0.0, 1.0], [2.0, np.nan], [1.0, -1.0]]),
        [[1, 0, 2], [0, 1, 1], [2, 1, 1]],
        [["1", "2"], ["nan", "-1"], ["1.0", "2"]],
    ],
)
def test_labels_are_labels(labels) -> None:
    assert len(Ensemble.from_labels(labels))
