"""Asking for memory before it is taken."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

# What a file may claim to hold before it is refused, unless the caller says more.
MAX_BYTES = 4 * 2**30

# Both versions of Linux's control groups: where the groups of processes lie, a group's
# files of its limit and of what it takes, and the word in its statistics for what of
# that is a cache, which gives way.
_VERSION_1 = (
    ("sys/fs/cgroup/memory",),
    *("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
_VERSION_2 = (
    ("sys/fs/cgroup", "sys/fs/cgroup/unified"),
    *("memory.max", "memory.current", "inactive_file"),
)


def available_memory() -> int | None:
    """Return the bytes that can be taken without swapping, or None if unknown."""
    known = _free_on_machine(), _free_for_process(), _free_in_groups()
    return min((n for n in known if n is not None), default=None)


def _free_on_machine() -> int | None:
    import psutil

    try:
        return int(psutil.virtual_memory().available)
    except (OSError, RuntimeError):  # Linux without /proc
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _free_in_groups(root: Path = Path("/")) -> int | None:
    """Return what the limits on the groups of this process leave, as of a container.

    The limit of a group holds for all groups inside, so that the least counts. `root`
    is the folder that has the folders proc and sys.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except (OSError, ValueError):  # not Linux
        return None
    free = []
    for line in lines:
        controllers, _, path = line.partition(":")[2].partition(":")
        tops, *files = _VERSION_2 if line.startswith("0::") else _VERSION_1
        if not line.startswith("0::") and "memory" not in controllers.split(","):
            continue
        for top in map(root.joinpath, tops):
            # A container may see its own group alone, whatever its path outside is.
            inside = top / path.lstrip("/")
            group = inside if inside.is_dir() else top
            groups = [g for g in (group, *group.parents) if g.is_relative_to(top)]
            # Without a limit a file is absent, or says "max".
            for each in groups:
                with suppress(OSError, ValueError):
                    free.append(_free_in_group(each, *files))
    return min(free, default=None)


def _free_in_group(group: Path, limit_file: str, usage_file: str, cache: str) -> int:
    """Return what is left of a group's limit; raise if it has none."""
    limit = int((group / limit_file).read_text())
    used = int((group / usage_file).read_text())
    with suppress(OSError, ValueError):
        for line in (group / "memory.stat").read_text().splitlines():
            name, value = line.split()
            used -= int(value) if name == cache else 0
    return max(0, limit - max(0, used))


def _free_for_process() -> int | None:
    """Return what the limits on this process, as set by ulimit -v and -d, leave."""
    import psutil

    process = psutil.Process()
    try:
        used = process.memory_info()
        taken = {psutil.RLIMIT_AS: used.vms, psutil.RLIMIT_DATA: used.data}
        limits = {kind: process.rlimit(kind)[0] for kind in taken}
    except (AttributeError, OSError, psutil.Error):  # not Linux
        return None
    left = [
        max(0, limit - taken[kind])
        for kind, limit in limits.items()
        if limit != psutil.RLIM_INFINITY
    ]
    return min(left, default=None)


def resident_memory() -> int:
    """Return the bytes that this process has in memory, 0 if no one knows."""
    import psutil

    try:
        return int(psutil.Process().memory_info().rss)
    except psutil.Error:  # no /proc
        return 0


def require_memory(n_bytes: int, purpose: str, cure: str) -> None:
    """Raise a MemoryError that names need and cure if the bytes are not free."""
    available = available_memory()
    if available is not None and n_bytes > available:
        raise MemoryError(
            f"{purpose} needs {n_bytes / 1e9:.1f} GB and {available / 1e9:.1f} GB are "
            f"free; {cure}."
        )
