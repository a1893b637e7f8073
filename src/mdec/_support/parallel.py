"""Ordered parallel map with the same BLAS thread cap for every `n_jobs`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import islice
from threading import Lock
from typing import Any, TypeVar
from uuid import uuid4

from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

_TOKEN = uuid4().hex

T = TypeVar("T")
R = TypeVar("R")


@cache
def _controllers() -> tuple[ThreadpoolController, ThreadpoolController]:
    # Looking the libraries up takes milliseconds, setting them microseconds. The
    # OpenMP runtime of scikit-learn loads here, so that it is among those found.
    import sklearn.utils._openmp_helpers  # noqa: F401

    all_pools = ThreadpoolController()
    return all_pools.select(user_api="blas"), all_pools.select(user_api="openmp")


def _set_blas_threads(numbers: Iterable[int]) -> None:
    for pool, number in zip(_controllers()[0].lib_controllers, numbers, strict=True):
        # From version 3.7 of threadpoolctl on, the thread that was first to set a
        # number is the only one whose later calls have an effect.
        release = getattr(pool, "clear_controlling_thread", lambda **_: None)
        release(force=True)
        pool.set_num_threads(number)
        release(force=True)


class _SharedCap:
    """One cap on BLAS for all threads that want it, lifted by the last of them."""

    def __init__(self) -> None:
        self.lock, self.holders = Lock(), 0
        self.before: list[int] = []

    def take(self) -> None:
        with self.lock:
            if self.holders == 0:
                pools = _controllers()[0].lib_controllers
                self.before = [pool.get_num_threads() for pool in pools]
                _set_blas_threads([1] * len(pools))
            self.holders += 1

    def give_back(self) -> None:
        with self.lock:
            self.holders -= 1
            if self.holders == 0:
                _set_blas_threads(self.before)


_BLAS_CAP = _SharedCap()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Cap BLAS and OpenMP at one thread: sums must not depend on thread counts."""
    _BLAS_CAP.take()
    try:
        # OpenMP keeps a number for each thread, so this one is nobody else's.
        with _controllers()[1].limit(limits=1):
            yield
    finally:
        _BLAS_CAP.give_back()


def this_process() -> str:
    """Return a name that no other process has, on this machine or another."""
    return f"{os.getpid()}-{_TOKEN}"


def cap_threads_of_worker(parent: str) -> None:
    """Cap BLAS at one thread in a process other than the parent, for good.

    Threads of the parent share its cap, which must not be lifted by the first thread
    to finish; a worker process sets its own and keeps it.
    """
    if this_process() != parent:
        blas, openmp = _controllers()
        _set_blas_threads([1] * len(blas.lib_controllers))
        openmp.limit(limits=1)


def _run(func: Callable[..., R], item: T, parent: str, *shared: Any) -> R:
    cap_threads_of_worker(parent)
    return func(item, *shared)


def map_ordered(
    func: Callable[..., R],
    items: Iterable[T],
    *,
    shared: tuple[Any, ...] = (),
    n_jobs: int | None,
) -> Iterator[R]:
    """Yield ``func(item, *shared)`` for each item, in order, as results come in.

    Threads are preferred, since the heavy loops release the interpreter lock and
    threads share the data; `joblib.parallel_config` chooses any other backend. What is
    shared goes beside the function, where backends look for arrays to send only once.
    """
    return _mapped(func, items, shared, n_jobs, "generator")


def map_as_completed(
    func: Callable[..., R],
    items: Iterable[T],
    *,
    shared: tuple[Any, ...] = (),
    n_jobs: int | None,
) -> Iterator[R]:
    """Yield what `map_ordered` does, each as soon as it is finished."""
    return _mapped(func, items, shared, n_jobs, "generator_unordered")


def _mapped(
    func: Callable[..., R],
    items: Iterable[T],
    shared: tuple[Any, ...],
    n_jobs: int | None,
    kind: str,
) -> Iterator[R]:
    backend, _ = get_active_backend(prefer="threads")
    tasks: Any = (delayed(_run)(func, item, this_process(), *shared) for item in items)
    with single_threaded_blas():
        if backend.supports_return_generator:
            pool = Parallel(n_jobs=n_jobs, prefer="threads", return_as=kind)
            yield from pool(tasks)
            return
        # Ray's backend gives all results at the end, so it gets a few at a time.
        pool = Parallel(n_jobs=n_jobs, prefer="threads")
        while some := list(islice(tasks, 4 * effective_n_jobs(n_jobs))):
            yield from pool(some)
