"""The dendrogram of average linkage on the co-association, Eqs. 24 to 26."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from mdec._support.memory import available_memory
from mdec.coassociation import coassociation_factor
from mdec.consensus.partitions import alike_together
from mdec.ensemble import Ensemble

Array = NDArray[np.floating]

# Above this many distinct samples the triangle of similarities is kept in float32.
DOUBLE_PRECISION_SAMPLES = 4000

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
        from mdec.engines import tensors

        place = tensors.find_device(device)
        n_bytes = np.dtype(dtype).itemsize * (n_rows + factor.shape[1]) * n_rows
        if tensors.fits(n_bytes, place):
            return tensors.average_linkage(factor, sizes, dtype, place)
    from mdec.numerics import loops

    arrays = factor.indptr.astype(np.int64), factor.indices.astype(np.int32)
    n_entries = loops.triangle_entries(n_rows)
    if n_entries * np.dtype(dtype).itemsize > triangle_budget():
        return loops.factored_linkage(*arrays, factor.data, factor.shape[1], sizes)
    triangle = np.empty(n_entries, dtype=dtype)
    loops.triangle_of_products(
        *arrays, factor.data.astype(dtype), factor.shape[1], triangle
    )
    return loops.average_linkage(triangle, sizes)


def triangle_budget() -> float:
    """Return the bytes that the triangle of similarities may take."""
    available = available_memory()
    return min(MAX_TRIANGLE_BYTES, np.inf if available is None else 0.5 * available)


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
