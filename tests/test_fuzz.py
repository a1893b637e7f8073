"""A slice of the fuzzing run, the same in each test run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_damaged_files_are_read_or_refused_in_a_sentence(tmp_path):
    script = Path(__file__).parents[1] / "benchmarks" / "fuzz.py"
    if not script.exists():
        pytest.skip("benchmarks/fuzz.py is not in a source distribution")
    found = subprocess.run(
        [sys.executable, script, "--inputs", "12", "--failures", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    assert ", 0 readers failed" in found.stdout
