"""The GPU's steps against the CPU's, on PyTorch's CPU device and on a GPU if any."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score

from mdec import MDEC, Ensemble, clustering, generate_ensemble, generation
from mdec._support.optional import MissingPackageError
from mdec.base.graphs import similarity_graph
from mdec.base.kernels import ANGULAR, KERNELS, angular_coordinates
from mdec.base.members import DrawnRows, member_similarity, spectral_embedding
from mdec.confidence import confidence, item_consensus, sum_profiles
from mdec.consensus import CONSENSUS, graph_cuts, hierarchical
from mdec.consensus.dendrogram import merges
from mdec.consensus.graph_cuts import bipartite_graph, coassociation_embedding
from mdec.consensus.partitions import gram_on_device
from mdec.ensemble import draws
from mdec.ensemble.plan import Member, Plan
from mdec.numerics import landmark_search
from mdec.numerics.affinity import normalized_affinity, unit_rows
from mdec.numerics.eigen import block_width, leading_eigenvectors
from mdec.numerics.loops import kmeans as loops
from mdec.numerics.sparse_rows import group_means
from mdec.numerics.transfer import (
    BipartiteRows,
    nearest_centers,
    small_side_graph,
    transfer_cut,
)
from mdec.prediction import base_clusters, predict_base_clusters
from mdec.preparation.recipes import Versions
from mdec.rows import blocks, open_rows
from mdec.rows.blocks import as_rows
from mdec.weights import ensemble_driven_cluster_index

torch = pytest.importorskip("torch", reason="needs PyTorch, the extra 'gpu'")

from mdec.engines import gpu, tensors  # noqa: E402
from mdec.engines.tensors import (  # noqa: E402
    consensus,
    fused,
    graphs,
    kmeans,
    landmarks,
    members,
    neighbors,
)
from mdec.engines.tensors import device as devices  # noqa: E402

needs_gpu = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="needs an NVIDIA GPU"
)


@pytest.fixture(params=["torch", pytest.param("cuda", marks=needs_gpu)])
def device(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def place(device: str) -> torch.device:
    return tensors.find_device(device)


def blobs(n_samples: int, n_features: int, seed: int, n_groups: int = 6) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = rng.normal(scale=3.0, size=(n_groups, n_features))
    group = rng.integers(n_groups, size=n_samples)
    return centres[group] + rng.normal(size=(n_samples, n_features))


def drawn_with(k: int, mu: float) -> Member:
    return Member(0, 0, k, mu, n_clusters=2)


def graph_of(
    X: np.ndarray, kernel: str, k: int, mu: float, place: torch.device, tile: int
) -> sparse.csr_array:
    rows = angular_coordinates(X, kernel) if kernel in ANGULAR else X
    listed = neighbors.list_neighbors(
        torch.from_numpy(rows[None]).to(place),
        kernel,
        [drawn_with(k, mu)],
        dtype=torch.float64 if len(X) <= 1000 else torch.float32,
        tile=tile,
        limit=10**6,
    )
    return as_scipy(graphs.join_graph([listed], len(X)))


def as_scipy(graph: graphs.BatchGraph) -> sparse.csr_array:
    arrays = [each.cpu().numpy() for each in (graph.data, graph.indices, graph.indptr)]
    side = graph.n_members * graph.order
    return sparse.csr_array(tuple(arrays), shape=(side, side))


def batch_of(
    matrices: list[sparse.csr_array], place: torch.device
) -> graphs.BatchGraph:
    joined = sparse.block_diag(matrices, format="csr")
    joined.sort_indices()
    return graphs.BatchGraph(
        torch.from_numpy(joined.indptr.astype(np.int32)).to(place),
        torch.from_numpy(joined.indices.astype(np.int32)).to(place),
        torch.from_numpy(joined.data).to(place),
        len(matrices),
        matrices[0].shape[0],
    )


@pytest.mark.parametrize(
    ("n_columns", "count"), [(7, 3), (100, 1), (1000, 20), (5003, 28), (64, 64)]
)
def test_smallest_in_rows(n_columns: int, count: int, place: torch.device) -> None:
    block = np.random.default_rng(0).normal(size=(11, n_columns))
    columns = neighbors.smallest_in_rows(torch.from_numpy(block).to(place), count)
    found = np.take_along_axis(block, columns.cpu().numpy(), axis=1)
    expected = np.sort(block, axis=1)[:, :count]
    np.testing.assert_array_equal(np.sort(found, axis=1), expected)


# Ranks tie so often that only the similarities of Spearman's neighbours are the same.
@pytest.mark.parametrize("kernel", [each for each in KERNELS if each != "spearman"])
@pytest.mark.parametrize("n_samples", [60, 1200])
def test_graphs_are_those_of_the_cpu(
    kernel: str, n_samples: int, place: torch.device
) -> None:
    X = blobs(n_samples, 12, 1)
    for k, mu, tile in ((5, 0.2, 10**6), (20, 0.7, 97)):
        here = similarity_graph(X, kernel, k, mu)
        there = graph_of(X, kernel, k, mu, place, tile)
        np.testing.assert_array_equal(there.indptr, here.indptr)
        np.testing.assert_array_equal(there.indices, here.indices)
        np.testing.assert_allclose(there.data, here.data, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kernel", ["scaled_gaussian", "scaled_exponential"])
@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_graphs_of_short_numbers_have_the_digits_of_the_cpu(
    kernel: str, dtype: Any, place: torch.device
) -> None:
    X = (10.0 * blobs(1200, 12, 1) + 100.0).clip(0.0, 255.0).astype(dtype)
    here = similarity_graph(X, kernel, 10, 0.1)
    there = graph_of(X, kernel, 10, 0.1, place, 97)
    np.testing.assert_array_equal(there.indices, here.indices)
    np.testing.assert_allclose(there.data, here.data, rtol=1e-12)


@pytest.mark.parametrize("kernel", [each for each in KERNELS if each != "spearman"])
def test_members_do_not_disturb_each_other(kernel: str, place: torch.device) -> None:
    """Among them one of copies, and one that float32 does not do justice to."""
    subspaces = [blobs(300, 12, seed) for seed in range(4)]
    subspaces[1] = np.ones_like(subspaces[1]) if kernel not in ANGULAR else subspaces[1]
    subspaces[2] = 1e-3 * subspaces[2] + 1e4 * (np.arange(300) % 2)[:, None]
    if kernel in ANGULAR:
        subspaces = [angular_coordinates(each, kernel) for each in subspaces]
    pairs = [(5, 0.2), (9, 0.3), (20, 0.7), (3, 0.8)]
    drawn = [drawn_with(*each) for each in pairs]
    how = {"dtype": torch.float32, "tile": 64, "limit": 10**5}
    together = neighbors.list_neighbors(
        torch.from_numpy(np.stack(subspaces)).to(place), kernel, drawn, **how
    )
    for member, rows in enumerate(subspaces):
        alone = neighbors.list_neighbors(
            torch.from_numpy(rows[None]).to(place), kernel, [drawn[member]], **how
        )
        if member == 1 and kernel not in ANGULAR:
            assert "copies" in str(alone.errors[0])
            assert str(together.errors[member]) == str(alone.errors[0])
            assert not together.similarity[member].any()
            continue
        assert member not in together.errors
        k = drawn[member].n_neighbors
        near, own = (each.columns.cpu() for each in (together, alone))
        np.testing.assert_array_equal(near[member, :, :k], own[0, :, :k])
        near, own = (each.similarity.cpu() for each in (together, alone))
        np.testing.assert_allclose(near[member, :, :k], own[0, :, :k], rtol=1e-12)
        assert not near[member, :, k:].any()


def test_neighbours_by_rank_are_as_similar_as_any(place: torch.device) -> None:
    rows = angular_coordinates(blobs(70, 9, 1), "spearman")
    listed = neighbors.list_neighbors(
        torch.from_numpy(rows[None]).to(place),
        "spearman",
        [drawn_with(6, 0.5)],
        dtype=torch.float64,
        tile=100,
        limit=10**6,
    )
    products = rows @ rows.T
    np.fill_diagonal(products, -np.inf)
    largest = np.maximum(np.sort(products, axis=1)[:, :-7:-1], 0.0)
    np.testing.assert_allclose(listed.similarity[0].cpu(), largest, atol=1e-12)


def test_graphs_of_tight_groups_far_apart(place: torch.device) -> None:
    rng = np.random.default_rng(0)
    X = np.repeat([[0.0], [1e4]], 600, axis=0) + rng.normal(scale=1e-2, size=(1200, 8))
    here = similarity_graph(X, "scaled_gaussian", 7, 0.5)
    there = graph_of(X, "scaled_gaussian", 7, 0.5, place, 200)
    np.testing.assert_array_equal(there.indices, here.indices)


def test_copies_go_to_the_first(place: torch.device) -> None:
    X = blobs(40, 5, 3)
    X[10:14] = X[3]
    here = similarity_graph(X, "scaled_gaussian", 6, 0.4)
    there = graph_of(X, "scaled_gaussian", 6, 0.4, place, 1000)
    np.testing.assert_array_equal(there.indices, here.indices)
    np.testing.assert_allclose(there.data, here.data, rtol=1e-9)


def tied(rng: np.random.Generator, n_samples: int) -> np.ndarray:
    return rng.integers(0, 3, size=(n_samples, 6)).astype(float)


def binary(rng: np.random.Generator, n_samples: int) -> np.ndarray:
    return rng.integers(0, 2, size=(n_samples, 40)).astype(float)


def copied(rng: np.random.Generator, n_samples: int) -> np.ndarray:
    X = rng.normal(size=(n_samples, 6))
    X[n_samples // 2 :] = X[: n_samples - n_samples // 2]
    X[: n_samples // 5] = X[0]
    return X


def with_an_outlier(rng: np.random.Generator, n_samples: int) -> np.ndarray:
    X = rng.normal(size=(n_samples, 6))
    X[-1] = 1e20
    return X


def simplex(rng: np.random.Generator, n_samples: int) -> np.ndarray:
    X = np.eye(n_samples)[:, : n_samples // 2]
    return X + 1e-6 * rng.normal(size=X.shape)


# Spearman's ranks tie too often for a sum of other order to be the same.
@pytest.mark.parametrize("kernel", ["scaled_gaussian", "scaled_exponential"])
@pytest.mark.parametrize("shape", [tied, binary, copied, with_an_outlier, simplex])
@pytest.mark.parametrize("n_samples", [1002, 1101])
def test_ties_go_to_the_first_as_on_the_cpu(
    kernel: str, shape: object, n_samples: int, place: torch.device
) -> None:
    """Samples at the same distance, in even and odd numbers, and hardly any other."""
    X = shape(np.random.default_rng(n_samples), n_samples)
    here = similarity_graph(X, kernel, 7, 0.5)
    there = graph_of(X, kernel, 7, 0.5, place, 300)
    np.testing.assert_array_equal(there.indptr, here.indptr)
    np.testing.assert_array_equal(there.indices, here.indices)
    np.testing.assert_allclose(there.data, here.data, rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-170, 1e170])
def test_members_do_not_depend_on_the_scale(scale: float, device: str) -> None:
    X = blobs(150, 12, 7)
    settings = {"ensemble_size": 4, "random_state": 0, "device": device}
    np.testing.assert_array_equal(
        generate_ensemble(scale * X, **settings).labels,
        generate_ensemble(X, **settings).labels,
    )


def test_linkage_of_equals_is_that_of_the_cpu(device: str) -> None:
    labels = np.random.default_rng(0).integers(0, 4, size=(500, 9))
    ensemble = Ensemble.from_labels(labels)
    weights = np.ones(ensemble.n_base_clusters)
    expected, _ = merges(ensemble, weights)
    np.testing.assert_array_equal(merges(ensemble, weights, device)[0], expected)


def test_without_a_compiler_there_is_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("Failed to find C compiler")

    monkeypatch.setattr(fused, "pair_squares", fail)
    fused.compiles.cache_clear()
    with pytest.warns(RuntimeWarning, match=r"install a C compiler.*Failed to find"):
        assert not fused.compiles(torch.device("cpu"))
    fused.compiles.cache_clear()


def several_graphs() -> list[sparse.csr_array]:
    separate = np.vstack([blobs(80, 4, 0), blobs(80, 4, 1) + 100.0])
    return [
        similarity_graph(X, "scaled_gaussian", k, 0.5)
        for X, k in ((blobs(160, 6, 2), 6), (separate, 9), (blobs(160, 9, 4), 15))
    ]


def test_batches_multiply_and_fall_apart_as_scipy_says(place: torch.device) -> None:
    matrices = several_graphs()
    batch = batch_of(matrices, place)
    block = np.random.default_rng(0).normal(size=(3, 160, 5))
    image = batch(torch.from_numpy(block).to(place)).cpu().numpy()
    for matrix, x, y in zip(matrices, block, image, strict=True):
        np.testing.assert_allclose(y, matrix @ x, rtol=1e-12)
    found = batch.components().cpu().numpy()
    for matrix, mine in zip(matrices, found, strict=True):
        theirs = connected_components(matrix, directed=False)[1]
        assert adjusted_rand_score(theirs, mine) == 1.0
        assert len(np.unique(mine)) == theirs.max() + 1
    part = as_scipy(batch.members([2, 0])).toarray()
    expected = sparse.block_diag([matrices[2], matrices[0]]).toarray()
    np.testing.assert_array_equal(part, expected)


def test_normalised_graphs(place: torch.device) -> None:
    matrices = several_graphs()
    there = as_scipy(graphs.normalized_graph(batch_of(matrices, place)))
    here = sparse.block_diag([normalized_affinity(each) for each in matrices])
    np.testing.assert_allclose(there.toarray(), here.toarray(), rtol=1e-12)


def test_eigenvectors_are_those_of_the_cpu(place: torch.device) -> None:
    matrices = [normalized_affinity(each) for each in several_graphs()]
    wanted = [5, 12, 8]
    widths = [block_width(n, 160) for n in wanted]
    batch = batch_of(matrices, place)
    single = replace(batch, data=batch.data.float())
    block = torch.zeros((3, 160, max(widths)), device=place)
    for member, width in enumerate(widths):
        start = np.random.default_rng(member).standard_normal((160, width))
        block[member, :, :width] = torch.from_numpy(start)
    known = torch.zeros((3, 160, 1), device=place)
    found = graphs.iterated_leading(single, block, known, widths, wanted, 1e-3).cpu()
    for member, (matrix, n) in enumerate(zip(matrices, wanted, strict=True)):
        _, vectors = leading_eigenvectors(
            matrix.dot, 160, n, np.random.default_rng(member), dtype=np.float32
        )
        mine = found[member, :, :n].numpy()
        np.testing.assert_allclose(mine @ mine.T, vectors @ vectors.T, atol=2e-4)
        assert not found[member, :, n:].any()


def test_dependent_vectors_still_get_a_basis(place: torch.device) -> None:
    block = torch.randn(2, 50, 6, generator=torch.Generator().manual_seed(0)).to(place)
    block[0, :, 3] = block[0, :, 2]
    block[1, :, 4:] = 0.0
    basis = graphs.orthonormal(block, np.array([6, 4])).cpu()
    gram = (basis.mT @ basis).numpy()
    np.testing.assert_allclose(gram[0], np.eye(6), atol=1e-5)
    np.testing.assert_allclose(gram[1], np.diag([1, 1, 1, 1, 0, 0]), atol=1e-5)


def test_a_block_with_an_empty_vector_leaves_the_others_alone(
    place: torch.device,
) -> None:
    block = torch.randn(2, 50, 6, generator=torch.Generator().manual_seed(0)).to(place)
    block[0, :, 3] = 0.0
    basis = graphs.orthonormal(block, np.array([6, 6])).cpu()
    kept = np.ones((2, 6))
    kept[0, 3] = 0.0
    for gram, own in zip((basis.mT @ basis).numpy(), kept, strict=True):
        np.testing.assert_allclose(gram, np.diag(own), atol=1e-5)


@needs_gpu
def test_embeddings_have_the_digits_of_the_cpu() -> None:
    # Without groups the first vectors that are left out are nearly as good.
    X = np.random.default_rng(0).normal(size=(1500, 12))
    plan = Plan(*X.shape, entropy=0, device="cuda")
    member, place = plan.member(0), tensors.find_device("cuda")
    W = member_similarity(X, member, plan)
    here = spectral_embedding(W, member.n_clusters, plan.stream(member, "solver"))
    data = tensors.Data.on(Versions(X), place)
    drawn = [DrawnRows.of(data.here, member, plan)]
    lists = members.neighbor_lists(data, drawn, plan, [member], 10**9)
    graph = graphs.join_graph(lists, len(X))
    starts = members.Starts(plan, [member], len(X), place)
    there = unit_rows(members.leading_vectors(graph, plan, [member], starts))
    np.testing.assert_allclose(there[0].cpu(), here, atol=1e-5)


KERNELS_ALONE = """
import numpy as np, torch
from mdec.engines.tensors import clusters, fused
from mdec.numerics.loops import kmeans, vectors
fused.has_kernels = lambda _: True
rng = np.random.default_rng(0)
for width in (16, 80):
    block = rng.normal(size=(2, 150, width)).astype(np.float32)
    matrix = rng.normal(size=(2, width, width)).astype(np.float32)
    turned = fused.multiply(torch.from_numpy(block), torch.from_numpy(matrix))
    for own, m, found in zip(block, matrix, turned.numpy()):
        np.testing.assert_array_equal(found, vectors.multiply(own, m))

for dtype, shape, count in (("f4", (5, 1500), 28), ("f8", (5, 250), 40)):
    rows = rng.normal(size=shape).astype(dtype)
    rows[3], rows[4], rows[:, 7] = np.round(rows[3]), 0.0, np.inf
    found = np.sort(fused.smallest(torch.from_numpy(rows), count).numpy())
    expected = np.argsort(rows, axis=1, kind="stable")[:, :count]
    np.testing.assert_array_equal(found, np.sort(expected))

counts, points = [3, 40], np.zeros((2, 300, 40), dtype=np.float32)
for own, k in zip(points, counts):
    own[:, :k] = rng.normal(size=(300, k)) + 3.0 * np.eye(k)[rng.integers(k, size=300)]
    own /= np.linalg.norm(own, axis=1, keepdims=True)
numbers, uniforms = torch.tensor(counts, dtype=torch.int32), rng.random((2, 2, 40))
there = torch.from_numpy(points)
rounding = [kmeans.rounding_square(own[:, :k]) for own, k in zip(points, counts)]
chosen = clusters.choose_centers(
    there, torch.from_numpy(uniforms), numbers, torch.tensor(rounding)
).long()
begin = there[torch.arange(2)[:, None, None], chosen]
runs = clusters.Lloyd(there, begin, numbers, torch.tensor(rounding))
for _ in range(3):
    runs.step()
for p, k in enumerate(counts):
    own = np.ascontiguousarray(points[p, :, :k])
    for s in range(2):
        begin = kmeans.kmeans_plus_plus(own, uniforms[p, s, :k], rounding[p])
        np.testing.assert_array_equal(own[chosen[p, s, :k]], begin)
        before, after = (x[p, s, :k, :k].numpy() for x in (runs.before, runs.centers))
        label = np.square(own[:, None] - before).sum(axis=2).argmin(axis=1)
        np.testing.assert_array_equal(runs.labels[p, s], label)
        groups = [own[label == c] for c in range(k)]
        means = [
            g.mean(axis=0, dtype="f8") if len(g) else c for g, c in zip(groups, before)
        ]
        np.testing.assert_array_equal(after, np.array(means, dtype="f4"))

# Rows in the middle of centres, but for what float32 adds up to hide; the last feature
# alone tells the centres of a pair apart.
start = rng.normal(size=(1, 1, 20, 20)).astype("f4")
start /= 1.1 * np.linalg.norm(start, axis=3, keepdims=True)
start[..., 1::2, :], start[..., 19] = start[..., ::2, :], 0.3
start[..., 1::2, 19] = -0.3
rows = np.repeat(start[0, 0, ::2], 27, axis=0)
for place, off in enumerate((0.0, 1e-12, 1e-10, 1e-9, 3e-9, 1e-7, 1e-6)):
    rows[2 * place :: 27, 19], rows[2 * place + 1 :: 27, 19] = off, -off
own = [kmeans.rounding_square(rows)]
arrays = rows[None], start, np.array([20], dtype="i4"), np.array(own)
runs = clusters.Lloyd(*map(torch.from_numpy, arrays))
runs.step()
distance = np.square(rows[:, None].astype("f8") - start[0, 0]).sum(axis=2)
nearest = distance.min(axis=1, keepdims=True)
label = (distance <= nearest * (1.0 + kmeans.TIE) + own[0]).argmax(axis=1)
np.testing.assert_array_equal(runs.labels[0, 0], label)
"""


def test_kernels_add_up_as_the_loops_do() -> None:
    pytest.importorskip("triton")
    try:
        int(np.ones(1))
    except TypeError:
        pytest.skip("Triton's interpreter takes arrays for numbers, NumPy no longer")
    # Triton's interpreter runs them on the CPU.
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    subprocess.run([sys.executable, "-c", KERNELS_ALONE], check=True, env=environment)


def test_split_factors_have_the_same_product() -> None:
    # What tensor cores see of a number is its first eleven digits.
    rows = torch.randn(40, 30, generator=torch.Generator().manual_seed(0)) * 1e3
    left, right = (neighbors.split_digits(rows, is_left=is_left) for is_left in (1, 0))
    seen = [
        (each.view(torch.int32) & -(2**13)).view(torch.float32)
        for each in (left, right)
    ]
    found, true = seen[0].double() @ seen[1].double().T, rows.double() @ rows.double().T
    norms = torch.linalg.norm(rows.double(), dim=1)
    assert float(((found - true).abs() / norms[:, None] / norms).max()) < 2.0**-22


def test_kmeans_is_that_of_the_cpu(place: torch.device) -> None:
    rng = np.random.default_rng(0)
    counts = [3, 7, 7]
    points = np.zeros((3, 400, 7), dtype=np.float32)
    for problem, k in enumerate(counts):
        own = blobs(400, k, problem, n_groups=k)
        points[problem, :, :k] = own / np.linalg.norm(own, axis=1, keepdims=True)
    uniforms = rng.random((3, 2, 7))
    there = torch.from_numpy(points).to(place)
    centers = kmeans.kmeans_plus_plus(
        there, torch.from_numpy(uniforms).to(place), counts
    )
    labels, inertia = kmeans.lloyd(there, centers, counts, 100)
    for problem, k in enumerate(counts):
        for start in range(2):
            own = np.ascontiguousarray(points[problem, :, :k])
            rounding = loops.rounding_square(own)
            draws = uniforms[problem, start, :k]
            begin = loops.kmeans_plus_plus(own, draws, rounding)
            mine = centers[problem, start, :k, :k].cpu().numpy()
            np.testing.assert_array_equal(mine, begin)
            expected, total = loops.lloyd(own, begin.copy(), 100, rounding)
            found = labels[problem, start].cpu().numpy()
            np.testing.assert_array_equal(found, expected)
            assert inertia[problem, start].item() == pytest.approx(total, rel=1e-4)


def test_kmeans_fills_empty_clusters(place: torch.device) -> None:
    points = np.random.default_rng(0).normal(size=(1, 50, 4)).astype(np.float32)
    there = torch.from_numpy(points).to(place)
    far = torch.full((1, 1, 4, 4), 1e3, device=place)
    far[0, 0, 0] = 0.0
    labels, _ = kmeans.lloyd(there, far, [4], 100)
    assert sorted(set(labels.flatten().tolist())) == [0, 1, 2, 3]


def test_kmeans_of_few_distinct_points_ends(place: torch.device) -> None:
    points = torch.zeros((1, 30, 4), device=place)
    points[0, 10:] = 1.0
    centers = kmeans.kmeans_plus_plus(
        points, torch.rand((1, 1, 4), dtype=torch.float64, device=place), [4]
    )
    labels, inertia = kmeans.lloyd(points, centers, [4], 100)
    found = labels[0, 0].cpu().numpy()
    assert adjusted_rand_score(np.arange(30) >= 10, found) == 1.0
    assert inertia.item() == pytest.approx(0.0, abs=1e-9)


def noisy_ensemble(n_samples: int, seed: int = 0) -> Ensemble:
    rng = np.random.default_rng(seed)
    truth = rng.integers(6, size=n_samples)
    labels = np.empty((n_samples, 20), dtype=np.int64)
    for member in range(20):
        labels[:, member] = truth * 2 + rng.integers(2, size=n_samples)
        noise = rng.random(n_samples) < 0.2
        labels[noise, member] = rng.integers(12, size=int(noise.sum()))
    labels[: n_samples // 8, 3] = -1
    return Ensemble.from_labels(labels)


def test_weights_are_those_of_the_cpu(device: str) -> None:
    ensemble = noisy_ensemble(300)
    np.testing.assert_allclose(
        ensemble_driven_cluster_index(ensemble, device=device),
        ensemble_driven_cluster_index(ensemble),
        rtol=1e-13,
    )


@pytest.mark.parametrize("complete", [True, False])
def test_profiles_and_confidence_are_those_of_the_cpu(
    complete: bool, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consensus, "_PAIRS", 20_000)
    ensemble = noisy_ensemble(300)
    if complete:
        ensemble = Ensemble.from_labels(np.abs(ensemble.labels))
    weights = ensemble_driven_cluster_index(ensemble)
    labels = np.append(hierarchical(ensemble, 4, weights)[:-1], 4)
    clusters = ensemble.split(labels)
    here, there = (
        sum_profiles(ensemble, clusters, weights, 5, place) for place in ("cpu", device)
    )
    for of in (
        lambda profiles: profiles.sums,
        lambda profiles: profiles.means(by_degree=False),
        lambda profiles: profiles.means(by_degree=True),
        lambda profiles: np.concatenate(profiles.map_blocks(confidence)),
    ):
        np.testing.assert_allclose(of(there), of(here), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        item_consensus(ensemble, labels, weights, device),
        item_consensus(ensemble, labels, weights),
        rtol=1e-9,
        atol=1e-12,
    )


@pytest.mark.parametrize("n_samples", [3, 40, 500])
def test_linkage_is_that_of_the_cpu(n_samples: int, device: str) -> None:
    ensemble = noisy_ensemble(n_samples)
    weights = ensemble_driven_cluster_index(ensemble)
    _, here = merges(ensemble, weights)
    pairs, there = merges(ensemble, weights, device)
    assert pairs.shape == (n_samples - 1, 2)
    np.testing.assert_allclose(np.sort(there), np.sort(here), rtol=1e-12, atol=1e-15)
    for n_clusters in (2, min(6, n_samples), max(2, n_samples // 3)):
        one = hierarchical(ensemble, n_clusters, weights)
        two = hierarchical(ensemble, n_clusters, weights, device=device)
        np.testing.assert_array_equal(one, two)


@pytest.fixture(scope="module")
def digits() -> np.ndarray:
    return load_digits().data[:1100]


def test_ensembles_are_those_of_the_cpu(digits: np.ndarray, device: str) -> None:
    for X in (digits[:120], digits[:260], digits):
        here = generate_ensemble(X, ensemble_size=12, random_state=3)
        there = generate_ensemble(X, ensemble_size=12, random_state=3, device=device)
        assert there.members == here.members
        assert there.parameters["device"] == device
        alike = [
            adjusted_rand_score(a, b) >= 0.99
            for a, b in zip(here.labels.T, there.labels.T, strict=True)
        ]
        assert np.mean(alike) >= 0.9


@pytest.mark.parametrize("kernel", ["scaled_gaussian", ["correlation", "cosine"]])
def test_drawn_preparations_and_samples_are_those_of_the_cpu(
    kernel: Any, device: str
) -> None:
    """Members then differ in the number of their features."""
    X = np.exp(0.3 * blobs(400, 30, 2))
    settings = {
        "kernel": kernel,
        "preparation": "diversified",
        "max_samples": 0.7,
        "base_n_clusters_range": (2, 10),
        "ensemble_size": 8,
        "random_state": 0,
    }
    here = generate_ensemble(X, **settings)
    there = generate_ensemble(X, device=device, **settings)
    assert there.members == here.members
    np.testing.assert_array_equal(there.labels < 0, here.labels < 0)
    assert (there.labels < 0).sum(axis=0).tolist() == [120] * 8
    assert least_agreement(here, there) > 0.99


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_makes_members(kernel: str, device: str) -> None:
    X = blobs(90, 10, 5)
    ensemble = generate_ensemble(
        X, ensemble_size=3, kernel=kernel, random_state=0, device=device
    )
    assert len(ensemble) == 3
    graph = member_similarity(X, ensemble.members[0], ensemble.plan)
    assert graph.shape == (90, 90)


def test_graphs_in_pieces_make_members(device: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.permutation(np.repeat(100.0 * np.eye(8, 20), 25, axis=0))
    X += rng.normal(size=X.shape)
    here = generate_ensemble(
        X, ensemble_size=8, base_n_clusters_range=(2, 20), random_state=1
    )
    there = generate_ensemble(
        X, ensemble_size=8, base_n_clusters_range=(2, 20), random_state=1, device=device
    )
    alike = [
        adjusted_rand_score(a, b)
        for a, b in zip(here.labels.T, there.labels.T, strict=True)
    ]
    assert np.median(alike) == 1.0


def test_a_second_run_and_a_resumed_one_are_the_same(
    tmp_path: object, device: str
) -> None:
    X = blobs(150, 12, 7)
    settings = {"ensemble_size": 9, "random_state": 0, "device": device}
    once = generate_ensemble(X, **settings)
    folder = tmp_path / "kept"
    counts: list[int] = []
    generate_ensemble(
        X,
        checkpoint=folder,
        progress=lambda done, _: counts.append(done),
        **settings,
    )
    assert counts == list(range(1, 10))
    for index in (1, 4, 8):
        (folder / f"member-{index:06d}.npz").unlink()
    again = generate_ensemble(X, checkpoint=folder, **settings)
    np.testing.assert_array_equal(once.labels, again.labels)
    with pytest.raises(ValueError, match="device differ"):
        generate_ensemble(
            X, checkpoint=folder, ensemble_size=9, random_state=0, device="cpu"
        )


def test_failing_members_are_tried_again_and_reported(device: str) -> None:
    X = np.zeros((40, 6))
    X[:, 0] = np.random.default_rng(0).normal(size=40)
    messages = []
    for each in ("cpu", device):
        with pytest.raises(ValueError, match="of 20 base clusterings failed") as caught:
            generate_ensemble(X, ensemble_size=20, random_state=0, device=each)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_the_estimator_passes_the_device_on(digits: np.ndarray, device: str) -> None:
    settings = {"n_clusters": 10, "ensemble_size": 10, "random_state": 0}
    here = MDEC(**settings).fit(digits[:300])
    there = MDEC(device=device, **settings).fit(digits[:300])
    assert adjusted_rand_score(here.labels_, there.labels_) > 0.9
    assert there.confidence_.shape == (300,)
    new = there.predict(digits[300:320])
    assert set(new) <= set(there.labels_)


@pytest.mark.parametrize("precision", ["high", "medium"])
def test_the_users_precision_stays(
    digits: np.ndarray, device: str, precision: str
) -> None:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        generate_ensemble(digits[:200], ensemble_size=2, device=device, random_state=0)
        assert torch.get_float32_matmul_precision() == precision
    finally:
        torch.set_float32_matmul_precision(before)


@pytest.fixture
def few_in_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search few landmarks coarse to fine too, and rows in small blocks."""
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 256)
    for module in (landmarks, landmark_search):
        for name, value in {
            "SEARCHED_WHOLE": 60,
            "N_CELLS": 12,
            "AROUND_CELL": 40,
        }.items():
            monkeypatch.setattr(module, name, value)


def tensor(array: np.ndarray, place: torch.device) -> torch.Tensor:
    return torch.from_numpy(array).to(place)


@pytest.mark.usefixtures("few_in_cells")
@pytest.mark.parametrize("n_landmarks", [50, 300])
@pytest.mark.parametrize("limit", [2000, 10**7])
def test_landmarks_are_those_of_the_cpu(
    n_landmarks: int, limit: int, place: torch.device
) -> None:
    """With copies among the rows, and rows as far from one landmark as from another."""
    X = np.round(blobs(700, 6, 2), 0).astype(np.float32)
    streams = [np.random.default_rng(5) for _ in range(2)]
    here = landmark_search.refine_landmarks(X, n_landmarks, streams[0])
    there = landmarks.refine_landmarks(tensor(X, place), n_landmarks, streams[1], limit)
    np.testing.assert_array_equal(there[0], here[0])
    np.testing.assert_array_equal(there[1].cpu().numpy(), here[1])
    mine = landmark_search.index_landmarks(here[1], streams[0])
    theirs = landmarks.Index.of(there[1], streams[1], limit)
    for count in (1, 7, 45):
        nearest, distances = landmark_search.nearest_landmarks(X, mine, count)
        found = theirs.nearest(tensor(X, place), count, limit)
        np.testing.assert_array_equal(found[0].cpu().numpy(), nearest)
        np.testing.assert_array_equal(found[1].cpu().numpy(), distances)


def test_centres_and_means_are_those_of_the_cpu(place: torch.device) -> None:
    rng = np.random.default_rng(0)
    points = rng.integers(0, 3, size=(500, 4)).astype(np.float32)
    centers = rng.integers(0, 3, size=(30, 4)).astype(np.float32)
    there = tensor(points, place), tensor(centers, place)
    for limit in (100, 10**6):
        labels = landmarks.nearest_centers(*there, limit).cpu().numpy()
        np.testing.assert_array_equal(labels, nearest_centers(points, centers))
    means = kmeans.group_means(there[0], tensor(labels, place), there[1])
    expected = group_means(points, labels, centers)
    np.testing.assert_array_equal(means.cpu().numpy(), expected)


def test_graphs_of_landmarks_are_those_of_the_cpu(place: torch.device) -> None:
    """Some landmarks are tied to nothing, one to rows that no other has."""
    rng = np.random.default_rng(0)
    batch, expected, used = [], [], []
    for n_edges in (3, 1):
        index = np.stack([rng.permutation(18)[:n_edges] for _ in range(80)])
        weights = rng.random((80, n_edges)).astype(np.float32)
        weights[7] = 0.0
        rows = [BipartiteRows(index[p], weights[p]) for p in np.split(np.arange(80), 2)]
        ties = [(tensor(r.index, place), tensor(r.weights, place)) for r in rows]
        batch.append(landmarks.shared_weights(ties, 20))
        expected.append(small_side_graph(rows, 20))
        used.append(np.flatnonzero(expected[-1].sum(axis=1)))
    graph, tied = landmarks.join_landmarks(batch, 20)
    found = as_scipy(graph).toarray()
    for member, (own, one) in enumerate(zip(used, expected, strict=True)):
        np.testing.assert_array_equal(tied[member].cpu().numpy(), own)
        block = found[20 * member : 20 * member + 20, 20 * member : 20 * member + 20]
        inside = one.toarray()[np.ix_(own, own)]
        np.testing.assert_allclose(block[: own.size, : own.size], inside, rtol=1e-12)
        assert not block[own.size :].any()


LANDMARKS = {"base": "landmark", "ensemble_size": 6, "random_state": 0}


def least_agreement(here: Ensemble, there: Ensemble) -> float:
    pairs = zip(here.labels.T, there.labels.T, strict=True)
    return min(adjusted_rand_score(*each) for each in pairs)


@pytest.mark.usefixtures("few_in_cells")
@pytest.mark.parametrize("kernel", KERNELS)
def test_members_by_landmarks_are_those_of_the_cpu(kernel: str, device: str) -> None:
    X = blobs(900, 12, 3)
    settings = LANDMARKS | {"kernel": kernel, "base_n_clusters_range": (2, 12)}
    here = generate_ensemble(X, **settings)
    there = generate_ensemble(X, device=device, **settings)
    assert there.members == here.members
    assert least_agreement(here, there) > 0.99


def test_many_rows_by_landmarks_in_any_blocks(
    tmp_path: Any, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draws, "MAX_LANDMARKS", 400)
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 512)
    X = blobs(2100, 10, 1).astype(np.float32)
    np.save(tmp_path / "rows.npy", X)
    here = generate_ensemble(X, **LANDMARKS)
    there = generate_ensemble(X, device=device, **LANDMARKS)
    assert least_agreement(here, there) > 0.99
    monkeypatch.setattr(tensors, "budget", lambda _: 10**6)
    source = open_rows(tmp_path / "rows.npy")
    read = generate_ensemble(source, device=device, **LANDMARKS)
    assert least_agreement(there, read) > 0.99


@pytest.mark.parametrize("shape", [tied, copied, with_an_outlier])
@pytest.mark.parametrize("scale", [1.0, 2.0**-498, 2.0**498])
def test_copies_and_magnitudes_by_landmarks(
    shape: Any, scale: float, device: str
) -> None:
    X = scale * shape(np.random.default_rng(0), 400)
    here = generate_ensemble(X, **LANDMARKS)
    there = generate_ensemble(X, device=device, **LANDMARKS)
    assert least_agreement(here, there) > 0.99


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"kernel": ["scaled_exponential", "correlation"]},
        {"max_samples": 0.9},
        {"preparation": "diversified"},
        {"base": "landmark"},
        {"base": "landmark", "kernel": "cosine"},
    ],
)
@pytest.mark.parametrize("shape", [np.asarray, np.round])
def test_new_rows_join_the_base_clusters_of_the_cpu(
    settings: dict[str, Any],
    shape: Any,
    device: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rounded, they are as far from one row as from another, and some are copies."""
    monkeypatch.setattr(base_clusters, "DEVICE_PAIRS", 0)
    X = shape(np.exp(0.3 * blobs(380, 10, 1)))
    model = MDEC(4, ensemble_size=4, random_state=0, **settings).fit(X[:300])
    known = model.clustering_.rows[0]
    here = predict_base_clusters(X[300:], replace(known))
    there = predict_base_clusters(X[300:], replace(known), device=device)
    np.testing.assert_array_equal(there, here)


def test_landmarks_that_voted_on_a_device_are_kept(device: str) -> None:
    X = blobs(300, 8, 1)
    settings = {"base": "landmark", "ensemble_size": 3, "random_state": 0}
    model = MDEC(4, device=device, **settings).fit(X[:250])
    first = model.predict(X[250:])
    kept = model.clustering_.rows[0].landmarks
    assert [type(each) for each in kept.values()] == [tensors.VotingLandmarks] * 3
    np.testing.assert_array_equal(model.predict(X[250:]), first)


def test_automatic_device_is_the_gpu_or_the_cpu() -> None:
    expected = "cuda" if torch.cuda.is_available() else "cpu"
    assert gpu.resolve_device("auto") == expected


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_no_gpu_is_one_sentence() -> None:
    with pytest.raises(RuntimeError, match=r"finds none; install .* device='cpu'\.$"):
        generate_ensemble(blobs(20, 4, 0), device="cuda")


def test_unknown_device_is_one_sentence() -> None:
    with pytest.raises(ValueError, match="device='tpu' is not one of cpu, cuda"):
        generate_ensemble(blobs(20, 4, 0), device="tpu")


def test_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(gpu, "find_spec", lambda _: None)
    assert gpu.resolve_device("auto") == "cpu"
    with pytest.raises(MissingPackageError, match="pip install 'torch'"):
        gpu.resolve_device("cuda")


def test_less_memory_is_tried_before_giving_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (10**9, 8 * 10**9))
    tried = []

    def work(n_bytes: int) -> str:
        tried.append(n_bytes)
        if n_bytes > 300:
            raise torch.OutOfMemoryError
        return "done"

    assert devices.with_less_memory(work, 1000, "this") == "done"
    assert tried == [1000, 500, 250]
    with pytest.raises(MemoryError, match=r"this does not fit the 1\.0 of 8\.0 GB"):
        devices.with_less_memory(work, 10**9, "this")


def test_smaller_blocks_change_no_label() -> None:
    X = blobs(200, 8, 9)
    plan = Plan(*X.shape, entropy=0, device="torch")
    data = tensors.Data.on(Versions(X), tensors.find_device("torch"))
    batch = [plan.member(index) for index in range(6)]
    drawn = {each.index: DrawnRows.of(data.here, each, plan) for each in batch}
    large = tensors.cluster_batch(data, drawn, plan, batch, 10**6, 10**9)
    small = tensors.cluster_batch(data, drawn, plan, batch, 10**6, 2 * 10**6)
    for a, b in zip(large, small, strict=True):
        assert adjusted_rand_score(a, b) == 1.0


def test_batches_side_by_side_make_the_same_members(
    digits: np.ndarray, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"ensemble_size": 7, "random_state": 0, "device": device}
    whole = generate_ensemble(digits[:400], **settings)
    monkeypatch.setattr(gpu, "MAX_BATCH", 2)
    apart = generate_ensemble(digits[:400], **settings)
    np.testing.assert_array_equal(whole.labels, apart.labels)


def test_every_device_takes_the_same_base_by_itself(device: str) -> None:
    for n_samples, base in ((20_000, "graph"), (20_001, "landmark")):
        rows = as_rows(np.zeros((n_samples, 2)))
        assert generation.resolve_base("auto", device, rows) == (base, device)


def test_importing_the_package_leaves_pytorch_alone() -> None:
    code = "import sys, mdec; mdec.MDEC(); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@needs_gpu
@pytest.mark.parametrize(
    ("n_samples", "message"),
    [(20_000, "the data of .* GB does not fit"), (3000, "does not fit the .* free")],
)
def test_a_full_card_ends_in_a_sentence(n_samples: int, message: str) -> None:
    torch.cuda.empty_cache()
    allowed = torch.cuda.memory_allocated() + 20 * 2**20
    total = torch.cuda.mem_get_info()[1]
    torch.cuda.set_per_process_memory_fraction(allowed / total)
    try:
        with pytest.raises(MemoryError, match=message):
            generate_ensemble(blobs(n_samples, 200, 0), ensemble_size=2, device="cuda")
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


@needs_gpu
def test_a_small_card_takes_smaller_blocks() -> None:
    X = blobs(3000, 20, 0)
    whole = generate_ensemble(X, ensemble_size=4, random_state=0, device="cuda")
    torch.cuda.empty_cache()
    allowed = torch.cuda.memory_allocated() + 400 * 2**20
    total = torch.cuda.mem_get_info()[1]
    torch.cuda.set_per_process_memory_fraction(allowed / total)
    try:
        parts = generate_ensemble(X, ensemble_size=4, random_state=0, device="cuda")
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    for a, b in zip(whole.labels.T, parts.labels.T, strict=True):
        assert adjusted_rand_score(a, b) > 0.95


@pytest.mark.parametrize("name", ["spectral", "bipartite"])
def test_consensus_on_the_device_is_that_of_the_cpu(name: str, device: str) -> None:
    X = blobs(900, 12, seed=4, n_groups=5)
    ensemble = generate_ensemble(X, ensemble_size=12, random_state=0)
    function = CONSENSUS[name]
    here = function(ensemble, 5, random_state=0)
    np.testing.assert_array_equal(
        function(ensemble, 5, random_state=0, device=device), here
    )


@pytest.mark.parametrize("name", ["spectral", "bipartite"])
@pytest.mark.parametrize("complete", [True, False])
def test_very_many_samples_are_cut_on_the_device_as_here(
    name: str, complete: bool, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_cuts, "BLOCKED_SAMPLES", 100)
    monkeypatch.setattr(graph_cuts, "CENTER_ROWS", 200)
    labels = noisy_ensemble(700).labels.copy()
    if not complete:
        labels[np.random.default_rng(0).random(labels.shape) < 0.3] = -1
    ensemble = Ensemble.from_labels(labels)
    weights = ensemble_driven_cluster_index(ensemble)
    place = tensors.find_device(device)
    rows = tensors.LabelRows(ensemble.labels, ensemble.offsets, weights, place)
    for of_samples in (True, False):
        halves = graph_cuts.halves_of_labels(
            [ensemble.labels], ensemble.offsets, weights, of_samples
        )
        found = rows.halves(of_samples=of_samples)
        np.testing.assert_allclose(found + found.T, halves + halves.T, rtol=1e-12)
    function = CONSENSUS[name]
    here = function(ensemble, 6, random_state=0)
    there = function(ensemble, 6, random_state=0, device=device)
    np.testing.assert_array_equal(there, here)


def test_embeddings_on_the_device_span_the_same(device: str) -> None:
    rng = np.random.default_rng(0)
    ensemble = Ensemble.from_labels(rng.integers(0, 40, size=(700, 20)))
    weights = rng.uniform(0.5, 1.0, ensemble.n_base_clusters)
    graph = bipartite_graph(ensemble, weights)
    gram = gram_on_device(graph.shape[::-1], 6, device)
    assert gram is not None
    pairs = [
        [
            coassociation_embedding(ensemble, 6, weights, np.random.default_rng(1), on)
            for on in ("cpu", device)
        ],
        [
            transfer_cut(graph, 6, np.random.default_rng(1), each)
            for each in (None, gram)
        ],
    ]
    for here, there in pairs:
        np.testing.assert_allclose(there @ there.T, here @ here.T, atol=1e-4)


def test_what_does_not_fit_the_device_is_done_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert gram_on_device((900, 100), 5, "cpu") is None
    assert gram_on_device((100, 900), 5, "torch") is None
    monkeypatch.setattr(tensors, "fits", lambda *_: False)
    assert gram_on_device((900, 100), 5, "torch") is None


def test_what_else_is_on_the_gpu_does_not_decide_who_links(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = torch.device("cuda")
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda *_: (100, 1000))
    monkeypatch.setattr(devices, "free_bytes", lambda _: 100)
    assert not tensors.fits(1000, place)
    assert tensors.fits(90, place)
    with pytest.raises(MemoryError, match=r"of the GPU.*use device='cpu'"):
        tensors.fits(500, place)


def test_weights_and_consensus_are_computed_on_the_device_too(
    digits: np.ndarray, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def note(function: Any, place: int) -> Any:
        def noted(*args: Any, **named: Any) -> Any:
            asked.append(named.get("device") or args[place])
            return function(*args, **named)

        return noted

    weigh, find = clustering.WEIGHTINGS["entropy"], clustering.find_consensus
    monkeypatch.setitem(clustering.WEIGHTINGS, "entropy", note(weigh, 1))
    monkeypatch.setattr(clustering, "find_consensus", note(find, 5))
    model = MDEC(3, ensemble_size=4, random_state=0, device=device).fit(digits[:60])
    assert asked == [device, device]
    model.recluster(2)
    assert asked[2:] == [device]
    monkeypatch.setattr(clustering, "item_consensus", note(item_consensus, 3))
    there = model.fit(digits[:60]).membership_
    assert asked[-1] == device
    here = MDEC(3, ensemble_size=4, random_state=0).fit(digits[:60]).membership_
    np.testing.assert_allclose(there, here, rtol=1e-9, atol=1e-12)
