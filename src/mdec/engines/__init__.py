"""Who makes the members: threads of this process, a GPU or a Dask cluster.

An engine gives the labels of members, in any order. Drawing, checking, trying again
and keeping are the same for all of them and are done in `mdec.generation`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mdec.base import Base
from mdec.base.copies import group_copies, share_labels
from mdec.base.landmarks import landmark_clustering, landmark_pool
from mdec.base.pairs import PRECOMPUTED, Metric
from mdec.engines import gpu, threads
from mdec.ensemble.plan import Member, Plan
from mdec.rows.blocks import Rows

__all__ = ["cluster_members"]

# A member with its labels in blocks, or why there are none.
Outcome = tuple[Member, list[Any] | Exception]

# Members whose blocks are on the workers of a Dask cluster at the same time.
MEMBERS_IN_FLIGHT = 3


def cluster_members(
    members: Sequence[Member],
    rows: Rows,
    plan: Plan,
    *,
    n_jobs: int | None = None,
    base: Base | None = None,
    metric: Metric | None = None,
) -> Iterator[Outcome]:
    """Return members as they come, with their labels or why there are none.

    The labels are handles, of the executor of the rows, of one or more row blocks. A
    Dask array decides for its cluster, the plan's device for the GPU. `n_jobs` threads
    work at the same time; a user's own `base` and `metric` are for threads only.
    """
    if rows.source is None:
        return _cluster_on_workers(members, rows, plan)
    if plan.device != "cpu":
        found = gpu.cluster_members(members, rows, plan)
    else:
        found = threads.cluster_members(members, rows, plan, n_jobs, base, metric)
    # Landmarks look at each row by itself; a user's own functions do as they like.
    by_graph = plan.base == "graph" and plan.metric in (None, PRECOMPUTED)
    return _share_among_copies(found, rows.in_memory) if by_graph else found


def _cluster_on_workers(
    members: Sequence[Member], rows: Rows, plan: Plan
) -> Iterator[Outcome]:
    """Yield members in order, by landmarks; their labels stay on the workers."""
    pool = landmark_pool(rows, plan)
    waiting: deque[Outcome] = deque()
    for member in members:
        parts = landmark_clustering(rows.executor, rows.blocks, pool, member, plan)
        waiting.append((member, parts))
        if len(waiting) == MEMBERS_IN_FLIGHT:
            yield waiting.popleft()
    yield from waiting


def _share_among_copies(found: Iterator[Outcome], X: Any) -> Iterator[Outcome]:
    """Yield members in which equal rows have equal labels.

    Their places in the graph differ, since of equal neighbours the first are kept, and
    a member that draws samples may leave some of them out.
    """
    group = group_copies(X)
    assert group is not None
    distinct = int(group.max()) + 1 == len(group)
    for member, labels in found:
        if not distinct and not isinstance(labels, Exception):
            labels = [share_labels(np.concatenate(labels), group)]
        yield member, labels
