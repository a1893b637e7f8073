"""Members made many at a time on a GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from mdec._support.optional import import_optional
from mdec.base.copies import CopiesError
from mdec.base.landmarks import landmark_pool
from mdec.base.members import DrawnRows, among_all_samples
from mdec.engines import threads
from mdec.ensemble.plan import Member, Plan
from mdec.numerics.eigen import is_dense
from mdec.preparation.recipes import Versions
from mdec.rows.blocks import Rows

Labels = NDArray[np.int32]

DEVICES = ("cpu", "cuda", "auto", "torch")

# Members are padded to the widest of their batch, which large data do not pardon; small
# ones are done sooner in few launches.
MAX_BATCH, BATCH_ROWS = 128, 300_000


def resolve_device(device: str) -> str:
    """Return "cpu", "cuda" or "torch", or raise if the device is missing.

    "auto" is "cuda" where PyTorch finds a GPU, else "cpu".

    Examples
    --------
    >>> resolve_device("cpu")
    'cpu'
    """
    asked = f"device={device!r}"
    if device not in DEVICES:
        raise ValueError(f"{asked} is not one of {', '.join(DEVICES)}.")
    if device == "cpu" or (device == "auto" and find_spec("torch") is None):
        return "cpu"
    torch = import_optional("torch", needed_for=asked, install="mdec[gpu]")
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    from mdec.engines import tensors

    tensors.find_device(device)
    return device


def cluster_members(
    members: Sequence[Member], rows: Rows, plan: Plan
) -> Iterator[tuple[Member, list[Labels] | Exception]]:
    """Yield members batch by batch, as many at a time as fit the device.

    Those of one kernel with like numbers of clusters are made together, so that little
    is padded. Those of few samples, or of few distinct ones, need no device.
    """
    from mdec.engines import tensors

    data, drawn = None, dict[int, DrawnRows]()
    if plan.base == "graph":
        assert rows.array is not None
        data = Versions.of(rows.array, plan.preparation)
    n_vertices = plan.n_landmarks or plan.n_clustered
    here: list[Member] = []
    waiting: list[Member] = []
    for member in members:
        small = is_dense(n_vertices, member.n_clusters)
        if data is not None and not small:
            own = drawn[member.index] = DrawnRows.of(data, member, plan)
            small = own.few_distinct(member.n_clusters) is not None
        (here if small else waiting).append(member)
    if here:
        yield from threads.cluster_members(here, rows, plan, None)
    if not waiting:
        return
    place = tensors.find_device(plan.device)
    if data is None:
        pool, member_bytes = landmark_pool(rows, plan), tensors.landmark_bytes
        make = partial(tensors.cluster_by_landmarks, rows.blocks, pool, place)
    else:
        member_bytes = tensors.member_bytes
        make = partial(tensors.cluster_batch, tensors.Data.on(data, place), drawn)
    n_bytes = tensors.budget(place)
    most = min(MAX_BATCH, max(16, BATCH_ROWS // n_vertices))
    batches = []
    for kernel in plan.kernel_shares:
        alike = [each for each in waiting if plan.kernel_of(each) == kernel]
        alike.sort(key=lambda each: (-each.n_clusters, each.index))
        while alike:
            each = member_bytes(plan, alike[0].n_clusters)
            n_members = int(min(max(1, n_bytes // each), most))
            batches.append(alike[:n_members])
            alike = alike[n_members:]

    def make_batch(batch: list[Member]) -> list[Labels | Exception]:
        each = member_bytes(plan, batch[0].n_clusters)
        purpose = f"making base clusterings of {plan.n_samples} samples"
        work = partial(make, plan, batch, each)
        return tensors.with_less_memory(work, n_bytes, purpose)

    found = tensors.side_by_side(make_batch, batches, place)
    for batch, made in zip(batches, found, strict=True):
        for member, labels in zip(batch, made, strict=True):
            if isinstance(labels, CopiesError):
                yield from threads.cluster_members([member], rows, plan, None)
            elif isinstance(labels, Exception):
                yield member, labels
            else:
                yield member, [among_all_samples(labels, member, plan)]
