"""Parallel map with the same BLAS thread cap for every `n_jobs`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import islice
from threading import Lock, get_ident
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
        self.lock = Lock()
        self.holders: Counter[int] = Counter()
        self.before: list[int] = []

    def take(self, holder: int) -> None:
        with self.lock:
            self.holders[holder] += 1
            if self.holders.total() == 1:
                pools = _controllers()[0].lib_controllers
                self.before = [pool.get_num_threads() for pool in pools]
                _set_blas_threads([1] * len(self.before))

    def give_back(self, holder: int) -> None:
        with self.lock:
            if holder not in self.holders:  # of a thread that a fork left behind
                return
            self.holders -= Counter([holder])
            if not self.holders:
                _set_blas_threads(self.before)

    def forget_other_threads(self) -> None:
        """Lift the cap in a forked process, to which only this thread has come."""
        others = set(self.holders) - {get_ident()}
        self.lock = Lock()
        for holder in others:
            del self.holders[holder]
        if others and not self.holders:
            _set_blas_threads(self.before)


_BLAS_CAP = _SharedCap()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_BLAS_CAP.forget_other_threads)


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Cap BLAS and OpenMP at one thread: sums must not depend on thread counts."""
    holder = get_ident()
    _BLAS_CAP.take(holder)
    try:
        # OpenMP keeps a number for each thread, so this one is nobody else's.
        with _controllers()[1].limit(limits=1):
            yield
    finally:
        _BLAS_CAP.give_back(holder)


def this_process() -> str:
    """Return a name that no other process has, on this machine or another."""
    return f"{os.getpid()}-{_TOKEN}"


def run_capped(func: Callable[..., R], parent: str, *args: Any) -> R:
    """Return ``func(*args)``, from a worker of the parent process or from itself.

    Threads of the parent share its cap, which must not be lifted by the first thread
    to finish; a worker process caps BLAS at one thread for good.
    """
    if this_process() != parent:
        blas, openmp = _controllers()
        _set_blas_threads([1] * len(blas.lib_controllers))
        openmp.limit(limits=1)
    return func(*args)


def map_parallel(
    func: Callable[..., R],
    items: Iterable[T],
    *,
    shared: tuple[Any, ...] = (),
    n_jobs: int | None,
    ordered: bool = True,
) -> Iterator[R]:
    """Yield ``func(item, *shared)`` for each item, in order or as they are finished.

    Threads are preferred, since the heavy loops release the interpreter lock and
    threads share the data; `joblib.parallel_config` chooses any other backend. What is
    shared goes beside the function, where backends look for arrays to send only once.
    """
    backend, _ = get_active_backend(prefer="threads")
    task, parent = delayed(run_capped), this_process()
    tasks: Any = (task(func, parent, item, *shared) for item in items)
    with single_threaded_blas():
        if backend.supports_return_generator:
            kind = "generator" if ordered else "generator_unordered"
            yield from Parallel(n_jobs, prefer="threads", return_as=kind)(tasks)
        # Ray's backend gives all results at the end, so it gets a few at a time.
        while some := list(islice(tasks, 4 * effective_n_jobs(n_jobs))):
            yield from Parallel(n_jobs, prefer="threads")(some)
