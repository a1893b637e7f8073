"""An open result: the clusters of `recluster`, names that stay, new samples."""

from __future__ import annotations

import base64
import csv
import json

import numpy as np
import pytest
from tests.app.conftest import write_table

from mdec import MDEC
from mdec.app.explore import Result
from mdec.app.folder import Folder
from mdec.consensus import spectral
from mdec.report import compute
from mdec.report.signatures import effect_sizes, moments
from mdec.results import own_files

NAME = "people-result"


@pytest.fixture
def result(root):
    return Result(Folder(root), NAME)


def ask(client, act, **given):
    answer = client.post(f"/api/{act}", json={"result": NAME, **given})
    return answer.json()


def unpack(content):
    (kind, text), *_ = content.items()
    return np.frombuffer(
        base64.b64decode(text), {"u8": "u1", "u16": "<u2", "f32": "<f4"}[kind]
    )


def same_partition(a, b) -> bool:
    return len(set(zip(a, b, strict=True))) == len(set(a)) == len(set(b))


@pytest.mark.parametrize("consensus", ["hierarchical", "spectral", "bipartite"])
@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_other_clusters_are_those_of_recluster(root, client, consensus, k) -> None:
    model = MDEC.load(root / NAME / "model.npz")
    expected = model.clustering_.recluster(k, consensus)
    found = ask(client, "recluster", k=k, consensus=consensus)
    clusters = unpack(found["cluster"])
    assert same_partition(clusters.tolist(), expected.labels.tolist())
    rows = [row["cluster"] for row in found["clusters"]]
    assert rows == sorted(set(clusters.tolist()))
    sure = unpack(found["sure"]) / 65535
    np.testing.assert_allclose(sure, expected.confidence, atol=1e-4)
    assert f"<b>{expected.n_clusters}</b>" in found["parts"]["facts"]


def test_clusters_keep_the_numbers_of_the_run(root, client) -> None:
    of_run = MDEC.load(root / NAME / "model.npz").labels_
    found = ask(client, "recluster", k=3, consensus="bipartite")
    assert (unpack(found["cluster"]) == of_run).mean() > 0.95


def test_the_parts_of_a_solution_are_those_of_the_report(root, client) -> None:
    page = (root / NAME / "report.html").read_text(encoding="utf-8")
    found = ask(client, "recluster", k=3, consensus="hierarchical")
    for name in ("clusters", "features", "signatures", "known"):
        assert found["parts"][name].strip() in page, name
    sure = MDEC.load(root / NAME / "model.npz").confidence_
    assert found["histogram"] == np.histogram(sure, 20, (0.0, 1.0))[0].tolist()


def test_quick_clusters_are_those_of_the_samples_of_the_report(
    result, monkeypatch
) -> None:
    monkeypatch.setattr(compute, "PAGE_SAMPLES", 30)
    assert result.describe()["drawn"]
    quick = result.recluster(3, "spectral", True)
    full = result.recluster(3, "spectral")
    assert (quick["quick"], full["quick"]) == (True, False)
    of_all = result.clustering.recluster(3, "spectral").labels[result.rows]
    direct = spectral(result.page[1][0], 3, result.page[1][1], 0)
    assert same_partition(quick["cluster"].tolist(), direct.tolist())
    assert same_partition(full["cluster"].tolist(), of_all.tolist())
    assert len(quick["cluster"]) == len(result.rows) < 60


@pytest.mark.parametrize(
    ("k", "consensus"), [(0, "spectral"), (99, "spectral"), ("3", "spectral"), (3, "x")]
)
def test_clusters_that_cannot_be_are_said(client, k, consensus) -> None:
    assert "K is 1 to 30" in ask(client, "recluster", k=k, consensus=consensus)["error"]


def test_features_of_a_selection_are_compared_with_the_rest(result) -> None:
    chosen = list(range(0, 60, 3))
    found = result.compare(chosen)
    outside = np.ones(60, dtype=int)
    outside[chosen] = 0
    effects = effect_sizes(moments(result.values, outside))[0]
    assert found[0]["name"] == result.features[np.abs(effects).argmax()] == "height"
    assert found[0]["effect"] == pytest.approx(effects[0])
    assert found[0]["effect"] > 2.0


@pytest.mark.parametrize("samples", [[], list(range(60)), [60], None, ["x"]])
def test_selections_that_cannot_be_are_said(client, samples) -> None:
    assert ask(client, "compare", samples=samples)["error"]


def test_a_feature_has_the_values_of_the_model(root, client) -> None:
    found = ask(client, "feature", name="<b>dose</b>")
    values = unpack(found["values"])
    rows = MDEC.load(root / NAME / "model.npz").clustering_.rows[0].rows
    np.testing.assert_allclose(values, rows[:, 2], rtol=1e-6)
    assert "no feature 'x'" in ask(client, "feature", name="x")["error"]


def test_names_stay_with_the_result_and_go_with_it(root, client) -> None:
    given = {"1": {"name": "<i>Müller</i>", "colour": "#123abc"}, "2": {"name": " "}}
    given |= {"x": {"name": "y"}, "3": {"colour": "red;}"}, "0": {"name": "n" * 99}}
    kept = ask(client, "rename", clusters=given)
    assert kept == {
        "1": {"name": "<i>Müller</i>", "colour": "#123abc"},
        "0": {"name": "n" * 60},
    }
    assert "cluster-names.json" in own_files(root / NAME)
    assert ask(client, "describe")["clusters"] == kept
    assert Result(Folder(root), NAME).names == kept
    summary = json.loads((root / NAME / "summary.json").read_text())
    assert summary["n_clusters"] == 3
    left = {each.name for each in (root / NAME).iterdir()}
    assert left == {*summary["files"]}
    ask(client, "rename", clusters={})
    assert ask(client, "describe")["clusters"] == {}


def test_names_that_come_at_once_wait_for_each_other(page) -> None:
    from concurrent.futures import ThreadPoolExecutor

    given = [{"0": {"name": f"name {i}"}} for i in range(8)]
    opened = [page._result(NAME), Result(page.folder, NAME)]
    with ThreadPoolExecutor(8) as line:
        work = [line.submit(opened[i % 2].rename, each) for i, each in enumerate(given)]
        assert [each.result() for each in work] == given
    assert Result(page.folder, NAME).names in given


def test_a_result_stays_open_while_its_clusters_are_named(page) -> None:
    result = page._result(NAME)
    result.rename({"0": {"name": "first"}})
    assert page._result(NAME) is result
    Result(page.folder, NAME).rename({})
    assert page._result(NAME) is not result


def test_new_samples_are_placed_as_by_the_command(root, client) -> None:
    write_table(root / "new.csv", 9, seed=5)
    found = ask(client, "predict", file="new.csv")
    assert (found["n_samples"], found["out"]) == (9, "predicted-new.csv")
    with (root / NAME / found["out"]).open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["sample"] for row in rows] == [f"s{i}" for i in range(9)]
    assert len({row["cluster"] for row in rows[::3]}) == 1
    assert "predicted-new.csv" in ask(client, "describe")["files"]
    (root / "narrow.csv").write_text("a,b\n1,2\n3,5\n")
    assert "lacks" in ask(client, "predict", file="narrow.csv")["error"]
    assert "is not a file in" in ask(client, "predict", file="../x.csv")["error"]


def test_a_result_without_a_model_is_explored_without_features(root) -> None:
    of_run = MDEC.load(root / NAME / "model.npz").labels_
    summary = json.loads((root / NAME / "summary.json").read_text())
    del summary["files"]["model.npz"]
    (root / NAME / "summary.json").write_text(json.dumps(summary))
    result = Result(Folder(root), NAME)
    assert same_partition(result.clustering.labels.tolist(), of_run.tolist())
    assert result.features == []
    assert result.recluster(2, "spectral")["k"] == 2
    with pytest.raises(ValueError, match="nothing to compare"):
        result.compare([0])


def test_what_is_no_result_is_said(root, client) -> None:
    (root / "empty").mkdir()
    for name in ("empty", "nowhere", "people.csv"):
        answer = client.post("/api/describe", json={"result": name})
        assert answer.status_code == 400
        assert "no result" in answer.json()["error"]


def test_a_result_that_is_written_again_is_opened_again(root, client) -> None:
    before = ask(client, "describe")
    summary = json.loads((root / NAME / "summary.json").read_text())
    del summary["files"]["model.npz"]
    (root / NAME / "summary.json").write_text(json.dumps(summary))
    assert (before["model"], ask(client, "describe")["model"]) == (True, False)
