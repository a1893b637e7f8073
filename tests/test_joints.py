"""The Python blocks of the guide to replaceable parts run, and mean what they say."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

PAGE = Path(__file__).resolve().parents[1] / "docs" / "joints.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)


def test_blocks_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "joints"}
    for number, block in enumerate(BLOCKS):
        exec(compile(block, f"joints.md block {number}", "exec"), names)
    for model in ("mixed", "by_pairs", "by_columns"):
        assert adjusted_rand_score(names["y"], names[model].labels_) > 0.8
    np.testing.assert_allclose(names["gower"], by_hand(names["frame"]), atol=1e-12)
    for model in ("several", "drawn", "model", "firm"):
        found = names[model].consensus_labels_
        assert adjusted_rand_score(names["y"], found) > 0.9
    assert (names["drawn"].ensemble_.labels < 0).mean() == pytest.approx(0.2)
    assert adjusted_rand_score(names["y"], names["labels"]) > 0.9
    assert adjusted_rand_score(names["topic"], names["by_topic"].labels_) > 0.9
    assert adjusted_rand_score(names["y"], names["rival"].labels_) > 0.9


def by_hand(frame: pd.DataFrame) -> np.ndarray:
    """Return Gower's distances, column by column."""
    total = np.zeros((len(frame), len(frame)))
    for name in frame:
        column = frame[name].to_numpy()
        if column.dtype.kind == "f":
            total += np.abs(np.subtract.outer(column, column)) / np.ptp(column)
        else:
            total += column[:, None] != column[None, :]
    return total / frame.shape[1]
