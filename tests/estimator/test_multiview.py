"""MDEC over several tables of the same samples."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from mdec import MDEC, Ensemble, MultiViewMDEC
from mdec._support.archives import DamagedFileError
from mdec.coassociation import locally_weighted_coassociation
from mdec.consensus import CONSENSUS


@pytest.fixture(scope="module")
def views() -> dict[str, np.ndarray]:
    """Three groups: each view sees one border only, the third view sees none."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 25)
    first = rng.normal(size=(75, 8)) + 6.0 * (y == 0)[:, None]
    second = rng.normal(size=(75, 12)) + 6.0 * (y == 2)[:, None]
    return {"left": first, "right": second, "none": rng.normal(size=(75, 5))}


TRUTH = np.repeat([0, 1, 2], 25)


def model(**settings: object) -> MultiViewMDEC:
    settings = {"n_clusters": 3, "ensemble_size": 15, "random_state": 0} | settings
    weights = settings.pop("view_weights", None)
    return MultiViewMDEC(MDEC(**settings), view_weights=weights)


@pytest.mark.parametrize("consensus", CONSENSUS)
def test_views_see_together_what_none_sees_alone(views, consensus: str) -> None:
    found = model(consensus=consensus, base_n_clusters_range=(2, 4)).fit(views)
    assert adjusted_rand_score(TRUTH, found.labels_) > 0.9
    for X in views.values():
        alone = MDEC(3, consensus=consensus, ensemble_size=15, random_state=0).fit(X)
        assert adjusted_rand_score(TRUTH, alone.labels_) < 0.8
    assert found.view_support_.shape == (3, 3)
    left, right, none = found.view_support_
    assert left[found.labels_[0]] > 0.8 > right[found.labels_[0]]
    assert right[found.labels_[-1]] > 0.8 > left[found.labels_[-1]]
    assert none.max() < 0.65
    assert found.view_confidence_.shape == (75, 3)
    assert found.view_confidence_[:25, 0].mean() > 0.8
    np.testing.assert_allclose(found.membership_.sum(axis=1), 1.0)


def test_support_is_inside_over_inside_and_the_nearest_rival(views) -> None:
    found = model().fit(views)
    labels = found.labels_
    view = found.ensemble_.view(1)
    origins = np.repeat(found.ensemble_.origins, found.ensemble_.cluster_counts)
    weights = found.cluster_weights_[origins == 1]
    A = locally_weighted_coassociation(view, weights)
    for k in range(3):
        mine = np.flatnonzero(labels == k)
        inside = np.mean([A[i, j] for i in mine for j in mine if i != j])
        rivals = [A[np.ix_(mine, labels == other)].mean() for other in {0, 1, 2} - {k}]
        expected = inside / (inside + max(rivals))
        assert found.view_support_[1, k] == pytest.approx(expected)


def test_one_seed_for_all(views) -> None:
    first = model(n_jobs=2).fit(views)
    again = clone(first).fit(dict(views))
    np.testing.assert_array_equal(first.ensemble_.labels, again.ensemble_.labels)
    turned = model().fit(dict(reversed(views.items())))
    for number in range(3):
        np.testing.assert_array_equal(
            turned.ensemble_.view(2 - number).labels,
            first.ensemble_.view(number).labels,
        )
    entropies = [view.parameters["entropy"] for view in first.ensemble_.views]
    assert len(set(entropies)) == 3
    fewer = model(ensemble_size=5).fit(views)
    np.testing.assert_array_equal(
        fewer.ensemble_.view(1).labels, first.ensemble_.view(1).labels[:, :5]
    )


def test_one_view_alone_is_mdec_with_the_seed_of_the_view(views) -> None:
    several = model().fit({"left": views["left"]})
    seed = several.ensemble_.view(0).plan.entropy
    one = MDEC(3, ensemble_size=15, random_state=seed).fit(views["left"])
    np.testing.assert_array_equal(several.ensemble_.labels, one.ensemble_.labels)
    np.testing.assert_array_equal(several.labels_, one.labels_)
    np.testing.assert_array_equal(several.confidence_, one.confidence_)
    np.testing.assert_array_equal(
        several.predict({"left": views["left"]}), one.predict(views["left"])
    )


def test_new_rows_and_files(views, tmp_path) -> None:
    found = model(view_weights={"left": 2, "right": 2, "none": 1}).fit(views)
    np.testing.assert_allclose(
        found.ensemble_.member_weights[[0, 15, 30]], [1.2, 1.2, 0.6]
    )
    new = {name: X + 0.01 for name, X in views.items()}
    assert (found.predict(new) == found.labels_).mean() > 0.95
    np.testing.assert_allclose(found.predict_proba(new).sum(axis=1), 1.0)
    found.save(tmp_path / "views.npz")
    loaded = MultiViewMDEC.load(tmp_path / "views.npz")
    for name in ("labels_", "confidence_", "membership_", "view_support_"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(found, name))
    np.testing.assert_array_equal(loaded.view_confidence_, found.view_confidence_)
    np.testing.assert_array_equal(loaded.predict(new), found.predict(new))
    np.testing.assert_array_equal(
        loaded.predict_confidence(new), found.predict_confidence(new)
    )
    assert loaded.views_ == found.views_
    assert loaded.view_weights == found.view_weights
    assert loaded.estimator.get_params() == found.estimator.get_params()
    found.ensemble_.save(tmp_path / "ensemble.npz")
    with pytest.raises(DamagedFileError, match="not an mdec model of views"):
        MultiViewMDEC.load(tmp_path / "ensemble.npz")


def test_the_number_of_clusters_is_looked_for(views, tmp_path) -> None:
    X, _ = make_blobs(75, n_features=10, centers=3, random_state=0)
    found = model(n_clusters="auto").fit({"blobs": X, "none": views["none"]})
    assert found.n_clusters_ == 3
    assert found.k_selection_.null.is_firm
    found.save(tmp_path / "m.npz")
    assert MultiViewMDEC.load(tmp_path / "m.npz").k_selection_.n_clusters == 3


def test_the_uncertain_are_left_out(views) -> None:
    found = model(min_confidence=0.7).fit(views)
    np.testing.assert_array_equal(found.labels_ == -1, found.confidence_ < 0.7)
    clusters = found.predict(views)
    sure = found.predict_confidence(views)
    np.testing.assert_array_equal(clusters == -1, sure < 0.7)


def test_drawn_samples_need_only_one_view(views) -> None:
    found = model(max_samples=0.5, ensemble_size=40).fit(views)
    assert not found.ensemble_.is_complete
    assert adjusted_rand_score(TRUTH, found.labels_) > 0.9


def test_a_checkpoint_has_a_folder_for_each_view(views, tmp_path) -> None:
    first = model(checkpoint=tmp_path).fit(views)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["view-1", "view-2", "view-3"]
    again = model(checkpoint=tmp_path).fit(views)
    np.testing.assert_array_equal(first.labels_, again.labels_)
    with pytest.raises(ValueError, match="integer random_state"):
        model(checkpoint=tmp_path, random_state=None).fit(views)


def test_frames_of_the_same_samples(views) -> None:
    pandas = pytest.importorskip("pandas")
    names = [f"s{i}" for i in range(75)]
    frames = {
        name: pandas.DataFrame(X, names, [f"f{j}" for j in range(X.shape[1])])
        for name, X in views.items()
    }
    found = model().fit(frames)
    np.testing.assert_array_equal(found.labels_, model().fit(views).labels_)
    np.testing.assert_array_equal(found.predict(frames), found.predict(frames))
    with pytest.raises(ValueError, match="feature names should match"):
        found.predict(frames | {"left": frames["left"].rename(columns={"f0": "g"})})
    turned = frames | {"right": frames["right"].iloc[::-1]}
    with pytest.raises(ValueError, match="indices of the views 'left' and 'right'"):
        model().fit(turned)


def test_what_are_no_views_is_said(views) -> None:
    with pytest.raises(ValueError, match="mapping of names to tables"):
        model().fit(list(views.values()))
    with pytest.raises(ValueError, match="mapping of names to tables"):
        model().fit({})
    with pytest.raises(ValueError, match="'left': 75, 'right': 74"):
        model().fit({"left": views["left"], "right": views["right"][1:]})
    with pytest.raises(ValueError, match="strings"):
        model().fit({0: views["left"]})
    found, X = model(ensemble_size=5).fit(views), views["left"]
    with pytest.raises(
        ValueError, match=r"missing are \['none'\], unknown are \['no'\]"
    ):
        found.predict({"left": views["left"], "right": views["right"], "no": X})
    with pytest.raises(ValueError, match="features"):
        found.predict(views | {"left": views["right"]})


def test_one_table_on_a_cluster_is_enough_to_be_refused(views) -> None:
    array = pytest.importorskip("dask.array")
    tables = views | {"right": array.from_array(views["right"])}
    with pytest.raises(ValueError, match="views are not clustered on a Dask cluster"):
        model().fit(tables)


def test_hostile_names_and_float32(views) -> None:
    name = "</script><b>\u0000\udc80'"
    X = views["left"].astype(np.float32)
    found = model(n_clusters=2).fit({name: X, "": views["none"]})
    assert found.views_ == [name, ""]
    assert isinstance(found.ensemble_, Ensemble)


def test_three_samples() -> None:
    X, _ = make_blobs(3, n_features=4, random_state=0)
    found = model(n_clusters=1, ensemble_size=4).fit({"a": X, "b": -X})
    assert found.view_support_.tolist() == [[1.0], [1.0]]
