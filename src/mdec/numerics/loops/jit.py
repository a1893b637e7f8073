"""The compiler's settings, the same for every loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

Function = Callable[..., Any]

# Reassociation lets a sum use vector registers; the order is fixed by the compiler,
# not by the data, so results stay repeatable.
REASSOCIATE = {"reassoc", "contract", "nsz"}


def compiled(**options: Any) -> Callable[[Function], Function]:
    """Compile a function on first use, cached on disk, without the interpreter lock."""

    def decorate(function: Function) -> Function:
        try:
            return numba.njit(nogil=True, cache=True, **options)(function)
        except RuntimeError:  # no folder to cache in: compile in each process
            return numba.njit(nogil=True, **options)(function)

    return decorate
