"""The benchmark of processors tells other partitions from other numbers."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "processors.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    if not SCRIPT.exists():
        pytest.skip("needs the folder benchmarks")
    spec = importlib.util.spec_from_file_location("processors", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def members() -> np.ndarray:
    return np.array([[0, 0, 0, -1], [1, 0, 1, 0], [1, 1, 0, 1], [0, 1, 2, 1]])


def test_numbers_follow_first_samples(script: ModuleType) -> None:
    found = script.number_by_first_samples(np.array([-1, 5, 0, 5, 9, -1]))
    np.testing.assert_array_equal(found, [-1, 0, 1, 0, 2, -1])


def test_other_numbers_are_no_other_partition(script: ModuleType) -> None:
    changed = members()
    changed[:, 0] = 1 - changed[:, 0]
    assert script.count_differences(members(), members()) == (0, 0)
    assert script.count_differences(members(), changed) == (0, 1)
    changed[3, 2] = 1
    assert script.count_differences(members(), changed) == (1, 1)


def test_a_sample_that_was_left_out_is_no_cluster(script: ModuleType) -> None:
    changed = members()
    changed[:, 3] = [1, 0, 1, 1]
    assert script.count_differences(members(), changed) == (1, 0)


def test_a_line_of_the_table(script: ModuleType) -> None:
    labels = np.array([0, 0, 1, 1])
    ours = {"members": members(), "HC": labels, "SC": labels, "BG": labels}
    theirs = {**ours, "BG": labels[[0, 2, 1, 3]]}
    theirs["members"] = members()[:, [2, 1, 0, 3]]
    line = script.row_of_table("DS-01", "Zen", ours, theirs)
    assert line == "| DS-01 | Zen | 50 % | 0 % | same | same | ARI -0.500 |"


def test_counts_of_each_setting_and_dataset(script: ModuleType) -> None:
    labels = np.array([0, 0, 1, 1])
    same = {"members": members(), "HC": labels, "SC": labels, "BG": labels}
    other = {**same, "SC": 1 - labels, "BG": labels[[0, 2, 1, 3]]}
    other["members"] = members()[:, [2, 1, 0, 3]]
    ours = {"DS-01": same, "DS-02": same}
    found = script.compare(ours, {"Zen": {"DS-01": other, "DS-02": same}})
    assert [row["dataset"] for row in found] == ["DS-01", "DS-02"]
    assert [(row["other"], row["renumbered"]) for row in found] == [(2, 0), (0, 0)]
    assert [row["differ"] for row in found] == [["SC", "BG"], []]
    assert all((row["members"], row["consensus"]) == (4, 3) for row in found)


@pytest.mark.parametrize(
    ("n_rows", "wanted", "left"), [(1404, 702, 702), (1404, 700, 702), (50, 700, 50)]
)
def test_samples_taken(script: ModuleType, n_rows: int, wanted: int, left: int) -> None:
    rows = np.arange(n_rows)
    assert len(rows[script.thinned(rows, wanted)]) == left
    assert len(rows[script.thinned(rows, None)]) == n_rows


def test_unknown_datasets_are_refused(script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "DS-01_one.npz").touch()
    options = argparse.Namespace(data=tmp_path, datasets=["DS-01", "DS-02"])
    with pytest.raises(SystemExit, match="DS-02"):
        script.find_datasets(options)
    options.datasets = []
    assert [path.name for path in script.find_datasets(options)] == ["DS-01_one.npz"]
