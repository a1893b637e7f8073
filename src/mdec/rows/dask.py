"""Work on a Dask cluster: row blocks that stay on the workers.

Rows never come to the client; what is done with blocks is handed to
`dask.distributed`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mdec._support.files import atomic_file, claim_folder, replace_together
from mdec._support.messages import refuse
from mdec._support.optional import import_optional
from mdec._support.parallel import run_capped, this_process
from mdec.rows.work import Executor

# Rows are kept on the workers if they fill at most this share of their memory.
KEPT_SHARE = 0.4


def _import(name: str) -> Any:
    return import_optional(name, needed_for="a Dask array", install="mdec[distributed]")


class DaskExecutor(Executor):
    """Work handed to the workers of a cluster; handles are futures.

    The size of a row block is for messages.
    """

    def __init__(self, client: Any, block_bytes: int) -> None:
        self.client = client
        self.block_bytes = block_bytes

    def call(self, func: Callable[..., Any], *args: Any) -> Any:
        """Hand over one piece of work."""
        if args and hasattr(args[0], "dask"):
            # Rows that are not kept are read anew for each piece of work.
            lazy = _import("dask").delayed(run_capped, pure=False)
            return self.client.compute(lazy(func, this_process(), *args))
        return self.client.submit(run_capped, func, this_process(), *args, pure=False)

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


def check_dask_array(X: Any) -> None:
    """Raise one sentence for a Dask array that cannot be clustered as it is."""
    shape, meta = f"X has shape {X.shape}; give a table", getattr(X, "_meta", None)
    refusals = {
        f"{shape} of two dimensions, samples in rows.": X.ndim != 2,
        f"{shape} with known chunks, for example by X.compute_chunk_sizes().": any(
            np.isnan(X.shape)
        ),
        "the blocks of X are sparse, which Dask workers do not take; fill them with "
        "X.map_blocks(lambda block: block.toarray()), or give a sparse "
        "matrix.": sparse.issparse(meta),
        f"X holds {X.dtype}; convert it with X.astype('float32').": X.dtype
        not in (np.float32, np.float64),
    }
    refuse(refusals)


def place_blocks(X: Any, height: int) -> tuple[DaskExecutor, list[Any]]:
    """Cut a Dask array with known chunks into blocks of `height` rows on the workers.

    The blocks are futures of rows, or rows to be read anew each time where all of them
    would fill more than 40 % of the workers' memory.
    """
    try:
        client = _import("distributed").get_client()
    except ValueError as error:
        raise ValueError(
            "a Dask array needs a running cluster; make a dask.distributed.Client "
            "first."
        ) from error
    executor = DaskExecutor(client, height * X.shape[1] * X.dtype.itemsize)
    blocks = X.rechunk({0: height, 1: -1}).to_delayed().ravel().tolist()
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    memory = sum(each["memory_limit"] or 0 for each in workers)
    if X.nbytes <= KEPT_SHARE * memory:
        blocks = client.compute(blocks)
    return executor, blocks


def as_dask_array(
    parts: Sequence[Any],
    bounds: list[tuple[int, int]],
    dtype: type[np.generic],
    n_columns: int | None = None,
) -> Any:
    """Return futures of row blocks as one Dask array."""
    dask, array = _import("dask"), _import("dask.array")
    width = () if n_columns is None else (n_columns,)
    blocks = [
        array.from_delayed(dask.delayed(part), (stop - start, *width), dtype)
        for part, (start, stop) in zip(parts, bounds, strict=True)
    ]
    return array.concatenate(blocks)


def write_labels(
    folder: str | os.PathLike[str], labels: Any, confidence: Any | None = None
) -> None:
    """Let the workers write a clustering to Parquet, one file for each row block.

    Parameters
    ----------
    folder : path-like
        A folder that all workers see, under the same path; made if it does not exist.
        The parts of an earlier clustering in it are replaced together.
    labels : dask.array.Array of shape (n_samples,)
        ``model.labels_`` of a Dask array.
    confidence : dask.array.Array of shape (n_samples,), optional
        ``model.confidence_``.
    """
    dask, target = _import("dask"), Path(folder)
    parquet = import_optional(
        "pyarrow.parquet", needed_for="writing Parquet", install="mdec[data]"
    )
    arrays = {"cluster": labels}
    arrays |= {} if confidence is None else {"confidence": confidence}
    blocks = zip(*(each.to_delayed().ravel() for each in arrays.values()), strict=True)
    starts = np.cumsum([0, *labels.chunks[0]])
    with claim_folder(target):
        old = sorted(target.glob("part-??????.parquet"))
        for path in old:
            if parquet.read_schema(path).names[:2] != ["sample", "cluster"]:
                raise ValueError(
                    f"{os.fspath(path)!r} is not part of a clustering; give another "
                    "folder."
                )
        with replace_together(target, [path.name for path in old]) as new:
            names = (
                new.absolute() / f"part-{i:06d}.parquet" for i in range(len(starts))
            )
            tasks = [
                dask.delayed(_write_part)(str(name), int(start), list(arrays), parts)
                for name, start, parts in zip(names, starts, blocks, strict=False)
            ]
            dask.compute(*tasks)


def _write_part(
    path: str, start: int, names: list[str], columns: Sequence[NDArray[Any]]
) -> None:
    from pyarrow import parquet, table

    samples = np.arange(start, start + len(columns[0]))
    content = {"sample": samples, **dict(zip(names, columns, strict=True))}
    with atomic_file(path) as file:
        parquet.write_table(table(content), file)
