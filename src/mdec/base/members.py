"""One member from its graph, Eqs. 8 to 13, and what a member costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from mdec._support.arrays import Array
from mdec.base import Base, cluster_by_function, measure_pairs
from mdec.base.copies import CopiesError, group_copies
from mdec.base.graphs import (
    CACHED_ENTRIES,
    DENSE_SAMPLES,
    graph_from_distances,
    similarity_graph,
)
from mdec.base.kernels import ANGULAR
from mdec.base.landmarks import landmark_memory
from mdec.base.pairs import Metric, Pairs
from mdec.ensemble.plan import Member, Plan
from mdec.numerics.affinity import row_sums, sparse_leading_vectors, unit_rows
from mdec.numerics.kmeans import kmeans
from mdec.numerics.magnitude import has_safe_scale
from mdec.numerics.neighbors import distances_about_mean
from mdec.preparation.recipes import Versions

# What a member raises that cannot be made; another draw may do better.
MEMBER_ERRORS = (ValueError, FloatingPointError, np.linalg.LinAlgError)

# Features that tell most rows apart.
FEW_FEATURES = 8


def member_similarity(
    X: Any, member: Member, plan: Plan, metric: Metric | None = None
) -> sparse.csr_array:
    """Return the similarity graph of one member, Eqs. 8 to 10.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features), Versions or Pairs
        All features; in versions where members draw their own preparation; or all
        pairs instead.
    member : Member
        What to make it with.
    plan : Plan
        What it shares with the others.
    metric : callable, optional
        A user's own measure of the pairs of rows.

    Returns
    -------
    csr_array of shape (n_clustered, n_clustered)
        Of the samples that the member draws: symmetric, non-negative, no self-loops.
    """
    drawn = plan.kernel_of(member), member.n_neighbors, member.mu
    if isinstance(X, Pairs):
        return X.among(plan.samples(member)).graph(*drawn)
    if metric is not None:
        return measure_pairs(metric, DrawnRows.of(X, member, plan).copy()).graph(*drawn)
    return DrawnRows.of(X, member, plan).graph(*drawn)


@dataclass(frozen=True)
class DrawnRows:
    """What a member looks at: some samples, or None for all, in some features.

    The rows are all of them; `about_mean` is their difference from their mean, where
    that is known.
    """

    rows: Any
    features: NDArray[np.int64]
    samples: NDArray[np.int64] | None
    about_mean: Array | None = None

    @classmethod
    def of(cls, X: Any, member: Member, plan: Plan) -> DrawnRows:
        """Draw samples and features again from the member's seed."""
        versions = X if isinstance(X, Versions) else Versions(X)
        rows, among = versions.select(member.preparation)
        features, samples = plan.features(member, among), plan.samples(member)
        return cls(rows, features, samples, versions.about_mean)

    def take(self, places: NDArray[np.int64] | None = None) -> Any:
        """Return rows at some places among the samples, in columns; None for all."""
        samples = self.samples
        if places is not None:
            samples = places if samples is None else samples[places]
        return self._take(self.rows, samples)

    def copy(self) -> Array:
        """Return a copy of the rows, for a user's own function."""
        return np.array(self.take(), order="C")

    def _take(self, X: Any, samples: NDArray[np.int64] | None) -> Any:
        if sparse.issparse(X):
            return (X if samples is None else X[samples])[:, self.features]
        if samples is not None:
            return X.T[np.ix_(self.features, samples)].T
        # The faster way copies all features first where they are no rows of X.T.
        if X.flags.f_contiguous:
            return X.T.take(self.features, axis=0).T
        return X.T[self.features].T

    def graph(
        self, kernel: str, n_neighbors: int, mu: float, means: Array | None = None
    ) -> sparse.csr_array:
        """Return their similarity graph; note their `means` as it does."""
        drawn = kernel, n_neighbors, mu
        if self.about_mean is None or kernel in ANGULAR:
            return similarity_graph(self.take(), *drawn, means)
        centred = self._take(self.about_mean, self.samples)
        return graph_from_distances(distances_about_mean(centred, self.take), *drawn)

    def few_distinct(self, most: int) -> NDArray[np.int32] | None:
        """Number equal rows alike if no more than so many are distinct, else None."""
        some = self.samples
        head = slice(most + 1) if some is None else some[: most + 1, None]
        if not sparse.issparse(self.rows):
            # Most often a few features tell enough rows apart. Zero has a sign.
            values = self.rows[head, self.features[:FEW_FEATURES]] + 0.0
            if len({row.tobytes() for row in values}) > most:
                return None
        if group_copies(self.rows[head, self.features], most) is None:
            return None
        return group_copies(self.take(), most)


def center_once(X: Array, kernels: Iterable[str]) -> Array | Versions:
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


def spectral_embedding(
    W: sparse.csr_array, n_vectors: int, rng: np.random.Generator
) -> Array:
    """Return the leading eigenvectors of a similarity graph, with rows of unit length.

    W is symmetric and non-negative; the generator starts the solver. The result has
    shape (n_samples, n_vectors).
    """
    # Of a symmetric graph, and without a transposed copy of it.
    component = connected_components(W, connection="strong")[1]
    degrees = row_sums(W)
    return unit_rows(sparse_leading_vectors(W, degrees, component, n_vectors, rng))


def spectral_partition(
    W: sparse.csr_array,
    n_clusters: int,
    *,
    solver: np.random.Generator,
    assign: np.random.Generator,
) -> NDArray[np.int32]:
    """Cut a similarity graph into clusters, Eqs. 11 and 13.

    Parameters
    ----------
    W : csr_array of shape (n_samples, n_samples)
        Symmetric and non-negative.
    n_clusters : int
        Number of clusters.
    solver : Generator
        Stream of the eigen-solver.
    assign : Generator
        Stream of k-means.

    Returns
    -------
    ndarray of shape (n_samples,)
        Labels.
    """
    return kmeans(spectral_embedding(W, n_clusters, solver), n_clusters, assign)


def base_clustering(
    X: Any,
    member: Member,
    plan: Plan,
    base: Base | None = None,
    metric: Metric | None = None,
    means: Array | None = None,
) -> NDArray[np.int32]:
    """Return the labels of one member, Eqs. 11 to 13.

    Parameters
    ----------
    X : ndarray, csr_array or Versions
        The data, as in `member_similarity`.
    member : Member
        What to make it with.
    plan : Plan
        What it shares with the others.
    base : callable, default=None
        Clusters in place of the graph.
    metric : callable, default=None
        As in `member_similarity`.
    means : ndarray of shape (n_clustered,), optional
        As in `similarity_graph`.

    Returns
    -------
    ndarray of shape (n_samples,)
        Labels below the member's number of clusters, unless by `base`; some may be
        missing. -1 for samples that the member leaves out.
    """
    if base is not None:
        rows, rng = (
            DrawnRows.of(X, member, plan).copy(),
            plan.stream(member, "own_base"),
        )
        found = cluster_by_function(base, rows, member.n_clusters, rng)
    elif isinstance(X, Pairs) or metric is not None:
        found = _cut_graph(member_similarity(X, member, plan, metric), member, plan)
    else:
        found = _cluster_rows(X, member, plan, means)
    return among_all_samples(found, member, plan)


def among_all_samples(
    found: NDArray[np.int32], member: Member, plan: Plan
) -> NDArray[np.int32]:
    """Return labels of all samples, -1 for those that the member leaves out."""
    samples = plan.samples(member)
    if samples is None:
        return found
    labels = np.full(plan.n_samples, -1, dtype=np.int32)
    labels[samples] = found
    return labels


def _cut_graph(W: sparse.csr_array, member: Member, plan: Plan) -> NDArray[np.int32]:
    return spectral_partition(
        W,
        member.n_clusters,
        solver=plan.stream(member, "solver"),
        assign=plan.stream(member, "kmeans"),
    )


def _cluster_rows(
    X: Any, member: Member, plan: Plan, means: Array | None
) -> NDArray[np.int32]:
    """Cluster the rows of a member, or the distinct ones where all have copies.

    Rows that are no more than the clusters wanted, but for copies, are the clusters.
    """
    rows = DrawnRows.of(X, member, plan)
    few = rows.few_distinct(member.n_clusters)
    if few is not None:
        return few
    kernel, k = plan.kernel_of(member), member.n_neighbors
    try:
        return _cut_graph(rows.graph(kernel, k, member.mu, means), member, plan)
    except CopiesError:
        drawn = rows.take()
        group = group_copies(drawn)
        assert group is not None
        distinct = drawn[np.unique(group, return_index=True)[1]]
        k = min(k, distinct.shape[0] - 1)
        graph = similarity_graph(distinct, kernel, k, member.mu)
        return _cut_graph(graph, member, plan)[group]


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
        # and the candidate pairs, of which ties make more than dense rows have.
        pairs = 134 * (2 * plan.n_neighbors_range[1] + 16)
        subspace = int(48 * n_stored * plan.max_features)
        return subspace + n_samples * pairs + 2**25
    if n_samples <= DENSE_SAMPLES:
        # The subspace thrice beside its products, or once beside the distances and the
        # similarities, and rows of these at a time.
        subspace, pairs = n_samples * n_drawn, n_samples**2
        cached = 5.2 * min(pairs, CACHED_ENTRIES)
        numbers = max(3 * subspace + 2.7 * pairs, subspace + 2.1 * pairs + cached)
        return int(8 * numbers) + 2**20
    # The subspace and its factors, both in float64 where float32 does not do, and the
    # buffers and copies of the candidate pairs, which outweigh the eigen-solver's.
    n_candidates = 2 * plan.n_neighbors_range[1] + 16
    return n_samples * (32 * n_drawn + 92 * n_candidates) + 2**20
