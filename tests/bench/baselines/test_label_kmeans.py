"""KCC, ECC and SEC beside their objectives: identities, missing labels, messages."""

from __future__ import annotations

import numpy as np
import pytest

from mdec import Ensemble
from mdec.baselines import ecc, kcc, sec
from mdec.bench.baselines._label_kmeans import weighted_inertia


def noisy_ensemble(seed: int) -> Ensemble:
    rng = np.random.default_rng(seed)
    truth = (np.arange(60) % 3)[:, None]
    wrong = rng.random((60, 12)) < 0.3
    return Ensemble.from_labels(np.where(wrong, rng.integers(0, 4, wrong.shape), truth))


def test_ecc_is_kcc_with_entropy_from_the_same_starts() -> None:
    for seed in range(5):
        ensemble = noisy_ensemble(seed)
        mine = ecc(ensemble, 3, n_init=4, max_iterations=15, random_state=seed)
        theirs = kcc(
            ensemble, 3, utility="U_H", n_init=4, max_iterations=15, random_state=seed
        )
        np.testing.assert_array_equal(mine, theirs)


def test_samples_left_out_of_members_still_get_their_cluster() -> None:
    truth = np.repeat([0, 1, 2], 20)
    table = np.tile(truth[:, None], (1, 10))
    table[np.random.default_rng(0).random(table.shape) < 0.3] = -1
    labels = kcc(Ensemble.from_labels(table), 3, n_init=20, random_state=0)
    np.testing.assert_array_equal(labels, truth)


def test_unknown_utility_is_named() -> None:
    with pytest.raises(
        ValueError, match=r"'utility' parameter of kcc must be a str among \{.*'U_H'"
    ):
        kcc(noisy_ensemble(0), 2, utility="U_x")


def test_fewer_distinct_samples_than_clusters_warn() -> None:
    ensemble = Ensemble.from_labels([[0], [0], [1], [1]])
    with pytest.warns(UserWarning, match="2 clusters are returned instead of 3"):
        assert kcc(ensemble, 3, random_state=0).max() == 1


def sample_weights(ensemble: Ensemble) -> np.ndarray:
    H = ensemble.indicator().toarray()
    return (H @ H.T).sum(axis=1)


def normalized_association(ensemble: Ensemble, labels: np.ndarray) -> float:
    """Sum of assoc(k, k) / vol(k) in the graph H H^T, with the matrix written out."""
    H = ensemble.indicator().toarray()
    graph = H @ H.T
    return sum(
        graph[np.ix_(labels == k, labels == k)].sum() / graph[labels == k].sum()
        for k in range(labels.max() + 1)
    )


def test_objective_is_the_normalised_cut() -> None:
    rng = np.random.default_rng(0)
    for _ in range(10):
        ensemble = Ensemble.from_labels(rng.integers(0, 6, size=(60, 15)))
        labels = np.unique(rng.integers(0, 4, size=60), return_inverse=True)[1]
        left = weighted_inertia(ensemble, labels)
        left += normalized_association(ensemble, labels)
        right = len(ensemble) * (1.0 / sample_weights(ensemble)).sum()
        assert left == pytest.approx(right, abs=1e-10)


def test_objective_is_the_weighted_sum_of_squares() -> None:
    rng = np.random.default_rng(1)
    ensemble = Ensemble.from_labels(rng.integers(0, 4, size=(30, 7)))
    labels = np.arange(30) % 3
    H = ensemble.indicator().toarray()
    w = (H @ H.T).sum(axis=1)
    rows = H / w[:, None]
    total = 0.0
    for k in range(3):
        inside = labels == k
        mean = np.average(rows[inside], axis=0, weights=w[inside])
        total += (w[inside] * ((rows[inside] - mean) ** 2).sum(axis=1)).sum()
    assert weighted_inertia(ensemble, labels) == pytest.approx(total, abs=1e-12)


def test_result_cannot_be_improved_by_moving_one_sample() -> None:
    rng = np.random.default_rng(3)
    truth = np.arange(60) % 4
    table = np.where(
        rng.random((60, 20)) < 0.3, rng.integers(0, 4, (60, 20)), truth[:, None]
    )
    ensemble = Ensemble.from_labels(table)
    labels = sec(ensemble, 4, random_state=0)
    H = ensemble.indicator().toarray()
    w = sample_weights(ensemble)
    means = np.stack(
        [H[labels == k].sum(axis=0) / w[labels == k].sum() for k in range(4)]
    )
    distances = ((H / w[:, None])[:, None] - means) ** 2
    np.testing.assert_array_equal(distances.sum(axis=2).argmin(axis=1), labels)


def test_every_cluster_is_filled() -> None:
    for seed in range(20):
        assert sec(noisy_ensemble(seed), 5, random_state=seed).max() == 4
