"""Consensus by average linkage on the co-association (MDEC-HC), Eqs. 24 to 26."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from mdec._memory import require_memory
from mdec._random import RandomState
from mdec.coassociation import coassociation_factor
from mdec.consensus._shared import (
    numbered_by_appearance,
    resolve_weights,
    trivial_partition,
)
from mdec.ensemble import Ensemble

Array = NDArray[np.floating]

# Above this many distinct samples the triangle of similarities is kept in float32.
DOUBLE_PRECISION_SAMPLES = 4000


def hierarchical(
    ensemble: Ensemble,
    n_clusters: int,
    weights: Array | None = None,
    random_state: RandomState = None,  # noqa: ARG001
) -> NDArray[np.int32]:
    """Cluster by average linkage on the weighted co-association.

    Parameters
    ----------
    ensemble : Ensemble
        The base clusterings.
    n_clusters : int
        Number of clusters; exactly that many come out.
    weights : ndarray of shape (n_base_clusters,), optional
        Weight of each base cluster; None for the ECI.
    random_state : int, RandomState, Generator or None
        Not used: there is nothing random in it.

    Returns
    -------
    ndarray of shape (n_samples,)
        Labels, numbered in the order of first samples.

    Examples
    --------
    >>> ensemble = Ensemble.from_labels([[0, 0], [0, 0], [1, 0], [1, 1], [1, 1]])
    >>> hierarchical(ensemble, 2)
    array([0, 0, 1, 1, 1], dtype=int32)
    """
    trivial = trivial_partition(ensemble, n_clusters)
    if trivial is not None:
        return trivial
    pairs, similarities = merges(ensemble, resolve_weights(ensemble, weights))
    labels = cut(pairs, similarities, ensemble.n_samples, n_clusters)
    return numbered_by_appearance(labels, n_clusters)


def merges(ensemble: Ensemble, weights: Array) -> tuple[NDArray[np.int64], Array]:
    """Return the merges of average linkage, Eqs. 24 to 26.

    Parameters
    ----------
    ensemble : Ensemble
        The base clusterings.
    weights : ndarray of shape (n_base_clusters,)
        Weight of each base cluster.

    Returns
    -------
    pairs : ndarray of shape (n_samples - 1, 2)
        Samples, one from each of the two regions that merge.
    similarities : ndarray of shape (n_samples - 1,)
        Mean co-association of the two regions.

    Notes
    -----
    Samples that share every label are merged first: no other sample can be more
    similar to one of them.
    """
    _, first, inverse, sizes = np.unique(
        ensemble.labels,
        axis=0,
        return_index=True,
        return_inverse=True,
        return_counts=True,
    )
    factor = coassociation_factor(ensemble, weights)
    own = np.asarray(factor.power(2).sum(axis=1)).ravel()
    copies = np.setdiff1d(np.arange(ensemble.n_samples), first)
    originals = first[inverse.ravel()[copies]]
    pairs, similarities = _linkage(factor[first], sizes)
    return (
        np.concatenate([np.stack([originals, copies], axis=1), first[pairs]]),
        np.concatenate([own[copies], similarities]),
    )


def _linkage(
    factor: sparse.csr_array, sizes: NDArray[np.int64]
) -> tuple[NDArray[np.int64], Array]:
    from mdec import _compiled

    n_rows = factor.shape[0]
    dtype = np.float64 if n_rows <= DOUBLE_PRECISION_SAMPLES else np.float32
    n_pairs = n_rows * (n_rows - 1) // 2
    require_memory(
        n_pairs * np.dtype(dtype).itemsize,
        f"hierarchical consensus of {n_rows} samples",
        'use consensus="bipartite" or "spectral", which need far less',
    )
    similarity = np.empty(n_pairs, dtype=dtype)
    _compiled.condensed_products(
        factor.indptr,
        factor.indices,
        factor.data.astype(dtype),
        factor.shape[1],
        similarity,
    )
    pairs, similarities = _compiled.average_linkage(similarity, sizes)
    return pairs, similarities


def cut(
    pairs: NDArray[np.int64], similarities: Array, n_samples: int, n_clusters: int
) -> NDArray[np.int32]:
    """Undo the last merges until the asked number of clusters is left."""
    order = np.argsort(-similarities, kind="stable")[: n_samples - n_clusters]
    rows, columns = pairs[order].T
    graph = sparse.coo_array(
        (np.ones(order.size), (rows, columns)), shape=(n_samples, n_samples)
    )
    labels: NDArray[np.int32] = connected_components(graph, directed=False)[1]
    return labels
