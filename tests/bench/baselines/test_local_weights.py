"""LWGP, LWEA and EAC against the transfer cut and plain linkage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from sklearn.metrics import adjusted_rand_score

from mdec import Ensemble
from mdec._support.random import consensus_stream
from mdec.baselines import eac, lwea, lwgp
from mdec.consensus import bipartite
from mdec.consensus.graph_cuts import bipartite_graph, transfer_cut
from mdec.numerics.kmeans import kmeans
from mdec.weights import ensemble_driven_cluster_index


@pytest.fixture(scope="module")
def ensemble() -> Ensemble:
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(4), [20, 25, 30, 15])[:, None]
    wrong = rng.random((90, 25)) < 0.3
    return Ensemble.from_labels(np.where(wrong, rng.integers(0, 6, wrong.shape), truth))


def naive_weights(ensemble: Ensemble, theta: float) -> np.ndarray:
    weights = []
    for own in ensemble.labels.T:
        for c in range(own.max() + 1):
            entropy = 0.0
            for other in ensemble.labels.T:
                shares = np.bincount(other[own == c]) / np.sum(own == c)
                shares = shares[shares > 0]
                entropy -= (shares * np.log2(shares)).sum()
            weights.append(np.exp(-entropy / (theta * len(ensemble))))
    return np.array(weights)


def test_lwgp_is_the_transfer_cut_with_theta(ensemble: Ensemble) -> None:
    weights = naive_weights(ensemble, 0.4)
    rng = consensus_stream(7)
    embedding = transfer_cut(bipartite_graph(ensemble, weights), 4, rng)
    expected = kmeans(embedding, 4, rng)
    assert adjusted_rand_score(expected, lwgp(ensemble, 4, random_state=7)) == 1.0


def test_lwgp_with_theta_one_is_the_bipartite_consensus(ensemble: Ensemble) -> None:
    np.testing.assert_array_equal(
        lwgp(ensemble, 4, theta=1.0, random_state=3),
        bipartite(ensemble, 4, random_state=3),
    )


def test_theta_matters(ensemble: Ensemble) -> None:
    sharp = ensemble_driven_cluster_index(ensemble, 0.4)
    np.testing.assert_allclose(sharp, naive_weights(ensemble, 0.4), rtol=1e-12)
    assert not np.allclose(sharp, ensemble_driven_cluster_index(ensemble))


@pytest.mark.parametrize("n_clusters", [2, 3, 4])
def test_linkage_agrees_with_scipy(ensemble: Ensemble, n_clusters: int) -> None:
    H = ensemble.indicator().toarray()
    for weights, labels in (
        (np.ones(H.shape[1]), eac(ensemble, n_clusters)),
        (naive_weights(ensemble, 0.4), lwea(ensemble, n_clusters)),
    ):
        distance = 1.0 - (H * weights) @ H.T / len(ensemble)
        np.fill_diagonal(distance, 0.0)
        tree = linkage(squareform(distance, checks=False), "average")
        expected = fcluster(tree, n_clusters, "maxclust")
        assert adjusted_rand_score(expected, labels) == 1.0
