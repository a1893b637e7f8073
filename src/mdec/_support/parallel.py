"""Ordered parallel map with the same BLAS thread cap for every `n_jobs`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar
from uuid import uuid4

from joblib import Parallel, delayed
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

_TOKEN = uuid4().hex

T = TypeVar("T")
R = TypeVar("R")


@cache
def _controller() -> ThreadpoolController:
    # Looking the libraries up takes milliseconds, setting them microseconds. The
    # OpenMP runtime of scikit-learn loads here, so that it is among those found.
    import sklearn.utils._openmp_helpers  # noqa: F401

    return ThreadpoolController()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Cap BLAS and OpenMP at one thread: sums must not depend on thread counts."""
    with _controller().limit(limits=1):
        yield


def this_process() -> str:
    """Return a name that no other process has, on this machine or another."""
    return f"{os.getpid()}-{_TOKEN}"


def cap_threads_of_worker(parent: str) -> None:
    """Cap BLAS at one thread in a process other than the parent, for good.

    Threads of the parent share its cap, which must not be lifted by the first thread
    to finish; a worker process sets its own and keeps it.
    """
    if this_process() != parent:
        _controller().limit(limits=1)


def _run(func: Callable[..., R], item: T, parent: str, *shared: Any) -> R:
    cap_threads_of_worker(parent)
    return func(item, *shared)


def map_ordered(
    func: Callable[..., R],
    items: Iterable[T],
    *,
    shared: tuple[Any, ...] = (),
    n_jobs: int | None,
    verbose: int = 0,
) -> Iterator[R]:
    """Yield ``func(item, *shared)`` for each item, in order, as results come in.

    Threads are preferred, since the heavy loops release the interpreter lock and
    threads share the data; `joblib.parallel_config` chooses any other backend. What is
    shared goes beside the function, where backends look for arrays to send only once.
    """
    backend, _ = get_active_backend(prefer="threads")
    # Ray's backend gives all results at the end.
    streams = backend.supports_return_generator
    pool = Parallel(
        n_jobs=n_jobs,
        prefer="threads",
        return_as="generator" if streams else "list",
        verbose=verbose,
    )
    tasks: Any = (delayed(_run)(func, item, this_process(), *shared) for item in items)
    with single_threaded_blas():
        yield from pool(tasks)
