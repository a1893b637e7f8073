"""Shared fixtures, and what the machine is told before the tests begin."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# There is a process for each core: more threads would wait for each other, and those of
# OpenMP wait busily. What depends on threads sets them itself.
for _pool in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_pool}_NUM_THREADS", "1")

# psutil then knows no process, and Dask, which asks it, cannot be imported.
_NO_PROC = sys.platform == "linux" and not Path("/proc/self/stat").exists()
if _NO_PROC:
    sys.modules |= {"dask": None, "distributed": None}  # type: ignore[dict-item]

# Between them these use most of the compiled loops, in both precisions.
_COMPILES = (
    """
import numpy as np
from mdec import MDEC
X = np.random.default_rng(0).normal(size=(130, 6))
for dtype in (np.float32, np.float64):
    model = MDEC(2, ensemble_size=4, random_state=0).fit(X.astype(dtype))
    for consensus in ("spectral", "bipartite"):
        model.recluster(consensus=consensus)
    model.predict(X[:5].astype(dtype))
""",
    """
import numpy as np
from mdec import MDEC
X = np.random.default_rng(0).normal(size=(300, 6))
for dtype in (np.float32, np.float64):
    model = MDEC(2, ensemble_size=4, base="landmark", random_state=0)
    model.fit(X.astype(dtype))
    for consensus in ("spectral", "bipartite"):
        model.recluster(consensus=consensus)
    model.predict(X[:5].astype(dtype))
""",
)


def pytest_configure(config: pytest.Config) -> None:
    """Compile the loops once, where several workers would each compile all of them."""
    if not getattr(config.option, "numprocesses", None):
        return
    processes = [subprocess.Popen([sys.executable, "-c", code]) for code in _COMPILES]
    codes = [process.wait() for process in processes]
    if any(codes):
        raise pytest.UsageError("the package does not run; see the errors above.")


@pytest.fixture(scope="session")
def worker_processes() -> None:
    """Processes of joblib; tests that start them skip where it cannot."""
    if _NO_PROC:
        pytest.skip("psutil, which joblib asks of its processes, needs /proc")


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of reference data; tests that need it skip without it."""
    beside = Path(__file__).resolve().parents[2] / "shared"
    folder = Path(os.environ.get("MDEC_SHARED", beside))
    if not (folder / "golden").is_dir():
        pytest.skip(f"needs the reference data, not found in {folder}")
    return folder


@pytest.fixture(scope="module")
def browser(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A headless Chromium that records its console and its requests.

    Its window has the size that the module calls WINDOW.
    """
    webdriver = pytest.importorskip("selenium.webdriver")
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("needs chromium and chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (
        *("headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run"),
        *("disable-background-networking", "disable-component-update", "disable-sync"),
        f"window-size={getattr(request.module, 'WINDOW', '1400,950')}",
        f"user-data-dir={tempfile.mkdtemp()}",
    ):
        options.add_argument(f"--{flag}")
    logs = {"browser": "ALL", "performance": "ALL"}
    options.set_capability("goog:loggingPrefs", logs)
    started = webdriver.Chrome(options, webdriver.ChromeService(driver))
    yield started
    started.quit()
