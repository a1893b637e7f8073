"""Members made in this process, several at the same time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from mdec._support.memory import require_memory
from mdec._support.parallel import map_as_completed
from mdec.base.graphs import DENSE_SAMPLES
from mdec.base.landmarks import landmark_clustering, landmark_pool
from mdec.base.members import MEMBER_ERRORS, base_clustering, member_memory
from mdec.ensemble import Ensemble, Failure
from mdec.plan import Member, Plan
from mdec.preparation.recipes import Versions
from mdec.rows.blocks import Rows, opened
from mdec.rows.sources import RowSource
from mdec.rows.work import Here

Array = NDArray[np.floating]
Labelled = tuple[Member, list[NDArray[np.int32]] | Exception]


class ThreadEngine:
    """Makes members in threads, or in what `joblib.parallel_config` says.

    Parameters
    ----------
    rows : Rows
        The data, here.
    plan : Plan
        What the members share.
    n_jobs : int or None
        Members made at the same time; changes no label.
    """

    def __init__(self, rows: Rows, plan: Plan, n_jobs: int | None) -> None:
        self.rows, self.plan, self.n_jobs = rows, plan, n_jobs
        self.worker = Here()

    def labelled(self, members: Sequence[Member]) -> Iterator[Labelled]:
        """Yield members as they are finished."""
        n_workers = min(effective_n_jobs(self.n_jobs), len(members))
        require_memory(
            n_workers * member_memory(self.plan),
            f"making {n_workers} base clusterings of {self.plan.n_samples} samples at "
            "a time",
            "lower n_jobs, sampling_ratio or the samples",
        )
        make = partial(_labelled, plan=self.plan)
        pool = None
        if self.plan.base == "landmark":
            pool = landmark_pool(self.rows, self.plan)
        shared = _as_members_read(self.rows, self.plan), pool
        yield from map_as_completed(make, members, shared=shared, n_jobs=self.n_jobs)

    def ensemble(
        self,
        made: list[tuple[Member, list[NDArray[np.int32]]]],
        failures: tuple[Failure, ...],
    ) -> Ensemble:
        """Put finished members side by side in one array."""
        return side_by_side(made, failures, self.plan)


def side_by_side(
    made: list[tuple[Member, list[NDArray[np.int32]]]],
    failures: tuple[Failure, ...],
    plan: Plan,
) -> Ensemble:
    """Return an ensemble in memory of finished members, each in one part."""
    labels = np.stack([column for _, (column,) in made], axis=1)
    members = tuple(member for member, _ in made)
    return Ensemble(labels, members, failures, plan.to_json())


def _as_members_read(rows: Rows, plan: Plan) -> Array | RowSource | Versions:
    assert rows.source is not None
    if plan.preparation is not None:
        assert rows.array is not None
        return Versions.of(rows.array, plan.preparation)
    if plan.base == "graph" and plan.n_samples <= DENSE_SAMPLES:
        # Members then copy whole columns and need not convert them.
        return np.asfortranarray(rows.source, dtype=np.float64)
    return rows.source


def _labelled(member: Member, data: Any, pool: Array | None, plan: Plan) -> Labelled:
    """Make one member by its graph, or by landmarks if there is a pool for them."""
    try:
        if pool is None:
            return member, [base_clustering(data, member, plan)]
        blocks = opened(data).blocks
        parts = landmark_clustering(Here(), blocks, pool, member, plan)
        return member, [np.concatenate(parts)]
    except MEMBER_ERRORS as error:
        return member, error
