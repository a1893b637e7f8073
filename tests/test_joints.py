"""The Python blocks of docs/joints.md run, each section by itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[1] / "docs" / "joints.md"
SECTIONS = re.split(r"^## ", PAGE.read_text("utf-8"), flags=re.M)[1:]
TITLES = [section.splitlines()[0] for section in SECTIONS]


@pytest.mark.parametrize("section", SECTIONS, ids=TITLES)
def test_blocks_run(
    section: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", section, re.M | re.S)
    assert blocks
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "joints"}
    for block in blocks:
        written = [line for line in block.splitlines() if line and "import" not in line]
        assert len(written) <= 10
        exec(compile(block, "docs/joints.md", "exec"), names)
