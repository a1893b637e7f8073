"""Consensus by spectral clustering of the co-association (MDEC-SC), Eqs. 27, 28."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdec._support.random import RandomState, consensus_stream
from mdec.coassociation import coassociation_factor
from mdec.consensus._bipartite import blocked_cut, is_blocked, presence
from mdec.consensus.partitions import (
    assign,
    gram_on_device,
    require_for_consensus,
    resolve_weights,
    trivial_partition,
)
from mdec.ensemble import Ensemble, LabelBlocks
from mdec.numerics.affinity import leading_vectors, shared_components, unit_rows
from mdec.numerics.eigen import Operator
from mdec.rows.work import ordered_sum

Array = NDArray[np.floating]


def spectral(
    ensemble: Ensemble,
    n_clusters: int,
    weights: Array | None = None,
    random_state: RandomState = None,
    device: str = "cpu",
) -> NDArray[np.int32]:
    """Cluster by spectral partitioning of the weighted co-association.

    The N x N matrix is never formed: its product with a vector goes through the
    samples' membership in the base clusters.

    Parameters
    ----------
    ensemble : Ensemble
        The base clusterings.
    n_clusters : int
        Number of clusters.
    weights : ndarray of shape (n_base_clusters,), optional
        Weight of each base cluster; None for the ECI.
    random_state : int, RandomState, Generator or None
        Seed of the eigen-solver and of k-means.
    device : {"cpu", "cuda", "torch"}, default="cpu"
        Where the eigenvectors are computed.

    Returns
    -------
    ndarray of shape (n_samples,)
        Labels, numbered in the order of first samples.

    Notes
    -----
    Above 100,000 samples in at most 10,000 base clusters the eigenvectors come from the
    matrix of the base clusters, see `blocked_spectral`.

    Where members leave samples out, what two samples share is divided by the root of
    the product of the numbers of members that cluster each of them, which keeps the
    matrix in factors. For samples drawn at random that is, on average, Monti's
    consensus times the share of the samples that are drawn, a factor to which the
    partition is blind.

    Examples
    --------
    >>> ensemble = Ensemble.from_labels([[0, 0], [0, 0], [1, 1], [1, 1], [1, 2]])
    >>> spectral(ensemble, 2, random_state=0)
    array([0, 0, 1, 1, 1], dtype=int32)
    """
    if (trivial := trivial_partition(ensemble, n_clusters)) is not None:
        return trivial
    weights = resolve_weights(ensemble, weights)
    if is_blocked(ensemble.n_samples, ensemble.n_base_clusters):
        parts = blocked_spectral(ensemble, n_clusters, weights, random_state)
        return np.concatenate(parts)
    require_for_consensus(ensemble, spectral_memory(ensemble, n_clusters))
    rng = consensus_stream(random_state)
    embedding = coassociation_embedding(ensemble, n_clusters, weights, rng, device)
    return assign(ensemble, embedding, rng)


def spectral_memory(ensemble: Ensemble, n_clusters: int) -> int:
    """Estimate the bytes that the spectral consensus takes.

    Either the factor while it is made, or the factor, its transpose and the blocks of
    vectors of the eigen-solver.
    """
    n_labels = ensemble.labels.size
    vectors = 52 * ensemble.n_samples * (n_clusters + 16)
    return max(60 * n_labels, 30 * n_labels + vectors) + 2**20


def coassociation_embedding(
    ensemble: Ensemble,
    n_vectors: int,
    weights: Array,
    rng: np.random.Generator,
    device: str = "cpu",
) -> Array:
    """Return unit rows of the leading eigenvectors of the co-association.

    The diagonal of A counts as one, as in the authors' code.
    """
    factor = coassociation_factor(ensemble, weights)
    transposed = factor.T.tocsr()
    missing = 1.0 - np.asarray(factor.power(2).sum(axis=1)).ravel()
    degrees = factor @ (transposed @ np.ones(ensemble.n_samples)) + missing
    scale = (1.0 / np.sqrt(degrees))[:, None]

    def apply(block: Array) -> Array:
        scaled = scale * block
        image: Array = factor @ (transposed @ scaled)
        image += missing[:, None] * scaled
        image *= scale
        return image

    operator: Operator = apply
    if (gram := gram_on_device(factor.shape, n_vectors, device)) is not None:
        scaled = sparse.diags_array(scale[:, 0]) @ factor
        operator = gram(scaled, missing * scale[:, 0] ** 2)
    component, _ = shared_components(factor)
    vectors = leading_vectors(operator, degrees, component, n_vectors, rng, tol=1e-6)
    return unit_rows(vectors)


def blocked_spectral(
    ensemble: LabelBlocks,
    n_clusters: int,
    weights: Array,
    random_state: RandomState = None,
) -> list[Any]:
    r"""Cluster by spectral partitioning through the base clusters, block by block.

    Returns the worker's handles of the clusters of each block, as `blocked_cut`.

    Notes
    -----
    With :math:`A = F F^T` and :math:`D = diag(A 1)` the eigenvectors of
    :math:`D^{-1/2} F F^T D^{-1/2}` are :math:`D^{-1/2} F V`, where V are those of the
    matrix :math:`F^T D^{-1} F` of the base clusters. That is the cut of the graph
    :math:`B = F diag(t)`, :math:`t = F^T 1`: its samples have the degrees
    :math:`F t = D`, and its small side has the degrees :math:`t^2`.

    The diagonal of A is left as it is, where a smaller ensemble has ones. What this
    changes is a fraction of :math:`1 / D_{ii}` and nothing where an eigenvalue is one.
    """
    columns = cluster_columns(ensemble, weights)
    return blocked_cut(ensemble, n_clusters, columns, random_state, of_samples=True)


def cluster_columns(ensemble: LabelBlocks, weights: Array) -> Array:
    r"""Return the factors of the base clusters with which B is the spectral graph.

    The entries of F are :math:`p_i \sqrt{w_j}`, with p the factors of presence, and
    those of B are :math:`p_i w_j \sum_{i \in C_j} p_i`.
    """
    worker = ensemble.worker
    sums = ordered_sum(worker, _presence_sums, ensemble.parts, ensemble.offsets)
    columns: Array = weights * worker.value(sums)
    return columns


def _presence_sums(parts: list[NDArray[np.int32]], offsets: NDArray[np.int64]) -> Array:
    """Return the sum of the factors of presence over the samples of each cluster."""
    total = np.zeros(int(offsets[-1]))
    for labels in parts:
        inside = labels >= 0
        factors = np.repeat(presence(labels), inside.sum(axis=1))
        clusters = (labels + offsets[:-1])[inside]
        total += np.bincount(clusters, factors, minlength=total.size)
    return total
