"""The Python blocks of the README run, and its picture is small."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

README = Path(__file__).resolve().parents[2] / "README.md"
TEXT = README.read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, re.M | re.S)


def test_there_is_an_example() -> None:
    assert BLOCKS
    assert any("MDEC(" in block for block in BLOCKS)


def test_blocks_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They read an expression table, and find its groups."""
    rng = np.random.default_rng(0)
    kind = np.repeat([0, 1, 2], 15)
    level = np.tile(rng.lognormal(1.0, 1.0, 150), (3, 1))
    for k in range(3):
        level[k, 40 * k : 40 * k + 40] *= 6.0
    names = [f"patient {i}" for i in range(45)]
    pd.DataFrame(rng.poisson(level[kind]), names).to_csv(tmp_path / "expression.csv")
    monkeypatch.chdir(tmp_path)
    space: dict[str, object] = {"__name__": "readme"}
    for number, block in enumerate(BLOCKS):
        exec(compile(block, f"README.md block {number}", "exec"), space)
    assert len(np.unique(space["model"].labels_ * 3 + kind)) == 3


def test_commands_are_those_of_the_makefile() -> None:
    made = re.findall(r"^\$ make ([\w-]+)", TEXT, re.M)
    rules = re.findall(r"^([\w-]+):", (README.parent / "Makefile").read_text(), re.M)
    assert {"demo", "test"} <= set(made) <= set(rules)


def test_the_pictures_of_report_and_app_are_small() -> None:
    pictures = re.findall(r"!\[[^\]]{40,}\]\(([^)]+\.png)\)", TEXT)
    assert [Path(each).stem for each in pictures] == ["report", "app"]
    assert all((README.parent / each).stat().st_size < 200_000 for each in pictures)


def test_the_caption_of_the_report_describes_its_dataset() -> None:
    from mdec.datasets import dataset_info

    info = dataset_info("DS-13")
    caption = f"{info.n_samples} lymphomas and {info.n_features} genes"
    assert caption in TEXT
    assert info.n_classes == 3
