"""Average linkage of more samples than can be linked one by one.

Samples are first put into a few thousand micro-regions; linkage starts from those.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mdec.coassociation import shared
from mdec.confidence.profiles import summed_profiles
from mdec.consensus._bipartite import (
    bipartite_rows,
    halves_of_labels,
    small_side_memory,
)
from mdec.consensus.partitions import require_for_consensus
from mdec.ensemble import Ensemble
from mdec.numerics.landmark_search import refined_landmarks
from mdec.numerics.transfer import (
    assigned_rows,
    embedded_rows,
    reduced_affinity,
    reduced_vectors,
)
from mdec.rows.work import gathered_rows, ordered_sum

Array = NDArray[np.floating]

# Above this many distinct samples linkage starts from regions.
LINKED_SAMPLES = 60_000

REGIONS = 4000

# Drawn rows for each region, and dimensions in which regions are told apart.
ROWS_PER_REGION = 10
DIMENSIONS = 50


def micro_regions(
    ensemble: Ensemble, weights: Array, rng: np.random.Generator
) -> NDArray[np.int32]:
    """Group samples that the ensemble hardly tells apart, in regions from 0.

    The samples are embedded by the transfer cut of the bipartite consensus, in 50
    dimensions, and each joins the nearest of 4000 points that a short k-means has
    placed among drawn rows. No region is empty.
    """
    require_for_consensus(ensemble, small_side_memory(ensemble))
    worker, parts, offsets = ensemble.worker, ensemble.parts, ensemble.offsets
    n_samples = ensemble.n_samples
    halves = ordered_sum(worker, halves_of_labels, parts, offsets, weights)
    affinity = reduced_affinity(halves, weights)
    n_vectors = min(DIMENSIONS, ensemble.n_base_clusters)
    vectors = reduced_vectors(affinity, n_vectors, rng).astype(np.float32)
    size = min(REGIONS * ROWS_PER_REGION, n_samples)
    drawn = np.sort(rng.choice(n_samples, size, replace=False))
    sample = gathered_rows(worker, parts, ensemble.bounds, drawn)
    points = embedded_rows(bipartite_rows(sample, offsets, weights), vectors)
    centers = refined_landmarks(points, min(REGIONS, size), rng)[1]
    regions = [
        assigned_rows(bipartite_rows(part, offsets, weights), vectors, centers)
        for part in parts
    ]
    return np.unique(np.concatenate(regions), return_inverse=True)[1].astype(np.int32)


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
    profiles = summed_profiles(ensemble, clusters, weights, sizes.size)
    means = profiles.sums / sizes[:, None]
    if profiles.present is None:
        return means @ means.T, sizes
    present = profiles.present / sizes[:, None]
    return shared(means @ means.T, present @ present.T), sizes
