"""Confidence and consensus against the dense co-association matrix."""

from __future__ import annotations

import numpy as np
import pytest

from mdec import MDEC, Ensemble
from mdec.coassociation import locally_weighted_coassociation
from mdec.confidence import (
    ambiguous_samples,
    cluster_consensus,
    confidence,
    item_consensus,
    second_choice,
)


def naive_item_consensus(matrix, labels, base):
    """Mean of the matrix over each cluster, sample by sample, self left out.

    Pairs count by how often members cluster both.
    """
    n_clusters = labels.max() + 1
    out = np.empty((len(labels), n_clusters))
    for i in range(len(labels)):
        for k in range(n_clusters):
            others = [j for j in range(len(labels)) if labels[j] == k and j != i]
            met = [np.sum((base[i] >= 0) & (base[j] >= 0)) for j in others]
            there = [np.sum(base[j] >= 0) for j in others]
            often = np.array(met) / np.sqrt(np.maximum(there, 1))
            out[i, k] = 1.0
            if others:
                out[i, k] = np.sum(often * matrix[i, others]) / max(often.sum(), 1e-300)
    return out


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("seed", [0, 1])
def test_item_consensus_is_the_mean_of_the_dense_matrix(seed, missing):
    rng = np.random.default_rng(seed)
    base = rng.integers(0, 4, size=(25, 9))
    base[rng.random(base.shape) < missing] = -1
    ensemble = Ensemble.from_labels(base)
    weights = rng.random(ensemble.n_base_clusters)
    labels = np.concatenate([[0, 1, 2, 3], rng.integers(0, 3, size=21)])
    dense = locally_weighted_coassociation(ensemble, weights)
    expected = naive_item_consensus(dense, labels, base)
    association = item_consensus(ensemble, labels, weights)
    np.testing.assert_allclose(association, expected, atol=1e-12)
    if missing:
        return
    pairs = [
        np.mean([dense[i, j] for i in inside for j in inside if i != j])
        for inside in (np.flatnonzero(labels == k) for k in range(3))
    ]
    np.testing.assert_allclose(
        cluster_consensus(association, labels), [*pairs, 1.0], atol=1e-12
    )


def test_confidence_is_own_over_own_and_best_rival():
    association = np.array([[0.6, 0.2, 0.1], [0.1, 0.3, 0.9], [0.0, 0.0, 0.0]])
    labels = np.array([0, 1, 2])
    np.testing.assert_allclose(confidence(association, labels), [0.75, 0.25, 0.5])
    assert second_choice(association, labels).tolist() == [1, 2, 0]


def test_one_cluster_has_no_rival():
    association = np.array([[0.4], [0.2]])
    labels = np.zeros(2, dtype=int)
    assert confidence(association, labels).tolist() == [1.0, 1.0]
    assert second_choice(association, labels).tolist() == [-1, -1]


def test_ambiguous_samples_come_least_certain_first():
    assert ambiguous_samples(np.array([0.59, 0.6, 0.2, 0.9])).tolist() == [2, 0]


def test_a_sample_between_two_groups_is_the_least_certain():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(61, 20))
    X[:30] += 3.0
    X[60] = 1.5
    model = MDEC(2, ensemble_size=30, random_state=0).fit(X)
    assert model.confidence_.shape == (61,)
    assert model.confidence_.argmin() == 60
    assert np.median(model.confidence_) > 0.9


def test_confident_samples_are_purer(shared):
    data = np.load(shared / "datasets" / "prepared" / "DS-01_Bhattacharjee-2001.npz")
    model = MDEC(5, ensemble_size=50, random_state=0).fit(data["X"])
    known = data["y"]
    right = np.zeros(len(known), dtype=bool)
    for k in range(5):
        inside = model.labels_ == k
        right[inside] = known[inside] == np.bincount(known[inside]).argmax()
    order = np.argsort(-model.confidence_, kind="stable")
    quarter = len(order) // 4
    assert right[order[:quarter]].mean() > right[order[quarter:]].mean()
