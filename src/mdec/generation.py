"""Making the ensemble: random metric, random subspace, spectral base clustering."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import check_array

from mdec._support.memory import require_memory
from mdec._support.parallel import map_ordered
from mdec._support.progress import Progress, told
from mdec._support.random import RandomState, member_stream, root_entropy
from mdec.base.graphs import DENSE_SAMPLES, similarity_graph
from mdec.base.landmarks import (
    landmark_clustering,
    landmark_memory,
    pool_rows,
)
from mdec.base.spectral import spectral_partition
from mdec.engines.card import ONE_CLUSTER, made_in_batches
from mdec.engines.store import Checkpoint, Made, fingerprint
from mdec.ensemble import Ensemble, Failure, Member
from mdec.plan import (
    check_parameters,
    check_resumable,
    draw_member,
    generation_spec,
    member_features,
    refuse_equal_rows,
    resolved_base,
    row_bounds,
)
from mdec.rows.blocks import (
    Here,
    block_digest,
    blocks_of,
    checked_rows,
    combined_digest,
    gathered_rows,
)
from mdec.rows.sources import ArrayRows, RowSource, is_dask_array

Array = NDArray[np.floating]

ATTEMPTS = 2
MAX_FAILED_SHARE = 0.1


def member_similarity(
    X: Array, member: Member, spec: dict[str, Any]
) -> sparse.csr_array:
    """Return the similarity graph of one member, Eqs. 8 to 10."""
    subspace = X.T[member_features(member, spec)].T
    return similarity_graph(subspace, spec["kernel"], member.n_neighbors, member.mu)


def base_clustering(
    X: Array, member: Member, spec: dict[str, Any]
) -> NDArray[np.int32]:
    """Return the labels of one member, Eqs. 11 to 13.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        All features.
    member : Member
        What to make it with.
    spec : dict
        ``ensemble.parameters``.

    Returns
    -------
    ndarray of shape (n_samples,)
        Labels from 0.
    """
    seed = spec["entropy"], member.index
    labels = spectral_partition(
        member_similarity(X, member, spec),
        member.n_clusters,
        solver=member_stream(*seed, "solver", member.attempt),
        assign=member_stream(*seed, "kmeans", member.attempt),
    )
    numbered = np.unique(labels, return_inverse=True)[1].astype(np.int32)
    if numbered.max() == 0:
        raise ValueError(ONE_CLUSTER)
    return numbered


def member_memory(spec: dict[str, Any]) -> int:
    """Estimate the bytes that one base clustering takes beside the data."""
    n_samples = spec["n_samples"]
    if spec["base"] == "landmark":
        return landmark_memory(n_samples, spec)
    n_drawn = math.floor(spec["sampling_ratio"] * spec["n_features"] + 0.5)
    if n_samples <= DENSE_SAMPLES:
        return 8 * n_samples * (2 * n_drawn + 8 * n_samples)
    # The subspace, its two float32 factors, the buffers and copies of the candidate
    # pairs, and the blocks of the eigen-solver.
    n_candidates = 2 * spec["n_neighbors_range"][1] + 16
    n_vectors = spec["base_n_clusters_range"][1]
    return n_samples * (24 * n_drawn + 100 * n_candidates + 40 * n_vectors)


def landmark_labels(
    X: Array | RowSource, pool: Array, member: Member, spec: dict[str, Any]
) -> NDArray[np.int32]:
    """Return the labels of one landmark member, its blocks one after the other.

    Parameters
    ----------
    X : ndarray or RowSource of shape (n_samples, n_features)
        All features.
    pool : ndarray of shape (n_pool, n_features)
        Rows to draw landmarks from.
    member : Member
        What to make it with.
    spec : dict
        ``ensemble.parameters``.

    Returns
    -------
    ndarray of shape (n_samples,)
        Labels from 0.
    """
    source = ArrayRows(X) if isinstance(X, np.ndarray) else X
    features = member_features(member, spec)
    parts = landmark_clustering(Here(), blocks_of(source), pool, member, features, spec)
    return np.concatenate(parts)


def attempted(
    index: int, cluster: Callable[[Member], Any], spec: dict[str, Any]
) -> tuple[Member, Any] | Failure:
    """Make one member, with a fresh stream if the first attempt fails."""
    for attempt in range(ATTEMPTS):
        member = draw_member(spec["entropy"], index, attempt, spec)
        try:
            return member, cluster(member)
        except (ValueError, FloatingPointError, np.linalg.LinAlgError) as error:
            reason = str(error)
    return Failure(index, reason)


def _make_member(
    index: int, X: Array | RowSource, pool: Array | None, spec: dict[str, Any]
) -> Made:
    """Make one member by its graph, or by landmarks if there is a pool for them."""

    def cluster(member: Member) -> NDArray[np.int32]:
        if pool is not None:
            return landmark_labels(X, pool, member, spec)
        assert isinstance(X, np.ndarray)
        return base_clustering(X, member, spec)

    return attempted(index, cluster, spec)


def _resume_member(
    index: int,
    X: Array | RowSource,
    pool: Array | None,
    spec: dict[str, Any],
    checkpoint: Checkpoint,
) -> Made:
    """Return a member of the checkpoint, or make it and keep it there."""
    made = checkpoint.load(index)
    if made is None:
        made = _make_member(index, X, pool, spec)
        checkpoint.save(index, made)
    return made


def generate_ensemble(
    X: ArrayLike | RowSource,
    *,
    ensemble_size: int = 100,
    sampling_ratio: float = 0.5,
    kernel: str = "scaled_gaussian",
    mu_range: tuple[float, float] = (0.2, 0.8),
    n_neighbors_range: tuple[int, int] = (5, 20),
    base_n_clusters_range: tuple[int, int] | None = None,
    base: str = "graph",
    device: str = "cpu",
    checkpoint: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    random_state: RandomState = None,
    verbose: int = 0,
    progress: Progress | None = None,
) -> Ensemble:
    r"""Make an ensemble of base clusterings, Eq. 14.

    Each member looks at its own random features through its own random kernel, and
    cuts the similarity graph into its own random number of clusters.

    Parameters
    ----------
    X : array-like or RowSource of shape (n_samples, n_features)
        At least three samples, not all equal; no missing values. Files larger than
        memory are opened with `mdec.rows.open_rows`.
    ensemble_size : int, default=100
        M, the number of members.
    sampling_ratio : float, default=0.5
        :math:`\tau`, the share of the features that a member looks at.
    kernel : str, default="scaled_gaussian"
        "scaled_gaussian", "scaled_exponential", "cosine", "correlation" or "spearman".
    mu_range : tuple of float, default=(0.2, 0.8)
        Interval of the kernel's width.
    n_neighbors_range : tuple of int, default=(5, 20)
        Interval of the number of neighbours.
    base_n_clusters_range : tuple of int, default=None
        Interval of a member's number of clusters; None is 2 to
        :math:`\lceil\sqrt N\rceil`, with landmarks at most 100.
    base : {"graph", "landmark", "auto"}, default="graph"
        How a member clusters: by the similarity graph of all samples, or by the ties
        of samples to landmarks, whose cost grows only linearly. "auto" takes landmarks
        above 20,000 samples; ``parameters["base"]`` tells which.
    device : {"cpu", "cuda", "auto", "torch"}, default="cpu"
        "cuda" makes many members at a time on an NVIDIA card, with PyTorch; "auto"
        does so where there is one. "torch" is the same code on the CPU, for checks.
        The draws are the same on every device; labels differ by rounding only.
    checkpoint : path-like, default=None
        Folder that keeps each member once it is finished. A run that was stopped goes
        on from there with the same result; the folder is refused for other data or
        parameters. Needs an integer `random_state`.
    n_jobs : int, default=None
        Members made at the same time, as in joblib; changes no label.
    random_state : int, RandomState, Generator or None, default=None
        Seed; the first members do not depend on `ensemble_size`.
    verbose : int, default=0
        Above 0, finished members and the time left are written to stderr.
    progress : callable, default=None
        Called as ``progress(done, ensemble_size)`` after each member.

    Returns
    -------
    Ensemble
        Its members, and in ``failures`` those that had to be dropped.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(30, 8))
    >>> generate_ensemble(X, ensemble_size=5, random_state=0)
    Ensemble(5 members, 30 samples, 19 base clusters)
    """
    data = X if isinstance(X, RowSource) else _checked_array(X)
    base, device = resolved_base(
        base, device, data.shape[0], rows_in_memory=not isinstance(X, RowSource)
    )
    spec = generation_spec(
        data.shape,
        base=base,
        device=device,
        sampling_ratio=sampling_ratio,
        kernel=kernel,
        mu_range=tuple(mu_range),
        n_neighbors_range=tuple(n_neighbors_range),
        base_n_clusters_range=base_n_clusters_range,
        entropy=root_entropy(random_state),
    )
    check_generation(data, ensemble_size, spec)
    folder = None
    if checkpoint is not None:
        check_resumable(random_state)
        folder = Checkpoint(checkpoint, _data_digest(data, spec), spec)
    if device == "cpu":
        made = _made_here(data, ensemble_size, spec, folder, n_jobs)
    else:
        assert isinstance(data, np.ndarray)
        draw = partial(_drawn_member, spec=spec)
        made = made_in_batches(data, ensemble_size, spec, draw, ATTEMPTS, folder)
    tell = told(progress, ensemble_size, verbose)
    results: dict[int, Made] = {}
    for index, each in made:
        results[index] = each
        tell(len(results), ensemble_size)
    return _gathered([results[index] for index in range(ensemble_size)], spec)


def _made_here(
    data: Array | RowSource,
    ensemble_size: int,
    spec: dict[str, Any],
    checkpoint: Checkpoint | None,
    n_jobs: int | None,
) -> Iterator[tuple[int, Made]]:
    """Yield the members with their numbers, several made at the same time."""
    n_workers = min(effective_n_jobs(n_jobs), ensemble_size)
    require_memory(
        n_workers * member_memory(spec),
        f"making {n_workers} base clusterings of {data.shape[0]} samples at a time",
        "lower n_jobs, sampling_ratio or the samples",
    )
    make: Callable[..., Made] = partial(_make_member, spec=spec)
    if checkpoint is not None:
        make = partial(_resume_member, spec=spec, checkpoint=checkpoint)
    shared, indices = prepared_rows(data, spec), range(ensemble_size)
    yield from enumerate(map_ordered(make, indices, shared=shared, n_jobs=n_jobs))


def _drawn_member(
    index: int, attempt: int, spec: dict[str, Any]
) -> tuple[Member, NDArray[np.int64]]:
    member = draw_member(spec["entropy"], index, attempt, spec)
    return member, member_features(member, spec)


def _checked_array(X: ArrayLike) -> Array:
    if is_dask_array(X):
        raise ValueError(
            "X is a Dask array, which would be gathered here; use MDEC(...).fit or "
            "mdec.engines.cluster.distributed_ensemble, which leave it on the workers."
        )
    data: Array = check_array(X, dtype=(np.float64, np.float32), ensure_min_samples=3)
    return data


def prepared_rows(
    X: Array | RowSource, spec: dict[str, Any]
) -> tuple[Array | RowSource, Array | None]:
    """Return the rows as members read them, and the pool that landmarks come from."""
    if spec["base"] == "landmark":
        source = ArrayRows(X) if isinstance(X, np.ndarray) else X
        rows = pool_rows(spec["n_samples"], spec["entropy"])
        return X, gathered_rows(Here(), blocks_of(source), row_bounds(spec), rows)
    assert isinstance(X, np.ndarray)
    if len(X) <= DENSE_SAMPLES:
        # Members then copy whole columns and need not convert them.
        return np.asfortranarray(X, dtype=np.float64), None
    return X, None


def training_rows(X: Array | RowSource, spec: dict[str, Any]) -> Array:
    """Return the rows that new ones are compared with: all, or the landmarks' pool."""
    pool = prepared_rows(X, spec)[1] if spec["base"] == "landmark" else None
    if pool is not None:
        return pool
    assert isinstance(X, np.ndarray)
    return X


def _data_digest(X: Array | RowSource, spec: dict[str, Any]) -> str:
    """Return a digest of every value, read block by block with landmarks."""
    if spec["base"] == "graph":
        assert isinstance(X, np.ndarray)
        return fingerprint(X)
    source = ArrayRows(X) if isinstance(X, np.ndarray) else X
    digests = [block_digest(block) for block in blocks_of(source)]
    return combined_digest(digests, source.shape, source.dtype)


def _gathered(results: list[Made], spec: dict[str, Any]) -> Ensemble:
    """Put the finished members side by side; warn of failures or refuse them."""
    failures = tuple(each for each in results if isinstance(each, Failure))
    made = [result for result in results if not isinstance(result, Failure)]
    report_failures(failures, len(results))
    labels = np.stack([column for _, column in made], axis=1)
    return Ensemble(labels, tuple(member for member, _ in made), failures, spec)


def report_failures(failures: tuple[Failure, ...], ensemble_size: int) -> None:
    """Warn of members that were dropped; raise if they are more than a tenth."""
    if not failures:
        return
    first = f"member {failures[0].index}: {failures[0].reason}"
    if len(failures) > MAX_FAILED_SHARE * ensemble_size:
        raise ValueError(
            f"{len(failures)} of {ensemble_size} base clusterings failed, more than "
            f"a tenth; the first was {first}"
        )
    warnings.warn(
        f"{len(failures)} of {ensemble_size} base clusterings failed and were left "
        f"out, see the ensemble's failures; the first was {first}",
        RuntimeWarning,
        stacklevel=4,
    )


def check_generation(
    X: Array | RowSource, ensemble_size: int, spec: dict[str, Any]
) -> None:
    """Raise one sentence for parameters that do not fit each other or the data."""
    check_parameters(ensemble_size, spec)
    if isinstance(X, np.ndarray):
        constant = np.ptp(X, axis=0).max() == 0.0
    else:
        constant = checked_rows(Here(), blocks_of(X))
    refuse_equal_rows(constant, spec)
