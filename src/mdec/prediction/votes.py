"""The vote of the nearest training rows: how alike they are, and who wins."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec.base.given import GivenRows
from mdec.base.kernels import (
    ANGULAR,
    RELATIVE_FLOOR,
    SIMILARITY,
    angular_similarity,
    as_kernel_takes_them,
    scaling_term,
)
from mdec.ensemble.plan import Member
from mdec.numerics.nearest import NearestRows
from mdec.numerics.sparse_rows import NearestSparseRows

Array = NDArray[np.floating]

# Old rows whose median neighbour distance sets the floor of the kernel's scale.
N_PROBES = 256


def voted(
    own: NDArray[np.int32], neighbors: NDArray[np.int64], similarity: Array
) -> NDArray[np.int32]:
    """Return the base cluster with the largest summed similarity of each new row."""
    n_clusters = int(own.max()) + 1
    places = own[neighbors] + n_clusters * np.arange(len(neighbors))[:, None]
    size = n_clusters * len(neighbors)
    votes = np.bincount(places.ravel(), similarity.ravel(), size)
    return votes.reshape(-1, n_clusters).argmax(axis=1).astype(np.int32)


def nearest_similarities(
    search: NearestRows | NearestSparseRows | GivenRows,
    new: Any,
    member: Member,
    kernel: str,
    means: Array,
) -> tuple[NDArray[np.int64], Array]:
    """Return the k nearest old rows of each new row, and their similarities.

    `means` holds the mean neighbour distances of old rows; those that are asked for and
    not known yet are written to it.
    """
    k = min(member.n_neighbors, len(search) - 1)
    neighbors, squared = search.nearest(new, k)
    if kernel in ANGULAR:
        return neighbors, angular_similarity(squared)
    distance = as_kernel_takes_them(squared, kernel)
    _fill_means(means, search, neighbors, k, kernel)
    own, theirs = distance.mean(axis=1, keepdims=True), means[neighbors]
    if not (own.all() and theirs.all()):
        # The floor comes from fixed old rows: a new row must not depend on its company.
        n_probes = min(len(search), N_PROBES)
        probes = np.linspace(0, len(search) - 1, n_probes).astype(np.int64)
        _fill_means(means, search, probes, k, kernel)
        positive = means[probes][means[probes] > 0.0]
        floor = 1.0
        if positive.size:
            floor = min(RELATIVE_FLOOR * float(np.median(positive)), positive.min())
        own, theirs = (
            np.where(own > 0.0, own, floor),
            np.where(theirs > 0.0, theirs, floor),
        )
    scale = scaling_term(distance, own, theirs)
    similarity = SIMILARITY[kernel](distance, scale, member.mu)
    return neighbors, _or_nearest(similarity, distance)


def _fill_means(
    means: Array,
    search: NearestRows | NearestSparseRows | GivenRows,
    rows: NDArray[np.int64],
    n_neighbors: int,
    kernel: str,
) -> None:
    """Write the mean distance of old rows to their k nearest other old rows."""
    wanted = np.zeros(len(means), dtype=bool)
    wanted[rows] = True
    chosen = np.flatnonzero(wanted & np.isnan(means))
    own: Any = search.rows(chosen)
    index, squared = search.nearest(own, n_neighbors + 1)
    itself = index == chosen[:, None]
    # Among many copies a row may be missing from its own list; then the last goes.
    itself[~itself.any(axis=1), -1] = True
    others = squared[~itself].reshape(len(chosen), n_neighbors)
    means[chosen] = as_kernel_takes_them(others, kernel).mean(axis=1)


def _or_nearest(similarity: Array, distance: Array) -> Array:
    """Let the nearest rows decide where every similarity has vanished."""
    lost = similarity.sum(axis=1) == 0.0
    similarity[lost] = 1.0 / (1.0 + distance[lost])
    return similarity
