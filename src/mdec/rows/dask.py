"""Work on a Dask cluster: row blocks that stay on the workers.

The functions that make and combine base clusterings take a worker that does the work;
here is one that hands it to `dask.distributed`. Rows never come to the client.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.files import atomic_file, write_atomically
from mdec._support.memory import require_memory
from mdec._support.optional import import_optional
from mdec._support.parallel import cap_threads_of_worker, this_process
from mdec.engines.store import Checkpoint
from mdec.ensemble import Ensemble, Failure, Member
from mdec.rows.blocks import block_bounds, block_height

# Rows are kept on the workers if they fill at most this share of their memory.
KEPT_SHARE = 0.4

# Members whose blocks are on the workers at the same time.
MEMBERS_IN_FLIGHT = 3

PartsMade = tuple[Member, list[Any]] | Failure


def _import(name: str) -> Any:
    return import_optional(name, needed_for="a Dask array", install="mdec[distributed]")


class DaskWorker:
    """Work handed to the workers of a cluster; handles are futures.

    Parameters
    ----------
    client : distributed.Client
        The connection to the cluster.
    block_bytes : int
        Size of a row block, for messages.
    """

    def __init__(self, client: Any, block_bytes: int) -> None:
        self.client = client
        self.block_bytes = block_bytes

    @classmethod
    def current(cls, block_bytes: int) -> DaskWorker:
        """Return the worker of the client that the caller has made."""
        try:
            client = _import("distributed").get_client()
        except ValueError as error:
            raise ValueError(
                "a Dask array needs a running cluster; make a dask.distributed.Client "
                "first."
            ) from error
        return cls(client, block_bytes)

    def call(self, func: Callable[..., Any], *args: Any) -> Any:
        """Hand over one piece of work."""
        if args and hasattr(args[0], "dask"):
            # Rows that are not kept are read anew for each piece of work.
            lazy = _import("dask").delayed(_in_worker, pure=False)(
                func, this_process(), *args
            )
            return self.client.compute(lazy)
        return self.client.submit(_in_worker, func, this_process(), *args, pure=False)

    def map(
        self, func: Callable[..., Any], blocks: Sequence[Any], *args: Any
    ) -> list[Any]:
        """Hand over the same work for every block."""
        return [self.call(func, block, *args) for block in blocks]

    def value(self, handle: Any) -> Any:
        """Bring a result here."""
        lost = _import("distributed").scheduler.KilledWorker
        try:
            return handle.result()
        except lost as error:
            raise MemoryError(
                f"workers were lost {error.allowed_failures + 1} times over the same "
                f"task, most likely out of memory: a block of rows takes "
                f"{self.block_bytes / 1e6:.0f} MB and a task about six times that; "
                "give each worker more memory or fewer threads."
            ) from error


def _in_worker(func: Callable[..., Any], parent: str, *args: Any) -> Any:
    cap_threads_of_worker(parent)
    return func(*args)


def check_dask_array(X: Any) -> None:
    """Raise one sentence for a Dask array that cannot be clustered as it is."""
    if X.ndim != 2 or any(np.isnan(X.shape)):
        raise ValueError(
            f"X has shape {X.shape}; give a table with known chunks, for example by "
            "X.compute_chunk_sizes()."
        )
    if X.dtype not in (np.float32, np.float64):
        raise ValueError(f"X holds {X.dtype}; convert it with X.astype('float32').")


def cluster_blocks(X: Any) -> tuple[DaskWorker, list[Any]]:
    """Cut a Dask array into the blocks that its shape asks for, on the workers.

    Parameters
    ----------
    X : dask.array.Array of shape (n_samples, n_features)
        float32 or float64, with known chunks.

    Returns
    -------
    worker : DaskWorker
        The cluster.
    blocks : list
        Futures of rows, or rows to be read anew each time where all of them would
        fill more than 40 % of the workers' memory.
    """
    height = block_height(X.shape[1])
    worker = DaskWorker.current(height * X.shape[1] * X.dtype.itemsize)
    blocks = X.rechunk({0: height, 1: -1}).to_delayed().ravel().tolist()
    workers = worker.client.scheduler_info(n_workers=-1)["workers"].values()
    memory = sum(each["memory_limit"] or 0 for each in workers)
    if X.nbytes <= KEPT_SHARE * memory:
        blocks = worker.client.compute(blocks)
    return worker, blocks


@dataclass(frozen=True, eq=False)
class DistributedEnsemble:
    """Base clusterings whose labels stay on the workers of a cluster.

    Attributes
    ----------
    worker : DaskWorker
        The cluster.
    parts : list
        Futures of the labels of each row block, shape (n_rows, n_members).
    members : tuple of Member
        How each column was made.
    failures : tuple of Failure
        Members that were drawn and dropped.
    parameters : dict
        What all members share.
    """

    worker: DaskWorker
    parts: list[Any]
    members: tuple[Member, ...]
    failures: tuple[Failure, ...] = ()
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return int(self.parameters["n_samples"])

    def __len__(self) -> int:
        return len(self.members)

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Number of the first cluster of each member, and of all clusters."""
        greatest = self.worker.map(_greatest, self.parts)
        counts = np.max([self.worker.value(each) for each in greatest], axis=0) + 1
        return np.concatenate([[0], np.cumsum(counts)])

    @property
    def n_base_clusters(self) -> int:
        """Number of clusters in all members together."""
        return int(self.offsets[-1])

    @property
    def bounds(self) -> list[tuple[int, int]]:
        """First row of each part and the one after its last."""
        return block_bounds(self.n_samples, block_height(self.parameters["n_features"]))

    @property
    def labels(self) -> Any:
        """The labels as a Dask array of shape (n_samples, n_members)."""
        return as_dask_array(self.parts, self.bounds, np.int32, len(self))

    def gather(self) -> Ensemble:
        """Bring the labels here, if they fit.

        Returns
        -------
        Ensemble
            The same base clusterings in this process.
        """
        require_memory(
            12 * self.n_samples * len(self),
            f"bringing the labels of {self.n_samples} samples together",
            "use consensus='bipartite', which leaves them on the workers",
        )
        parts = [self.worker.value(part) for part in self.parts]
        return Ensemble(
            np.concatenate(parts), self.members, self.failures, self.parameters
        )


def _greatest(labels: NDArray[np.int32]) -> NDArray[np.int32]:
    return labels.max(axis=0)


def joined_members(
    worker: DaskWorker, made: list[PartsMade], spec: dict[str, Any]
) -> DistributedEnsemble:
    """Put the finished members side by side, block by block."""
    failures = tuple(each for each in made if isinstance(each, Failure))
    members = [each for each in made if not isinstance(each, Failure)]
    columns = zip(*(parts for _, parts in members), strict=True)
    joined = [worker.call(_side_by_side, list(each)) for each in columns]
    return DistributedEnsemble(
        worker, joined, tuple(member for member, _ in members), failures, spec
    )


def _side_by_side(columns: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    return np.stack(columns, axis=1)


def as_dask_array(
    parts: Sequence[Any],
    bounds: list[tuple[int, int]],
    dtype: type[np.generic],
    n_columns: int | None = None,
) -> Any:
    """Return futures of row blocks as one Dask array."""
    dask, array = _import("dask"), _import("dask.array")
    width = () if n_columns is None else (n_columns,)
    return array.concatenate(
        [
            array.from_delayed(dask.delayed(part), (stop - start, *width), dtype)
            for part, (start, stop) in zip(parts, bounds, strict=True)
        ]
    )


def write_labels(
    folder: str | os.PathLike[str], labels: Any, confidence: Any | None = None
) -> None:
    """Let the workers write a clustering to Parquet, one file for each row block.

    Parameters
    ----------
    folder : path-like
        A folder that all workers see; made if it does not exist.
    labels : dask.array.Array of shape (n_samples,)
        ``model.labels_`` of a Dask array.
    confidence : dask.array.Array of shape (n_samples,), optional
        ``model.confidence_``.
    """
    dask = _import("dask")
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    arrays = {"cluster": labels}
    if confidence is not None:
        arrays["confidence"] = confidence
    blocks = zip(*(each.to_delayed().ravel() for each in arrays.values()), strict=True)
    starts = np.cumsum([0, *labels.chunks[0]])
    tasks = [
        dask.delayed(_write_part)(
            str(target / f"part-{number:06d}.parquet"), int(start), list(arrays), parts
        )
        for number, (start, parts) in enumerate(zip(starts[:-1], blocks, strict=True))
    ]
    dask.compute(*tasks)


def _write_part(
    path: str, start: int, names: list[str], columns: Sequence[NDArray[Any]]
) -> None:
    pyarrow = import_optional(
        "pyarrow", needed_for="writing Parquet", install="mdec[data]"
    )
    from pyarrow import parquet

    samples = np.arange(start, start + len(columns[0]))
    table = {"sample": samples, **dict(zip(names, columns, strict=True))}
    with atomic_file(path) as file:
        parquet.write_table(pyarrow.table(table), file)


def keep_member(
    worker: DaskWorker, checkpoint: Checkpoint, index: int, made: PartsMade
) -> None:
    """Let the workers save a member to the checkpoint's folder, which they must see."""
    stem = f"member-{index:06d}"
    if isinstance(made, Failure):
        record = asdict(made)
    else:
        member, parts = made
        paths = [_part_path(checkpoint, index, number) for number in range(len(parts))]
        saved = [
            worker.call(_save_part, str(path), part)
            for path, part in zip(paths, parts, strict=True)
        ]
        for each in saved:
            worker.value(each)
        record = asdict(member)
    write_atomically(checkpoint.folder / f"{stem}.json", json.dumps(record).encode())


def kept_member(
    worker: DaskWorker, checkpoint: Checkpoint, index: int, n_blocks: int
) -> PartsMade | None:
    """Return a member that was saved whole, or None if it has to be made."""
    record = checkpoint.folder / f"member-{index:06d}.json"
    paths = [_part_path(checkpoint, index, number) for number in range(n_blocks)]
    if not record.exists():
        return None
    provenance = json.loads(record.read_text(encoding="utf-8"))
    if "reason" in provenance:
        return Failure(**provenance)
    if not all(path.exists() for path in paths):
        return None
    parts = [worker.call(_load_part, str(path)) for path in paths]
    return Member(**provenance), parts


def _part_path(checkpoint: Checkpoint, index: int, number: int) -> Path:
    return checkpoint.folder / f"member-{index:06d}-part-{number:06d}.npy"


def _save_part(path: str, labels: NDArray[np.int32]) -> None:
    with atomic_file(path) as file:
        np.save(file, labels)


def _load_part(path: str) -> NDArray[np.int32]:
    loaded: NDArray[np.int32] = np.load(path, allow_pickle=False)
    return loaded


def scattered(worker: DaskWorker, parts: list[NDArray[Any]]) -> list[Any]:
    """Hand blocks that are here to the workers."""
    return [worker.call(_itself, part) for part in parts]


def _itself(part: NDArray[Any]) -> NDArray[Any]:
    return part
