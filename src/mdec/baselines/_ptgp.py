"""Consensus by probability trajectories: by cutting (PTGP), by merging (PTA)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import linkage as hierarchy
from scipy.spatial.distance import squareform
from sklearn.utils._param_validation import StrOptions

from mdec._support.random import RandomState, consensus_stream
from mdec.baselines._estimator import Baseline, Count, documented, estimator_of
from mdec.baselines._starts import agreement_blocks, microclusters
from mdec.baselines._trajectories import BLOCK, trajectory_similarity
from mdec.consensus.dendrogram import cut
from mdec.consensus.partitions import numbered_by_appearance, trivial_partition
from mdec.ensemble import Ensemble
from mdec.numerics.affinity import leading_vectors, unit_rows
from mdec.numerics.kmeans import kmeans
from mdec.numerics.transfer import require_vectors

Array = NDArray[np.floating]


@documented()
def ptgp(
    ensemble: Ensemble,
    n_clusters: int,
    *,
    n_elite: int | None = None,
    n_steps: int | None = None,
    random_state: RandomState = None,
) -> NDArray[np.int32]:
    r"""Cut the graph of microclusters and base clusters by random walks (PTGP).

    Parameters
    ----------
    n_clusters : int
        Number of clusters, at most the number of base clusters.
    n_elite : int, default=None
        Neighbours that a microcluster keeps; None is :math:`\lfloor\sqrt{N_t}/2\rfloor`
        of the paper, at least 1 and at most 20, the cap of the authors' code.
    n_steps : int, default=None
        Steps of the walk; None as above.
    random_state : int, RandomState, Generator or None
        Seed of the eigen-solver and of k-means.

    Returns
    -------
    ndarray of shape (n_samples,)
        Labels, numbered in the order of first samples; fewer than `n_clusters` (with a
        warning) only if fewer samples are distinct.

    Notes
    -----
    Samples that share every label form :math:`N_t` microclusters. The random walks that
    start from them are compared, see `trajectory_similarity`; the weight between a
    microcluster i and a base cluster c is the mean similarity
    :math:`B_{ic} = \frac{1}{|c|} \sum_{j \in c} PTS_{ij}` to the microclusters inside,
    and the transfer cut minimises the normalised cut of this bipartite graph. Where the
    authors' code gives up and returns one cluster, this raises. Eigenvectors come from
    an iteration instead of a full decomposition.

    References
    ----------
    D. Huang, J.-H. Lai, C.-D. Wang, "Robust ensemble clustering using probability
    trajectories", IEEE Transactions on Knowledge and Data Engineering 28(5), 2016.
    """
    if (trivial := trivial_partition(ensemble, n_clusters)) is not None:
        return trivial
    labels, inverse, sizes = microclusters(ensemble)
    if sizes.size <= n_clusters:
        return numbered_by_appearance(inverse, n_clusters)
    require_vectors(ensemble.n_base_clusters, n_clusters)
    rng = consensus_stream(random_state)
    similarity = trajectory_similarity(labels, sizes, n_elite, n_steps)
    graph = _cluster_means(similarity, Ensemble(labels))
    embedding = _dense_transfer_cut(graph, n_clusters, rng)
    found = kmeans(embedding, n_clusters, rng)
    return numbered_by_appearance(found[inverse], n_clusters)


@documented(like=ptgp)
def pta(
    ensemble: Ensemble,
    n_clusters: int,
    *,
    linkage: str = "average",
    n_elite: int | None = None,
    n_steps: int | None = None,
    random_state: RandomState = None,  # noqa: ARG001
) -> NDArray[np.int32]:
    r"""Merge microclusters by the similarity of their random walks (PTA).

    Parameters
    ----------
    n_clusters : int
        Number of clusters; exactly that many come out if as many samples are distinct.
    linkage : {"average", "complete", "single"}, default="average"
        How the similarity of merged microclusters follows; the authors offer the three
        and report average linkage as the best.
    random_state : int, RandomState, Generator or None
        Not used: there is nothing random in it.

    Notes
    -----
    Linkage on :math:`1 - PTS`, see `trajectory_similarity`; microclusters, groups of
    samples that share every label, count alike, whatever their size. The last merges
    are undone, so ties cost no cluster. Where the graph of the walks falls into more
    parts than `n_clusters`, their similarity is zero and says nothing of which to
    merge; such parts are merged by the same linkage on the share of members that join
    them, where the authors' code takes the first.
    """
    if (trivial := trivial_partition(ensemble, n_clusters)) is not None:
        return trivial
    labels, inverse, sizes = microclusters(ensemble)
    if sizes.size <= n_clusters:
        return numbered_by_appearance(inverse, n_clusters)
    similarity = trajectory_similarity(labels, sizes, n_elite, n_steps)
    found, alike = _linked(1.0 - similarity, linkage, n_clusters)
    if not alike:
        found, _ = _linked(_apart(labels, found), linkage, n_clusters)
    return numbered_by_appearance(found[inverse], n_clusters)


def _cluster_means(similarity: Array, ensemble: Ensemble) -> Array:
    """Return the mean similarity of base clusters (rows) and microclusters."""
    indicator = ensemble.indicator().astype(similarity.dtype)
    to_clusters = indicator.T.tocsr()
    to_clusters.data /= np.repeat(
        ensemble.cluster_sizes, np.diff(to_clusters.indptr)
    ).astype(similarity.dtype)
    means = np.empty((ensemble.n_base_clusters, len(similarity)), similarity.dtype)
    for first in range(0, len(similarity), BLOCK):
        block = slice(first, first + BLOCK)
        means[:, block] = to_clusters @ np.ascontiguousarray(similarity[:, block])
    return means


def _dense_transfer_cut(
    graph: Array, n_vectors: int, rng: np.random.Generator
) -> Array:
    """Return unit rows of the transfer cut of a dense graph, base clusters by samples.

    The graph is one component but for weights that vanish, and the solver finds every
    copy of a repeated eigenvalue, so components need no treatment.
    """
    single = graph.dtype == np.float32
    tiny = np.finfo(graph.dtype).tiny
    degrees = graph.sum(axis=1, dtype=np.float64)
    sample_degrees = np.maximum(graph.sum(axis=0, dtype=np.float64), tiny)[:, None]
    scale = 1.0 / np.sqrt(np.maximum(degrees, tiny))[:, None]
    sample_degrees, scale = (a.astype(graph.dtype) for a in (sample_degrees, scale))

    def to_samples(block: Array) -> Array:
        image: Array = graph.T @ (scale * block)
        image /= sample_degrees
        return image

    def apply(block: Array) -> Array:
        image: Array = scale * (graph @ to_samples(block))
        return image

    component = np.zeros(degrees.size, dtype=np.int64)
    tol, dtype = (1e-4, np.float32) if single else (1e-6, np.float64)
    vectors = leading_vectors(
        apply, degrees, component, n_vectors, rng, tol=tol, dtype=dtype, least=0.0
    )
    return unit_rows(to_samples(vectors.astype(graph.dtype)).astype(np.float64))


def _linked(
    distance: Array, method: str, n_clusters: int
) -> tuple[NDArray[np.int32], bool]:
    """Merge by linkage as long as two groups are alike, or down to `n_clusters`.

    Groups at a distance of one have nothing in common. Returns the groups, and whether
    they are as few as asked for.
    """
    np.fill_diagonal(distance, 0.0)
    tree = hierarchy(squareform(distance, checks=False), method)
    n_rows = len(distance)
    # Each merge names two clusters, each known by one of its rows.
    row = np.arange(2 * n_rows - 1)
    for step, (left, _) in enumerate(tree[:, :2].astype(np.int64)):
        row[n_rows + step] = row[left]
    pairs = row[tree[:, :2].astype(np.int64)]
    n_groups = n_rows - int(np.count_nonzero(tree[:, 2] < 1.0))
    groups = cut(pairs, -tree[:, 2], n_rows, max(n_groups, n_clusters))
    return groups, n_groups <= n_clusters


def _apart(labels: NDArray[np.int32], groups: NDArray[np.int32]) -> Array:
    """Return half the share of members that part two microclusters; zero in a group."""
    distance = np.empty((len(labels), len(labels)))
    first = 0
    for counts in agreement_blocks(labels, BLOCK):
        block = slice(first, first + len(counts))
        distance[block] = 0.5 - 0.5 * counts / labels.shape[1]
        distance[block][groups[block, None] == groups] = 0.0
        first += len(counts)
    return distance


@estimator_of(ptgp)
class PTGP(Baseline):
    """Probability trajectory based graph partitioning."""

    n_elite: Count | None = None
    n_steps: Count | None = None


@estimator_of(pta)
class PTA(Baseline):
    """Probability trajectory accumulation."""

    linkage: Annotated[str, StrOptions({"average", "complete", "single"})] = "average"
    n_elite: Count | None = None
    n_steps: Count | None = None
