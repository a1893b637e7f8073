"""Consensus by cutting the graph of samples and clusters (MDEC-BG), Eqs. 29, 30."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdec._random import RandomState, consensus_stream
from mdec.consensus._shared import (
    assign,
    resolve_weights,
    trivial_partition,
)
from mdec.ensemble import Ensemble
from mdec.spectral import leading_vectors, shared_components, unit_rows

Array = NDArray[np.floating]


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

    Examples
    --------
    >>> ensemble = Ensemble.from_labels([[0, 0], [0, 0], [1, 1], [1, 1], [1, 2]])
    >>> bipartite(ensemble, 2, random_state=0)
    array([0, 0, 1, 1, 1], dtype=int32)
    """
    trivial = trivial_partition(ensemble, n_clusters)
    if trivial is not None:
        return trivial
    rng = consensus_stream(random_state)
    graph = bipartite_graph(ensemble, resolve_weights(ensemble, weights))
    return assign(ensemble, transfer_cut(graph, n_clusters, rng), rng)


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


def transfer_cut(
    graph: sparse.csr_array, n_vectors: int, rng: np.random.Generator
) -> Array:
    r"""Return the samples' embedding by the transfer cut of a bipartite graph.

    Parameters
    ----------
    graph : csr_array of shape (n_samples, n_clusters)
        Non-negative weights B between samples and clusters.
    n_vectors : int
        Dimension of the embedding.
    rng : Generator
        Start of the solver.

    Returns
    -------
    ndarray of shape (n_samples, n_vectors)
        Unit rows.

    Notes
    -----
    The normalised cut of the whole graph follows from the cut of its smaller side,
    :math:`W_Y = B^T D_X^{-1} B` with :math:`D_X = diag(B 1)`. With V the leading
    eigenvectors of :math:`G^{-1/2} W_Y G^{-1/2}`, where G holds the degrees of
    :math:`W_Y`, the rows of :math:`D_X^{-1} B G^{-1/2} V` are scaled to unit length.

    References
    ----------
    Li, Wu, Chang, "Segmentation using superpixels: a bipartite graph partitioning
    approach", CVPR 2012.
    """
    if graph.shape[1] < n_vectors:
        raise ValueError(
            f"n_clusters={n_vectors} is more than the {graph.shape[1]} base clusters; "
            "make a larger ensemble or ask for fewer clusters."
        )
    tiny = np.finfo(np.float64).tiny
    sample_degrees = np.maximum(np.asarray(graph.sum(axis=1)).ravel(), tiny)
    degrees = np.asarray(graph.sum(axis=0)).ravel()
    to_samples = sparse.diags_array(1.0 / sample_degrees) @ graph
    transposed = graph.T.tocsr()
    scale = 1.0 / np.sqrt(np.maximum(degrees, tiny))[:, None]

    def apply(block: Array) -> Array:
        image: Array = scale * (transposed @ (to_samples @ (scale * block)))
        return image

    _, component = shared_components(graph)
    vectors = leading_vectors(apply, degrees, component, n_vectors, rng, tol=1e-6)
    return unit_rows(to_samples @ (scale * vectors))
