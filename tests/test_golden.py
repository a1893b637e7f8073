"""Every array that the authors' own code left behind, reproduced."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.cluster import hierarchy

from mdec import Ensemble
from mdec.base.graphs import graph_from_distances, similarity_graph
from mdec.base.members import spectral_embedding
from mdec.bench.evaluation import ari, nmi_max
from mdec.coassociation import locally_weighted_coassociation
from mdec.consensus import bipartite, hierarchical, spectral
from mdec.consensus.dendrogram import merges
from mdec.consensus.graph_cuts import bipartite_graph, transfer_cut
from mdec.numerics.affinity import normalized_affinity
from mdec.numerics.digits import nine_digits
from mdec.numerics.neighbors import squared_distances
from mdec.weights import ensemble_driven_cluster_index

AFFINITIES = ("affinity_k5", "affinity_k10", "affinity_k20")


@pytest.fixture(scope="module")
def golden(shared: Path) -> Any:
    def read(name: str) -> dict[str, np.ndarray]:
        with np.load(shared / "golden" / f"{name}.npz") as archive:
            return dict(archive)

    return read


def projector(columns: np.ndarray) -> np.ndarray:
    """Return the projector onto the space of the columns."""
    basis, _ = np.linalg.qr(columns)
    return basis @ basis.T


def same_partition(a: np.ndarray, b: np.ndarray) -> bool:
    """Say whether two label vectors group the samples alike."""
    pairs = len(set(zip(a.tolist(), b.tolist(), strict=True)))
    return pairs == len(set(a.tolist())) == len(set(b.tolist()))


def test_squared_distances(golden: Any) -> None:
    case = golden("dist2")
    ours = squared_distances(case["X"])
    # They have nine digits, and up to there they are those of the reference.
    expected = nine_digits(np.maximum(case["Dist"], 0.0))
    np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-10)
    assert ours.min() >= 0.0
    assert not np.diag(ours).any()


def test_blobs_files_agree_with_the_arrays(shared: Path, golden: Any) -> None:
    X = np.loadtxt(shared / "golden" / "blobs_X.csv", delimiter=",")
    y = np.loadtxt(shared / "golden" / "blobs_y.csv", delimiter=",")
    labels = np.loadtxt(shared / "golden" / "labels_60x12.csv", delimiter=",")
    np.testing.assert_array_equal(X, golden("dist2")["X"])
    np.testing.assert_array_equal(y, golden("dist2")["y"])
    np.testing.assert_array_equal(labels, golden("consensus")["labels"])


@pytest.mark.parametrize("name", AFFINITIES)
def test_affinity(golden: Any, name: str) -> None:
    case = golden(name)
    k, mu = int(case["K"]), float(case["sigma"])
    W = graph_from_distances(case["Dist"], "scaled_gaussian", k, mu).toarray()
    np.testing.assert_array_equal(W != 0.0, case["W"] != 0.0)
    np.testing.assert_allclose(W, case["W"], rtol=1e-12, atol=0.0)


@pytest.mark.parametrize("name", AFFINITIES)
def test_affinity_from_the_data(golden: Any, name: str) -> None:
    case = golden(name)
    X, k, mu = golden("dist2")["X"], int(case["K"]), float(case["sigma"])
    W = similarity_graph(X, "scaled_gaussian", k, mu).toarray()
    np.testing.assert_array_equal(W != 0.0, case["W"] != 0.0)
    nine = graph_from_distances(nine_digits(case["Dist"]), "scaled_gaussian", k, mu)
    np.testing.assert_allclose(W, nine.toarray(), rtol=1e-12, atol=0.0)
    # Exponents of up to thirty lose some of the nine digits of the distances.
    np.testing.assert_allclose(W, case["W"], rtol=3e-8, atol=0.0)


@pytest.mark.parametrize("name", AFFINITIES)
def test_laplacian_and_its_eigenvalues(golden: Any, name: str) -> None:
    case = golden(name)
    S = normalized_affinity(sparse.csr_array(case["W"])).toarray()
    np.testing.assert_allclose(np.eye(60) - S, case["laplacian"], rtol=0, atol=1e-12)
    values = 1.0 - np.linalg.eigvalsh(S)[::-1]
    np.testing.assert_allclose(values, case["eig_all"], rtol=0, atol=1e-10)
    np.testing.assert_allclose(values[:10], case["eig10"], rtol=0, atol=1e-10)
    np.testing.assert_allclose(values[:10], case["eigs10"], rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", AFFINITIES)
def test_embedding_spans_the_leading_space_of_the_laplacian(
    golden: Any, name: str
) -> None:
    case = golden(name)
    values, vectors = np.linalg.eigh(0.5 * (case["laplacian"] + case["laplacian"].T))
    # Cut at the widest gap, where the leading space is well defined.
    n = int(np.argmax(np.diff(values[:10]))) + 1
    n = max(n, 2)
    rows = vectors[:, :n] / np.linalg.norm(vectors[:, :n], axis=1, keepdims=True)
    embedding = spectral_embedding(
        sparse.csr_array(case["W"]), n, np.random.default_rng(0)
    )
    np.testing.assert_allclose(embedding @ embedding.T, rows @ rows.T, atol=1e-8)


def test_affinity_with_duplicates(golden: Any) -> None:
    """Where copies meet, the floor acts; everywhere else the reference is met.

    Rows 8 to 15 equal row 3, so these nine have eight copies each and a neighbour
    distance of rounding errors only. The reference then gives weights of 1e14 and
    more; ours are bounded by the floor.
    """
    case = golden("affinity_duplicates")
    k, mu = int(case["K"]), float(case["sigma"])
    W = graph_from_distances(case["Dist"], "scaled_gaussian", k, mu).toarray()
    copies = np.r_[3, 8:16]
    others = np.setdiff1d(np.arange(20), copies)
    apart = np.ix_(others, others)
    np.testing.assert_array_equal(W[apart] != 0.0, case["W"][apart] != 0.0)
    np.testing.assert_allclose(W[apart], case["W"][apart], rtol=1e-12, atol=0.0)
    # The floor of a copy is tiny against the distance to any other sample.
    between = np.ix_(copies, others)
    both = (W[between] > 0.0) & (case["W"][between] > 0.0)
    np.testing.assert_allclose(
        W[between][both], case["W"][between][both], rtol=1e-4, atol=0.0
    )
    among = np.ix_(copies, copies)
    assert case["W"][among].max() > 1e12
    D = np.maximum(case["Dist"], 0.0)
    np.fill_diagonal(D, np.inf)
    means = np.sort(D, axis=1)[:, :k].mean(axis=1)
    floor = 1e-6 * np.median(means[others])
    greatest = 1.0 / (np.sqrt(2.0 * np.pi) * mu * 2.0 * floor / 3.0)
    assert 0.0 < W[among].max() <= greatest * (1.0 + 1e-6)
    assert np.all(np.isfinite(W))
    assert np.all((W[copies] > 0.0).sum(axis=1) >= k)


def test_affinity_with_duplicates_from_the_data(golden: Any) -> None:
    case = golden("affinity_duplicates")
    k, mu = int(case["K"]), float(case["sigma"])
    W = similarity_graph(case["X"], "scaled_gaussian", k, mu).toarray()
    others = np.setdiff1d(np.arange(20), np.r_[3, 8:16])
    apart = np.ix_(others, others)
    D = nine_digits(np.maximum(case["Dist"], 0.0))
    nine = graph_from_distances(D, "scaled_gaussian", k, mu).toarray()
    np.testing.assert_allclose(W[apart], nine[apart], rtol=1e-12, atol=0.0)
    np.testing.assert_allclose(W[apart], case["W"][apart], rtol=1e-8, atol=0.0)


def test_base_clusters(golden: Any) -> None:
    case = golden("consensus")
    ensemble = Ensemble.from_labels(case["labels"])
    np.testing.assert_array_equal(ensemble.indicator().toarray(), case["baseClsSegs"].T)
    np.testing.assert_array_equal(
        ensemble.labels + ensemble.offsets[:-1] + 1, case["bcs"]
    )
    assert len(ensemble) == case["M"]


def test_eci_and_coassociation(golden: Any) -> None:
    case = golden("consensus")
    ensemble = Ensemble.from_labels(case["labels"])
    weights = ensemble_driven_cluster_index(ensemble, theta=float(case["theta"]))
    np.testing.assert_allclose(weights, case["ECI"], rtol=1e-12, atol=0.0)
    A = locally_weighted_coassociation(ensemble)
    np.testing.assert_allclose(A, case["LWCA"], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("n_clusters", [3, 5])
def test_hierarchical_partition(golden: Any, n_clusters: int) -> None:
    ensemble = Ensemble.from_labels(golden("consensus")["labels"])
    expected = golden("hc")[f"labels_K{n_clusters}"]
    labels = hierarchical(ensemble, n_clusters)
    assert same_partition(labels, expected)


def test_hierarchical_merge_heights(golden: Any) -> None:
    case = golden("hc")
    ensemble = Ensemble.from_labels(golden("consensus")["labels"])
    _, similarities = merges(ensemble, ensemble_driven_cluster_index(ensemble))
    heights = np.sort(1.0 - similarities)
    np.testing.assert_allclose(heights, np.sort(case["Z"][:, 2]), rtol=0, atol=1e-12)


def test_hierarchical_merge_sets(golden: Any) -> None:
    """Cutting at every number of clusters gives the partitions of the reference."""
    case = golden("hc")
    ensemble = Ensemble.from_labels(golden("consensus")["labels"])
    Z = np.column_stack([case["Z"][:, :2] - 1, case["Z"][:, 2], np.zeros(59)])
    for n_clusters in range(2, 60):
        heights = case["Z"][:, 2]
        if np.isclose(heights[59 - n_clusters], heights[60 - n_clusters], atol=1e-12):
            continue  # a tie: which merge comes first is a matter of taste
        threshold = 0.5 * (heights[59 - n_clusters] + heights[60 - n_clusters])
        expected = hierarchy.fcluster(Z, threshold, criterion="distance")
        assert same_partition(hierarchical(ensemble, n_clusters), expected)


def reference_parts(B: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the normalised cluster graph, its scale and the map to samples."""
    to_samples = B / B.sum(axis=1, keepdims=True)
    W = B.T @ to_samples
    scale = 1.0 / np.sqrt(W.sum(axis=1))
    return scale[:, None] * W * scale, scale, to_samples


def test_bipartite_graph(golden: Any) -> None:
    case = golden("tcut")
    ensemble = Ensemble.from_labels(golden("consensus")["labels"])
    B = bipartite_graph(ensemble, ensemble_driven_cluster_index(ensemble)).toarray()
    np.testing.assert_allclose(B, case["B"], rtol=1e-12, atol=0.0)
    nWy, _, _ = reference_parts(B)
    np.testing.assert_allclose(nWy, case["nWy"], rtol=0, atol=1e-12)
    values = np.linalg.eigvalsh(nWy)[::-1]
    np.testing.assert_allclose(values, case["nWy_eigs"], rtol=0, atol=1e-10)


def test_transfer_cut_embedding(golden: Any) -> None:
    case = golden("tcut")
    rng = np.random.default_rng(0)
    E = transfer_cut(sparse.csr_array(case["B"]), int(case["K"]), rng)
    np.testing.assert_allclose(E @ E.T, case["emb_gram"], rtol=0, atol=1e-8)
    np.testing.assert_allclose(E @ E.T, case["emb"] @ case["emb"].T, rtol=0, atol=1e-8)
    np.testing.assert_allclose(projector(E), case["emb_proj"], rtol=0, atol=1e-8)


def test_transfer_cut_before_its_rows_are_scaled(
    golden: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = golden("tcut")
    monkeypatch.setattr("mdec.numerics.transfer.unit_rows", lambda rows: rows)
    rng = np.random.default_rng(0)
    pre = transfer_cut(sparse.csr_array(case["B"]), int(case["K"]), rng)
    np.testing.assert_allclose(projector(pre), case["pre_proj"], rtol=0, atol=1e-8)
    np.testing.assert_allclose(pre @ pre.T, case["pre_gram"], rtol=0, atol=1e-8)
    np.testing.assert_allclose(
        pre @ pre.T, case["pre"] @ case["pre"].T, rtol=0, atol=1e-8
    )


def test_nmi(golden: Any) -> None:
    case = golden("nmi")
    for x, y, expected in zip(case["x"], case["y"], case["nmi_max"], strict=True):
        assert nmi_max(y, x) == pytest.approx(expected, abs=1e-12)


def test_yeoh_weights_and_coassociation(golden: Any) -> None:
    case = golden("yeoh_consensus")
    ensemble = Ensemble.from_labels(case["IDX"])
    weights = ensemble_driven_cluster_index(ensemble)
    np.testing.assert_allclose(weights, case["ECI"], rtol=1e-12, atol=0.0)
    A = locally_weighted_coassociation(ensemble)
    np.testing.assert_allclose(A, case["LWCA"], rtol=1e-12, atol=1e-15)


def test_yeoh_hierarchical(golden: Any) -> None:
    case = golden("yeoh_consensus")
    labels = hierarchical(Ensemble.from_labels(case["IDX"]), 2)
    assert same_partition(labels, case["labels_HC"])
    assert nmi_max(case["gt"], labels) == pytest.approx(case["nmi_max"][0], abs=1e-12)


@pytest.mark.parametrize(
    ("consensus", "name", "position"),
    [(spectral, "labels_SC", 1), (bipartite, "labels_BG", 2)],
)
def test_yeoh_spectral_and_bipartite(
    golden: Any, consensus: Any, name: str, position: int
) -> None:
    """Both end in k-means, so the partition is compared and not the bits."""
    case = golden("yeoh_consensus")
    ensemble = Ensemble.from_labels(case["IDX"])
    for seed in range(5):
        labels = consensus(ensemble, 2, random_state=seed)
        assert ari(case[name], labels) > 0.95
        assert nmi_max(case["gt"], labels) == pytest.approx(
            case["nmi_max"][position], abs=0.03
        )
