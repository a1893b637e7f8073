"""What the report and the files beside it say is what the commands did."""

from __future__ import annotations

import csv
import html
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mdec.cli import main

pytest.importorskip("typer")

SMALL = ["--ensemble-size", "20"]


def call(*arguments):
    with pytest.raises(SystemExit) as caught:
        main([str(word) for word in arguments])
    return caught.value.code or 0


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_the_report_gives_the_lines_and_commands_for_the_same_clusters(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.gamma(2.0, 1.0, size=(45, 6)) + 4.0 * np.eye(6)[np.arange(45) % 3]
    head = ",".join(["name", *(f"f{i}" for i in range(6)), "site"])
    rows = [f"s{i}," + ",".join(map(str, X[i])) + f",site {i % 4}" for i in range(45)]
    Path("a 'b'.csv").write_text("\n".join([head, *rows]))
    words = ["fit", "a 'b'.csv", "--k", 3, "--drop", "site", "--transform", "log"]
    words += ["--consensus", "spectral", "--weighting", "uniform", "--seed", 4]
    assert call(*words, "--out", "out", "-q", *SMALL) == 0
    page = html.unescape(Path("out/report.html").read_text())
    labels = [int(row["cluster"]) for row in read(tmp_path / "out" / "labels.csv")]
    lines = re.search(r'<pre id="python">(.*?)</pre>', page, re.DOTALL).group(1)
    show = "import json, sys; json.dump(labels.tolist(), sys.stdout)"
    done = subprocess.run(
        [sys.executable, "-c", f"{lines}\n{show}"], capture_output=True, check=True
    )
    assert json.loads(done.stdout) == labels
    again = re.findall(r"<pre>mdec (consensus .*?)</pre>", page)
    numbers = [int(re.search(r"--k (\d+)", words).group(1)) for words in again]
    compared = json.loads(Path("out/summary.json").read_text())["criteria"]
    assert sorted(numbers) == sorted(set(numbers))
    assert {3} < set(numbers) <= {row["n_clusters"] for row in compared}
    own = next(words for words in again if "--k 3" in words)
    assert call(*shlex.split(own), "--out", "again", "-q") == 0
    found = [int(row["cluster"]) for row in read(tmp_path / "again" / "labels.csv")]
    assert found == labels
    table = json.loads(re.search(r'id="data">(.*?)</script>', page).group(1))
    assert table["columns"][0]["name"] == "site"
    assert len(table["columns"][0]["levels"]) == 4
    signatures = read(tmp_path / "out" / "signatures.csv")
    assert [row["cluster"] for row in signatures] == sorted("012" * 6)
    inside = np.array(labels) == 0
    feature = int(signatures[0]["feature"][1:])
    mean = np.log2(1.0 + X[inside, feature]).mean()
    assert float(signatures[0]["mean_inside"]) == pytest.approx(mean, rel=1e-5)
    # The model beside the ensemble has the values; without it there are none.
    assert read(tmp_path / "again" / "signatures.csv") == signatures
    Path("out/model.npz").unlink()
    assert call(*shlex.split(own), "--out", "bare", "-q") == 0
    assert read(tmp_path / "bare" / "signatures.csv") == []


def test_signatures_are_never_computed_by_a_spreadsheet(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3)) + 6.0 * (np.arange(30) % 2)[:, None]
    rows = ["=1+1,+cmd,plain", *(",".join(map(str, row)) for row in X)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(rows))
    out = tmp_path / "out"
    assert call("fit", path, "--k", 2, "--out", out, "-q", *SMALL) == 0
    found = read(out / "signatures.csv")
    assert {row["feature"] for row in found} == {"'=1+1", "'+cmd", "plain"}
    assert {row["cluster"] for row in found} == {"0"}
