"""New rows and memberships take memory in blocks, and ask for it before."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from mdec import MDEC, Ensemble, confidence, prediction
from mdec._support import memory
from mdec.confidence import item_consensus, sum_profiles
from mdec.prediction import base_clusters

X = make_blobs(120, n_features=8, centers=4, cluster_std=3.0, random_state=0)[0]


def fit(**settings: Any) -> MDEC:
    return MDEC(4, ensemble_size=8, random_state=0, **settings).fit(X[:90])


def peak(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"base": "landmark"},
        {"kernel": "cosine"},
        {"max_samples": 0.7},
        {"consensus": "bipartite", "min_confidence": 0.7},
    ],
)
def test_blocks_change_no_answer(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    whole = fit(**settings)
    expected = whole.place(X[90:]), whole.predict_proba(X[90:])

    def small(n_rows: int, n_clusters: int) -> list[slice]:
        assert n_clusters >= 1
        return [slice(start, start + 7) for start in range(0, n_rows, 7)]

    for module in (confidence, prediction, base_clusters):
        monkeypatch.setattr(module, "row_slices", small)
    blocks = fit(**settings)
    np.testing.assert_allclose(blocks.confidence_, whole.confidence_, atol=1e-12)
    found = blocks.place(X[90:]), blocks.predict_proba(X[90:])
    np.testing.assert_array_equal(found[0].clusters, expected[0].clusters)
    np.testing.assert_allclose(found[0].confidence, expected[0].confidence, atol=1e-12)
    np.testing.assert_allclose(found[1], expected[1], atol=1e-12)


def test_given_pairs_are_asked_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    near = 1.0 / (1.0 + distances)
    for pairs in (distances, near):
        model = MDEC(4, ensemble_size=8, random_state=0, metric="precomputed")
        model.fit(pairs[:90, :90])
        expected = model.predict(pairs[90:, :90])
        with monkeypatch.context() as patch:
            patch.setattr(base_clusters, "row_slices", lambda *_: [slice(0, 9)] * 2)
            np.testing.assert_array_equal(
                model.predict(pairs[90:99, :90]), expected[:9]
            )


def test_memory_is_asked_for_before(monkeypatch: pytest.MonkeyPatch) -> None:
    model = fit()
    base = model.clustering_.placement.base_clusters([X[90:]])
    monkeypatch.setattr(memory, "available_memory", lambda: 500)
    with pytest.raises(MemoryError, match=r"placing 30 new rows in 8 .*fewer rows"):
        model.predict(X[90:])
    with pytest.raises(MemoryError, match="memberships of 30 new rows in 4 clusters"):
        model.clustering_.placement.memberships(base)
    with pytest.raises(MemoryError, match="association of 90 samples with 4 clusters"):
        _ = model.membership_
    labels = model.ensemble_.split(np.arange(90) % 50)
    with pytest.raises(MemoryError, match=r"comparing 50 clusters with \d+ base"):
        sum_profiles(model.ensemble_, labels, model.cluster_weights_, 50)


def test_the_peak_of_placing_does_not_grow_with_rows_times_clusters() -> None:
    model = fit()
    placement = model.clustering_.recluster(80).placement
    rng = np.random.default_rng(0)
    counts = np.diff(placement.offsets)
    base = rng.integers(counts, size=(100_000, len(counts))).astype(np.int32)
    table = 8 * len(base) * len(placement.means)
    assert peak(lambda: placement.place(base)) < 0.9 * table
    assert peak(lambda: placement.memberships(base)) < 2 * table


def test_the_peak_of_confidence_does_not_grow_with_samples_times_clusters() -> None:
    rng = np.random.default_rng(0)
    ensemble = Ensemble.from_labels(rng.integers(20, size=(60_000, 10)))
    labels, weights = rng.integers(200, size=60_000), np.ones(ensemble.n_base_clusters)
    table = 8 * 60_000 * 200
    profiles = sum_profiles(ensemble, ensemble.split(labels), weights, 200)
    assert peak(partial(profiles.map_blocks, confidence.confidence)) < 0.7 * table
    assert peak(lambda: item_consensus(ensemble, labels, weights)) < 4 * table
