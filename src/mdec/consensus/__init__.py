"""Consensus functions: one signature, ``(ensemble, n_clusters, ...) -> labels``."""

from mdec.consensus._bipartite import bipartite
from mdec.consensus._hierarchical import hierarchical
from mdec.consensus._spectral import spectral

CONSENSUS = {
    "hierarchical": hierarchical,
    "spectral": spectral,
    "bipartite": bipartite,
}

__all__ = ["CONSENSUS", "bipartite", "hierarchical", "spectral"]
