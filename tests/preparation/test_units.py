"""Measurements in different units: found, left alone where they are none, scaled."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import datasets
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from mdec import MDEC
from mdec.preparation import UnitScaler, find_mixed_units
from mdec.preparation.units import describe_dominance, learn_scales, scale_features

N = 200


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def people() -> np.ndarray:
    """Ages, incomes, sizes, and whether somebody smokes."""
    draw = rng()
    columns = [
        *(draw.normal(45.0, 12.0, N).round(), draw.lognormal(10.5, 0.6, N).round()),
        *(draw.normal(170.0, 10.0, N).round(1), draw.random(N) < 0.2),
    ]
    return np.stack(columns, axis=1).astype(float)


def counts(n_features: int = 30) -> np.ndarray:
    draw = rng()
    means = np.exp(draw.normal(2.0, 1.8, n_features))
    return draw.poisson(draw.gamma(2.0, means / 2.0, (N, n_features))).astype(float)


def intensities(n_features: int = 60) -> np.ndarray:
    draw = rng()
    levels = draw.normal(5.0, 1.5, n_features)
    return np.exp(levels + draw.normal(0.0, 0.8, (N, n_features))) + 10.0


def shares() -> np.ndarray:
    return rng().dirichlet([50.0, 30.0, 1.0, 0.5, 0.1], N)


def mixture(n_features: int = 32) -> np.ndarray:
    draw = rng()
    centers = 3.0 * draw.normal(size=(6, n_features))
    return centers[draw.integers(6, size=N)] + draw.normal(size=(N, n_features))


MIXED = {
    "wine": datasets.load_wine().data,
    "breast cancer": datasets.load_breast_cancer().data,
    "diabetes as measured": datasets.load_diabetes(scaled=False).data,
    "fitness": np.hstack(datasets.load_linnerud(return_X_y=True)),
    "people": people(),
    "two features": people()[:, :2],
    "pressure": np.c_[rng().normal(1e5, 5.0, N), rng().normal(20.0, 0.1, N)],
    "places": np.c_[rng().normal(-118.0, 0.1, N), rng().normal(34.0, 0.1, N), people()],
}
ONE_SCALE = {
    "iris": datasets.load_iris().data,
    "digits": datasets.load_digits().data,
    "diabetes, scaled": datasets.load_diabetes().data,
    "wine, standardised": StandardScaler().fit_transform(datasets.load_wine().data),
    "components of wine": PCA().fit_transform(datasets.load_wine().data),
    "components of wine, shuffled": PCA().fit_transform(datasets.load_wine().data)[
        :, rng().permutation(13)
    ],
    "mixture": mixture(),
    "counts": counts(),
    "few counts": counts(6),
    "intensities": intensities(),
    "abundances": intensities() * 1e6 / intensities().sum(axis=1, keepdims=True),
    "logarithms": np.log2(intensities()),
    "logarithms with a quiet gene": np.log2(
        np.c_[intensities(12), intensities(1) ** 0.04 * 30.0]
    ),
    "shares": shares(),
    "percentages": 100.0 * shares(),
    "one-hot": np.eye(6)[rng().choice(6, N, p=[0.5, 0.3, 0.1, 0.05, 0.04, 0.01])],
    "codes": rng().integers(1, 5, (N, 9)).astype(float),
    "constant": np.full((N, 3), 7.0),
    "one varying": np.c_[np.full(N, 7.0), rng().normal(size=N) * 100.0],
    "many features": np.tile(people(), 30),
}


@pytest.mark.parametrize("name", MIXED)
def test_units_that_differ_are_found(name: str) -> None:
    mixed, reason = find_mixed_units(MIXED[name])
    assert mixed, reason
    assert "-fold" in reason


@pytest.mark.parametrize("name", ONE_SCALE)
def test_values_on_one_scale_are_left_alone(name: str) -> None:
    X = ONE_SCALE[name]
    mixed, reason = find_mixed_units(X)
    assert not mixed, reason
    scaler = UnitScaler().fit(X)
    assert scaler.reason_ == reason
    np.testing.assert_array_equal(scaler.transform(X), X)


@pytest.mark.parametrize("n_features", [5, 8, 20, 90])
@pytest.mark.parametrize("make", [counts, intensities])
def test_any_part_of_an_expression_table_is_left_alone(make, n_features: int) -> None:
    X = make(200)
    for _ in range(20):
        part = rng().choice(X.shape[1], n_features, replace=False)
        assert not find_mixed_units(X[:, part])[0]


def test_the_reason_names_the_features() -> None:
    X = pd.DataFrame(people(), columns=["age", "income", "height", "smoker"])
    scaler = UnitScaler().fit(X)
    assert scaler.mixed_
    assert "'smoker'" in scaler.reason_
    assert "'income'" in scaler.reason_
    assert scaler.get_feature_names_out().tolist() == X.columns.tolist()


def test_the_reason_says_how_spreads_grow_with_means() -> None:
    X = intensities()
    ratio = np.quantile(X.std(axis=0) / X.mean(axis=0), 0.1)
    reason = find_mixed_units(X)[1]
    assert f"standard deviation over mean: {ratio:.2f} or more" in reason


def test_ordinary_features_are_standardised() -> None:
    X = datasets.load_wine().data
    expected = StandardScaler().fit_transform(X)
    np.testing.assert_allclose(UnitScaler().fit_transform(X), expected, atol=1e-12)


def test_heavy_tails_do_not_squeeze_the_rest() -> None:
    draw = rng()
    X = draw.normal(size=(N, 2)) * [1.0, 1000.0]
    X[:4, 1] = [2e5, -3e5, 5e5, 1e6]
    scaled = UnitScaler(always=True).fit_transform(X)
    rest = scaled[4:, 1]
    assert 0.7 < rest.std() < 1.1
    assert np.all(np.diff(scaled[np.argsort(X[:, 1]), 1]) > 0.0)
    assert np.abs(scaled).max() < 8.0


def test_two_values_stand_one_apart_however_rare_they_are() -> None:
    X = np.zeros((1000, 3))
    X[:2, 0], X[::2, 1], X[:, 2] = 1.0, 1.0, 5.0
    scaled = scale_features(X, learn_scales(X))
    np.testing.assert_allclose(np.ptp(scaled[:, :2], axis=0), 1.0)
    assert not scaled[:, 2].any()


def test_sizes_of_numbers_do_not_matter() -> None:
    X = people() * [1e-200, 1e300, 1.0, 1.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scaled = UnitScaler(always=True).fit_transform(X)
        assert find_mixed_units(X)[0]
    expected = UnitScaler(always=True).fit_transform(people())
    np.testing.assert_allclose(scaled, expected, rtol=1e-9, atol=1e-9)


def test_scikit_learn_contract() -> None:
    check_estimator(UnitScaler(always=True), on_skip=None)
    check_estimator(UnitScaler(), on_skip=None)
    X = people().astype(np.float32)
    assert UnitScaler().fit_transform(X).dtype == np.float32
    with pytest.raises(TypeError, match="Sparse data was passed"):
        UnitScaler().fit(sparse.csr_array(people()))


def test_the_estimator_warns_once_that_a_few_features_decide() -> None:
    X = pd.DataFrame(datasets.load_wine(as_frame=True).data)
    model = MDEC(3, ensemble_size=3, random_state=0)
    with pytest.warns(UserWarning, match=r"'proline' above all.*UnitScaler") as caught:
        model.fit(X)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MDEC(3, ensemble_size=3, random_state=0).fit(UnitScaler().fit_transform(X))


@pytest.mark.parametrize("name", ONE_SCALE)
def test_no_warning_on_one_scale(name: str) -> None:
    assert describe_dominance(ONE_SCALE[name]) == ""


def test_no_set_of_the_paper_is_taken_for_measurements(shared) -> None:
    for path in (shared / "datasets/prepared").glob("*.npz"):
        with np.load(path) as arrays:
            X = arrays["X"].astype(np.float32)
        assert describe_dominance(X) == ""
        assert not find_mixed_units(X)[0]
        # A panel of a few of its features is no other kind of table.
        for draw in range(5):
            some = np.random.default_rng(draw).choice(X.shape[1], 40, replace=False)
            assert describe_dominance(X[:, some]) == "", path.name


def test_one_count_among_measurements_makes_no_counts():
    draw = np.random.default_rng(0)
    X = np.geomspace(1.0, 1e4, 12) * draw.normal(1.0, 0.1, (80, 12))
    X[7] = 0.0  # a sample that was not measured
    X[:, 5] = np.rint(X[:, 5])
    assert find_mixed_units(X)[0]
    assert "are counts" in find_mixed_units(np.rint(20.0 * X))[1]
