"""Consensus by spectral clustering of the co-association (MDEC-SC), Eqs. 27, 28."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mdec._support.random import RandomState, consensus_stream
from mdec.coassociation import coassociation_factor
from mdec.consensus.partitions import (
    assign,
    require_for_consensus,
    resolve_weights,
    trivial_partition,
)
from mdec.ensemble import Ensemble
from mdec.numerics.affinity import leading_vectors, shared_components, unit_rows

Array = NDArray[np.floating]


def spectral(
    ensemble: Ensemble,
    n_clusters: int,
    weights: Array | None = None,
    random_state: RandomState = None,
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

    Returns
    -------
    ndarray of shape (n_samples,)
        Labels, numbered in the order of first samples.

    Examples
    --------
    >>> ensemble = Ensemble.from_labels([[0, 0], [0, 0], [1, 1], [1, 1], [1, 2]])
    >>> spectral(ensemble, 2, random_state=0)
    array([0, 0, 1, 1, 1], dtype=int32)
    """
    if (trivial := trivial_partition(ensemble, n_clusters)) is not None:
        return trivial
    require_for_consensus(ensemble, spectral_memory(ensemble, n_clusters))
    rng = consensus_stream(random_state)
    weights = resolve_weights(ensemble, weights)
    embedding = coassociation_embedding(ensemble, n_clusters, weights, rng)
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
    ensemble: Ensemble, n_vectors: int, weights: Array, rng: np.random.Generator
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

    component, _ = shared_components(factor)
    vectors = leading_vectors(apply, degrees, component, n_vectors, rng, tol=1e-6)
    return unit_rows(vectors)
