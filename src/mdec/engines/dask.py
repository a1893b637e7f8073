"""Members made on a Dask cluster, with rows and labels left on the workers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from mdec.base.landmarks import landmark_clustering, landmark_pool
from mdec.ensemble.plan import Member, Plan
from mdec.rows.blocks import Rows

# Members whose blocks are on the workers at the same time.
MEMBERS_IN_FLIGHT = 3


def cluster_members(
    members: Sequence[Member], rows: Rows, plan: Plan
) -> Iterator[tuple[Member, list[Any]]]:
    """Yield members in order, by landmarks; a few are on the workers at a time."""
    pool = landmark_pool(rows, plan)
    waiting: deque[tuple[Member, list[Any]]] = deque()
    for member in members:
        parts = landmark_clustering(rows.executor, rows.blocks, pool, member, plan)
        waiting.append((member, parts))
        if len(waiting) == MEMBERS_IN_FLIGHT:
            yield waiting.popleft()
    yield from waiting
