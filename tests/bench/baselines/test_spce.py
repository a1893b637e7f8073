"""SPCE against its updates with all co-membership matrices written out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg, sparse

from mdec import Ensemble
from mdec.baselines import spce
from mdec.bench.baselines import _graphs, _spce
from mdec.bench.baselines._spce import (
    consensus_graph,
    member_weights,
    pair_weights,
    smallest_eigenvectors,
)


def planted(seed: int, n_samples: int = 45, n_members: int = 9) -> Ensemble:
    rng = np.random.default_rng(seed)
    truth = (np.arange(n_samples) % 3)[:, None]
    wrong = rng.random((n_samples, n_members)) < 0.2
    return Ensemble.from_labels(np.where(wrong, rng.integers(0, 3, wrong.shape), truth))


def naive_graph(ensemble: Ensemble, n_clusters: int, t: float) -> np.ndarray:
    """The alternation with an N x N x M array, as the authors keep it."""
    table = ensemble.labels
    A = ((table[:, None] == table[None]) & (table >= 0)).astype(float)
    m = A.shape[2]
    S = A.mean(axis=2)
    joined, apart = A.all(axis=2), ~A.any(axis=2)
    alpha, rho = np.full(m, 1 / m), 1.0

    def eigen(S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.linalg.eigh(np.diag(S.sum(axis=1)) - S)

    Y = eigen(S)[1][:, :n_clusters]
    for q, n_updates in ((0.9, 5), (0.8, 5), (0.7, 5), (0.6, 5), (0.5, 20)):
        B = ((S[:, :, None] - A) ** 2 / alpha).sum(axis=2)
        with np.errstate(divide="ignore"):
            W = np.minimum(1.0, 2 * q * (1 - q) * m**2 / (2 * B))
        for update in range(n_updates):
            total = (1 / alpha).sum()
            gap = ((Y[:, None] - Y[None]) ** 2).sum(axis=2)
            C = ((A / alpha).sum(axis=2) - rho * gap / (2 * W**2)) / total
            S = np.where(t * m / (W * np.sqrt(total)) > C, 0.0, np.minimum(C, 1.0))
            S[joined], S[apart] = 1.0, 0.0
            S = (S + S.T) / 2
            before = Y
            values, vectors = eigen(S)
            Y = vectors[:, :n_clusters]
            norms = np.sqrt(((W[:, :, None] * (S[:, :, None] - A)) ** 2).sum((0, 1)))
            alpha = norms / norms.sum()
            if values[:n_clusters].sum() > 1e-9:
                rho *= 2
            elif values[: n_clusters + 1].sum() < 1e-11:
                rho, Y = rho / 2, before
            elif update > 0:
                break
    return S


@pytest.mark.parametrize("t", [0.1, 0.3])
def test_graph_is_that_of_the_written_out_updates(t: float) -> None:
    for seed in range(4):
        ensemble = planted(seed)
        expected = naive_graph(ensemble, 3, t)
        np.testing.assert_allclose(consensus_graph(ensemble, 3, t), expected, atol=1e-8)


@pytest.mark.parametrize("solver", ["lapack", "iterated"])
def test_graph_in_blocks_of_rows_where_labels_are_missing(
    solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_graphs, "BLOCK", 16)
    monkeypatch.setattr(_spce, "_FEW_EDGES", np.inf if solver == "lapack" else 0)
    table = planted(5, n_samples=60, n_members=12).labels.copy()
    table[np.random.default_rng(0).random(table.shape) < 0.2] = -1
    ensemble = Ensemble.from_labels(table)
    expected = naive_graph(ensemble, 3, 0.1)
    np.testing.assert_allclose(consensus_graph(ensemble, 3, 0.1), expected, atol=1e-6)


def test_weights_of_pairs_and_members() -> None:
    ensemble = planted(0)
    rng = np.random.default_rng(0)
    A = (ensemble.labels[:, None] == ensemble.labels[None]).astype(float)
    S = rng.random(A.shape[:2])
    S = (S + S.T) / 2
    alpha = rng.dirichlet(np.ones(9))
    Q = (A / alpha).sum(axis=2)
    W = pair_weights(S, Q, (1 / alpha).sum(), 9, 0.7)
    B = ((S[:, :, None] - A) ** 2 / alpha).sum(axis=2)
    np.testing.assert_allclose(W, np.minimum(1, 0.7 * 0.3 * 81 / B), rtol=1e-12)
    norms = np.sqrt(((W[:, :, None] * (S[:, :, None] - A)) ** 2).sum(axis=(0, 1)))
    found = member_weights(ensemble, S, W)
    np.testing.assert_allclose(found, norms / norms.sum(), rtol=1e-12)


def test_eigenvectors_of_the_laplacian() -> None:
    S = np.kron(np.eye(3), np.ones((4, 4)))
    values, vectors = smallest_eigenvectors(S, 3)
    np.testing.assert_allclose(values, [0, 0, 0, 4], atol=1e-12)
    assert vectors.shape == (12, 3)


@pytest.mark.parametrize("n_components", [1, 2, 4, 7])
def test_iterate_eigenvectors_are_those_of_lapack(n_components: int) -> None:
    rng = np.random.default_rng(n_components)
    S = np.where(rng.random((420, 420)) < 0.1, rng.random((420, 420)), 0.0)
    component = np.arange(420) % n_components
    S[component[:, None] != component] = 0.0
    S = S + S.T
    exact, basis = np.linalg.eigh(np.diag(S.sum(axis=1)) - S)
    found = _spce._iterate(sparse.csr_array(S), 4)
    assert found is not None
    values, vectors = found
    np.testing.assert_allclose(values, exact[:5], atol=1e-10)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(4), atol=1e-10)
    if n_components <= 4:
        inside = basis[:, :4] @ (basis[:, :4].T @ vectors)
        np.testing.assert_allclose(vectors, inside, atol=1e-6)


def test_lapack_takes_over_where_the_iteration_does_not_settle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mdec.numerics.eigen.MAX_ROUNDS", 1)
    monkeypatch.setattr(_spce, "_FEW_EDGES", 0)
    rng = np.random.default_rng(0)
    S = np.where(rng.random((300, 300)) < 0.1, rng.random((300, 300)), 0.0)
    S = S + S.T
    assert _spce._iterate(sparse.csr_array(S), 4) is None
    values, _ = smallest_eigenvectors(S, 4)
    exact = np.linalg.eigvalsh(np.diag(S.sum(axis=1)) - S)
    np.testing.assert_allclose(values, exact[:5], atol=1e-10)


def test_planted_groups_come_out() -> None:
    labels = spce(planted(1, n_samples=90, n_members=25), 3)
    np.testing.assert_array_equal(labels, np.arange(90) % 3)


def test_one_member_is_its_own_consensus() -> None:
    table = np.array([[0], [1], [0], [2], [1], [2]])
    np.testing.assert_array_equal(
        spce(Ensemble.from_labels(table), 3), [0, 1, 0, 2, 1, 2]
    )


def test_what_cannot_fit_is_refused_with_the_estimate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mdec._support.memory.available_memory", lambda: 10**6)
    with pytest.raises(MemoryError, match=r"SPCE of 450 samples needs 0\.0 GB"):
        spce(planted(0, n_samples=450), 3)
    assert _spce._MATRICES * 8 * 450**2 > 10**6


def test_a_driver_that_gives_up_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = spce(planted(1), 3)
    solve = linalg.eigh

    def failing(*arguments, driver: str, **options):
        if driver == "evr":
            raise linalg.LinAlgError("Internal Error.")
        return solve(*arguments, driver=driver, **options)

    monkeypatch.setattr(linalg, "eigh", failing)
    np.testing.assert_array_equal(spce(planted(1), 3), expected)
