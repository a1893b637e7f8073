"""The ensemble: what its members are drawn with, and their labels side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.memory import require_memory
from mdec.ensemble.labels import Ensemble, membership
from mdec.ensemble.provenance import Failure, View
from mdec.rows.dask import as_dask_array

__all__ = ["DistributedEnsemble", "Ensemble", "Failure", "View", "membership"]


@dataclass(frozen=True, eq=False)
class DistributedEnsemble(Ensemble):
    """Base clusterings whose labels stay on the workers of a Dask cluster.

    Attributes
    ----------
    labels : dask.array.Array of shape (n_samples, n_members)
        The labels, as in `mdec.Ensemble`; landmarks leave no sample out.
    executor : Executor
        Hands work on the labels to the workers.
    parts : list
        Futures of the labels of each row block, shape (n_rows, n_members).
    """

    # With defaults on the class, which stand in for the properties of an ensemble here.
    executor: Any = None
    parts: Any = ()

    @property
    def is_complete(self) -> bool:
        """Whether every member clusters every sample."""
        return True

    def split(self, rows: NDArray[Any]) -> list[Any]:
        """Hand an array with one row for each sample to the workers, in blocks."""
        return self.executor.map(np.asarray, super().split(rows))

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
