"""A model through a file is the model; a damaged file is one sentence."""

from __future__ import annotations

import dataclasses
import json
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from mdec import MDEC, Ensemble, __version__
from mdec._support.archives import DamagedFileError, read_sealed, write_sealed
from mdec.base.kernels import KERNELS
from mdec.consensus import CONSENSUS
from mdec.estimator.persistence import write_model
from mdec.prediction import base_clusters
from mdec.prediction.base_clusters import vote
from mdec.results import read_result_model
from mdec.tables.steps import TableSteps

ARRAYS = ("labels_", "confidence_", "cluster_weights_")


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(90, 8))
    rows[30:60] += 4.0
    rows[60:, :4] -= 4.0
    return rows


@pytest.fixture(scope="module")
def fitted(X):
    return MDEC(3, ensemble_size=8, random_state=0).fit(X[:80])


def through_a_file(model, folder):
    model.save(folder / "model.npz")
    return MDEC.load(folder / "model.npz")


def assert_equal(model, again, new):
    assert again.get_params() == model.get_params()
    for name in ARRAYS:
        np.testing.assert_array_equal(
            getattr(again, name), getattr(model, name), strict=True
        )
    for name in ("n_clusters_", "base_", "n_features_in_"):
        assert getattr(again, name) == getattr(model, name)
    for name in ("members", "failures", "parameters", "names"):
        assert getattr(again.ensemble_, name) == getattr(model.ensemble_, name)
    np.testing.assert_array_equal(
        again.ensemble_.labels, model.ensemble_.labels, strict=True
    )
    for before, after in zip(model.place(new), again.place(new), strict=True):
        np.testing.assert_array_equal(after, before, strict=True)
    assert (again.predict(new) == model.predict(new)).all()
    assert (again.recluster(n_clusters=2) == model.recluster(n_clusters=2)).all()


@pytest.mark.parametrize("base", ["graph", "landmark"])
@pytest.mark.parametrize("consensus", CONSENSUS)
def test_everything_comes_back(X, tmp_path, base, consensus):
    settings = {"consensus": consensus, "base": base, "random_state": 3}
    model = MDEC(3, ensemble_size=6, **settings).fit(X[:80])
    assert_equal(model, through_a_file(model, tmp_path), X)


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_comes_back(X, tmp_path, kernel):
    model = MDEC(3, ensemble_size=5, kernel=kernel, random_state=0).fit(X[:80])
    assert_equal(model, through_a_file(model, tmp_path), X)


def test_a_diversified_preparation_comes_back(tmp_path):
    rng = np.random.default_rng(1)
    X = np.exp(rng.normal(5.0, 2.0, size=(60, 150)))
    X[:30, :40] *= 6.0
    model = MDEC(2, ensemble_size=8, preparation="diversified", random_state=0)
    model.fit(X[:50])
    assert model.ensemble_.plan.preparation == "intensities"
    assert_equal(model, through_a_file(model, tmp_path), X)


def test_names_and_the_choice_of_k_come_back(X, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"gène {j}" for j in range(8)])
    model = MDEC("auto", ensemble_size=10, random_state=0).fit(frame[:80])
    again = through_a_file(model, tmp_path)
    assert_equal(model, again, frame)
    assert again.feature_names_in_.tolist() == list(frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame.iloc[:, ::-1])
    before, after = (dataclasses.asdict(m.k_selection_) for m in (model, again))
    for name in ("table", "null"):
        for key, column in before.pop(name).items():
            np.testing.assert_array_equal(after[name][key], column, strict=True)
    for key, value in before.items():
        np.testing.assert_array_equal(after[key], value)


def test_numbers_of_numpy_and_lists_are_saved(X, tmp_path):
    model = MDEC(
        np.int64(3),
        ensemble_size=np.int32(5),
        mu_range=[np.float64(0.3), 0.6],
        checkpoint=tmp_path / "kept",
        random_state=0,
    ).fit(X)
    again = through_a_file(model, tmp_path)
    assert again.mu_range == (0.3, 0.6)
    assert (again.predict(X) == model.predict(X)).all()


def test_float32_stays_float32(X, tmp_path):
    model = MDEC(3, ensemble_size=5, random_state=0).fit(X.astype(np.float32))
    again = through_a_file(model, tmp_path)
    assert again.clustering_.rows[0].rows.dtype == np.float32
    assert_equal(model, again, X.astype(np.float32))


def test_what_cannot_be_saved_is_one_sentence(X, tmp_path):
    path = tmp_path / "model.npz"
    with pytest.raises(NotFittedError):
        MDEC(3).save(path)
    generator = np.random.default_rng(0)
    model = MDEC(3, ensemble_size=5, random_state=generator).fit(X)
    with pytest.raises(ValueError, match=r"random_state=Generator.* cannot be saved"):
        model.save(path)
    assert not path.exists()
    model.set_params(random_state=None).save(path)
    assert (MDEC.load(path).predict(X) == model.predict(X)).all()


def test_a_model_on_a_cluster_is_refused(X, tmp_path):
    pytest.importorskip("distributed")
    from dask import array
    from distributed import Client

    with Client(processes=False, n_workers=1, dashboard_address=":0"):
        rows = array.from_array(X, chunks=(45, 8))
        model = MDEC(3, consensus="bipartite", base="landmark", ensemble_size=2)
        model.set_params(random_state=0).fit(rows)
        with pytest.raises(ValueError, match="on a Dask cluster"):
            model.save(tmp_path / "model.npz")
    assert not (tmp_path / "model.npz").exists()


def test_every_flipped_byte_is_noticed_or_changes_nothing(fitted, X, tmp_path):
    path = tmp_path / "model.npz"
    fitted.save(path)
    content = path.read_bytes()
    places = np.linspace(0, len(content) - 1, 400).astype(int)
    places = [*places, *range(len(content) - 60, len(content))]
    expected, refused = fitted.place(X), []
    for place in places:
        changed = bytearray(content)
        changed[place] ^= 0x41
        path.write_bytes(bytes(changed))
        try:
            again = MDEC.load(path)
        except DamagedFileError as error:
            refused.append(str(error))
            continue
        assert (again.labels_ == fitted.labels_).all()
        for before, after in zip(expected, again.place(X), strict=True):
            np.testing.assert_array_equal(after, before, strict=True)
    assert len(refused) > 0.8 * len(places)
    assert all("damaged" in each and "\n" not in each for each in refused)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_file_cut_short_is_refused(fitted, tmp_path, share):
    path = tmp_path / "model.npz"
    fitted.save(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(DamagedFileError, match="damaged or was not written by mdec"):
        MDEC.load(path)


def test_a_bomb_is_refused(fitted, tmp_path):
    path = tmp_path / "model.npz"
    fitted.save(path)
    with pytest.raises(DamagedFileError, match="raise the limit if you trust"):
        MDEC.load(path, max_bytes=10_000)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.npy", bytes(2**25))
    with pytest.raises(DamagedFileError, match="damaged"):
        MDEC.load(path)


def changed_file(model, path, **changes):
    """Write a well-sealed file whose parts were changed: arrays first, then the text.

    Of the ensemble, whose labels and description have one name, `described` is the
    latter.
    """
    model.save(path)
    content, arrays = read_sealed(path)
    for name, value in changes.items():
        place, key = (arrays, name) if name in arrays else (content, name)
        if name == "described":
            key = "ensemble"
        place[key] = value(place[key])
    write_sealed(path, content, arrays)


def one(value):
    """Return what changes a single number of an array."""

    def change(array):
        array = array.copy()
        array.flat[array.size // 2] = value
        return array

    return change


def test_a_newer_format_names_its_version(fitted, tmp_path):
    path = tmp_path / "model.npz"
    changed_file(fitted, path, format=lambda _: 99, mdec=lambda _: "7.0.0")
    with pytest.raises(ValueError, match=r"format 99 of mdec 7\.0\.0.* reads 1;"):
        MDEC.load(path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("rows", lambda a: a[:-1]),
        ("rows", lambda a: np.full_like(a, np.nan)),
        ("rows", lambda a: a.astype("U8")),
        ("means", lambda a: a[:, 1:]),
        ("labels", lambda a: a - 5),
        ("labels", lambda a: a + 0.5),
        ("weights", lambda a: a[None]),
        ("ensemble", lambda a: a + 1),
        ("ensemble", lambda a: a[:, :-1]),
        ("n_features", lambda n: n + 1),
        *[("rows", one(bad)) for bad in (np.nan, np.inf)],
        *[("means", one(bad)) for bad in (np.nan, np.inf, -0.5)],
        *[("weights", one(bad)) for bad in (np.nan, np.inf, -0.1)],
        *[("labels", one(bad)) for bad in (-1, 90)],
        *[("ensemble", one(bad)) for bad in (-2, 90)],
        ("feature_names", lambda _: ["a"]),
        ("feature_names", lambda _: [*"abcdefg", 8]),
        ("parameters", lambda p: {**p, "magic": 1}),
        ("learnt", lambda _: [{"power": 1.0}]),
        ("selection", lambda _: {}),
        ("settings", lambda s: {**s, "n_clusters": 0}),
        ("settings", lambda s: {**s, "n_clusters": [5, 2]}),
        ("settings", lambda s: {**s, "n_clusters": 10**6}),
        ("settings", lambda s: {**s, "consensus": "magic"}),
        ("settings", lambda s: {**s, "weighting": "magic"}),
        ("settings", lambda s: {**s, "min_confidence": 7.0}),
        ("settings", lambda s: {**s, "seed": "x"}),
        ("settings", lambda s: {**s, "magic": 1}),
    ],
)
def test_parts_that_do_not_fit_are_refused(fitted, tmp_path, name, change):
    path = tmp_path / "model.npz"
    changed_file(fitted, path, **{name: change})
    with pytest.raises(DamagedFileError, match="damaged"):
        MDEC.load(path)


def test_other_files_are_no_models(fitted, tmp_path):
    fitted.ensemble_.save(tmp_path / "ensemble.npz")
    with pytest.raises(DamagedFileError, match="not an mdec model"):
        MDEC.load(tmp_path / "ensemble.npz")
    with pytest.raises(FileNotFoundError):
        MDEC.load(tmp_path / "nothing.npz")


def test_the_file_says_which_version_wrote_it(fitted, tmp_path):
    fitted.save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz", allow_pickle=False) as archive:
        told = json.loads(str(archive["provenance"]))
    assert told["kind"] == "mdec model"
    assert (told["format"], told["mdec"]) == (1, __version__)
    assert set(told["seals"]) == set(archive.files) - {"provenance"}


def test_an_error_leaves_the_old_file(fitted, tmp_path, monkeypatch):
    path = tmp_path / "model.npz"
    fitted.save(path)
    before = path.read_bytes()
    monkeypatch.setattr(np, "savez_compressed", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        fitted.save(path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["model.npz"]


def test_names_travel_with_an_ensemble(X, tmp_path):
    ensemble = MDEC(3, ensemble_size=5, random_state=0).fit(X).ensemble_
    names = {"samples": [f"s{i}" for i in range(90)], "features": list("abcdefgh")}
    named = dataclasses.replace(ensemble, names=names)
    named.save(tmp_path / "a.npz")
    again = Ensemble.load(tmp_path / "a.npz")
    assert again.names == {key: tuple(value) for key, value in names.items()}
    assert again[:2].names == again.names
    dataclasses.replace(ensemble, names={"samples": ["a"]}).save(tmp_path / "b.npz")
    with pytest.raises(DamagedFileError, match="not an ensemble"):
        Ensemble.load(tmp_path / "b.npz")


# ------------------------------------------------- a file decides nothing about us


def test_a_file_says_nothing_about_the_machine(X, tmp_path):
    model = MDEC(
        3, ensemble_size=8, random_state=0, n_jobs=2, checkpoint=tmp_path / "c"
    ).fit(X)
    again = through_a_file(model.set_params(n_jobs=2000, verbose=5), tmp_path)
    assert (again.n_jobs, again.checkpoint, again.verbose) == (None, None, 0)
    assert again.clustering_.settings.n_jobs is None
    threads = []

    def count(*given, **more):
        threads.append(threading.active_count())
        return vote(*given, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base_clusters, "vote", count)
        again.predict(X[:5])
    assert max(threads) < 50


def test_where_the_rest_is_computed_is_not_in_the_file(fitted, tmp_path):
    path = tmp_path / "model.npz"
    changed_file(fitted, path, settings=lambda s: {**s, "device": "cuda"})
    again = MDEC.load(path)
    np.testing.assert_array_equal(again.recluster(2), fitted.recluster(2))


@pytest.mark.parametrize(
    "change",
    [
        {"kernel": "rbf"},
        {"kernel": [["cosine", 0.5], ["rbf", 0.5]]},
        {"kernel": [["cosine", 0.5], ["spearman", 5.0]]},
        {"device": "x" * 10**6},
        {"device": "auto"},
        {"preparation": "magic"},
        {"preparation": "intensities"},
        {"metric": "precomputed"},
        {"metric": 3},
        {"base": "landmark", "n_landmarks": 10**9},
        {"base": "landmark", "n_landmarks": 0},
        {"base": "my_own", "device": "cuda"},
        {"base": ""},
        {"n_landmarks": 5},
        {"n_samples": 10**9},
        {"n_samples": 80.0},
        {"n_features": True},
        {"entropy": -1},
        {"entropy": 1.5},
        {"max_features": 1e-9},
        {"max_features": float("nan")},
        {"max_samples": 2.0},
        {"mu_range": [0.2, float("inf")]},
        {"mu_range": [-1.0, 0.8]},
        {"n_neighbors_range": [5]},
        {"n_neighbors_range": [0, 20]},
        {"base_n_clusters_range": [2, 10**6]},
        {"magic": 1},
    ],
)
def test_a_plan_that_cannot_be_is_refused(fitted, tmp_path, change):
    """At once and in one sentence, in a model as in an ensemble."""
    path = tmp_path / "model.npz"

    def ensemble(content):
        return {**content, "parameters": {**content["parameters"], **change}}

    changed_file(fitted, path, described=ensemble)
    with pytest.raises(DamagedFileError, match="damaged") as caught:
        MDEC.load(path)
    assert len(str(caught.value)) < 500
    labels = fitted.ensemble_.labels
    content = {"format": 2, **ensemble(fitted.ensemble_.to_json())}
    write_sealed(path, content, {"labels": labels})
    with pytest.raises(DamagedFileError, match="not an ensemble saved by mdec"):
        Ensemble.load(path)


@pytest.mark.parametrize(
    "change",
    [
        {"n_neighbors": 10**9},
        {"n_neighbors": 0},
        {"n_neighbors": "five"},
        {"mu": float("nan")},
        {"mu": 10.0},
        {"n_clusters": 10**6},
        {"n_clusters": 1},
        {"kernel": "cosine"},
        {"preparation": {"power": 1.0, "share": 0.5}},
        {"index": -1},
        {"attempt": 7},
    ],
)
def test_a_member_that_cannot_be_is_refused(fitted, tmp_path, change):
    path = tmp_path / "model.npz"

    def ensemble(content):
        first, *others = content["members"]
        return {**content, "members": [{**first, **change}, *others]}

    changed_file(fitted, path, described=ensemble)
    with pytest.raises(DamagedFileError, match="damaged"):
        MDEC.load(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [("device", "x" * 10**6), ("max_features", 7), ("base", "tree"), ("kernel", 3)],
)
def test_parameters_that_cannot_be_are_refused(fitted, tmp_path, name, value):
    path = tmp_path / "model.npz"
    changed_file(fitted, path, parameters=lambda p: {**p, name: value})
    with pytest.raises(DamagedFileError, match="damaged"):
        MDEC.load(path)
    # What cannot be loaded is not written.
    model = MDEC(3, ensemble_size=8, random_state=0)
    model._set_attributes(fitted.clustering_, [None])
    with pytest.raises(ValueError, match=name):
        model.set_params(**{name: value}).save(tmp_path / "new.npz")
    assert not (tmp_path / "new.npz").exists()


def test_features_that_no_row_has_are_counted(X, tmp_path):
    """Sparse rows may claim any number of features; draws take room for each."""
    model = MDEC(3, ensemble_size=4, random_state=0).fit(sparse.csr_array(X))
    path = tmp_path / "model.npz"

    def wider(content):
        return {
            **content,
            "parameters": {**content["parameters"], "n_features": 10**10},
        }

    changed_file(model, path, described=wider, n_features=lambda _: 10**10)
    with pytest.raises(DamagedFileError, match="damaged"):
        MDEC.load(path)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="has no endless device")
def test_what_never_ends_is_no_file():
    for load in (MDEC.load, Ensemble.load):
        with pytest.raises(ValueError, match="'/dev/zero' is not a file"):
            load("/dev/zero")


def test_steps_take_no_more_than_the_model(fitted, tmp_path):
    """What the steps before a model claim is compared before it is made."""
    path = tmp_path / "model.npz"
    steps = TableSteps(8, None).to_json()
    write_model(path, fitted, steps)
    assert read_result_model(path)[1].n_features == 8
    for size in (10**12, 9, 0, "8"):
        write_model(path, fitted, {**steps, "n_features": size})
        with pytest.raises(DamagedFileError, match="damaged"):
            read_result_model(path)
    learnt = {"order": np.arange(8), "features": np.arange(10)}
    write_model(path, fitted, steps, learnt)
    assert read_result_model(path)[1].n_features == 8
    shape = {"power": 1.0, "total": None, "center": False}
    write_model(path, fitted, {**steps, "preparation": shape}, learnt)
    with pytest.raises(DamagedFileError, match="damaged"):
        read_result_model(path)
