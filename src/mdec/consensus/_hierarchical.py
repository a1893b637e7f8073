"""Consensus by average linkage on the co-association (MDEC-HC), Eqs. 24 to 26."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from mdec._memory import available_memory
from mdec._random import RandomState, consensus_stream
from mdec.coassociation import coassociation_factor
from mdec.consensus import _regions
from mdec.consensus._shared import (
    alike_together,
    numbered_by_appearance,
    resolve_weights,
    trivial_partition,
)
from mdec.ensemble import Ensemble

Array = NDArray[np.floating]

# Above this many distinct samples the triangle of similarities is kept in float32.
DOUBLE_PRECISION_SAMPLES = 4000

# 7 GB are the triangle of 59,000 samples.
MAX_TRIANGLE_BYTES = 7e9


def hierarchical(
    ensemble: Ensemble,
    n_clusters: int,
    weights: Array | None = None,
    random_state: RandomState = None,
    *,
    device: str = "cpu",
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
        Seed of the micro-regions; nothing is random below 60,000 distinct samples.
    device : {"cpu", "cuda", "torch"}, default="cpu"
        Where to link samples; a card is used if the similarities of all pairs fit it.

    Returns
    -------
    ndarray of shape (n_samples,)
        Labels, numbered in the order of first samples.

    Notes
    -----
    With more than 60,000 distinct samples linkage starts from at most 4000
    micro-regions of samples that the ensemble hardly tells apart, see
    `mdec.consensus._regions`. The mean similarity of two regions is exact.

    Examples
    --------
    >>> ensemble = Ensemble.from_labels([[0, 0], [0, 0], [1, 1], [1, 1], [1, 2]])
    >>> hierarchical(ensemble, 2)
    array([0, 0, 1, 1, 1], dtype=int32)
    """
    trivial = trivial_partition(ensemble, n_clusters)
    if trivial is not None:
        return trivial
    weights = resolve_weights(ensemble, weights)
    if len(ensemble.microclusters[0]) > _regions.LINKED_SAMPLES:
        rng = consensus_stream(random_state)
        labels = _linked_regions(ensemble, n_clusters, weights, rng)
        return numbered_by_appearance(labels, n_clusters)
    pairs, similarities = merges(ensemble, weights, device)
    labels = cut(pairs, similarities, ensemble.n_samples, n_clusters)
    return numbered_by_appearance(labels, n_clusters)


def _linked_regions(
    ensemble: Ensemble, n_clusters: int, weights: Array, rng: np.random.Generator
) -> NDArray[np.int32]:
    """Link micro-regions and give their clusters to the samples."""
    from mdec import _compiled

    regions = _regions.micro_regions(ensemble, weights, rng)
    products, sizes = _regions.region_similarities(ensemble, weights, regions)
    if sizes.size < n_clusters:
        raise ValueError(
            f"n_clusters={n_clusters} is more than the {sizes.size} regions that the "
            "linkage of so many samples starts from; use consensus='bipartite'."
        )
    triangle = np.empty(_compiled.triangle_entries(sizes.size))
    _compiled.triangle_of_matrix(products, triangle)
    pairs, similarities = _compiled.average_linkage(triangle, sizes)
    return cut(pairs, similarities, sizes.size, n_clusters)[regions]


def merges(
    ensemble: Ensemble, weights: Array, device: str = "cpu"
) -> tuple[NDArray[np.int64], Array]:
    """Return the merges of average linkage, Eqs. 24 to 26.

    Parameters
    ----------
    ensemble : Ensemble
        The base clusterings.
    weights : ndarray of shape (n_base_clusters,)
        Weight of each base cluster.
    device : {"cpu", "cuda", "torch"}, default="cpu"
        Where to compute.

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
    first, group, sizes = ensemble.microclusters
    factor = coassociation_factor(ensemble, weights)
    own = np.asarray(factor.power(2).sum(axis=1)).ravel()
    copies = np.setdiff1d(np.arange(ensemble.n_samples), first)
    originals = first[group[copies]]
    if len(first) > DOUBLE_PRECISION_SAMPLES:
        order = alike_together(ensemble.labels[first])
        first, sizes = first[order], sizes[order]
    pairs, similarities = _linkage(factor[first], sizes, device)
    return (
        np.concatenate([np.stack([originals, copies], axis=1), first[pairs]]),
        np.concatenate([own[copies], similarities]),
    )


def _linkage(
    factor: sparse.csr_array, sizes: NDArray[np.intp], device: str
) -> tuple[NDArray[np.int64], Array]:
    """Merge the rows of a factor by the mean of their products.

    A triangle of all means is fastest; where it would take too much memory, means are
    computed from the factor when they are needed.
    """
    n_rows = factor.shape[0]
    dtype = np.float64 if n_rows <= DOUBLE_PRECISION_SAMPLES else np.float32
    if device != "cpu":
        from mdec import _torch

        place = _torch.find_device(device)
        n_bytes = np.dtype(dtype).itemsize * (n_rows + factor.shape[1]) * n_rows
        if _torch.fits(n_bytes, place):
            return _torch.average_linkage(factor, sizes, dtype, place)
    from mdec import _compiled

    arrays = factor.indptr.astype(np.int64), factor.indices.astype(np.int32)
    n_entries = _compiled.triangle_entries(n_rows)
    if n_entries * np.dtype(dtype).itemsize > triangle_budget():
        return _compiled.factored_linkage(*arrays, factor.data, factor.shape[1], sizes)
    triangle = np.empty(n_entries, dtype=dtype)
    _compiled.triangle_of_products(
        *arrays, factor.data.astype(dtype), factor.shape[1], triangle
    )
    return _compiled.average_linkage(triangle, sizes)


def triangle_budget() -> float:
    """Return the bytes that the triangle of similarities may take."""
    available = available_memory()
    return (
        MAX_TRIANGLE_BYTES
        if available is None
        else min(MAX_TRIANGLE_BYTES, 0.5 * available)
    )


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
