"""Every objective against its best value over all partitions of eight samples."""

from __future__ import annotations

import numpy as np
import pytest

from mdec import Ensemble
from mdec.baselines import cspa, ecc, hgpa, kcc, sec, spce
from mdec.bench.baselines._label_kmeans import weighted_inertia

UTILITIES = [("U_c", 5.0), ("U_H", 5.0), ("U_cos", 5.0), ("U_Lp", 5.0), ("U_Lp", 8.0)]


def partitions(n_samples: int, n_clusters: int) -> list[np.ndarray]:
    """All partitions into exactly so many clusters, numbered by first samples."""
    found = [[0]]
    for _ in range(n_samples - 1):
        found = [[*p, k] for p in found for k in range(max(p) + 2)]
    return [np.array(p) for p in found if max(p) + 1 == n_clusters]


def noisy_ensemble(seed: int, n_members: int = 6) -> Ensemble:
    """Three groups of 3, 3 and 2 samples, each label wrong one time in four."""
    rng = np.random.default_rng(seed)
    truth = np.array([0, 0, 0, 1, 1, 1, 2, 2])[:, None]
    noise = rng.integers(0, 3, size=(8, n_members))
    wrong = rng.random((8, n_members)) < 0.25
    return Ensemble.from_labels(np.where(wrong, noise, truth))


def concentration(shares: np.ndarray, utility: str, p: float) -> float:
    if utility == "U_H":
        present = shares[shares > 0]
        return float((present * np.log2(present)).sum())
    if utility == "U_c":
        return float((shares**2).sum())
    order = p if utility == "U_Lp" else 2.0
    return float((shares**order).sum() ** (1.0 / order))


def total_utility(
    ensemble: Ensemble, labels: np.ndarray, utility: str, p: float, normalized: bool
) -> float:
    """The utilities as the paper writes them, member by member."""
    total = 0.0
    for column in ensemble.labels.T:
        overall = np.bincount(column) / column.size
        own = concentration(overall, utility, p)
        value = -own
        for k in range(labels.max() + 1):
            inside = column[labels == k]
            shares = np.bincount(inside, minlength=overall.size) / inside.size
            value += inside.size / column.size * concentration(shares, utility, p)
        total += value / abs(own) if normalized else value
    return total


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize(("utility", "p"), UTILITIES)
@pytest.mark.parametrize("n_clusters", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_kcc_no_partition_is_better(
    utility: str, p: float, normalized: bool, n_clusters: int
) -> None:
    everything = partitions(8, n_clusters)
    for seed in range(3 if n_clusters == 2 else 1):
        ensemble = noisy_ensemble(seed)
        labels = kcc(
            ensemble,
            n_clusters,
            utility=utility,
            p=p,
            normalized=normalized,
            n_init=100,
            random_state=seed,
        )
        found = total_utility(ensemble, labels, utility, p, normalized)
        best = max(
            total_utility(ensemble, each, utility, p, normalized) for each in everything
        )
        assert found == pytest.approx(best, abs=1e-9)


def test_kcc_default_starts_come_close() -> None:
    everything = partitions(8, 3)
    shares = []
    for seed in range(6):
        ensemble = noisy_ensemble(seed)
        labels = kcc(ensemble, 3, random_state=seed)
        found = total_utility(ensemble, labels, "U_H", 5.0, False)
        best = max(total_utility(ensemble, e, "U_H", 5.0, False) for e in everything)
        shares.append(found / best)
    assert np.mean(shares) > 0.97
    assert min(shares) > 0.8


def test_ecc_minimises_the_entropy_inside_its_clusters() -> None:
    ensemble = noisy_ensemble(1)

    def entropy(labels: np.ndarray) -> float:
        return -sum(
            np.mean(labels == k)
            * concentration(
                np.bincount(column[labels == k]) / np.sum(labels == k), "U_H", 5.0
            )
            for column in ensemble.labels.T
            for k in range(labels.max() + 1)
        )

    found = entropy(ecc(ensemble, 3, n_init=100, random_state=0))
    assert found == pytest.approx(min(map(entropy, partitions(8, 3))), abs=1e-9)


@pytest.mark.parametrize(("n_clusters", "gap"), [(2, 1.06), (3, 1.0), (4, 1.0)])
def test_sec_comes_near_the_best_partition(n_clusters: int, gap: float) -> None:
    """Runs start from samples, from which two clusters are not always reached."""
    for seed in range(5):
        ensemble = noisy_ensemble(seed)
        labels = sec(ensemble, n_clusters, n_init=100, random_state=seed)
        best = min(weighted_inertia(ensemble, p) for p in partitions(8, n_clusters))
        assert weighted_inertia(ensemble, labels) <= gap * best + 1e-12


def test_spce_no_partition_fits_much_better() -> None:
    """With all pairs counted, alpha at its best makes the misfit a sum of norms."""

    def misfit(ensemble: Ensemble, labels: np.ndarray) -> float:
        S = labels[:, None] == labels[None]
        A = ensemble.labels[:, None] == ensemble.labels[None]
        return float(np.sqrt((S[:, :, None] ^ A).sum(axis=(0, 1))).sum())

    gaps = []
    for seed in range(10):
        ensemble = noisy_ensemble(seed, n_members=10)
        labels = spce(ensemble, 3)
        if not 1 < labels.max() + 1 < 8:
            continue
        best = min(misfit(ensemble, p) for p in partitions(8, labels.max() + 1))
        gaps.append(misfit(ensemble, labels) / best)
    assert len(gaps) >= 5
    assert np.mean(gaps) < 1.1


def balanced(n_clusters: int) -> list[np.ndarray]:
    return [
        p
        for p in partitions(8, n_clusters)
        if np.bincount(p).max() <= -(-8 // n_clusters)
    ]


def pair_cut(ensemble: Ensemble, labels: np.ndarray) -> float:
    H = ensemble.indicator().toarray()
    return float((H @ H.T)[labels[:, None] != labels[None]].sum() / 2)


def hyperedge_cut(ensemble: Ensemble, labels: np.ndarray) -> float:
    H = ensemble.indicator().toarray() > 0
    return float(sum(c.sum() for c in H.T if np.unique(labels[c]).size > 1))


@pytest.mark.parametrize("n_clusters", [2, 4])
def test_cspa_finds_nearly_the_least_balanced_cut(n_clusters: int) -> None:
    pytest.importorskip("pymetis")
    gaps = []
    for seed in range(10):
        ensemble = noisy_ensemble(seed)
        labels = cspa(ensemble, n_clusters, random_state=seed)
        assert np.bincount(labels).max() <= -(-8 // n_clusters) + 1
        best = min(pair_cut(ensemble, p) for p in balanced(n_clusters))
        gaps.append(pair_cut(ensemble, labels) / best)
    assert np.mean(gaps) < 1.05


def test_hgpa_finds_nearly_the_least_balanced_cut() -> None:
    pytest.importorskip("mtkahypar")
    gaps = []
    for seed in range(10):
        ensemble = noisy_ensemble(seed)
        labels = hgpa(ensemble, 2, random_state=seed)
        np.testing.assert_array_equal(np.bincount(labels), [4, 4])
        best = min(hyperedge_cut(ensemble, p) for p in balanced(2))
        gaps.append(hyperedge_cut(ensemble, labels) / best)
    assert np.mean(gaps) < 1.05
