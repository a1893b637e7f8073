"""KCC and ECC beside their objectives: identities, missing labels, messages."""

from __future__ import annotations

import numpy as np
import pytest

from mdec import Ensemble
from mdec.baselines import ecc, kcc


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
    with pytest.raises(ValueError, match="'U_x' is not one of U_c, U_H"):
        kcc(noisy_ensemble(0), 2, utility="U_x")


def test_fewer_distinct_samples_than_clusters_warn() -> None:
    ensemble = Ensemble.from_labels([[0], [0], [1], [1]])
    with pytest.warns(UserWarning, match="2 clusters are returned instead of 3"):
        assert kcc(ensemble, 3, random_state=0).max() == 1
