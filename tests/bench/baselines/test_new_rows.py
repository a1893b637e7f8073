"""Baselines that place new rows, and those that do not."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score

from mdec import baselines
from mdec.baselines import BASELINES
from mdec.bench.baselines._generation import nearest_base_clusters
from mdec.coassociation import locally_weighted_coassociation
from mdec.ensemble import Ensemble
from mdec.weights import ensemble_driven_cluster_index

PLACING = ("SSMCLA", "KCC", "SEC", "ECC", "LWGP", "EAC", "LWEA", "MCLA")


@pytest.fixture(scope="module")
def blobs() -> tuple[np.ndarray, np.ndarray]:
    return make_blobs(300, n_features=20, centers=4, cluster_std=2.0, random_state=0)


def fitted(name: str, X: np.ndarray, **settings: object):
    settings = {"ensemble_size": 20, "random_state": 0, **settings}
    return getattr(baselines, name)(4, **settings).fit(X)


def test_only_methods_with_a_rule_for_new_rows_predict() -> None:
    having = [
        name for name in BASELINES if hasattr(getattr(baselines, name), "predict")
    ]
    assert sorted(having) == sorted(PLACING)
    assert not hasattr(baselines.PTA(), "predict")


@pytest.mark.parametrize("name", PLACING)
def test_rows_find_their_clusters(name: str, blobs: tuple) -> None:
    X, y = blobs
    model = fitted(name, X[:200], n_init=5) if name == "SEC" else fitted(name, X[:200])
    assert (model.predict(X[:200]) == model.labels_).mean() >= 0.95
    assert adjusted_rand_score(y[200:], model.predict(X[200:])) > 0.95
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X[200:]), model.predict(X[200:]))


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
@pytest.mark.parametrize("generation", ["kmeans", "stratified"])
def test_base_clusters_have_the_nearest_centres(
    generation: str, scale: float, blobs: tuple
) -> None:
    X, new = blobs[0][:200] * scale, blobs[0][200:] * scale
    generate = getattr(baselines, f"generate_{generation}_ensemble")
    ensemble = generate(X, ensemble_size=5, random_state=0)
    np.testing.assert_array_equal(
        nearest_base_clusters(X, X, ensemble), ensemble.labels
    )
    if generation == "kmeans":
        base = nearest_base_clusters(X, new, ensemble)
        for member, labels in enumerate(ensemble.labels.T):
            centers = [X[labels == c].mean(axis=0) for c in range(labels.max() + 1)]
            nearest = cdist(new / scale, np.array(centers) / scale).argmin(axis=1)
            np.testing.assert_array_equal(base[:, member], nearest)


def test_a_new_row_joins_the_cluster_with_the_largest_mean(blobs: tuple) -> None:
    X, new = blobs[0][:200], blobs[0][200:230]
    model = fitted("LWEA", X)
    base = nearest_base_clusters(X, new, model.ensemble_)
    weights = ensemble_driven_cluster_index(model.ensemble_, model.theta)
    both = Ensemble(np.concatenate([model.ensemble_.labels, base]))
    shared = locally_weighted_coassociation(both, weights)[200:, :200]
    means = [shared[:, model.labels_ == k].mean(axis=1) for k in range(4)]
    np.testing.assert_array_equal(model.predict(new), np.argmax(means, axis=0))


def test_an_unfitted_baseline_says_so(blobs: tuple) -> None:
    with pytest.raises(NotFittedError, match="not fitted yet"):
        baselines.EAC().predict(blobs[0])
