"""Base clustering through landmarks, against plain loops and against graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics import adjusted_rand_score

from mdec import MDEC, Ensemble, generate_ensemble, generation
from mdec.base.kernels import KERNELS
from mdec.base.landmarks import (
    Landmarks,
    fit_landmarks,
    pool_rows,
    tie_rows,
)
from mdec.confidence import sum_profiles
from mdec.consensus import bipartite, dendrogram, graph_cuts, hierarchical, spectral
from mdec.ensemble import draws
from mdec.ensemble.draws import base_n_clusters_bounds
from mdec.ensemble.plan import Member, Plan
from mdec.numerics import landmark_search
from mdec.numerics.landmark_search import (
    index_landmarks,
    nearest_landmarks,
    refine_landmarks,
)
from mdec.numerics.transfer import (
    BipartiteRows,
    assign_rows,
    embed_rows,
    nearest_centers,
    small_side_affinity,
    small_side_graph,
    small_side_vectors,
    sum_shared_weights,
    transfer_cut,
)
from mdec.prediction import nearest_profiles, predict_base_clusters
from mdec.rows import blocks
from mdec.rows.work import Executor, LocalExecutor
from mdec.weights import ensemble_driven_cluster_index


def blobs(n_samples: int = 900, spread: float = 0.7) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    centers = 2.0 * rng.normal(size=(5, 24))
    y = rng.integers(5, size=n_samples)
    return centers[y] + spread * rng.normal(size=(n_samples, 24)), y


SETTINGS: dict[str, Any] = {
    "ensemble_size": 4,
    "base": "landmark",
    "base_n_clusters_range": (2, 12),
    "random_state": 0,
}


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 128)


def random_rows(
    n_rows: int, n_columns: int, n_edges: int, seed: int = 0
) -> tuple[BipartiteRows, np.ndarray]:
    rng = np.random.default_rng(seed)
    index = np.stack([rng.permutation(n_columns)[:n_edges] for _ in range(n_rows)])
    weights = rng.random((n_rows, n_edges)) + 0.05
    dense = np.zeros((n_rows, n_columns))
    np.put_along_axis(dense, index, weights, axis=1)
    return BipartiteRows(index.astype(np.uint16), weights), dense


def test_nearest_landmarks_by_all_distances() -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(1100, 9)).astype(np.float32)
    points = rng.normal(size=(700, 9)).astype(np.float32)
    few = index_landmarks(points, rng)
    assert not few.around
    index, distances = nearest_landmarks(rows, few, 7)
    full = ((rows[:, None, :].astype(float) - points) ** 2).sum(axis=2)
    expected = np.sort(full, axis=1)[:, :7]
    np.testing.assert_allclose(distances, expected, rtol=1e-5)
    np.testing.assert_allclose(
        np.take_along_axis(full, index.astype(int), axis=1), expected, rtol=1e-5
    )


def test_equal_distances_go_to_the_first_landmark() -> None:
    points = np.array([[1.0], [-1.0], [1.0], [3.0]], dtype=np.float32)
    prepared = index_landmarks(points, np.random.default_rng(0))
    index, _ = nearest_landmarks(np.zeros((2, 1), dtype=np.float32), prepared, 3)
    np.testing.assert_array_equal(index, [[0, 1, 2], [0, 1, 2]])


def test_many_landmarks_are_searched_coarse_to_fine() -> None:
    rng = np.random.default_rng(2)
    points = rng.normal(size=(5000, 6)).astype(np.float32)
    # A few far away and many copies of one must be found as well.
    points[:30] += 50.0
    points[1000:3500] = points[1000]
    rows = np.vstack([points, rng.normal(size=(2000, 6)).astype(np.float32)])
    many = index_landmarks(points, rng)
    assert many.around
    index, distances = nearest_landmarks(rows, many, 5)
    assert np.all(distances[: len(points), 0] == 0.0)
    assert np.all(np.diff(distances, axis=1) >= 0.0)
    differences = rows[:, None, :] - points[index]
    np.testing.assert_allclose(
        distances, (differences.astype(float) ** 2).sum(axis=2), rtol=1e-5, atol=1e-6
    )
    asked = np.concatenate([np.arange(30), np.arange(5000, 5500)])
    full = ((rows[asked, None, :] - points) ** 2).sum(axis=2)
    exact = np.sort(full, axis=1)[:, :5]
    found = distances[asked] <= exact * (1 + 1e-4) + 1e-6
    assert found.mean() > 0.97
    assert found[:30].all()


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_cells_look_at_the_first_of_equal_landmarks(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the order in which products are added up, and entries partitioned."""
    values = {"SEARCHED_WHOLE": 60, "N_CELLS": 12, "AROUND_CELL": 40}
    for name, value in values.items():
        monkeypatch.setattr(landmark_search, name, value)
    dtype = np.float32 if make is np.asarray else np.float64
    points = np.random.default_rng(4).integers(0, 2, (900, 8)).astype(dtype)
    index = index_landmarks(make(points), np.random.default_rng(0))
    centers = index.centers if make is np.asarray else index.centers.toarray()
    distances = cdist(centers, points, "sqeuclidean")
    own = distances.argmin(axis=0)
    for cell, around in enumerate(index.around):
        near = np.argsort(distances[cell].round(6), kind="stable")[:40]
        expected = np.union1d(near, np.flatnonzero(own == cell))
        np.testing.assert_array_equal(around, expected)


@pytest.mark.parametrize("kernel", ["scaled_gaussian", "scaled_exponential"])
def test_ties_by_the_formula(kernel: str) -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(40, 5)).astype(np.float32)
    points = rng.normal(size=(15, 5)).astype(np.float32)
    rho = rng.random(15).astype(np.float32) + 0.5
    k, mu = 4, 0.6
    index = index_landmarks(points, rng)
    member = Landmarks(np.arange(5), kernel, k, mu, np.zeros(5), index, rho, 1.0)
    found = tie_rows(rows, member)
    unit = np.median(rho)
    for i in range(len(rows)):
        squared = ((rows[i].astype(float) - points) ** 2).sum(axis=1)
        distance = squared if kernel == "scaled_gaussian" else np.sqrt(squared)
        nearest = np.argsort(distance)[:k]
        own = distance[nearest].mean()
        for t, j in enumerate(nearest):
            scale = (own + rho[j] + distance[j]) / 3.0
            if kernel == "scaled_gaussian":
                width = mu * scale
                value = np.exp(-0.5 * (distance[j] / width) ** 2)
                value *= unit / (np.sqrt(2 * np.pi) * width)
            else:
                value = np.exp(-distance[j] / (mu * scale))
            assert found.index[i, t] == j
            assert found.weights[i, t] == pytest.approx(value, rel=1e-4)


def test_refined_landmarks_lie_where_the_rows_are() -> None:
    rng = np.random.default_rng(5)
    rows = np.repeat([[0.0, 0.0], [10.0, 0.0]], 200, axis=0)
    rows = (rows + 0.1 * rng.normal(size=rows.shape)).astype(np.float32)
    chosen, points = refine_landmarks(rows, 20, np.random.default_rng(0))
    assert np.all(np.diff(chosen) > 0)
    distance = np.abs(points[:, :1] - [[0.0, 10.0]]).min(axis=1)
    assert distance.max() < 0.5
    assert np.ptp(points[:, 0]) > 9.0


def test_refined_landmarks_by_plain_steps() -> None:
    rows = np.random.default_rng(7).normal(size=(60, 3))
    chosen, points = refine_landmarks(rows, 25, np.random.default_rng(1))
    expected = rows[chosen]
    for _ in range(landmark_search.REFINEMENTS):
        labels = cdist(rows, expected).argmin(axis=1)
        for landmark in range(25):
            if np.any(labels == landmark):
                expected[landmark] = rows[labels == landmark].mean(axis=0)
    assert 1 in np.bincount(labels, minlength=25)
    np.testing.assert_allclose(points, expected, atol=1e-12)


def test_reduced_affinity_by_matrices() -> None:
    rows, _ = random_rows(60, 12, 4)
    rng = np.random.default_rng(1)
    factors, columns = rng.random(60) + 0.1, rng.random(12) + 0.1
    index = rows.index.astype(np.int32)
    index[:5, 1] = -1
    dense = np.zeros((60, 13))
    np.put_along_axis(dense, index, 1.0, axis=1)
    dense = factors[:, None] * dense[:, :12] * columns
    expected = dense.T @ np.diag(1.0 / dense.sum(axis=1)) @ dense
    shares = factors**2 / dense.sum(axis=1)
    halves = sum_shared_weights(
        [(index[:25], shares[:25]), (index[25:], shares[25:])], 12
    )
    affinity = small_side_affinity(halves, columns)
    np.testing.assert_allclose(affinity, expected, atol=1e-12)


def test_reduced_graph_by_matrices() -> None:
    rows, dense = random_rows(60, 12, 4)
    expected = dense.T @ np.diag(1.0 / dense.sum(axis=1)) @ dense
    halves = [
        BipartiteRows(rows.index[:25], rows.weights[:25]),
        BipartiteRows(rows.index[25:], rows.weights[25:]),
    ]
    graph = small_side_graph(halves, 12)
    np.fill_diagonal(expected, 0.0)
    np.testing.assert_allclose(graph.toarray(), expected, atol=1e-12)
    assert graph.has_canonical_format


def test_a_landmark_that_shares_no_rows_is_a_cluster_of_its_own() -> None:
    index = np.array([[0, 1], [1, 0], [2, 2], [2, 2]], dtype=np.uint16)
    rows = BipartiteRows(index, np.ones((4, 2)))
    graph = small_side_graph([rows], 4)
    assert graph.diagonal().tolist() == [0.0, 0.0, 4.0, 0.0]
    vectors = small_side_vectors(graph[:3, :3], 2, np.random.default_rng(0))
    embedded = embed_rows(rows, vectors)
    np.testing.assert_allclose(np.linalg.norm(embedded, axis=1), 1.0)
    np.testing.assert_allclose(embedded[:2] @ embedded[2:].T, 0.0, atol=1e-12)


@pytest.mark.parametrize("full", [True, False])
def test_columns_without_ties_stay_at_the_origin(full: bool) -> None:
    affinity = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 0.0]])
    given = affinity if full else sparse.csr_array(affinity)
    vectors = small_side_vectors(given, 3, np.random.default_rng(0))
    assert vectors[:2].any(axis=1).all()
    assert not vectors[2].any()


def test_a_row_is_tied_as_if_it_were_alone() -> None:
    """Products of many rows round otherwise than those of one, and ties tell."""
    rng = np.random.default_rng(8)
    points = (rng.integers(0, 2, size=(300, 12)) + 0.1).astype(np.float32)
    rows = (rng.integers(0, 2, size=(500, 12)) + 0.1).astype(np.float32)
    index = index_landmarks(points, rng)
    found, squared = nearest_landmarks(rows, index, 6)
    exact = np.round(((rows[:, None].astype(float) - points) ** 2).sum(axis=2), 5)
    expected = np.argsort(exact, axis=1, kind="stable")[:, :6]
    np.testing.assert_array_equal(found, expected)
    for row in (0, 17, 499):
        alone = nearest_landmarks(rows[[row]], index, 6)
        np.testing.assert_array_equal(alone[0][0], found[row])
        np.testing.assert_array_equal(alone[1][0], squared[row])


def test_the_cut_in_blocks_is_the_cut_of_the_whole_graph() -> None:
    rows, dense = random_rows(80, 15, 5, seed=2)
    whole = transfer_cut(sparse.csr_array(dense), 4, np.random.default_rng(0))
    affinity = dense.T @ (dense / dense.sum(axis=1, keepdims=True))
    vectors = small_side_vectors(affinity, 4, np.random.default_rng(0))
    parts = embed_rows(rows, vectors)
    # The basis is free, the products are not.
    np.testing.assert_allclose(parts @ parts.T, whole @ whole.T, atol=1e-6)
    centers = parts[:3]
    expected = ((parts[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(assign_rows(rows, vectors, centers), expected)
    np.testing.assert_array_equal(nearest_centers(parts, centers), expected)


@pytest.mark.parametrize("n_columns", [40, 400])
def test_vectors_of_a_sparse_graph_are_those_of_the_full_matrix(n_columns: int) -> None:
    rows, _ = random_rows(4 * n_columns, n_columns, 4)
    graph = small_side_graph([rows], n_columns)
    found = small_side_vectors(graph, 3, np.random.default_rng(0))
    full = small_side_vectors(graph.toarray(), 3, np.random.default_rng(0))
    a, b = (np.linalg.qr(vectors)[0] for vectors in (found, full))
    np.testing.assert_allclose(np.linalg.svd(a.T @ b)[1], 1.0, atol=1e-3)


def test_numbers_of_landmarks_and_clusters() -> None:
    sizes = 4, 100, 5000, 10**4, 10**6, 10**8
    plans = [Plan(n, 8, entropy=0, base="landmark") for n in sizes]
    counts = [plan.n_landmarks for plan in plans]
    assert counts == sorted(counts)
    assert counts[0] == 4
    assert counts[-1] < 2**16
    assert base_n_clusters_bounds(400, "landmark") == (2, 20)
    assert base_n_clusters_bounds(10**8, "landmark") == (2, 100)


def test_the_pool_is_drawn_once_and_in_order() -> None:
    def pool(n_samples: int, entropy: int) -> np.ndarray:
        return pool_rows(Plan(n_samples, 4, entropy=entropy, base="landmark"))

    np.testing.assert_array_equal(pool(10, 3), np.arange(10))
    drawn = pool(200_000, 3)
    assert np.all(np.diff(drawn) > 0)
    np.testing.assert_array_equal(drawn, pool(200_000, 3))
    assert not np.array_equal(drawn, pool(200_000, 4))


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("kernel", KERNELS)
def test_clear_groups_are_found(kernel: str) -> None:
    X, y = blobs()
    ensemble = generate_ensemble(X, kernel=kernel, **SETTINGS)
    assert adjusted_rand_score(y, bipartite(ensemble, 5, random_state=0)) > 0.95


def test_landmarks_up_to_a_number_are_all_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(landmark_search, "SEARCHED_WHOLE", 200)
    monkeypatch.setattr(landmark_search, "N_CELLS", 20)
    monkeypatch.setattr(landmark_search, "AROUND_CELL", 80)
    points = np.random.default_rng(0).normal(size=(201, 3))
    for size, n_cells in ((199, 0), (200, 0), (201, 20)):
        index = index_landmarks(points[:size], np.random.default_rng(0))
        assert len(index.around) == n_cells


@pytest.mark.usefixtures("small_blocks")
def test_clear_groups_are_found_with_few_of_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mdec.ensemble.draws.MAX_LANDMARKS", 400)
    monkeypatch.setattr(landmark_search, "SEARCHED_WHOLE", 200)
    monkeypatch.setattr(landmark_search, "N_CELLS", 20)
    monkeypatch.setattr(landmark_search, "AROUND_CELL", 80)
    X, y = blobs(1500)
    model = MDEC(5, consensus="bipartite", **SETTINGS).fit(X[:1200])
    assert model.ensemble_.parameters["n_landmarks"] == 400
    assert adjusted_rand_score(y[:1200], model.labels_) > 0.95
    assert adjusted_rand_score(y[1200:], model.predict(X[1200:])) > 0.95
    again = generate_ensemble(X[:1200], n_jobs=2, **SETTINGS)
    np.testing.assert_array_equal(model.ensemble_.labels, again.labels)


@pytest.mark.usefixtures("small_blocks")
def test_jobs_prefix_and_backends() -> None:
    X, _ = blobs()
    expected = generate_ensemble(X, **SETTINGS)
    for settings in ({"n_jobs": 2}, {"ensemble_size": 2}):
        made = generate_ensemble(X, **{**SETTINGS, **settings})
        np.testing.assert_array_equal(made.labels, expected.labels[:, : len(made)])
    assert expected.members[1].n_clusters == made.members[1].n_clusters


def test_scale_and_offset_of_the_data_do_not_matter() -> None:
    X, _ = blobs()
    expected = generate_ensemble(X, **SETTINGS)
    moved = generate_ensemble(1e6 * X + 3e6, **SETTINGS)
    for m in range(len(expected)):
        agreement = adjusted_rand_score(expected.labels[:, m], moved.labels[:, m])
        assert agreement > 0.98


def test_copies_of_rows() -> None:
    X, y = blobs(300)
    X, y = np.repeat(X, 4, axis=0), np.repeat(y, 4)
    ensemble = generate_ensemble(X, **SETTINGS)
    assert not ensemble.failures
    labels = bipartite(ensemble, 5, random_state=0)
    assert np.all(labels.reshape(-1, 4) == labels[::4, None])
    assert adjusted_rand_score(y, labels) > 0.95


def test_no_two_landmarks_stand_at_one_place() -> None:
    X, _ = blobs(300)
    X = np.concatenate([X, np.tile(X[:1], (300, 1)), np.tile(X[7:8], (200, 1))])
    shared = generate_ensemble(X, **SETTINGS).plan
    found, _, ties = fit_landmarks(X, shared.member(0), shared)
    points = found.index.points
    assert len(np.unique(points, axis=0)) == len(points) <= 300
    assert np.unique(ties.index[0]).size == ties.index.shape[1]


def test_auto_picks_by_the_number_of_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = blobs(200)
    model = MDEC(3, ensemble_size=2, base="auto", random_state=0).fit(X)
    assert model.base_ == model.ensemble_.parameters["base"] == "graph"
    monkeypatch.setattr(generation, "AUTO_SAMPLES", 100)
    model.fit(X)
    assert model.base_ == model.ensemble_.parameters["base"] == "landmark"
    assert model.ensemble_.parameters["n_landmarks"] == 200


def test_graphs_stay_the_default() -> None:
    X, _ = blobs(150)
    plain = generate_ensemble(X, ensemble_size=3, random_state=1)
    named = generate_ensemble(X, ensemble_size=3, random_state=1, base="graph")
    np.testing.assert_array_equal(plain.labels, named.labels)
    assert plain.parameters["base"] == "graph"


def test_bad_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = blobs(100)
    monkeypatch.setattr(draws, "MAX_LANDMARKS", 50)
    with pytest.raises(ValueError, match="base='tree' is not one of"):
        generate_ensemble(X, base="tree")
    with pytest.raises(ValueError, match="more clusters than the 50 landmarks"):
        generate_ensemble(X, base="landmark", base_n_clusters_range=(2, 60))


@pytest.mark.usefixtures("small_blocks")
def test_the_estimator_with_landmarks() -> None:
    X, y = blobs()
    model = MDEC(5, consensus="bipartite", **SETTINGS).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    assert model.confidence_.shape == (len(X),)
    assert model.confidence_[model.labels_ == model.labels_[0]].mean() > 0.6
    held = model.confidence_ > 0.6
    assert np.mean(model.predict(X)[held] == model.labels_[held]) > 0.99
    for consensus in ("hierarchical", "spectral"):
        assert adjusted_rand_score(y, model.recluster(consensus=consensus)) > 0.9


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("consensus", ["hierarchical", "bipartite"])
def test_new_rows_join_clusters_as_with_graphs(consensus: str) -> None:
    # Spread so far that the two ways of weighing differ for some rows.
    X, _ = blobs(1500, spread=6.0)
    model = MDEC(5, consensus=consensus, **SETTINGS).fit(X[:500])
    ensemble, weights = model.ensemble_, model.cluster_weights_
    base = predict_base_clusters(X[500:], model.clustering_.rows[0])
    over = ensemble, ensemble.split(model.labels_), weights
    profiles = sum_profiles(*over, 5)
    by_degree = consensus != "hierarchical"

    def placed(*, by_degree: bool) -> np.ndarray:
        means = profiles.means(by_degree=by_degree)
        return nearest_profiles(base, ensemble.offsets, means, weights)

    expected = placed(by_degree=by_degree)
    np.testing.assert_array_equal(model.predict(X[500:]), expected)
    other = placed(by_degree=not by_degree)
    assert not np.array_equal(expected, other)


@pytest.mark.slow
def test_the_number_of_clusters_is_suggested() -> None:
    X, _ = blobs(400)
    assert MDEC("auto", **SETTINGS).fit(X).n_clusters_ == 5


@pytest.mark.usefixtures("small_blocks")
def test_confidence_in_blocks_is_that_of_the_whole() -> None:
    from mdec.confidence import confidence, item_consensus

    X, _ = blobs()
    model = MDEC(5, consensus="bipartite", **SETTINGS).fit(X)
    association = item_consensus(model.ensemble_, model.labels_, model.cluster_weights_)
    np.testing.assert_allclose(
        model.confidence_, confidence(association, model.labels_), atol=1e-12
    )


def test_a_stopped_run_goes_on(tmp_path: Path) -> None:
    X, _ = blobs(400)
    expected = generate_ensemble(X, **SETTINGS)

    def stop(done: int, total: int) -> None:  # noqa: ARG001
        if done == 2:
            raise KeyboardInterrupt

    folder = tmp_path / "kept"
    with pytest.raises(KeyboardInterrupt):
        generate_ensemble(X, checkpoint=folder, progress=stop, **SETTINGS)
    assert 2 <= len(list(folder.glob("member-*.npz"))) < 4
    made = generate_ensemble(X, checkpoint=folder, **SETTINGS)
    np.testing.assert_array_equal(made.labels, expected.labels)
    with pytest.raises(ValueError, match="other settings"):
        generate_ensemble(X + 1.0, checkpoint=folder, **SETTINGS)


def test_saved_and_loaded(tmp_path: Path) -> None:
    X, _ = blobs(300)
    ensemble = generate_ensemble(X, **SETTINGS)
    ensemble.save(tmp_path / "e.npz")
    loaded = Ensemble.load(tmp_path / "e.npz")
    np.testing.assert_array_equal(loaded.labels, ensemble.labels)
    assert loaded.parameters["base"] == "landmark"


def noisy_ensemble(n_samples: int, n_members: int) -> tuple[Ensemble, np.ndarray]:
    rng = np.random.default_rng(6)
    y = rng.integers(4, size=n_samples)
    columns = []
    for _ in range(n_members):
        labels = 3 * y + rng.integers(3, size=n_samples)
        noisy = rng.random(n_samples) < 0.1
        labels[noisy] = rng.integers(12, size=int(noisy.sum()))
        columns.append(labels)
    return Ensemble.from_labels(np.stack(columns, axis=1)), y


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("consensus", [spectral, bipartite])
def test_consensus_in_blocks(consensus: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ensemble, y = noisy_ensemble(1000, 8)
    whole = consensus(ensemble, 4, random_state=0)
    monkeypatch.setattr(graph_cuts, "BLOCKED_SAMPLES", 500)
    parts = consensus(ensemble, 4, random_state=0)
    assert adjusted_rand_score(whole, parts) > 0.98
    assert adjusted_rand_score(y, parts) > 0.9
    _, first = np.unique(parts, return_index=True)
    assert np.all(np.diff(first) > 0)


def test_weights_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    class Elsewhere(Ensemble):
        """Counts for many members at once, as on a cluster."""

        executor = type("Other", (Executor,), dict(vars(LocalExecutor)))()

    ensemble, _ = noisy_ensemble(1000, 5)
    whole = ensemble_driven_cluster_index(ensemble)
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 128)
    assert len(ensemble.parts) > 4
    np.testing.assert_array_equal(ensemble_driven_cluster_index(ensemble), whole)
    there = Elsewhere(ensemble.labels)
    np.testing.assert_array_equal(ensemble_driven_cluster_index(there), whole)


def test_regions_have_exact_means() -> None:
    from mdec.coassociation import coassociation_factor

    ensemble, _ = noisy_ensemble(200, 6)
    weights = ensemble_driven_cluster_index(ensemble)
    regions = np.random.default_rng(1).integers(7, size=200).astype(np.int32)
    similarities, sizes = dendrogram.region_similarities(ensemble, weights, regions)
    factor = coassociation_factor(ensemble, weights)
    A = (factor @ factor.T).toarray()
    expected = [
        [A[np.ix_(regions == r, regions == s)].mean() for s in range(7)]
        for r in range(7)
    ]
    np.testing.assert_allclose(similarities, expected, atol=1e-12)
    np.testing.assert_array_equal(sizes, np.bincount(regions))


def test_hierarchical_from_regions(monkeypatch: pytest.MonkeyPatch) -> None:
    ensemble, y = noisy_ensemble(1200, 10)
    exact = hierarchical(ensemble, 4)
    monkeypatch.setattr(dendrogram, "LINKED_SAMPLES", 500)
    monkeypatch.setattr(graph_cuts, "REGIONS", 150)
    linked = hierarchical(ensemble, 4, random_state=0)
    assert adjusted_rand_score(exact, linked) > 0.95
    assert adjusted_rand_score(y, linked) > 0.95
    with pytest.raises(ValueError, match="use consensus='bipartite'"):
        hierarchical(ensemble, 400, random_state=0)


def test_spectral_of_a_landmark_ensemble() -> None:
    X, y = blobs(500)
    ensemble = generate_ensemble(X, **SETTINGS)
    assert adjusted_rand_score(y, spectral(ensemble, 5, random_state=0)) > 0.95


def test_drawn_rows_and_landmarks_follow_from_the_seed() -> None:
    X, _ = blobs(400)
    shared = generate_ensemble(X, **SETTINGS).plan
    member = Member(1, 0, 8, 0.5, 4)
    first = fit_landmarks(X, member, shared)
    again = fit_landmarks(X, member, shared)
    np.testing.assert_array_equal(first[0].index.points, again[0].index.points)
    np.testing.assert_array_equal(first[1], again[1])
