"""Consensus by average linkage on the co-association (MDEC-HC), Eqs. 24 to 26."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mdec._support.random import RandomState, consensus_stream
from mdec.consensus import _regions
from mdec.consensus.dendrogram import cut, in_order, merges, tie_shift
from mdec.consensus.partitions import (
    numbered_by_appearance,
    resolve_weights,
    trivial_partition,
)
from mdec.ensemble import Ensemble

Array = NDArray[np.floating]


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

    Where members leave samples out, what two samples share is divided by the members
    that cluster both, as in Monti's consensus matrix; a pair that no member clusters
    has 0. Where the similarities of all pairs do not fit in memory, it is divided by
    the root of the product of both samples' members instead.

    Examples
    --------
    >>> ensemble = Ensemble.from_labels([[0, 0], [0, 0], [1, 1], [1, 1], [1, 2]])
    >>> hierarchical(ensemble, 2)
    array([0, 0, 1, 1, 1], dtype=int32)
    """
    if (trivial := trivial_partition(ensemble, n_clusters)) is not None:
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
    from mdec.numerics import loops

    regions = _regions.micro_regions(ensemble, weights, rng)
    products, sizes = _regions.region_similarities(ensemble, weights, regions)
    if sizes.size < n_clusters:
        raise ValueError(
            f"n_clusters={n_clusters} is more than the {sizes.size} regions that the "
            "linkage of so many samples starts from; use consensus='bipartite'."
        )
    triangle = np.empty(loops.triangle_entries(sizes.size))
    loops.triangle_of_matrix(products, triangle)
    shift = tie_shift(float(products.diagonal().max()), np.float64)
    pairs, similarities = in_order(*loops.average_linkage(triangle, sizes, shift))
    return cut(pairs, similarities, sizes.size, n_clusters)[regions]
