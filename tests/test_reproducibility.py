"""The same seed gives the same labels, whatever runs beside or beneath."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from mdec import MDEC, generate_ensemble
from mdec.base.graphs import similarity_graph
from mdec.base.kernels import KERNELS
from mdec.consensus import CONSENSUS
from mdec.numerics import neighbors

DATA = Path(__file__).parent / "data"


def small_data() -> np.ndarray:
    return np.random.default_rng(8).normal(size=(150, 16))


def large_data() -> np.ndarray:
    """More samples than the dense path takes."""
    rng = np.random.default_rng(9)
    centers = 2.0 * rng.normal(size=(6, 14))
    return centers[rng.integers(6, size=1300)] + rng.normal(size=(1300, 14))


def all_labels(X: np.ndarray, **settings: object) -> np.ndarray:
    """Return the base clusterings and the three consensus partitions."""
    model = MDEC(n_clusters=6, ensemble_size=6, random_state=5, **settings).fit(X)
    consensus = [model.recluster(consensus=name) for name in CONSENSUS]
    return np.column_stack([model.ensemble_.labels, *consensus])


@pytest.fixture(scope="module", params=[small_data, large_data], ids=["small", "large"])
def case(request: pytest.FixtureRequest) -> tuple[np.ndarray, np.ndarray]:
    X = request.param()
    return X, all_labels(X)


def test_two_fits(case: tuple[np.ndarray, np.ndarray]) -> None:
    X, expected = case
    np.testing.assert_array_equal(all_labels(X), expected)


@pytest.mark.parametrize("n_jobs", [1, 2, -1])
def test_number_of_jobs(case: tuple[np.ndarray, np.ndarray], n_jobs: int) -> None:
    X, expected = case
    np.testing.assert_array_equal(all_labels(X, n_jobs=n_jobs), expected)


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_backends(
    case: tuple[np.ndarray, np.ndarray], backend: str, request: pytest.FixtureRequest
) -> None:
    if backend == "loky":
        request.getfixturevalue("worker_processes")
    X, expected = case
    with parallel_config(backend=backend, n_jobs=2):
        np.testing.assert_array_equal(all_labels(X), expected)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_blas_threads(case: tuple[np.ndarray, np.ndarray], n_threads: int) -> None:
    X, expected = case
    with threadpool_limits(n_threads):
        np.testing.assert_array_equal(all_labels(X), expected)


def test_thread_limits_are_given_back() -> None:
    from threadpoolctl import threadpool_info

    with threadpool_limits(2):
        before = [library["num_threads"] for library in threadpool_info()]
        all_labels(small_data())
        after = [library["num_threads"] for library in threadpool_info()]
    assert after == before


@pytest.mark.slow
def test_another_process_with_more_threads(
    case: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    X, expected = case
    np.save(tmp_path / "X.npy", X)
    code = (
        "import sys, numpy as np; from mdec import MDEC; "
        "from mdec.consensus import CONSENSUS; "
        f"X = np.load({str(tmp_path / 'X.npy')!r}); "
        "m = MDEC(n_clusters=6, ensemble_size=6, random_state=5).fit(X); "
        "c = [m.recluster(consensus=name) for name in CONSENSUS]; "
        f"np.save({str(tmp_path / 'labels.npy')!r}, "
        "np.column_stack([m.ensemble_.labels, *c]))"
    )
    environment = os.environ | {
        "OMP_NUM_THREADS": "2",
        "OPENBLAS_NUM_THREADS": "2",
        "MKL_NUM_THREADS": "2",
        "PYTHONHASHSEED": "2",
    }
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), expected)


@pytest.mark.parametrize("tile", [100, 333, 2048])
def test_block_sizes(
    case: tuple[np.ndarray, np.ndarray], tile: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, expected = case
    monkeypatch.setattr(neighbors, "TILE", tile)
    np.testing.assert_array_equal(all_labels(X), expected)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("ties", ["integers", "copies"])
def test_block_sizes_among_ties(
    ties: str, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which of equal neighbours is kept must not hang on the blocks."""
    rng = np.random.default_rng(1)
    X = rng.integers(0, 3, (1200, 5)).astype(float)
    if ties == "copies":
        X = rng.normal(size=(1200, 5))
        X[rng.permutation(1200)[:400]] = X[0]
    expected = similarity_graph(X, kernel, 6, 0.5).toarray()
    for tile in (100, 333, 2048):
        monkeypatch.setattr(neighbors, "TILE", tile)
        found = similarity_graph(X, kernel, 6, 0.5).toarray()
        np.testing.assert_array_equal(found, expected)


def test_global_generator_is_left_alone() -> None:
    before = np.random.get_state()  # noqa: NPY002
    first = all_labels(small_data())
    after = np.random.get_state()  # noqa: NPY002
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)
    # Another global state must not change the labels; it is put back for other tests.
    other_state = np.random.RandomState(456).get_state()
    np.random.set_state(other_state)  # noqa: NPY002
    try:
        np.testing.assert_array_equal(all_labels(small_data()), first)
    finally:
        np.random.set_state(before)  # noqa: NPY002


def test_no_seed_leaves_the_global_generator_alone() -> None:
    before = np.random.get_state()  # noqa: NPY002
    MDEC(n_clusters=3, ensemble_size=2).fit(small_data())
    after = np.random.get_state()  # noqa: NPY002
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)


def test_members_do_not_depend_on_the_ensemble_size() -> None:
    X = large_data()
    many = generate_ensemble(X, ensemble_size=6, random_state=1, n_jobs=2)
    few = generate_ensemble(X, ensemble_size=3, random_state=1)
    np.testing.assert_array_equal(many.labels[:, :3], few.labels)


def test_seeds_differ() -> None:
    X = small_data()
    first = generate_ensemble(X, ensemble_size=3, random_state=0)
    second = generate_ensemble(X, ensemble_size=3, random_state=1)
    assert not np.array_equal(first.labels, second.labels)


def test_digits_labels_stay() -> None:
    """Later versions may round otherwise, but find the clusters of the stored ones."""
    path = DATA / "write_digits_labels.py"
    spec = importlib.util.spec_from_file_location("write_digits_labels", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    labels = module.digits_labels()
    with np.load(DATA / "digits_labels.npz") as stored:
        assert set(CONSENSUS) <= set(stored)
        for name in CONSENSUS:
            assert len(np.unique(stored[name])) == 10
            assert adjusted_rand_score(stored[name], labels[name]) >= 0.98
