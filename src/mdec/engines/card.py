"""Members made many at a time on a graphics card."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from mdec._support.optional import import_optional
from mdec.engines.here import LocalEngine
from mdec.ensemble.plan import Member, Plan
from mdec.rows.blocks import Rows

Labels = NDArray[np.int32]

DEVICES = ("cpu", "cuda", "auto", "torch")

# Members are padded to the widest of their batch, which large data do not pardon; small
# ones are done sooner in few launches.
MAX_BATCH, BATCH_ROWS = 128, 300_000


def resolve_device(device: str) -> str:
    """Return "cpu", "cuda" or "torch", or raise if the device cannot be had.

    "auto" is "cuda" where PyTorch finds a card, else "cpu".

    Examples
    --------
    >>> resolve_device("cpu")
    'cpu'
    """
    if device not in DEVICES:
        raise ValueError(f"device={device!r} is not one of {', '.join(DEVICES)}.")
    if device == "cpu" or (device == "auto" and find_spec("torch") is None):
        return "cpu"
    torch = import_optional(
        "torch", needed_for=f"device={device!r}", install="mdec[gpu]"
    )
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    from mdec.engines import tensors

    tensors.find_device(device)
    return device


class CardEngine(LocalEngine):
    """Makes members of rows in memory in batches, with PyTorch.

    Members of one kernel with like numbers of clusters are made together, so that
    little is padded.
    """

    def __init__(self, rows: Rows, plan: Plan) -> None:
        from mdec.engines import tensors

        assert rows.array is not None
        place = tensors.find_device(plan.device)
        self.plan, self.data = plan, tensors.Data.on(rows.array, place)

    def labelled(
        self, members: Sequence[Member]
    ) -> Iterator[tuple[Member, list[Labels] | Exception]]:
        """Yield members batch by batch, as many at a time as fit the device."""
        kernel_of = self.plan.kernel_of
        for kernel in self.plan.kernel_shares:
            alike = [each for each in members if kernel_of(each) == kernel]
            yield from self._labelled(alike)

    def _labelled(
        self, members: Sequence[Member]
    ) -> Iterator[tuple[Member, list[Labels] | Exception]]:
        """Yield members of one kernel batch by batch."""
        from mdec.engines import tensors

        waiting = sorted(members, key=lambda each: (-each.n_clusters, each.index))
        n_bytes = tensors.budget(self.data.there.device)
        while waiting:
            each = tensors.member_bytes(self.plan.n_samples, waiting[0].n_clusters)
            most = min(MAX_BATCH, max(16, BATCH_ROWS // self.plan.n_samples))
            n_members = int(min(max(1, n_bytes // each), most))
            batch, waiting = waiting[:n_members], waiting[n_members:]
            found = tensors.with_less_memory(
                partial(self._labels, batch, each),
                n_bytes,
                f"making base clusterings of {self.plan.n_samples} samples",
            )
            for member, labels in zip(batch, found, strict=True):
                yield member, labels if isinstance(labels, Exception) else [labels]

    def _labels(
        self, batch: list[Member], member_bytes: int, n_bytes: int
    ) -> list[Labels | ValueError]:
        """Return the labels of a batch, in parts if it has to do with fewer bytes.

        Its members have one kernel.
        """
        from mdec.engines import tensors

        def task(member: Member) -> tensors.Task:
            return tensors.Task(
                self.plan.features(member),
                member.n_neighbors,
                member.mu,
                member.n_clusters,
                self.plan.stream(member, "solver"),
                self.plan.stream(member, "kmeans"),
            )

        kernel = self.plan.kernel_of(batch[0])
        n_members = min(len(batch), max(1, n_bytes // member_bytes))
        labels: list[Labels | ValueError] = []
        for start in range(0, len(batch), n_members):
            tasks = [task(each) for each in batch[start : start + n_members]]
            labels += tensors.base_labels(self.data, kernel, tasks, n_bytes // 4)
        return labels
