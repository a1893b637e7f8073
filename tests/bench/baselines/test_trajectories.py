"""PTGP and PTA against the definitions, with every power of P written out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from mdec import Ensemble
from mdec.baselines import PTA, pta, ptgp
from mdec.bench.baselines import _graphs
from mdec.bench.baselines._graphs import (
    microclusters,
    trajectory_similarity,
    transition_matrix,
)


@pytest.fixture(scope="module")
def ensemble() -> Ensemble:
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(3), 40)[:, None]
    wrong = rng.random((120, 8)) < 0.25
    return Ensemble.from_labels(np.where(wrong, rng.integers(0, 5, wrong.shape), truth))


def naive_similarity(labels: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    n = len(labels)
    length = max(1, min(20, int(np.sqrt(n) / 2)))
    shared = (labels[:, None] == labels[None]).mean(axis=2)
    np.fill_diagonal(shared, 0.0)
    elite = np.where(shared >= np.sort(shared, axis=1)[:, [-length]], shared, 0.0)
    elite = np.maximum(elite, elite.T)
    walk = elite * sizes
    walk /= walk.sum(axis=1, keepdims=True)
    power, path = np.eye(n), []
    for _ in range(length):
        power = power @ walk
        path.append(power)
    trajectory = np.hstack(path)
    trajectory /= np.linalg.norm(trajectory, axis=1, keepdims=True)
    return trajectory @ trajectory.T


def test_microclusters_are_the_distinct_rows(ensemble: Ensemble) -> None:
    labels, inverse, sizes = microclusters(ensemble)
    np.testing.assert_array_equal(labels[inverse], ensemble.labels)
    assert sizes.sum() == 120
    assert sizes.max() > 1
    assert len(labels) < 120


def test_similarity_is_the_cosine_of_graphs(ensemble: Ensemble) -> None:
    labels, _, sizes = microclusters(ensemble)
    similarity = trajectory_similarity(labels, sizes)
    np.testing.assert_allclose(similarity, naive_similarity(labels, sizes), atol=1e-12)
    np.testing.assert_array_equal(similarity, similarity.T)


def test_block_size_and_precision_change_little(
    ensemble: Ensemble, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels, _, sizes = microclusters(ensemble)
    expected = trajectory_similarity(labels, sizes)
    monkeypatch.setattr(_graphs, "BLOCK", 7)
    np.testing.assert_array_equal(trajectory_similarity(labels, sizes), expected)
    monkeypatch.setattr(_graphs, "DOUBLE_PRECISION_ROWS", 10)
    single = trajectory_similarity(labels, sizes)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, atol=2e-6)


def test_labels_are_the_same_in_single_precision(
    ensemble: Ensemble, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = ptgp(ensemble, 3, random_state=0)
    monkeypatch.setattr(_graphs, "DOUBLE_PRECISION_ROWS", 10)
    np.testing.assert_array_equal(ptgp(ensemble, 3, random_state=0), expected)


def test_ties_with_the_last_elite_neighbour_are_kept() -> None:
    labels = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]], dtype=np.int32)
    walk = transition_matrix(labels, np.ones(4, dtype=np.int64), 1)
    np.testing.assert_allclose(walk.toarray()[0], [0.0, 1 / 3, 1 / 3, 1 / 3])


def test_isolated_microcluster_walks_nowhere() -> None:
    labels = np.array([[0, 0], [0, 1], [1, 2]], dtype=np.int32)
    similarity = trajectory_similarity(labels, np.ones(3, dtype=np.int64))
    np.testing.assert_array_equal(similarity[2], 1e-20)
    found = ptgp(Ensemble.from_labels(labels), 2, random_state=0)
    assert found.shape == (3,)


def test_ptgp_is_the_transfer_cut_of_mean_similarities(ensemble: Ensemble) -> None:
    labels, inverse, sizes = microclusters(ensemble)
    similarity = naive_similarity(labels, sizes)
    columns = [
        similarity[:, labels[:, m] == c].mean(axis=1)
        for m in range(labels.shape[1])
        for c in range(labels[:, m].max() + 1)
    ]
    B = np.stack(columns, axis=1)
    d = B.sum(axis=1)
    W = B.T @ (B / d[:, None])
    g = W.sum(axis=1)
    _, vectors = np.linalg.eigh(W / np.sqrt(np.outer(g, g)))
    rows = (B / d[:, None]) @ (vectors[:, -3:] / np.sqrt(g)[:, None])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    graph = _graphs._cluster_means(similarity, Ensemble(labels))
    np.testing.assert_allclose(graph, B.T, atol=1e-12)
    embedding = _graphs._dense_transfer_cut(graph, 3, np.random.default_rng(0))
    np.testing.assert_allclose(embedding @ embedding.T, rows @ rows.T, atol=1e-6)
    found = ptgp(ensemble, 3, random_state=0)
    truth = np.repeat(np.arange(3), 40)
    assert adjusted_rand_score(truth, found) > 0.9
    assert inverse.size == found.size


@pytest.mark.parametrize("method", ["average", "complete", "single"])
def test_pta_is_linkage_on_the_similarity(ensemble: Ensemble, method: str) -> None:
    labels, inverse, sizes = microclusters(ensemble)
    distance = 1.0 - naive_similarity(labels, sizes)
    distance = np.round((distance + distance.T) / 2, 12)
    np.fill_diagonal(distance, 0.0)
    expected = fcluster(linkage(squareform(distance), method), 3, "maxclust")
    found = pta(ensemble, 3, linkage=method)
    assert adjusted_rand_score(expected[inverse], found) == 1.0
    assert found.max() == 2


@pytest.mark.parametrize("method", ["average", "complete", "single"])
def test_parts_without_a_walk_between_them_merge_by_agreement(method: str) -> None:
    # Four groups; no member joins the first two with the last two. Walks stay within
    # a group, where nearly all members agree, for one elite neighbour.
    rng = np.random.default_rng(3)
    truth = np.repeat([0, 1, 2, 3], 6)
    columns = []
    for member in range(30):
        own = truth * 2 + rng.integers(2, size=truth.size)
        # A tenth of the members join groups 0 with 1, and 2 with 3.
        columns.append(truth // 2 if member % 10 == 0 else own)
    ensemble = Ensemble.from_labels(np.stack(columns, axis=1))
    labels, _, sizes = microclusters(ensemble)
    similarity = _graphs.trajectory_similarity(labels, sizes, 1, 1)
    assert (similarity == 0.0).mean() > 0.5
    found = pta(ensemble, 2, linkage=method, n_elite=1, n_steps=1)
    assert adjusted_rand_score(truth // 2, found) == 1.0


@pytest.mark.parametrize("seed", range(4))
def test_walks_that_fall_apart_still_find_blobs(seed: int) -> None:
    X, y = make_blobs(50, random_state=1)
    X = StandardScaler().fit_transform(X)
    labels = PTA(3, random_state=seed).fit(X).labels_
    assert adjusted_rand_score(y, labels) > 0.9


@pytest.mark.parametrize("method", ["average", "complete", "single"])
def test_a_cosine_rounded_above_one_is_no_negative_distance(
    ensemble: Ensemble, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels, inverse, sizes = microclusters(ensemble)
    similarity = np.minimum(trajectory_similarity(labels, sizes), 0.9)
    similarity[0, 1] = similarity[1, 0] = np.nextafter(1.0, 2.0)
    monkeypatch.setattr(_graphs, "trajectory_similarity", lambda *_: similarity)
    found = pta(ensemble, 3, linkage=method)
    assert np.unique(found[(inverse == 0) | (inverse == 1)]).size == 1
