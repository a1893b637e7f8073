"""One member from its graph, and what a member costs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdec.base.graphs import DENSE_SAMPLES, graph_from_distances, similarity_graph
from mdec.base.kernels import ANGULAR
from mdec.base.landmarks import landmark_memory
from mdec.base.spectral import spectral_partition
from mdec.ensemble.plan import Member, Plan
from mdec.numerics.magnitude import has_safe_scale
from mdec.numerics.neighbors import distances_about_mean
from mdec.preparation.recipes import Versions

Array = NDArray[np.floating]

# What a member raises that cannot be made; another draw may do better.
MEMBER_ERRORS = (ValueError, FloatingPointError, np.linalg.LinAlgError)


def member_similarity(X: Any, member: Member, plan: Plan) -> sparse.csr_array:
    """Return the similarity graph of one member, Eqs. 8 to 10.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features), or Versions
        All features; in versions where members draw their own preparation.
    member : Member
        What to make it with.
    plan : Plan
        What it shares with the others.

    Returns
    -------
    csr_array of shape (n_samples, n_samples)
        Symmetric, non-negative, no self-loops.
    """
    versions = X if isinstance(X, Versions) else Versions(X)
    rows, among = versions.seen(member.preparation)
    features = plan.features(member, among)
    how = plan.kernel, member.n_neighbors, member.mu
    if versions.about_mean is not None:
        centred = versions.about_mean.T[features].T
        distances = distances_about_mean(centred, lambda: rows.T[features].T)
        return graph_from_distances(distances, *how)
    return similarity_graph(rows.T[features].T, *how)


def centred_once(X: Array, kernel: str) -> Array | Versions:
    """Return few samples with what their members would all do again.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        At most `DENSE_SAMPLES` rows in float64.
    kernel : str
        Similarity kernel; the angular ones do not use the mean.

    Returns
    -------
    ndarray or Versions
        X itself where members must look at their own scale or direction.
    """
    if kernel in ANGULAR or not has_safe_scale(X):
        return X
    return Versions(X, about_mean=X - X.mean(axis=0))


def base_clustering(X: Any, member: Member, plan: Plan) -> NDArray[np.int32]:
    """Return the labels of one member, Eqs. 11 to 13.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features), or Versions
        All features; in versions where members draw their own preparation.
    member : Member
        What to make it with.
    plan : Plan
        What it shares with the others.

    Returns
    -------
    ndarray of shape (n_samples,)
        Labels below the number of clusters asked for; some may be missing.
    """
    return spectral_partition(
        member_similarity(X, member, plan),
        member.n_clusters,
        solver=plan.stream(member, "solver"),
        assign=plan.stream(member, "kmeans"),
    )


def member_memory(plan: Plan, n_stored: int | None = None) -> int:
    """Estimate the bytes that one base clustering takes beside the data.

    Parameters
    ----------
    plan : Plan
        What the members share.
    n_stored : int, optional
        Numbers that sparse data store; None for dense ones.

    Returns
    -------
    int
        Bytes.
    """
    if plan.base == "landmark":
        return landmark_memory(plan, n_stored)
    n_samples, n_drawn = plan.n_samples, plan.n_drawn
    if n_stored is not None:
        # The subspace, centred, and once more feature by feature; the tile of products
        # and the candidate pairs as of dense rows.
        pairs = 134 * (2 * plan.n_neighbors_range[1] + 16)
        subspace = int(48 * n_stored * plan.sampling_ratio)
        return subspace + n_samples * pairs + 2**25
    if n_samples <= DENSE_SAMPLES:
        # The subspace twice beside its products, or once beside the matrices of
        # distances, scales and similarities.
        numbers = max(2 * n_drawn + 2.2 * n_samples, n_drawn + 5.3 * n_samples)
        return int(8 * n_samples * numbers) + 2**20
    # The subspace and its factors, both in float64 where float32 does not do, and the
    # buffers and copies of the candidate pairs, which outweigh the eigen-solver's.
    n_candidates = 2 * plan.n_neighbors_range[1] + 16
    return n_samples * (32 * n_drawn + 134 * n_candidates) + 2**20
