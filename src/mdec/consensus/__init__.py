"""Consensus functions: one signature, ``(ensemble, n_clusters, ...) -> labels``."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.random import RandomState
from mdec.consensus._bipartite import bipartite, blocked_bipartite, is_blocked
from mdec.consensus._hierarchical import hierarchical
from mdec.consensus._spectral import blocked_spectral, spectral
from mdec.consensus.matrix import from_matrix
from mdec.ensemble import LabelBlocks

CONSENSUS: dict[str, Callable[..., NDArray[np.int32]]] = {
    "hierarchical": hierarchical,
    "spectral": spectral,
    "bipartite": bipartite,
}

# Those that work where the labels are, if there are many.
BLOCKED: dict[str, Callable[..., list[Any]]] = {
    "spectral": blocked_spectral,
    "bipartite": blocked_bipartite,
}

__all__ = [
    "BLOCKED",
    "CONSENSUS",
    "agreed",
    "bipartite",
    "blocked_bipartite",
    "blocked_spectral",
    "from_matrix",
    "hierarchical",
    "spectral",
]


def agreed(
    ensemble: LabelBlocks,
    n_clusters: int,
    consensus: str,
    weights: NDArray[np.floating],
    random_state: RandomState = None,
    device: str = "cpu",
) -> list[Any]:
    """Return the consensus clusters of the samples, block by block.

    The blocks are the handles of the ensemble's worker. `consensus` is one of
    `CONSENSUS`; `device` is where they compute.

    Notes
    -----
    The bipartite and the spectral consensus of more than 100,000 samples work where the
    labels are; for the hierarchical one, and for fewer samples, the labels (not the
    rows) are brought here.
    """
    if consensus not in CONSENSUS:
        raise ValueError(
            f"consensus={consensus!r} is not one of {', '.join(CONSENSUS)}."
        )
    many = is_blocked(ensemble.n_samples, ensemble.n_base_clusters)
    if consensus in BLOCKED and many and 1 < n_clusters < ensemble.n_samples:
        return BLOCKED[consensus](ensemble, n_clusters, weights, random_state)
    labels = CONSENSUS[consensus](
        ensemble.gather(),
        n_clusters,
        weights,
        random_state=random_state,
        device=device,
    )
    return ensemble.split(labels)
