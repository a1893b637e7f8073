"""The same table, written in many ways, is read to the same numbers and names."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from mdec.tables.reading import read_table

_FILE = Path(__file__).with_name("writers.py")
_SPEC = importlib.util.spec_from_file_location("table_writers", _FILE)
writers = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(writers)

SHARED = (
    "DS-03_Chowdary-2006",
    "DS-05_Golub-1999-v1",
    "DS-10_West-2001",
    "DS-13_Alizadeh-2000-v2",
    "DS-22_BinaryAlphadigits",
    "DS-24_Semeion",
    "DS-26_MultipleFeatures",
    "DS-20_COIL20",
)


def check(folder, name, table):
    path, said = writers.WRITERS[name](folder, table)
    X, y, samples, features = table
    found = read_table(path, **said)
    np.testing.assert_array_equal(found.values, X)
    if name not in writers.NO_NAMES:
        assert found.sample_names == samples
    if name not in writers.NO_FEATURES:
        assert found.feature_names == features
    if name in writers.NO_CLASSES:
        assert found.labels is None
    else:
        assert found.labels.tolist() == list(y)


def generated():
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(24, 7)) * 10.0 ** rng.integers(-3, 4, size=7), 9)
    X[rng.random(X.shape) < 0.2] = 0.0
    samples = [f"GSM{i:04d} x" if i == 5 else f"GSM{i:04d}" for i in range(24)]
    return X, ["AML", "ALL-B", "ALL T"] * 8, samples, [f"g{i}" for i in range(7)]


@pytest.mark.parametrize("name", writers.WRITERS)
def test_generated(tmp_path, name):
    X, y, samples, features = generated()
    if name == "spaces":  # which cannot hold spaces without quotes
        y = [each.replace(" ", "_") for each in y]
        samples = [each.replace(" ", "_") for each in samples]
    check(tmp_path, name, (X, y, samples, features))


@pytest.mark.parametrize("place", range(len(writers.WRITERS)))
def test_shared(shared, tmp_path, place):
    name = list(writers.WRITERS)[place]
    path = shared / "datasets" / "prepared" / f"{SHARED[place % len(SHARED)]}.npz"
    with np.load(path) as archive:
        rows = np.unique(np.linspace(0, len(archive["X"]) - 1, 60).astype(int))
        X = archive["X"].astype(np.float64)[rows, :400]
        y = [f"class{label}" for label in archive["y"].ravel()[rows].tolist()]
    samples = [f"s{i}" for i in rows.tolist()]
    features = [f"{1000 + 7 * i}_at" for i in range(X.shape[1])]
    check(tmp_path, name, (X, y, samples, features))


@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
@pytest.mark.parametrize("layout", ["coordinate", "array"])
def test_matrix_market_as_scipy_reads_it(tmp_path, layout, symmetry):
    from scipy import sparse
    from scipy.io import mmread, mmwrite

    half = np.tril(np.random.default_rng(0).normal(size=(9, 9)).round(3))
    other = np.tril(half, -1)
    whole = {
        "general": half + 3.0 * other.T,
        "symmetric": half + other.T,
        "skew-symmetric": other - other.T,
    }[symmetry]
    written = whole if layout == "array" else sparse.coo_array(whole)
    kind = "general" if layout == "array" else symmetry
    mmwrite(tmp_path / "a.mtx", written, symmetry=kind, comment="a\nb")
    expected = mmread(tmp_path / "a.mtx")
    expected = expected if layout == "array" else expected.toarray()
    found = read_table(tmp_path / "a.mtx").values
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(found, whole)
