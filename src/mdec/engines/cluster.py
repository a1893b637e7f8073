"""The whole method on a Dask array, with rows and labels left on the workers."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.parallel import single_threaded_blas
from mdec._support.progress import Progress, told
from mdec._support.random import RandomState, root_entropy
from mdec.base.landmarks import landmark_clustering, pool_rows
from mdec.consensus import CONSENSUS
from mdec.consensus import _blocks as blocks_consensus
from mdec.engines.store import Checkpoint
from mdec.ensemble import Failure, Member
from mdec.generation import attempted, report_failures
from mdec.plan import (
    check_parameters,
    check_resumable,
    generation_spec,
    member_features,
    refuse_equal_rows,
    resolved_base,
    row_bounds,
)
from mdec.rows.blocks import block_digest, checked_rows, combined_digest, gathered_rows
from mdec.rows.dask import (
    MEMBERS_IN_FLIGHT,
    DistributedEnsemble,
    PartsMade,
    check_dask_array,
    cluster_blocks,
    joined_members,
    keep_member,
    kept_member,
    scattered,
)
from mdec.weights import WEIGHTINGS

Array = NDArray[np.floating]


def distributed_ensemble(
    X: Any,
    *,
    ensemble_size: int = 100,
    base: str = "auto",
    device: str = "cpu",
    checkpoint: str | os.PathLike[str] | None = None,
    random_state: RandomState = None,
    verbose: int = 0,
    progress: Progress | None = None,
    **drawn: Any,
) -> tuple[DistributedEnsemble, Array]:
    """Make an ensemble of a Dask array on the current cluster.

    Parameters
    ----------
    X : dask.array.Array of shape (n_samples, n_features)
        float32 or float64.
    ensemble_size : int, default=100
        M.
    base : {"landmark", "auto"}, default="auto"
        Both stand for landmarks: graphs need all rows in one place.
    device : {"cpu", "auto"}, default="cpu"
        Both stand for the workers' CPUs.
    checkpoint : path-like, default=None
        Folder that the client and all workers see.
    random_state : int, RandomState, Generator or None, default=None
        Seed; gives the labels that `mdec.generate_ensemble` gives with landmarks.
    verbose : int, default=0
        Above 0, finished members and the time left are written to stderr.
    progress : callable, default=None
        Called as ``progress(done, ensemble_size)`` after each member.
    **drawn
        The further parameters of `mdec.generate_ensemble`.

    Returns
    -------
    ensemble : DistributedEnsemble
        Its labels are on the workers.
    pool : ndarray of shape (n_pool, n_features)
        The few rows that landmarks were drawn from.
    """
    check_dask_array(X)
    base, device = resolved_base(base, device, X.shape[0], rows_in_memory=False)
    spec = generation_spec(
        X.shape,
        base=base,
        device=device,
        entropy=root_entropy(random_state),
        **drawn,
    )
    check_parameters(ensemble_size, spec)
    worker, blocks = cluster_blocks(X)
    refuse_equal_rows(checked_rows(worker, blocks), spec)
    folder = None
    if checkpoint is not None:
        check_resumable(random_state)
        digests = [worker.value(each) for each in worker.map(block_digest, blocks)]
        digest = combined_digest(digests, X.shape, X.dtype)
        folder = Checkpoint(checkpoint, digest, spec)
    rows = pool_rows(spec["n_samples"], spec["entropy"])
    pool = gathered_rows(worker, blocks, row_bounds(spec), rows)

    def cluster(member: Member) -> list[Any]:
        features = member_features(member, spec)
        return landmark_clustering(worker, blocks, pool, member, features, spec)

    def make(index: int) -> PartsMade:
        made: PartsMade | None = None
        if folder is not None:
            made = kept_member(worker, folder, index, len(blocks))
        if made is None:
            made = attempted(index, cluster, spec)
            if folder is not None:
                keep_member(worker, folder, index, made)
        return made

    tell = told(progress, ensemble_size, verbose)
    results: list[PartsMade] = []
    with single_threaded_blas(), ThreadPoolExecutor(MEMBERS_IN_FLIGHT) as threads:
        for made in threads.map(make, range(ensemble_size)):
            results.append(made)
            tell(len(results), ensemble_size)
    failures = tuple(each for each in results if isinstance(each, Failure))
    report_failures(failures, ensemble_size)
    return joined_members(worker, results, spec), worker.value(pool)


def distributed_weights(ensemble: DistributedEnsemble, weighting: str) -> Array:
    """Return the weight of every base cluster, from sums over the blocks.

    Parameters
    ----------
    ensemble : DistributedEnsemble
        The base clusterings.
    weighting : {"entropy", "uniform"}
        The ECI, or all alike.

    Returns
    -------
    ndarray of shape (n_base_clusters,)
        As the functions of `mdec.weights` give them for the whole.
    """
    if weighting == "uniform":
        return np.ones(ensemble.n_base_clusters)
    assert weighting in WEIGHTINGS
    return blocks_consensus.blocked_weights(
        ensemble.worker, ensemble.parts, ensemble.offsets
    )


def distributed_labels(
    ensemble: DistributedEnsemble, n_clusters: int, consensus: str, weights: Array
) -> tuple[list[Any], int]:
    """Return the consensus clusters of the samples, block by block.

    Parameters
    ----------
    ensemble : DistributedEnsemble
        The base clusterings.
    n_clusters : int
        Number of clusters.
    consensus : str
        The bipartite consensus of more than 100,000 samples works where the labels
        are; for the others, and for fewer samples, the labels (not the rows) are
        brought here.
    weights : ndarray of shape (n_base_clusters,)
        Weight of each base cluster.

    Returns
    -------
    parts : list
        Futures of the clusters of each block.
    n_found : int
        Number of clusters.
    """
    seed = ensemble.parameters["entropy"]
    many = blocks_consensus.is_blocked(ensemble.n_samples, ensemble.n_base_clusters)
    if consensus == "bipartite" and many and n_clusters > 1:
        return blocks_consensus.blocked_bipartite(
            ensemble.worker,
            ensemble.parts,
            ensemble.bounds,
            n_clusters,
            ensemble.offsets,
            weights,
            seed,
        )
    labels = CONSENSUS[consensus](
        ensemble.gather(), n_clusters, weights, random_state=seed
    )
    parts = [labels[start:stop] for start, stop in ensemble.bounds]
    return scattered(ensemble.worker, parts), int(labels.max()) + 1
