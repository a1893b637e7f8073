"""Whole models: scale and offset of the data change no cluster, on any path."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from mdec import MDEC

PATHS = [
    (600, "graph", "cpu"),
    (1500, "graph", "cpu"),
    (1500, "landmark", "cpu"),
    (600, "graph", "torch"),
    (1500, "graph", "torch"),
    (1500, "landmark", "torch"),
]
# About 1e-150 and 1e150, and powers of two so that no digit of the data changes.
SCALES = [2.0**-498, 2.0**498]
OFFSETS = [-1e9]
SHIFTABLE = ["scaled_gaussian", "scaled_exponential"]


def groups(n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n_samples)
    y = rng.integers(4, size=n_samples)
    centers = 4.0 * rng.normal(size=(4, 12))
    X = centers[y] + rng.normal(size=(n_samples, 12))
    # On a grid that stays exact at the largest offset.
    return np.round(2**10 * X) / 2**10, y


def fitted(X: np.ndarray, kernel: str, base: str, device: str) -> MDEC:
    settings = {"kernel": kernel, "base": base, "device": device}
    return MDEC(4, ensemble_size=4, random_state=0, **settings).fit(X)


@pytest.mark.parametrize(("n_samples", "base", "device"), PATHS)
@pytest.mark.parametrize(
    "kernel",
    [
        "scaled_gaussian",
        pytest.param("scaled_exponential", marks=pytest.mark.slow),
        pytest.param("cosine", marks=pytest.mark.slow),
    ],
)
def test_models_at_any_scale_and_offset(
    n_samples: int, base: str, device: str, kernel: str
) -> None:
    if device == "torch" and find_spec("torch") is None:
        pytest.skip("needs PyTorch")
    X, y = groups(n_samples)
    plain = fitted(X, kernel, base, device)
    assert adjusted_rand_score(y, plain.labels_) > 0.95
    expected = plain.predict(X[:50])
    for scale in SCALES:
        model = fitted(scale * X, kernel, base, device)
        np.testing.assert_array_equal(model.labels_, plain.labels_)
        np.testing.assert_array_equal(model.ensemble_.labels, plain.ensemble_.labels)
        np.testing.assert_array_equal(model.predict(scale * X[:50]), expected)
    for offset in OFFSETS if kernel in SHIFTABLE else []:
        model = fitted(X + offset, kernel, base, device)
        assert adjusted_rand_score(model.labels_, plain.labels_) > 0.99
        assert np.mean(model.predict(X[:50] + offset) == model.labels_[:50]) > 0.97


def test_an_outlier_neither_crashes_nor_hides_the_rest() -> None:
    X = np.random.default_rng(0).normal(size=(1025, 8))
    X[:500] += 6.0
    X[-1] = 1e20
    model = MDEC(3, ensemble_size=20, random_state=0).fit(X)
    assert adjusted_rand_score(np.arange(1024) < 500, model.labels_[:1024]) > 0.95
