"""Consensus functions: from an ensemble and a number of clusters to labels."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.arrays import Array
from mdec._support.random import RandomState
from mdec.consensus.dendrogram import hierarchical
from mdec.consensus.graph_cuts import bipartite, cut_graph, spectral
from mdec.consensus.matrix import from_matrix
from mdec.ensemble import Ensemble

__all__ = [
    "CONSENSUS",
    "bipartite",
    "find_consensus",
    "from_matrix",
    "hierarchical",
    "spectral",
]


# All have one signature.
CONSENSUS: dict[str, Callable[..., NDArray[np.int32]]] = {
    "hierarchical": hierarchical,
    "spectral": spectral,
    "bipartite": bipartite,
}


def find_consensus(
    ensemble: Ensemble,
    n_clusters: int,
    consensus: str,
    weights: Array,
    random_state: RandomState = None,
    device: str = "cpu",
) -> list[Any]:
    """Return the consensus clusters of the samples, as handles of each block.

    The bipartite and the spectral consensus of more than 100,000 samples work where the
    labels are; for the hierarchical one, and for fewer samples, the labels (not the
    rows) are brought here.
    """
    if consensus not in CONSENSUS:
        raise ValueError(
            f"consensus={consensus!r} is not one of {', '.join(CONSENSUS)}."
        )
    settings = n_clusters, weights, random_state, device
    if consensus in ("spectral", "bipartite"):
        return cut_graph(ensemble, *settings, of_samples=consensus == "spectral")
    return ensemble.split(CONSENSUS[consensus](ensemble.gather(), *settings))
