"""One member from its graph, and what a member costs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdec.base.given import Given
from mdec.base.graphs import DENSE_SAMPLES, graph_from_distances, similarity_graph
from mdec.base.kernels import ANGULAR
from mdec.base.landmarks import landmark_memory
from mdec.base.own import OwnParts
from mdec.base.spectral import spectral_partition
from mdec.ensemble.plan import Member, Plan
from mdec.numerics.magnitude import has_safe_scale
from mdec.numerics.neighbors import distances_about_mean
from mdec.preparation.recipes import Versions

Array = NDArray[np.floating]

# What members are made of.
Data = Array | Versions | OwnParts | Given

# What a member raises that cannot be made; another draw may do better.
MEMBER_ERRORS = (ValueError, FloatingPointError, np.linalg.LinAlgError)


def member_similarity(X: Any, member: Member, plan: Plan) -> sparse.csr_array:
    """Return the similarity graph of one member, Eqs. 8 to 10.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features), Versions, OwnParts, Given
        All features; in versions where members draw their own preparation, with a
        user's own functions, or all pairs instead.
    member : Member
        What to make it with.
    plan : Plan
        What it shares with the others.

    Returns
    -------
    csr_array of shape (n_clustered, n_clustered)
        Of the samples that the member draws: symmetric, non-negative, no self-loops.
    """
    kernel = plan.kernel_of(member)
    how = kernel, member.n_neighbors, member.mu
    if isinstance(X, Given):
        return X.among(plan.samples(member)).graph(*how)
    if isinstance(X, OwnParts):
        return X.measured(_subspace(X.versions, member, plan)).graph(*how)
    versions = X if isinstance(X, Versions) else Versions(X)
    rows, among = versions.seen(member.preparation)
    features, samples = plan.features(member, among), plan.samples(member)
    if versions.about_mean is not None and kernel not in ANGULAR:
        centred = _taken(versions.about_mean, features, samples)

        def original(lost: NDArray[np.int64]) -> Array:
            return _taken(rows, features, lost if samples is None else samples[lost])

        return graph_from_distances(distances_about_mean(centred, original), *how)
    return similarity_graph(_taken(rows, features, samples), *how)


def _subspace(versions: Versions, member: Member, plan: Plan) -> Array:
    """Return a copy of the rows that a member sees, for a user's own function."""
    rows, among = versions.seen(member.preparation)
    drawn = _taken(rows, plan.features(member, among), plan.samples(member))
    return np.array(drawn, order="C")


def _taken(
    X: Any, features: NDArray[np.int64], samples: NDArray[np.int64] | None
) -> Any:
    """Return what a member looks at, in columns; None for all samples."""
    if sparse.issparse(X):
        return (X if samples is None else X[samples])[:, features]
    if samples is None:
        return X.T[features].T
    return X.T[np.ix_(features, samples)].T


def centred_once(X: Array, kernels: Iterable[str]) -> Array | Versions:
    """Return few samples with what their members would all do again.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        At most `DENSE_SAMPLES` rows in float64.
    kernels : iterable of str
        Those that members may have; the angular ones do not use the mean.

    Returns
    -------
    ndarray or Versions
        X itself where members must look at their own scale or direction.
    """
    if set(kernels) <= set(ANGULAR) or not has_safe_scale(X):
        return X
    return Versions(X, about_mean=X - X.mean(axis=0))


def base_clustering(X: Any, member: Member, plan: Plan) -> NDArray[np.int32]:
    """Return the labels of one member, Eqs. 11 to 13.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features), Versions, OwnParts, Given
        All features; in versions where members draw their own preparation, with a
        user's own functions, or all pairs instead.
    member : Member
        What to make it with.
    plan : Plan
        What it shares with the others.

    Returns
    -------
    ndarray of shape (n_samples,)
        Labels below the number of clusters asked for, if it was; some may be missing.
        -1 for samples that the member leaves out.
    """
    if isinstance(X, OwnParts) and X.base is not None:
        rng = plan.stream(member, "own_base")
        rows = _subspace(X.versions, member, plan)
        found = X.labels(rows, member.n_clusters, rng)
    else:
        found = spectral_partition(
            member_similarity(X, member, plan),
            member.n_clusters,
            solver=plan.stream(member, "solver"),
            assign=plan.stream(member, "kmeans"),
        )
    samples = plan.samples(member)
    if samples is None:
        return found
    labels = np.full(plan.n_samples, -1, dtype=np.int32)
    labels[samples] = found
    return labels


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
    n_samples, n_drawn = plan.n_clustered, plan.n_drawn
    if plan.metric is not None:
        # The rows and what is made of them, the matrix as it is given and as it is
        # taken, and a graph from it.
        return int(8 * n_samples * (2 * n_drawn + 8 * n_samples)) + 2**20
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
