"""A clustering of Python as a folder of files."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from mdec import MDEC, Ensemble, MultiViewMDEC
from mdec.clustering import Settings, cluster_ensemble
from mdec.report import RunNotes
from mdec.results import read_result_model, tables, write_result
from mdec.tables import Table
from mdec.tables.steps import TableSteps

pytest.importorskip("jinja2")


def column(path: Path, name: str) -> list[str]:
    with path.open(encoding="utf-8") as file:
        return [row[name] for row in csv.DictReader(file)]


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    rows = np.random.default_rng(0).normal(size=(36, 6))
    rows[12:24] += 5.0
    rows[24:, :3] -= 5.0
    return rows


def test_labels_and_nothing_else_are_enough(tmp_path: Path) -> None:
    labels = np.repeat([[0, 0, 1], [1, 0, 0], [2, 1, 0]], 10, axis=0)
    found = cluster_ensemble(Ensemble.from_labels(labels), Settings(3))
    summary = write_result(found, tmp_path / "out")
    assert {each.name for each in (tmp_path / "out").iterdir()} == set(summary["files"])
    assert "model.npz" not in summary["files"]
    assert json.loads((tmp_path / "out" / "summary.json").read_text()) == summary
    clusters = column(tmp_path / "out" / "labels.csv", "cluster")
    assert clusters == [str(k) for k in found.labels]
    assert column(tmp_path / "out" / "labels.csv", "sample")[-1] == "30"
    assert summary["n_clusters"] == 3


def test_a_model_with_all_that_belongs_to_it(X: np.ndarray, tmp_path: Path) -> None:
    names = [f"s{i}" for i in range(36)], [f"g{j}" for j in range(6)]
    table = Table(X, *names, reading={"names_of_columns": True})
    steps = TableSteps.from_table(table, "standardise")
    model = MDEC("auto", ensemble_size=10, random_state=0).fit(steps.apply(X))
    summary = write_result(
        model.clustering_,
        tmp_path,
        table=table,
        model=model,
        steps=steps,
        extra_tables=["membership"],
        notes=RunNotes(title="Mine", settings={"seed": 0}),
    )
    assert summary["one_cluster_p_value"] == model.k_selection_.null.p_value
    assert "<title>Mine" in (tmp_path / "report.html").read_text()
    shares = column(tmp_path / "membership.csv", "cluster_0")
    np.testing.assert_allclose(
        [float(share) for share in shares], model.membership_[:, 0], atol=6e-5
    )
    again, beside = read_result_model(tmp_path / "model.npz")
    np.testing.assert_array_equal(beside.apply(X), steps.apply(X))
    assert beside.names == tuple(names[1])
    assert again.k_selection_.reason == model.k_selection_.reason
    with pytest.warns(UserWarning, match="transform standardise"):
        MDEC.load(tmp_path / "model.npz")


def test_views_keep_their_features(X: np.ndarray, tmp_path: Path) -> None:
    views = {"left": X[:, :3], "right": X[:, 3:]}
    model = MultiViewMDEC(MDEC(3, ensemble_size=8, random_state=0)).fit(views)
    samples = [f"s{i}" for i in range(36)]
    tables = {
        n: Table(x, samples, [f"{n}{j}" for j in range(3)]) for n, x in views.items()
    }
    write_result(model.clustering_, tmp_path, table=tables, model=model)
    stored = Ensemble.load(tmp_path / "ensemble.npz")
    assert stored.views[1].features == ("right0", "right1", "right2")
    features = column(tmp_path / "signatures.csv", "feature")
    assert {name.partition(": ")[0] for name in features} == {"left", "right"}
    again, _ = read_result_model(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.predict(views), model.predict(views))


def test_what_cannot_be_written_is_said_first(X: np.ndarray, tmp_path: Path) -> None:
    model = MDEC(3, ensemble_size=5, random_state=0).fit(X)
    with pytest.raises(ValueError, match="'plot' is not an additional table"):
        write_result(model.clustering_, tmp_path / "out", extra_tables=["plot"])
    assert not (tmp_path / "out").exists()


def test_pairs_of_samples_are_text_up_to_a_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tables, "TEXT_SAMPLES", 3)
    for size, ending, start in (
        (3, ".csv", b"sample,a,b,c"),
        (4, ".npy", b"\x93NUMPY"),
    ):
        assert tables.name_extra_file("consensus", size).endswith(ending)
        assert tables.format_matrix(np.eye(size), "abcd"[:size]).startswith(start)
