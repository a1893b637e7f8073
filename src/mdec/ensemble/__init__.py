"""The ensemble: what its members are drawn with, and their labels side by side."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mdec._support.memory import require_memory
from mdec.ensemble.labels import Ensemble, membership
from mdec.ensemble.plan import Member, Plan
from mdec.ensemble.provenance import Failure, View
from mdec.rows.dask import as_dask_array
from mdec.rows.work import Executor

__all__ = [
    "DistributedEnsemble",
    "Ensemble",
    "Failure",
    "LabelBlocks",
    "View",
    "membership",
]


@dataclass(frozen=True, eq=False)
class DistributedEnsemble:
    """Base clusterings whose labels stay on the workers of a Dask cluster.

    What it shares with `mdec.Ensemble` has the same names there.

    Attributes
    ----------
    executor : Executor
        Hands work on the labels to the workers.
    parts : list
        Futures of the labels of each row block, shape (n_rows, n_members).
    plan : Plan
        What all members share.
    members : tuple of Member
        How each column was made.
    failures : tuple of Failure
        Members that were drawn and dropped.
    """

    executor: Executor
    parts: list[Any]
    plan: Plan
    members: tuple[Member, ...]
    failures: tuple[Failure, ...] = ()

    # Landmarks leave no sample out, members count alike, and nothing was joined.
    is_complete: ClassVar[bool] = True
    member_weights: ClassVar[NDArray[np.float64] | None] = None
    views: ClassVar[tuple[View, ...]] = ()

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
        greatest = self.executor.values(self.executor.map(np.max, self.parts, 0))
        return np.concatenate([[0], np.cumsum(np.max(greatest, axis=0) + 1)])

    @property
    def n_base_clusters(self) -> int:
        """Number of clusters in all members together."""
        return int(self.offsets[-1])

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
        return self.executor.map(np.asarray, blocks)

    def join(self, parts: list[Any]) -> Any:
        """Return blocks with one number for each sample as one Dask array."""
        dtype = self.executor.value(self.executor.call(np.result_type, parts[0]))
        return as_dask_array(parts, self.bounds, dtype)

    def gather(self) -> Ensemble:
        """Bring the labels to this process as an `Ensemble`, if they fit."""
        require_memory(
            12 * self.n_samples * len(self),
            f"bringing the labels of {self.n_samples} samples together",
            "use consensus='bipartite', which leaves them on the workers",
        )
        labels = np.concatenate(self.executor.values(self.parts))
        return Ensemble(labels, self.members, self.failures, self.parameters)


# What every step after generation takes: labels in this process or on Dask workers.
LabelBlocks = Ensemble | DistributedEnsemble
