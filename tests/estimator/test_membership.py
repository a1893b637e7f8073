"""Soft answers: memberships, and samples that are left out."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from mdec import MDEC
from mdec.coassociation import locally_weighted_coassociation
from mdec.consensus import CONSENSUS


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    return make_blobs(
        90, n_features=8, centers=3, cluster_std=4.0, center_box=(-6, 6), random_state=2
    )


def fitted(X: np.ndarray, **settings: object) -> MDEC:
    settings = {"n_clusters": 3, "ensemble_size": 20, "random_state": 0} | settings
    return MDEC(**settings).fit(X)


@pytest.mark.parametrize("max_samples", [1.0, 0.6])
@pytest.mark.parametrize("consensus", CONSENSUS)
def test_rows_add_up_to_one_and_follow_the_matrix(data, consensus, max_samples):
    X, _ = data
    model = fitted(X, consensus=consensus, max_samples=max_samples)
    found = model.membership_
    assert found.shape == (90, 3)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert found.min() >= 0.0
    if max_samples == 1.0:
        A = locally_weighted_coassociation(model.ensemble_, model.cluster_weights_)
        for i in (0, 40, 89):
            means = []
            for k in range(3):
                others = [j for j in np.flatnonzero(model.labels_ == k) if j != i]
                means.append(A[i, others].mean())
            np.testing.assert_allclose(found[i], np.array(means) / sum(means))
    assert (found.argmax(axis=1) == model.labels_).mean() > 0.8


def test_confidence_and_membership_agree_on_two_clusters(data) -> None:
    X, _ = data
    model = fitted(X, n_clusters=2)
    own = model.membership_[np.arange(90), model.labels_]
    np.testing.assert_allclose(own, model.confidence_)


def test_new_rows(data) -> None:
    X, _ = data
    model = fitted(X)
    new = X[:30] + 0.1
    found = model.predict_proba(new)
    assert found.shape == (30, 3)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_array_equal(found.argmax(axis=1), model.predict(new))


def test_one_cluster_holds_all(data) -> None:
    X, _ = data
    model = fitted(X, n_clusters=1)
    np.testing.assert_array_equal(model.membership_, np.ones((90, 1)))
    np.testing.assert_array_equal(model.predict_proba(X[:3]), np.ones((3, 1)))


def test_three_samples() -> None:
    X = np.array([[0.0, 1.0], [0.1, 1.0], [5.0, -3.0]], dtype=np.float32)
    model = fitted(X, n_clusters=3, ensemble_size=5)
    assert model.membership_.shape == (3, 3)
    np.testing.assert_allclose(model.membership_.sum(axis=1), 1.0)


def test_samples_below_a_level_are_left_out(data, tmp_path) -> None:
    X, _ = data
    whole = fitted(X)
    level = float(np.quantile(whole.confidence_, 0.3))
    model = fitted(X, min_confidence=level)
    below = model.confidence_ < level
    assert 0 < below.sum() < 90
    assert (model.labels_[below] == -1).all()
    np.testing.assert_array_equal(model.labels_[~below], whole.labels_[~below])
    np.testing.assert_array_equal(model.consensus_labels_, whole.labels_)
    np.testing.assert_allclose(model.membership_, whole.membership_)
    assert model.n_clusters_ == 3
    placed = model.place(X)
    np.testing.assert_array_equal(placed.clusters == -1, placed.confidence < level)
    np.testing.assert_array_equal(model.predict(X), placed.clusters)
    model.save(tmp_path / "model.npz")
    loaded = MDEC.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.labels_, model.labels_)
    np.testing.assert_array_equal(loaded.consensus_labels_, model.consensus_labels_)
    np.testing.assert_allclose(loaded.membership_, model.membership_)
    np.testing.assert_allclose(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.n_clusters_ == model.n_clusters_


def test_a_level_that_no_sample_reaches(data) -> None:
    X, _ = data
    with pytest.warns(UserWarning, match="no sample reaches min_confidence=1"):
        model = fitted(X, min_confidence=1.0)
    assert model.n_clusters_ == 0
    assert (model.labels_ == -1).all()
    assert model.consensus_labels_.max() == 2


def test_the_level_is_checked(data) -> None:
    with pytest.raises(ValueError, match="min_confidence"):
        fitted(data[0], min_confidence=1.1)
