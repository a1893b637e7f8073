"""The criteria for K against definitions, and the suggestion on known data."""

from __future__ import annotations

import time

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import silhouette_score

from mdec import MDEC, Ensemble, generate_ensemble
from mdec.coassociation import locally_weighted_coassociation
from mdec.selection import null
from mdec.selection.criteria import (
    cdf_area,
    coassociation_silhouette,
    consensus_distribution,
    eigengaps,
    proportion_ambiguous,
)
from mdec.selection.null import compare_with_null, rotate_samples
from mdec.selection.rule import select_n_clusters, suggest


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


def test_null_draws_keep_mean_and_covariance_and_mix_groups():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3)) @ rng.normal(size=(3, 3)) + 5.0
    X[:25] += 40.0
    drawn = rotate_samples(X, rng)
    np.testing.assert_allclose(drawn.mean(axis=0), X.mean(axis=0))
    np.testing.assert_allclose(np.cov(drawn.T), np.cov(X.T))
    middle = X.mean(axis=0)
    within = np.abs(drawn - middle).sum(axis=1) < np.abs(X - middle).sum(axis=1).min()
    assert within.sum() > 10


def test_data_of_one_cluster_rank_like_a_draw():
    rng = np.random.default_rng(0)
    samples = rng.gamma(9.0, 0.02, size=(1000, 20, 6))
    p_values = np.array([compare_with_null(x[0], x[1:]).p_value for x in samples])
    # Each of the 20 ranks is as likely as any other.
    counts = np.bincount(np.round(20 * p_values).astype(int), minlength=21)
    assert counts[1:].min() > 25
    assert counts[1:].max() < 80
    assert counts[0] <= 3


def test_the_greatest_excess_counts():
    draws = np.array([[0.1, 0.2], [0.3, 0.1], [0.2, 0.3]])
    # No other row exceeds the rest as much as the first does in the second column.
    clear = compare_with_null(np.array([0.2, 0.6]), draws)
    assert clear.p_value == 1 / 4
    like_a_draw = compare_with_null(np.array([0.2, 0.2]), draws)
    assert like_a_draw.p_value == 1.0
    np.testing.assert_array_equal(clear.draws, draws)


def test_data_far_beyond_few_draws_are_certain():
    draws = np.random.default_rng(0).normal(0.1, 0.01, size=(10, 5))
    far = compare_with_null(np.full(5, 0.5), draws)
    assert far.p_value < null.CERTAIN
    assert compare_with_null(np.full(5, 0.13), draws).p_value == 1 / 11


@pytest.mark.parametrize(
    ("ranks_above", "n_draws"),
    [(2, 10), (12, 20), (25, 40), (60, 99), (200, 99)],
    ids=str,
)
def test_draws_stop_when_two_are_as_clear(monkeypatch, ranks_above, n_draws):
    # The data are clearer than all draws but two, made after so many others.
    levels = np.random.default_rng(1).uniform(0.1, 0.2, size=(99, 1))
    levels[ranks_above - 1 : ranks_above + 1] = 0.3
    levels = levels[: n_draws + 1]
    data = np.array([0.21])
    observed = iter([data, *levels[:10], data, *levels])
    rng = np.random.default_rng(0)
    ensemble = generate_ensemble(rng.normal(size=(20, 4)), ensemble_size=3)
    monkeypatch.setattr(null, "silhouettes", lambda *_: next(observed))
    monkeypatch.setattr(null, "generate_like", lambda *_, **__: None)
    told = []
    reference = null.null_reference(
        rng.normal(size=(20, 4)),
        ensemble,
        [2],
        "entropy",
        0,
        progress=lambda *done: told.append(done),
    )
    assert len(reference.draws) == n_draws
    assert told[-1] == (n_draws, n_draws)
    assert told[0] == (1, 10)
    # Two of 99 exceed in any order, so the level is 0.02.
    assert (reference.p_value <= null.NULL_LEVEL) == (ranks_above == 200)


def test_clear_groups_show_at_a_glance(monkeypatch):
    sizes = []

    def like(ensemble, X, rng, n_members, **settings):
        sizes.append((len(X), n_members))
        return generate(ensemble, X, rng, n_members, **settings)

    generate = null.generate_like
    monkeypatch.setattr(null, "generate_like", like)
    X, _ = make_blobs(220, n_features=60, centers=6, cluster_std=3.0, random_state=0)
    ensemble = generate_ensemble(X, ensemble_size=30, random_state=0)
    reference = null.null_reference(X, ensemble, range(2, 9), "entropy", 0)
    assert reference.p_value <= null.CERTAIN
    assert sizes == 11 * [(200, 20)]


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
    assert frame.index.tolist() == list(range(2, 11))
    assert frame["pac"].between(0, 1).all()
    assert model.recluster(5).max() == 4


def test_noise_is_one_cluster():
    X = np.random.default_rng(7).normal(size=(60, 40))
    model = MDEC("auto", ensemble_size=40, random_state=0).fit(X)
    assert model.n_clusters_ == 1
    assert set(model.labels_) == {0}
    assert "no clearer" in model.k_selection_.reason
    assert (model.predict(X[:5]) == 0).all()


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


def test_suggestion_is_the_largest_product():
    table = {
        "n_clusters": np.array([2, 3, 4]),
        "eigengap": np.array([0.5, 0.4, 0.1]),
        "silhouette": np.array([0.1, 0.3, 0.3]),
        "agreement": np.array([1.0, 0.9, 1.0]),
    }
    assert suggest(table, None)[0] == 3


@pytest.mark.parametrize("deciding", ["eigengap", "silhouette", "agreement"])
def test_each_criterion_can_decide(deciding):
    criteria = ("eigengap", "silhouette", "agreement")
    table = {name: np.array([0.6, 0.6, 0.6]) for name in criteria}
    table["n_clusters"] = np.array([2, 3, 4])
    table[deciding] = np.array([0.5, 0.4, 0.7])
    n_clusters, reason = suggest(table, None)
    assert n_clusters == 4
    assert "K = 2 comes next with 71 %" in reason
    # Less than nothing is nothing, also twice.
    table[deciding] = np.array([-0.9, 0.1, 0.0])
    table["silhouette" if deciding != "silhouette" else "eigengap"][0] = -0.9
    assert suggest(table, None)[0] == 3


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
    words = "it is the largest number compared"
    assert words in select_n_clusters(ensemble, k_range=[2, 3]).reason
    assert words not in select_n_clusters(ensemble, k_range=[2, 3, 4]).reason
