"""Spectral partitioning: eigenvalues, subspaces and graphs that fall apart."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from scipy import linalg, sparse
from scipy.sparse.csgraph import connected_components
from sklearn.metrics import adjusted_rand_score

from mdec._support.parallel import single_threaded_blas
from mdec.base.graphs import similarity_graph
from mdec.base.members import spectral_embedding, spectral_partition
from mdec.numerics import eigen
from mdec.numerics.affinity import (
    bipartite_components,
    leading_vectors,
    normalized_affinity,
    unit_rows,
)
from mdec.numerics.eigen import leading_eigenvectors


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Cap BLAS as the library does around these functions."""
    with single_threaded_blas():
        yield


def streams(seed: int = 0) -> dict[str, np.random.Generator]:
    return {
        "solver": np.random.default_rng(seed),
        "assign": np.random.default_rng(seed + 1),
    }


def far_blobs(n_samples: int, n_blobs: int = 20) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    y = np.arange(n_samples) % n_blobs
    centers = 1000.0 * np.eye(n_blobs, 25)
    return centers[y] + rng.normal(size=(n_samples, 25)), y


def random_graph(n_samples: int, seed: int, density: float = 0.05) -> sparse.csr_array:
    rng = np.random.default_rng(seed)
    W = sparse.random_array(
        (n_samples, n_samples), density=density, random_state=rng, format="csr"
    )
    W = sparse.csr_array(W.maximum(W.T))
    W.setdiag(0.0)
    W.eliminate_zeros()
    return W


def naive_normalized(W: np.ndarray) -> np.ndarray:
    S = np.zeros_like(W)
    degree = [sum(row) for row in W]
    for i in range(len(W)):
        for j in range(len(W)):
            if W[i, j] > 0.0:
                S[i, j] = W[i, j] / np.sqrt(degree[i]) / np.sqrt(degree[j])
    return S


def test_normalized_affinity_by_double_loop() -> None:
    W = random_graph(30, 0, 0.1)
    np.testing.assert_allclose(
        normalized_affinity(W).toarray(), naive_normalized(W.toarray()), rtol=1e-12
    )


def test_isolated_samples_divide_by_nothing() -> None:
    W = np.zeros((4, 4))
    W[0, 1] = W[1, 0] = 3.0
    S = normalized_affinity(sparse.csr_array(W)).toarray()
    expected = np.zeros((4, 4))
    expected[0, 1] = expected[1, 0] = 1.0
    np.testing.assert_allclose(S, expected)


@pytest.mark.parametrize("n_samples", [200, 3000])
def test_far_blobs_have_a_unit_eigenvalue_each(n_samples: int) -> None:
    X, y = far_blobs(n_samples)
    W = similarity_graph(X, "scaled_gaussian", 5, 0.5)
    n_components, component = connected_components(W, directed=False)
    S = normalized_affinity(W)
    # k neighbours may cut a blob too, never join two.
    assert n_components >= 20
    assert (
        adjusted_rand_score(y, y[np.unique(component, return_index=True)[1]][component])
        == 1.0
    )
    wide = similarity_graph(X, "scaled_gaussian", min(n_samples // 20 - 1, 20), 0.5)
    n_components, component = connected_components(wide, directed=False)
    assert n_components == 20
    S = normalized_affinity(wide)
    degrees = np.asarray(wide.sum(axis=1)).ravel()
    rng = np.random.default_rng(0)
    vectors = leading_vectors(S.dot, degrees, component, 20, rng)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(20), atol=1e-10)
    values = np.linalg.eigvalsh(vectors.T @ (S @ vectors))
    np.testing.assert_allclose(values, 1.0, atol=1e-10)
    assert adjusted_rand_score(y, spectral_partition(wide, 20, **streams())) == 1.0


@pytest.mark.parametrize("n_samples", [240, 3000])
def test_solver_itself_finds_every_copy_of_a_repeated_eigenvalue(
    n_samples: int,
) -> None:
    """Without being told of the components, as single-vector Lanczos would not."""
    X, _ = far_blobs(n_samples)
    S = normalized_affinity(similarity_graph(X, "scaled_gaussian", 11, 0.5))
    values, vectors = leading_eigenvectors(
        S.dot, n_samples, 20, np.random.default_rng(0), tol=1e-6
    )
    np.testing.assert_allclose(values, 1.0, atol=1e-6)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(20), atol=1e-8)


@pytest.mark.parametrize("n_samples", [200, 3000])
def test_more_clusters_than_components(n_samples: int) -> None:
    """The components stay whole or are split; none are joined."""
    X, y = far_blobs(n_samples, 4)
    W = similarity_graph(X, "scaled_gaussian", 15, 0.5)
    labels = spectral_partition(W, 9, **streams())
    assert len(np.unique(labels)) == 9
    for cluster in np.unique(labels):
        assert len(np.unique(y[labels == cluster])) == 1


@pytest.mark.parametrize("n_samples", [200, 3000])
def test_more_components_than_clusters(n_samples: int) -> None:
    X, _ = far_blobs(n_samples)
    W = similarity_graph(X, "scaled_gaussian", 8, 0.5)
    labels = spectral_partition(W, 6, **streams())
    assert 2 <= len(np.unique(labels)) <= 6
    _, component = connected_components(W, directed=False)
    for part in np.unique(component):
        assert len(np.unique(labels[component == part])) == 1
    embedding = spectral_embedding(W, 6, np.random.default_rng(0))
    np.testing.assert_allclose(np.linalg.norm(embedding, axis=1), 1.0, atol=1e-6)


@pytest.mark.parametrize("order", [40, 250, 700])
@pytest.mark.parametrize("n_vectors", [2, 9, 30])
def test_eigenvalues_and_spaces_against_lapack(order: int, n_vectors: int) -> None:
    S = normalized_affinity(random_graph(order, order, min(0.5, 12 / order)))
    dense = S.toarray()
    exact, basis = linalg.eigh(dense)
    exact, basis = exact[::-1], basis[:, ::-1]
    values, vectors = leading_eigenvectors(
        S.dot, order, n_vectors, np.random.default_rng(1), tol=1e-6
    )
    np.testing.assert_allclose(values, exact[:n_vectors], atol=1e-8)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(n_vectors), atol=1e-8)
    residuals = np.linalg.norm(dense @ vectors - vectors * values, axis=0)
    assert residuals.max() < 2e-6
    gap = exact[n_vectors - 1] - exact[n_vectors]
    overlap = np.linalg.norm(basis[:, :n_vectors].T @ vectors, axis=0)
    # A space is known to residual over gap.
    assert np.all(overlap > 1.0 - max(1e-8, (4e-6 / gap) ** 2))


def test_default_tolerance_bounds_the_residuals() -> None:
    S = normalized_affinity(random_graph(1200, 3, 0.01))
    values, vectors = leading_eigenvectors(S.dot, 1200, 12, np.random.default_rng(1))
    residuals = np.linalg.norm(S @ vectors - vectors * values, axis=0)
    assert residuals.max() <= 1.1e-3


@pytest.mark.parametrize("order", [60, 900])
def test_repeated_eigenvalues_inside_the_spectrum(order: int) -> None:
    rng = np.random.default_rng(5)
    basis, _ = np.linalg.qr(rng.normal(size=(order, order)))
    spectrum = rng.uniform(-1.0, 0.3, order)
    spectrum[:9] = [1.0, 0.8, 0.8, 0.8, 0.8, 0.6, 0.6, 0.6, 0.5]
    A = (basis * spectrum) @ basis.T
    values, vectors = leading_eigenvectors(A.dot, order, 8, rng, tol=1e-8)
    np.testing.assert_allclose(values, spectrum[:8], atol=1e-10)
    projector = basis[:, :8] @ basis[:, :8].T
    np.testing.assert_allclose(vectors @ vectors.T, projector, atol=1e-7)


@pytest.mark.parametrize("n_vectors", [2, 3, 5])
def test_equal_eigenvalues_at_the_cut_are_chosen_by_a_rule(n_vectors: int) -> None:
    """Digits in which processors differ must not turn the vectors that are kept."""
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(40, 40))).Q
    A = basis @ np.diag([1.0] + [0.5] * 6 + [0.1] * 33) @ basis.T
    found = [
        leading_eigenvectors(A + noise + noise.T, 40, n_vectors, rng)[1]
        for noise in 1e-16 * rng.normal(size=(3, 40, 40))
    ]
    np.testing.assert_allclose(A @ found[0][:, 1], 0.5 * found[0][:, 1], atol=1e-8)
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


@pytest.mark.parametrize("order", [60, 900])
def test_known_eigenvectors_are_left_out(order: int) -> None:
    rng = np.random.default_rng(5)
    basis, _ = np.linalg.qr(rng.normal(size=(order, order)))
    spectrum = np.sort(rng.uniform(-1.0, 0.3, order))[::-1]
    spectrum[:7] = [1.0, 1.0, 0.9, 0.8, 0.7, 0.6, 0.5]
    A = (basis * spectrum) @ basis.T
    known = basis[:, [0, 1, 3]]
    values, vectors = leading_eigenvectors(A.dot, order, 3, rng, known=known, tol=1e-8)
    np.testing.assert_allclose(values, [0.9, 0.7, 0.6], atol=1e-9)
    assert np.abs(known.T @ vectors).max() < 1e-8


def test_dense_and_iterated_agree() -> None:
    S = normalized_affinity(random_graph(280, 8, 0.05))
    dense, iterated = (
        leading_eigenvectors(
            S.dot, 280, 6, np.random.default_rng(0), tol=1e-8, dense_order=order
        )[0]
        for order in (1000, 10)
    )
    np.testing.assert_allclose(iterated, dense, atol=1e-10)


@pytest.mark.parametrize(("dtype", "tol"), [(np.float64, 1e-8), (np.float32, 1e-5)])
def test_small_eigenvalues_of_a_gram_matrix_are_found(
    dtype: type[np.floating], tol: float
) -> None:
    rng = np.random.default_rng(4)
    basis, _ = np.linalg.qr(rng.normal(size=(400, 400)))
    spectrum = np.exp(-0.25 * np.arange(400))
    A = ((basis * spectrum) @ basis.T).astype(dtype)
    known = basis[:, :1]
    calls = []

    def counted(block: np.ndarray) -> np.ndarray:
        calls.append(1)
        return A @ block

    values, vectors = leading_eigenvectors(
        counted, 400, 30, rng, known=known, tol=tol, dtype=dtype, least=0.0
    )
    np.testing.assert_allclose(values, spectrum[1:31], atol=tol)
    residuals = np.linalg.norm(A @ vectors - vectors * values, axis=0)
    assert residuals.max() <= 2 * tol
    # Without the bound it gives up after 390 calls.
    assert len(calls) < 60


@pytest.mark.parametrize("n_samples", [120, 1200])
def test_embedding_equals_lapack_on_a_connected_graph(n_samples: int) -> None:
    rng = np.random.default_rng(2)
    y = np.arange(n_samples) % 4
    X = 1.5 * rng.normal(size=(4, 6))[y] + rng.normal(size=(n_samples, 6))
    W = similarity_graph(X, "scaled_gaussian", 15, 0.8)
    assert connected_components(W, directed=False)[0] == 1
    exact, basis = linalg.eigh(naive_normalized(W.toarray()))
    n = 2 + int(np.argmax(-np.diff(exact[::-1][1:8])))
    expected = unit_rows(basis[:, ::-1][:, :n])
    embedding = spectral_embedding(W, n, np.random.default_rng(0))
    # The iteration stops at residuals of 1e-3.
    tolerance = 1e-10 if n_samples <= eigen.DENSE_ORDER else 5e-2
    np.testing.assert_allclose(
        embedding @ embedding.T, expected @ expected.T, atol=tolerance
    )


@pytest.mark.parametrize("n_samples", [90, 1200])
def test_isolated_samples_get_rows_and_labels(n_samples: int) -> None:
    X, _ = far_blobs(n_samples, 3)
    W = similarity_graph(X, "scaled_gaussian", 10, 0.5).tolil()
    W[[0, 1], :] = 0.0
    W[:, [0, 1]] = 0.0
    W = sparse.csr_array(W)
    W.eliminate_zeros()
    embedding = spectral_embedding(W, 5, np.random.default_rng(0))
    assert np.all(np.isfinite(embedding))
    labels = spectral_partition(W, 5, **streams())
    assert np.sum(labels == labels[0]) == 1
    assert np.sum(labels == labels[1]) == 1
    assert len(np.unique(labels)) == 5


def test_graph_without_edges() -> None:
    W = sparse.csr_array((6, 6))
    embedding = spectral_embedding(W, 3, np.random.default_rng(0))
    assert np.all(np.isfinite(embedding))


def test_unit_rows_leave_zeros() -> None:
    rows = unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0.0, 0.0]])


def test_shared_components_of_a_bipartite_graph() -> None:
    graph = sparse.csr_array(
        np.array([[1.0, 0, 0, 0], [1.0, 2.0, 0, 0], [0, 0, 1.0, 0], [0, 0, 0, 0]])
    )
    rows, columns = bipartite_components(graph)
    assert rows[0] == rows[1] == columns[0] == columns[1]
    assert rows[2] == columns[2] != rows[0]
    assert len({*rows.tolist(), *columns.tolist()}) == 4


def test_same_seed_same_labels() -> None:
    X = np.random.default_rng(0).normal(size=(1200, 5))
    W = similarity_graph(X, "scaled_gaussian", 9, 0.5)
    first = spectral_partition(W, 12, **streams(3))
    second = spectral_partition(W, 12, **streams(3))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5, 12])
@pytest.mark.parametrize("width", [1, 7, 16, 19])
def test_compiled_filter_by_its_recurrence(degree: int, width: int) -> None:
    rng = np.random.default_rng(degree)
    A = sparse.random_array((40, 40), density=0.2, random_state=rng, format="csr")
    A = sparse.csr_array((A + A.T) / (A + A.T).sum(axis=1).max())
    block = rng.normal(size=(40, width)).astype(np.float32)
    scale, shift = 1.3, 0.2
    dense = scale * A.toarray() + shift * np.eye(40)
    before, current = block.astype(float), dense @ block
    for _ in range(degree - 1):
        before, current = current, 2.0 * dense @ current - before
    found = eigen.SparseOperator(A).chebyshev(block, degree, scale, shift)
    np.testing.assert_allclose(
        found, current, rtol=2e-4, atol=2e-4 * abs(current).max()
    )
