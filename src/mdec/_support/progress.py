"""How far a long run is, and how long it will still take."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

Progress = Callable[[int, int], None]


def _ignore(done: int, total: int) -> None:
    """Do nothing."""


class ProgressHooks(NamedTuple):
    """Hooks of the two long steps of a fit, as `progress_to` takes them."""

    members: Progress = _ignore
    null: Progress = _ignore


_HOOKS = ContextVar("progress", default=ProgressHooks())  # noqa: B039


@contextmanager
def progress_to(
    *, members: Progress = _ignore, null: Progress = _ignore
) -> Iterator[None]:
    """Pass the progress of every fit inside the block on to hooks.

    Parameters
    ----------
    members : callable
        Called as ``members(done, total)`` after each base clustering.
    null : callable
        Called as ``null(done, total)`` after each draw of the null reference.

    Yields
    ------
    None
        While the hooks are in place.

    Examples
    --------
    >>> with progress_to(null=lambda done, total: print(done, "of", total)):
    ...     progress_hooks().null(1, 10)
    1 of 10
    """
    token = _HOOKS.set(ProgressHooks(members, null))
    try:
        yield
    finally:
        _HOOKS.reset(token)


def progress_hooks() -> ProgressHooks:
    """Return the hooks that `progress_to` has put in place."""
    return _HOOKS.get()


def duration(seconds: float) -> str:
    """Return a time in words.

    Examples
    --------
    >>> duration(42.4), duration(192), duration(7300)
    ('42 s', '3 min 12 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def report_progress(progress: Progress | None, total: int, verbose: int) -> Progress:
    """Return a hook that passes progress on and, on request, writes it to stderr.

    Parameters
    ----------
    progress : callable or None
        Called as ``progress(done, total)``.
    total : int
        Pieces of work.
    verbose : int
        0 for silence; above, about ten lines in all; above 1, one for each piece.

    Returns
    -------
    callable
        To be called as ``hook(done, total)``.
    """
    start = time.monotonic()
    step = 1 if verbose > 1 else max(1, total // 10)

    def hook(done: int, total: int) -> None:
        if progress is not None:
            progress(done, total)
        if verbose and (done % step == 0 or done == total):
            spent = time.monotonic() - start
            left = spent * (total - done) / done
            sys.stderr.write(
                f"mdec: {done} of {total} base clusterings in {duration(spent)}, "
                f"about {duration(left)} left\n"
            )

    return hook
