"""CSPA, HGPA and MCLA: their graphs, their cuts, and what is said without extras."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mdec import Ensemble
from mdec._support.optional import import_optional
from mdec.baselines import cspa, hgpa, mcla
from mdec.bench.baselines import _partitioning
from mdec.bench.baselines._partitioning import (
    association,
    jaccard_graph,
    rounded_coassociation,
)


def noisy_ensemble(seed: int) -> Ensemble:
    rng = np.random.default_rng(seed)
    truth = np.array([0, 0, 0, 1, 1, 1, 2, 2])[:, None]
    wrong = rng.random((8, 6)) < 0.25
    return Ensemble.from_labels(np.where(wrong, rng.integers(0, 3, wrong.shape), truth))


def test_graph_of_cspa_is_the_scaled_coassociation() -> None:
    ensemble = noisy_ensemble(0)
    H = ensemble.indicator().toarray()
    shared = H @ H.T
    np.fill_diagonal(shared, 0)
    expected = np.round(shared * 1e8 / shared.sum())
    np.testing.assert_array_equal(rounded_coassociation(ensemble).toarray(), expected)


def test_weak_pairs_of_many_samples_round_to_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_partitioning, "WEIGHT_SUM", 40)
    ensemble = noisy_ensemble(0)
    H = ensemble.indicator().toarray()
    shared = H @ H.T
    np.fill_diagonal(shared, 0)
    graph = rounded_coassociation(ensemble)
    assert graph.nnz < np.count_nonzero(shared)
    assert graph.data.min() >= 1


def test_jaccard_index_of_all_pairs() -> None:
    ensemble = noisy_ensemble(2)
    H = ensemble.indicator().toarray() > 0
    expected = np.array([[(a & b).sum() / (a | b).sum() for b in H.T] for a in H.T])
    np.fill_diagonal(expected, 0.0)
    np.testing.assert_allclose(jaccard_graph(ensemble).toarray(), expected)


def test_meta_clusters_are_cut_by_weights_of_one_sum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ensemble, given = noisy_ensemble(2), []

    def cut(graph: Any, weights: Any, n_clusters: int, *_: object) -> np.ndarray:
        given.extend([graph, weights])
        return np.arange(graph.shape[0]) % n_clusters

    monkeypatch.setattr(_partitioning, "_partition_graph", cut)
    mcla(ensemble, 3, random_state=0)
    graph, weights = given
    # The sums of the original code; METIS counts in 32 bits.
    assert graph.sum() == pytest.approx(1e8, rel=1e-4)
    assert weights.sum() == pytest.approx(1e8, rel=1e-4)
    expected = jaccard_graph(ensemble).toarray()
    np.testing.assert_allclose(
        graph.toarray() / graph.sum(), expected / expected.sum(), atol=1e-7
    )


def test_association_is_the_mean_membership() -> None:
    ensemble = noisy_ensemble(3)
    meta = np.arange(ensemble.n_base_clusters) % 3
    H = ensemble.indicator().toarray()
    means = np.stack([H[:, meta == k].mean(axis=1) for k in range(3)], axis=1)
    shares = association(ensemble, meta, 4)
    np.testing.assert_allclose(
        shares[:, :3], means / means.sum(axis=1, keepdims=True), rtol=1e-12
    )
    np.testing.assert_array_equal(shares[:, 3], 0.0)


@pytest.mark.parametrize("method", [cspa, hgpa, mcla])
@pytest.mark.parametrize("partitioner", [None, "spectral"])
def test_equal_groups_come_out(method: object, partitioner: str | None) -> None:
    truth = np.repeat(np.arange(4), 15)
    rng = np.random.default_rng(0)
    wrong = rng.random((60, 20)) < 0.05
    table = np.where(wrong, rng.integers(0, 4, wrong.shape), truth[:, None])
    options = {} if partitioner is None else {"partitioner": partitioner}
    labels = method(Ensemble.from_labels(table), 4, random_state=0, **options)
    np.testing.assert_array_equal(labels, truth)


@pytest.mark.parametrize(
    ("method", "package"),
    [
        (cspa, "pymetis"),
        (mcla, "pymetis"),
        (hgpa, "mtkahypar"),
    ],
)
def test_missing_extra_is_named(
    method: object, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    _partitioning._start_mtkahypar.cache_clear()
    with pytest.raises(
        ImportError, match=rf"'{package}'; install it with pip install '{package}'"
    ) as caught:
        method(noisy_ensemble(0), 2, random_state=0)
    assert str(caught.value).count(".") == 1


def test_absent_module_is_named() -> None:
    with pytest.raises(ImportError, match="drawing needs the package 'no_such_module'"):
        import_optional("no_such_module", needed_for="drawing", install="mdec[report]")


@pytest.mark.parametrize("method", [cspa, hgpa, mcla])
def test_unknown_partitioner_is_named(method: object) -> None:
    with pytest.raises(ValueError, match=r"parameter of .* must be a str among"):
        method(noisy_ensemble(0), 2, partitioner="kmetis")


def test_the_settings_are_the_deterministic_preset_but_for_the_first_partitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mtkahypar = pytest.importorskip("mtkahypar")
    settings = Path(_partitioning.__file__).with_name("mtkahypar.ini").read_text()
    assert "\ni-runs=8\n" in settings
    (tmp_path / "mtkahypar.ini").write_text(
        settings.replace("\ni-runs=8\n", "\ni-runs=20\n")
    )
    rng = np.random.default_rng(0)
    ensembles = [
        Ensemble.from_labels(rng.integers(0, 6, size=(60, 15))) for _ in range(5)
    ]
    monkeypatch.setattr(_partitioning, "files", lambda _: tmp_path)
    found = [hgpa(ensemble, 4, random_state=0) for ensemble in ensembles]
    _, library = _partitioning._start_mtkahypar()
    preset = mtkahypar.PresetType.DETERMINISTIC
    monkeypatch.setattr(
        _partitioning,
        "_start_mtkahypar",
        lambda: (mtkahypar, Presets(library, preset)),
    )
    wanted = [hgpa(ensemble, 4, random_state=0) for ensemble in ensembles]
    np.testing.assert_array_equal(found, wanted)


class Presets:
    """Mt-KaHyPar with a preset of its own in place of a file."""

    def __init__(self, library, preset) -> None:
        self.create_hypergraph = library.create_hypergraph
        self.context_from_file = lambda _: library.context_from_preset(preset)
