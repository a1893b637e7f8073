"""Every baseline as an estimator: the common contract, seeds, threads."""

from __future__ import annotations

import inspect
import pickle
import pydoc
import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.utils.estimator_checks import check_estimator

from mdec import baselines
from mdec.baselines import BASELINES, GENERATION

NAMES = list(BASELINES)


def estimator(name: str, n_clusters: int = 3, **parameters: object):
    return getattr(baselines, name)(n_clusters, **{"ensemble_size": 10} | parameters)


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return make_blobs(90, n_features=30, centers=3, cluster_std=4.0, random_state=0)[0]


# All stand on one class; these two stand for both ways to make an ensemble.
CHECKED = ("SSCSPA", "LWGP")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in CHECKED else pytest.mark.slow)
        for name in NAMES
    ],
)
def test_scikit_learn_contract(name: str) -> None:
    check_estimator(estimator(name), on_skip=None)


def test_names_are_complete() -> None:
    assert list(GENERATION) == NAMES
    assert sorted(baselines.__all__) == baselines.__all__
    for name in NAMES:
        assert name in baselines.__all__
        assert GENERATION[name] == ("stratified" if name[:2] == "SS" else "kmeans")


@pytest.mark.parametrize("name", NAMES)
def test_fit_is_generation_then_consensus(name: str, X: np.ndarray) -> None:
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    model = estimator(name, random_state=4).fit(X)
    generate = getattr(baselines, f"generate_{GENERATION[name]}_ensemble")
    ensemble = generate(X, ensemble_size=10, random_state=4)
    np.testing.assert_array_equal(model.ensemble_.labels, ensemble.labels)
    labels = BASELINES[name](ensemble, 3, random_state=4)
    np.testing.assert_array_equal(model.labels_, labels)
    assert model.n_clusters_ == np.unique(labels).size
    assert model.n_features_in_ == 30
    # Labels depend on the seed alone, and survive pickle.
    again = pickle.loads(pickle.dumps(model))
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.labels_, labels)
    np.testing.assert_array_equal(model.fit(X).labels_, labels)
    threads = clone(model).set_params(n_jobs=2).fit(X)
    np.testing.assert_array_equal(threads.labels_, labels)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


@pytest.mark.parametrize("name", NAMES)
def test_every_number_of_clusters_up_to_the_samples(name: str, X: np.ndarray) -> None:
    few = X[:12]
    for n_clusters in (1, 12):
        labels = estimator(name, n_clusters, random_state=0).fit(few).labels_
        assert np.unique(labels).size == n_clusters
    with pytest.raises(ValueError, match="n_clusters=13 is more than n_samples=12"):
        estimator(name, 13).fit(few)


def headings(docstring: str) -> list[str]:
    return re.findall(r"^([A-Z][A-Za-z ]+)\n-{3,}$", docstring, flags=re.MULTILINE)


def described(docstring: str) -> dict[str, str]:
    """Return the first line and the text of each entry of a docstring."""
    found = re.findall(r"^(\w+) : (.*(?:\n    .*)+)", docstring, flags=re.MULTILINE)
    return dict(found)


def default_in(entry: str) -> object:
    """Return the default that the first line of an entry names."""
    written = entry.split("\n")[0].split("default=")[1]
    return {"None": None, "False": False}.get(written, written.strip('"'))


@pytest.mark.parametrize("name", NAMES)
def test_help_is_complete(name: str) -> None:
    cls = getattr(baselines, name)
    written = inspect.cleandoc(cls.__doc__)
    assert headings(written) == [
        *("Parameters", "Attributes", "See Also", "Notes", "References", "Examples"),
    ]
    texts = described(written)
    attributes = {"labels_", "ensemble_", "n_clusters_", "n_features_in_"}
    parameters = cls().get_params()
    assert set(texts) == {*parameters, *attributes}
    for parameter, default in parameters.items():
        assert str(default_in(texts[parameter])) == str(default)
    shown = pydoc.plain(pydoc.render_doc(cls))
    for line in written.splitlines():
        assert line in shown
    assert f">>> model = {name}(3, " in written
    assert "NAME" not in written
    assert "OPTIONS" not in written


@pytest.mark.parametrize("name", NAMES)
def test_help_of_the_function_is_complete(name: str) -> None:
    function = BASELINES[name]
    written = inspect.cleandoc(function.__doc__)
    assert headings(written) == [
        *("Parameters", "Returns", "Notes", "References", "Examples"),
    ]
    texts = described(written)
    assert list(texts) == list(inspect.signature(function).parameters)
    for parameter in list(texts)[2:-1]:
        default = inspect.signature(function).parameters[parameter].default
        assert str(default_in(texts[parameter])) == str(default)
    assert f">>> {function.__name__}(ensemble, 2, " in written
    assert ":math:" in written or ".. math::" in written


@pytest.mark.parametrize("name", NAMES)
def test_estimator_says_all_that_its_steps_say(name: str) -> None:
    written = getattr(baselines, name).__doc__
    generate = getattr(baselines, f"generate_{GENERATION[name]}_ensemble")
    for step in (BASELINES[name], generate):
        said = inspect.cleandoc(step.__doc__)
        body = re.search(r"\nNotes\n-----\n(.*)\n\nExamples", said, re.DOTALL)
        for paragraph in body[1].replace("\nReferences\n----------", "").split("\n\n"):
            assert paragraph.strip() in written


@pytest.mark.parametrize("name", NAMES)
def test_only_the_number_of_clusters_is_positional(name: str) -> None:
    parameters = inspect.signature(getattr(baselines, name)).parameters
    assert next(iter(parameters)) == "n_clusters"
    assert [*parameters][-1] == "random_state"
    for parameter, each in parameters.items():
        positional = parameter == "n_clusters"
        kind = each.POSITIONAL_OR_KEYWORD if positional else each.KEYWORD_ONLY
        assert each.kind == kind
        assert each.annotation is not inspect.Parameter.empty


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_kept_as_given(name: str) -> None:
    seed = np.random.default_rng(0)
    model = estimator(name, 4, base_n_clusters_range=[2, 5], random_state=seed)
    given = model.get_params()
    assert set(given) == set(inspect.signature(type(model)).parameters)
    assert given["base_n_clusters_range"] is model.base_n_clusters_range
    assert given["random_state"] is seed
    assert clone(model).get_params().keys() == given.keys()
    assert clone(model).ensemble_size == 10
    assert model.set_params(n_clusters=5, n_jobs=2) is model
    assert (model.n_clusters, model.n_jobs) == (5, 2)
    with pytest.raises(ValueError, match="Invalid parameter 'n_cluster'"):
        model.set_params(n_cluster=3)


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_is_checked(name: str, X: np.ndarray) -> None:
    for parameter in estimator(name).get_params():
        with pytest.raises(ValueError, match=f"The '{parameter}' parameter of {name}"):
            estimator(name).set_params(**{parameter: object()}).fit(X)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_random_where_the_help_says_so(name: str) -> None:
    noise = np.random.default_rng(0).integers(0, 6, size=(80, 12)).astype(float)
    ensemble = baselines.generate_kmeans_ensemble(noise, random_state=0)
    found = [BASELINES[name](ensemble, 5, random_state=seed) for seed in range(4)]
    same = all(np.array_equal(labels, found[0]) for labels in found[1:])
    # Mt-KaHyPar finds the same cut from all these seeds.
    assert same == ("Not used" in BASELINES[name].__doc__ or name.endswith("HGPA"))
