"""The criteria for K against definitions, and the suggestion on known data."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.spatial.distance import cdist, pdist
from sklearn.datasets import make_blobs
from sklearn.isotonic import isotonic_regression
from sklearn.metrics import adjusted_rand_score, silhouette_score

from mdec import MDEC, Ensemble, MultiViewMDEC, generate_ensemble
from mdec.base.graphs import similarity_graph
from mdec.base.pairs import Pairs
from mdec.coassociation import locally_weighted_coassociation
from mdec.consensus.dendrogram import cut, merges
from mdec.ensemble.plan import Plan
from mdec.selection import null
from mdec.selection.criteria import (
    cdf_area,
    coassociation_silhouette,
    consensus_distribution,
    cuts,
    eigengaps,
    merge_gaps,
    proportion_ambiguous,
    rand_index,
)
from mdec.selection.null import (
    Cloud,
    NullReference,
    compare_with_null,
    default_numbers,
    measure_groups,
    scale_pairs,
    undo_rounding,
    widest_gap,
)
from mdec.selection.rule import (
    EXPONENTS,
    list_candidates,
    select_n_clusters,
    suggest,
    suggestion_score,
)
from mdec.weights import ensemble_driven_cluster_index


def naive_distribution(partitions):
    """Consensus of every pair, counted one pair at a time."""
    n_partitions, n_samples = partitions.shape
    shares = [
        np.mean(partitions[:, i] == partitions[:, j])
        for i in range(n_samples)
        for j in range(i)
    ]
    levels = np.arange(n_partitions + 1) / n_partitions
    return levels, np.array([np.mean(np.array(shares) <= v + 1e-9) for v in levels])


@pytest.mark.parametrize("seed", range(3))
def test_distribution_and_pac_match_their_definitions(seed):
    rng = np.random.default_rng(seed)
    partitions = rng.integers(0, 3, size=(20, 17))
    partitions[:, 5] = partitions[:, 4]
    levels, cdf = consensus_distribution(partitions)
    expected_levels, expected = naive_distribution(partitions)
    np.testing.assert_allclose(levels, expected_levels)
    np.testing.assert_allclose(cdf, expected)
    shares = [
        np.mean(partitions[:, i] == partitions[:, j])
        for i in range(17)
        for j in range(i)
    ]
    between = np.mean([0.1 + 1e-9 < share < 0.9 - 1e-9 for share in shares])
    assert proportion_ambiguous(levels, cdf) == pytest.approx(between)
    # The area under a distribution on [0, 1] is one less its mean.
    assert cdf_area(levels, cdf) == pytest.approx(1.0 - np.mean(shares))


def test_silhouette_is_scikit_learns():
    rng = np.random.default_rng(0)
    ensemble = Ensemble.from_labels(rng.integers(0, 4, size=(40, 12)))
    matrix = locally_weighted_coassociation(ensemble)
    labels = rng.integers(0, 5, size=40)
    labels[7] = 5
    distance = 1.0 - matrix
    np.fill_diagonal(distance, 0.0)
    expected = silhouette_score(distance, labels, metric="precomputed")
    assert coassociation_silhouette(matrix, labels) == pytest.approx(expected)


def test_separate_groups_show_in_the_eigengap():
    labels = np.repeat([0, 1, 2], 8)
    matrix = (labels[:, None] == labels).astype(float)
    np.testing.assert_allclose(eigengaps(matrix, [2, 3, 4]), [0, 1, 0], atol=1e-12)


def test_roots_of_eigenvalues_are_compared():
    matrix = np.diag([2.0, 2.0, 2.0, 2.0]) + 1.0
    values = np.linalg.eigvalsh(matrix / matrix.sum(axis=1))[::-1]
    expected = np.sqrt(values[[1, 2]]) - np.sqrt(values[[2, 3]])
    np.testing.assert_allclose(eigengaps(matrix, [2, 3]), expected, atol=1e-12)
    first = np.sqrt(values[0]) - np.sqrt(values[1])
    assert eigengaps(matrix, [1])[0] == pytest.approx(first)


@pytest.mark.parametrize("seed", range(3))
def test_all_cuts_at_once_are_those_one_by_one(seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, size=(40, 12))
    labels[20:30] = labels[:10]
    ensemble = Ensemble.from_labels(labels)
    weights = ensemble_driven_cluster_index(ensemble)
    tree = merges(ensemble, weights)
    for ks in ([2, 3, 7], [5], [9, 30, 39]):
        expected = [cut(*tree, 40, k) for k in ks]
        np.testing.assert_array_equal(cuts(ensemble, weights, ks), expected)


def test_merge_gaps_are_those_of_the_dendrogram():
    # Four clusters last from the merge at 0.7 to that at 0.4, whatever their order.
    gaps = merge_gaps(np.array([0.4, 0.9, 0.7, 0.2, 0.1]), [2, 3, 4])
    np.testing.assert_allclose(gaps, [0.1, 0.2, 0.3])


@pytest.mark.parametrize("seed", range(3))
def test_rand_index_is_scikit_learns(seed):
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, 4, size=(2, 30))
    assert rand_index(first, second) == pytest.approx(
        adjusted_rand_score(first, second)
    )
    assert rand_index(np.zeros(5, int), np.zeros(5, int)) == 1.0
    assert rand_index(np.zeros(5, int), np.arange(5)) == 0.0


def test_null_draws_keep_distributions_and_correlations_and_mix_groups():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) @ rng.normal(size=(3, 3)) + 5.0
    X[:, 2] = np.exp(X[:, 2])
    drawn = Cloud.of(X).draw(rng)
    spread = X.std(axis=0)
    for share in (0.1, 0.5, 0.9):
        quantiles = np.quantile([X, drawn], share, axis=1)
        assert (np.abs(np.diff(quantiles, axis=0)) < 0.3 * spread).all()
    ranks = [stats.spearmanr(each).statistic for each in (X, drawn)]
    np.testing.assert_allclose(*ranks, atol=0.1)
    # The tail is in the draws too, and nothing beyond it.
    assert drawn[:, 2].max() <= X[:, 2].max() * (1.0 + 1e-9)
    assert stats.skew(drawn[:, 2]) > 1.5
    groups = rng.normal(size=(60, 3))
    groups[:30] += 40.0
    middle = groups.mean(axis=0)
    drawn = Cloud.of(groups).draw(rng)
    farthest_in = np.abs(groups - middle).sum(axis=1).min()
    assert (np.abs(drawn - middle).sum(axis=1) < farthest_in).sum() > 10


@pytest.mark.parametrize("seed", range(3))
def test_values_of_a_draw_have_one_hump(seed):
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(size=(25, 4)), rng.normal(size=(35, 4)) + 20.0])
    cloud = Cloud.of(X)
    assert not cloud.is_normal.any()
    values = cloud.values
    np.testing.assert_allclose(values[[0, -1]], [X.min(axis=0), X.max(axis=0)])
    for before, after in zip(np.sort(X, axis=0).T, values.T, strict=True):
        gaps, raw = np.diff(after), np.diff(before)
        turns = [
            mode
            for mode in range(60)
            if np.allclose(gaps[:mode], falling(raw[:mode]))
            and np.allclose(gaps[mode:], falling(raw[mode:][::-1])[::-1])
        ]
        assert turns
    # The gap of 20 between the groups is spread over one of them.
    assert np.diff(values, axis=0).max() < 3.0


def falling(gaps):
    """Scikit-learn's regression, which another library's is compared with."""
    return isotonic_regression(gaps, increasing=False) if len(gaps) else gaps


def test_few_values_keep_their_shares():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random(80) < 0.02, rng.integers(1, 6, 80)]).astype(float)
    X[0, 0] = 1.0
    for _ in range(20):
        drawn = Cloud.of(X).draw(rng)
        np.testing.assert_array_equal(np.sort(drawn, axis=0), np.sort(X, axis=0))


@pytest.mark.parametrize(("n_samples", "n_features"), [(400, 10), (60, 200)])
def test_draws_of_few_values_are_as_correlated_as_the_data(n_samples, n_features):
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(n_samples, 2)) @ rng.normal(size=(2, n_features))
    X = (factors + rng.normal(size=(n_samples, n_features)) > 0.3).astype(float)
    X = X[:, X.any(axis=0) & ~X.all(axis=0)]
    cloud = Cloud.of(X)
    assert cloud.is_tied.all()
    squares = [
        (np.corrcoef(each, rowvar=False) ** 2).sum()
        for each in [X, *(cloud.draw(np.random.default_rng(s)) for s in range(9))]
    ]
    # Rounding their normal scores once more would leave half of it.
    assert np.mean(squares[1:]) == pytest.approx(squares[0], rel=0.1)


def test_scores_without_ties_stay_as_they_are():
    rng = np.random.default_rng(0)
    scores, is_tied = rng.normal(size=(19, 6)), np.zeros(6, dtype=bool)
    found = undo_rounding(scores, np.empty((20, 0)), is_tied, 0)
    np.testing.assert_allclose(found, scores, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_null_draws_of_any_scale(scale):
    X = np.random.default_rng(0).normal(size=(20, 12))
    plain = Cloud.of(X).draw(np.random.default_rng(1))
    drawn = Cloud.of(X * scale).draw(np.random.default_rng(1))
    np.testing.assert_allclose(drawn / scale, plain, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("n_samples", [3, 4, 5])
def test_null_draws_of_few_samples_and_equal_values(n_samples):
    X = np.random.default_rng(0).normal(size=(n_samples, 3))
    X[:, 1] = 7.0
    drawn = Cloud.of(X).draw(np.random.default_rng(1))
    assert drawn.shape == X.shape
    assert (drawn[:, 1] == 7.0).all()
    assert np.isfinite(drawn).all()


def test_data_of_one_cluster_rank_like_a_draw():
    rng = np.random.default_rng(0)
    samples = rng.gamma(9.0, 0.02, size=(1000, 20, 6))
    p_values = np.array([compare_with_null(x[0], x[1:]).p_value for x in samples])
    # Each of the 20 ranks is as likely as any other.
    counts = np.bincount(np.round(20 * p_values).astype(int), minlength=21)
    assert counts[1:].min() > 25
    assert counts[1:].max() < 80
    assert counts[0] <= 3


def test_one_cluster_is_hardly_ever_certain():
    rng = np.random.default_rng(0)
    common = rng.normal(size=(2000, 13, 3)) @ rng.normal(size=(3, 8))
    values = np.exp(0.3 * (common + rng.normal(size=(2000, 13, 8))))
    p_values = np.array([compare_with_null(x[0], x[1:]).p_value for x in values])
    assert (p_values <= null.CERTAIN).sum() <= 2


def test_the_greatest_excess_counts():
    draws = np.array([[0.1, 0.2], [0.3, 0.1], [0.2, 0.3]])
    # No other row exceeds the rest as much as the first does in the second column.
    clear = compare_with_null(np.array([0.2, 0.6]), draws)
    assert clear.p_value == 1 / 4
    like_a_draw = compare_with_null(np.array([0.2, 0.2]), draws)
    assert like_a_draw.p_value == 1.0
    np.testing.assert_array_equal(clear.draws, draws)


def test_data_far_beyond_few_draws_are_certain():
    draws = np.random.default_rng(0).normal(0.1, 0.01, size=(19, 5))
    far = compare_with_null(np.full(5, 0.5), draws)
    assert far.p_value < null.CERTAIN
    assert compare_with_null(np.full(5, 0.13), draws).p_value == 1 / 20


@pytest.mark.parametrize(
    ("n_above", "n_draws"), [(6, 12), (1, 39), (0, 39)], ids=["many", "one", "none"]
)
def test_draws_stop_when_many_are_as_clear(monkeypatch, n_above, n_draws):
    levels = np.random.default_rng(1).uniform(0.1, 0.2, size=(40, 1))
    levels[0] = 0.21
    levels[1 : 1 + n_above] = 0.3
    found = iter(levels)

    def measure(tables, clouds):
        assert len(tables) == len(clouds) == 1
        assert clouds[0].lengths is None
        assert clouds[0].kernel == "cosine"
        return next(found)

    monkeypatch.setattr(null, "measure_groups", measure)
    counted = []
    reference = null.null_reference(
        [np.random.default_rng(0).normal(size=(20, 4))],
        [Plan(20, 4, entropy=0, kernel={"spearman": 0.4, "cosine": 0.6})],
        progress=lambda *done: counted.append(done),
    )
    assert len(reference.draws) == n_draws
    assert counted == [
        (done, next(look for look in null.LOOKS if done <= look))
        for done in range(1, n_draws + 1)
    ]
    # None of 39 may exceed, so one cluster is firm with a chance of 1 / 40.
    assert reference.is_firm == (n_above == 0)


@pytest.mark.parametrize(
    ("n_samples", "compared"), [(150, 150), (500, 200), (1000, 250), (9000, 500)]
)
def test_large_tables_are_tested_on_some_samples_and_features(
    monkeypatch, n_samples, compared
):
    sizes = []

    def measure(tables, *_):
        sizes.append(tables[0].shape)
        return np.zeros(1)

    monkeypatch.setattr(null, "measure_groups", measure)
    monkeypatch.setattr(null, "MOST_FEATURES", 5)
    X = np.random.default_rng(0).normal(size=(n_samples, 8))
    null.null_reference([sparse.csr_array(X)], [Plan(n_samples, 8, entropy=0)])
    assert set(sizes) == {(compared, 5)}


def test_given_pairs_keep_their_distances_in_draws():
    rng = np.random.default_rng(0)
    data, drawn = rng.normal(size=(2, 30, 4))
    plain, pairs = Cloud.of(data), Cloud.of(data, pairs=True)
    np.testing.assert_allclose(pairs.lengths, np.sort(pdist(data, "sqeuclidean")))
    own = measure_groups([data], [plain])
    np.testing.assert_allclose(measure_groups([data], [pairs]), own)
    other = measure_groups([drawn], [pairs])
    assert not np.allclose(other, measure_groups([drawn], [plain]))


def groups_of(*tables, norms=None):
    """What shows groups in tables whose samples keep their norms, or have others."""
    clouds = list(map(Cloud.of, tables))
    if norms is not None:
        clouds = [replace(c, norms=n) for c, n in zip(clouds, norms, strict=True)]
    return measure_groups(tables, clouds)


def eigenvalues_of(X):
    """The eigenvalues of the random walk on the graph of all samples but the first."""
    W = similarity_graph(X, "scaled_gaussian", 10, 0.5).toarray()
    return np.sort(np.linalg.eigvals(W / W.sum(axis=1)[:, None]).real)[::-1][1:]


def test_samples_are_brought_to_norms_in_their_order():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 6))
    X -= X.mean(axis=0)
    own, wanted = np.linalg.norm(X, axis=1), np.sort(rng.random(50))
    scaled = X * (wanted[stats.rankdata(own).astype(int) - 1] / own)[:, None]
    found = groups_of(X, norms=[wanted**2])
    np.testing.assert_allclose(found[:9], eigenvalues_of(scaled)[:9], atol=1e-8)
    # The axis is that of the samples where they were.
    np.testing.assert_allclose(found[9:], groups_of(X)[9:])


def test_groups_show_in_eigenvalues_and_gaps():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    X[:20, 0] += 20.0
    X[20:40, 1] += 20.0
    groups, none = groups_of(X), groups_of(rng.normal(size=(60, 4)))
    # Two eigenvalues of one beside the first are three groups that no edge ties.
    np.testing.assert_allclose(groups[:2], 1.0, atol=1e-9)
    assert groups[2:11].max() < 0.99
    assert none[:11].max() < 0.99
    assert none[11] < 0.5 < groups[11]


def test_eigenvalues_are_those_of_the_graph():
    X = np.random.default_rng(0).normal(size=(50, 6))
    found = groups_of(X)
    np.testing.assert_allclose(found[:9], eigenvalues_of(X)[:9], atol=1e-8)
    np.testing.assert_allclose(groups_of(X, 7.0 * X), found, atol=1e-8)


def test_axes_of_equal_size_have_no_gap():
    square = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    ring = np.concatenate([square * each for each in range(1, 9)])
    assert groups_of(ring)[-1] == 0.0
    assert groups_of(ring * [1.0, 2.0])[-1] > 0.0


def test_the_widest_gap_has_a_tenth_of_the_samples_on_each_side():
    values = np.concatenate([[-50.0], np.arange(10.0), 14.0 + np.arange(9.0)])
    # Between 9 and 14, although the one at -50 is farther from all.
    spread = math.sqrt((11 * np.r_[-50.0, 0:10].var() + 9 * np.r_[0:9].var()) / 20)
    for places in (values, -values):
        assert widest_gap(places) == pytest.approx(5.0 / (5.0 + spread))


def test_samples_that_all_have_copies_are_tied_to_these():
    X = np.repeat(np.eye(3), 12, axis=0)
    found = groups_of(X)
    np.testing.assert_allclose(found[:6], [1, 1, 0, 0, 0, 0], atol=1e-9)
    # Two values leave draws nothing else, so they are as clear.
    two = np.repeat([[0.0], [1.0]], 20, axis=0)
    assert null.null_reference([two], [Plan(40, 1, entropy=0)]).p_value == 1.0


def test_pairs_become_coordinates_with_these_distances():
    X = np.random.default_rng(0).normal(size=(12, 3))
    squared = cdist(X, X, "sqeuclidean")
    found = scale_pairs(Pairs.of(np.sqrt(squared), "metric"))
    assert found.shape == (12, 3)
    np.testing.assert_allclose(cdist(found, found, "sqeuclidean"), squared, atol=1e-9)
    cosine = 1.0 - cdist(X, X, "cosine")
    found = scale_pairs(Pairs.of(cosine, "metric"))
    squared = cdist(found, found, "sqeuclidean")
    np.testing.assert_allclose(squared, 2.0 - 2.0 * cosine, atol=1e-9)


def test_axes_that_are_less_than_half_real_are_left_out():
    X = np.random.default_rng(0).normal(size=(40, 2))
    squared = cdist(X, X, "chebyshev") ** 2
    center = np.eye(40) - 1.0 / 40.0
    sizes = np.linalg.eigvalsh(-0.5 * center @ squared @ center)
    found = scale_pairs(Pairs.of(np.sqrt(squared), "metric"))
    np.testing.assert_allclose((found**2).sum(axis=0), sizes[::-1][: found.shape[1]])
    assert 2 <= found.shape[1] == (sizes > -2.0 * sizes[0]).sum() < 5


def test_blobs_are_counted():
    for k in (2, 4, 6):
        X, _ = make_blobs(
            40 * k, n_features=30, centers=k, cluster_std=2.5, random_state=k
        )
        ensemble = generate_ensemble(X, ensemble_size=50, random_state=0)
        selection = select_n_clusters(ensemble, k_range=range(2, 10))
        assert selection.n_clusters == k
        assert f"K = {k}" in selection.reason
        assert "not tested" in selection.reason


def test_auto_takes_the_suggestion_and_keeps_the_table():
    X, y = make_blobs(90, n_features=20, centers=3, cluster_std=2.0, random_state=0)
    model = MDEC("auto", ensemble_size=40, random_state=0).fit(X)
    assert model.n_clusters_ == model.k_selection_.n_clusters == 3
    assert len(set(zip(model.labels_.tolist(), y.tolist(), strict=True))) == 3
    assert model.k_selection_.null.p_value < 0.05
    frame = model.k_selection_.to_frame()
    assert frame.index.tolist() == list(range(2, 19))
    assert frame["pac"].between(0, 1).all()
    assert model.recluster(5).max() == 4


def test_noise_is_one_cluster():
    X = np.random.default_rng(7).normal(size=(60, 40))
    model = MDEC("auto", ensemble_size=40, random_state=0).fit(X)
    assert model.n_clusters_ == 1
    assert set(model.labels_) == {0}
    assert "no clearer" in model.k_selection_.reason
    assert (model.predict(X[:5]) == 0).all()
    # The best split is on offer, in words and as a number.
    split = model.k_selection_.candidates[0]
    assert f"No firm groups; the best split would be K = {split.n_clusters}" in (
        model.k_selection_.reason
    )
    assert model.recluster(split.n_clusters).max() == split.n_clusters - 1


def test_one_cluster_can_be_ruled_out_by_the_caller():
    X = np.random.default_rng(7).normal(size=(40, 10))
    ensemble = generate_ensemble(X, ensemble_size=20, random_state=0)
    selection = select_n_clusters(ensemble, X=X, k_range=[2, 3], allow_one=False)
    assert selection.n_clusters in (2, 3)
    assert "no clearer" in selection.reason


def test_the_same_seed_gives_the_same_table():
    X = np.random.default_rng(0).normal(size=(50, 10))
    ensemble = generate_ensemble(X, ensemble_size=20, random_state=3)
    first, second = (select_n_clusters(ensemble, X=X, n_jobs=n) for n in (1, 2))
    for name, column in first.table.items():
        np.testing.assert_array_equal(column, second.table[name])
    np.testing.assert_array_equal(first.null.draws, second.null.draws)


def test_the_seed_of_the_ensemble_changes_neither_suggestion_nor_p_value():
    X, _ = make_blobs(60, n_features=20, centers=3, cluster_std=6.0, random_state=0)
    found = [
        MDEC(k, ensemble_size=20, random_state=seed).fit(X).k_selection_
        for seed, k in [(0, "auto"), (1, "auto"), (2, (2, 5))]
    ]
    assert len({each.null.p_value for each in found}) == 1
    assert found[0].n_clusters == found[1].n_clusters
    np.testing.assert_array_equal(found[0].table["score"], found[1].table["score"])
    # The gap of a number does not depend on how many others are compared.
    np.testing.assert_allclose(found[0].table["score"][:4], found[2].table["score"])


def table_of(**columns):
    """Criteria of 2, 3 and on clusters, 0.6 where nothing else is said."""
    n_numbers = len(next(iter(columns.values())))
    table = {name: np.full(n_numbers, 0.6) for name in EXPONENTS}
    table |= {name: np.array(values) for name, values in columns.items()}
    table["n_clusters"] = np.arange(2, n_numbers + 2)
    table["score"] = suggestion_score(table)
    return table


def parts_of(table):
    """Some clusters for each number of the table."""
    return np.stack([np.arange(60) % k for k in table["n_clusters"]])


def answer(table, reference=None, **settings):
    """The suggestion and its reason."""
    candidates = list_candidates(table, parts_of(table))
    return suggest(table, candidates, reference, **settings)


@pytest.mark.parametrize("deciding", EXPONENTS)
def test_each_criterion_can_decide(deciding):
    n_clusters, reason = answer(table_of(**{deciding: [0.5, 0.4, 0.7]}))
    assert n_clusters == 4
    assert "K = 4 has the largest score" in reason
    # Less than nothing is nothing, also twice.
    other = "silhouette" if deciding != "silhouette" else "eigengap"
    table = table_of(**{deciding: [-0.9, 0.1, 0.0], other: [-0.9, 0.6, 0.6]})
    assert answer(table)[0] == 3


def test_the_score_is_the_product_with_its_exponents():
    table = table_of(
        silhouette=[0.5], agreement=[0.9], eigengap=[0.16], merge_gap=[0.0625]
    )
    assert table["score"] == pytest.approx(0.5 * 0.9 * 0.4 * 0.5)


def test_candidates_are_peaks_and_the_best_comes_first():
    table = table_of(silhouette=[0.5, 0.3, 0.2, 0.6, 0.55, 0.1, 0.4, 0.1, 0.2])
    found = list_candidates(table, parts_of(table))
    # 6 is no peak, and 10 has too little of the largest score.
    assert [each.n_clusters for each in found] == [5, 2, 8]
    assert [each.score for each in found] == pytest.approx([1.0, 5 / 6, 4 / 6])
    assert found[0].sentence == "5 clusters with 20 % of the samples each"
    reason = answer(table)[1]
    assert "Close to it: 2, 6;" in reason


def test_without_any_score_the_smallest_number_is_first():
    table = table_of(silhouette=[0.0, 0.0, 0.0])
    assert list_candidates(table, parts_of(table))[0].n_clusters == 2
    assert "Close to it" not in answer(table)[1]


def test_the_level_is_below_five_percent():
    table = table_of(silhouette=[0.5, 0.6, 0.2])
    draws = np.zeros((39, 3))
    for p_value, expected in [(0.049, 3), (0.05, 1), (0.2, 1)]:
        reference = NullReference(table["silhouette"], draws, p_value)
        n_clusters, reason = answer(table, reference)
        assert n_clusters == expected
        assert ("No firm groups" in reason) == (expected == 1)
        assert answer(table, reference, allow_one=False)[0] == 3


@pytest.mark.parametrize(
    ("n_samples", "last"), [(3, 2), (14, 2), (42, 8), (149, 29), (5000, 30)]
)
def test_numbers_reach_a_fifth_of_the_samples(n_samples, last):
    assert default_numbers(n_samples) == list(range(2, last + 1))


def test_views_are_tested_together():
    X, _ = make_blobs(60, n_features=12, centers=3, cluster_std=2.0, random_state=0)
    noise = np.random.default_rng(0).normal(size=(60, 8))
    model = MultiViewMDEC(MDEC("auto", ensemble_size=20, random_state=0))
    found = model.fit({"blobs": X, "again": X[:, ::-1]})
    assert found.n_clusters_ == 3
    assert found.k_selection_.null.is_firm
    none = model.fit({"none": noise, "nor": noise[:, :5]})
    assert none.n_clusters_ == 1


@pytest.mark.parametrize("numbers", [[1, 2], [2, 50], []])
def test_ranges_that_make_no_sense_are_refused(numbers):
    ensemble = Ensemble.from_labels(np.arange(30).reshape(10, 3) % 4)
    with pytest.raises(ValueError, match="between 2 and 9"):
        select_n_clusters(ensemble, k_range=numbers)


@pytest.mark.slow
def test_scanning_k_is_fast():
    X = np.random.default_rng(0).normal(size=(500, 20))
    ensemble = generate_ensemble(X, ensemble_size=100, random_state=0)
    select_n_clusters(ensemble[:4], k_range=[2, 3])
    start = time.process_time()
    select_n_clusters(ensemble, k_range=range(2, 13))
    assert time.process_time() - start < 5.0


def test_large_ensembles_are_measured_on_a_sample():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(3), 800)
    base = np.where(rng.random((2400, 30)) < 0.1, 0, groups[:, None])
    selection = select_n_clusters(Ensemble.from_labels(base), k_range=range(2, 7))
    assert len(selection.samples) == 1000
    assert selection.n_clusters == 3


def test_the_largest_number_compared_is_pointed_out() -> None:
    labels = np.repeat([[0, 0, 1], [1, 0, 0], [2, 1, 0]], 10, axis=0)
    ensemble = Ensemble.from_labels(labels)
    words = "It is the largest number compared"
    assert words in select_n_clusters(ensemble, k_range=[2, 3]).reason
    assert words not in select_n_clusters(ensemble, k_range=[2, 3, 4]).reason
    assert words not in select_n_clusters(ensemble, k_range=[3]).reason


@pytest.mark.parametrize("n_features", [4, 10])
@pytest.mark.parametrize("n_samples", [24, 90])
def test_two_groups_far_apart_are_not_one(n_samples, n_features):
    """They make one long cloud, which members would cut as clearly without a gap."""
    X = np.random.default_rng(3).normal(size=(n_samples, n_features))
    X[: n_samples // 3] += 30.0
    model = MDEC("auto", ensemble_size=20, random_state=0).fit(X)
    assert model.n_clusters_ == 2
    assert model.k_selection_.null.is_firm


@pytest.mark.parametrize(
    "kind",
    [
        "gaussian",
        "long",
        "lognormal",
        "counts",
        "ratings",
        "answers",
        "outliers",
        "cube",
    ],
)
def test_what_is_one_cluster_is_not_called_groups(kind):
    firm = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = {
            "gaussian": rng.normal(size=(60, 6)),
            "long": rng.normal(size=(60, 6)) * [50.0, 1, 1, 1, 1, 1],
            "lognormal": np.exp(rng.normal(size=(40, 40))),
            "counts": rng.negative_binomial(2, 0.3, (40, 40)).astype(float),
            "ratings": rng.integers(1, 6, (60, 2)).astype(float),
            "answers": rng.normal(size=(60, 2)) @ rng.normal(size=(2, 90))
            > rng.normal(size=(60, 90)),
            "outliers": rng.standard_t(1.5, (60, 6)),
            "cube": rng.random((60, 3)),
        }[kind]
        firm += null.null_reference([X], [Plan(*X.shape, entropy=0)]).is_firm
    # One of 40 is expected.
    assert firm <= 1
