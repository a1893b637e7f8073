"""The library that an array belongs to, for formulas that serve several."""

from __future__ import annotations

import sys
from typing import Any


def namespace(array: Any) -> Any:
    """Return NumPy for its arrays and for plain numbers, PyTorch for tensors.

    Examples
    --------
    >>> namespace(1.0).__name__
    'numpy'
    """
    owner = type(array).__module__.partition(".")[0]
    return sys.modules["numpy" if owner == "builtins" else owner]
