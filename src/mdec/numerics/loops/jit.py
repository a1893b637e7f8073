"""The compiler's settings, the same for every loop.

People wait for the compiler once, so the loops are written for it as well. Arrays are
made by NumPy before a loop and handed to it, because each kind that a loop makes itself
is compiled anew. Inside are plain loops over numbers: an expression of whole arrays
brings along the text of its error messages, which takes longer to compile than the
loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba
from numba.core import event

Function = Callable[..., Any]

# Reassociation lets a sum use vector registers; the order is fixed by the compiler,
# not by the data, so results stay repeatable.
REASSOCIATE = {"reassoc", "contract", "nsz"}

COMPILING = "compiling the loops for this machine, once after an installation"


def compiled(**options: Any) -> Callable[[Function], Function]:
    """Compile a function on first use, cached on disk, without the interpreter lock."""
    options |= {"nogil": True, "no_cfunc_wrapper": True}

    def decorate(function: Function) -> Function:
        njit: Any = numba.njit
        try:
            found: Function = njit(cache=True, **options)(function)
        except RuntimeError:  # no folder to cache in: compile in each process
            found = njit(**options)(function)
        return found

    return decorate


def inner(**options: Any) -> Callable[[Function], Function]:
    """Compile a function that only compiled ones call; it is cached within them."""
    options |= {"nogil": True, "no_cfunc_wrapper": True, "no_cpython_wrapper": True}
    njit: Any = numba.njit
    decorate: Callable[[Function], Function] = njit(**options)
    return decorate


class _Listener(event.Listener):
    """Tells once of a loop of this package that is not in the cache."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.tell: Callable[[str], None] | None = tell

    def on_start(self, event: Any) -> None:
        name = event.data["dispatcher"].py_func.__module__
        if self.tell is not None and name.partition(".")[0] == "mdec":
            tell, self.tell = self.tell, None
            tell(COMPILING)

    def on_end(self, event: Any) -> None:
        """Need nothing."""


@contextmanager
def compiling_told(tell: Callable[[str], None]) -> Iterator[None]:
    """Call `tell` with one line when the first loop has to be compiled meanwhile."""
    events: Any = event
    listener = _Listener(tell)
    events.register("numba:compile", listener)
    try:
        yield
    finally:
        events.unregister("numba:compile", listener)
