"""MDEC as scikit-learn, pandas and pipelines see it."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from mdec import MDEC, Ensemble, generate_ensemble
from mdec.base.kernels import KERNELS
from mdec.consensus import CONSENSUS
from mdec.weights import ensemble_driven_cluster_index

NAMES = tuple(CONSENSUS)


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    rng = np.random.default_rng(3)
    centers = 5.0 * rng.normal(size=(4, 10))
    return centers[np.arange(100) % 4] + rng.normal(size=(100, 10))


def small(**settings: object) -> MDEC:
    return MDEC(**({"n_clusters": 4, "ensemble_size": 8, "random_state": 0} | settings))


@parametrize_with_checks(
    [MDEC(n_clusters=2, ensemble_size=3, consensus=name) for name in NAMES]
    + [MDEC(2, ensemble_size=12, kernel="correlation")]
)
def test_scikit_learn_contract(estimator: MDEC, check: object) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [MDEC(2, ensemble_size=12, kernel=name) for name in KERNELS[1:]]
    + [MDEC(2, ensemble_size=12, kernel=list(KERNELS))]
    + [MDEC(2, ensemble_size=12, kernel={"correlation": 1, "spearman": 2})]
)
def test_scikit_learn_contract_of_every_kernel(estimator: MDEC, check: object) -> None:
    check(estimator)


def test_defaults_are_the_papers() -> None:
    model = MDEC()
    assert model.n_clusters == 8
    assert model.consensus == "hierarchical"
    assert model.ensemble_size == 100
    assert model.sampling_ratio == 0.5
    assert model.kernel == "scaled_gaussian"
    assert model.mu_range == (0.2, 0.8)
    assert model.n_neighbors_range == (5, 20)
    assert model.base_n_clusters_range is None
    assert model.weighting == "entropy"


@pytest.mark.parametrize("consensus", NAMES)
def test_fitted_attributes(X: np.ndarray, consensus: str) -> None:
    model = small(consensus=consensus).fit(X)
    assert model.labels_.shape == (100,)
    assert adjusted_rand_score(np.arange(100) % 4, model.labels_) == 1.0
    assert model.n_clusters_ == 4
    assert model.n_features_in_ == 10
    assert not hasattr(model, "feature_names_in_")
    assert isinstance(model.ensemble_, Ensemble)
    assert len(model.ensemble_) == 8
    expected = ensemble_driven_cluster_index(model.ensemble_)
    np.testing.assert_array_equal(model.cluster_weights_, expected)


def test_ensemble_is_that_of_the_function(X: np.ndarray) -> None:
    ensemble = generate_ensemble(X, ensemble_size=8, random_state=0)
    np.testing.assert_array_equal(small().fit(X).ensemble_.labels, ensemble.labels)


def test_uniform_weights(X: np.ndarray) -> None:
    model = small(weighting="uniform").fit(X)
    np.testing.assert_array_equal(model.cluster_weights_, 1.0)


def test_fit_predict(X: np.ndarray) -> None:
    np.testing.assert_array_equal(small().fit_predict(X), small().fit(X).labels_)


@pytest.mark.parametrize("consensus", NAMES)
def test_a_second_fit_is_identical(X: np.ndarray, consensus: str) -> None:
    model = small(consensus=consensus, n_clusters=7).fit(X)
    first, ensemble = model.labels_.copy(), model.ensemble_.labels.copy()
    model.fit(X)
    np.testing.assert_array_equal(model.labels_, first)
    np.testing.assert_array_equal(model.ensemble_.labels, ensemble)


def test_a_second_fit_forgets_the_first(X: np.ndarray) -> None:
    model = small().fit(X)
    model.fit(X[:50, :6])
    assert model.labels_.shape == (50,)
    assert model.n_features_in_ == 6


# ------------------------------------------------------------------ recluster


@pytest.mark.parametrize("consensus", NAMES)
@pytest.mark.parametrize("n_clusters", [2, 5])
def test_recluster_equals_a_fresh_fit(
    X: np.ndarray, consensus: str, n_clusters: int
) -> None:
    model = small(consensus="hierarchical").fit(X)
    fresh = small(consensus=consensus, n_clusters=n_clusters).fit(X)
    np.testing.assert_array_equal(
        model.recluster(n_clusters=n_clusters, consensus=consensus), fresh.labels_
    )


def test_recluster_changes_nothing_in_the_model(X: np.ndarray) -> None:
    model = small().fit(X)
    labels = model.labels_.copy()
    model.recluster(n_clusters=2, consensus="bipartite")
    np.testing.assert_array_equal(model.labels_, labels)
    np.testing.assert_array_equal(model.recluster(), labels)
    assert model.n_clusters == 4
    assert model.n_clusters_ == 4


def test_recluster_generates_nothing(
    X: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = small().fit(X)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("generated again")

    monkeypatch.setattr("mdec.generation.generate_ensemble", refuse)
    model.recluster(n_clusters=3, consensus="spectral")


def test_recluster_with_a_generator_repeats(X: np.ndarray) -> None:
    model = small(random_state=np.random.RandomState(0), consensus="spectral").fit(X)
    np.testing.assert_array_equal(model.recluster(), model.labels_)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"consensus": "best"}, "consensus='best' is not one of"),
        ({"n_clusters": 0}, "n_clusters=0"),
        ({"n_clusters": 101}, "n_clusters=101"),
    ],
)
def test_bad_recluster(X: np.ndarray, settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small().fit(X).recluster(**settings)


def test_recluster_needs_a_fit() -> None:
    with pytest.raises(NotFittedError):
        MDEC().recluster()


# ------------------------------------------------------------------ input


def test_pandas(X: np.ndarray) -> None:
    frame = pd.DataFrame(X, columns=[f"gene {i}" for i in range(10)])
    model = small().fit(frame)
    np.testing.assert_array_equal(model.feature_names_in_, frame.columns)
    np.testing.assert_array_equal(model.labels_, small().fit(X).labels_)
    model.fit(X)
    assert not hasattr(model, "feature_names_in_")


def test_lists(X: np.ndarray) -> None:
    np.testing.assert_array_equal(
        small().fit(X.tolist()).labels_, small().fit(X).labels_
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.float16])
def test_types_of_numbers(X: np.ndarray, dtype: type) -> None:
    labels = small().fit(X.astype(dtype)).labels_
    assert adjusted_rand_score(np.arange(100) % 4, labels) == 1.0


@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_order_does_not_matter(X: np.ndarray, order: str) -> None:
    data = np.asarray(X, order=order)
    np.testing.assert_array_equal(small().fit(data).labels_, small().fit(X).labels_)


def test_read_only_data(X: np.ndarray) -> None:
    data = X.copy()
    data.flags.writeable = False
    np.testing.assert_array_equal(small().fit(data).labels_, small().fit(X).labels_)


@pytest.mark.parametrize(
    "settings",
    [
        {"n_clusters": 0},
        {"n_clusters": 2.5},
        {"consensus": "best"},
        {"ensemble_size": 0},
        {"sampling_ratio": 0.0},
        {"sampling_ratio": 1.5},
        {"kernel": "rbf"},
        {"mu_range": 0.5},
        {"n_neighbors_range": "few"},
        {"weighting": "none"},
        {"random_state": "seed"},
        {"n_jobs": "all"},
    ],
)
def test_bad_parameters_are_named(X: np.ndarray, settings: dict) -> None:
    (name,) = settings
    with pytest.raises(ValueError, match=name):
        small(**settings).fit(X)


def test_bad_parameters_wait_for_fit() -> None:
    assert MDEC(n_clusters=-3).n_clusters == -3


# ------------------------------------------------------------------ conventions


def test_clone_and_set_params(X: np.ndarray) -> None:
    model = small(consensus="bipartite", mu_range=[0.3, 0.4]).fit(X)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "labels_")
    copy.set_params(n_clusters=2, consensus="spectral")
    assert copy.fit(X).n_clusters_ == 2
    assert model.n_clusters == 4


def test_fit_changes_no_parameter(X: np.ndarray) -> None:
    seed = np.random.RandomState(0)
    model = small(random_state=seed, n_neighbors_range=[5, 300])
    before = dict(model.get_params())
    model.fit(X)
    assert model.random_state is seed
    assert model.get_params() == before


def test_pipeline(X: np.ndarray) -> None:
    scaled = StandardScaler().fit_transform(X)
    pipeline = make_pipeline(StandardScaler(), small())
    np.testing.assert_array_equal(pipeline.fit_predict(X), small().fit(scaled).labels_)
    pipeline.set_params(mdec__n_clusters=2)
    assert len(np.unique(pipeline.fit_predict(X))) == 2


def test_pickle(X: np.ndarray) -> None:
    model = small().fit(X)
    restored = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(restored.labels_, model.labels_)
    np.testing.assert_array_equal(
        restored.recluster(consensus="bipartite"),
        model.recluster(consensus="bipartite"),
    )


def test_fewer_clusters_than_asked_are_counted() -> None:
    """n_clusters_ counts what is in labels_."""
    X = np.array([[0.0], [0.1], [5.0], [5.1], [9.0], [9.1]])
    model = small(n_clusters=3, sampling_ratio=1.0).fit(X)
    assert model.n_clusters_ == len(np.unique(model.labels_))
