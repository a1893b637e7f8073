"""Distances, metrics and base clusterings of a user's own."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn.base import clone
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from mdec import MDEC, Ensemble, generate_ensemble
from mdec.base import from_estimator, name_of
from mdec.consensus import CONSENSUS
from mdec.rows import open_rows
from mdec.selection import select_n_clusters


def blobs(n_samples: int = 90, n_features: int = 8) -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    y = np.arange(n_samples) % 3
    X = 5.0 * rng.normal(size=(3, n_features))[y]
    return X + rng.normal(size=(n_samples, n_features)), y


X, Y = blobs()
D = squareform(pdist(X))


def fitted(data: Any = D, **settings: Any) -> MDEC:
    settings = {"n_clusters": 3, "ensemble_size": 12, "random_state": 0} | settings
    return MDEC(**settings).fit(data)


def same(one: Any, other: Any) -> bool:
    return bool(np.array_equal(one.labels, other.labels))


def agreeing(one: Ensemble, other: Ensemble) -> bool:
    """Tell whether members are the same but for one or two that rounding moved."""
    pairs = zip(one.labels.T, other.labels.T, strict=True)
    scores = np.array([adjusted_rand_score(*pair) for pair in pairs])
    return bool(np.mean(scores == 1.0) > 0.8 and scores.min() > 0.5)


def city_block(rows: np.ndarray) -> np.ndarray:
    return squareform(pdist(rows, "cityblock"))


def euclidean(rows: np.ndarray) -> np.ndarray:
    return squareform(pdist(rows))


def overlap(rows: np.ndarray) -> np.ndarray:
    return np.exp(-squareform(pdist(rows)) / 5.0)


def by_first(rows: np.ndarray, n_clusters: int, rng: np.random.Generator) -> Any:
    """Cut the rows at random places of their first coordinate."""
    cuts = np.sort(rng.choice(rows[:, 0], size=n_clusters - 1, replace=False))
    return np.searchsorted(cuts, rows[:, 0])


# ------------------------------------------------------------------ precomputed


@pytest.mark.parametrize("kernel", ["scaled_gaussian", "scaled_exponential"])
def test_euclidean_distances_give_the_members_of_all_features(kernel: str) -> None:
    given = fitted(metric="precomputed", kernel=kernel)
    rows = fitted(X, max_features=1.0, kernel=kernel)
    assert agreeing(given.ensemble_, rows.ensemble_)
    np.testing.assert_array_equal(given.labels_, rows.labels_)
    assert given.n_features_in_ == 90
    assert given.ensemble_.parameters["metric"] == "precomputed"
    assert "metric" not in rows.ensemble_.parameters


def test_the_share_of_features_has_no_effect() -> None:
    one, other = (fitted(metric="precomputed", max_features=s) for s in (0.1, 1.0))
    assert same(one.ensemble_, other.ensemble_)
    members = one.ensemble_.members
    assert len({m.mu for m in members}) == len(members)
    assert len({m.n_clusters for m in members}) > 1


@pytest.mark.parametrize("consensus", CONSENSUS)
@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_distances_of_any_scale_find_the_groups(consensus: str, scale: float) -> None:
    model = fitted(scale * D, metric="precomputed", consensus=consensus)
    assert adjusted_rand_score(Y, model.labels_) == 1.0
    new = blobs(120)[0]
    between = scale * cdist(new[90:], new[:90])
    plain = fitted(metric="precomputed", consensus=consensus)
    expected = plain.predict(cdist(new[90:], new[:90]))
    np.testing.assert_array_equal(model.predict(between), expected)


def test_similarities_find_the_groups_and_place_new_rows() -> None:
    rows, y = blobs(120)
    S = np.corrcoef(rows)
    model = fitted(S[:90, :90], metric="precomputed")
    assert adjusted_rand_score(y[:90], model.labels_) == 1.0
    assert adjusted_rand_score(y[90:], model.predict(S[90:, :90])) == 1.0
    scaled = fitted(8.0 * S[:90, :90], metric="precomputed")
    assert same(scaled.ensemble_, model.ensemble_)
    found = scaled.predict(8.0 * S[90:, :90])
    np.testing.assert_array_equal(found, model.predict(S[90:, :90]))
    assert len(model.predict(np.full((2, 90), -0.5))) == 2


def test_new_rows_join_as_rows_would() -> None:
    rows, y = blobs(150)
    given = fitted(squareform(pdist(rows[:100])), metric="precomputed")
    plain = fitted(rows[:100], max_features=1.0)
    between = cdist(rows[100:], rows[:100])
    np.testing.assert_array_equal(given.predict(between), plain.predict(rows[100:]))
    held, expected = (
        given.predict_confidence(between),
        plain.predict_confidence(rows[100:]),
    )
    np.testing.assert_allclose(held, expected, atol=0.05)
    assert adjusted_rand_score(y[100:], given.predict(between)) == 1.0
    far = cdist(rows[100:] + 1e3, rows[:100])
    assert given.unlike_training(far).all()
    assert given.unlike_training(between).mean() < 0.2
    with pytest.raises(ValueError, match="features"):
        given.predict(between[:, :50])


def test_samples_are_drawn_from_a_matrix_too() -> None:
    given = fitted(metric="precomputed", max_samples=0.6, ensemble_size=20)
    rows = fitted(X, max_features=1.0, max_samples=0.6, ensemble_size=20)
    assert agreeing(given.ensemble_, rows.ensemble_)
    left_out = given.ensemble_.labels < 0
    np.testing.assert_array_equal(left_out, rows.ensemble_.labels < 0)
    np.testing.assert_array_equal(given.predict(D), rows.predict(X))


def test_prefix_jobs_files_and_checkpoints(tmp_path: Path) -> None:
    whole = generate_ensemble(D, metric="precomputed", ensemble_size=8, random_state=1)
    settings: dict[str, Any] = {"metric": "precomputed", "random_state": 1}
    part = generate_ensemble(D, ensemble_size=4, n_jobs=2, **settings)
    np.testing.assert_array_equal(whole.labels[:, :4], part.labels)
    folder = tmp_path / "c"
    generate_ensemble(D, ensemble_size=3, checkpoint=folder, **settings)
    again = generate_ensemble(D, ensemble_size=8, checkpoint=folder, **settings)
    assert same(whole, again)
    with pytest.raises(ValueError, match="metric differ"):
        generate_ensemble(D, ensemble_size=3, checkpoint=folder, random_state=1)
    whole.save(tmp_path / "e.npz")
    assert Ensemble.load(tmp_path / "e.npz").plan == whole.plan
    model = fitted(metric="precomputed")
    model.save(tmp_path / "m.npz")
    read = MDEC.load(tmp_path / "m.npz")
    np.testing.assert_array_equal(read.predict(D[:9]), model.predict(D[:9]))
    assert same(read.fit(D).ensemble_, model.ensemble_)


def test_awkward_matrices_are_clustered() -> None:
    three = np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 4.0], [4.0, 4.0, 0.0]])
    assert fitted(three, metric="precomputed", n_clusters=2).labels_[2] == 1
    equal = 1.0 - np.eye(12)
    assert len(fitted(equal, metric="precomputed").labels_) == 12
    copies = np.repeat(np.arange(3), 8)
    apart = np.abs(np.subtract.outer(copies, copies)).astype(float)
    model = fitted(apart, metric="precomputed", n_neighbors_range=(9, 12))
    assert adjusted_rand_score(copies, model.labels_) == 1.0
    isolated = np.eye(12)
    isolated[:6, :6] = isolated[6:11, 6:11] = 1.0
    assert len(fitted(isolated, metric="precomputed").labels_) == 12
    whole = fitted(np.round(D).astype(int), metric="precomputed")
    assert adjusted_rand_score(Y, whole.labels_) == 1.0


def test_nothing_to_cluster_is_said() -> None:
    with pytest.raises(ValueError, match="all 9 samples are equal"):
        fitted(np.zeros((9, 9)), metric="precomputed")


@pytest.mark.parametrize("kind", ["distances", "similarities", "metric"])
def test_the_number_of_clusters_of_pairs_is_tested_against_one(kind: str) -> None:
    none = np.random.default_rng(3).normal(size=(60, 8))
    for rows, n_clusters in ((X, 3), (none, 1)):
        squared = cdist(rows, rows, "sqeuclidean")
        given = {
            "distances": np.sqrt(squared),
            "similarities": np.exp(-squared / np.median(squared)),
            "metric": rows,
        }[kind]
        metric = cdist_to_itself if kind == "metric" else "precomputed"
        models = [
            MDEC("auto", metric=metric, ensemble_size=20, random_state=seed).fit(given)
            for seed in (0, 1)
        ]
        found, again = (model.k_selection_ for model in models)
        assert found.n_clusters == again.n_clusters == n_clusters
        assert found.null.is_firm == (n_clusters > 1)
        assert found.null.p_value == again.null.p_value
        np.testing.assert_array_equal(found.table["score"], again.table["score"])


def cdist_to_itself(rows: np.ndarray) -> np.ndarray:
    """A metric of one's own."""
    return cdist(rows, rows)


def test_what_the_ensemble_was_not_made_of_is_refused() -> None:
    model = fitted(metric="precomputed", n_clusters=3, ensemble_size=5)
    with pytest.raises(ValueError, match="X has 8 columns and the ensemble was made"):
        select_n_clusters(model.ensemble_, X=X)
    # Without the function there is nothing to draw with.
    own = fitted(X, metric=cdist_to_itself, n_clusters=3, ensemble_size=5)
    assert select_n_clusters(own.ensemble_, X=X).null is None


UNFIT: list[tuple[Any, dict[str, Any], str]] = [
    (X, {"metric": "precomputed"}, "X is 90 x 8; leave metric out"),
    (D, {"metric": "precomputed", "kernel": "cosine"}, "kernel='cosine' measures"),
    (D, {"metric": "precomputed", "kernel": ["spearman", "cosine"]}, "kernel='cosine'"),
    (D, {"metric": "precomputed", "base": "landmark"}, "needs base='graph'"),
    (D, {"metric": "precomputed", "device": "torch"}, "works on the CPU"),
    (D, {"metric": "precomputed", "preparation": "diversified"}, "prepares features"),
    (X, {"metric": city_block, "base": "landmark"}, "city_block needs base='graph'"),
    (X, {"metric": city_block, "kernel": "cosine"}, "kernel='cosine' measures"),
    (X, {"metric": city_block, "base": by_first}, "leave out metric, or base"),
    (X, {"metric": "precomputed", "base": by_first}, "leave out metric, or base"),
    (X, {"base": by_first, "device": "torch"}, "by_first works on the CPU"),
]


@pytest.mark.parametrize(("data", "settings", "message"), UNFIT)
def test_what_does_not_fit_is_one_sentence(
    data: Any, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        fitted(data, **settings)


def test_unknown_metrics_are_refused() -> None:
    with pytest.raises(ValueError, match="metric='euclidean' is not None"):
        generate_ensemble(X, metric="euclidean")
    with pytest.raises(ValueError, match="metric=5 is not None"):
        generate_ensemble(X, metric=5)
    with pytest.raises(ValueError, match="base=5 is not one of"):
        generate_ensemble(X, base=5)
    with pytest.raises(ValueError, match="metric"):
        fitted(metric="euclidean")


def test_rows_in_a_file_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    for settings in ({"metric": city_block}, {"base": by_first}):
        with pytest.raises(ValueError, match="needs all rows in memory"):
            generate_ensemble(open_rows(tmp_path / "x.npy"), **settings)


def test_pairs_are_split_as_pairs() -> None:
    assert get_tags(MDEC(metric="precomputed")).input_tags.pairwise
    assert not get_tags(MDEC()).input_tags.pairwise
    assert clone(MDEC(metric=city_block)).metric is city_block


# ------------------------------------------------------------------ a function of rows


def test_a_metric_of_your_own_measures_every_subspace() -> None:
    own = generate_ensemble(X, metric=euclidean, ensemble_size=8, random_state=0)
    plain = generate_ensemble(X, ensemble_size=8, random_state=0)
    assert same(own, plain)
    assert own.parameters["metric"].endswith("test_custom:euclidean")
    seen = []

    def watched(rows: np.ndarray) -> np.ndarray:
        seen.append(rows.copy())
        rows[:] = 0.0  # its own copy
        return euclidean(seen[-1])

    again = generate_ensemble(X, metric=watched, ensemble_size=8, random_state=0)
    assert same(again, plain)
    for rows, member in zip(seen, plain.members, strict=True):
        np.testing.assert_array_equal(rows, X[:, plain.plan.features(member)])


@pytest.mark.parametrize("metric", [city_block, overlap])
def test_metrics_of_your_own_find_groups(metric: Any) -> None:
    model = fitted(X, metric=metric, n_jobs=2)
    assert adjusted_rand_score(Y, model.labels_) == 1.0
    assert same(model.ensemble_, fitted(X, metric=metric).ensemble_)
    with pytest.raises(ValueError, match="not new ones; fit with metric='precomputed'"):
        model.predict(X)


def test_a_metric_sees_prepared_values_and_drawn_samples() -> None:
    rng = np.random.default_rng(0)
    raw = rng.lognormal(5.0, 2.0, size=(40, 300))
    settings: dict[str, Any] = {"ensemble_size": 4, "random_state": 0}
    settings |= {"preparation": "diversified", "max_samples": 0.7}
    own = generate_ensemble(raw, metric=euclidean, **settings)
    assert same(own, generate_ensemble(raw, **settings))


def wrong_shape(rows: np.ndarray) -> np.ndarray:
    return np.zeros(len(rows))


def not_a_number(rows: np.ndarray) -> np.ndarray:
    return np.full((len(rows), len(rows)), np.nan)


def always_fails(_: np.ndarray) -> np.ndarray:
    raise ValueError("no such metric today")


def has_a_bug(_: np.ndarray) -> np.ndarray:
    raise KeyError("bug")


def test_metrics_that_fail_say_so() -> None:
    with pytest.raises(TypeError, match=r"wrong_shape must return.*shape \(90,\)"):
        fitted(X, metric=wrong_shape)
    with pytest.raises(ValueError, match=r"12 of 12.*samples 0 and 0 have nan"):
        fitted(X, metric=not_a_number)
    with pytest.raises(ValueError, match=r"12 of 12.*no such metric today"):
        fitted(X, metric=always_fails)
    with pytest.raises(KeyError, match="bug"):
        fitted(X, metric=has_a_bug)


def test_a_metric_that_fails_at_times_is_tried_again() -> None:
    calls = []

    def moody(rows: np.ndarray) -> np.ndarray:
        calls.append(1)
        return not_a_number(rows) if len(calls) == 3 else euclidean(rows)

    ensemble = generate_ensemble(X, metric=moody, ensemble_size=6, random_state=0)
    assert len(calls) == 7
    assert [m.attempt for m in ensemble.members].count(1) == 1


@pytest.mark.parametrize(
    ("parameter", "first", "second"),
    [
        ("metric", euclidean, city_block),
        ("base", by_first, from_estimator(KMeans(n_init=1))),
        ("base", from_estimator(KMeans(n_init=2)), from_estimator(KMeans(n_init=1))),
    ],
)
def test_checkpoints_know_functions_by_name(
    tmp_path: Path, parameter: str, first: Any, second: Any
) -> None:
    def made(function: Any, size: int, folder: str = "c") -> Any:
        settings = {parameter: function, "ensemble_size": size, "random_state": 0}
        return generate_ensemble(X, checkpoint=tmp_path / folder, **settings)

    few = made(first, 3)
    np.testing.assert_array_equal(made(first, 5).labels[:, :3], few.labels)
    with pytest.raises(ValueError, match=f"{parameter} differ"):
        made(second, 3)

    def local(*given: Any) -> Any:
        return first(*given)

    for nameless in (local, lambda *given: first(*given), partial(first, rng=None)):
        with pytest.raises(ValueError, match="none that another run could find"):
            made(nameless, 3, "other")


def test_memory_is_asked_for_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mdec._support.memory.available_memory", lambda: 10_000)
    with pytest.raises(MemoryError, match="all pairs of 90 samples needs"):
        fitted(metric="precomputed")
    with pytest.raises(MemoryError, match="base clusterings of 90 samples"):
        fitted(X, metric=city_block)


# ------------------------------------------------------------------ base clusterings


def test_a_base_clustering_gets_the_members_rows_and_stream() -> None:
    ensemble = generate_ensemble(X, base=by_first, ensemble_size=6, random_state=3)
    plan = ensemble.plan
    assert plan.base.endswith("test_custom:by_first")
    for column, member in enumerate(ensemble.members):
        rows = X[:, plan.features(member)]
        rng = plan.stream(member, "own_base")
        expected = by_first(rows, member.n_clusters, rng)
        assert adjusted_rand_score(expected, ensemble.labels[:, column]) == 1.0
    part = generate_ensemble(
        X, base=by_first, ensemble_size=3, random_state=3, n_jobs=2
    )
    np.testing.assert_array_equal(ensemble.labels[:, :3], part.labels)


CLUSTERERS = {
    "k-means": KMeans(n_init=1),
    "Ward": AgglomerativeClustering(),
    "mixture": GaussianMixture(covariance_type="diag"),
    "pipeline": make_pipeline(StandardScaler(), KMeans(n_init=1)),
}


@pytest.mark.parametrize("name", CLUSTERERS)
def test_any_clusterer_makes_members(name: str) -> None:
    base = from_estimator(CLUSTERERS[name])
    before = str(CLUSTERERS[name].get_params())
    model = fitted(X, base=base)
    assert adjusted_rand_score(Y, model.labels_) == 1.0
    drawn = [m.n_clusters for m in model.ensemble_.members]
    np.testing.assert_array_equal(model.ensemble_.cluster_counts, drawn)
    assert same(model.ensemble_, fitted(X, base=base, n_jobs=2).ensemble_)
    assert str(CLUSTERERS[name].get_params()) == before
    new, y = blobs(120)
    assert adjusted_rand_score(y[90:], model.predict(new[90:])) == 1.0
    assert model.confidence_.mean() > 0.9


def with_noise(rows: np.ndarray, n_clusters: int, rng: np.random.Generator) -> Any:
    labels = from_estimator(KMeans(n_init=1))(rows, n_clusters, rng)
    labels[rng.choice(len(rows), 20, replace=False)] = -1
    return labels


def test_noise_is_left_out_of_a_member(tmp_path: Path) -> None:
    model = fitted(X, base=with_noise, checkpoint=tmp_path)
    assert ((model.ensemble_.labels == -1).sum(axis=0) == 20).all()
    assert adjusted_rand_score(Y, model.labels_) == 1.0
    assert same(
        fitted(X, base=with_noise, checkpoint=tmp_path).ensemble_, model.ensemble_
    )
    new, y = blobs(120)
    assert adjusted_rand_score(y[90:], model.predict(new[90:])) == 1.0


def test_noise_in_every_member_is_named() -> None:
    rows = np.vstack([X, [[1e3] * 8]])
    base = from_estimator(DBSCAN(eps=2.5))
    labels = generate_ensemble(rows, base=base, ensemble_size=5, random_state=0).labels
    assert (labels[90] == -1).all()
    with pytest.raises(ValueError, match=r"in none of.*sample 90;.*leave out fewer"):
        fitted(rows, base=base)


def test_samples_are_drawn_for_base_clusterings_too(tmp_path: Path) -> None:
    base = from_estimator(KMeans(n_init=1))
    settings: dict[str, Any] = {"base": base, "max_samples": 0.5, "ensemble_size": 30}
    model = fitted(X, **settings)
    assert (model.ensemble_.labels >= 0).sum(axis=0).tolist() == [45] * 30
    assert adjusted_rand_score(Y, model.labels_) == 1.0
    kept = fitted(X, checkpoint=tmp_path, **settings)
    again = fitted(X, checkpoint=tmp_path, **settings)
    assert same(kept.ensemble_, model.ensemble_)
    assert same(again.ensemble_, model.ensemble_)


def test_one_cluster_is_tried_again_and_then_dropped() -> None:
    calls: list[int] = []

    def shy(rows: np.ndarray, n_clusters: int, rng: np.random.Generator) -> Any:
        calls.append(n_clusters)
        return (
            np.zeros(len(rows)) if len(calls) <= 2 else by_first(rows, n_clusters, rng)
        )

    ensemble = generate_ensemble(X, base=shy, ensemble_size=30, random_state=0)
    assert [m.attempt for m in ensemble.members].count(1) == 2

    def single(rows: np.ndarray, *_: Any) -> Any:
        return np.zeros(len(rows), dtype=int)

    with pytest.raises(ValueError, match=r"30 of 30.*fell into one cluster"):
        generate_ensemble(X, base=single, ensemble_size=30, random_state=0)


LABELS: dict[str, tuple[Any, type[Exception], str]] = {
    "too few": (np.zeros(3), TypeError, r"90 rows and returned shape \(3,"),
    "a table": (np.zeros((90, 2)), TypeError, "one label for each"),
    "measurements": (X[:, 0], ValueError, "returned no labels"),
    "nothing": (None, TypeError, r"returned shape \(\)"),
    "all left out": (np.full(90, -1), ValueError, "clusters no sample"),
}


@pytest.mark.parametrize("case", LABELS)
def test_what_are_no_labels_is_said(case: str) -> None:
    answer, error, message = LABELS[case]
    with pytest.raises(error, match=message):
        generate_ensemble(X, base=lambda *_: answer, ensemble_size=5)


def given_labels(labels: np.ndarray, *_: Any) -> np.ndarray:
    return labels


def test_labels_of_any_kind_are_numbered() -> None:
    words = np.array(["b", "a", "c"])
    for answer in (words[Y], Y * 10.0 - 5.0, Y.astype(np.int8) - 2, Y + 10**9):
        ensemble = generate_ensemble(
            X, base=partial(given_labels, answer), ensemble_size=2, random_state=0
        )
        assert set(np.unique(ensemble.labels)) <= {-1, 0, 1, 2}
        present = ensemble.labels[:, 0] >= 0
        assert adjusted_rand_score(Y[present], ensemble.labels[present, 0]) == 1.0


def test_more_clusters_than_drawn_are_kept(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"base": every_tenth, "base_n_clusters_range": (2, 3)}
    settings |= {"ensemble_size": 3, "random_state": 0}
    made = generate_ensemble(X, checkpoint=tmp_path, **settings)
    assert made.cluster_counts.tolist() == [10, 10, 10]
    files = sorted(tmp_path.glob("member-*"))
    before = [file.stat().st_mtime_ns for file in files]
    assert same(generate_ensemble(X, checkpoint=tmp_path, **settings), made)
    assert [file.stat().st_mtime_ns for file in files] == before


def every_tenth(rows: np.ndarray, *_: Any) -> Any:
    return np.arange(len(rows)) % 10


def test_the_number_of_clusters_is_measured_with_the_same_base() -> None:
    calls: list[tuple[int, ...]] = []

    def base(rows: np.ndarray, n_clusters: int, rng: np.random.Generator) -> Any:
        calls.append(rows.shape)
        return from_estimator(KMeans(n_init=1))(rows, n_clusters, rng)

    model = fitted(X, base=base, n_clusters="auto", ensemble_size=20)
    assert model.n_clusters_ == 3
    assert model.k_selection_.null is not None
    # Members of the fit, and those of the criteria.
    assert len(calls) == 20 + 20
    members = select_n_clusters(model.ensemble_)
    without = select_n_clusters(model.ensemble_, X=X)
    assert without.null.p_value == model.k_selection_.null.p_value
    np.testing.assert_array_equal(without.table["score"], members.table["score"])


def test_a_saved_model_keeps_the_name_of_its_function(tmp_path: Path) -> None:
    model = fitted(X, base=by_first)
    model.save(tmp_path / "m.npz")
    read = MDEC.load(tmp_path / "m.npz")
    np.testing.assert_array_equal(read.predict(X), model.predict(X))
    assert read.base == name_of(by_first) == model.base_
    with pytest.raises(ValueError, match="base"):
        read.fit(X)
    assert same(read.set_params(base=by_first).fit(X).ensemble_, model.ensemble_)


def test_what_is_no_clusterer_is_refused() -> None:
    for other in (StandardScaler(), KMeans, "KMeans", None):
        with pytest.raises(TypeError, match="has no fit_predict"):
            from_estimator(other)


def test_names_tell_clusterers_apart() -> None:
    one, other = (name_of(from_estimator(KMeans(n_init=n))) for n in (1, 2))
    assert one != other
    assert one == name_of(from_estimator(KMeans(n_init=1)))
    assert one.startswith("sklearn.cluster._kmeans:KMeans(")
