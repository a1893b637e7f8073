"""Summaries against the numbers that the paper prints, and reports of them."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from mdec.bench.evaluation import METRICS, clustering_accuracy, purity
from mdec.bench.pages import (
    TABLE_FORMATS,
    Section,
    describe_scores,
    describe_test,
    distance_section,
    render,
    score_rows,
    summary_section,
    write_report,
)
from mdec.bench.records import Records, encode_labels
from mdec.bench.summary import (
    ScoreTable,
    Sweep,
    comparable_parts,
    hardware,
    nemenyi_critical_difference,
    published_bars,
    published_points,
    published_table,
    rank_test,
    score_table,
    sweep,
)

TABLES = {"nmi_max": "nmi", "ari": "ari"}


def _from_csv(path: Path, metric: str) -> ScoreTable:
    with path.open() as file:
        rows = list(csv.DictReader(file))
    methods = [c for c in rows[0] if c != "dataset" and not c.endswith("_std")]
    text = np.array([[row[method] for method in methods] for row in rows])
    status = np.where(text == "OM", "OM", "")
    mean = np.where(text == "OM", "nan", text).astype(float)
    names = tuple(row["dataset"] for row in rows)
    counts = np.full(mean.shape, 100)
    return ScoreTable(metric, names, tuple(methods), mean, mean * 0, counts, status)


def _printed(tex: str, row: str, nth: int) -> list[float]:
    """Return the numbers of the nth row of that name in the paper's source."""
    line = re.findall(rf"^{row}\s*&.*$", tex, flags=re.MULTILINE)[nth]
    cells = re.sub(r"\\textbf\{([^}]*)\}|\\\\", r"\1", line).split("&")[1:]
    return [float("nan") if c.strip() == "-" else float(c) for c in cells]


@pytest.mark.parametrize(("metric", "nth"), [("nmi_max", 0), ("ari", 1)])
def test_summary_rows_are_those_that_the_paper_prints(
    shared: Path, metric: str, nth: int
) -> None:
    tex = (shared / "paper" / "mdec.tex").read_text()
    table = _from_csv(shared / "paper" / f"table_{TABLES[metric]}.csv", metric)
    scores, positions = (
        _printed(tex, r"Avg\. score", nth),
        _printed(tex, r"Avg\. rank", nth),
    )
    np.testing.assert_array_equal(np.round(table.average_score, 2), scores)
    np.testing.assert_array_equal(np.round(table.average_rank, 2), positions)


def test_top_three_counts_are_those_of_the_text(shared: Path) -> None:
    nmi = _from_csv(shared / "paper" / "table_nmi.csv", "nmi_max")
    ari = _from_csv(shared / "paper" / "table_ari.csv", "ari")
    assert nmi.top_counts()[-3:].tolist() == [26, 27, 25]
    assert nmi.top_counts()[nmi.methods.index("SPCE")] == 7
    assert ari.top_counts()[-3:].tolist() == [28, 25, 25]
    assert np.sort(ari.top_counts())[-4] == 4
    assert nmi.top_counts(1)[nmi.methods.index("MDEC-HC")] == 16
    assert nmi.top_counts(1)[nmi.methods.index("SPCE")] == 5


def test_published_numbers_are_those_of_the_tables(shared: Path) -> None:
    for metric, name in (*TABLES.items(), ("seconds", "time")):
        expected = _from_csv(shared / "paper" / f"table_{name}.csv", metric)
        table = published_table(metric)
        assert (table.datasets, table.methods) == (expected.datasets, expected.methods)
        np.testing.assert_array_equal(table.mean, expected.mean)
        np.testing.assert_array_equal(table.status, expected.status)


def _table(mean: list[list[float]]) -> ScoreTable:
    scores = np.array(mean)
    status = np.where(np.isnan(scores), "OM", "")
    n_rows, n_columns = scores.shape
    return ScoreTable(
        "ari",
        tuple(f"d{i}" for i in range(n_rows)),
        tuple("ABCDEFGH"[:n_columns]),
        scores,
        np.zeros_like(scores),
        np.where(np.isnan(scores), 0, 5),
        status,
    )


def test_ties_share_the_better_place_and_the_lost_come_last() -> None:
    table = _table([[50.0, 50.0, 20.0, np.nan], [1.0, 2.0, 3.0, 4.0]])
    assert table.ranks().tolist() == [[1, 1, 3, 4], [4, 3, 2, 1]]
    assert table.ranks("average")[0].tolist() == [1.5, 1.5, 3, 4]
    assert np.isnan(table.average_score[3])
    assert table.top_counts(1).tolist() == [1, 1, 0, 1]


def test_differences_from_the_paper() -> None:
    paper = published_table("nmi_max", ["DS-1", "DS-2", "DS-3"], ["MDEC-HC", "SPCE"])
    ours = paper.mean.copy()
    ours[:, 0] += [1.0, -7.0, 0.0]  # DS-2: published 45.23 with deviation 3.35
    ours[0, 1] = np.nan
    table = ScoreTable(
        paper.metric,
        paper.datasets,
        paper.methods,
        ours,
        *list(vars(paper).values())[4:],
    )
    rows = {
        method: [cell.text for cell in cells]
        for method, cells in distance_section(table).rows
    }
    assert rows["MDEC-HC"][0] == "3"
    assert rows["MDEC-HC"][3:] == ["-2.00", "2.67", "DS-2 -7.0"]
    assert rows["SPCE"][0] == "2"
    assert rows["SPCE"][-1] == "none"


def test_times_rank_the_other_way_round() -> None:
    table = _table([[3.0, 1.0, 2.0]])
    slow = ScoreTable("seconds", *list(vars(table).values())[1:])
    assert slow.ranks().tolist() == [[3, 1, 2]]


def test_a_sweep_is_the_mean_of_means_with_its_standard_error(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    records = Records(study={"name": "s", "methods": ["A"], "parameters": {}})
    records.study["parameters"] = {"generator": {"size": [1, 2]}, "method": {"w": [0]}}
    truth = np.repeat([0, 1], 4)
    found = [truth, np.tile([0, 1], 4)]  # ARI of 1 and of -1/6
    for dataset in ("d", "e"):
        records.add(
            {"record": "dataset", "dataset": dataset, "classes": encode_labels(truth)}
        )
        for size, repetition in ((1, 0), (1, 1), (2, 0), (2, 1)):
            wrong = repetition if size == 2 and dataset == "e" else 0
            records.add(
                {
                    "record": "run",
                    "dataset": dataset,
                    "method": "A",
                    "generator_parameters": {"size": size},
                    "parameters": {"w": 0},
                    "repetition": repetition,
                    "status": "ok",
                    "labels": encode_labels(found[wrong]),
                }
            )
    table = score_table(records, "ari")
    scores = sweep(table, "size", [1, 2])
    assert scores.values == [1, 2]
    assert scores.columns == ("A, w=0",)
    low = 100 * METRICS["ari"](truth, found[1])
    mean, spread = (100 + low) / 2, np.std([100, low], ddof=1)
    np.testing.assert_allclose(scores.mean[:, 0], [100, (100 + mean) / 2])
    np.testing.assert_allclose(scores.error[:, 0], [0, spread / np.sqrt(2) / 2])
    one = sweep(table.take([1]), "size", [1, 2])
    np.testing.assert_allclose(one.mean[:, 0], [100, mean])
    records.study["report"] = {"bars": {"x": "tau", "label": "ratio"}}
    with pytest.raises(ValueError, match="does not vary 'tau'"):
        write_report(records, tmp_path)
    assert not any(tmp_path.iterdir())


def _half_right(dataset: str, method: str, repetition: int = 0, **given: object) -> Any:
    return {
        "record": "run",
        "dataset": dataset,
        "method": method,
        "generator_parameters": given,
        "parameters": {},
        "repetition": repetition,
        "status": "ok",
        "machine": {"processor": "P"},
        "generation": {"seconds": 1.0, "cpu_seconds": 2.0},
        "consensus": {"seconds": 1.0, "cpu_seconds": 2.0},
        "labels": encode_labels(np.tile([0, 1], 4)),
    }


def _holding(runs: list[Any], **study: object) -> Records:
    records = Records(study={"name": "s", "methods": ["A", "B"], **study})
    classes = encode_labels(np.repeat([0, 1], 4))
    for name in {run["dataset"] for run in runs}:
        records.add({"record": "dataset", "dataset": name, "classes": classes})
    for run in runs:
        records.add(run)
    return records


def test_a_repetition_with_and_without_a_device_counts_once() -> None:
    with_device = [_half_right("DS-30", "A", i, device="cuda") for i in range(3)]
    right = encode_labels(np.repeat([0, 1], 4))
    records = _holding([*with_device, _half_right("DS-30", "A", 0) | {"labels": right}])
    table = score_table(records, "ari")
    wrong = 100 * METRICS["ari"](np.repeat([0, 1], 4), np.tile([0, 1], 4))
    assert table.counts.item() == 3
    assert table.mean.item() == pytest.approx((100 + 2 * wrong) / 3)
    assert {hardware(run) for run in records.runs.values()} == {"P with cuda", "P"}
    only = score_table(records, "seconds", lambda r: hardware(r) == "P")
    assert only.counts.item() == 1


def test_what_was_not_run_has_no_rank() -> None:
    lost = _half_right("DS-2", "B") | {"status": "OM"}
    records = _holding(
        [
            _half_right("DS-1", "A"),
            _half_right("DS-1", "B"),
            _half_right("DS-2", "A"),
            lost,
            _half_right("DS-3", "A"),
        ]
    )
    table = score_table(records, "ari")
    common = table.in_common()
    assert table.status[:, 1].tolist() == ["", "OM", "-"]
    assert common.datasets == ("DS-1", "DS-2")
    assert common.average_rank.tolist() == [1.0, 1.5]
    assert "over the 2 datasets on which every method was run" in describe_scores(table)
    assert score_rows(table)[-2][1][1].text == "1.50"
    alone = score_table(_holding([lost, _half_right("DS-3", "A")]), "ari")
    assert alone.in_common().datasets == ("DS-2", "DS-3")


def test_means_compare_over_the_same_datasets_alone() -> None:
    def runs(dataset: str, method: str, *sizes: int) -> list[Any]:
        return [_half_right(dataset, method, ensemble_size=size) for size in sizes]

    parameters = {"generator": {"ensemble_size": [20, 100]}}
    records = _holding(
        [
            *runs("DS-1", "A", 20, 100),
            *runs("DS-20", "A", 20, 100),
            *runs("DS-1", "B", 20, 100),
            *runs("DS-20", "B", 20),
        ],
        parameters=parameters,
    )
    wide, narrow = comparable_parts(score_table(records, "ari"))
    sizes = "ensemble_size=20", "ensemble_size=100"
    alone, both = ([f"{m}, {size}" for m in ms for size in sizes] for ms in ("A", "AB"))
    assert (wide.datasets, [*wide.methods]) == (("DS-1", "DS-20"), alone)
    assert (narrow.datasets, [*narrow.methods]) == (("DS-1",), both)
    kinds = wide.by_kind()
    assert {kind: part.datasets for kind, part in kinds.items()} == {
        "gene expression": ("DS-1",),
        "image": ("DS-20",),
    }
    assert [*kinds["image"].methods] == alone
    scores = sweep(narrow, "ensemble_size", [20, 100])
    assert scores.columns == ("A", "B")
    assert not np.isnan(scores.mean).any()


def test_points_of_the_paper_are_those_of_its_tables_and_its_text() -> None:
    methods, ones = ("MDEC-HC", "mine"), np.ones((2, 2))
    part = ScoreTable.from_scores("ari", ["DS-1", "DS-2"], methods, {})
    scores = Sweep(part, "ensemble_size", [20, 100], methods, ones, ones)
    found = published_points(scores)
    assert set(found) == {"MDEC-HC"}
    expected = published_table("ari", part.datasets, ["MDEC-HC"]).mean.mean()
    np.testing.assert_array_equal(found["MDEC-HC"], [np.nan, expected])
    kernels = ["cosine", ["cosine", "spearman"]]
    scores = scores._replace(x="kernel", values=kernels)
    assert published_points(scores) == published_bars(scores) == {}
    bars = published_bars(scores._replace(table=replace(part, metric="nmi_max")))
    np.testing.assert_array_equal(bars["MDEC-HC"], [50.99, np.nan])


def test_friedman_is_scipys_and_nemenyi_is_the_textbooks() -> None:
    scores = np.random.default_rng(3).normal(size=(10, 4))
    test = rank_test(_table(np.round(100 * scores, 2).tolist()))
    expected = stats.friedmanchisquare(*scores.T)
    assert test.statistic == pytest.approx(expected.statistic)
    assert test.p_value == pytest.approx(expected.pvalue)
    # Demsar, JMLR 7, 2006, table 5a: q at 0.05 for 2 to 10 classifiers.
    q = [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]
    for k, value in enumerate(q, 2):
        expected_cd = value * np.sqrt(k * (k + 1) / (6 * 14))
        assert nemenyi_critical_difference(k, 14) == pytest.approx(
            expected_cd, abs=1e-3
        )
    assert np.isnan(nemenyi_critical_difference(1, 14))


def test_scores_against_naive_counting() -> None:
    rng = np.random.default_rng(1)
    truth, found = rng.integers(0, 3, 60), rng.integers(0, 4, 60)
    pure = sum(np.bincount(truth[found == c]).max() for c in range(4))
    assert purity(truth, found) == pytest.approx(pure / 60)
    from itertools import permutations

    best = max(
        sum(np.sum((found == c) & (truth == t)) for t, c in enumerate(chosen))
        for chosen in permutations(range(4), 3)
    )
    assert clustering_accuracy(truth, found) == pytest.approx(best / 60)
    for name, metric in METRICS.items():
        assert metric(truth, truth) == pytest.approx(1.0), name


def _store() -> Records:
    truth = np.repeat([0, 1], 10)
    records = Records(
        study={"name": "s", "title": "T <i>", "methods": ["a", "b|c", "d", "e"]}
    )
    records.add({"record": "dataset", "dataset": "x", "classes": encode_labels(truth)})
    for number, method in enumerate(["a", "b|c", "d", "e"]):
        for repetition in range(3 if method != "d" else 2):
            labels = truth.copy()
            labels[: number + repetition] = 1
            records.add(
                {
                    "record": "run",
                    "dataset": "x",
                    "method": method,
                    "generator_parameters": {},
                    "parameters": {},
                    "repetition": repetition,
                    "status": "OM" if method == "e" else "ok",
                    "message": "too <large>",
                    "labels": encode_labels(labels),
                    "generation": {"seconds": 1.0, "cpu_seconds": 0.9},
                    "consensus": {"seconds": 0.5, "cpu_seconds": 0.4},
                }
            )
    return records


def test_one_repetition_has_no_spread() -> None:
    records = _store()
    records.runs = {k: run for k, run in records.runs.items() if run["repetition"] == 0}
    table = score_table(records, "accuracy")
    assert table.counts[0].tolist() == [1, 1, 1, 0]
    assert table.std[0, :3].tolist() == [0.0, 0.0, 0.0]


def test_columns_are_in_the_order_of_the_study() -> None:
    """Not in that of the records, and what the study does not name comes last."""
    records = _store()
    records.study["methods"] = ["a"]
    records.study["parameters"] = {"generator": {"size": [8, 4]}, "method": {}}
    first = next(run for run in records.runs.values() if run["method"] == "a")
    records.runs.clear()
    for size in (2, 4, 8):
        records.add({**first, "generator_parameters": {"size": size}})
    found = score_table(records, "accuracy").methods
    assert [each.rpartition("=")[2] for each in found] == ["8", "4", "2"]


@pytest.mark.parametrize("lost", [0, 1, 2])
@pytest.mark.parametrize("status", ["failed", "OM", "timeout", "missing"])
def test_a_lost_repetition_takes_the_mean_away(lost: int, status: str) -> None:
    """The mean of those that went well would flatter the method."""
    records = _store()
    for run in records.runs.values():
        if run["method"] == "a" and run["repetition"] == lost:
            run["status"] = status
            del run["labels"]
    table = score_table(records, "accuracy")
    assert table.methods[:2] == ("a", "b|c")
    assert np.isnan(table.mean[0, 0])
    assert np.isnan(table.std[0, 0])
    assert table.counts[0].tolist() == [0, 3, 2, 0]
    assert table.status[0].tolist() == [status, "", "", "OM"]
    assert np.isnan(table.average_score[0])


def test_the_papers_own_table_agrees_with_itself_in_the_summary() -> None:
    rows = dict(summary_section(published_table("nmi_max")).rows)
    for cells in rows.values():
        texts = [cell.text for cell in cells]
        assert texts[::2] == texts[1::2]
    assert [cell.text for cell in rows["MDEC-HC"]][::2] == ["64.79", "2.00", "26"]
    assert rows["SPCE"][0].text == "-"
    assert describe_test(published_table("nmi_max")).endswith(
        "No significant difference from the best, MDEC-HC: MDEC-BG, MDEC-SC."
    )


def test_cells_show_spread_count_status_and_the_published_value() -> None:
    table = score_table(_store(), "accuracy")
    assert table.mean[0, :3].tolist() == pytest.approx([95.0, 90.0, 87.5])
    known = {("x", "a"): (94.0, 1.0, 100, ""), ("x", "d"): (np.nan, np.nan, 0, "OM")}
    published = ScoreTable.from_scores("accuracy", ["x"], table.methods, known)
    rows = score_rows(table, published)
    section = Section("", "", headers=["", *table.methods], rows=rows)
    shown = {kind: render(f"table.{kind}", section=section) for kind in TABLE_FORMATS}
    assert "**[95.00 ± 5.00]** (paper 94.00, +1.00)" in shown["md"]
    assert "**87.50 ± 3.54** (2 runs, paper OM) | OM |" in shown["md"]
    assert "| - |" in shown["md"]  # no average for a method that lost a dataset
    assert r"[\textbf{95.00}$_{\pm 5.00}$]" in shown["tex"]
    assert '<td class="place-1">95.00 <small>± 5.00</small>' in shown["html"]


def test_the_report_escapes_and_lists_failures(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    files = write_report(_store(), tmp_path, with_figures=False)
    page = (tmp_path / "report.html").read_text()
    assert "T &lt;i&gt;" in page
    assert "too &lt;large&gt;" in page
    assert "<i>" not in page
    assert {path.name for path in files} >= {"report.md", "report.html", "scores.csv"}
    assert score_table(_store(), "seconds").mean[0, 0] == 1.5
    with pytest.raises(ValueError, match="run the study first"):
        write_report(Records(study={"name": "s", "methods": []}), tmp_path)
    with pytest.raises(ValueError, match="is not one of"):
        score_table(_store(), "f1")
