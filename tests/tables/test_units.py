"""Tables of measurements in different units, from the file to the model."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from mdec import MDEC
from mdec.preparation import UnitScaler
from mdec.tables import Table, read_table
from mdec.tables.steps import UNITS, TableSteps, prepare_table


def as_table(X, names=None):
    names = names or [f"f{j}" for j in range(X.shape[1])]
    reading = {"names_of_columns": True}
    return Table(X, [f"s{i}" for i in range(len(X))], list(names), reading=reading)


def test_different_units_are_scaled_and_the_reason_says_which():
    wine = load_wine()
    ready = prepare_table(as_table(wine.data, wine.feature_names))
    assert ready.words["kind"] == UNITS
    assert "'proline'" in ready.words["reason"]
    assert ready.words["prepared"] == "each feature is standardised"
    expected = StandardScaler().fit_transform(wine.data)
    np.testing.assert_allclose(ready.values, expected, atol=1e-12)
    assert ready.raw is wine.data


def people():
    """Ages, and incomes of which a few are enormous."""
    rng = np.random.default_rng(0)
    return np.c_[rng.normal(45.0, 12.0, 200), rng.lognormal(10.0, 2.0, 200)]


def test_heavy_tails_are_named():
    ready = prepare_table(as_table(people(), ["age", "income"]))
    assert ready.words["prepared"].endswith("where tails are heavy ('income')")
    np.testing.assert_array_equal(ready.values, UnitScaler().fit_transform(people()))


def test_one_unit_is_left_alone_and_the_reason_has_the_number():
    X, _ = load_iris(return_X_y=True)
    ready = prepare_table(as_table(X))
    assert ready.values is X
    assert ready.words["reason"].endswith("The features' spreads differ 4.1-fold only.")


def test_new_samples_are_scaled_as_training_was():
    X = people()
    steps = prepare_table(as_table(X)).steps
    content = json.loads(json.dumps(steps.to_json()))
    again = TableSteps.from_json(content, steps.arrays, n_taken=2)
    expected = UnitScaler().fit(X).transform(2.0 * X[:5])
    np.testing.assert_array_equal(again.apply(2.0 * X[:5]), expected)
    assert again.description.startswith("each feature is standardised")


def test_sparse_logarithms_are_centred_as_filled_ones_are():
    draw = np.random.default_rng(0)
    X = draw.normal(9.0, 1.5, 300) + draw.normal(0.0, 0.5, (40, 300))
    found = prepare_table(replace(as_table(X), values=csr_array(X)))
    expected = prepare_table(as_table(X))
    assert found.words == expected.words
    assert "mean is subtracted" in found.words["prepared"]
    np.testing.assert_array_equal(found.values, expected.values)


def test_genes_of_cells_are_chosen_before_zeros_are_filled_in():
    draw = np.random.default_rng(0)
    counts = random_array(
        (200, 20_000),
        density=0.02,
        format="csr",
        random_state=draw,
        data_sampler=lambda size: draw.poisson(3.0, size) + 1.0,
    )
    names = [f"g{j}" for j in range(20_000)]
    table = Table(counts, [f"s{i}" for i in range(200)], names)
    tracemalloc.start()
    try:
        ready = prepare_table(table)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert ready.words["kind"] == "counts"
    assert ready.values.shape == (200, 2000)
    assert peak < 0.6 * 8 * 200 * 20_000


@pytest.mark.parametrize("how", ["none", "diversified"])
def test_only_auto_looks_at_units(how):
    X, _ = load_wine(return_X_y=True)
    assert prepare_table(as_table(X), how).words["kind"] in (None, "other")
    assert prepare_table(as_table(X), "auto", "log").words["kind"] is None


@pytest.mark.parametrize(
    ("load", "least"), [(load_wine, 0.8), (load_breast_cancer, 0.6)]
)
def test_the_classes_are_found(load, least, tmp_path):
    found = load(as_frame=True)
    found.frame.to_csv(tmp_path / "table.csv", index=False)
    table = read_table(tmp_path / "table.csv", label_column="target")
    ready = prepare_table(table)
    model = MDEC(len(set(found.target)), ensemble_size=30, random_state=0)
    labels = model.fit_predict(ready.values)
    assert adjusted_rand_score(found.target, labels) >= least
