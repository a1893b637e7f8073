"""Every baseline as an estimator: the common contract, seeds, threads."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.utils.estimator_checks import parametrize_with_checks

from mdec import baselines
from mdec.baselines import BASELINES, GENERATION

NAMES = list(BASELINES)


def estimator(name: str, n_clusters: int = 3, **parameters: object):
    return getattr(baselines, name)(n_clusters, **{"ensemble_size": 10} | parameters)


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return make_blobs(90, n_features=30, centers=3, cluster_std=4.0, random_state=0)[0]


@parametrize_with_checks([estimator(name) for name in NAMES])
def test_scikit_learn_contract(estimator, check) -> None:
    check(estimator)


def test_names_are_complete() -> None:
    assert list(GENERATION) == NAMES
    assert sorted(baselines.__all__) == baselines.__all__
    for name in NAMES:
        assert name in baselines.__all__
        assert GENERATION[name] == ("stratified" if name[:2] == "SS" else "kmeans")


@pytest.mark.parametrize("name", NAMES)
def test_fit_is_generation_then_consensus(name: str, X: np.ndarray) -> None:
    model = estimator(name, random_state=4).fit(X)
    generate = getattr(baselines, f"generate_{GENERATION[name]}_ensemble")
    ensemble = generate(X, ensemble_size=10, random_state=4)
    np.testing.assert_array_equal(model.ensemble_.labels, ensemble.labels)
    labels = BASELINES[name](ensemble, 3, random_state=4)
    np.testing.assert_array_equal(model.labels_, labels)
    assert model.n_clusters_ == np.unique(labels).size
    assert model.n_features_in_ == 30


@pytest.mark.parametrize("name", NAMES)
def test_labels_depend_on_the_seed_alone(name: str, X: np.ndarray) -> None:
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    model = estimator(name, random_state=1).fit(X)
    first = model.labels_.copy()
    np.testing.assert_array_equal(model.fit(X).labels_, first)
    threads = clone(model).set_params(n_jobs=2).fit(X)
    np.testing.assert_array_equal(threads.labels_, first)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


@pytest.mark.parametrize("name", NAMES)
def test_every_number_of_clusters_up_to_the_samples(name: str, X: np.ndarray) -> None:
    few = X[:12]
    for n_clusters in (1, 12):
        labels = estimator(name, n_clusters, random_state=0).fit(few).labels_
        assert np.unique(labels).size == n_clusters
    with pytest.raises(ValueError, match="n_clusters=13 is more than n_samples=12"):
        estimator(name, 13).fit(few)


@pytest.mark.parametrize("name", NAMES)
def test_docstring_names_source_and_parameters(name: str) -> None:
    cls = getattr(baselines, name)
    written = inspect.cleandoc(cls.__doc__)
    assert "References" in written
    for parameter in cls().get_params():
        assert f"\n{parameter} : " in written
    function = BASELINES[name].__doc__
    assert ":math:" in function or ".. math::" in function
    assert "References" in function
