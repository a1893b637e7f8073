"""A Dask cluster gives the labels of one process, also when workers are lost."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from mdec import MDEC, generate_ensemble
from mdec.consensus import graph_cuts
from mdec.ensemble import DistributedEnsemble
from mdec.rows import blocks
from mdec.rows import dask as plumbing

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

SETTINGS: dict[str, Any] = {
    "ensemble_size": 4,
    "base": "landmark",
    "base_n_clusters_range": (2, 10),
    "random_state": 0,
}


def blobs() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    centers = 2.0 * rng.normal(size=(5, 12))
    y = rng.integers(5, size=900)
    return (centers[y] + 0.7 * rng.normal(size=(900, 12))).astype(np.float32), y


X, Y = blobs()


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 256)


def local_cluster(n_workers: int, **settings: Any) -> Any:
    return distributed.LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        dashboard_address="127.0.0.1:0",
        **settings,
    )


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        local_cluster(2, host="127.0.0.1") as cluster,
        distributed.Client(cluster) as connection,
    ):
        yield connection


@pytest.fixture(scope="module")
def expected() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_ROWS", 256)
        return MDEC(5, consensus="bipartite", **SETTINGS).fit(X)


def rows() -> Any:
    return da.from_array(X, chunks=(170, 5))


def test_labels_of_one_process(client: Any, expected: Any) -> None:  # noqa: ARG001
    model = MDEC(5, consensus="bipartite", **SETTINGS).fit(rows())
    assert isinstance(model.labels_, da.Array)
    np.testing.assert_array_equal(model.labels_.compute(), expected.labels_)
    np.testing.assert_array_equal(
        model.ensemble_.labels.compute(), expected.ensemble_.labels
    )
    np.testing.assert_array_equal(model.cluster_weights_, expected.cluster_weights_)
    np.testing.assert_array_equal(model.confidence_.compute(), expected.confidence_)
    np.testing.assert_array_equal(model.predict(X[:40]), expected.predict(X[:40]))
    assert model.ensemble_.members == expected.ensemble_.members
    hierarchical = model.recluster(consensus="hierarchical").compute()
    np.testing.assert_array_equal(
        hierarchical, expected.recluster(consensus="hierarchical")
    )


@pytest.mark.parametrize("consensus", ["spectral", "bipartite"])
def test_consensus_on_the_workers(
    consensus: str,
    client: Any,  # noqa: ARG001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(graph_cuts, "BLOCKED_SAMPLES", 500)
    alone = MDEC(5, consensus=consensus, **SETTINGS).fit(X)
    monkeypatch.setattr(
        DistributedEnsemble, "gather", lambda _: pytest.fail("gathered")
    )
    model = MDEC(5, consensus=consensus, **SETTINGS).fit(rows())
    np.testing.assert_array_equal(model.labels_.compute(), alone.labels_)
    assert adjusted_rand_score(Y, alone.labels_) > 0.95
    np.testing.assert_array_equal(model.confidence_.compute(), alone.confidence_)


def test_rows_that_do_not_fit_are_read_again(
    client: Any,  # noqa: ARG001
    expected: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plumbing, "KEPT_SHARE", 0.0)
    ensemble = generate_ensemble(
        rows(),
        max_features=0.5,
        kernel="scaled_gaussian",
        mu_range=(0.2, 0.8),
        n_neighbors_range=(5, 20),
        **SETTINGS,
    )
    np.testing.assert_array_equal(ensemble.labels.compute(), expected.ensemble_.labels)


def test_joblib_sends_members_to_the_cluster(client: Any, expected: Any) -> None:
    before = client.run(_tasks_done)
    with joblib.parallel_config("dask"):
        ensemble = generate_ensemble(X, **SETTINGS)
    np.testing.assert_array_equal(ensemble.labels, expected.ensemble_.labels)
    assert sum(client.run(_tasks_done).values()) > sum(before.values())


def _tasks_done(dask_worker: Any) -> int:
    return int(dask_worker.state.executed_count)


def test_written_to_parquet(client: Any, expected: Any, tmp_path: Path) -> None:  # noqa: ARG001
    from pyarrow import parquet

    model = MDEC(5, consensus="bipartite", **SETTINGS).fit(rows())
    plumbing.write_labels(tmp_path / "out", model.labels_, model.confidence_)
    files = sorted((tmp_path / "out").glob("*.parquet"))
    assert len(files) == 4
    table = parquet.read_table(tmp_path / "out")
    np.testing.assert_array_equal(table["sample"], np.arange(len(X)))
    np.testing.assert_array_equal(table["cluster"], expected.labels_)
    np.testing.assert_array_equal(table["confidence"], expected.confidence_)


def test_a_shorter_clustering_replaces_a_longer_one(tmp_path: Path) -> None:
    """No part of the longer one is left, and nothing else is touched."""
    array = pytest.importorskip("dask.array")
    from pyarrow import parquet, table

    for n_samples in (40, 15):
        labels = array.from_array(np.arange(n_samples) % 3, chunks=10)
        plumbing.write_labels(tmp_path, labels)
        (tmp_path / "notes.txt").write_text("mine")
    names = ["notes.txt", "part-000000.parquet", "part-000001.parquet"]
    assert sorted(each.name for each in tmp_path.iterdir()) == names
    parts = [parquet.read_table(tmp_path / name) for name in names[1:]]
    assert sum(len(part) for part in parts) == 15
    parquet.write_table(table({"price": [1.0]}), tmp_path / "part-000007.parquet")
    with pytest.raises(ValueError, match="is not part of a clustering"):
        plumbing.write_labels(tmp_path, labels)
    assert sorted(tmp_path.glob("*.parquet"))[-1].name == "part-000007.parquet"


@pytest.mark.slow
def test_four_workers_one_of_them_killed(client: Any, expected: Any) -> None:
    client.cluster.scale(4)
    client.wait_for_workers(4, timeout=600)
    killed = []

    def kill_one(done: int, total: int) -> None:  # noqa: ARG001
        if not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    ensemble = generate_ensemble(
        rows(),
        max_features=0.5,
        kernel="scaled_gaussian",
        mu_range=(0.2, 0.8),
        n_neighbors_range=(5, 20),
        progress=kill_one,
        **SETTINGS,
    )
    assert killed
    np.testing.assert_array_equal(ensemble.labels.compute(), expected.ensemble_.labels)


def test_requests_that_are_refused(client: Any) -> None:  # noqa: ARG001
    for bad, words in (
        (rows().astype(int), "convert it with X.astype"),
        (rows()[rows()[:, 0] > 0], "compute_chunk_sizes"),
        (da.ones((900, 3), chunks=300), "nothing to cluster"),
        (da.full((900, 3), np.nan, chunks=300), "NaN or infinity"),
    ):
        with pytest.raises(ValueError, match=words):
            MDEC(3, **SETTINGS).fit(bad)
    with pytest.raises(ValueError, match="base='graph' needs all rows in memory"):
        generate_ensemble(rows())


def test_the_number_of_clusters_is_chosen_on_drawn_rows(client: Any) -> None:  # noqa: ARG001
    model = MDEC("auto", **SETTINGS).fit(rows())
    chosen = model.k_selection_
    assert model.n_clusters_ == chosen.n_clusters
    assert f"drawn from {rows().shape[0]}" in chosen.reason
    # The rows in memory give the same number, test and candidates.
    here = MDEC("auto", **SETTINGS).fit(rows().compute()).k_selection_
    assert here.n_clusters == chosen.n_clusters
    assert here.null.p_value == chosen.null.p_value
    assert here.candidates == chosen.candidates


def test_a_cluster_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Any:
        raise ValueError("No global client found")

    monkeypatch.setattr(distributed, "get_client", none)
    with pytest.raises(ValueError, match=r"make a dask\.distributed\.Client first"):
        MDEC(3, **SETTINGS).fit(rows())


class Lost:
    """A future whose worker died each time it was tried."""

    def result(self) -> Any:
        from distributed.scheduler import KilledWorker, WorkerState

        worker = WorkerState(
            address="tcp://127.0.0.1:1",
            status=distributed.Status.running,
            pid=1,
            name="w",
            memory_limit=10,
            local_directory="/none",
            nanny="tcp://127.0.0.1:2",
            server_id="s",
            nthreads=1,
            scheduler=None,
        )
        raise KilledWorker("task", worker, 3)


def test_lost_memory_says_what_to_change() -> None:
    worker = plumbing.DaskExecutor(None, 64 * 10**6)
    with pytest.raises(MemoryError, match="give each worker more memory or fewer thre"):
        worker.value(Lost())


def test_a_new_scheduler_goes_on_from_the_checkpoint(
    expected: Any, tmp_path: Path
) -> None:
    def close(done: int, total: int) -> None:  # noqa: ARG001
        if done == 2:
            raise KeyboardInterrupt

    settings = {**SETTINGS, "checkpoint": tmp_path / "kept", "consensus": "bipartite"}
    drawn: dict[str, Any] = {
        "max_features": 0.5,
        "kernel": "scaled_gaussian",
        "mu_range": (0.2, 0.8),
        "n_neighbors_range": (5, 20),
    }
    with (
        local_cluster(1, processes=False) as cluster,
        distributed.Client(cluster),
        pytest.raises(KeyboardInterrupt),
    ):
        generate_ensemble(
            rows(),
            checkpoint=tmp_path / "kept",
            progress=close,
            **drawn,
            **SETTINGS,
        )
    kept = len(list((tmp_path / "kept").glob("member-??????.npz")))
    assert kept >= 2
    with local_cluster(1, processes=False) as cluster, distributed.Client(cluster):
        model = MDEC(5, **settings).fit(rows())
        np.testing.assert_array_equal(model.labels_.compute(), expected.labels_)
        with pytest.raises(ValueError, match="other settings"):
            MDEC(5, **settings).fit(rows() + 1.0)


@pytest.mark.slow
def test_ray_makes_members() -> None:
    ray = pytest.importorskip("ray")
    from ray.util.joblib import register_ray

    expected = generate_ensemble(X, **SETTINGS)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        register_ray()
        with joblib.parallel_config("ray", n_jobs=2):
            made = generate_ensemble(X, **SETTINGS)
    finally:
        ray.shutdown()
    np.testing.assert_array_equal(made.labels, expected.labels)
