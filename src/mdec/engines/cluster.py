"""Members made on a Dask cluster, with rows and labels left on the workers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.memory import require_memory
from mdec.base.landmarks import landmark_clustering, landmark_pool
from mdec.ensemble import Ensemble, Failure
from mdec.ensemble.plan import Member, Plan
from mdec.rows.blocks import Rows
from mdec.rows.dask import as_dask_array
from mdec.rows.work import Worker

# Members whose blocks are on the workers at the same time.
MEMBERS_IN_FLIGHT = 3


@dataclass(frozen=True, eq=False)
class DistributedEnsemble:
    """Base clusterings whose labels stay on the workers of a cluster.

    What it shares with `mdec.Ensemble` has the same names there.

    Attributes
    ----------
    worker : Worker
        The cluster.
    parts : list
        Futures of the labels of each row block, shape (n_rows, n_members).
    plan : Plan
        What all members share.
    members : tuple of Member
        How each column was made.
    failures : tuple of Failure
        Members that were drawn and dropped.
    """

    worker: Worker
    parts: list[Any]
    plan: Plan
    members: tuple[Member, ...]
    failures: tuple[Failure, ...] = field(default=())

    @property
    def parameters(self) -> dict[str, Any]:
        """What all members share, in plain numbers."""
        return self.plan.to_json()

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.plan.n_samples

    def __len__(self) -> int:
        return len(self.members)

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Number of the first cluster of each member, and of all clusters."""
        greatest = self.worker.map(np.max, self.parts, 0)
        counts = np.max([self.worker.value(each) for each in greatest], axis=0) + 1
        return np.concatenate([[0], np.cumsum(counts)])

    @property
    def n_base_clusters(self) -> int:
        """Number of clusters in all members together."""
        return int(self.offsets[-1])

    @property
    def is_complete(self) -> bool:
        """Whether every member clusters every sample: landmarks leave none out."""
        return True

    @property
    def member_weights(self) -> None:
        """How much each member counts: all alike."""

    @property
    def bounds(self) -> list[tuple[int, int]]:
        """First row of each part and the one after its last."""
        return self.plan.bounds

    @property
    def labels(self) -> Any:
        """The labels as a Dask array of shape (n_samples, n_members)."""
        return as_dask_array(self.parts, self.bounds, np.int32, len(self))

    def split(self, rows: NDArray[Any]) -> list[Any]:
        """Hand an array with one row for each sample to the workers, in blocks."""
        blocks = [rows[start:stop] for start, stop in self.bounds]
        return self.worker.map(np.asarray, blocks)

    def joined(self, parts: list[Any]) -> Any:
        """Return blocks with one number for each sample as one Dask array."""
        dtype = self.worker.value(self.worker.call(np.result_type, parts[0]))
        return as_dask_array(parts, self.bounds, dtype)

    def gather(self) -> Ensemble:
        """Bring the labels here as an `Ensemble`, if they fit."""
        require_memory(
            12 * self.n_samples * len(self),
            f"bringing the labels of {self.n_samples} samples together",
            "use consensus='bipartite', which leaves them on the workers",
        )
        parts = [self.worker.value(part) for part in self.parts]
        return Ensemble(
            np.concatenate(parts), self.members, self.failures, self.parameters
        )


class ClusterEngine:
    """Makes members of rows that lie on a cluster, by landmarks."""

    def __init__(self, rows: Rows, plan: Plan) -> None:
        self.rows, self.plan, self.worker = rows, plan, rows.worker

    def labelled(
        self, members: Sequence[Member]
    ) -> Iterator[tuple[Member, list[Any] | Exception]]:
        """Yield members in order; a few are on the workers at a time."""
        blocks, pool = self.rows.blocks, landmark_pool(self.rows, self.plan)
        waiting: deque[tuple[Member, list[Any]]] = deque()
        for member in members:
            parts = landmark_clustering(self.worker, blocks, pool, member, self.plan)
            waiting.append((member, parts))
            if len(waiting) == MEMBERS_IN_FLIGHT:
                yield waiting.popleft()
        yield from waiting

    def ensemble(
        self, made: list[tuple[Member, list[Any]]], failures: tuple[Failure, ...]
    ) -> DistributedEnsemble:
        """Put finished members side by side, block by block, on the workers."""
        columns = zip(*(parts for _, parts in made), strict=True)
        joined = [self.worker.call(np.stack, list(each), 1) for each in columns]
        members = tuple(member for member, _ in made)
        return DistributedEnsemble(self.worker, joined, self.plan, members, failures)
