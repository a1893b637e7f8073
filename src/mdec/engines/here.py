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
from mdec.base.given import PRECOMPUTED, Given, Metric
from mdec.base.graphs import DENSE_SAMPLES
from mdec.base.landmarks import landmark_clustering, landmark_pool
from mdec.base.members import (
    MEMBER_ERRORS,
    base_clustering,
    centred_once,
    member_memory,
)
from mdec.base.own import Base, OwnParts
from mdec.ensemble import Ensemble, Failure
from mdec.ensemble.plan import Member, Plan
from mdec.preparation.recipes import Versions
from mdec.rows.blocks import Rows, opened
from mdec.rows.work import Here

Array = NDArray[np.floating]
Labelled = tuple[Member, list[NDArray[np.int32]] | Exception]


class LocalEngine:
    """What engines share whose members come to this process."""

    plan: Plan
    worker = Here()

    def ensemble(
        self,
        made: list[tuple[Member, list[NDArray[np.int32]]]],
        failures: tuple[Failure, ...],
    ) -> Ensemble:
        """Put finished members, each in one part, side by side in one array."""
        labels = np.stack([column for _, (column,) in made], axis=1)
        members = tuple(member for member, _ in made)
        return Ensemble(labels, members, failures, self.plan.to_json())


class ThreadEngine(LocalEngine):
    """Makes members in threads, or in what `joblib.parallel_config` says.

    `n_jobs` members are made at the same time; it changes no label.
    """

    def __init__(
        self,
        rows: Rows,
        plan: Plan,
        n_jobs: int | None,
        base: Base | None = None,
        metric: Metric | None = None,
    ) -> None:
        self.rows, self.plan, self.n_jobs = rows, plan, n_jobs
        self.base, self.metric = base, metric

    def labelled(self, members: Sequence[Member]) -> Iterator[Labelled]:
        """Yield members as they are finished."""
        rows, plan = self.rows, self.plan
        n_jobs = min(effective_n_jobs(self.n_jobs), len(members))
        n_stored = None if rows.csr is None else int(rows.csr.nnz)
        require_memory(
            n_jobs * member_memory(plan, n_stored),
            f"making {n_jobs} base clusterings of {plan.n_samples} samples at a time",
            "lower n_jobs, sampling_ratio or the samples",
        )
        make = partial(_labelled, plan=plan)
        pool = landmark_pool(rows, plan) if plan.base == "landmark" else None
        shared = self._as_members_read(), pool
        yield from map_as_completed(make, members, shared=shared, n_jobs=self.n_jobs)

    def _as_members_read(self) -> Any:
        rows, plan = self.rows, self.plan
        assert rows.source is not None
        if plan.metric == PRECOMPUTED:
            return Given.of(rows.array, f"metric={PRECOMPUTED!r}")
        if self.base is not None or self.metric is not None:
            assert rows.array is not None
            versions = Versions.of(rows.array, plan.preparation)
            return OwnParts(versions, self.base, self.metric)
        if plan.preparation is not None:
            assert rows.array is not None
            return Versions.of(rows.array, plan.preparation)
        small = plan.base == "graph" and plan.n_samples <= DENSE_SAMPLES
        if small and rows.array is not None:
            # Members then copy whole columns and need not convert them.
            columns = np.asfortranarray(rows.array, dtype=np.float64)
            return centred_once(columns, plan.kernel_shares)
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
