"""Consensus by average linkage on the co-association (MDEC-HC), Eqs. 24 to 26."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform

from mdec._support.arrays import Array
from mdec._support.random import RandomState, consensus_stream
from mdec.coassociation import coassociation_factor, divide_by_presence, presence_rows
from mdec.confidence import sum_profiles
from mdec.consensus.graph_cuts import micro_regions
from mdec.consensus.partitions import (
    number_by_appearance,
    require_for_consensus,
    resolve_weights,
    trivial_partition,
)
from mdec.ensemble import Ensemble
from mdec.numerics.magnitude import to_power

Merges = tuple[NDArray[np.int64], Array]

# Above this many distinct samples linkage starts from regions.
LINKED_SAMPLES = 60_000

# Above this many distinct samples the similarities of all pairs are in float32.
DOUBLE_PRECISION_SAMPLES = 4000


def hierarchical(
    ensemble: Ensemble,
    n_clusters: int,
    weights: Array | None = None,
    random_state: RandomState = None,
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
        Where to link samples; a GPU is used if the similarities of all pairs fit it.

    Returns
    -------
    ndarray of shape (n_samples,)
        Labels, numbered in the order of first samples.

    Notes
    -----
    With more than 60,000 distinct samples linkage starts from at most 4000
    micro-regions of samples that the ensemble hardly tells apart, see `micro_regions`.
    The mean similarity of two regions is exact.

    Where members leave samples out, what two samples share is divided by the members
    that cluster both, as in Monti's consensus matrix; a pair that no member clusters
    has 0.

    Examples
    --------
    >>> ensemble = Ensemble.from_labels([[0, 0], [0, 0], [1, 1], [1, 1], [1, 2]])
    >>> hierarchical(ensemble, 2)
    array([0, 0, 1, 1, 1], dtype=int32)
    """
    if (trivial := trivial_partition(ensemble.n_samples, n_clusters)) is not None:
        return trivial
    weights = resolve_weights(ensemble, weights)
    if len(ensemble.microclusters[0]) > LINKED_SAMPLES:
        rng = consensus_stream(random_state)
        labels = link_regions(ensemble, n_clusters, weights, rng)
    else:
        found = merges(ensemble, weights, device)
        labels = cut(*found, ensemble.n_samples, n_clusters)
    return number_by_appearance(labels, n_clusters)


def merges(ensemble: Ensemble, weights: Array, device: str = "cpu") -> Merges:
    """Return the merges of average linkage, Eqs. 24 to 26.

    They are pairs of samples, one from each of the two regions that merge,
    (n_samples - 1, 2), and the mean co-association of these regions.

    Notes
    -----
    Samples that share every label are merged first: no other sample can be more
    similar to one of them. Of equal similarities the pair with the lowest samples is
    merged first, a region being named by its lowest sample; similarities are equal if
    they differ by less than about 1e-9 of the largest. Above 4000 distinct samples
    those of similar labels are numbered together, and similarities are in float32,
    whose rounding may tell equal ones apart. Where members leave samples out, see
    `mdec.consensus.hierarchical`.
    """
    from mdec.numerics.loops.linkage import products_of_pairs

    first, group, sizes = ensemble.microclusters
    require_for_consensus(ensemble, linkage_memory(ensemble.labels.size, len(first)))
    factor = coassociation_factor(ensemble, weights)
    factor.eliminate_zeros()
    own = np.asarray(factor.power(2).sum(axis=1)).ravel()
    copies = np.setdiff1d(np.arange(ensemble.n_samples), first)
    originals = first[group[copies]]
    order, dtype = np.argsort(first), _precision(len(first))
    if dtype == np.float32:
        # What merges lies together then; the labels of a few members tell well enough.
        order = np.lexsort(ensemble.labels[first, :4].T)
    first, sizes = first[order], sizes[order]
    factor, largest, complete = factor[first], float(own.max()), ensemble.is_complete
    place: Any = None
    if device != "cpu" and complete:
        from mdec.engines import tensors

        place = tensors.find_device(device)
        if not tensors.fits(dtype.itemsize * sum(factor.shape) * len(first), place):
            place = None
    if place is None:
        present = None if complete else presence_rows(ensemble.labels[first])
        triangle = products_of_pairs(factor, dtype, present)
        pairs, similarities = link_pairs(triangle, sizes, largest)
    else:
        shift = float(tie_shift(largest, dtype.type))
        linked = tensors.average_linkage(factor, sizes, dtype.type, place, shift)
        pairs, similarities = sort_merges(*linked)
    # Higher than all others, or a cut would part samples that nothing tells apart.
    heights = np.maximum(own[copies], similarities.max(initial=0.0))
    return (
        np.concatenate([np.stack([originals, copies], axis=1), first[pairs]]),
        np.concatenate([heights, similarities]),
    )


def linkage_memory(n_labels: int, n_distinct: int) -> int:
    """Estimate the bytes of the factor and of the similarities of all pairs."""
    pairs = _precision(n_distinct).itemsize * n_distinct**2 // 2
    return 68 * n_labels + pairs + 2**20


def _precision(n_rows: int) -> np.dtype[np.floating]:
    single = n_rows > DOUBLE_PRECISION_SAMPLES
    return np.dtype(np.float32 if single else np.float64)


def link_pairs(
    similarities: Array, sizes: NDArray[np.integer], largest: float = 1.0
) -> Merges:
    """Merge rows by the means of their similarities, a condensed triangle.

    It is overwritten; its entries are at most `largest`.
    """
    from mdec.numerics.loops.linkage import average_linkage

    shift = tie_shift(largest, similarities.dtype.type)
    return sort_merges(*average_linkage(similarities, sizes, shift))


def tie_shift(largest: float, dtype: type[np.floating]) -> np.floating:
    """Return what rounds similarities when it is added to them and taken away.

    It rounds to about 1e-9 of what they are at most; it is zero in float32, which has
    fewer digits.

    Examples
    --------
    >>> shift = tie_shift(1.0, np.float64)
    >>> bool((0.3 + shift) - shift == ((0.1 + 0.2) + shift) - shift)
    True
    """
    if dtype == np.float32:
        return np.float32(0.0)
    # The last digit of 2 ** 22 is 2 ** -30.
    return np.float64(1.5 * 2.0**22 / to_power(largest, 0))


def falling(similarities: Array, *names: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return the places of similarities by falling size.

    Equal ones stand by the last of their names, then by those before, then as they are.
    """
    shift = tie_shift(float(similarities.max(initial=0.0)), np.float64)
    return np.lexsort((*names, -((similarities + shift) - shift)))


def sort_merges(pairs: NDArray[np.int64], similarities: Array) -> Merges:
    """Sort merges by falling similarity, equal ones by the rows that name them."""
    order = falling(similarities, pairs[:, 1], pairs[:, 0])
    return pairs[order], similarities[order]


def cut(
    pairs: NDArray[np.int64], similarities: Array, n_samples: int, n_clusters: int
) -> NDArray[np.int32]:
    """Undo the last merges, as from `merges`, until so many clusters are left.

    Of equal similarities those are undone that come last.
    """
    kept = tuple(pairs[falling(similarities)[: n_samples - n_clusters]].T)
    graph = sparse.coo_array((np.ones(len(kept[0])), kept), shape=(n_samples,) * 2)
    labels: NDArray[np.int32] = connected_components(graph, directed=False)[1]
    return labels


def link_regions(
    ensemble: Ensemble, n_clusters: int, weights: Array, rng: np.random.Generator
) -> NDArray[np.int32]:
    """Link micro-regions and give their clusters to the samples."""
    regions = micro_regions(ensemble, weights, rng)
    similarity, sizes = region_similarities(ensemble, weights, regions)
    if sizes.size < n_clusters:
        raise ValueError(
            f"n_clusters={n_clusters} is more than the {sizes.size} regions that the "
            "linkage of so many samples starts from; use consensus='bipartite'."
        )
    largest = float(similarity.diagonal().max())
    found = link_pairs(squareform(similarity, checks=False), sizes, largest)
    return cut(*found, sizes.size, n_clusters)[regions]


def region_similarities(
    ensemble: Ensemble, weights: Array, regions: NDArray[np.int32]
) -> tuple[Array, NDArray[np.int64]]:
    r"""Return the mean co-association of every two regions, and their sizes.

    With :math:`A = F F^T` the mean of :math:`A_{ij}` over i in R and j in S is
    :math:`\bar F_R \cdot \bar F_S`, the product of the regions' mean rows: exact, and
    no pair of samples is looked at. Where members leave samples out, pairs count by how
    often both were there, as in `mdec.confidence.item_consensus`.
    """
    sizes = np.bincount(regions).astype(np.int64)
    clusters = ensemble.split(regions)
    profiles = sum_profiles(ensemble, clusters, weights, sizes.size)
    means, present = (each / sizes[:, None] for each in profiles.split_sums()[:2])
    return divide_by_presence(means @ means.T, present @ present.T), sizes
