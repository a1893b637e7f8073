"""Making the ensemble: draw members, let an engine cluster, check, try again, keep."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_array

from mdec._support.memory import require_memory
from mdec._support.messages import refuse
from mdec._support.progress import Progress, report_progress
from mdec._support.random import RandomState, root_entropy
from mdec.base import Base, check_findable, check_functions, name_of
from mdec.base.kernels import require_sparse_kernel
from mdec.base.members import MEMBER_ERRORS
from mdec.base.pairs import Metric
from mdec.engines import cluster_members
from mdec.engines.checkpoint import Checkpoint, Outcome
from mdec.engines.gpu import resolve_device
from mdec.ensemble import DistributedEnsemble, Ensemble, Failure
from mdec.ensemble.draws import Kernel, check_kernel
from mdec.ensemble.numbering import number_blocks
from mdec.ensemble.plan import Member, Plan
from mdec.preparation.kinds import kind_of_values
from mdec.rows.blocks import Rows, as_rows, digest_of_rows, refuse_useless
from mdec.rows.dask import as_dask_array
from mdec.rows.sources import RowSource, check_indices, is_dask_array
from mdec.rows.work import Executor

FLOATS = (np.float64, np.float32)
BASES = ("graph", "landmark", "auto")
PREPARATIONS = ("diversified",)

# Above this many samples base="auto" takes landmarks.
AUTO_SAMPLES = 20_000

ATTEMPTS = 2
MAX_FAILED_SHARE = 0.1


def generate_ensemble(
    X: Any,
    *,
    ensemble_size: int = 100,
    max_features: float = 0.5,
    kernel: Kernel = "scaled_gaussian",
    mu_range: tuple[float, float] = (0.2, 0.8),
    n_neighbors_range: tuple[int, int] = (5, 20),
    base_n_clusters_range: tuple[int, int] | None = None,
    base: str | Base = "graph",
    metric: str | Metric | None = None,
    preparation: str | None = None,
    max_samples: float = 1.0,
    device: str = "cpu",
    checkpoint: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    random_state: RandomState = None,
    verbose: int = 0,
    progress: Progress | None = None,
) -> Ensemble:
    r"""Make an ensemble of base clusterings, Eq. 14.

    Each member uses random features and a random kernel, and cuts the similarity
    graph into a random number of clusters.

    Parameters
    ----------
    X : array-like, sparse, RowSource or Dask array of shape (n_samples, n_features)
        At least three samples, not all equal; no missing values. Sparse rows stay
        sparse, for the scaled kernels and the cosine. Files larger than memory are
        opened with `mdec.rows.open_rows`. Of a Dask array the rows and the labels
        stay on the workers.
    ensemble_size : int, default=100
        M, the number of members.
    max_features : float, default=0.5
        :math:`\tau`, the share of the features that a member uses.
    kernel : str, list of str or mapping of str to float, default="scaled_gaussian"
        "scaled_gaussian", "scaled_exponential", "cosine", "correlation" or "spearman".
        If several are given, each member picks one at random, all equally likely or
        with the shares given.
    mu_range : tuple of float, default=(0.2, 0.8)
        Interval of the kernel's width.
    n_neighbors_range : tuple of int, default=(5, 20)
        Interval of the number of neighbours.
    base_n_clusters_range : tuple of int, default=None
        Interval of a member's number of clusters; None is 2 to
        :math:`\lceil\sqrt N\rceil` for the N samples that a member clusters, with
        landmarks at most 100.
    base : {"graph", "landmark", "auto"} or callable, default="graph"
        How a member clusters: by the similarity graph of all samples, or by the ties
        of samples to landmarks, whose cost grows only linearly. "auto" takes landmarks
        above 20,000 samples; ``parameters["base"]`` tells which. A function
        ``base(rows, n_clusters, rng)`` gets the rows of the member's subspace, (n, d),
        the number of clusters that it drew, which it may ignore, and its random
        stream; it returns n labels, -1 for rows that it leaves out. See also
        `mdec.base.from_estimator`.
    metric : None, "precomputed" or callable, default=None
        None measures as the kernel does. "precomputed": X holds all pairs of samples,
        distances (zeros on the diagonal) for a scaled kernel, or similarities (one
        positive number on the diagonal, none larger), of which the k largest of each
        sample are kept as they are and negative ones count as none. Features are not
        drawn then, and `max_features` has no effect; members still differ in k, mu,
        the number of clusters and, with `max_samples`, their samples. A function
        ``metric(rows)`` gets the rows of the member's subspace, (n, d), and returns
        such a matrix of all their pairs, (n, n). In memory and on the CPU only.
    preparation : {None, "diversified"}, default=None
        None takes the values as they are, as the paper does. "diversified" lets each
        member draw how expression values are prepared (the power of their transform,
        and the share of the most variable features that its subspace is drawn from),
        as `mdec.preparation` finds them to be.
    max_samples : float, default=1.0
        Share of the samples that a member clusters, drawn without replacement; the
        others have the label -1 in it, except for copies of those drawn. 1 clusters
        all, as the paper does. Below 1 with ``base="graph"`` only.
    device : {"cpu", "cuda", "auto", "torch"}, default="cpu"
        "cuda" makes many members at a time on an NVIDIA GPU, with PyTorch; "auto"
        does so where there is one. "torch" is the same code on the CPU, for checks.
        The draws are the same on every device; labels differ by rounding only.
    checkpoint : path-like, default=None
        Folder that stores each finished member. A run that was stopped continues from
        there with the same result; the folder is refused for other data or
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
        Its members, and in ``failures`` those that had to be dropped; of a Dask array
        a `mdec.ensemble.DistributedEnsemble`.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(30, 8))
    >>> generate_ensemble(X, ensemble_size=5, random_state=0)
    Ensemble(5 members, 30 samples, 19 base clusters)
    """
    if not isinstance(X, Rows | RowSource) and not is_dask_array(X):
        X = check_array(
            check_indices(X), accept_sparse="csr", dtype=FLOATS, ensure_min_samples=3
        )
    rows = X if isinstance(X, Rows) else as_rows(X)
    shares, given = check_kernel(kernel), {"base": base, "metric": metric}
    own: dict[str, Any] = {name: each for name, each in given.items() if callable(each)}
    if own or metric is not None:
        check_functions(base, metric, shares, preparation, device, rows)
        base, device = name_of(own.get("base", "graph")), "cpu"
    else:
        base, device = resolve_base(base, device, rows)
    if ensemble_size < 1:
        few = f"ensemble_size={ensemble_size} makes no member; use 1 or more."
        raise ValueError(few)
    clusters = () if base_n_clusters_range is None else base_n_clusters_range
    plan = Plan(
        *rows.shape,
        entropy=root_entropy(random_state),
        base=base,
        device=device,
        max_features=max_features,
        kernel=shares,
        mu_range=mu_range,
        n_neighbors_range=n_neighbors_range,
        base_n_clusters_range=clusters,
        preparation=_preparation_kind(preparation, rows, base),
        max_samples=max_samples,
        metric=None if metric is None else name_of(metric),
    )
    if rows.csr is not None:
        for name in plan.kernel_shares:
            require_sparse_kernel(name)
    refuse_useless(rows)
    if rows.source is not None:
        require_memory(
            8 * plan.n_samples * ensemble_size,
            f"keeping {ensemble_size} base clusterings of {plan.n_samples} samples",
            "make fewer of them, or cluster a Dask array",
        )
    store = None
    if checkpoint is not None:
        check_resumable(random_state, **own)
        digest = digest_of_rows(rows, whole=plan.base != "landmark")
        store = Checkpoint(checkpoint, digest, plan, rows.executor)
    cluster = partial(cluster_members, rows=rows, plan=plan, n_jobs=n_jobs, **own)
    report = report_progress(progress, ensemble_size, verbose)
    outcomes: list[Outcome] = []
    with ExitStack() as listening:
        if verbose:
            from mdec.numerics.loops.jit import report_compiling

            tell = partial(print, "mdec:", file=sys.stderr)
            listening.enter_context(report_compiling(tell))
        for outcome in make_members(cluster, rows.executor, plan, ensemble_size, store):
            outcomes.append(outcome)
            report(len(outcomes), ensemble_size)
    return _collect_ensemble(rows, plan, outcomes)


def make_members(
    cluster: Callable[[Sequence[Member]], Iterable[tuple[Member, Any]]],
    executor: Executor,
    plan: Plan,
    ensemble_size: int,
    checkpoint: Checkpoint | None,
) -> Iterator[Outcome]:
    """Yield the members of an ensemble as they are finished, in any order.

    Parameters
    ----------
    cluster : callable
        Gives members their labels, as `mdec.engines.cluster_members`.
    executor : Executor
        Works on the blocks of labels.
    plan : Plan
        What the members share.
    ensemble_size : int
        M.
    checkpoint : Checkpoint or None
        Has members of an earlier run, and keeps those of this one.

    Yields
    ------
    tuple of Member and list, or Failure
        The member with its labels in row blocks, numbered in the order of first
        samples, or why it was given up after a second draw.
    """
    waiting = []
    for index in range(ensemble_size):
        known = None if checkpoint is None else checkpoint.load(index)
        if known is None:
            waiting.append(index)
        elif isinstance(known, Failure):
            yield known
        else:  # version 0.1 numbered the clusters otherwise
            yield _number_clusters(executor, *known)
    for attempt in range(ATTEMPTS):
        drawn, waiting = [plan.member(index, attempt) for index in waiting], []
        for member, labels in cluster(drawn) if drawn else ():
            outcome = _number_clusters(executor, member, labels)
            if isinstance(outcome, Failure) and attempt + 1 < ATTEMPTS:
                waiting.append(member.index)
                continue
            if checkpoint is not None:
                checkpoint.save(outcome)
            yield outcome


def _number_clusters(
    executor: Executor, member: Member, labels: list[Any] | Exception
) -> Outcome:
    """Number the clusters of a member by first samples; one alone is a failure."""
    if isinstance(labels, Exception):
        return Failure(member.index, str(labels))
    try:
        numbered, n_clusters = number_blocks(executor, labels)
    except MEMBER_ERRORS as error:  # of work that Dask workers had put off
        return Failure(member.index, str(error))
    if n_clusters < 2:
        return Failure(member.index, "all samples fell into one cluster.")
    return member, numbered


def _collect_ensemble(rows: Rows, plan: Plan, outcomes: list[Outcome]) -> Ensemble:
    """Put finished members side by side, where they are; report those that failed.

    Raises if more than a tenth of them failed, and warns if fewer did.
    """
    failed = [each for each in outcomes if isinstance(each, Failure)]
    failures = tuple(sorted(failed, key=lambda failure: failure.index))
    if failures:
        first = f"member {failures[0].index}: {failures[0].reason}"
        words = f"{len(failures)} of {len(outcomes)} base clusterings failed"
        if len(failures) > MAX_FAILED_SHARE * len(outcomes):
            raise ValueError(f"{words}, more than a tenth; the first was {first}")
        warnings.warn(
            f"{words} and were left out, see the ensemble's failures; the first was "
            f"{first}",
            RuntimeWarning,
            stacklevel=3,
        )
    made = [each for each in outcomes if not isinstance(each, Failure)]
    made.sort(key=lambda each: each[0].index)
    members = tuple(member for member, _ in made)
    columns = zip(*(parts for _, parts in made), strict=True)
    parts = [rows.executor.call(np.stack, list(each), 1) for each in columns]
    made_by = members, failures, plan.to_json()
    if rows.source is not None:
        return Ensemble(parts[0], *made_by)
    labels = as_dask_array(parts, plan.bounds, np.int32, len(members))
    return DistributedEnsemble(labels, *made_by, executor=rows.executor, parts=parts)


def refuse_unseen(ensemble: Ensemble) -> None:
    """Raise if some samples are in no member, so that nothing is known of them."""
    if ensemble.is_complete:
        return
    unseen = np.flatnonzero((ensemble.gather().labels < 0).all(axis=1))
    if unseen.size:
        raise ValueError(
            f"{unseen.size} of the {ensemble.n_samples} samples are clustered in none "
            f"of the {len(ensemble)} base clusterings, the first is sample {unseen[0]};"
            " raise max_samples or ensemble_size, or leave out fewer in a base "
            "clustering of your own."
        )


def resolve_base(base: Any, device: str, rows: Rows) -> tuple[str, str]:
    """Return how and where members cluster: what was asked for, or what "auto" takes.

    Landmarks for many samples, and for rows that are not in memory. Sparse rows and
    those of Dask arrays are clustered on CPUs only.

    Examples
    --------
    >>> resolve_base("auto", "cpu", as_rows(np.zeros((1000, 2))))
    ('graph', 'cpu')
    >>> resolve_base("auto", "cpu", as_rows(np.zeros((100_000, 2))))
    ('landmark', 'cpu')
    """
    in_memory, is_sparse = rows.in_memory is not None, rows.csr is not None
    on_cpu = is_sparse or rows.source is None
    refusals = {
        f"base={base!r} is not one of {', '.join(BASES)}.": base not in BASES,
        "base='graph' needs all rows in memory; use base='landmark' or 'auto' for rows "
        "that are read in blocks, or load them.": base == "graph" and not in_memory,
    }
    refuse(refusals)
    place = "cpu" if device == "auto" and on_cpu else resolve_device(device)
    if place != "cpu" and on_cpu:
        what = "sparse rows" if is_sparse else "rows of a Dask array"
        raise ValueError(
            f"{what} are not clustered on a GPU; use device='cpu' instead of "
            f"{device!r}, or give dense rows in memory or in a file."
        )
    if base == "auto":
        few = in_memory and rows.shape[0] <= AUTO_SAMPLES
        base = "graph" if few else "landmark"
    return base, place


def _preparation_kind(
    preparation: str | None, rows: Rows, base: str | Base
) -> str | None:
    """Return what the values are, if members draw how to prepare them."""
    if preparation is None:
        return None
    refusals = {
        f"preparation={preparation!r} is not None or 'diversified'; prepare X itself "
        "with a transformer of mdec.preparation.": preparation not in PREPARATIONS,
        "preparation='diversified' is made of rows in memory, not sparse, with "
        "base='graph'; use those, or prepare X first with "
        "mdec.preparation.ExpressionPreparation.": rows.array is None
        or base == "landmark",
    }
    refuse(refusals)
    assert rows.array is not None
    refuse_useless(rows)
    return kind_of_values(rows.array)[0]


def check_resumable(random_state: RandomState, **functions: Callable[..., Any]) -> None:
    """Raise if a checkpoint would not find the same members again."""
    for name, function in functions.items():
        check_findable(name, function)
    if not isinstance(random_state, (int, np.integer)):
        raise ValueError(
            "a checkpoint needs an integer random_state; without one the next run "
            "would make other members."
        )
