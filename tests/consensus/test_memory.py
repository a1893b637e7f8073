"""What consensus functions ask for is what they take, and a little more."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from mdec import Ensemble
from mdec.consensus import (
    bipartite,
    dendrogram,
    graph_cuts,
    hierarchical,
    spectral,
)
from mdec.rows import blocks

CASES = [(600, 40, 5), (2500, 60, 12)]
CASES += [
    pytest.param(case, marks=pytest.mark.slow)
    for case in [(2500, 20, 60), (4500, 40, 8)]
]


def noisy(n_samples: int, n_members: int) -> Ensemble:
    rng = np.random.default_rng(n_samples)
    y = rng.integers(8, size=n_samples)
    counts = rng.integers(10, 60, size=n_members)
    noise = rng.random((n_samples, n_members)) < 0.3
    labels = (5 * y[:, None] + rng.integers(3, size=noise.shape)) % counts
    labels = np.where(noise, rng.integers(counts, size=noise.shape), labels)
    return Ensemble.from_labels(labels)


def taken(work: Callable[[], object]) -> int:
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("name", ["hierarchical", "spectral", "bipartite"])
@pytest.mark.filterwarnings("ignore:.*clusters are returned instead")
def test_estimates_hold(name: str, case: tuple[int, int, int]) -> None:
    n_samples, n_members, n_clusters = case
    ensemble = noisy(n_samples, n_members)
    weights = np.ones(ensemble.n_base_clusters)
    n_distinct = len(ensemble.microclusters[0])
    cut = partial(graph_cuts.embedding_memory, ensemble, n_clusters)
    consensus, estimate = {
        "hierarchical": (
            hierarchical,
            dendrogram.linkage_memory(ensemble.labels.size, n_distinct),
        ),
        "spectral": (spectral, cut(of_samples=True)),
        "bipartite": (bipartite, cut(of_samples=False)),
    }[name]

    def work() -> None:
        consensus(ensemble, n_clusters, weights, random_state=0)

    # What is compiled on first use is not counted.
    work()
    peak = taken(work)
    assert peak < estimate < 1.5 * peak + 2**20


@pytest.mark.filterwarnings("ignore:.*clusters are returned instead")
@pytest.mark.parametrize("height", [65_536, pytest.param(32, marks=pytest.mark.slow)])
def test_estimates_of_blocks_hold(monkeypatch: pytest.MonkeyPatch, height: int) -> None:
    monkeypatch.setattr(blocks, "BLOCK_ROWS", height)
    ensemble = noisy(2500, 60)
    weights = np.ones(ensemble.n_base_clusters)
    estimate = graph_cuts.small_side_memory(ensemble)
    for of_samples in (False, True):
        cut = partial(graph_cuts.cut_blocks, of_samples=of_samples)
        cut(noisy(300, 5), 3, np.ones(noisy(300, 5).n_base_clusters), 0)
        peak = taken(lambda cut=cut: cut(ensemble, 6, weights, 0))
        assert peak < estimate < 1.5 * peak + 2**20
    monkeypatch.setattr(graph_cuts, "REGIONS", 100)
    rng = np.random.default_rng(0)
    peak = taken(lambda: graph_cuts.micro_regions(ensemble, weights, rng))
    assert peak < estimate < 1.5 * peak + 2**20


@pytest.mark.parametrize("consensus", [hierarchical, spectral, bipartite])
def test_too_little_memory_is_said_before_it_is_taken(
    consensus: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mdec._support.memory.available_memory", lambda: 10**5)
    ensemble = noisy(600, 40)
    weights = np.ones(ensemble.n_base_clusters)
    with pytest.raises(MemoryError, match=r"of 600 samples needs .* GB"):
        consensus(ensemble, 3, weights, random_state=0)


def test_the_linkage_asks_for_memory_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mdec._support.memory.available_memory", lambda: 10**5)
    ensemble = noisy(600, 40)
    weights, rng = np.ones(ensemble.n_base_clusters), np.random.default_rng(0)
    with pytest.raises(MemoryError, match=r"of 600 samples needs .* GB"):
        graph_cuts.micro_regions(ensemble, weights, rng)


@pytest.mark.parametrize("n_samples", [600, 1500])
def test_estimates_hold_where_members_leave_samples_out(n_samples: int) -> None:
    labels = noisy(n_samples, 40).labels.copy()
    labels[np.random.default_rng(0).random(labels.shape) < 0.3] = -1
    ensemble = Ensemble.from_labels(labels)
    weights = np.ones(ensemble.n_base_clusters)
    hierarchical(ensemble, 3, weights)
    estimate = dendrogram.linkage_memory(labels.size, n_samples)
    peak = taken(lambda: hierarchical(ensemble, 3, weights))
    assert peak < estimate < 1.5 * peak + 2**20


@pytest.mark.parametrize("present", [1.0, 0.7])
def test_free_memory_decides_nothing(
    present: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many samples that tie, in float32: there is one way to link them, or none."""
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=(700, 8))
    labels[rng.random(labels.shape) > present] = -1
    ensemble = Ensemble.from_labels(labels)
    weights = np.ones(ensemble.n_base_clusters)
    monkeypatch.setattr(dendrogram, "DOUBLE_PRECISION_SAMPLES", 10)
    expected = hierarchical(ensemble, 5, weights)
    n_distinct = len(ensemble.microclusters[0])
    enough = dendrogram.linkage_memory(ensemble.labels.size, n_distinct)
    for free in (enough, 2 * enough, 100 * enough):
        monkeypatch.setattr(
            "mdec._support.memory.available_memory", lambda free=free: free
        )
        np.testing.assert_array_equal(hierarchical(ensemble, 5, weights), expected)
    monkeypatch.setattr("mdec._support.memory.available_memory", lambda: enough - 1)
    with pytest.raises(MemoryError, match=r"of 700 samples needs .* GB"):
        hierarchical(ensemble, 5, weights)
