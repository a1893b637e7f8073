"""The three consensus functions given an ensemble, against naive versions."""

from __future__ import annotations

import inspect
import itertools
import math
import re
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from mdec import Ensemble
from mdec.coassociation import (
    coassociation_factor,
    locally_weighted_coassociation,
)
from mdec.consensus import (
    CONSENSUS,
    bipartite,
    dendrogram,
    find_consensus,
    graph_cuts,
    hierarchical,
    spectral,
)
from mdec.consensus.dendrogram import cut, merges
from mdec.consensus.graph_cuts import (
    bipartite_graph,
    bipartite_rows,
    coassociation_embedding,
    cut_blocks,
    halves_of_labels,
    presence_sums,
    transfer_cut,
)
from mdec.numerics.eigen import DENSE_ORDER
from mdec.numerics.loops import linkage
from mdec.numerics.transfer import (
    embed_rows,
    small_side_affinity,
    small_side_vectors,
    unit_over_rows,
)
from mdec.weights import ensemble_driven_cluster_index

EXAMPLE = np.array(
    [
        [0, 0, 0, 0, 1, 1, 1, 1],
        [0, 0, 0, 1, 1, 1, 2, 2],
        [0, 0, 1, 1, 1, 2, 2, 2],
    ]
).T


def planted(
    n_samples: int, n_groups: int, n_members: int, noise: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return groups and noisy, over-split base clusterings of them."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n_samples) % n_groups)
    columns = []
    for _ in range(n_members):
        column = y * 2 + rng.integers(0, 2, n_samples)
        moved = rng.random(n_samples) < noise
        column[moved] = rng.integers(0, 2 * n_groups, moved.sum())
        columns.append(column)
    return y, np.stack(columns, axis=1)


def random_labels(n_samples: int, n_members: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.stack(
        [rng.integers(0, rng.integers(2, 7), n_samples) for _ in range(n_members)],
        axis=1,
    )


def same_partition(a: np.ndarray, b: np.ndarray) -> bool:
    pairs = len(set(zip(a.tolist(), b.tolist(), strict=True)))
    return pairs == len(set(a.tolist())) == len(set(b.tolist()))


def naive_average_linkage(A: np.ndarray, n_clusters: int) -> np.ndarray:
    """Merge the two regions of largest mean co-association, again and again."""
    regions = [[i] for i in range(len(A))]
    while len(regions) > n_clusters:
        best, pair = -math.inf, (0, 1)
        for r, s in itertools.combinations(range(len(regions)), 2):
            mean = np.mean([A[i, j] for i in regions[r] for j in regions[s]])
            if mean > best:
                best, pair = mean, (r, s)
        regions[pair[0]] += regions.pop(pair[1])
    labels = np.empty(len(A), dtype=int)
    for number, region in enumerate(regions):
        labels[region] = number
    return labels


# ------------------------------------------------------------------ hierarchical


@pytest.mark.parametrize("seed", range(4))
def test_hierarchical_by_definition(seed: int) -> None:
    labels = random_labels(18, 40, seed)
    ensemble = Ensemble.from_labels(labels)
    A = locally_weighted_coassociation(ensemble)
    for n_clusters in (2, 3, 5, 9, 17):
        assert same_partition(
            hierarchical(ensemble, n_clusters), naive_average_linkage(A, n_clusters)
        )


@pytest.mark.parametrize("chained_rows", [0, 1000])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_samples", [40, 250, 601])
def test_hierarchical_is_average_linkage(
    n_samples: int, seed: int, chained_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random weights of many members leave no two merges at one height."""
    monkeypatch.setattr(linkage, "CHAINED_ROWS", chained_rows)
    ensemble = Ensemble.from_labels(random_labels(n_samples, 30, seed))
    weights = np.random.default_rng(seed).random(ensemble.n_base_clusters)
    distance = 1.0 - locally_weighted_coassociation(ensemble, weights)
    Z = hierarchy.linkage(squareform(distance, checks=False), "average")
    _, similarities = merges(ensemble, weights)
    np.testing.assert_allclose(np.sort(1.0 - similarities), Z[:, 2], atol=1e-12)
    gaps = np.diff(Z[:, 2])
    for n_clusters in (2, 3, 7, 20):
        assert gaps[n_samples - n_clusters - 1] > 1e-12
        expected = hierarchy.fcluster(Z, n_clusters, "maxclust")
        assert same_partition(hierarchical(ensemble, n_clusters, weights), expected)


def test_samples_alike_in_every_member_merge_first() -> None:
    labels = np.repeat(random_labels(20, 25, 5), 4, axis=0)
    ensemble = Ensemble.from_labels(labels)
    A = locally_weighted_coassociation(ensemble)
    Z = hierarchy.linkage(squareform(1.0 - A, checks=False), "average")
    for n_clusters in (2, 4, 8):
        expected = hierarchy.fcluster(Z, n_clusters, "maxclust")
        assert same_partition(hierarchical(ensemble, n_clusters), expected)
    by_copies = hierarchical(ensemble, 20)
    assert same_partition(by_copies, np.repeat(np.arange(20), 4))


@settings(deadline=None, max_examples=40)
@given(
    n_samples=st.integers(3, 30),
    n_members=st.integers(1, 3),
    seed=st.integers(0, 10**6),
    share=st.floats(0.0, 1.0),
)
def test_hierarchical_gives_exactly_k_under_ties(
    n_samples: int, n_members: int, seed: int, share: float
) -> None:
    rng = np.random.default_rng(seed)
    ensemble = Ensemble.from_labels(rng.integers(0, 3, (n_samples, n_members)))
    n_clusters = 1 + int(share * (n_samples - 1))
    weights = np.ones(ensemble.n_base_clusters)
    labels = hierarchical(ensemble, n_clusters, weights)
    assert len(np.unique(labels)) == n_clusters


def test_cut_undoes_the_last_merges() -> None:
    pairs = np.array([[0, 1], [2, 3], [1, 2]])
    similarities = np.array([0.9, 0.5, 0.1])
    assert same_partition(cut(pairs, similarities, 4, 2), np.array([0, 0, 1, 1]))
    assert same_partition(cut(pairs, similarities, 4, 3), np.array([0, 0, 1, 2]))


def test_single_precision_linkage_is_close(monkeypatch: pytest.MonkeyPatch) -> None:
    y, labels = planted(300, 5, 40, 0.3, 0)
    ensemble = Ensemble.from_labels(labels)
    double = hierarchical(ensemble, 5)
    monkeypatch.setattr(linkage, "CHAINED_ROWS", 0)
    monkeypatch.setattr(dendrogram, "DOUBLE_PRECISION_SAMPLES", 10)
    single = hierarchical(ensemble, 5)
    assert adjusted_rand_score(double, single) == 1.0
    assert adjusted_rand_score(y, single) > 0.95


# ------------------------------------------------------------------ spectral


def spectral_oracle(A: np.ndarray, n_vectors: int) -> tuple[np.ndarray, np.ndarray]:
    scale = 1.0 / np.sqrt(A.sum(axis=1))
    values, vectors = linalg.eigh(scale[:, None] * A * scale)
    leading = vectors[:, ::-1][:, :n_vectors]
    return values[::-1], leading / np.linalg.norm(leading, axis=1, keepdims=True)


@pytest.mark.parametrize("n_samples", [50, 280, 500])
def test_spectral_embedding_is_that_of_the_full_matrix(n_samples: int) -> None:
    _, labels = planted(n_samples, 4, 25, 0.2, 1)
    ensemble = Ensemble.from_labels(labels)
    weights = ensemble_driven_cluster_index(ensemble)
    A = locally_weighted_coassociation(ensemble)
    values, expected = spectral_oracle(A, 4)
    assert values[3] - values[4] > 0.01
    E = coassociation_embedding(ensemble, 4, weights, np.random.default_rng(0))
    np.testing.assert_allclose(E @ E.T, expected @ expected.T, atol=1e-4)


def test_spectral_embedding_counts_a_sample_as_one_with_itself() -> None:
    # Of few samples with unlike degrees, where the diagonal weighs.
    labels = [[0, 0], [0, 0], [0, 0], [1, 1], [1, 1], [1, 2], [0, 1], [2, 2]]
    ensemble = Ensemble.from_labels(labels)
    weights = np.linspace(0.3, 1.0, 6)
    _, expected = spectral_oracle(locally_weighted_coassociation(ensemble, weights), 3)
    E = coassociation_embedding(ensemble, 3, weights, np.random.default_rng(0))
    np.testing.assert_allclose(E @ E.T, expected @ expected.T, atol=1e-8)


def test_spectral_embedding_where_the_ensemble_hardly_agrees() -> None:
    ensemble = Ensemble.from_labels(random_labels(40, 30, 0))
    weights = np.ones(ensemble.n_base_clusters)
    A = locally_weighted_coassociation(ensemble, weights)
    values, expected = spectral_oracle(A, 3)
    assert values[1] < 0.25
    E = coassociation_embedding(ensemble, 3, weights, np.random.default_rng(0))
    np.testing.assert_allclose(E @ E.T, expected @ expected.T, atol=1e-8)


@pytest.mark.parametrize("share_missing", [0.0, 0.3])
def test_spectral_through_the_base_clusters(share_missing: float) -> None:
    _, labels = planted(300, 4, 25, 0.2, 1)
    rng = np.random.default_rng(0)
    labels[rng.random(labels.shape) < share_missing] = -1
    ensemble = Ensemble.from_labels(labels)
    weights = ensemble_driven_cluster_index(ensemble)
    factor = coassociation_factor(ensemble, weights).toarray()
    values, expected = spectral_oracle(factor @ factor.T, 4)
    assert values[3] - values[4] > 0.01
    columns = weights * presence_sums(ensemble.parts, ensemble.offsets)
    halves = halves_of_labels(ensemble.parts, ensemble.offsets, columns, True)
    affinity = small_side_affinity(halves, columns)
    vectors = unit_over_rows(small_side_vectors(affinity, 4, rng), affinity)
    E = embed_rows(bipartite_rows(labels, ensemble.offsets, columns), vectors)
    np.testing.assert_allclose(E @ E.T, expected @ expected.T, atol=1e-4)
    found = np.concatenate(cut_blocks(ensemble, 4, weights, 0, of_samples=True))
    assert same_partition(found, spectral(ensemble, 4, weights, 0))


def test_spectral_of_the_worked_example() -> None:
    ensemble = Ensemble.from_labels(EXAMPLE)
    A = locally_weighted_coassociation(ensemble)
    values, _ = spectral_oracle(A, 2)
    np.testing.assert_allclose(
        1.0 - values[:4], [0.0, 0.089788, 0.448862, 0.714850], atol=5e-7
    )
    labels = spectral(ensemble, 2, random_state=0)
    np.testing.assert_array_equal(labels, [0, 0, 0, 0, 1, 1, 1, 1])


# ------------------------------------------------------------------ bipartite


def transfer_cut_oracle(B: np.ndarray, n_vectors: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the cluster graph's eigenvalues and the unit rows of the samples."""
    n, n_clusters = B.shape
    d = [sum(B[i]) for i in range(n)]
    W = np.zeros((n_clusters, n_clusters))
    for a in range(n_clusters):
        for b in range(n_clusters):
            W[a, b] = np.sum(B[:, a] * B[:, b] / d)
    g = W.sum(axis=1)
    values, V = linalg.eigh(W / np.sqrt(np.outer(g, g)))
    V = V[:, ::-1][:, :n_vectors] / np.sqrt(g)[:, None]
    E = (B / np.array(d)[:, None]) @ V
    return values[::-1], E / np.linalg.norm(E, axis=1, keepdims=True)


@pytest.mark.parametrize("theta", [1.0, 0.4])
def test_bipartite_of_the_worked_example(theta: float) -> None:
    ensemble = Ensemble.from_labels(EXAMPLE)
    weights = ensemble_driven_cluster_index(ensemble, theta)
    labels = bipartite(ensemble, 2, weights, random_state=0)
    np.testing.assert_array_equal(labels, [0, 0, 0, 0, 1, 1, 1, 1])
    if theta == 1.0:
        values, _ = transfer_cut_oracle(bipartite_graph(ensemble, weights).toarray(), 2)
        np.testing.assert_allclose(
            values[:4], [1.0, 0.911286, 0.540694, 0.195534], atol=5e-7
        )


@pytest.mark.parametrize(("n_samples", "n_members"), [(40, 5), (120, 12), (150, 45)])
def test_transfer_cut_by_loops(n_samples: int, n_members: int) -> None:
    _, labels = planted(n_samples, 4, n_members, 0.2, 2)
    ensemble = Ensemble.from_labels(labels)
    graph = bipartite_graph(ensemble, ensemble_driven_cluster_index(ensemble))
    values, expected = transfer_cut_oracle(graph.toarray(), 4)
    assert values[3] - values[4] > 0.01
    E = transfer_cut(graph, 4, np.random.default_rng(0))
    tolerance = 1e-9 if graph.shape[1] <= DENSE_ORDER else 1e-4
    np.testing.assert_allclose(E @ E.T, expected @ expected.T, atol=tolerance)


def test_bipartite_graph_by_double_loop() -> None:
    ensemble = Ensemble.from_labels(EXAMPLE)
    weights = np.random.default_rng(0).random(8)
    B = bipartite_graph(ensemble, weights).toarray()
    for i in range(8):
        column = 0
        for m in range(3):
            for name in sorted(set(EXAMPLE[:, m])):
                assert B[i, column] == weights[column] * (EXAMPLE[i, m] == name)
                column += 1


def test_more_clusters_than_base_clusters() -> None:
    ensemble = Ensemble.from_labels([[0], [0], [1], [1], [1]])
    with pytest.raises(ValueError, match="more than the 2 base clusters"):
        bipartite(ensemble, 3, random_state=0)


# ------------------------------------------------------------------ all three


@pytest.mark.parametrize("name", CONSENSUS)
def test_recovers_a_planted_partition(name: str) -> None:
    for seed in range(3):
        y, labels = planted(400, 6, 30, 0.25, seed)
        found = CONSENSUS[name](Ensemble.from_labels(labels), 6, random_state=seed)
        assert adjusted_rand_score(y, found) > 0.97


@pytest.mark.parametrize("name", CONSENSUS)
def test_labels_are_numbered_by_first_samples(name: str) -> None:
    _, labels = planted(100, 5, 20, 0.2, 0)
    found = CONSENSUS[name](Ensemble.from_labels(labels), 5, random_state=0)
    assert found.dtype == np.int32
    _, first = np.unique(found, return_index=True)
    assert np.all(np.diff(first) > 0)


@pytest.mark.parametrize("name", CONSENSUS)
def test_extreme_numbers_of_clusters(name: str) -> None:
    ensemble = Ensemble.from_labels(EXAMPLE)
    np.testing.assert_array_equal(
        CONSENSUS[name](ensemble, 1, random_state=0), np.zeros(8)
    )
    np.testing.assert_array_equal(
        CONSENSUS[name](ensemble, 8, random_state=0), np.arange(8)
    )


@pytest.mark.parametrize("name", CONSENSUS)
@pytest.mark.parametrize("n_clusters", [0, -1, 9, 2.5, "two", None])
def test_impossible_numbers_of_clusters(name: str, n_clusters: object) -> None:
    with pytest.raises(ValueError, match=r"n_clusters=.*whole number from 1 to"):
        CONSENSUS[name](Ensemble.from_labels(EXAMPLE), n_clusters, random_state=0)


@pytest.mark.parametrize("name", CONSENSUS)
@pytest.mark.parametrize(
    "weights",
    [
        *(np.ones(3), -np.ones(8), np.full(8, np.nan), np.zeros(8)),
        *(np.where(np.arange(8) == 5, bad, 1.0) for bad in (np.nan, np.inf, -0.1)),
    ],
)
def test_impossible_weights(name: str, weights: np.ndarray) -> None:
    with pytest.raises(ValueError, match="weights must"):
        CONSENSUS[name](Ensemble.from_labels(EXAMPLE), 2, weights, random_state=0)


@pytest.mark.parametrize("name", CONSENSUS)
def test_one_member_is_returned_as_it_is(name: str) -> None:
    column = np.array([2, 2, 0, 1, 1, 0, 2])
    found = CONSENSUS[name](Ensemble.from_labels(column[:, None]), 3, random_state=0)
    assert same_partition(found, column)


@pytest.mark.parametrize("name", CONSENSUS)
def test_weights_none_is_the_eci(name: str) -> None:
    _, labels = planted(80, 4, 15, 0.3, 4)
    ensemble = Ensemble.from_labels(labels)
    weights = ensemble_driven_cluster_index(ensemble)
    np.testing.assert_array_equal(
        CONSENSUS[name](ensemble, 4, random_state=0),
        CONSENSUS[name](ensemble, 4, weights, random_state=0),
    )


@pytest.mark.parametrize("name", CONSENSUS)
def test_a_cluster_of_weight_zero_has_no_say(name: str) -> None:
    y, labels = planted(60, 3, 8, 0.0, 4)
    rng = np.random.default_rng(0)
    spoiled = np.column_stack([labels, rng.integers(0, 3, 60)])
    ensemble = Ensemble.from_labels(spoiled)
    weights = np.ones(ensemble.n_base_clusters)
    weights[ensemble.offsets[-2] :] = 0.0
    found = CONSENSUS[name](ensemble, 3, weights, random_state=0)
    assert adjusted_rand_score(y, found) == 1.0


@pytest.mark.parametrize("name", CONSENSUS)
def test_missing_labels(name: str) -> None:
    y, labels = planted(300, 4, 40, 0.1, 3)
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(labels.shape) < 0.3, -1, labels)
    found = CONSENSUS[name](Ensemble.from_labels(labels), 4, random_state=0)
    assert adjusted_rand_score(y, found) > 0.97


@pytest.mark.parametrize("name", CONSENSUS)
def test_a_sample_that_no_member_clusters(name: str) -> None:
    y, labels = planted(60, 3, 12, 0.0, 3)
    labels[7] = -1
    found = CONSENSUS[name](Ensemble.from_labels(labels), 3, random_state=0)
    assert found.shape == (60,)
    assert found.min() >= 0
    if name != "hierarchical":  # a lone sample may be a cluster of its own there
        others = np.delete(np.arange(60), 7)
        assert adjusted_rand_score(y[others], found[others]) > 0.5


@pytest.mark.parametrize("name", ["spectral", "bipartite"])
def test_groups_that_never_meet(name: str) -> None:
    """The co-association falls into ten blocks: ten unit eigenvalues."""
    y = np.arange(200) % 10
    labels = np.repeat(y[:, None], 9, axis=1)
    found = CONSENSUS[name](Ensemble.from_labels(labels), 10, random_state=0)
    assert same_partition(found, y)


def test_fewer_groups_than_clusters_is_said() -> None:
    """Samples alike in every member have one embedding, so no cut can part them."""
    labels = np.repeat((np.arange(30) % 3)[:, None], 4, axis=1)
    with pytest.warns(ConvergenceWarning, match="3 clusters are returned instead of 5"):
        found = bipartite(Ensemble.from_labels(labels), 5, random_state=0)
    assert same_partition(found, labels[:, 0])


def test_more_clusters_than_groups_split_groups() -> None:
    labels = np.repeat((np.arange(30) % 3)[:, None], 4, axis=1)
    found = hierarchical(Ensemble.from_labels(labels), 5)
    assert len(np.unique(found)) == 5
    for cluster in range(5):
        assert len(np.unique(labels[found == cluster])) == 1


@pytest.mark.parametrize("name", CONSENSUS)
def test_same_seed_same_labels(name: str) -> None:
    ensemble = Ensemble.from_labels(random_labels(90, 12, 1))
    first = CONSENSUS[name](ensemble, 6, random_state=5)
    second = CONSENSUS[name](ensemble, 6, random_state=5)
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("name", CONSENSUS)
@settings(deadline=None, max_examples=15)
@given(
    seed=st.integers(0, 10**6),
    n_samples=st.integers(20, 60),
    n_groups=st.integers(2, 4),
)
def test_names_and_orders_do_not_matter(
    name: str, seed: int, n_samples: int, n_groups: int
) -> None:
    rng = np.random.default_rng(seed)
    _, labels = planted(n_samples, n_groups, 25, 0.15, seed)
    consensus = CONSENSUS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = consensus(Ensemble.from_labels(labels), n_groups, random_state=0)
        names = np.array([rng.permutation(2 * n_groups) for _ in range(25)])
        renamed = Ensemble.from_labels(names[np.arange(25), labels])
        assert same_partition(consensus(renamed, n_groups, random_state=0), found)
        order = rng.permutation(n_samples)
        permuted = Ensemble.from_labels(labels[order])
        assert same_partition(
            consensus(permuted, n_groups, random_state=0), found[order]
        )
        shuffled = Ensemble.from_labels(labels[:, rng.permutation(25)])
        assert same_partition(consensus(shuffled, n_groups, random_state=0), found)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10**6), n_samples=st.integers(5, 40))
def test_hierarchical_order_invariance_without_structure(
    seed: int, n_samples: int
) -> None:
    """Random weights of many members keep ties away."""
    rng = np.random.default_rng(seed)
    ensemble = Ensemble.from_labels(random_labels(n_samples, 30, seed))
    weights = 0.5 + rng.random(ensemble.n_base_clusters)
    found = hierarchical(ensemble, 3, weights)
    order = rng.permutation(n_samples)
    permuted = Ensemble(ensemble.labels[order])
    assert same_partition(hierarchical(permuted, 3, weights), found[order])


def exact_merges(labels: np.ndarray) -> list[tuple[int, int]]:
    """Merge by exact mean agreements, of equals the pair with the lowest samples."""
    agreements = (labels[:, None] == labels[None]).sum(axis=2)
    regions = [[i] for i in range(len(labels))]
    found = []
    while len(regions) > 1:
        best, pair = Fraction(-1), (0, 1)
        for r, s in itertools.combinations(range(len(regions)), 2):
            total = int(agreements[np.ix_(regions[r], regions[s])].sum())
            mean = Fraction(total, len(regions[r]) * len(regions[s]))
            if mean > best:
                best, pair = mean, (r, s)
        found.append((regions[pair[0]][0], regions[pair[1]][0]))
        regions[pair[0]] = regions[pair[0]] + regions.pop(pair[1])
    return found


@pytest.mark.parametrize("seed", range(3))
def test_of_equals_the_lowest_samples_merge_first(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Members without weights tie all the time; every way to link takes one rule."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, size=(45, 7))
    labels = labels[np.sort(np.unique(labels, axis=0, return_index=True)[1])]
    ensemble = Ensemble.from_labels(labels)
    weights = np.ones(ensemble.n_base_clusters)
    expected = exact_merges(labels)
    pairs, similarities = dendrogram.merges(ensemble, weights)
    np.testing.assert_array_equal(pairs, expected)
    with monkeypatch.context() as patch:
        patch.setattr(linkage, "CHAINED_ROWS", 0)
        found, _ = dendrogram.merges(ensemble, weights)
    np.testing.assert_array_equal(found, expected)
    # Regions of one sample each are linked as the samples are.
    every = np.arange(ensemble.n_samples)
    monkeypatch.setattr(dendrogram, "micro_regions", lambda *_: every)
    for n_clusters in (2, 5, 20):
        cut = dendrogram.cut(pairs, similarities, len(labels), n_clusters)
        linked = dendrogram.link_regions(ensemble, n_clusters, weights, rng)
        np.testing.assert_array_equal(linked, cut)


@pytest.mark.parametrize("factor", [1e-9, 1e9])
def test_weights_count_up_to_a_factor(factor: float) -> None:
    ensemble = Ensemble.from_labels(random_labels(80, 9, 2))
    weights = np.random.default_rng(0).random(ensemble.n_base_clusters)
    pairs, _ = merges(ensemble, weights)
    np.testing.assert_array_equal(merges(ensemble, factor * weights)[0], pairs)


def test_regions_count_by_their_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mean over regions weighs them by size: region 1 has ten samples, 0 has one."""
    similarities = np.array(
        [
            [1.00, 0.90, 0.80, 0.30],
            [0.90, 1.00, 0.10, 0.40],
            [0.80, 0.10, 1.00, 0.30],
            [0.30, 0.40, 0.30, 1.00],
        ]
    )
    sizes = np.array([1, 10, 1, 1])
    monkeypatch.setattr(dendrogram, "micro_regions", lambda *_: np.arange(4))
    monkeypatch.setattr(
        dendrogram,
        "region_similarities",
        lambda *_: (similarities.copy(), sizes),
    )
    ensemble, rng = Ensemble.from_labels(EXAMPLE), np.random.default_rng(0)
    labels = dendrogram.link_regions(ensemble, 2, np.ones(8), rng)
    # The first two merge. Their means with regions 2 and 3 are then 0.16 and 0.39 by
    # samples, but 0.45 and 0.35 by regions.
    np.testing.assert_array_equal(labels, [0, 0, 1, 0])
    each = dendrogram.link_regions(ensemble, 4, np.ones(8), rng)
    np.testing.assert_array_equal(each, [0, 1, 2, 3])
    with pytest.raises(ValueError, match="more than the 4 regions"):
        dendrogram.link_regions(ensemble, 5, np.ones(8), rng)


def test_micro_regions_hold_what_the_ensemble_keeps_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    truth, labels = planted(200, 4, 15, 0.05, 2)
    ensemble = Ensemble.from_labels(labels)
    weights = ensemble_driven_cluster_index(ensemble)
    monkeypatch.setattr(graph_cuts, "REGIONS", 20)
    rng = np.random.default_rng(0)
    regions = graph_cuts.micro_regions(ensemble, weights, rng)
    np.testing.assert_array_equal(np.unique(regions), np.arange(regions.max() + 1))
    assert 4 <= regions.max() + 1 <= 20
    whose = [np.bincount(truth[regions == r]).max() for r in np.unique(regions)]
    assert sum(whose) >= 0.95 * truth.size


def test_samples_alike_are_counted_once_for_the_linkage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    distinct = rng.integers(0, 3, size=(20, 8))
    ensemble = Ensemble.from_labels(distinct[rng.integers(0, 20, size=300)])
    expected = hierarchical(ensemble, 4)
    # 300 samples, but no more distinct ones than are linked one by one.
    monkeypatch.setattr(dendrogram, "LINKED_SAMPLES", 20)
    monkeypatch.setattr(dendrogram, "micro_regions", lambda *_: pytest.fail("regions"))
    np.testing.assert_array_equal(hierarchical(ensemble, 4), expected)


def test_a_function_as_the_contributing_page_asks_for_can_be_entered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = Path(__file__).parents[2] / "CONTRIBUTING.md"
    (asked,) = re.findall(r"my_function(\(.*?\))", page.read_text(encoding="utf-8"))
    for function in CONSENSUS.values():
        given = inspect.signature(function).parameters.values()
        assert [each.replace(annotation=each.empty) for each in given] == list(
            inspect.signature(eval(f"lambda {asked[1:-1]}: 0")).parameters.values()
        )
    names: dict[str, Any] = {"np": np}
    exec(f"def mine{asked}: return np.arange(ensemble.n_samples) % n_clusters", names)
    monkeypatch.setitem(CONSENSUS, "mine", names["mine"])
    ensemble = Ensemble.from_labels(EXAMPLE)
    (found,) = find_consensus(ensemble, 3, "mine", np.ones(8), 0, "cpu")
    np.testing.assert_array_equal(found, np.arange(8) % 3)
