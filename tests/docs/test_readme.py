"""The Python blocks of the README run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[2] / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", README.read_text("utf-8"), re.M | re.S)


def test_there_is_an_example() -> None:
    assert BLOCKS
    assert any("MDEC(" in block for block in BLOCKS)


def test_blocks_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Later blocks may use names of earlier ones, as a reader would."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "readme"}
    for number, block in enumerate(BLOCKS):
        exec(compile(block, f"README.md block {number}", "exec"), names)
