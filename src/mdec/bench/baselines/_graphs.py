"""Consensus by cutting a graph or by merging samples, with the weights of each method.

LWGP cuts and LWEA merges by local weights, PTGP and PTA by probability trajectories;
EAC merges by the plain co-association.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.cluster.hierarchy import fcluster
from scipy.cluster.hierarchy import linkage as hierarchy
from scipy.spatial.distance import squareform

from mdec._support.arrays import Array
from mdec._support.memory import require_memory
from mdec._support.random import RandomState, consensus_stream
from mdec.bench.baselines._options import Labels, consensus_function
from mdec.consensus import bipartite, hierarchical
from mdec.consensus.partitions import number_by_appearance
from mdec.ensemble import Ensemble
from mdec.numerics.affinity import leading_vectors, unit_rows
from mdec.numerics.kmeans import kmeans
from mdec.numerics.transfer import require_vectors
from mdec.weights import ensemble_driven_cluster_index, uniform_weights

# The authors' code caps the elite neighbours and the steps of the walk at 20.
GREATEST_LENGTH = 20

# Similarity of a microcluster without any neighbour, from the authors' code.
_ISOLATED = 1e-20

# Rows of a table of pairs that are filled together.
BLOCK = 128

# Above this many microclusters the dense matrices are kept in float32.
DOUBLE_PRECISION_ROWS = 4000


@consensus_function()
def lwgp(
    ensemble: Ensemble,
    n_clusters: int,
    *,
    theta: float = 0.4,
    random_state: RandomState = None,
) -> Labels:
    r"""Cut the locally weighted graph of samples and base clusters (LWGP).

    Parameters
    ----------
    n_clusters : int
        Number of clusters, at most the number of base clusters.
    theta : float, default=0.4
        Scale of the entropy in the clusters' weights; the authors' value.

    Notes
    -----
    The normalised cut of the bipartite graph :math:`B = H\,diag(ECI)`, found by the
    transfer cut. The weight :math:`ECI(C) = \exp(-H(C) / (\theta M))` tells how far the
    ensemble agrees with a cluster. With :math:`\theta = 1` it is the consensus of
    MDEC-BG. Eigenvectors come from an iteration instead of a full decomposition.

    References
    ----------
    D. Huang, C.-D. Wang, J.-H. Lai, "Locally weighted ensemble clustering", IEEE
    Transactions on Cybernetics 48(5), 2018.
    """
    weights = ensemble_driven_cluster_index(ensemble, theta)
    return bipartite(ensemble, n_clusters, weights, random_state=random_state)


@consensus_function(like=lwgp)
def lwea(
    ensemble: Ensemble,
    n_clusters: int,
    *,
    theta: float = 0.4,
    random_state: RandomState = None,
) -> Labels:
    r"""Merge samples by average linkage on the locally weighted co-association (LWEA).

    Parameters
    ----------
    n_clusters : int
        Number of clusters; exactly that many come out.
    random_state : int, RandomState, Generator or None
        Not used: there is nothing random in it.

    Notes
    -----
    The two clusters with the largest mean of :math:`A = H\,diag(ECI)\,H^T / M` merge
    until `n_clusters` are left, with :math:`ECI(C) = \exp(-H(C) / (\theta M))`. The
    authors cut the tree at a height, which gives fewer clusters under ties; here the
    last merges are undone.
    """
    weights = ensemble_driven_cluster_index(ensemble, theta)
    return hierarchical(ensemble, n_clusters, weights, random_state=random_state)


@consensus_function(like=lwea)
def eac(
    ensemble: Ensemble, n_clusters: int, *, random_state: RandomState = None
) -> Labels:
    r"""Merge samples by average linkage on the co-association (EAC).

    Notes
    -----
    The two clusters with the largest mean of :math:`A = H H^T / M`, how often base
    clusters join two samples, merge until `n_clusters` are left. The authors use single
    and average linkage; this is average.

    References
    ----------
    A. L. N. Fred, A. K. Jain, "Combining multiple clusterings using evidence
    accumulation", IEEE Transactions on Pattern Analysis and Machine Intelligence 27(6),
    2005.
    """
    weights = uniform_weights(ensemble)
    return hierarchical(ensemble, n_clusters, weights, random_state=random_state)


@consensus_function(like=lwgp)
def ptgp(
    ensemble: Ensemble,
    n_clusters: int,
    *,
    n_elite: int | None = None,
    n_steps: int | None = None,
    random_state: RandomState = None,
) -> Labels:
    r"""Cut the graph of microclusters and base clusters by random walks (PTGP).

    Parameters
    ----------
    n_elite : int, default=None
        Neighbours that a microcluster keeps; None is :math:`\lfloor\sqrt{N_t}/2\rfloor`
        of the paper, at least 1 and at most 20, the cap of the authors' code.
    n_steps : int, default=None
        Steps of the walk; None as above.

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
    labels, inverse, sizes = microclusters(ensemble)
    if sizes.size <= n_clusters:
        return number_by_appearance(inverse, n_clusters)
    require_vectors(ensemble.n_base_clusters, n_clusters)
    rng = consensus_stream(random_state)
    similarity = trajectory_similarity(labels, sizes, n_elite, n_steps)
    graph = _cluster_means(similarity, Ensemble(labels))
    embedding = _dense_transfer_cut(graph, n_clusters, rng)
    found = kmeans(embedding, n_clusters, rng)
    return number_by_appearance(found[inverse], n_clusters)


@consensus_function(like=ptgp)
def pta(
    ensemble: Ensemble,
    n_clusters: int,
    *,
    linkage: str = "average",
    n_elite: int | None = None,
    n_steps: int | None = None,
    random_state: RandomState = None,  # noqa: ARG001
) -> Labels:
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
    labels, inverse, sizes = microclusters(ensemble)
    if sizes.size <= n_clusters:
        return number_by_appearance(inverse, n_clusters)
    similarity = trajectory_similarity(labels, sizes, n_elite, n_steps)
    # Rounding may put the cosine of equal walks above one.
    distance = np.maximum(1.0 - similarity, 0.0)
    found, alike = _link(distance, linkage, n_clusters)
    if not alike:
        # Half the share of members that part two of them; zero in a group.
        distance = 0.5 - 0.5 * agreements(Ensemble(labels)) / labels.shape[1]
        distance[found[:, None] == found] = 0.0
        found, _ = _link(distance, linkage, n_clusters)
    return number_by_appearance(found[inverse], n_clusters)


def agreement_blocks(
    ensemble: Ensemble, weights: Array | None = None
) -> Iterator[tuple[slice, Array]]:
    """Yield some rows of the summed weights of the members that join two samples.

    Members weigh one if no weights are given; one that leaves a sample out joins it
    with none, not even with itself.
    """
    members = ensemble.indicator()
    others = members.T.tocsr()
    if weights is not None:
        of_clusters = np.repeat(weights, ensemble.cluster_counts)
        others.data *= np.repeat(of_clusters, ensemble.cluster_sizes)
    for first in range(0, ensemble.n_samples, BLOCK):
        rows = slice(first, first + BLOCK)
        yield rows, (members[rows] @ others).toarray()


def agreements(ensemble: Ensemble, weights: Array | None = None) -> Array:
    """Return the table of which `agreement_blocks` yields some rows at a time."""
    table = np.empty((ensemble.n_samples, ensemble.n_samples))
    for rows, sums in agreement_blocks(ensemble, weights):
        table[rows] = sums
    return table


def microclusters(
    ensemble: Ensemble,
) -> tuple[Labels, NDArray[np.int64], NDArray[np.int64]]:
    """Return the microclusters of an ensemble in the order of their labels.

    Labels of each group, group of each sample, and size of each group. Unlike that of
    `Ensemble.microclusters`, the order does not depend on a hash.

    Examples
    --------
    >>> labels, inverse, sizes = microclusters(Ensemble.from_labels([[0], [1], [0]]))
    >>> inverse, sizes
    (array([0, 1, 0]), array([2, 1]))
    """
    first, group, sizes = ensemble.microclusters
    order = np.lexsort(ensemble.labels[first].T[::-1])
    return ensemble.labels[first[order]], np.argsort(order)[group], sizes[order]


def trajectory_similarity(
    labels: Labels,
    sizes: NDArray[np.int64],
    n_elite: int | None = None,
    n_steps: int | None = None,
) -> Array:
    r"""Return the similarity of the random walks from each pair of microclusters.

    The trajectory of i, T = `n_steps` long, stacks the rows i of
    :math:`P, P^2, ..., P^T`; the similarity is the cosine
    :math:`PTS_{ij} = G_{ij} / \sqrt{G_{ii} G_{jj}}` with
    :math:`G = \sum_{t=1}^T P^t (P^t)^T`. It is symmetric and in [0, 1], float32 above
    4000 microclusters. A microcluster without neighbours has 1e-20 with all, as in the
    authors' code.
    """
    length = max(1, min(GREATEST_LENGTH, math.isqrt(sizes.size) // 2))
    dtype = np.float64 if sizes.size <= DOUBLE_PRECISION_ROWS else np.float32
    require_memory(
        3 * sizes.size**2 * np.dtype(dtype).itemsize,
        f"comparing the random walks from {sizes.size} microclusters",
        "use LWGP, or an ensemble of fewer members or larger clusters",
    )
    step = transition_matrix(labels, sizes, n_elite or length).astype(dtype)
    gram: Array = (step @ step.T.tocsr()).toarray()
    # The powers of P are dense, P is not. As G_{t+1} = P (I + G_t) P^T, each step takes
    # two products of P with a dense matrix: O(T N_t nnz(P)) in place of O(T N_t^3).
    for _ in range((n_steps or length) - 1):
        gram[np.diag_indices(sizes.size)] += 1.0
        gram = (step @ gram).T
        gram = step @ gram
    gram += gram.T
    gram *= 0.5
    norms = np.sqrt(np.diagonal(gram).copy())
    isolated = norms == 0.0
    scale = 1.0 / np.where(isolated, 1.0, norms)
    gram *= np.multiply.outer(scale, scale)
    gram[isolated] = _ISOLATED
    gram[:, isolated] = _ISOLATED
    return gram


def transition_matrix(
    labels: Labels, sizes: NDArray[np.int64], n_elite: int
) -> sparse.csr_array:
    r"""Return the transition probabilities between elite neighbours.

    :math:`P_{ij} = n_j W_{ij} / \sum_k n_k W_{ik}`, where W holds the share of members
    that join i and j if either is among the other's `n_elite` neighbours; ties with the
    last are kept too. Rows of zeros for microclusters that are joined with no other.
    """
    kth = max(sizes.size - n_elite, 0)
    blocks = []
    for rows, counts in agreement_blocks(Ensemble(labels)):
        np.fill_diagonal(counts[:, rows], 0.0)
        threshold = np.partition(counts, kth, axis=1)[:, [kth]]
        blocks.append(sparse.csr_array(np.where(counts >= threshold, counts, 0.0)))
    elite = sparse.csr_array(sparse.vstack(blocks))
    joined = sparse.csr_array(elite.maximum(elite.T.tocsr()))
    joined.data *= sizes[joined.indices]
    totals = np.asarray(joined.sum(axis=1)).ravel()
    joined.data /= np.repeat(totals, np.diff(joined.indptr))
    return joined


def _cluster_means(similarity: Array, ensemble: Ensemble) -> Array:
    """Return the mean similarity of base clusters (rows) and microclusters."""
    dtype, sizes = similarity.dtype, ensemble.cluster_sizes
    to_clusters = ensemble.indicator().T.tocsr().astype(dtype)
    to_clusters.data /= np.repeat(sizes, sizes).astype(dtype)
    means: Array = to_clusters @ similarity
    return means


def _dense_transfer_cut(
    graph: Array, n_vectors: int, rng: np.random.Generator
) -> Array:
    """Return unit rows of the transfer cut of a dense graph, base clusters by samples.

    It is overwritten. The graph is one component but for weights that vanish, and the
    solver finds every copy of a repeated eigenvalue, so components need no treatment.
    """
    dtype = graph.dtype.type
    tiny = np.finfo(dtype).tiny
    degrees = np.maximum(graph.sum(axis=1, dtype=np.float64), tiny)
    sample_degrees = np.maximum(graph.sum(axis=0, dtype=np.float64), tiny)
    graph /= np.sqrt(degrees).astype(dtype)[:, None]
    graph /= np.sqrt(sample_degrees).astype(dtype)

    def apply(block: Array) -> Array:
        image: Array = graph @ (graph.T @ block)
        return image

    component = np.zeros(degrees.size, dtype=np.int64)
    tol = 1e-4 if dtype == np.float32 else 1e-6
    vectors = leading_vectors(
        apply, degrees, component, n_vectors, rng, tol=tol, dtype=dtype, least=0.0
    )
    return unit_rows((graph.T @ vectors.astype(dtype)).astype(np.float64))


def _link(distance: Array, method: str, n_clusters: int) -> tuple[Labels, bool]:
    """Merge by linkage as long as two groups are alike, or down to `n_clusters`.

    Groups at a distance of one have nothing in common. Returns the groups, and whether
    they are as few as asked for.
    """
    np.fill_diagonal(distance, 0.0)
    tree = hierarchy(squareform(distance, checks=False), method)
    n_rows = len(distance)
    n_groups = n_rows - int(np.count_nonzero(tree[:, 2] < 1.0))
    # By their numbers the last merges are undone, which ties of heights do not change.
    steps = np.arange(n_rows - 1.0)
    last = n_rows - max(n_groups, n_clusters) - 1
    groups = fcluster(tree, last, "monocrit", monocrit=steps)
    return groups, n_groups <= n_clusters
