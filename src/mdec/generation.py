"""Making the ensemble: draw members, let an engine cluster, check, try again, keep."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

from mdec._support.progress import Progress, told
from mdec._support.random import RandomState, root_entropy
from mdec.base.given import Metric
from mdec.base.landmarks import landmark_pool
from mdec.base.members import MEMBER_ERRORS
from mdec.base.mixes import Kernel, checked_kernel
from mdec.base.own import (
    Base,
    check_findable,
    name_of,
    own_places,
    refuse_unmeasured,
)
from mdec.base.sparse_rows import require_sparse_kernel
from mdec.engines import Engine, engine_for
from mdec.engines.card import resolve_device
from mdec.engines.store import Made, Store
from mdec.ensemble import Failure, LabelBlocks
from mdec.ensemble.plan import Member, Plan
from mdec.preparation.kinds import kind_of_values
from mdec.preparation.recipes import Versions
from mdec.rows.blocks import Rows, digest_of_rows, opened, refuse_useless
from mdec.rows.sources import RowSource, is_dask_array
from mdec.rows.work import Worker, ordered_sum

Array = NDArray[np.floating]

FLOATS = (np.float64, np.float32)
BASES = ("graph", "landmark", "auto")
PREPARATIONS = ("diversified",)

# Above this many samples base="auto" takes landmarks.
AUTO_SAMPLES = 20_000
AUTO_SAMPLES_ON_CARD = 100_000

ATTEMPTS = 2
MAX_FAILED_SHARE = 0.1
ONE_CLUSTER = "all samples fell into one cluster."


def generate_ensemble(
    X: ArrayLike | RowSource | Rows,
    *,
    ensemble_size: int = 100,
    sampling_ratio: float = 0.5,
    kernel: Kernel = "scaled_gaussian",
    mu_range: tuple[float, float] = (0.2, 0.8),
    n_neighbors_range: tuple[int, int] = (5, 20),
    base_n_clusters_range: tuple[int, int] | None = None,
    base: str | Base = "graph",
    metric: str | Metric | None = None,
    preparation: str | None = None,
    sample_ratio: float = 1.0,
    device: str = "cpu",
    checkpoint: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    random_state: RandomState = None,
    verbose: int = 0,
    progress: Progress | None = None,
) -> Any:
    r"""Make an ensemble of base clusterings, Eq. 14.

    Each member looks at its own random features through its own random kernel, and
    cuts the similarity graph into its own random number of clusters.

    Parameters
    ----------
    X : array-like, sparse, RowSource or Dask array of shape (n_samples, n_features)
        At least three samples, not all equal; no missing values. Sparse rows stay
        sparse, for the scaled kernels and the cosine. Files larger than memory are
        opened with `mdec.rows.open_rows`. Of a Dask array the rows and the labels
        stay on the workers.
    ensemble_size : int, default=100
        M, the number of members.
    sampling_ratio : float, default=0.5
        :math:`\tau`, the share of the features that a member looks at.
    kernel : str, list of str or mapping of str to float, default="scaled_gaussian"
        "scaled_gaussian", "scaled_exponential", "cosine", "correlation" or "spearman".
        Of several each member draws its own, all alike or with the shares given.
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
        drawn then, and `sampling_ratio` has no effect; members still differ in k, mu,
        the number of clusters and, with `sample_ratio`, their samples. A function
        ``metric(rows)`` gets the rows of the member's subspace, (n, d), and returns
        such a matrix of all their pairs, (n, n). In memory and on the CPU only.
    preparation : {None, "diversified"}, default=None
        None takes the values as they are, as the paper does. "diversified" lets each
        member draw how expression values are prepared (the power of their transform,
        and the share of the most variable features that its subspace is drawn from),
        as `mdec.preparation` finds them to be.
    sample_ratio : float, default=1.0
        Share of the samples that a member clusters, drawn without replacement; the
        others have the label -1 in it. 1 clusters them all, as the paper does. Below
        1 with ``base="graph"`` on the CPU only.
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
        Its members, and in ``failures`` those that had to be dropped; of a Dask array
        a `mdec.engines.DistributedEnsemble`.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(30, 8))
    >>> generate_ensemble(X, ensemble_size=5, random_state=0)
    Ensemble(5 members, 30 samples, 19 base clusters)
    """
    rows = X if isinstance(X, Rows) else opened(_checked(X))
    own_base = base if callable(base) else None
    own_metric = metric if callable(metric) else None
    base_name = name_of(base) if callable(base) else base
    metric_name = name_of(metric) if callable(metric) else metric
    drawn_kernel = checked_kernel(kernel)
    if own_base is None and metric is None:
        base_name, device = resolved_base(base_name, device, rows)
    else:
        base_name, device = own_places(base, metric, device, rows)
    if metric is not None:
        refuse_unmeasured(metric, drawn_kernel, preparation, rows)
    if ensemble_size < 1:
        raise ValueError(
            f"ensemble_size={ensemble_size} makes no member; use 1 or more."
        )
    plan = Plan.checked(
        *rows.shape,
        entropy=root_entropy(random_state),
        base=base_name,
        device=device,
        sampling_ratio=sampling_ratio,
        kernel=drawn_kernel,
        mu_range=mu_range,
        n_neighbors_range=n_neighbors_range,
        base_n_clusters_range=base_n_clusters_range,
        preparation=_drawn_kind(preparation, rows, base_name, device),
        sample_ratio=sample_ratio,
        metric=metric_name,
    )
    if rows.csr is not None:
        for name in plan.kernel_shares:
            require_sparse_kernel(name)
    refuse_useless(rows)
    store = None
    if checkpoint is not None:
        check_resumable(random_state, base=own_base, metric=own_metric)
        digest = digest_of_rows(rows, whole=base_name != "landmark")
        store = Store(checkpoint, digest, plan)
    engine = engine_for(rows, plan, n_jobs, own_base, own_metric)
    tell = told(progress, ensemble_size, verbose)
    results: list[Made] = []
    with _compiling_told(verbose):
        for made in made_members(engine, plan, ensemble_size, store):
            results.append(made)
            tell(len(results), ensemble_size)
    return _gathered(engine, results)


def _compiling_told(verbose: int) -> AbstractContextManager[None]:
    """Write one line to stderr, if asked to, when the loops have to be compiled."""
    if not verbose:
        return nullcontext()
    from mdec.numerics.loops.jit import compiling_told

    return compiling_told(lambda line: _write(f"mdec: {line}\n"))


def _write(text: str) -> None:
    sys.stderr.write(text)


def made_members(
    engine: Engine, plan: Plan, ensemble_size: int, store: Store | None
) -> Iterator[Made]:
    """Yield the members of an ensemble as they are finished, in any order.

    Parameters
    ----------
    engine : Engine
        Who clusters.
    plan : Plan
        What the members share.
    ensemble_size : int
        M.
    store : Store or None
        Has members of an earlier run, and keeps those of this one.

    Yields
    ------
    tuple of Member and list, or Failure
        The member with its labels from 0 in row blocks, or why it was given up after
        a second draw.
    """
    waiting = []
    for index in range(ensemble_size):
        kept = None if store is None else store.load(index, engine.worker)
        if kept is None:
            waiting.append(index)
        else:
            yield kept
    for attempt in range(ATTEMPTS):
        drawn, waiting = [plan.member(index, attempt) for index in waiting], []
        for member, found in engine.labelled(drawn) if drawn else ():
            made = _numbered(engine.worker, member, found)
            if isinstance(made, Failure) and attempt + 1 < ATTEMPTS:
                waiting.append(member.index)
                continue
            if store is not None:
                store.save(made, engine.worker)
            yield made


def _numbered(worker: Worker, member: Member, found: list[Any] | Exception) -> Made:
    """Number the clusters of a member from 0; one cluster alone is a failure."""
    if isinstance(found, Exception):
        return Failure(member.index, str(found))
    try:
        counts = worker.value(
            ordered_sum(worker, _label_counts, found, member.n_clusters)
        )
    except MEMBER_ERRORS as error:  # of work that a cluster had put off
        return Failure(member.index, str(error))
    if np.count_nonzero(counts) < 2:
        return Failure(member.index, ONE_CLUSTER)
    if counts.all():
        return member, found
    numbers = (np.cumsum(counts > 0) - 1).astype(np.int32)
    return member, worker.map(_renumbered, found, numbers)


def _label_counts(parts: list[NDArray[np.int32]], n_clusters: int) -> NDArray[np.int64]:
    counts = [np.bincount(part[part >= 0], minlength=n_clusters) for part in parts]
    return np.sum(counts, axis=0, dtype=np.int64)


def _renumbered(
    labels: NDArray[np.int32], numbers: NDArray[np.int32]
) -> NDArray[np.int32]:
    return np.where(labels < 0, labels, numbers[labels])


def _gathered(engine: Engine, results: list[Made]) -> Any:
    """Put the finished members side by side; warn of failures or refuse them."""
    failures = [each for each in results if isinstance(each, Failure)]
    failures.sort(key=lambda failure: failure.index)
    made = [each for each in results if not isinstance(each, Failure)]
    made.sort(key=lambda each: each[0].index)
    _report_failures(failures, len(results))
    return engine.ensemble(made, tuple(failures))


def _report_failures(failures: list[Failure], ensemble_size: int) -> None:
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


def refuse_unseen(ensemble: LabelBlocks) -> None:
    """Raise if some samples are in no member, so that nothing is known of them."""
    if ensemble.is_complete:
        return
    unseen = np.flatnonzero((ensemble.gather().labels < 0).all(axis=1))
    if unseen.size:
        raise ValueError(
            f"{unseen.size} of the {ensemble.n_samples} samples are clustered in none "
            f"of the {len(ensemble)} base clusterings, the first is sample {unseen[0]};"
            " raise sample_ratio or ensemble_size, or leave out fewer in a base "
            "clustering of your own."
        )


def resolved_base(base: str, device: str, rows: Rows) -> tuple[str, str]:
    """Return how and where members cluster: what was asked for, or what "auto" takes.

    Parameters
    ----------
    base : {"graph", "landmark", "auto"}
        "auto" takes landmarks for many samples, and for rows that are not in memory.
    device : {"cpu", "cuda", "auto", "torch"}
        Landmarks are made on the CPU only.
    rows : Rows
        The data.

    Returns
    -------
    base : {"graph", "landmark"}
        How.
    device : {"cpu", "cuda", "torch"}
        Where.

    Examples
    --------
    >>> resolved_base("auto", "cpu", opened(np.zeros((1000, 2))))
    ('graph', 'cpu')
    >>> resolved_base("auto", "cpu", opened(np.zeros((100_000, 2))))
    ('landmark', 'cpu')
    """
    if base not in BASES:
        raise ValueError(f"base={base!r} is not one of {', '.join(BASES)}.")
    in_memory = rows.in_memory is not None
    if base == "graph" and not in_memory:
        raise ValueError(
            "base='graph' needs all rows in memory; use base='landmark' or 'auto' for "
            "rows that are read in blocks, or load them."
        )
    place = (
        "cpu" if device == "auto" and rows.csr is not None else resolve_device(device)
    )
    if place != "cpu" and rows.csr is not None:
        raise ValueError(
            f"sparse rows are not clustered on a card; use device='cpu' instead of "
            f"{device!r}, or give X.toarray() if it fits in memory."
        )
    if base == "auto":
        most = AUTO_SAMPLES if place == "cpu" else AUTO_SAMPLES_ON_CARD
        base = "graph" if in_memory and rows.shape[0] <= most else "landmark"
    if base == "landmark" and device not in ("cpu", "auto"):
        raise ValueError(
            f"landmarks are not computed on a card; use device='cpu' instead of "
            f"{device!r}, or base='graph'."
        )
    return base, place if base == "graph" else "cpu"


def _drawn_kind(
    preparation: str | None, rows: Rows, base: str, device: str
) -> str | None:
    """Return what the values are, if members draw how to prepare them."""
    if preparation is None:
        return None
    if preparation not in PREPARATIONS:
        raise ValueError(
            f"preparation={preparation!r} is not None or 'diversified'; prepare X "
            "itself with a transformer of mdec.preparation."
        )
    if rows.array is None or base == "landmark" or device != "cpu":
        raise ValueError(
            "preparation='diversified' is made of rows in memory, not sparse, with "
            "base='graph' and device='cpu'; use those, or prepare X first with "
            "mdec.preparation.ExpressionPreparation."
        )
    refuse_useless(rows)
    return kind_of_values(rows.array)[0]


def training_rows(rows: Rows, plan: Plan) -> Any:
    """Return the rows that new ones are compared with: all, or the landmarks' pool."""
    if plan.base == "landmark":
        return rows.worker.value(landmark_pool(rows, plan))
    return rows.in_memory


def rows_as_seen(rows: Rows, plan: Plan) -> Any:
    """Return the rows that other data are to be like: as members see them."""
    known = training_rows(rows, plan)
    made = Versions.of(known, plan.preparation).made
    return next(iter(made.values()), known)


def _checked(X: Any) -> Any:
    if isinstance(X, RowSource) or is_dask_array(X):
        return X
    return check_array(X, accept_sparse="csr", dtype=FLOATS, ensure_min_samples=3)


def check_resumable(
    random_state: RandomState, **functions: Callable[..., Any] | None
) -> None:
    """Raise if a checkpoint would not find the same members again."""
    for name, function in functions.items():
        if function is not None:
            check_findable(name, function)
    if not isinstance(random_state, (int, np.integer)):
        raise ValueError(
            "a checkpoint needs an integer random_state; without one the next run "
            "would make other members."
        )
