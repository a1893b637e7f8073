"""Members made many at a time on a graphics card."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mdec._support.optional import import_optional
from mdec._support.random import member_stream
from mdec.engines.store import Checkpoint, Made
from mdec.ensemble import Failure, Member

Array = NDArray[np.floating]
Draw = Callable[[int, int], tuple[Member, NDArray[np.int64]]]
Labels = NDArray[np.int32]

DEVICES = ("cpu", "cuda", "auto", "torch")
MAX_BATCH = 128
ONE_CLUSTER = "all samples fell into one cluster."


def resolve_device(device: str) -> str:
    """Return where to compute, with "auto" decided, or raise if it cannot be had.

    Parameters
    ----------
    device : {"cpu", "cuda", "auto", "torch"}
        "auto" is "cuda" where PyTorch finds a card, else "cpu".

    Returns
    -------
    str
        "cpu", "cuda" or "torch".

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


def made_in_batches(
    X: Array,
    ensemble_size: int,
    spec: dict[str, Any],
    draw: Draw,
    n_attempts: int,
    checkpoint: Checkpoint | None,
) -> Iterator[tuple[int, Made]]:
    """Yield members with their numbers, batch by batch.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The data.
    ensemble_size : int
        Number of members.
    spec : dict
        What all members share, ``ensemble.parameters``.
    draw : callable
        Returns a member and its features, given its number and the attempt.
    n_attempts : int
        How often to try a member.
    checkpoint : Checkpoint, optional
        Keeps each member once it is finished.

    Notes
    -----
    Members with like numbers of clusters are made together, so that little is padded.
    """
    from mdec.engines import tensors

    place = tensors.find_device(spec["device"])
    data = tensors.Data.on(X, place)
    waiting = []
    for index in range(ensemble_size):
        kept = None if checkpoint is None else checkpoint.load(index)
        if kept is None:
            waiting.append((index, 0))
        else:
            yield index, kept
    while waiting:
        drawn = [draw(*each) for each in waiting]
        drawn.sort(key=lambda each: (-each[0].n_clusters, each[0].index))
        waiting = []
        for batch, labels in _batches(data, spec, drawn):
            for member, found in zip(batch, labels, strict=True):
                made = _checked(member, found)
                attempt = member.attempt + 1
                if isinstance(made, Failure) and attempt < n_attempts:
                    waiting.append((member.index, attempt))
                    continue
                if checkpoint is not None:
                    checkpoint.save(member.index, made)
                yield member.index, made


def _batches(
    data: Any, spec: dict[str, Any], drawn: list[tuple[Member, NDArray[np.int64]]]
) -> Iterator[tuple[list[Member], list[Labels | ValueError]]]:
    """Yield groups of members that fit the device together, with their labels."""
    from mdec.engines import tensors

    n_samples = spec["n_samples"]
    n_bytes = tensors.budget(data.there.device)
    while drawn:
        each = tensors.member_bytes(n_samples, drawn[0][0].n_clusters)
        n_members = int(min(max(1, n_bytes // each), MAX_BATCH))
        batch, drawn = drawn[:n_members], drawn[n_members:]
        labels = tensors.with_less_memory(
            partial(_labels, data, spec, batch, each),
            n_bytes,
            f"making base clusterings of {n_samples} samples",
        )
        yield [member for member, _ in batch], labels


def _labels(
    data: Any,
    spec: dict[str, Any],
    batch: list[tuple[Member, NDArray[np.int64]]],
    member_bytes: int,
    n_bytes: int,
) -> list[Labels | ValueError]:
    """Return the labels of a batch, in parts if it has to do with fewer bytes."""
    from mdec.engines import tensors

    n_members = min(len(batch), max(1, n_bytes // member_bytes))
    labels: list[Labels | ValueError] = []
    for start in range(0, len(batch), n_members):
        part = batch[start : start + n_members]
        tasks = [_task(member, features, spec) for member, features in part]
        labels += tensors.base_labels(data, spec["kernel"], tasks, n_bytes // 4)
    return labels


def _task(member: Member, features: NDArray[np.int64], spec: dict[str, Any]) -> Any:
    from mdec.engines import tensors

    seed = spec["entropy"], member.index
    return tensors.Task(
        features,
        member.n_neighbors,
        member.mu,
        member.n_clusters,
        member_stream(*seed, "solver", member.attempt),
        member_stream(*seed, "kmeans", member.attempt),
    )


def _checked(member: Member, found: Labels | ValueError) -> Made:
    if isinstance(found, ValueError):
        return Failure(member.index, str(found))
    numbered = np.unique(found, return_inverse=True)[1].astype(np.int32)
    if numbered.max() == 0:
        return Failure(member.index, ONE_CLUSTER)
    return member, numbered
