"""``mdec consensus --matrix``: a consensus matrix cut into clusters."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from mdec.cli import main
from mdec.consensus import from_matrix

pandas = pytest.importorskip("pandas")
pytest.importorskip("typer")


def call(*words: object) -> int:
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    return int(stopped.value.code or 0)


@pytest.fixture
def matrix() -> np.ndarray:
    rng = np.random.default_rng(0)
    y = np.arange(12) % 3
    noisy = rng.random((30, 12)) < 0.3
    labels = np.where(noisy, rng.integers(3, size=(30, 12)), y)
    return (labels[:, :, None] == labels[:, None]).mean(axis=0)


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("ending", ["csv", "tsv", "xlsx"])
def test_a_matrix_with_names_or_without(
    tmp_path, matrix, header, index, ending
) -> None:
    names = ["@GSM0", *(f"GSM{i}" for i in range(1, 12))]
    frame = pandas.DataFrame(matrix, names, names)
    file, out = tmp_path / f"m.{ending}", tmp_path / "out"
    if ending == "xlsx":
        pytest.importorskip("openpyxl")
        frame.to_excel(file, index=index, header=header)
    else:
        frame.to_csv(file, index=index, header=header, sep=",\t"[ending == "tsv"])
    assert call("consensus", file, "--matrix", "--k", 3, "-o", out, "-q") == 0
    with (out / "labels.csv").open(encoding="utf-8") as written:
        rows = list(csv.DictReader(written))
    assert [int(row["cluster"]) for row in rows] == from_matrix(matrix, 3).tolist()
    shown = (
        ["'@GSM0", *names[1:]] if header or index else [str(i + 1) for i in range(12)]
    )
    assert [row["sample"] for row in rows] == shown
    summary = json.loads((out / "summary.json").read_text())
    assert [row["size"] for row in summary["clusters"]] == [4, 4, 4]
    assert sorted(each.name for each in out.iterdir()) == ["labels.csv", "summary.json"]


def test_an_array_and_spectral(tmp_path, matrix, capsys) -> None:
    np.save(tmp_path / "m.npy", matrix)
    file, out = tmp_path / "m.npy", tmp_path / "out"
    words = "consensus", file, "--matrix", "--k", 3, "-o", out
    assert call(*words, "--consensus", "spectral") == 0
    assert "labels.csv" in capsys.readouterr().out
    assert call(*words, "--consensus", "bipartite") == 2
    assert "needs the clusterings themselves" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: m + np.eye(12), "to 2; divide"),
        (lambda m: m[:, :11], "is not a square"),
        (lambda m: np.where(np.tri(12) > 0, m, m / 2), "is symmetric"),
        (lambda m: m.astype(object) + np.where(m == m.max(), 1j, 0), "is not a square"),
    ],
)
def test_what_is_no_matrix_is_said(tmp_path, matrix, capsys, change, words) -> None:
    file = tmp_path / "m.csv"
    names = [f"s{i}" for i in range(12)]
    changed = change(matrix)
    frame = pandas.DataFrame(changed, names, names[: changed.shape[1]])
    frame.to_csv(file)
    assert call("consensus", file, "--matrix", "--k", 3, "-o", tmp_path / "out") == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_the_number_is_needed(tmp_path, matrix, capsys) -> None:
    pandas.DataFrame(matrix).to_csv(tmp_path / "m.csv", index=False)
    assert call("consensus", tmp_path / "m.csv", "--matrix", "-o", tmp_path / "o") == 2
    assert "such as --k 4" in capsys.readouterr().err
