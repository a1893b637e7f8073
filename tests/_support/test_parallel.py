"""The cap on BLAS threads: shared by threads, lifted by the last of them."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_info

from mdec._support.parallel import map_parallel, single_threaded_blas


def blas_threads() -> set[int]:
    return {
        pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"
    }


@pytest.fixture
def two_threads():
    import scipy.linalg  # noqa: F401 - brings a BLAS of its own

    # Set for good and not by a context, which caps of other threads would respect.
    pools = ThreadpoolController().select(user_api="blas").lib_controllers
    before = [pool.get_num_threads() for pool in pools]
    for pool in pools:
        pool.set_num_threads(2)
    if blas_threads() != {2}:
        pytest.skip("this BLAS has one thread")
    yield
    for pool, number in zip(pools, before, strict=True):
        pool.set_num_threads(number)


@pytest.mark.usefixtures("two_threads")
def test_two_caps_that_overlap() -> None:
    """The first to end leaves the other's cap, the last leaves what was before."""
    first_in, second_in, first_out = (threading.Event() for _ in range(3))
    seen = {}

    def first() -> None:
        with single_threaded_blas():
            first_in.set()
            second_in.wait(10)
        first_out.set()

    def second() -> None:
        first_in.wait(10)
        with single_threaded_blas():
            second_in.set()
            first_out.wait(10)
            seen["inside"] = blas_threads()

    threads = [threading.Thread(target=each) for each in (first, second)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert seen["inside"] == {1}
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_threads")
def test_an_error_lifts_the_cap() -> None:
    with pytest.raises(ValueError, match="no"), single_threaded_blas():
        raise ValueError("no")
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_threads")
def test_a_thread_that_has_set_a_number_does_not_stand_in_the_way() -> None:
    done = threading.Event()
    ready = threading.Event()

    def other() -> None:
        for pool in ThreadpoolController().select(user_api="blas").lib_controllers:
            pool.set_num_threads(2)
        ready.set()
        done.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    ready.wait(10)
    with single_threaded_blas():
        inside = blas_threads()
    done.set()
    thread.join()
    assert inside == {1}
    assert blas_threads() == {2}


@pytest.mark.usefixtures("worker_processes")
def test_worker_processes_are_capped() -> None:
    import joblib

    def threads_of_a_worker(_: int) -> set[int]:
        np.linalg.norm(np.ones((2, 2)) @ np.ones((2, 2)))
        return {pool["num_threads"] for pool in threadpool_info()}

    # By itself joblib divides the cores among the workers, which may hide the cap.
    with joblib.parallel_config("loky", n_jobs=2, inner_max_num_threads=3):
        seen = list(map_parallel(threads_of_a_worker, range(4), n_jobs=2))
    assert seen == [{1}] * 4


@pytest.mark.usefixtures("two_threads")
def test_threads_are_capped() -> None:
    seen = list(map_parallel(lambda _: blas_threads(), range(4), n_jobs=2))
    assert seen == [{1}] * 4


def double(number: int) -> int:
    return 2 * number


@pytest.mark.parametrize("ordered", [True, False])
def test_every_item_comes_back_once(ordered: bool) -> None:
    found = list(map_parallel(double, range(20), n_jobs=2, ordered=ordered))
    assert sorted(found) == list(range(0, 40, 2))


def test_backends_that_give_no_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    """They get a few items at a time, so that little is lost when a run is stopped."""
    from joblib import parallel

    backend = parallel.get_active_backend(prefer="threads")[0]
    monkeypatch.setattr(type(backend), "supports_return_generator", False)
    begun = []

    def note(number: int) -> int:
        begun.append(number)
        return number

    found = map_parallel(note, range(40), n_jobs=1)
    assert next(found) == 0
    assert len(begun) <= 8
    assert list(found) == list(range(1, 40))


def test_openmp_is_capped_and_let_go_too() -> None:
    pools = ThreadpoolController().select(user_api="openmp")

    def threads() -> set[int]:
        return {pool.get_num_threads() for pool in pools.lib_controllers}

    with pools.limit(limits=3):
        if threads() != {3}:
            pytest.skip("there is no OpenMP, or it has one thread")
        with single_threaded_blas():
            assert threads() == {1}
        assert threads() == {3}


@pytest.mark.parametrize("ordered", [True, False])
def test_work_is_done_in_this_process_unless_asked_otherwise(ordered: bool) -> None:
    processes = map_parallel(lambda _: os.getpid(), range(4), n_jobs=2, ordered=ordered)
    assert set(processes) == {os.getpid()}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("inside", [False, True])
def test_a_forked_process_keeps_no_cap_of_threads_left_behind(inside: bool) -> None:
    capped, done = threading.Event(), threading.Event()

    def hold() -> None:
        with single_threaded_blas():
            capped.set()
            done.wait(10)

    def threads_after_fork() -> int:
        child = os.fork()
        if child == 0:
            os._exit(max(blas_threads()))
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    holder = threading.Thread(target=hold)
    holder.start()
    capped.wait(10)
    try:
        if inside:
            with single_threaded_blas():
                found = threads_after_fork()
        else:
            found = threads_after_fork()
    finally:
        done.set()
        holder.join()
    # What this very thread has capped stays so until it lifts the cap itself.
    assert found == (1 if inside else 2)
    assert blas_threads() == {2}
