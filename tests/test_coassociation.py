"""The weighted co-association: the worked example, double loops, invariances."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mdec import Ensemble
from mdec._support import memory
from mdec.coassociation import coassociation_factor, locally_weighted_coassociation
from mdec.confidence import sum_profiles
from mdec.weights import ensemble_driven_cluster_index

EXAMPLE = np.array(
    [
        [0, 0, 0, 0, 1, 1, 1, 1],
        [0, 0, 0, 1, 1, 1, 2, 2],
        [0, 0, 1, 1, 1, 2, 2, 2],
    ]
).T

label_tables = st.tuples(st.integers(2, 20), st.integers(1, 6)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(0, 4))
)


def naive_coassociation(labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return A by a loop over pairs and members, before the diagonal is set."""
    n, M = labels.shape
    names = [sorted(set(column.tolist())) for column in labels.T]
    offsets = np.cumsum([0] + [len(group) for group in names])
    A = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            for m in range(M):
                if labels[i, m] == labels[j, m]:
                    c = offsets[m] + names[m].index(labels[i, m])
                    A[i, j] += weights[c] / M
    return A


def test_worked_example() -> None:
    ensemble = Ensemble.from_labels(EXAMPLE)
    A = locally_weighted_coassociation(ensemble)
    for i, j, value in [
        (0, 1, 0.761022),
        (0, 2, 0.427689),
        (0, 3, 0.182251),
        (2, 3, 0.362970),
        (2, 4, 0.180719),
        (3, 4, 0.361439),
        (0, 4, 0.0),
    ]:
        assert A[i, j] == pytest.approx(value, abs=5e-7)
    np.testing.assert_array_equal(np.diag(A), 1.0)


def test_diagonal_of_the_worked_example_before_it_is_set() -> None:
    ensemble = Ensemble.from_labels(EXAMPLE)
    factor = coassociation_factor(ensemble, ensemble_driven_cluster_index(ensemble))
    half = [0.761022, 0.761022, 0.608408, 0.543690]
    np.testing.assert_allclose(
        (factor @ factor.T).toarray().diagonal(), half + half[::-1], atol=5e-7
    )


def test_laplacian_of_the_worked_example() -> None:
    A = locally_weighted_coassociation(Ensemble.from_labels(EXAMPLE))
    scale = 1.0 / np.sqrt(A.sum(axis=1))
    values = np.linalg.eigvalsh(np.eye(8) - scale[:, None] * A * scale)
    expected = [0.0, 0.089788, 0.448862, 0.714850]
    np.testing.assert_allclose(values[:4], expected, atol=5e-7)


@settings(deadline=None)
@given(label_tables, st.integers(0, 1000))
def test_double_loop(labels: np.ndarray, seed: int) -> None:
    ensemble = Ensemble.from_labels(labels)
    weights = np.random.default_rng(seed).random(ensemble.n_base_clusters)
    expected = naive_coassociation(labels, weights)
    factor = coassociation_factor(ensemble, weights)
    np.testing.assert_allclose((factor @ factor.T).toarray(), expected, atol=1e-12)
    np.fill_diagonal(expected, 1.0)
    A = locally_weighted_coassociation(ensemble, weights)
    np.testing.assert_allclose(A, expected, atol=1e-12)


@settings(deadline=None)
@given(label_tables, st.integers(0, 1000))
def test_invariances(labels: np.ndarray, seed: int) -> None:
    rng = np.random.default_rng(seed)
    A = locally_weighted_coassociation(Ensemble.from_labels(labels))
    order = rng.permutation(len(labels))
    permuted = locally_weighted_coassociation(Ensemble.from_labels(labels[order]))
    np.testing.assert_allclose(permuted, A[np.ix_(order, order)], atol=1e-12)
    names = np.array([rng.permutation(5) for _ in range(labels.shape[1])])
    renamed = names[np.arange(labels.shape[1]), labels]
    changed = locally_weighted_coassociation(Ensemble.from_labels(renamed))
    np.testing.assert_allclose(changed, A, atol=1e-12)
    members = rng.permutation(labels.shape[1])
    shuffled = locally_weighted_coassociation(Ensemble.from_labels(labels[:, members]))
    np.testing.assert_allclose(shuffled, A, atol=1e-12)


@settings(deadline=None)
@given(
    st.tuples(st.integers(2, 20), st.integers(1, 6)).flatmap(
        lambda shape: arrays(np.int64, shape, elements=st.integers(-1, 3))
    )
)
def test_range_and_symmetry(labels: np.ndarray) -> None:
    labels[0] = 0
    A = locally_weighted_coassociation(Ensemble.from_labels(labels))
    np.testing.assert_allclose(A, A.T, atol=1e-15)
    assert A.min() >= 0.0
    assert A.max() <= 1.0
    np.testing.assert_array_equal(np.diag(A), 1.0)


def test_missing_labels_share_what_is_there() -> None:
    """A pair is divided by the members that cluster both: here one, two and one."""
    ensemble = Ensemble.from_labels([[0, 0], [0, -1], [1, 0]])
    A = locally_weighted_coassociation(ensemble, np.ones(3))
    assert A[0, 1] == pytest.approx(1.0)
    assert A[0, 2] == pytest.approx(0.5)
    assert A[1, 2] == 0.0


def test_too_large_a_matrix_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 100)
    with pytest.raises(MemoryError, match=r"GB.*consensus functions work without it"):
        locally_weighted_coassociation(Ensemble.from_labels(EXAMPLE))


def test_degrees_are_the_sums_of_the_rows() -> None:
    rng = np.random.default_rng(0)
    ensemble = Ensemble.from_labels(rng.integers(0, 4, size=(20, 6)))
    weights = rng.uniform(0.1, 1.0, ensemble.n_base_clusters)
    factor = coassociation_factor(ensemble, weights)
    A = (factor @ factor.T).toarray()
    degrees, clusters = A.sum(axis=1), np.arange(20) % 3
    profiles = sum_profiles(ensemble, ensemble.split(clusters), weights, 3)
    found = profiles.means(by_degree=True) @ factor.T
    scaled = A / np.sqrt(degrees[:, None])
    expected = [scaled[clusters == k].mean(axis=0) for k in range(3)]
    np.testing.assert_allclose(found, expected, atol=1e-12)
