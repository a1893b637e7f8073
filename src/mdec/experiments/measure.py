"""What a call cost, and where: seconds, memory, machine and versions."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from mdec._support.memory import available_memory
from mdec._support.parallel import single_threaded_blas
from mdec.experiments.records import FAILED, MISSING, OK, OUT_OF_MEMORY, Costs, Machine


@cache
def versions(*packages: str) -> dict[str, str]:
    """Return the versions of Python and of some packages.

    Examples
    --------
    >>> list(versions("numpy", "no such package").items())[-1]
    ('no such package', 'unknown')
    """
    found = {"python": platform.python_version()}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


@cache
def commit() -> str:
    """Return the commit of the checkout that this code runs from; empty without one."""
    here = Path(__file__)
    ask = ["git", "-C", str(here.parent)]
    tracked = [*ask, "ls-files", "--error-unmatch", here.name]
    head = [*ask, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        # Installed code may lie below a checkout of something else.
        subprocess.run(tracked, check=True, capture_output=True)
        told = subprocess.run(head, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return told.stdout.strip()


@cache
def machine() -> Machine:
    """Return what a reader of timings needs to know about the machine."""
    processor = _told("/proc/cpuinfo", "model name")
    return {
        "system": platform.platform(terse=True),
        "processor": processor or platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "available_memory": available_memory(),
    }


def _told(path: str, name: str) -> str:
    """Return what a file of the system says under a name; nothing but on Linux."""
    try:
        for line in Path(path).read_text().splitlines():
            if line.startswith(name):
                return line.split(":", 1)[1].strip()
    except OSError:  # not Linux
        pass
    return ""


def _process_bytes(name: str) -> int:
    told = _told("/proc/self/status", name)
    return int(told.split()[0]) * 1024 if told else 0


class Measured:
    """What a call gave and cost; a failure is a status, not an exception."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.result: Any = None
        self.status, self.message = OK, ""
        _reset_peak()
        wall, cpu = time.perf_counter(), time.process_time()
        with warnings.catch_warnings(record=True) as caught, single_threaded_blas():
            warnings.simplefilter("always")
            try:
                self.result = call()
            except MemoryError as error:
                self.status, self.message = OUT_OF_MEMORY, str(error)
            except ImportError as error:
                self.status, self.message = MISSING, str(error)
            # A method may fail in any way; the study goes on and the record says how.
            except Exception as error:  # noqa: BLE001
                self.status = FAILED
                self.message = f"{type(error).__name__}: {error}"
        self.costs: Costs = {
            "seconds": round(time.perf_counter() - wall, 4),
            "cpu_seconds": round(time.process_time() - cpu, 4),
            "peak_bytes": _peak(),
        }
        self.warnings = sorted({str(entry.message) for entry in caught})


def _reset_peak() -> None:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:  # not Linux: the peak is that of the process so far
        return


def _peak() -> int:
    peak = _process_bytes("VmHWM")
    if peak:
        return peak
    try:
        import resource
    except ImportError:  # Windows
        return 0
    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale


def limit_memory(n_bytes: int) -> None:
    """Make allocations beyond what is used now plus `n_bytes` fail, on Linux."""
    if sys.platform == "linux":
        import resource

        most = _process_bytes("VmData") + n_bytes
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
