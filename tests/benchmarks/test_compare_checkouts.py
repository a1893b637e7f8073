"""The comparison of two checkouts finds what differs, and nothing else."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "compare_checkouts.py"
KEY = "graph+DS-03+scaled_gaussian+0.npz"

Arrays = dict[str, np.ndarray]


def result() -> Arrays:
    labels = np.arange(12, dtype=np.int32) % 3
    # Copies, so that one array can be changed alone.
    return {
        "source": np.array("one state"),
        "hierarchical": labels,
        "spectral": labels.copy(),
        "bipartite": labels.copy(),
        "members": np.stack([labels, labels // 2], axis=1),
        "predicted": labels[:5].copy(),
        "weights": np.linspace(0.1, 0.9, 5),
        "confidence": np.linspace(0.5, 1.0, 12),
    }


@pytest.fixture(scope="module")
def script() -> ModuleType:
    if not SCRIPT.exists():
        pytest.skip("needs the folder benchmarks")
    spec = importlib.util.spec_from_file_location("compare_checkouts", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Data classes look their module up.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def folders(tmp_path: Path, change: Callable[[Arrays], object]) -> list[Path]:
    """Return two folders of two results; one result of the second is changed."""
    made = [tmp_path / "a", tmp_path / "b"]
    for folder in made:
        folder.mkdir()
        arrays = result()
        np.savez(folder / "graph+DS-01+scaled_gaussian+0.npz", **arrays)
        if folder is made[1]:
            change(arrays)
        np.savez(folder / KEY, **arrays)
    return made


def added(name: str, amount: float) -> Callable[[Arrays], object]:
    def change(arrays: Arrays) -> None:
        arrays[name][-1] += amount

    return change


@pytest.mark.parametrize(
    ("name", "amount"), [("weights", 0.0), ("weights", 1e-13), ("confidence", 1e-10)]
)
def test_equal_up_to_rounding(
    script: ModuleType,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    amount: float,
) -> None:
    assert script.compare(*folders(tmp_path, added(name, amount))) == 0
    assert "0 of 2 results differ" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "amount", "told"),
    [
        ("spectral", 1, "| 1 of 12 samples |"),
        ("members", 1, "| 2 members, 2 labels |"),
        ("predicted", 1, "| 1 of 5 samples |"),
        ("weights", 1e-11, "| by 1.0e-11 |"),
        ("confidence", 1e-8, "| by 1.0e-08 |"),
        ("confidence", np.nan, "| by nan |"),
    ],
)
def test_differences_are_told(
    script: ModuleType,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    amount: float,
    told: str,
) -> None:
    assert script.compare(*folders(tmp_path, added(name, amount))) == 1
    text = capsys.readouterr().out
    assert told in text
    assert "1 of 2 results differ" in text


def test_other_shapes_and_types_differ(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def change(arrays: Arrays) -> None:
        arrays["hierarchical"] = arrays["hierarchical"].astype(np.int64)
        arrays["weights"] = arrays["weights"][:-1]

    assert script.compare(*folders(tmp_path, change)) == 1
    text = capsys.readouterr().out
    assert "| int32[12] and int64[12] |" in text
    assert "| float64[5] and float64[4] |" in text


def test_other_numbers_of_clusters_are_no_difference(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def change(arrays: Arrays) -> None:
        for name in ("hierarchical", "predicted"):
            arrays[name] = (2 - arrays[name]).astype(np.int32)
        members = result()["members"]
        arrays["members"] = np.stack([2 - members[:, 0], 1 - members[:, 1]], axis=1)
        arrays["weights"] = result()["weights"][[2, 1, 0, 4, 3]]

    assert script.compare(*folders(tmp_path, change)) == 0
    assert "members 4 of 4; hierarchical 2 of 2, ARI 1.000" in capsys.readouterr().out


def test_what_one_folder_lacks_differs(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = folders(tmp_path, lambda arrays: arrays)
    (b / KEY).unlink()
    assert script.compare(a, b) == 1
    assert f"| not in {b} |" in capsys.readouterr().out


def test_a_folder_of_two_states_is_refused(script: ModuleType, tmp_path: Path) -> None:
    def change(arrays: Arrays) -> None:
        arrays["source"] = np.array("another")

    with pytest.raises(SystemExit, match="b holds results of 2 states"):
        script.compare(*folders(tmp_path, change))
