"""Members made in this process, several at the same time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from mdec._support.arrays import Array
from mdec._support.memory import require_memory
from mdec._support.parallel import map_parallel
from mdec.base import Base
from mdec.base.graphs import DENSE_SAMPLES
from mdec.base.landmarks import landmark_clustering, landmark_pool
from mdec.base.members import (
    MEMBER_ERRORS,
    base_clustering,
    center_once,
    member_memory,
)
from mdec.base.pairs import PRECOMPUTED, Metric, Pairs
from mdec.ensemble.plan import Member, Plan
from mdec.preparation.recipes import Versions
from mdec.rows.blocks import Rows, as_rows
from mdec.rows.work import LocalExecutor

Labels = tuple[Member, list[NDArray[np.int32]] | Exception]


def cluster_members(
    members: Sequence[Member],
    rows: Rows,
    plan: Plan,
    n_jobs: int | None,
    base: Base | None = None,
    metric: Metric | None = None,
) -> Iterator[Labels]:
    """Yield the labels of members as they are finished, each in one part.

    `n_jobs` members are made at the same time, in threads, or in what
    `joblib.parallel_config` says; it changes no label. `base` and `metric` are a user's
    own functions.
    """
    together = min(effective_n_jobs(n_jobs), len(members))
    n_stored = None if rows.csr is None else int(rows.csr.nnz)
    require_memory(
        together * member_memory(plan, n_stored),
        f"making {together} base clusterings of {plan.n_samples} samples at a time",
        "lower n_jobs, max_features or the samples",
    )
    pool = landmark_pool(rows, plan) if plan.base == "landmark" else None
    data: Any = rows.source
    ours = plan.base == "graph" and plan.metric is None
    if plan.metric == PRECOMPUTED:
        data = Pairs.of(rows.array, f"metric={PRECOMPUTED!r}")
    elif plan.preparation is not None:
        data = Versions.of(data, plan.preparation)
    elif ours and plan.n_samples <= DENSE_SAMPLES and rows.array is not None:
        # Members then copy whole columns and need not convert them.
        columns = np.asfortranarray(data, dtype=np.float64)
        data = center_once(columns, plan.kernel_shares)
    shared = data, pool, base, metric, rows.spacing
    make = partial(_cluster_member, plan=plan)
    yield from map_parallel(make, members, shared=shared, n_jobs=n_jobs, ordered=False)


def _cluster_member(
    member: Member,
    data: Any,
    pool: Array | None,
    base: Base | None,
    metric: Metric | None,
    spacing: dict[Any, Array],
    plan: Plan,
) -> Labels:
    """Make one member by its graph, or by landmarks if there is a pool for them."""
    try:
        if pool is None:
            means = np.full(plan.n_clustered, np.nan)
            found = base_clustering(data, member, plan, base, metric, means)
            if len(means) == plan.n_samples and np.isfinite(means).all():
                spacing[plan, member] = means
            return member, [found]
        blocks = as_rows(data).blocks
        parts = landmark_clustering(LocalExecutor(), blocks, pool, member, plan)
        return member, [np.concatenate(parts)]
    except MEMBER_ERRORS as error:
        return member, error
