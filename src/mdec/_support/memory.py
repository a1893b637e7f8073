"""Asking for memory before it is taken."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

# What a file may claim to hold before it is refused, unless the caller says more.
MAX_BYTES = 4 * 2**30

# Files of a group of processes: its limit and what it takes; and the word in its
# statistics for what of that is a cache, which gives way. By the kind of file system,
# for both versions of Linux's control groups.
_GROUP_FILES = {
    "cgroup2": ("memory.max", "memory.current", "inactive_file"),
    "cgroup": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


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
    return min(
        (
            free
            for kind, folder, depth in _find_groups(root)
            for group in (folder, *folder.parents[:depth])
            if (free := _free_in_group(group, *_GROUP_FILES[kind])) is not None
        ),
        default=None,
    )


@lru_cache(maxsize=8)
def _find_groups(root: Path) -> list[tuple[str, Path, int]]:
    """Return the kind and folder of this process's groups, and how deep they lie.

    A process stays where it was started, so that they are looked for once.
    """
    found: list[tuple[str, Path, int]] = []
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
        mounts = (root / "proc/self/mountinfo").read_text().splitlines()
    except (OSError, ValueError):  # not Linux
        return found
    groups = [line.split(":", 2) for line in lines if line.count(":") >= 2]
    for number, controllers, path in groups:
        v2 = number == "0" and not controllers
        if not v2 and "memory" not in controllers.split(","):
            continue
        kind = "cgroup2" if v2 else "cgroup"
        for line in mounts:
            place, _, system = line.partition(" - ")
            above, mounted, options = place.split()[3], place.split()[4], system.split()
            if options[0] != kind or not (v2 or "memory" in options[-1].split(",")):
                continue
            # A container may see its own group alone, whatever its path outside is.
            inside = Path(path).parts[1:]
            if Path(path).is_relative_to(above):
                inside = Path(path).relative_to(above).parts
            folder = root / mounted.lstrip("/")
            if not folder.joinpath(*inside).is_dir():
                inside = ()
            found.append((kind, folder.joinpath(*inside), len(inside)))
    return found


def _free_in_group(
    group: Path, limit_file: str, usage_file: str, cache: str
) -> int | None:
    """Return what is left of a group's limit; None if it has none."""
    try:
        limit = int((group / limit_file).read_text())
        used = int((group / usage_file).read_text())
    except (OSError, ValueError):  # without a limit a file is absent, or says "max"
        return None
    with suppress(OSError, ValueError):
        for line in (group / "memory.stat").read_text().splitlines():
            name, value = line.split()
            used -= int(value) if name == cache else 0
    return max(0, limit - max(0, used))


def _free_for_process() -> int | None:
    """Return what the limits on this process, as set by ulimit -v and -d, leave."""
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
