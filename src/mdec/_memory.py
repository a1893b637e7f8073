"""Asking for memory before it is taken."""

from __future__ import annotations

from pathlib import Path


def available_memory() -> int | None:
    """Return the bytes that can be taken without swapping, or None if unknown."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            name, value = line.split(":")
            if name == "MemAvailable":
                return int(value.split()[0]) * 1024
    except OSError:  # not Linux
        return None
    return None


def require_memory(n_bytes: int, purpose: str, cure: str) -> None:
    """Raise a MemoryError that names need and cure if the bytes cannot be had."""
    available = available_memory()
    if available is not None and n_bytes > available:
        raise MemoryError(
            f"{purpose} needs {n_bytes / 1e9:.1f} GB and {available / 1e9:.1f} GB are "
            f"free; {cure}."
        )
