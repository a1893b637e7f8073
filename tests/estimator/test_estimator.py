"""MDEC as scikit-learn, pandas and pipelines see it."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

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


def expected_failures(estimator: MDEC) -> dict[str, str]:
    """What scikit-learn asks of classifiers and a clusterer cannot give."""
    reason = "predict_proba of sparse rows is expected to know the four classes of y"
    names = ("check_estimator_sparse_array", "check_estimator_sparse_matrix")
    sparse = estimator.__sklearn_tags__().input_tags.sparse
    return dict.fromkeys(names, reason) if sparse else {}


def follow_contract(model: MDEC) -> None:
    check_estimator(
        model, expected_failed_checks=expected_failures(model), on_skip=None
    )


@pytest.mark.parametrize("consensus", NAMES)
def test_scikit_learn_contract(consensus: str) -> None:
    follow_contract(MDEC(n_clusters=2, ensemble_size=3, consensus=consensus))


@pytest.mark.slow
@pytest.mark.parametrize(
    "kernel", [*KERNELS[1:], list(KERNELS), {"correlation": 1, "spearman": 2}], ids=str
)
def test_scikit_learn_contract_of_every_kernel(kernel: object) -> None:
    follow_contract(MDEC(2, ensemble_size=12, kernel=kernel))


def test_defaults_are_the_papers() -> None:
    model = MDEC()
    assert model.n_clusters == 8
    assert model.consensus == "hierarchical"
    assert model.ensemble_size == 100
    assert model.max_features == 0.5
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
        {"max_features": 0.0},
        {"max_features": 1.5},
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
    model = small(n_clusters=3, max_features=1.0).fit(X)
    assert model.n_clusters_ == len(np.unique(model.labels_))


# ------------------------------------------------------------------ edges


def other_shapes(X: np.ndarray) -> list[object]:
    return [X[:, 0], X[0, 0], X[None], X[:0], X[:, :0], X[:1], X[:2], None, "abc"]


def test_what_is_no_table_is_refused(X: np.ndarray) -> None:
    for rows in other_shapes(X):
        with pytest.raises(ValueError, match=r"X|array|string"):
            MDEC(2, ensemble_size=2).fit(rows)
        with pytest.raises(ValueError, match=r"X|array|string"):
            generate_ensemble(rows, ensemble_size=2)


def test_a_dask_array_that_is_no_table_is_refused(X: np.ndarray) -> None:
    array = pytest.importorskip("dask.array")
    for rows in (X[:, 0], X[None], X[0, 0]):
        for fit in (MDEC(2, ensemble_size=2).fit, generate_ensemble):
            with pytest.raises(ValueError, match="X has shape"):
                fit(array.from_array(rows))


def test_numbers_for_names_are_no_names(X: np.ndarray, tmp_path: Path) -> None:
    for columns in (range(X.shape[1]), np.arange(X.shape[1]) / 2):
        frame = pd.DataFrame(X, columns=columns)
        model = MDEC(3, ensemble_size=5, random_state=0).fit(frame)
        assert not hasattr(model, "feature_names_in_")
        model.save(tmp_path / "model.npz")
        again = MDEC.load(tmp_path / "model.npz")
        np.testing.assert_array_equal(again.predict(frame), model.predict(X))


@pytest.mark.parametrize(
    "parameters",
    [
        {"base": lambda X, rng: rng.integers(2, size=len(X))},
        {"metric": lambda a, b: float(abs(a - b).sum())},
        {"preparation": "diversified"},
    ],
)
def test_tags_of_what_takes_no_sparse_rows(parameters: dict[str, Any]) -> None:
    X = sparse.random_array((30, 8), density=0.5, random_state=0, format="csr")
    model = MDEC(2, ensemble_size=3, random_state=0, **parameters)
    assert not get_tags(model).input_tags.sparse
    with pytest.raises((TypeError, ValueError), match="sparse"):
        model.fit(X)


@pytest.mark.parametrize("kernel", [3, None, [["cosine"]], [3]])
def test_tags_do_not_need_valid_parameters(X: np.ndarray, kernel: object) -> None:
    model = MDEC(2, kernel=kernel)
    assert not get_tags(model).input_tags.sparse
    with pytest.raises(ValueError, match="kernel"):
        model.fit(X)


@pytest.mark.parametrize("n_clusters", [1, 2, 3, "auto"])
def test_three_samples_are_enough(n_clusters: object) -> None:
    X = np.array([[0.0, 1.0], [0.1, 1.1], [9.0, -3.0]])
    model = MDEC(n_clusters, ensemble_size=4, random_state=0).fit(X)
    assert model.labels_.shape == (3,)
    assert model.predict(X[:1]).shape == (1,)
    assert np.isfinite(model.confidence_).all()
