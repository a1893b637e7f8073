"""Asking for memory before it is taken."""

from __future__ import annotations

from pathlib import Path

# What a file may claim to hold before it is refused, unless the caller says more.
MAX_BYTES = 4 * 2**30


def available_memory() -> int | None:
    """Return the bytes that can be taken without swapping, or None if unknown."""
    known = [n for n in (_free_on_machine(), _left_to_process()) if n is not None]
    return min(known, default=None)


def _free_on_machine() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            name, value = line.split(":")
            if name == "MemAvailable":
                return int(value.split()[0]) * 1024
    except OSError:  # not Linux
        return None
    return None


def _left_to_process() -> int | None:
    """Return what limits on this process, as of ulimit -v and -d, leave."""
    try:
        import resource

        pages = [int(word) for word in Path("/proc/self/statm").read_text().split()]
    except (ImportError, OSError):  # not Linux
        return None
    used = {resource.RLIMIT_AS: pages[0], resource.RLIMIT_DATA: pages[5]}
    limits = {kind: resource.getrlimit(kind)[0] for kind in used}
    left = [
        max(0, limit - used[kind] * resource.getpagesize())
        for kind, limit in limits.items()
        if limit != resource.RLIM_INFINITY
    ]
    return min(left, default=None)


def require_memory(n_bytes: int, purpose: str, cure: str) -> None:
    """Raise a MemoryError that names need and cure if the bytes cannot be had."""
    available = available_memory()
    if available is not None and n_bytes > available:
        raise MemoryError(
            f"{purpose} needs {n_bytes / 1e9:.1f} GB and {available / 1e9:.1f} GB are "
            f"free; {cure}."
        )
