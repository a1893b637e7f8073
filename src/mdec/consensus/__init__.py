"""Consensus functions: one signature, ``(ensemble, n_clusters, ...) -> labels``."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mdec.consensus._bipartite import bipartite
from mdec.consensus._hierarchical import hierarchical
from mdec.consensus._spectral import spectral

CONSENSUS: dict[str, Callable[..., NDArray[np.int32]]] = {
    "hierarchical": hierarchical,
    "spectral": spectral,
    "bipartite": bipartite,
}

# Those that take a `device`; the others are fast enough beside the card.
ON_DEVICE = {"hierarchical"}

__all__ = ["CONSENSUS", "ON_DEVICE", "bipartite", "hierarchical", "spectral"]
