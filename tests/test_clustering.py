"""One clustering for both estimators: its parts, its other numbers, its models."""

from __future__ import annotations

import dataclasses
import pickle
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from mdec import MDEC, Ensemble, MultiViewMDEC
from mdec._support.archives import DamagedFileError, read_sealed, write_sealed
from mdec._support.progress import progress_to
from mdec.base import from_estimator
from mdec.clustering import Clustering, Settings, cluster_ensemble
from mdec.confidence import confidence, item_consensus
from mdec.consensus import CONSENSUS
from mdec.estimator.persistence import read_model, write_model
from mdec.selection import null, select_n_clusters

OLD = Path(__file__).parent / "data" / "version-0.1"


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return make_blobs(90, n_features=10, centers=3, cluster_std=3.0, random_state=1)[0]


def fit(X: object, n_clusters: object = 3, **settings: object) -> MDEC:
    return MDEC(n_clusters, ensemble_size=15, random_state=0, **settings).fit(X)


def fit_views(X: np.ndarray, n_clusters: object = 3, **settings: object):
    weights = settings.pop("view_weights", None)
    own = MDEC(n_clusters, ensemble_size=10, random_state=0, **settings)
    return MultiViewMDEC(own, view_weights=weights).fit({"a": X[:, :6], "b": X[:, 4:]})


# ------------------------------------------------------------------ the object


@pytest.mark.parametrize("fitted", [fit, fit_views])
def test_estimators_show_what_their_clustering_has(X, fitted) -> None:
    model = fitted(X, min_confidence=0.7)
    found = model.clustering_
    np.testing.assert_array_equal(model.consensus_labels_, found.labels)
    np.testing.assert_array_equal(model.labels_, found.firm_labels)
    np.testing.assert_array_equal(model.confidence_, found.confidence)
    np.testing.assert_array_equal(model.membership_, found.membership)
    sure = confidence(found.association, found.labels)
    np.testing.assert_allclose(found.confidence, sure, atol=1e-12)
    assert found.settings.min_confidence == 0.7
    assert set(found.second_choice - found.labels) <= {-2, -1, 1, 2}
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.labels = None


@pytest.mark.parametrize("fitted", [fit, fit_views])
@pytest.mark.parametrize("consensus", CONSENSUS)
def test_reclustering_is_a_fresh_fit(X, fitted, consensus) -> None:
    model, fresh = fitted(X), fitted(X, 4, consensus=consensus)
    again = model.clustering_.recluster(4, consensus)
    np.testing.assert_array_equal(again.labels, fresh.labels_)
    np.testing.assert_array_equal(again.confidence, fresh.confidence_)
    np.testing.assert_array_equal(again.placement.means, fresh_means(fresh))
    np.testing.assert_array_equal(model.recluster(4, consensus), fresh.labels_)
    assert again.ensemble is model.ensemble_
    assert model.clustering_.n_clusters == 3


def fresh_means(model) -> np.ndarray:
    return model.clustering_.placement.means


def test_own_base_clusterings_have_no_placement() -> None:
    labels = np.repeat([[0, 0, 1], [1, 0, 0], [2, 1, 0]], 10, axis=0)
    found = cluster_ensemble(Ensemble.from_labels(labels), Settings("auto"))
    assert isinstance(found, Clustering)
    assert found.n_clusters == 3
    assert found.placement is None
    assert found.selection.null is None
    assert found.recluster(2).n_clusters == 2
    assert found.compare_k([2, 3]).table["n_clusters"].tolist() == [2, 3]


def test_caches_are_not_pickled(X) -> None:
    found = fit(X).clustering_
    assert found.association.shape == (90, 3)
    again = pickle.loads(pickle.dumps(found))
    assert "association" not in vars(again)
    np.testing.assert_array_equal(again.association, found.association)


# ------------------------------------------------------------------ K


def test_a_pair_chooses_in_its_range(X) -> None:
    noise = np.random.default_rng(0).normal(size=(50, 8))
    assert fit(noise, "auto").n_clusters_ == 1
    model = fit(noise, (2, 4))
    assert 2 <= model.n_clusters_ <= 4
    assert model.k_selection_.table["n_clusters"].tolist() == [2, 3, 4]
    assert fit_views(X, [2, 5]).n_clusters_ == 3
    for wrong in [(2, 100), (1, 3), (4, 2), (2, 3, 4), (2.5, 4)]:
        with pytest.raises(ValueError, match="clusters"):
            fit(noise, wrong)


def test_numbers_are_compared_without_deciding(X) -> None:
    model = fit(X)
    compared = model.clustering_.compare_k()
    assert compared.null is None
    # Of the members that are there; "auto" makes its own.
    expected = select_n_clusters(model.ensemble_)
    for name, column in compared.table.items():
        np.testing.assert_array_equal(column, expected.table[name])
    assert compared.n_clusters == fit(X, "auto").n_clusters_
    assert not hasattr(model, "k_selection_")


@pytest.mark.parametrize("preparation", [None, "diversified"])
def test_one_p_value_at_every_door(preparation, tmp_path) -> None:
    rng = np.random.default_rng(3)
    X = np.exp(rng.normal(5.0, 1.0, size=(60, 40)))
    model = fit(X, "auto", preparation=preparation)
    expected = model.k_selection_.null
    given = fit(X, 2, preparation=preparation).clustering_
    model.save(tmp_path / "model.npz")
    loaded = MDEC.load(tmp_path / "model.npz").clustering_
    settings = dataclasses.replace(given.settings, n_clusters="auto")
    doors = [
        given.recluster("auto"),
        loaded.recluster("auto"),
        cluster_ensemble(given.ensemble, settings, given.rows),
    ]
    for found in doors:
        assert found.selection.null.p_value == expected.p_value
        np.testing.assert_array_equal(found.selection.null.draws, expected.draws)


@pytest.mark.parametrize("kind", ["views", "own base"])
def test_one_p_value_of_views_and_of_an_own_base(kind, tmp_path) -> None:
    X = np.random.default_rng(3).normal(size=(40, 12))
    own = {"base": from_estimator(KMeans(n_init=1))} if kind == "own base" else {}

    def fitted(n_clusters: object, seed: int = 0):
        model = MDEC(n_clusters, ensemble_size=8, random_state=seed, **own)
        if kind == "views":
            return MultiViewMDEC(model).fit({"a": X[:, :6], "b": X[:, 6:]})
        return model.fit(X)

    model = fitted("auto")
    model.save(tmp_path / "model.npz")
    loaded = type(model).load(tmp_path / "model.npz").clustering_.recluster("auto")
    found = [
        fitted("auto", seed=1).k_selection_,
        fitted(2).clustering_.recluster("auto").selection,
    ]
    if kind == "views":
        found.append(loaded.selection)
    else:  # a file has the name of a function only
        # So the members at hand are measured; the test does not need it.
        members = select_n_clusters(model.ensemble_).table
        np.testing.assert_array_equal(loaded.selection.table["score"], members["score"])
        assert loaded.selection.null.p_value == model.k_selection_.null.p_value
    expected = model.k_selection_
    for each in found:
        assert each.n_clusters == expected.n_clusters
        assert each.candidates[0].n_clusters == expected.candidates[0].n_clusters
        np.testing.assert_array_equal(each.table["score"], expected.table["score"])
        np.testing.assert_array_equal(each.null.draws, expected.null.draws)
        assert each.null.p_value == expected.null.p_value


def test_progress_of_both_long_steps_is_heard(X) -> None:
    members: list[tuple[int, int]] = []
    draws: list[tuple[int, int]] = []
    with progress_to(
        members=lambda *done: members.append(done), null=lambda *d: draws.append(d)
    ):
        fit(X, "auto")
    assert members == [(done, 15) for done in range(1, 16)]
    assert draws[0] == (1, 12)
    with progress_to(members=lambda *done: members.append(done)):
        fit_views(X)
    assert members[15:] == [(done, 20) for done in range(1, 21)]
    fit(X)
    assert len(members) == 35


# ------------------------------------------------------------------ a second fit


def test_nothing_of_an_earlier_fit_survives(X, tmp_path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"f{j}" for j in range(10)])
    model = MDEC("auto", ensemble_size=15, random_state=0).fit(frame)
    assert hasattr(model, "k_selection_")
    with pytest.raises(ValueError, match="max_features"):
        model.set_params(max_features=2.0).fit(X[:, :4])
    with pytest.raises(ValueError, match="all 9 samples are equal"):
        model.set_params(max_features=0.5).fit(np.ones((9, 4)))
    assert model.n_features_in_ == 10
    assert model.feature_names_in_.tolist() == list(frame.columns)
    assert hasattr(model, "k_selection_")
    model.set_params(n_clusters=3).fit(X[:, :6])
    assert model.n_features_in_ == 6
    assert not hasattr(model, "feature_names_in_")
    assert not hasattr(model, "k_selection_")
    model.save(tmp_path / "model.npz")
    assert not hasattr(MDEC.load(tmp_path / "model.npz"), "k_selection_")


def fresh_attributes(model) -> dict[str, object]:
    """Return what a fit has set, without what two fits may share."""
    return {
        name: value
        for name, value in vars(model).items()
        if name.endswith("_") or name == "_feature_names"
    }


FITS = ("names", "plain", "auto", "few", "uncertain")


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize(("first", "second"), list(permutations(FITS, 2)))
def test_a_fit_leaves_what_a_first_one_would(
    X, tmp_path, monkeypatch, first, second, several
):
    """Whatever was fitted before, and refused between."""
    X = X[::3]
    monkeypatch.setattr(null, "LOOKS", (3,))
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"f{j}" for j in range(10)])
    data = {"names": frame, "few": X[:, :6]}
    changes = {"auto": {"n_clusters": (2, 3)}, "uncertain": {"min_confidence": 0.9}}

    def tables(rows):
        return {"a": rows, "b": rows} if several else rows

    def fit_again(model, kind):
        inner = model.estimator if several else model
        usual = {"n_clusters": 3, "min_confidence": None}
        inner.set_params(**usual | changes.get(kind, {}))
        return model.fit(tables(data.get(kind, X)))

    def new():
        inner = MDEC(ensemble_size=4, random_state=0)
        return MultiViewMDEC(inner) if several else inner

    model = fit_again(new(), first)
    before = dict(vars(model))
    for refused in (np.ones((9, 4)), X[:2], X[:, 0], np.full((9, 4), np.nan)):
        with pytest.raises(ValueError):
            model.fit(tables(refused))
        assert vars(model) == before
    fit_again(model, second)
    expected = fresh_attributes(fit_again(new(), second))
    found = fresh_attributes(model)
    assert found.keys() == expected.keys()
    for name in ("labels_", "consensus_labels_", "confidence_", "cluster_weights_"):
        np.testing.assert_array_equal(found[name], expected[name])
    for name in ("n_clusters_", "n_features_in_", "base_", "views_"):
        assert found.get(name) == expected.get(name)
    model.save(tmp_path / "model.npz")
    again = type(model).load(tmp_path / "model.npz")
    assert fresh_attributes(again).keys() == expected.keys()
    np.testing.assert_array_equal(again.labels_, model.labels_)


@pytest.mark.filterwarnings("error::UserWarning")
def test_a_warning_that_is_an_error_leaves_the_fit_before(X) -> None:
    model = fit(X)
    before = dict(vars(model))
    with pytest.raises(UserWarning, match="no sample reaches"):
        model.set_params(min_confidence=1.0).fit(np.vstack([X, X + 1e-3]))
    assert vars(model) == {**before, "min_confidence": 1.0}


def test_the_fit_decides_and_not_parameters_changed_since(X) -> None:
    model = fit(X, min_confidence=0.8)
    labels = model.labels_.copy()
    assert (labels == -1).any()
    model.set_params(n_clusters="auto", consensus="spectral", min_confidence=None)
    np.testing.assert_array_equal(model.recluster(), labels)
    bipartite = model.recluster(consensus="bipartite")
    fresh = fit(X, consensus="bipartite", min_confidence=0.8)
    np.testing.assert_array_equal(bipartite, fresh.labels_)
    assert (model.predict(X) == -1).any()


# ------------------------------------------------------------------ weights


def test_large_weights_are_normalised() -> None:
    labels = np.repeat([[0], [1]], 5, axis=0) * np.ones((1, 5), dtype=int)
    labels[4, 4] = labels[9, 4] = 2
    labels[:5, 3] = labels[5:, 3] = 0
    ensemble = Ensemble.from_labels(labels)
    clusters, ones = np.repeat([0, 1], 5), np.ones(ensemble.n_base_clusters)
    expected = item_consensus(ensemble, clusters, ones)
    assert confidence(expected, clusters).min() > 0.5
    for scale in (0.5, 5.0):
        found = item_consensus(ensemble, clusters, scale * ones)
        np.testing.assert_allclose(found, min(scale, 1.0) * expected)
        np.testing.assert_allclose(
            confidence(found, clusters), confidence(expected, clusters)
        )


def test_weights_of_views_do_not_change_what_each_says_alone() -> None:
    X = make_blobs(60, n_features=10, centers=3, random_state=1)[0]
    even = fit_views(X)
    for weights in ({"a": 9, "b": 1}, [1, 9]):
        uneven = fit_views(X, view_weights=weights)
        np.testing.assert_array_equal(uneven.labels_, even.labels_)
        np.testing.assert_allclose(uneven.view_confidence_, even.view_confidence_)
        np.testing.assert_allclose(uneven.view_support_, even.view_support_)


# ------------------------------------------------------------------ new rows


@pytest.mark.parametrize("base", ["graph", "landmark"])
def test_a_row_like_no_other_has_no_vote(base) -> None:
    rng = np.random.default_rng(0)
    X = np.zeros((80, 12))
    X[:40, :3], X[40:, 3:6] = rng.uniform(1, 2, (40, 3)), rng.uniform(1, 2, (40, 3))
    model = fit(X, 2, kernel="cosine", base=base, max_features=1.0)
    new = np.zeros((3, 12))
    new[0, 6:], new[1, 0], new[2, :] = 1.0, 1.0, -1.0
    for rows in (new, sparse.csr_array(new)):
        placed = model.place(rows)
        np.testing.assert_array_equal(placed.confidence, [0.5, 1.0, 0.5])
        assert placed.clusters[1] == model.labels_[0]
        np.testing.assert_array_equal(model.predict_proba(rows)[[0, 2]], 0.5)
        assert placed.unlike[[0, 2]].all()
    given = fit(np.corrcoef(rng.normal(size=(40, 5))), metric="precomputed")
    np.testing.assert_array_equal(given.predict_confidence(np.full((2, 40), -0.2)), 0.5)


def test_models_of_sparse_rows_have_memberships(X) -> None:
    rows = np.where(X > 0.0, X, 0.0)
    dense, stored = fit(rows), fit(sparse.csr_array(rows))
    expected = dense.predict_proba(rows[:9])
    np.testing.assert_allclose(stored.predict_proba(rows[:9]), expected, atol=1e-9)


def test_several_tables_flag_rows_too(X) -> None:
    model = fit_views(X)
    views = {"a": X[:5, :6].copy(), "b": X[:5, 4:].copy()}
    views["b"][3] += 1e3
    assert model.unlike_training(views).tolist() == [False, False, False, True, False]
    placed = model.place(views)
    np.testing.assert_array_equal(placed.clusters, model.predict(views))
    assert placed.unlike[3]


# ------------------------------------------------------------------ files


@pytest.mark.parametrize("kind", ["own base", "sparse", "views", "plain"])
def test_a_reclustered_model_is_written_and_read(kind, X, tmp_path) -> None:
    if kind == "views":
        model, new = fit_views(X, "auto"), {"a": X[:9, :6], "b": X[:9, 4:]}
    elif kind == "sparse":
        rows = sparse.csr_array(np.where(X > 0.0, X, 0.0))
        model, new = fit(rows, "auto"), rows[:9]
    else:
        base = from_estimator(KMeans(n_init=1)) if kind == "own base" else "graph"
        model, new = fit(X, "auto", base=base), X[:9]
    arrays = {"means": np.arange(3.0)}
    write_model(tmp_path / "a.npz", model, {"transform": "log"}, arrays)
    kinds = (MDEC, MultiViewMDEC)
    loaded, steps, step_arrays = read_model(tmp_path / "a.npz", kinds)
    assert steps == {"transform": "log"}
    np.testing.assert_array_equal(step_arrays["means"], arrays["means"])
    again = loaded.with_clustering(loaded.clustering_.recluster(4, "bipartite"))
    write_model(tmp_path / "b.npz", again, steps, step_arrays)
    found = read_model(tmp_path / "b.npz", kinds)[0]
    expected = model.recluster(4, "bipartite")
    np.testing.assert_array_equal(found.labels_, expected)
    np.testing.assert_array_equal(found.predict(new), again.predict(new))
    assert found._parameters.n_clusters == 4
    assert type(found) is type(model)
    # The choice of a number works without the function of the fit.
    assert loaded.clustering_.recluster("auto").n_clusters == model.n_clusters_


def test_models_of_version_0_1_are_read() -> None:
    with np.load(OLD / "answers.npz") as answers:
        expected = dict(answers)
    one = MDEC.load(OLD / "model.npz")
    np.testing.assert_array_equal(one.labels_, expected["labels"])
    new = expected["new"]
    np.testing.assert_array_equal(one.predict(new), expected["predicted"])
    found = one.predict_confidence(new)
    np.testing.assert_allclose(found, expected["confidence"], atol=1e-9)
    assert one.k_selection_.null.p_value == 0.02
    assert one.recluster(2).max() == 1
    two = MultiViewMDEC.load(OLD / "views.npz")
    np.testing.assert_array_equal(two.labels_, expected["view_labels"])
    views = {"a": new, "b": new[:, ::-1][:, :4]}
    np.testing.assert_array_equal(two.predict(views), expected["view_predicted"])
    np.testing.assert_array_equal(two.recluster(), two.labels_)
    with pytest.raises(ValueError, match="not an mdec model of views"):
        MultiViewMDEC.load(OLD / "model.npz")


@pytest.mark.parametrize(
    ("n_clusters", "sentence"),
    [
        (2.5, "2.5 is not understood"),
        (True, "True is not understood"),
        ((2, 2.5), "is not understood"),
        ((1, 4), "is not understood"),
        ((5, 2), "ends before it begins"),
        ((2, 10**30), "is more than n_samples=90"),
        (91, "is more than n_samples=90"),
    ],
)
def test_numbers_of_clusters_that_cannot_be(X, n_clusters, sentence) -> None:
    model = fit(X)
    with pytest.raises(ValueError, match=sentence):
        model.recluster(n_clusters)


@pytest.mark.parametrize("kind", [[], {}, {"a": 1}, None, 3])
def test_a_file_of_another_kind_is_no_model(X, tmp_path, kind) -> None:
    model, path = fit(X), tmp_path / "model.npz"
    write_model(path, model)
    content, arrays = read_sealed(path)
    write_sealed(path, {**content, "kind": kind}, arrays)
    with pytest.raises(DamagedFileError, match="is not an mdec model"):
        MDEC.load(path)
