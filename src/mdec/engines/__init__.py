"""Who makes the members: this process, a card or a cluster; and the folder they keep.

An engine gives the labels of members, in any order. Drawing, checking, trying again
and keeping are the same for all of them and are done elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from mdec.base.given import Metric
from mdec.base.own import Base
from mdec.engines.card import CardEngine
from mdec.engines.cluster import ClusterEngine, DistributedEnsemble
from mdec.engines.here import ThreadEngine
from mdec.ensemble import Ensemble, Failure
from mdec.ensemble.plan import Member, Plan
from mdec.rows.blocks import Rows
from mdec.rows.work import Worker

__all__ = ["DistributedEnsemble", "Engine", "engine_for"]


class Engine(Protocol):
    """Clusters members, however it likes."""

    @property
    def worker(self) -> Worker:
        """Who works on the labels' blocks."""

    def labelled(
        self, members: Sequence[Member]
    ) -> Iterator[tuple[Member, list[Any] | Exception]]:
        """Yield members as they come, with their labels or why there are none.

        The labels are the worker's handles of one or more row blocks.
        """

    def ensemble(
        self, made: list[tuple[Member, list[Any]]], failures: tuple[Failure, ...]
    ) -> Ensemble | DistributedEnsemble:
        """Put finished members side by side."""


def engine_for(
    rows: Rows,
    plan: Plan,
    n_jobs: int | None,
    base: Base | None = None,
    metric: Metric | None = None,
) -> Engine:
    """Return who makes the members of these rows.

    For a Dask array its cluster, for a device the card, else this process, where
    `n_jobs` members are made at the same time, and by a user's own functions.
    """
    if rows.source is None:
        return ClusterEngine(rows, plan)
    if plan.device != "cpu":
        return CardEngine(rows, plan)
    return ThreadEngine(rows, plan, n_jobs, base, metric)
