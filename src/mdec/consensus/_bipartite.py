"""Consensus by cutting the graph of samples and clusters (MDEC-BG), Eqs. 29, 30."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdec._support.random import RandomState, consensus_stream
from mdec.consensus import _blocks
from mdec.consensus.partitions import (
    alike_together,
    assign,
    ensemble_bounds,
    resolve_weights,
    trivial_partition,
)
from mdec.ensemble import Ensemble
from mdec.numerics.transfer import transfer_cut
from mdec.rows.blocks import Here

Array = NDArray[np.floating]

# Above this many samples the vectors outgrow a core's cache, and sums over a cluster
# are faster if its samples lie together.
SORTED_SAMPLES = 4000


def bipartite(
    ensemble: Ensemble,
    n_clusters: int,
    weights: Array | None = None,
    random_state: RandomState = None,
) -> NDArray[np.int32]:
    """Cluster by cutting the bipartite graph of samples and base clusters.

    Parameters
    ----------
    ensemble : Ensemble
        The base clusterings.
    n_clusters : int
        Number of clusters, at most the number of base clusters.
    weights : ndarray of shape (n_base_clusters,), optional
        Weight of each base cluster; None for the ECI.
    random_state : int, RandomState, Generator or None
        Seed of the eigen-solver and of k-means.

    Returns
    -------
    ndarray of shape (n_samples,)
        Labels, numbered in the order of first samples.

    Notes
    -----
    Above 100,000 samples in at most 10,000 base clusters the graph is never whole: sums
    over row blocks give the small side, and k-means of a sample of rows gives the
    centres that all rows go to.

    Examples
    --------
    >>> ensemble = Ensemble.from_labels([[0, 0], [0, 0], [1, 1], [1, 1], [1, 2]])
    >>> bipartite(ensemble, 2, random_state=0)
    array([0, 0, 1, 1, 1], dtype=int32)
    """
    trivial = trivial_partition(ensemble, n_clusters)
    if trivial is not None:
        return trivial
    if _blocks.is_blocked(ensemble.n_samples, ensemble.n_base_clusters):
        return _in_blocks(
            ensemble, n_clusters, resolve_weights(ensemble, weights), random_state
        )
    rng = consensus_stream(random_state)
    graph = bipartite_graph(ensemble, resolve_weights(ensemble, weights))
    if ensemble.n_samples <= SORTED_SAMPLES:
        return assign(ensemble, transfer_cut(graph, n_clusters, rng), rng)
    order = alike_together(ensemble.labels)
    sorted_rows = transfer_cut(graph[order], n_clusters, rng)
    embedding = np.empty_like(sorted_rows)
    embedding[order] = sorted_rows
    return assign(ensemble, embedding, rng)


def _in_blocks(
    ensemble: Ensemble, n_clusters: int, weights: Array, random_state: RandomState
) -> NDArray[np.int32]:
    bounds = ensemble_bounds(ensemble)
    parts, _ = _blocks.blocked_bipartite(
        Here(),
        [ensemble.labels[start:stop] for start, stop in bounds],
        bounds,
        n_clusters,
        ensemble.offsets,
        weights,
        random_state,
    )
    return np.concatenate(parts)


def bipartite_graph(ensemble: Ensemble, weights: Array) -> sparse.csr_array:
    r"""Return the weighted graph of samples and base clusters, Eqs. 29 and 30.

    Parameters
    ----------
    ensemble : Ensemble
        The base clusterings.
    weights : ndarray of shape (n_base_clusters,)
        Weight of each base cluster.

    Returns
    -------
    csr_array of shape (n_samples, n_base_clusters)
        :math:`B = Z\,diag(w)`.
    """
    indicator = ensemble.indicator()
    return sparse.csr_array(
        (weights[indicator.indices], indicator.indices, indicator.indptr),
        shape=indicator.shape,
    )
