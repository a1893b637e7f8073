"""What the report computes for each number of clusters, against direct sums."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist, squareform
from tests.report.conftest import pair_consensus

from mdec import Ensemble
from mdec.bench.evaluation import ari
from mdec.coassociation import locally_weighted_coassociation
from mdec.confidence import confidence, item_consensus
from mdec.consensus import hierarchical
from mdec.report import compute, describe_clustering
from mdec.report.compute import (
    consensus_tree,
    describe_column,
    describe_columns,
    sample_order,
)
from mdec.report.layout import consensus_map, spread
from mdec.report.signatures import (
    describe_features,
    effect_sizes,
    markers,
    moments,
    signatures,
)
from mdec.report.solutions import (
    compare_classes,
    cut_halves,
    match_numbers,
    nearest_numbers,
    restrict_ensemble,
)
from mdec.selection.criteria import cuts
from mdec.selection.rule import select_n_clusters
from mdec.tables import Table


def overlap(first, names, second, numbers):
    return int((names[first] == numbers[second]).sum())


@pytest.mark.parametrize("seed", range(5))
def test_names_follow_the_best_of_all_matchings(seed):
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, 4, 60), rng.integers(0, 5, 60)
    names, numbers = match_numbers([first, second], 0)
    assert names.tolist() == [0, 1, 2, 3]
    assert sorted(numbers) == [0, 1, 2, 3, 4]
    best = max(
        overlap(first, names, second, np.array(each)) for each in permutations(range(5))
    )
    assert overlap(first, names, second, numbers) == best


def test_names_are_kept_in_both_directions():
    coarse = np.repeat([0, 1], [5, 15])
    middle = np.repeat([1, 2, 0], [5, 9, 6])
    fine = np.repeat([3, 0, 1, 2], [5, 9, 4, 2])
    low, own, high = match_numbers([coarse, middle, fine], 1)
    assert own.tolist() == [0, 1, 2]
    assert low.tolist() == [1, 2]
    assert high.tolist() == [2, 0, 3, 1]


def test_every_view_is_the_consensus_of_its_number(reports):
    described, _, (model, _) = reports(40)
    weights = model.cluster_weights_
    for solution in described["solutions"]:
        direct = hierarchical(model.ensemble_, solution["n_clusters"], weights)
        assert ari(direct, solution["labels"]) == 1.0
        association = item_consensus(model.ensemble_, solution["labels"], weights)
        sure = confidence(association, solution["labels"])
        np.testing.assert_allclose(solution["confidence"], sure)
        together = pair_consensus(solution["halves"])
        np.fill_diagonal(together, np.nan)
        for i, k in enumerate(solution["labels"]):
            same = solution["labels"] == k
            own = np.nanmean(together[i, same]) if same.sum() > 1 else 1.0
            assert solution["own"][i] == pytest.approx(own)
            other = np.mean(together[i, solution["labels"] == solution["second"][i]])
            assert solution["other"][i] == pytest.approx(other)
        assert solution["n_ambiguous"] == (sure < 0.6).sum()
        assert len(set(solution["numbers"].tolist())) == solution["n_clusters"]
        sizes = {row["cluster"]: row["size"] for row in solution["clusters"]}
        named = solution["numbers"][solution["labels"]]
        assert sizes == {k: (named == k).sum() for k in sizes}
        position = described["tree"]["position"]
        ordered = named[sample_order(solution["labels"], position)]
        assert (np.diff(ordered) != 0).sum() == solution["n_clusters"] - 1
        classes = np.arange(40) % 3
        counts = np.array(solution["scores"]["counts"])
        for column, k in enumerate(sorted(sizes)):
            direct = np.bincount(classes[named == k], minlength=3)
            assert counts[:, column].tolist() == direct.tolist()


def test_clusters_that_are_recovered_have_full_consensus(reports):
    described, _, (model, _) = reports(40)
    for row in described["solutions"][described["chosen"]]["clusters"]:
        assert row["consensus"] == pytest.approx(1.0)
    halves = cut_halves(model.ensemble_, model.cluster_weights_, [1, 3])
    assert halves.shape == (2, 10, 40)
    assert [len(set(half.tolist())) for half in halves[0]] == [2] * 10
    for half in halves[1]:
        assert ari(half, model.labels_) == 1.0


def test_clusters_of_a_half_are_those_of_its_members(reports):
    _, _, (model, _) = reports(40)
    ensemble, weights = model.ensemble_, model.cluster_weights_
    first, second = cut_halves(ensemble[:2], weights[: ensemble.offsets[2]], [4])[0, :2]
    alone = []
    for m in (0, 1):
        own = slice(*ensemble.offsets[m : m + 2])
        alone.append(hierarchical(ensemble[[m]], 4, weights[own]))
    found = [
        ari(first, each) == ari(second, alone[1 - i]) == 1.0
        for i, each in enumerate(alone)
    ]
    assert any(found)
    assert len(cut_halves(ensemble[:1], weights[: ensemble.offsets[1]], [2])[0]) == 5


@pytest.mark.parametrize("by_chance", [False, True])
def test_clusters_lie_together_in_the_dendrogram(by_chance):
    rng = np.random.default_rng(0)
    base = (np.arange(50) % 4)[:, None] + rng.integers(0, 2, (50, 9))
    ensemble = Ensemble.from_labels(base)
    A = locally_weighted_coassociation(ensemble, np.ones(ensemble.n_base_clusters))
    labels = rng.integers(0, 5, 50) if by_chance else np.arange(50) % 4
    tree = consensus_tree(A, labels)
    ordered = labels[np.argsort(tree["position"])]
    assert (np.diff(ordered) != 0).sum() == len(set(labels.tolist())) - 1
    assert (
        np.argsort(tree["position"]).tolist()
        == sample_order(labels, tree["position"]).tolist()
    )
    for left, low, high, right, far in tree["merges"]:
        assert 0.0 < left < right < 1.0
        assert 0.0 <= max(low, far) <= high <= 1.0


def test_the_dendrogram_of_three_samples():
    A = np.array([[1.0, 0.2, 0.9], [0.2, 1.0, 0.4], [0.9, 0.4, 1.0]])
    tree = consensus_tree(A, np.array([0, 1, 0]))
    first, second, third = tree["position"].tolist()
    assert abs(first - third) == 1
    assert second in (0, 2)
    heights = [high for _, _, high, _, _ in tree["merges"]]
    assert heights == [pytest.approx(0.0, abs=0.02), pytest.approx(2.0 / 3.0, abs=0.02)]
    for size in (1, 2):
        tree = consensus_tree(A[:size, :size], np.zeros(size, dtype=int))
        assert tree["position"].tolist() == list(range(size))


def test_numbers_that_are_many_are_those_nearest():
    base = np.random.default_rng(0).integers(0, 4, size=(90, 4))
    found = select_n_clusters(Ensemble.from_labels(base), k_range=range(2, 60))
    assert nearest_numbers(found, 30) == list(range(15, 45))
    assert nearest_numbers(found, 1) == list(range(1, 31))


def test_clusters_of_drawn_samples_are_cut_with_the_same_weights():
    rng = np.random.default_rng(0)
    base = (np.arange(1100) % 5)[:, None] + rng.integers(0, 2, (1100, 9))
    base[rng.random(base.shape) < 0.05] = -1
    ensemble = Ensemble.from_labels(base)
    weights = rng.uniform(0.3, 1.0, ensemble.n_base_clusters)
    rows = np.sort(rng.choice(1100, 70, replace=False))
    part = restrict_ensemble(ensemble, weights, rows)
    parts = dict(zip([2, 3, 4], cuts(*part, [2, 3, 4]), strict=True))
    block = locally_weighted_coassociation(ensemble, weights)[np.ix_(rows, rows)]
    tree = linkage(squareform(1.0 - block, checks=False), "average")
    for k, part in parts.items():
        assert ari(fcluster(tree, k, "maxclust"), part) == 1.0


def test_effects_against_direct_sums():
    rng = np.random.default_rng(0)
    labels = np.arange(30) % 3
    values = rng.normal(size=(30, 5)) + 100.0
    values[:, 2] += 3.0 * (labels == 1)
    effects = effect_sizes(moments(values, labels))
    for k in range(3):
        inside, outside = values[labels == k], values[labels != k]
        squares = inside.var(axis=0) * 10 + outside.var(axis=0) * 20
        direct = (inside.mean(axis=0) - outside.mean(axis=0)) / np.sqrt(squares / 28)
        np.testing.assert_allclose(effects[k], direct)
    found = signatures(moments(values, labels), np.array([7, 8, 9]), list("abcde"), 2)
    assert [row["cluster"] for row in found] == [7, 7, 8, 8, 9, 9]
    first = found[2]
    assert first["name"] == "c"
    assert first["inside"] == pytest.approx(values[labels == 1, 2].mean())
    assert first["outside"] == pytest.approx(values[labels != 1, 2].mean())


def test_two_clusters_have_one_direction():
    values = np.random.default_rng(0).normal(size=(20, 4))
    groups = moments(values, np.arange(20) % 2)
    effects = effect_sizes(groups)
    np.testing.assert_allclose(effects[0], -effects[1])
    found = signatures(groups, np.array([0, 1]), "abcd", 3)
    assert [row["cluster"] for row in found] == [0, 0, 0]
    assert signatures(moments(values, np.zeros(20, dtype=int)), [0], "abcd", 3) == []


def test_features_without_spread_have_finite_effects():
    labels = np.repeat([0, 1], 10)
    values = np.stack([labels, np.full(20, 7.1), 1e-300 * labels], axis=1)
    effects = effect_sizes(moments(values, labels))
    assert np.isfinite(effects).all()
    assert effects[0, 0] < -100.0
    assert effects[0, 1] == 0.0
    found = signatures(moments(values, labels), np.array([0, 1]), "abc", 9)
    assert 1 not in [row["feature"] for row in found]


def test_features_of_every_number_equal_those_computed_alone(reports):
    described, _, (_, X) = reports(40)
    for solution in described["solutions"]:
        labels = solution["labels"]
        alone = signatures(moments(X, labels), solution["numbers"], "abcdefghijklmn", 5)
        if solution["n_clusters"] > 2:
            listed = [
                (row["cluster"], row["feature"]) for row in solution["signatures"]
            ]
            assert listed == [(row["cluster"], row["feature"]) for row in alone]
        shares = [row["share"] for row in solution["features"]]
        assert shares == sorted(shares, reverse=True)
        effects = effect_sizes(moments(X, labels))
        drawn = solution["markers"]["features"]
        assert (effects[:, drawn].max(axis=0) > 0.0).all()
        marked = effects.max(axis=1) > 0.0
        assert set(effects.argmax(axis=1)[marked]) <= set(drawn)
        best = solution["features"][0]
        column = X[:, int(best["name"][1:])]
        between = sum(
            (solution["labels"] == k).sum()
            * column[solution["labels"] == k].mean() ** 2
            for k in range(solution["n_clusters"])
        )
        mean = 40 * column.mean() ** 2
        total = (column**2).sum() - mean
        assert best["share"] == pytest.approx((between - mean) / total)


def test_few_of_many_samples_leave_the_reports_own_signatures_alone(
    reports, monkeypatch
):
    described, _, (model, X) = reports(40)
    monkeypatch.setattr(compute, "PAGE_SAMPLES", 30)
    names = [f"g{i}" for i in range(14)]
    table = Table(X, described["names"], names)
    few = describe_clustering(model.clustering_, table=table)
    assert len(few["names"]) == 30
    alone = signatures(moments(X, model.labels_), np.arange(3), names, 20)
    assert [row["effect"] for row in few["signatures"]] == [
        row["effect"] for row in alone
    ]


def test_a_cluster_without_samples_is_described_by_no_feature():
    values = np.random.default_rng(0).normal(size=(20, 4))
    groups = moments(values, 2 * (np.arange(20) % 2), 4)
    effects = effect_sizes(groups)
    assert (effects[[1, 3]] == 0.0).all()
    np.testing.assert_allclose(effects[0], -effects[2])
    found = describe_features(groups, np.arange(4), np.arange(4), "abcd")
    assert {row["cluster"] for row in found["signatures"]} == {0, 2}
    assert {row["cluster"] for row in found["features"]} <= {0, 2}
    assert len(found["markers"]["names"]) == 4


def test_samples_at_the_same_place_are_spread():
    places = np.repeat([[10.0, 10.0], [200.0, 50.0]], [6, 5], axis=0)
    moved = spread(places, 8.0)
    assert pdist(moved).min() > 7.0
    assert np.abs(moved - places).max() < 20.0
    np.testing.assert_array_equal(moved, spread(places, 8.0))
    apart = np.array([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0]])
    np.testing.assert_allclose(spread(apart, 8.0), apart, atol=0.1)


def test_samples_beside_the_map_lie_with_their_likes():
    group = np.arange(60) % 3
    matrix = np.where(group[:, None] == group, 0.9, 0.0)
    np.fill_diagonal(matrix, 1.0)
    places = consensus_map(matrix, np.arange(30))["places"]
    middles = np.array([places[:30][group[:30] == k].mean(axis=0) for k in range(3)])
    away = np.linalg.norm(places[30:, None] - middles, axis=2)
    assert (away.argmin(axis=1) == group[30:]).all()


def test_columns_are_classes_numbers_or_words():
    assert describe_column("a", ["2", "10", "2", ""])["levels"] == ["2", "10", ""]
    numbers = describe_column("b", [*map(str, range(30)), "NA"])
    assert numbers["kind"] == "numbers"
    assert np.isnan(numbers["values"][-1])
    assert describe_column("c", [f"id {i}" for i in range(50)])["kind"] == "words"
    assert describe_column("d", ["x", "y", "x"])["codes"].tolist() == [0, 1, 0]
    many = {f"column {i}": ["a", "b"] for i in range(30)}
    shown = describe_columns(np.array(["c", "d"]), many, np.array([1]))
    assert [each["name"] for each in shown[:2]] == ["known class", "column 0"]
    assert len(shown) == 13
    assert shown[0]["levels"] == ["d"]


def test_small_classes_are_counted_together():
    known = np.array([f"class {i // 3}" for i in range(150)] + ["large"] * 50)
    found = compare_classes(known, np.arange(200) % 2, np.array([0, 1]))
    assert len(found["classes"]) == 41
    assert "large" in found["classes"]
    assert found["classes"][-1] == "11 smaller classes"
    assert np.sum(found["counts"]) == 200


def test_classes_and_clusters_have_their_best_match():
    known = np.array(["a"] * 6 + ["b"] * 4 + [""] * 2)
    labels = np.array([0, 0, 0, 0, 1, 2, 1, 1, 1, 2, 3, 3])
    found = compare_classes(known, labels, np.array([5, 0, 7, 9]))
    assert found["counts"] == [[1, 4, 1, 0], [3, 0, 1, 0]]
    matched = [each and each["name"] for each in found["of_clusters"]]
    assert matched == ["b", "a", "a", None]
    assert found["of_clusters"][0]["share"] == 0.75
    assert [each["cluster"] for each in found["of_classes"]] == [5, 0]
    assert found["of_classes"][1]["share"] == 0.75


@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_dots_are_effects_and_shares_of_high_values(shift):
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    counts = rng.poisson(0.5 + 3.0 * (labels[:, None] == np.arange(3)), (60, 3))
    values = counts.astype(float) + shift
    level = 0.0 if shift == 0.0 else values.mean(axis=0)
    order = np.array([2, 0, 1])
    found = markers(moments(values, labels), order, list("xyz"), 3)
    assert found["names"] == ["z", "x", "y"]
    effects = effect_sizes(moments(values, labels))
    for i, j in enumerate([2, 0, 1]):
        for column, k in enumerate(order):
            assert found["effects"][i, column] == pytest.approx(effects[k, j])
            share = (values > level)[labels == k, j].mean()
            assert found["shares"][i, column] == pytest.approx(share)
    listed = signatures(moments(values, labels), np.arange(3), "xyz", 1)
    inside = (values > level)[labels == 0, 0].mean()
    outside = (values > level)[labels != 0, 0].mean()
    assert listed[0]["high"] == pytest.approx(inside)
    assert listed[0]["high_outside"] == pytest.approx(outside)
    one = markers(moments(values, 0 * labels), np.array([0]), "xyz", 3)
    assert one["names"] == []
