"""How far a long run is, and how long it will still take."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

Progress = Callable[[int, int], None]


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


def told(progress: Progress | None, total: int, verbose: int) -> Progress:
    """Return a hook that passes progress on and, if asked to, writes it to stderr.

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
