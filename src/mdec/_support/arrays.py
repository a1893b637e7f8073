"""The types of arrays, and the library that an array belongs to."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]

# Clusters of samples.
Labels = NDArray[np.integer]


def namespace(array: Any) -> Any:
    """Return NumPy for its arrays and for plain numbers, PyTorch for tensors.

    Examples
    --------
    >>> namespace(1.0).__name__
    'numpy'
    """
    owner = type(array).__module__.partition(".")[0]
    return sys.modules["numpy" if owner == "builtins" else owner]
