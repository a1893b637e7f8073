"""The folder of results of a command: whole, and one run's at a time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mdec._support.files import claim_folder
from mdec.cli import main

pytest.importorskip("typer")

FILES = (
    "ensemble.npz",
    "labels.csv",
    "report.html",
    "signatures.csv",
    "summary.json",
)

LIMITED = """
import resource, sys
from mdec.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
main(sys.argv[2:])
"""


def call(*arguments: object) -> int:
    with pytest.raises(SystemExit) as caught:
        main([str(word) for word in arguments])
    code = caught.value.code
    return code if isinstance(code, int) else 0


@pytest.fixture
def clusterings(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(3), 10)[:, None]
    noisy = np.where(rng.random((30, 12)) < 0.1, (labels + 1) % 3, labels)
    rows = [",".join(f"run{m}" for m in range(12))]
    rows += [",".join(f"c{label}" for label in row) for row in noisy]
    path = tmp_path / "clusterings.csv"
    path.write_text("\n".join(rows))
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir()}


@pytest.mark.skipif(sys.platform != "linux", reason="limits sizes of files")
@pytest.mark.slow
def test_a_disk_that_fills_keeps_the_old_results(
    clusterings: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert call("consensus", clusterings, "--k", 3, "--out", out, "-q") == 0
    (out / "notes.txt").write_text("mine")
    before = contents(out)
    assert set(before) == {*FILES, "notes.txt"}
    sizes = sorted(len(before[name]) for name in FILES)
    # Some files fit, the largest does not.
    for limit in (40, sizes[1], sizes[-1] - 2000):
        words = ["consensus", clusterings, "--k", "2", "--out", out, "-q"]
        command = [sys.executable, "-c", LIMITED, str(limit), *map(str, words)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ended.returncode == 2
        assert ended.stderr.startswith("mdec: ")
        assert "could not be written to" in ended.stderr
        assert ended.stderr.count("\n") == 1
        assert contents(out) == before
    assert call("consensus", clusterings, "--k", 2, "--out", out, "-q") == 0
    after = contents(out)
    assert set(after) == set(before)
    assert after["notes.txt"] == b"mine"
    assert all(after[name] != before[name] for name in ("labels.csv", "report.html"))


@pytest.mark.parametrize("command", ["consensus", "fit"])
def test_a_busy_folder(
    clusterings: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    pytest.importorskip("fcntl")
    out, table = tmp_path / "out", tmp_path / "table.csv"
    rows = np.random.default_rng(0).normal(size=(30, 4))
    table.write_text("a,b,c,d\n" + "\n".join(",".join(map(str, row)) for row in rows))
    file = clusterings if command == "consensus" else table
    with claim_folder(out):
        (out / "checkpoint").mkdir()
        assert call(command, file, "--k", 3, "--out", out, "-q") == 2
        error = capsys.readouterr().err
        assert "is busy: another run (process" in error
        assert error.count("\n") == 1
        (out / "checkpoint").rmdir()
    assert not out.exists()
