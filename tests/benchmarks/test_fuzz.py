"""A slice of the fuzzing run, the same in each test run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "fuzz.py"
if not SCRIPT.exists():
    pytest.skip("needs benchmarks/fuzz.py", allow_module_level=True)


def fuzz(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, SCRIPT, "--failures", folder, *options],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_damaged_files_are_read_or_refused_in_a_sentence(tmp_path):
    found = fuzz(tmp_path, "--inputs", "12")
    assert found.returncode == 0, found.stdout + found.stderr
    assert ", 0 readers failed" in found.stdout


def test_damaged_models_and_result_folders(tmp_path):
    found = fuzz(tmp_path, "--inputs", "15", "--reader", "model", "result folder")
    assert found.returncode == 0, found.stdout + found.stderr
    assert "15 inputs  model" in found.stdout
    assert "15 inputs  result folder" in found.stdout
