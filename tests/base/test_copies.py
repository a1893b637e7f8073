"""Copies of samples: few distinct rows are clustered, and equal ones together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from mdec import MDEC, Ensemble, generate_ensemble
from mdec._support.arrays import Array
from mdec.base.copies import group_copies, share_labels
from mdec.consensus import CONSENSUS, hierarchical

WAYS: dict[str, dict[str, Any]] = {
    "graph": {},
    "exponential": {"kernel": "scaled_exponential"},
    "cosine": {"kernel": "cosine"},
    "landmark": {"base": "landmark"},
    "drawn": {"max_samples": 0.8},
    "torch": {"device": "torch"},
}


def all_but_one_equal(place: int) -> Array:
    X = np.tile([1.0, 2.0, 3.0, 4.0], (50, 1))
    X[place] = [7.0, 5.0, 1.0, 2.0]
    return X


def one_hot() -> Array:
    return np.eye(4)[np.random.default_rng(0).integers(0, 4, 100)]


def binary(n_features: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 150)
    share = np.where(y[:, None], 0.9, 0.1)
    return (rng.random((150, n_features)) < share).astype(np.float64), y


def are_copies_together(X: Array, labels: Array) -> bool:
    group = group_copies(X)
    assert group is not None
    return len(np.unique(np.stack([group, labels]), axis=1).T) == group.max() + 1


def members_of(X: Array, way: str) -> Ensemble:
    if way == "torch":
        pytest.importorskip("torch")
    found = generate_ensemble(X, ensemble_size=8, random_state=0, **WAYS[way])
    assert isinstance(found, Ensemble)
    return found


@pytest.mark.parametrize("way", WAYS)
def test_one_pair_of_equal_rows_is_together(way: str) -> None:
    X, _ = binary(80)
    assert len(np.unique(X, axis=0)) == len(X)
    X[149] = X[3]
    labels = members_of(X, way).labels
    assert np.array_equal(labels[149], labels[3])


@pytest.mark.parametrize("kernel", ["scaled_gaussian", "scaled_exponential"])
def test_as_many_distinct_rows_as_clusters_are_the_clusters(kernel: str) -> None:
    X = np.zeros((62, 4))
    X[7], X[40] = [9.0, 1.0, 2.0, 3.0], [9.0, 1.0, 2.0, 3.1]
    options = {"max_features": 1.0, "base_n_clusters_range": (3, 3), "kernel": kernel}
    found = generate_ensemble(X, ensemble_size=4, random_state=0, **options)
    for labels in found.labels.T:
        assert set(np.flatnonzero(labels)) == {7, 40}
        assert labels[7] != labels[40]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", [0, 37])
def test_one_row_among_copies_is_the_other_cluster(way: str, place: int) -> None:
    """Their row numbers parted the copies before."""
    X = all_but_one_equal(place)
    ensemble = members_of(X, way)
    expected = (np.arange(len(X)) == place) != (place == 0)
    for consensus in CONSENSUS.values():
        labels = consensus(ensemble, 2, random_state=0)
        np.testing.assert_array_equal(labels, expected.astype(np.int32))


@pytest.mark.parametrize("way", WAYS)
def test_one_hot_rows_are_clustered(way: str) -> None:
    X = one_hot()
    ensemble = members_of(X, way)
    for consensus in CONSENSUS.values():
        labels = consensus(ensemble, 4, random_state=0)
        assert adjusted_rand_score(labels, X.argmax(axis=1)) == 1.0


@pytest.mark.parametrize("n_features", [3, 5, 8])
@pytest.mark.parametrize("way", ["graph", "exponential", "landmark", "torch"])
def test_binary_tables_of_few_features_are_clustered(way: str, n_features: int) -> None:
    X, y = binary(n_features)
    ensemble = members_of(X, way)
    assert not ensemble.failures
    for consensus in CONSENSUS.values():
        labels = consensus(ensemble, 2, random_state=0)
        assert are_copies_together(X, labels)
        assert adjusted_rand_score(labels, y) > 0.5


def test_landmarks_among_copies_are_as_good_as_graphs() -> None:
    """Places of many landmarks took the eigenvectors, and rows were tied to few."""
    for n_features, kernel in ((5, "cosine"), (8, "scaled_exponential")):
        X, y = binary(n_features)
        settings = {"base": "landmark", "kernel": kernel, "random_state": 0}
        ensemble = generate_ensemble(X, ensemble_size=8, **settings)
        assert adjusted_rand_score(hierarchical(ensemble, 2), y) > 0.8


@pytest.mark.parametrize("n_features", [3, 8])
def test_sparse_copies_are_copies(n_features: int) -> None:
    X, _ = binary(n_features)
    settings = {"ensemble_size": 6, "random_state": 0}
    dense = generate_ensemble(X, **settings)
    stored = generate_ensemble(sparse.csr_array(X), **settings)
    for labels in (dense.labels, stored.labels):
        for member in labels.T:
            assert are_copies_together(X, member)


def test_distinct_rows_beyond_the_members_are_clusters_too() -> None:
    """Where every sample has copies, the distinct rows are the samples of a graph."""
    X = np.repeat(np.random.default_rng(0).normal(size=(30, 6)), 25, axis=0)
    settings = {"base_n_clusters_range": (4, 6), "random_state": 0}
    ensemble = generate_ensemble(X, ensemble_size=5, **settings)
    assert not ensemble.failures
    for member in ensemble.labels.T:
        assert are_copies_together(X, member)
        assert 2 <= len(np.unique(member)) <= 6


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_copies_at_any_scale_and_offset(scale: float, offset: float) -> None:
    X = (all_but_one_equal(20) + offset) * scale
    for consensus in CONSENSUS:
        model = MDEC(2, consensus=consensus, ensemble_size=6, random_state=0).fit(X)
        assert np.bincount(model.labels_).tolist() == [49, 1]
        assert model.predict(X[20:22]).tolist() == [1, 0]


def test_features_that_are_constant_change_nothing() -> None:
    X = np.hstack([all_but_one_equal(9), np.full((50, 30), 4.0)])
    ensemble = generate_ensemble(X, ensemble_size=10, random_state=0)
    for consensus in CONSENSUS.values():
        assert np.bincount(consensus(ensemble, 2, random_state=0)).tolist() == [49, 1]


def test_a_cut_never_parts_what_no_member_tells_apart() -> None:
    """A group whose clusters weigh little came apart before better groups did."""
    labels = np.array([[0, 0], [0, 1], [0, 2], [1, 3], [1, 3], [1, 3]])
    ensemble = Ensemble.from_labels(labels)
    weights = np.array([1.0, 0.01, 1.0, 1.0, 1.0, 0.01])
    found = hierarchical(ensemble, 3, weights)
    assert len(set(found[3:])) == 1
    # More clusters than can be told apart are made of copies all the same.
    assert len(set(hierarchical(ensemble, 5, weights))) == 5


def test_copies_are_numbered_by_the_first_of_them() -> None:
    X = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, -0.0], [0.0, 0.0]])
    for rows in (X, np.asfortranarray(X), sparse.csr_array(X + 0.0)):
        assert group_copies(rows).tolist() == [0, 1, 0, 2]
        assert group_copies(rows, 2) is None
        assert group_copies(rows, 3) is not None
    labels = np.array([-1, 1, 2, 0], dtype=np.int32)
    shared = share_labels(labels, np.array([0, 1, 0, 0], dtype=np.int32))
    assert shared.tolist() == [2, 1, 2, 2]


def many_copies() -> Array:
    rng = np.random.default_rng(5)
    X = rng.integers(0, 3, size=(150, 5)).astype(np.float64)
    return np.concatenate([X, rng.normal(size=(30, 5))])


@pytest.mark.parametrize("kernel", ["scaled_gaussian", "cosine"])
def test_copies_of_samples_that_are_drawn_join_them(kernel: str) -> None:
    X = many_copies()
    settings = {"ensemble_size": 10, "max_samples": 0.6, "random_state": 0}
    for consensus in CONSENSUS:
        model = MDEC(4, consensus=consensus, kernel=kernel, **settings).fit(X)
        assert are_copies_together(X, model.labels_)
        assert (model.ensemble_.labels < 0).any()


def test_copies_among_pairs_are_together() -> None:
    X = many_copies()
    distances = np.abs(X[:, None] - X).sum(axis=2)
    for pairs in (distances, np.exp(-distances)):
        settings = {"ensemble_size": 10, "random_state": 0, "metric": "precomputed"}
        ensemble = generate_ensemble(pairs, **settings)
        for member in ensemble.labels.T:
            assert are_copies_together(X, member)


def test_a_checkpoint_of_drawn_samples_with_copies_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = many_copies()
    settings = {"ensemble_size": 6, "max_samples": 0.6, "random_state": 0}
    first = generate_ensemble(X, checkpoint=tmp_path, **settings)

    def no_member(*_: object) -> None:
        pytest.fail("a finished member was made again")

    monkeypatch.setattr("mdec.engines.threads.base_clustering", no_member)
    again = generate_ensemble(X, checkpoint=tmp_path, **settings)
    np.testing.assert_array_equal(again.labels, first.labels)
