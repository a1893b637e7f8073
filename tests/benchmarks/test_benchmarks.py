"""The scripts that give the figures of the documentation keep up with the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
SCRIPTS = sorted(path.name for path in FOLDER.glob("*.py"))

if not SCRIPTS:
    pytest.skip("the benchmarks are not at hand", allow_module_level=True)


def test_every_script_finds_what_it_imports() -> None:
    """All in one process, because the imports take longest."""
    if "gpu.py" in SCRIPTS:
        pytest.importorskip("torch")
    load = (
        "import runpy, sys\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "for name in sys.argv[2:]:\n"
        "    runpy.run_path(f'{sys.argv[1]}/{name}', run_name='loaded')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", load, FOLDER, *SCRIPTS], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
