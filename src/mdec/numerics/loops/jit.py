"""The compiler's settings, the same for every loop.

People wait for the compiler once, so the loops are written for it as well. Arrays are
made by NumPy before a loop and handed to it, because each kind that a loop makes itself
is compiled anew. Inside are plain loops over numbers: an expression of whole arrays
brings along the text of its error messages, which takes longer to compile than the
loop. The larger or smaller of two numbers of one more type is a function to compile.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numba
from numba.core import caching, event

Function = Callable[..., Any]

# Reassociation lets a sum use vector registers; the order is fixed by the compiler,
# not by the data, so results stay repeatable.
REASSOCIATE = {"reassoc", "contract", "nsz"}

# Compiled loops hold those of other files that they call, of which numba does not know:
# when any file of this folder changes, all are compiled again.
_FILES = sorted(Path(__file__).parent.glob("*.py"))
_STAMP = tuple((file.stat().st_mtime_ns, file.stat().st_size) for file in _FILES)

COMPILING = "compiling the loops for this machine, once after an installation"


class _Cache:
    """Compiled loops on disk; where the disk does not serve, they are compiled again.

    Numba's own cache of a function, whose errors would end a fit.
    """

    warned = False

    def __init__(self, function: Function) -> None:
        numba_caching: Any = caching
        self._files: Any = numba_caching.FunctionCache(function)
        # Where a version of numba names it otherwise, its own stamp has to do.
        with suppress(AttributeError):
            own = self._files._cache_file
            own._source_stamp = own._source_stamp, _STAMP

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return a compiled loop, or None if there is none that can be read."""
        try:
            return self._files.load_overload(signature, target_context)
        except Exception as error:  # noqa: BLE001 - a damaged file raises anything
            self._warn(f"could not be read ({type(error).__name__})")
            # What is written next replaces the damaged files.
            with suppress(Exception):
                self._files.flush()
            return None

    def save_overload(self, signature: Any, data: Any) -> None:
        """Keep a compiled loop, unless the disk refuses it."""
        try:
            self._files.save_overload(signature, data)
        except Exception as error:  # noqa: BLE001 - as above
            self._warn(f"could not be written ({error})")

    def _warn(self, problem: str) -> None:
        if _Cache.warned:
            return
        _Cache.warned = True
        warnings.warn(
            f"the cache of compiled loops in {self._files.cache_path} {problem}, so "
            "loops are compiled again, which takes a while; make room there, or name "
            "another folder in NUMBA_CACHE_DIR.",
            RuntimeWarning,
            stacklevel=2,
        )


def jit(**options: Any) -> Callable[[Function], Function]:
    """Compile a function on first use, cached on disk, without the interpreter lock."""
    options |= {"nogil": True, "no_cfunc_wrapper": True}

    def decorate(function: Function) -> Function:
        njit: Any = numba.njit
        found: Any = njit(**options)(function)
        # Without a folder to cache in each process compiles.
        with suppress(RuntimeError, OSError):
            found._cache = _Cache(function)
        return found

    return decorate


def inner(**options: Any) -> Callable[[Function], Function]:
    """Compile a function that only compiled ones call; it is cached within them."""
    options |= {"nogil": True, "no_cfunc_wrapper": True, "no_cpython_wrapper": True}
    njit: Any = numba.njit
    decorate: Callable[[Function], Function] = njit(**options)
    return decorate


class _Collector(event.Listener):
    """Stops the garbage collector while numba compiles.

    It would look again and again through what the compiler makes, a sixth of its time.
    """

    def __init__(self) -> None:
        self.was_on: list[bool] = []

    def on_start(self, event: Any) -> None:  # noqa: ARG002
        self.was_on.append(gc.isenabled())
        gc.disable()

    def on_end(self, event: Any) -> None:  # noqa: ARG002
        if self.was_on.pop():
            if not gc.get_freeze_count():
                # What is there counts as old, or all of it would be looked through.
                gc.freeze()
                gc.unfreeze()
            gc.enable()


_events: Any = event
_events.register("numba:compile", _Collector())


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
def report_compiling(tell: Callable[[str], None]) -> Iterator[None]:
    """Call `tell` with one line when the first loop has to be compiled meanwhile."""
    listener = _Listener(tell)
    _events.register("numba:compile", listener)
    try:
        yield
    finally:
        _events.unregister("numba:compile", listener)
