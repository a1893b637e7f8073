"""Entropy and ECI: the worked example, double loops, invariances."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mdec import Ensemble
from mdec.weights import (
    WEIGHTINGS,
    cluster_entropy,
    count_shared_samples,
    ensemble_driven_cluster_index,
    ensemble_entropy,
    uniform_weights,
)

EXAMPLE = np.array(
    [
        [0, 0, 0, 0, 1, 1, 1, 1],
        [0, 0, 0, 1, 1, 1, 2, 2],
        [0, 0, 1, 1, 1, 2, 2, 2],
    ]
).T

label_tables = st.tuples(st.integers(2, 25), st.integers(1, 6)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(0, 4))
)
tables_with_gaps = st.tuples(st.integers(2, 25), st.integers(1, 6)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(-1, 3))
)


def naive_entropy(labels: np.ndarray, judge: int) -> list[float]:
    """Return the entropy of every cluster, member by member, in one judge's eyes."""
    entropies = []
    for column in labels.T:
        for name in sorted(set(column.tolist()) - {-1}):
            inside = [
                labels[i, judge]
                for i in range(len(labels))
                if column[i] == name and labels[i, judge] != -1
            ]
            total = 0.0
            for other in set(inside):
                p = inside.count(other) / len(inside)
                total -= p * math.log2(p)
            entropies.append(total)
    return entropies


def naive_eci(labels: np.ndarray, theta: float) -> np.ndarray:
    """Return the weights; members that cluster no sample of a cluster do not judge."""
    M = labels.shape[1]
    total = np.sum([naive_entropy(labels, m) for m in range(M)], axis=0)
    judges = [
        sum(
            any(column[i] == name and labels[i, m] != -1 for i in range(len(labels)))
            for m in range(M)
        )
        for column in labels.T
        for name in sorted(set(column.tolist()) - {-1})
    ]
    return np.array(
        [math.exp(-h / (theta * n)) for h, n in zip(total, judges, strict=True)]
    )


def test_worked_example() -> None:
    ensemble = Ensemble.from_labels(EXAMPLE)
    np.testing.assert_array_equal(ensemble.cluster_sizes, [4, 4, 3, 3, 2, 2, 3, 3])
    np.testing.assert_allclose(
        ensemble_entropy(ensemble),
        [1.811278, 1.811278, 0.918296, 1.836592, 0, 0, 1.836592, 0.918296],
        atol=5e-7,
    )
    np.testing.assert_allclose(
        ensemble_driven_cluster_index(ensemble),
        [0.546752, 0.546752, 0.736314, 0.542158, 1, 1, 0.542158, 0.736314],
        atol=5e-7,
    )
    np.testing.assert_allclose(
        ensemble_driven_cluster_index(ensemble, theta=0.4),
        [0.221043, 0.221043, 0.465219, 0.216429, 1, 1, 0.216429, 0.465219],
        atol=5e-7,
    )


def test_members_counted_together_are_those_counted_alone() -> None:
    labels = np.random.default_rng(0).integers(0, 4, size=(30, 5))
    ensemble = Ensemble.from_labels(labels)
    together = count_shared_samples(ensemble, 1, 4)
    alone = [count_shared_samples(ensemble, member, member + 1) for member in (1, 2, 3)]
    np.testing.assert_array_equal(together, np.concatenate(alone))
    expected = [
        [
            np.sum((labels[:, a] == i) & (labels[:, b] == j))
            for b in range(5)
            for j in range(4)
        ]
        for a in (1, 2, 3)
        for i in range(4)
    ]
    np.testing.assert_array_equal(together, expected)


def test_first_cluster_of_the_worked_example() -> None:
    """{0, 1, 2, 3} is split 3/1 by the second member and 2/2 by the third."""
    ensemble = Ensemble.from_labels(EXAMPLE)
    assert cluster_entropy(ensemble, 0)[0] == 0.0
    assert cluster_entropy(ensemble, 1)[0] == pytest.approx(0.811278, abs=5e-7)
    assert cluster_entropy(ensemble, 2)[0] == pytest.approx(1.0)


@settings(deadline=None)
@given(label_tables, st.sampled_from([0.4, 1.0, 3.0]))
def test_double_loop(labels: np.ndarray, theta: float) -> None:
    ensemble = Ensemble.from_labels(labels)
    np.testing.assert_allclose(
        ensemble_driven_cluster_index(ensemble, theta),
        naive_eci(labels, theta),
        rtol=1e-12,
    )
    for member in range(labels.shape[1]):
        np.testing.assert_allclose(
            cluster_entropy(ensemble, member),
            naive_entropy(labels, member),
            atol=1e-12,
        )


@settings(deadline=None)
@given(tables_with_gaps)
def test_double_loop_with_missing_labels(labels: np.ndarray) -> None:
    labels[0] = 0  # every member clusters something
    ensemble = Ensemble.from_labels(labels)
    weights = ensemble_driven_cluster_index(ensemble)
    np.testing.assert_allclose(weights, naive_eci(labels, 1.0), rtol=1e-12)
    assert np.all((weights > 0.0) & (weights <= 1.0))


@settings(deadline=None)
@given(label_tables, st.integers(0, 1000))
def test_order_of_samples_does_not_matter(labels: np.ndarray, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(labels))
    np.testing.assert_allclose(
        ensemble_driven_cluster_index(Ensemble.from_labels(labels[order])),
        ensemble_driven_cluster_index(Ensemble.from_labels(labels)),
        rtol=1e-12,
    )


@settings(deadline=None)
@given(label_tables, st.integers(0, 1000))
def test_names_of_clusters_do_not_matter(labels: np.ndarray, seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = np.array([rng.permutation(5) for _ in range(labels.shape[1])])
    renamed = names[np.arange(labels.shape[1]), labels]
    weights = ensemble_driven_cluster_index(Ensemble.from_labels(labels))
    changed = ensemble_driven_cluster_index(Ensemble.from_labels(renamed))
    before = Ensemble.from_labels(labels).indicator().toarray() @ weights
    after = Ensemble.from_labels(renamed).indicator().toarray() @ changed
    np.testing.assert_allclose(after, before, rtol=1e-12)
    np.testing.assert_allclose(np.sort(changed), np.sort(weights), rtol=1e-12)


@settings(deadline=None)
@given(label_tables)
def test_range(labels: np.ndarray) -> None:
    ensemble = Ensemble.from_labels(labels)
    weights = ensemble_driven_cluster_index(ensemble)
    assert weights.shape == (ensemble.n_base_clusters,)
    assert np.all((weights > 0.0) & (weights <= 1.0))


def test_members_that_agree_give_weights_of_one() -> None:
    ensemble = Ensemble.from_labels(np.repeat([[0], [0], [1], [2]], 4, axis=1))
    np.testing.assert_array_equal(ensemble_driven_cluster_index(ensemble), 1.0)


def test_one_member_is_not_contradicted() -> None:
    ensemble = Ensemble.from_labels([[0], [1], [1]])
    np.testing.assert_array_equal(ensemble_driven_cluster_index(ensemble), 1.0)


def test_uniform_weights() -> None:
    ensemble = Ensemble.from_labels(EXAMPLE)
    np.testing.assert_array_equal(uniform_weights(ensemble), np.ones(8))
    assert set(WEIGHTINGS) == {"entropy", "uniform"}
