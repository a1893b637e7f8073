"""Consensus by balanced graph and hypergraph partitioning: CSPA, HGPA, MCLA."""

from __future__ import annotations

from functools import cache
from importlib.resources import as_file, files
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdec._support.arrays import Array
from mdec._support.memory import require_memory
from mdec._support.optional import import_optional
from mdec._support.random import RandomState, consensus_stream
from mdec.base.members import spectral_partition
from mdec.bench.baselines._graphs import agreement_blocks
from mdec.bench.baselines._options import Labels, consensus_function
from mdec.confidence import cluster_indicator
from mdec.consensus import bipartite
from mdec.consensus.partitions import number_by_appearance
from mdec.ensemble import Ensemble
from mdec.numerics.transfer import require_vectors

# The original code scales weights to this sum and rounds them to whole numbers.
WEIGHT_SUM = 10**8

# Imbalance that a part of a hypergraph may have, the original's UBfactor of 5.
IMBALANCE = 0.05

_TIE_NOISE = 1e-4

# The partitioner that needs no extra.
EXAMPLE = 'partitioner="spectral", random_state=0'


@consensus_function(example=EXAMPLE)
def cspa(
    ensemble: Ensemble,
    n_clusters: int,
    *,
    partitioner: str = "metis",
    random_state: RandomState = None,
) -> Labels:
    r"""Partition the co-association graph into parts of equal size (CSPA).

    Parameters
    ----------
    partitioner : {"metis", "spectral"}, default="metis"
        "metis" is the original's recursive bisection and needs the extra ``metis``;
        "spectral" is a normalised cut, which is not balanced: another method for those
        who cannot install the extra.
    random_state : int, RandomState, Generator or None
        Seed of the partitioner.

    Returns
    -------
    ndarray of shape (n_samples,)
        Labels, numbered in the order of first samples. METIS may leave a part empty
        when there are only a few samples for each; a warning then says so.

    Notes
    -----
    Minimises the weight :math:`\sum_{i < j, c(i) \neq c(j)} S_{ij}` of the cut of
    :math:`S = H H^T / M` under equal sizes of the parts. As in the original code, S
    without its diagonal is scaled to a sum of 1e8 and rounded, which drops the weakest
    pairs of ten thousand samples and more. Memory is O(N^2).

    References
    ----------
    A. Strehl, J. Ghosh, "Cluster ensembles: a knowledge reuse framework for combining
    multiple partitions", Journal of Machine Learning Research 3, 2002.
    """
    rng = consensus_stream(random_state)
    graph = rounded_coassociation(ensemble)
    labels = _partition_graph(graph, None, n_clusters, partitioner, rng)
    return number_by_appearance(labels, n_clusters)


@consensus_function(like=cspa, example=EXAMPLE)
def mcla(
    ensemble: Ensemble,
    n_clusters: int,
    *,
    partitioner: str = "metis",
    random_state: RandomState = None,
) -> Labels:
    r"""Partition the base clusters, then give each sample its likeliest part (MCLA).

    Parameters
    ----------
    n_clusters : int
        Number of clusters, at most the number of base clusters.
    random_state : int, RandomState, Generator or None
        Seed of the partitioner and of ties.

    Returns
    -------
    ndarray of shape (n_samples,)
        Labels, numbered in the order of first samples; fewer than `n_clusters` (with a
        warning) where a meta-cluster wins no sample, which is the method's own.

    Notes
    -----
    The graph joins base clusters by Jaccard's index :math:`|a \cap b| / |a \cup b|`;
    its vertices weigh as many samples as the clusters have, and both are scaled to
    sums of 1e8 and rounded, as in the original code. The parts are meta-clusters; a
    sample goes to the one with the largest mean
    :math:`\frac{1}{|P|} \sum_{c \in P} H_{ic}`, ties at random.
    """
    require_vectors(ensemble.n_base_clusters, n_clusters)
    rng = consensus_stream(random_state)
    sizes = ensemble.cluster_sizes
    weights = np.round(sizes * (WEIGHT_SUM / sizes.sum())).astype(np.int64)
    graph = jaccard_graph(ensemble)
    graph.data *= WEIGHT_SUM / graph.data.sum()
    graph = graph.rint().astype(np.int64)
    graph.eliminate_zeros()
    meta = _partition_graph(graph, weights, n_clusters, partitioner, rng)
    shares = association(ensemble, meta, n_clusters)
    shares += _TIE_NOISE * rng.random(shares.shape)
    return number_by_appearance(shares.argmax(axis=1), n_clusters)


@consensus_function(example=EXAMPLE)
def hgpa(
    ensemble: Ensemble,
    n_clusters: int,
    *,
    partitioner: str = "mtkahypar",
    random_state: RandomState = None,
) -> Labels:
    r"""Partition the samples so that few base clusters are cut (HGPA).

    Parameters
    ----------
    partitioner : {"mtkahypar", "spectral"}, default="mtkahypar"
        "mtkahypar" is Mt-KaHyPar with its deterministic preset, but with 8 first
        partitions instead of 20, and needs the extra ``hypergraph``; "spectral" is the
        normalised cut of the graph of samples and clusters, which is not balanced:
        another method for those who cannot install it.
    random_state : int, RandomState, Generator or None
        Seed of the partitioner.

    Notes
    -----
    Minimises the summed weights :math:`\sum_c w_c` of the base clusters c that lie in
    more than one part, with parts at most 5 % above equal size. A cluster weighs as
    many samples as it has, :math:`w_c = |c|`, as in the original code; the paper has
    equal weights. The original calls hMETIS, which may not be passed on. Mt-KaHyPar
    cuts less, so scores differ from published ones, by 15 points on some data.

    References
    ----------
    A. Strehl, J. Ghosh, "Cluster ensembles: a knowledge reuse framework for combining
    multiple partitions", Journal of Machine Learning Research 3, 2002.

    L. Gottesbüren, T. Heuer, P. Sanders, S. Schlag, "Scalable shared-memory hypergraph
    partitioning", ALENEX 2021.
    """
    sizes = ensemble.cluster_sizes
    if partitioner == "spectral":
        weights = sizes.astype(np.float64)
        return bipartite(ensemble, n_clusters, weights, random_state=random_state)
    mtkahypar, library = _start_mtkahypar()
    mtkahypar.set_seed(int(consensus_stream(random_state).integers(2**31 - 1)))
    with as_file(files("mdec.bench.baselines") / "mtkahypar.ini") as settings:
        context = library.context_from_file(str(settings))
    context.set_partitioning_parameters(n_clusters, IMBALANCE, mtkahypar.Objective.CUT)
    context.logging = False
    members = ensemble.indicator().T.tocsr()
    edges = np.split(members.indices, members.indptr[1:-1])
    # A cluster of one sample cannot be cut.
    cuttable = np.flatnonzero(sizes > 1)
    hypergraph = library.create_hypergraph(
        context,
        ensemble.n_samples,
        cuttable.size,
        [edges[c].tolist() for c in cuttable],
        [1] * ensemble.n_samples,
        sizes[cuttable].tolist(),
    )
    parts = hypergraph.partition(context)
    labels = np.array([parts.block_id(i) for i in range(ensemble.n_samples)])
    return number_by_appearance(labels, n_clusters)


def rounded_coassociation(ensemble: Ensemble) -> sparse.csr_array:
    """Return the co-association without its diagonal, scaled and rounded.

    Whole numbers that sum to about 1e8; pairs rounded to zero are left out.
    """
    n_samples = ensemble.n_samples
    require_memory(
        3 * 16 * n_samples**2,
        f"the graph of {n_samples} samples for CSPA",
        "use MCLA or HGPA, whose graphs are smaller",
    )
    sizes = ensemble.cluster_sizes.astype(np.float64)
    total = float((sizes * (sizes - 1.0)).sum())
    scale = WEIGHT_SUM / max(total, 1.0)
    blocks = []
    for rows, counts in agreement_blocks(ensemble):
        np.fill_diagonal(counts[:, rows], 0.0)
        blocks.append(sparse.csr_array(np.round(scale * counts).astype(np.int64)))
    return sparse.csr_array(sparse.vstack(blocks))


def jaccard_graph(ensemble: Ensemble) -> sparse.csr_array:
    r"""Return :math:`|a \cap b| / |a \cup b|` of all pairs of base clusters.

    Jaccard's index, without the diagonal.
    """
    members, sizes = ensemble.indicator(), ensemble.cluster_sizes
    graph = sparse.csr_array(members.T @ members)
    graph.sort_indices()
    own = np.repeat(sizes, np.diff(graph.indptr))
    graph.data /= own + sizes[graph.indices] - graph.data
    return sparse.csr_array(graph - sparse.eye_array(sizes.size))


def association(
    ensemble: Ensemble, meta: NDArray[np.integer], n_clusters: int
) -> Array:
    r"""Return the mean membership of each sample in each meta-cluster.

    :math:`\frac{1}{|P|} \sum_{c \in P} H_{ic}`, scaled to a sum of one over the
    meta-clusters; zero for those without any base cluster.
    """
    counts = np.maximum(np.bincount(meta, minlength=n_clusters), 1)
    groups = cluster_indicator(meta, n_clusters).T
    shares: Array = (ensemble.indicator() @ groups).toarray() / counts
    totals = shares.sum(axis=1, keepdims=True)
    return shares / np.where(totals > 0.0, totals, 1.0)


def _partition_graph(
    graph: sparse.csr_array,
    vertex_weights: NDArray[np.int64] | None,
    n_parts: int,
    partitioner: str,
    rng: np.random.Generator,
) -> Labels:
    if partitioner == "spectral":
        weights = graph.astype(np.float64)
        return spectral_partition(weights, n_parts, solver=rng, assign=rng)
    pymetis = import_optional(
        "pymetis", needed_for="partitioning with METIS", install="mdec[metis]"
    )
    _, parts = pymetis.part_graph(
        n_parts,
        pymetis.CSRAdjacency(graph.indptr, graph.indices),
        eweights=graph.data,
        vweights=vertex_weights,
        recursive=True,
        options=pymetis.Options(seed=int(rng.integers(2**31 - 1))),
    )
    return np.asarray(parts, dtype=np.int32)


@cache
def _start_mtkahypar() -> tuple[Any, Any]:
    mtkahypar = import_optional(
        "mtkahypar",
        needed_for="partitioning hypergraphs with Mt-KaHyPar",
        install="mdec[hypergraph]",
    )
    # May be called once in a process; the deterministic preset needs no more threads.
    return mtkahypar, mtkahypar.initialize(1)
