"""Which device to use, and how much of it."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import RLock
from typing import Any, TypeVar

import torch
from numpy.typing import NDArray
from torch import Tensor

S = TypeVar("S")
T = TypeVar("T")

# Tiles and batches may take this share of a device's free memory, and no more than
# keeps it busy.
_SHARE = 0.5
_ENOUGH = 32e9
_LOCKED = 2**28

# Batches made at the same time: the host works for one while the device does another.
IN_FLIGHT = 3

_precision_lock = RLock()


def find_device(name: str) -> torch.device:
    """Return a device by its name, or raise one sentence that says what to do."""
    if name == "torch":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise RuntimeError(
            f"device={name!r} needs an NVIDIA GPU that PyTorch can use, and it finds "
            "none; install PyTorch with CUDA and a driver, or use device='cpu'."
        )
    return torch.device("cuda")


@contextmanager
def full_precision(precision: str = "highest") -> Iterator[None]:
    """Keep products of float32 in float32: TF32 would change neighbours.

    PyTorch has one precision for all threads, so that one of them at a time sets it.
    """
    with _precision_lock:
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision(precision)
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(before)


@cache
def has_fast_tensor_cores(device: torch.device) -> bool:
    """Tell whether three products in TF32 take less time than one in float32.

    They do on the GPUs of data centres; others have few tensor cores for their size.
    """
    known = (8, 0), (9, 0), (10, 0)
    return device.type == "cuda" and torch.cuda.get_device_capability(device) in known


def staging(shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return memory of the host that a device copies from and to at its full speed.

    Much of it would take longer to lock in its place than to copy.
    """
    is_small = math.prod(shape) * dtype.itemsize <= _LOCKED
    return torch.empty(
        shape, dtype=dtype, pin_memory=device.type == "cuda" and is_small
    )


def to_host(tensor: Tensor) -> NDArray[Any]:
    """Copy a tensor to the host, once what it comes from is done."""
    copy = staging(tensor.shape, tensor.dtype, tensor.device)
    copy.copy_(tensor, non_blocking=True)
    if tensor.is_cuda:
        torch.cuda.current_stream().synchronize()
    array: NDArray[Any] = copy.numpy()
    return array


@cache
def _host_pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(16, "mdec-device")


def begin_on_host(
    work: Callable[[Any], T], items: Iterable[Any], n_threads: int = 16
) -> Callable[[], list[T]]:
    """Begin to do work on each of some items in the threads of the host.

    What is returned waits for all of it, and returns that.
    """
    each = list(items)
    n_parts = min(16, os.cpu_count() or 1, n_threads, len(each))
    found: dict[int, T] = {}

    def do_some(first: int) -> None:
        for place in range(first, len(each), n_parts):
            found[place] = work(each[place])

    begun = [_host_pool().submit(do_some, part) for part in range(n_parts)]

    def wait() -> list[T]:
        for part in begun:
            part.result()
        return [found[place] for place in range(len(each))]

    return wait


def on_host(
    work: Callable[[Any], T], items: Iterable[Any], n_threads: int = 16
) -> list[T]:
    """Do work on each of some items in the threads of the host, and return all."""
    if n_threads == 1:
        return list(map(work, items))
    return begin_on_host(work, items, n_threads)()


@cache
def _batch_pool(device: torch.device) -> ThreadPoolExecutor:
    def start() -> None:
        if device.type == "cuda":
            cuda: Any = torch.cuda
            cuda.set_stream(cuda.Stream(device))

    return ThreadPoolExecutor(IN_FLIGHT, "mdec-batch", initializer=start)


def side_by_side(
    work: Callable[[S], T], items: Iterable[S], device: torch.device
) -> Iterator[T]:
    """Yield what work makes of each item, in order, on some streams of the device."""
    return _batch_pool(device).map(work, items)


def free_bytes(device: torch.device) -> int | None:
    """Return the bytes that a GPU has left, or None where it is not a GPU."""
    if device.type != "cuda":
        return None
    free, _ = torch.cuda.mem_get_info(device)
    reserved = torch.cuda.memory_reserved(device)
    return free + reserved - torch.cuda.memory_allocated(device)


def fits(n_bytes: int, device: torch.device) -> bool:
    """Tell whether a device is large enough, with a tenth to spare.

    What else is on it decides nothing: if there is no room left, one sentence says so.
    """
    free, wanted = free_bytes(device), 1.1 * n_bytes
    if free is None:
        return True
    if wanted > torch.cuda.mem_get_info(device)[1]:
        return False
    if wanted > free:
        raise MemoryError(
            f"the consensus needs {wanted / 1e9:.1f} GB of the GPU, on which "
            f"{free / 1e9:.1f} GB are free; free the GPU or use device='cpu'."
        )
    return True


def budget(device: torch.device) -> int:
    """Return the bytes that a batch may take beside the data and the other batches."""
    free = free_bytes(device)
    return int(
        _ENOUGH / 32 if free is None else min(_SHARE * free / IN_FLIGHT, _ENOUGH)
    )


def with_less_memory(work: Callable[[int], T], n_bytes: int, purpose: str) -> T:
    """Do work within a number of bytes, and within half of it as long as it fails.

    `work` takes the bytes that it may hold; `purpose` names it in the error.
    """
    least = n_bytes >> 6
    while True:
        try:
            return work(n_bytes)
        except torch.OutOfMemoryError as error:
            torch.cuda.empty_cache()
            if n_bytes <= least:
                free, total = torch.cuda.mem_get_info()
                raise MemoryError(
                    f"{purpose} does not fit the {free / 1e9:.1f} of "
                    f"{total / 1e9:.1f} GB that are free on the GPU, even in blocks "
                    f"of {n_bytes / 1e9:.2f} GB; free the GPU, cluster fewer samples "
                    "or use device='cpu'."
                ) from error
            n_bytes >>= 1
