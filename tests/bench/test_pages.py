"""The published pages hold what the records give, by the command they name."""

from __future__ import annotations

import csv
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mdec.bench.pages import write_report
from mdec.bench.records import Record, Records, decode_labels, read_records
from mdec.bench.summary import column_name, parameter_grid, score_table
from mdec.datasets import dataset_info

pytest.importorskip("jinja2")

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"
if not (RESULTS / "records").is_dir():
    pytest.skip("needs the records, which the sdist lacks", allow_module_level=True)
STUDIES = sorted(p.name.split(".")[0] for p in (RESULTS / "records").iterdir())
LARGE = set(STUDIES) - {"printed-kernel"}


@pytest.fixture(scope="module")
def all_records() -> dict[str, Records]:
    return {
        name: read_records(RESULTS / "records" / f"{name}.jsonl.gz") for name in STUDIES
    }


@pytest.mark.parametrize("name", STUDIES)
def test_a_sample_of_cells_is_what_the_records_give(
    all_records: dict[str, Records], name: str
) -> None:
    records, swept = all_records[name], parameter_grid(all_records[name].study)
    with (RESULTS / name / "scores.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["status"] == "ok"]
    for index in np.random.default_rng(0).choice(len(rows), 8, replace=False):
        row = rows[index]
        table = score_table(records, row["metric"], partial(_is_in, row, swept))
        mean, spread = table.mean.item(), table.std.item()
        assert (f"{mean:.4f}", f"{spread:.4f}") == (row["mean"], row["std"])
        assert table.counts.item() == int(row["runs"])
        if not swept:
            shown = _rows(RESULTS / name / "tables" / f"{row['metric']}.md")
            cell = shown[row["dataset"]][shown["dataset"].index(row["method"])]
            assert re.match(rf"[*\[]*{mean:.2f}\b", cell)


def _is_in(row: dict[str, str], swept: dict[str, Any], record: Record) -> bool:
    same = record["dataset"] == row["dataset"]
    return same and column_name(record, swept) == row["method"]


def _rows(path: Path) -> dict[str, list[str]]:
    lines = [line.strip("|").split("|") for line in path.read_text().splitlines()]
    cells = [[cell.strip() for cell in line] for line in lines]
    return {row[0]: row[1:] for row in cells}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in LARGE else ())
        for name in STUDIES
    ],
)
def test_a_page_is_what_its_records_give(
    all_records: dict[str, Records], name: str, tmp_path: Path
) -> None:
    write_report(all_records[name], tmp_path, with_figures=False)
    scores = (tmp_path / "scores.csv").read_text()
    assert scores == (RESULTS / name / "scores.csv").read_text()
    made = {path.name: path.read_text() for path in (tmp_path / "tables").glob("*.md")}
    assert any(file.startswith("ari") for file in made)
    page = (RESULTS / name / "report.md").read_text()
    for file, text in made.items():
        assert (RESULTS / name / "tables" / file).read_text() == text
        assert text in page
    lines = (tmp_path / "report.md").read_text().splitlines()
    assert set(lines) <= set(page.splitlines())


@pytest.mark.parametrize("name", STUDIES)
def test_records_are_of_the_registered_data(
    all_records: dict[str, Records], name: str
) -> None:
    for record in all_records[name].datasets.values():
        info = dataset_info(record["dataset"])
        assert record["sha256"] == info.data_sha256
        assert decode_labels(record["classes"]).size == info.n_samples
