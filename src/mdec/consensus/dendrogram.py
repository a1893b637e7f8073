"""The dendrogram of average linkage on the co-association, Eqs. 24 to 26."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from mdec._support.memory import available_memory
from mdec.coassociation import coassociation_factor, presence_rows
from mdec.consensus.partitions import alike_together, require_for_consensus
from mdec.ensemble import Ensemble
from mdec.numerics.magnitude import to_power

Array = NDArray[np.floating]

# Above this many distinct samples the triangle of similarities is kept in float32.
DOUBLE_PRECISION_SAMPLES = 4000

# Up to this many a square of all pairs is as fast as a triangle, and a shorter loop,
# for which people wait less on their first run.
SQUARE_SAMPLES = 1000

# 7 GB are the triangle of 59,000 samples.
MAX_TRIANGLE_BYTES = 7e9


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
    similar to one of them. Of equal similarities the pair with the lowest samples is
    merged first, a region being named by its lowest sample; similarities are equal if
    they differ by less than about 1e-9 of the largest. Above 4000 distinct samples
    those of similar labels are numbered together, and similarities are in float32,
    whose rounding may tell equal ones apart. Where members leave samples out, see
    `mdec.consensus.hierarchical`.
    """
    first, group, sizes = ensemble.microclusters
    require_for_consensus(ensemble, linkage_memory(ensemble, len(first)))
    factor = coassociation_factor(ensemble, weights)
    factor.eliminate_zeros()
    own = np.asarray(factor.power(2).sum(axis=1)).ravel()
    copies = np.setdiff1d(np.arange(ensemble.n_samples), first)
    originals = first[group[copies]]
    if len(first) > DOUBLE_PRECISION_SAMPLES:
        order = alike_together(ensemble.labels[first])
    else:
        order = np.argsort(first)
    first, sizes = first[order], sizes[order]
    present = None
    if not ensemble.is_complete:
        present = presence_rows(ensemble.labels[first])
    pairs, similarities = _linkage(factor[first], sizes, device, present)
    return (
        np.concatenate([np.stack([originals, copies], axis=1), first[pairs]]),
        np.concatenate([own[copies], similarities]),
    )


def linkage_memory(ensemble: Ensemble, n_distinct: int) -> int:
    """Estimate the bytes of the factor, and of the triangle if there is one."""
    # Rows of presence are dense, and there twice.
    each = 76 if ensemble.is_complete else 76 + 24
    triangle = _triangle_bytes(n_distinct)
    kept = triangle if triangle <= triangle_budget() else 0
    return each * ensemble.labels.size + kept + 2**20


def _triangle_bytes(n_rows: int) -> int:
    if n_rows <= SQUARE_SAMPLES:
        return 8 * n_rows * n_rows
    return _precision(n_rows).itemsize * n_rows * (n_rows + 1) // 2


def _precision(n_rows: int) -> np.dtype[np.floating]:
    single = n_rows > DOUBLE_PRECISION_SAMPLES
    return np.dtype(np.float32 if single else np.float64)


def _linkage(
    factor: sparse.csr_array,
    sizes: NDArray[np.intp],
    device: str,
    present: Array | None = None,
) -> tuple[NDArray[np.int64], Array]:
    """Merge the rows of a factor by the mean of their products.

    With rows of presence, products are divided by those of them.

    A triangle of all means is fastest; where it would take too much memory, means are
    computed from the factor when they are needed. In a large one all regions that are
    each other's most similar merge in one pass.
    """
    n_rows = factor.shape[0]
    dtype = _precision(n_rows)
    shift = tie_shift(float(factor.power(2).sum(axis=1).max()), dtype.type)
    if device != "cpu" and present is None:
        from mdec.engines import tensors

        place = tensors.find_device(device)
        n_bytes = dtype.itemsize * (n_rows + factor.shape[1]) * n_rows
        if tensors.fits(n_bytes, place):
            found = tensors.average_linkage(
                factor, sizes, dtype.type, place, float(shift)
            )
            return in_order(*found)
    from mdec.numerics import loops

    arrays = factor.indptr.astype(np.int64), factor.indices.astype(np.int32)
    if n_rows <= SQUARE_SAMPLES and present is None:
        found = loops.linkage_of_products(
            *arrays, factor.data, factor.shape[1], sizes, float(shift)
        )
        return in_order(*found)
    n_entries = loops.triangle_entries(n_rows)
    if n_entries * dtype.itemsize > triangle_budget():
        found = loops.factored_linkage(
            *arrays, factor.data, factor.shape[1], sizes, float(shift)
        )
        return in_order(*found)
    triangle = np.empty(n_entries, dtype=dtype)
    loops.triangle_of_products(
        *arrays, factor.data.astype(dtype), factor.shape[1], triangle
    )
    if present is not None:
        loops.divide_by_products(present.astype(dtype), triangle)
    if dtype == np.float64:
        return in_order(*loops.average_linkage(triangle, sizes, shift))
    pairs, similarities, names, sizes = loops.merge_mutual(triangle, sizes)
    if names.size > 1:
        last, rest = loops.average_linkage(triangle, sizes, shift)
        pairs = np.concatenate([pairs, names[last]])
        similarities = np.concatenate([similarities, rest])
    return in_order(pairs, similarities)


def tie_shift(largest: float, dtype: type[np.floating]) -> np.floating:
    """Return what rounds similarities when it is added to them and taken away.

    Parameters
    ----------
    largest : float
        What the similarities are at most.
    dtype : dtype
        Their precision.

    Returns
    -------
    floating
        Rounds to about 1e-9 of the largest; zero in float32, which has fewer digits.

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


def _rounded(similarities: Array) -> Array:
    shift = tie_shift(float(similarities.max(initial=0.0)), np.float64)
    return (similarities + shift) - shift


def in_order(
    pairs: NDArray[np.int64], similarities: Array
) -> tuple[NDArray[np.int64], Array]:
    """Sort merges by falling similarity, equal ones by the rows that name them."""
    order = np.lexsort((pairs[:, 1], pairs[:, 0], -_rounded(similarities)))
    return pairs[order], similarities[order]


def triangle_budget() -> float:
    """Return the bytes that the triangle of similarities may take."""
    available = available_memory()
    return min(MAX_TRIANGLE_BYTES, np.inf if available is None else 0.5 * available)


def cut(
    pairs: NDArray[np.int64], similarities: Array, n_samples: int, n_clusters: int
) -> NDArray[np.int32]:
    """Undo the last merges until the asked number of clusters is left.

    Of equal similarities those are undone that come last.

    Parameters
    ----------
    pairs : ndarray of shape (n_samples - 1, 2)
        Samples of the regions that merge, as from `merges`.
    similarities : ndarray of shape (n_samples - 1,)
        Similarity of each merge.
    n_samples : int
        Number of samples.
    n_clusters : int
        Number of clusters.

    Returns
    -------
    ndarray of shape (n_samples,)
        Cluster of each sample.
    """
    order = np.argsort(-_rounded(similarities), kind="stable")
    order = order[: n_samples - n_clusters]
    rows, columns = pairs[order].T
    graph = sparse.coo_array(
        (np.ones(order.size), (rows, columns)), shape=(n_samples, n_samples)
    )
    labels: NDArray[np.int32] = connected_components(graph, directed=False)[1]
    return labels
