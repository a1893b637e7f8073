"""Members that cluster a share of the samples, the others unlabelled (-1)."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from mdec import MDEC, Ensemble, generate_ensemble
from mdec.coassociation import factor_rows, locally_weighted_coassociation
from mdec.confidence import item_consensus, sum_profiles
from mdec.consensus import CONSENSUS, dendrogram, hierarchical
from mdec.consensus.dendrogram import cut, merges
from mdec.ensemble.plan import Plan
from mdec.report.compute import describe_clustering
from mdec.selection.rule import select_n_clusters


@pytest.fixture(scope="module")
def blobs() -> tuple[np.ndarray, np.ndarray]:
    X, y = make_blobs(120, n_features=12, centers=3, random_state=0)
    return X, y


def monti(labels: np.ndarray, weights: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return counts over joint draws, pair by pair."""
    n, n_members = labels.shape
    matrix = np.eye(n)
    for i in range(n):
        for j in range(n):
            both = [m for m in range(n_members) if min(labels[i, m], labels[j, m]) >= 0]
            together = [m for m in both if labels[i, m] == labels[j, m]]
            if i != j:
                total = sum(weights[offsets[m] + labels[i, m]] for m in together)
                matrix[i, j] = total / len(both) if both else 0.0
    return matrix


def same_partition(a: np.ndarray, b: np.ndarray) -> bool:
    return adjusted_rand_score(a, b) == 1.0


def with_gaps(n: int, n_members: int, share: float, seed: int) -> Ensemble:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    noisy = rng.random((n, n_members)) < 0.2
    labels = np.where(noisy, rng.integers(0, 4, (n, n_members)), y[:, None])
    labels[rng.random(labels.shape) < share] = -1
    return Ensemble.from_labels(labels)


@pytest.mark.parametrize("share", [0.2, 0.6])
def test_the_matrix_is_counts_over_joint_draws(share: float) -> None:
    ensemble = with_gaps(30, 6, share, 1)
    weights = np.random.default_rng(0).uniform(0.2, 1.0, ensemble.n_base_clusters)
    found = locally_weighted_coassociation(ensemble, weights)
    expected = monti(ensemble.labels, weights, ensemble.offsets)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("n_samples", [40, 1100])
def test_linkage_is_that_of_the_matrix(n_samples: int) -> None:
    ensemble = with_gaps(n_samples, 40, 0.4, 2)
    assert len(ensemble.microclusters[0]) == n_samples
    weights = np.random.default_rng(0).uniform(0.2, 1.0, ensemble.n_base_clusters)
    A = locally_weighted_coassociation(ensemble, weights)
    tree = linkage(squareform(1.0 - A, checks=False), "average")
    pairs, similarities = merges(ensemble, weights)
    np.testing.assert_allclose(1.0 - similarities, tree[:, 2], atol=1e-9)
    for k in (2, 3, 5):
        found = cut(pairs, similarities, n_samples, k)
        assert same_partition(found, fcluster(tree, k, "maxclust"))


def test_linkage_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    ensemble = with_gaps(200, 40, 0.4, 3)
    weights = np.random.default_rng(0).uniform(0.2, 1.0, ensemble.n_base_clusters)
    exact = hierarchical(ensemble, 3, weights)
    monkeypatch.setattr(dendrogram, "DOUBLE_PRECISION_SAMPLES", 10)
    assert same_partition(hierarchical(ensemble, 3, weights), exact)


def test_regions_share_by_joint_draws() -> None:
    """Regions of one sample each have the similarities of the samples."""
    ensemble = with_gaps(25, 8, 0.3, 4)
    weights = np.random.default_rng(0).uniform(0.2, 1.0, ensemble.n_base_clusters)
    regions = np.arange(25, dtype=np.int32)
    found, _ = dendrogram.region_similarities(ensemble, weights, regions)
    expected = monti(ensemble.labels, weights, ensemble.offsets)
    off = ~np.eye(25, dtype=bool)
    np.testing.assert_allclose(found[off], expected[off], atol=1e-12)


def test_a_ratio_of_one_is_the_paper(blobs) -> None:
    X, _ = blobs
    plain = generate_ensemble(X, ensemble_size=6, random_state=0)
    drawn = generate_ensemble(X, ensemble_size=6, max_samples=1.0, random_state=0)
    np.testing.assert_array_equal(drawn.labels, plain.labels)
    assert "max_samples" not in plain.parameters
    assert dict(drawn.parameters) == dict(plain.parameters)


@pytest.mark.parametrize("ratio", [0.3, 0.8])
def test_each_member_clusters_its_share(blobs, ratio: float) -> None:
    X, _ = blobs
    ensemble = generate_ensemble(X, ensemble_size=8, max_samples=ratio, random_state=0)
    present = ensemble.labels >= 0
    assert (present.sum(axis=0) == round(120 * ratio)).all()
    for column, member in zip(present.T, ensemble.members, strict=True):
        drawn = ensemble.plan.samples(member)
        np.testing.assert_array_equal(np.flatnonzero(column), drawn)
    assert len({tuple(np.flatnonzero(c)) for c in present.T}) == 8
    high = int(np.ceil(np.sqrt(round(120 * ratio))))
    assert ensemble.plan.base_n_clusters_range == (2, high)


def test_a_member_clusters_its_samples_as_if_alone(blobs) -> None:
    """What is drawn is a table of its own: the others have no part in it."""
    X, _ = blobs
    settings = {"ensemble_size": 4, "max_samples": 0.5, "random_state": 3}
    first = generate_ensemble(X, **settings)
    member = first.members[2]
    drawn = first.plan.samples(member)
    spoiled = X.copy()
    # The mean is taken over all samples, so that of the others stays.
    rest = np.setdiff1d(np.arange(len(X)), drawn)
    spoiled[rest] = spoiled[rest[::-1]]
    second = generate_ensemble(spoiled, **settings)
    np.testing.assert_array_equal(first.labels[drawn, 2], second.labels[drawn, 2])


def test_prefix_and_jobs_change_nothing(blobs) -> None:
    X, _ = blobs
    settings = {"max_samples": 0.6, "random_state": 1}
    many = generate_ensemble(X, ensemble_size=9, n_jobs=2, **settings)
    few = generate_ensemble(X, ensemble_size=4, n_jobs=1, **settings)
    np.testing.assert_array_equal(many.labels[:, :4], few.labels)


def test_a_checkpoint_goes_on_and_is_refused_for_another_share(blobs, tmp_path) -> None:
    X, _ = blobs
    settings = {"ensemble_size": 5, "random_state": 1, "checkpoint": tmp_path}
    first = generate_ensemble(X, max_samples=0.6, **settings)
    again = generate_ensemble(X, max_samples=0.6, **settings)
    np.testing.assert_array_equal(first.labels, again.labels)
    more = generate_ensemble(X, max_samples=0.6, **settings | {"ensemble_size": 7})
    np.testing.assert_array_equal(more.labels[:, :5], first.labels)
    with pytest.raises(ValueError, match="max_samples differ"):
        generate_ensemble(X, max_samples=0.7, **settings)


def test_saved_and_loaded(blobs, tmp_path) -> None:
    X, _ = blobs
    ensemble = generate_ensemble(X, ensemble_size=5, max_samples=0.6, random_state=1)
    ensemble.save(tmp_path / "e.npz")
    loaded = Ensemble.load(tmp_path / "e.npz")
    np.testing.assert_array_equal(loaded.labels, ensemble.labels)
    assert loaded.plan == ensemble.plan
    assert loaded.plan.max_samples == 0.6


@pytest.mark.parametrize("consensus", CONSENSUS)
def test_fit_predict_save(blobs, tmp_path, consensus: str) -> None:
    X, y = blobs
    model = MDEC(
        3, consensus=consensus, ensemble_size=30, max_samples=0.5, random_state=0
    ).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1.0
    assert model.confidence_.min() > 0.8
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(model.predict(X + 1e-3), model.labels_)
    model.save(tmp_path / "m.npz")
    loaded = MDEC.load(tmp_path / "m.npz")
    np.testing.assert_array_equal(loaded.predict(X), model.labels_)
    np.testing.assert_allclose(
        loaded.predict_confidence(X), model.predict_confidence(X)
    )
    assert loaded.max_samples == 0.5


def test_prediction_asks_drawn_rows_only(blobs) -> None:
    """A row of training that a member left out takes its neighbours' cluster there."""
    X, _ = blobs
    model = MDEC(3, ensemble_size=10, max_samples=0.5, random_state=0).fit(X)
    from mdec.prediction import predict_base_clusters

    base = predict_base_clusters(X, model.clustering_.rows[0])
    assert base.min() >= 0
    assert (base < np.diff(model.ensemble_.offsets)).all()


def test_number_of_clusters_is_found(blobs) -> None:
    X, y = blobs
    model = MDEC("auto", ensemble_size=40, max_samples=0.4, random_state=0).fit(X)
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(y, model.labels_) == 1.0
    noise = np.random.default_rng(0).normal(size=(100, 10))
    none = MDEC("auto", ensemble_size=40, max_samples=0.4, random_state=0).fit(noise)
    assert none.n_clusters_ == 1


def test_selection_where_a_member_has_no_measured_sample(monkeypatch) -> None:
    from mdec.selection import rule

    monkeypatch.setattr(rule, "MAX_SAMPLES", 20)
    labels = np.repeat([[0, 0], [1, 0], [2, 1]], 20, axis=0)
    labels = np.column_stack([labels, labels])
    rng = rule.member_stream(0, 0, "selection")
    drawn = rng.choice(60, 20, replace=False)
    labels[drawn, 3] = -1
    found = select_n_clusters(Ensemble.from_labels(labels), k_range=[2, 3])
    assert found.n_clusters == 3


def test_the_report_is_made(blobs) -> None:
    X, _ = blobs
    model = MDEC(3, ensemble_size=20, max_samples=0.5, random_state=0).fit(X)
    measured = model.clustering_.compare_k([2, 3, 4])
    described = describe_clustering(replace(model.clustering_, selection=measured))
    shown = described["solutions"][described["chosen"]]
    assert all(row["consensus"] > 0.9 for row in shown["clusters"])
    np.testing.assert_allclose(shown["confidence"], model.confidence_)
    other = next(v for v in described["solutions"] if v["n_clusters"] == 2)
    assert other["own"].max() <= 1.0


def test_samples_in_no_member_are_named(blobs) -> None:
    X, _ = blobs
    with pytest.raises(
        ValueError, match=r"\d+ of the 120 samples are clustered in none"
    ):
        MDEC(3, ensemble_size=2, max_samples=0.3, random_state=0).fit(X)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"max_samples": 0.01}, "draws 1 of the 120 samples.*raise it to 0.025"),
        ({"max_samples": 0.5, "base": "landmark"}, "base='landmark'"),
        ({"max_samples": 0.1, "base_n_clusters_range": (2, 13)}, "the 12 samples"),
        ({"max_samples": 1.5}, "max_samples"),
        ({"max_samples": 0.0}, "max_samples"),
    ],
)
def test_what_cannot_be_drawn_is_said(blobs, settings, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        generate_ensemble(blobs[0], ensemble_size=3, random_state=0, **settings)


@pytest.mark.parametrize(
    ("n_samples", "cure"), [(3, "1"), (4, "0.75 or more"), (7, "0.429 or more")]
)
def test_the_share_that_would_do_is_named(blobs, n_samples: int, cure: str) -> None:
    X = blobs[0][:n_samples]
    with pytest.raises(ValueError, match="which needs 3; raise it to ") as error:
        generate_ensemble(X, ensemble_size=2, max_samples=0.3, random_state=0)
    assert str(error.value).endswith(f"raise it to {cure}.")
    share = float(cure.split()[0])
    made = generate_ensemble(X, ensemble_size=2, max_samples=share, random_state=0)
    assert ((made.labels >= 0).sum(axis=0) == 3).all()


def test_three_samples_of_few() -> None:
    X = np.random.default_rng(0).normal(size=(5, 4))
    ensemble = generate_ensemble(X, ensemble_size=12, max_samples=0.6, random_state=0)
    assert ((ensemble.labels >= 0).sum(axis=0) == 3).all()
    assert CONSENSUS["hierarchical"](ensemble, 2).max() == 1


def test_float32_and_a_searched_graph() -> None:
    """More samples than a dense matrix takes, of which members draw fewer."""
    X, y = make_blobs(1500, n_features=8, centers=4, random_state=1)
    X = X.astype(np.float32)
    model = MDEC(4, ensemble_size=15, max_samples=0.5, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.98


def test_the_plan_in_json() -> None:
    plan = Plan(100, 8, entropy=0, max_samples=0.5)
    content = json.loads(json.dumps(plan.to_json()))
    assert Plan.from_json(content) == plan
    assert plan.n_clustered == 50


def test_profiles_of_new_rows_are_those_of_samples_in_every_member() -> None:
    """A row that every member clusters meets other clusters as a sample would."""
    labels = with_gaps(30, 10, 0.4, 6).labels.copy()
    labels[0] = np.maximum(labels[0], 0)
    ensemble = Ensemble.from_labels(labels)
    weights = np.random.default_rng(0).uniform(0.2, 1.0, ensemble.n_base_clusters)
    clusters = np.arange(30) % 3
    split = ensemble.split(clusters)
    profiles = sum_profiles(ensemble, split, weights, 3)
    means = profiles.means(by_degree=False)
    row = factor_rows(ensemble.labels[:1], ensemble.offsets, weights)
    found = (row @ means.T)[0]
    expected = item_consensus(ensemble, clusters, weights)[0]
    np.testing.assert_allclose(found[1:], expected[1:], atol=1e-12)
