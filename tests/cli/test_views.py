"""``mdec fit`` of several tables, soft answers and further files."""

from __future__ import annotations

import csv
import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from mdec import MDEC, Ensemble, MultiViewMDEC
from mdec.cli import main
from mdec.cli.fit import read_run
from mdec.cli.options import ClusterOptions, InputOptions, MethodOptions
from mdec.coassociation import locally_weighted_coassociation
from mdec.results import tables as result_tables

pandas = pytest.importorskip("pandas")
pytest.importorskip("typer")
pytest.importorskip("jinja2")


def read_inputs(file, source):
    return read_run(file, source, ClusterOptions(), MethodOptions())


def call(*words: object) -> int:
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    return int(stopped.value.code or 0)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 14)
    names = [f"p{i}" for i in range(41)] + ["=1+1"]
    for name, group, width in (("expr", 0, 6), ("<b>meth", 2, 5)):
        X = rng.normal(size=(42, width)) + 7.0 * (y == group)[:, None]
        frame = pandas.DataFrame(X, names, [f"f{j}" for j in range(width)])
        turned = frame if name == "expr" else frame.iloc[::-1]
        turned.to_csv(folder / f"{name}.csv", index_label="id")
    return folder


SMALL = ("--ensemble-size", 10, "--base-n-clusters-range", "2:4")


def test_several_tables(tables, tmp_path, capsys) -> None:
    out = tmp_path / "out"
    first, second = tables / "expr.csv", tables / "<b>meth.csv"
    words = "fit", first, "--view", second, "--k", 3, *SMALL, "--out", out
    assert call(*words) == 0
    shown = capsys.readouterr().out
    assert "Support by view" in shown
    found = np.array([int(row["cluster"]) for row in rows_of(out / "labels.csv")])
    summary = json.loads((out / "summary.json").read_text())
    page = (out / "report.html").read_text()
    assert "Which view supports which cluster" in page
    assert "&lt;b&gt;meth" in page
    assert "<b>meth" not in page
    assert not (out / "checkpoint").exists()
    X = {
        name: pandas.read_csv(tables / f"{name}.csv", index_col="id")
        for name in ("expr", "<b>meth")
    }
    X["<b>meth"] = X["<b>meth"].loc[X["expr"].index]
    own = MDEC(3, ensemble_size=10, base_n_clusters_range=(2, 4), random_state=0)
    model = MultiViewMDEC(own).fit({n: x.to_numpy() for n, x in X.items()})
    np.testing.assert_array_equal(found, model.labels_)
    stored = MultiViewMDEC.load(out / "model.npz")
    values = {n: x.to_numpy() for n, x in X.items()}
    np.testing.assert_array_equal(stored.predict(values), model.predict(values))
    assert call("predict", out / "model.npz", first) == 2
    assert "is a model of several tables" in capsys.readouterr().err
    support = [row["clusters"] for row in summary["view_support"]]
    np.testing.assert_allclose(support, model.view_support_)
    kept = Ensemble.load(out / "ensemble.npz")
    assert [view.name for view in kept.views] == ["expr", "<b>meth"]
    assert kept.names["samples"][-1] == "=1+1"
    again = tmp_path / "again"
    words = "consensus", out / "ensemble.npz", "--k", 3, "-o", again, "-q"
    assert call(*words) == 0
    assert (again / "labels.csv").read_bytes() == (out / "labels.csv").read_bytes()


def test_the_number_of_clusters_of_several_tables(tables, tmp_path) -> None:
    first, second = tables / "expr.csv", tables / "<b>meth.csv"
    words = "fit", first, "--view", second, *SMALL, "-q", "--out", tmp_path / "o"
    assert call(*words, "--k", "2:4") == 0
    again = tmp_path / "again"
    assert call("consensus", tmp_path / "o" / "ensemble.npz", "-o", again, "-q") == 0
    summary, other = (
        json.loads((out / "summary.json").read_text())
        for out in (tmp_path / "o", again)
    )
    assert 0.0 < summary["one_cluster_p_value"] < 0.05
    assert other["one_cluster_p_value"] == summary["one_cluster_p_value"]


def test_names_that_do_not_match(tables, tmp_path, capsys) -> None:
    frame = pandas.read_csv(tables / "<b>meth.csv", index_col="id")
    few, more, bare = (tmp_path / f"{n}.csv" for n in ("few", "more", "bare"))
    frame.iloc[5:].to_csv(few, index_label="id")
    extra = pandas.concat([frame, frame.iloc[:4].rename(lambda n: f"x{n}")])
    extra.to_csv(more, index_label="id")
    frame.to_csv(bare, index=False)
    words = "fit", tables / "expr.csv", "--k", 3, *SMALL, "--out", tmp_path / "out"
    assert call(*words, "--view", few) == 2
    error = capsys.readouterr().err
    assert "'few.csv' lacks 5 of the 42 samples" in error
    assert "'p37', 'p38', 'p39', ..." in error
    assert error.count("\n") == 1
    assert call(*words, "--view", bare) == 2
    assert "only one of the first table and 'bare.csv' has names" in (
        capsys.readouterr().err
    )
    assert call(*words, "--view", more) == 0
    assert "4 samples of 'more.csv' are not in 'expr.csv'" in capsys.readouterr().out


def test_files_of_one_name(tables, tmp_path) -> None:
    (tmp_path / "expr.csv").write_bytes((tables / "<b>meth.csv").read_bytes())
    out = tmp_path / "out"
    words = "fit", tables / "expr.csv", "--view", tmp_path / "expr.csv", "--k", 2
    assert call(*words, *SMALL, "-q", "-o", out) == 0
    names = [view.name for view in Ensemble.load(out / "ensemble.npz").views]
    assert names == ["expr.csv (1)", "expr.csv (2)"]


def test_further_tables(tables, tmp_path, capsys) -> None:
    out = tmp_path / "out"
    words = "fit", tables / "expr.csv", "--k", "2:4", *SMALL, "-o", out
    assert call(*words, "--write", "consensus,labels,membership") == 0
    assert "The consensus matrix takes" in capsys.readouterr().out
    labels = rows_of(out / "labels.csv")
    shares = rows_of(out / "membership.csv")
    assert [row["sample"] for row in shares] == [row["sample"] for row in labels]
    assert shares[-1]["sample"] == "'=1+1"
    n_clusters = len({row["cluster"] for row in labels})
    for row in shares:
        values = [float(row[f"cluster_{k}"]) for k in range(n_clusters)]
        assert sum(values) == pytest.approx(1.0, abs=1e-3)
    every = rows_of(out / "labels-for-every-k.csv")
    for k in (2, 3, 4):
        assert {row[f"k_{k}"] for row in every} == {str(i) for i in range(k)}
    own = [row[f"k_{n_clusters}"] for row in every]
    assert own == [row["cluster"] for row in labels]
    with (out / "consensus.csv").open(encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == ["sample", *(row["sample"] for row in labels)]
    matrix = np.array([[float(cell) for cell in row[1:]] for row in rows])
    expected = locally_weighted_coassociation(Ensemble.load(out / "ensemble.npz"))
    np.testing.assert_allclose(matrix, expected, atol=6e-5)
    cut = tmp_path / "cut"
    words = "consensus", out / "consensus.csv", "--matrix", "--k", n_clusters
    assert call(*words, "-o", cut, "-q") == 0
    assert call("fit", tables / "expr.csv", "--k", 3, *SMALL, "-o", out, "-q") == 0
    extra = {"consensus.csv", "labels-for-every-k.csv", "membership.csv"}
    assert not extra & {each.name for each in out.iterdir()}


def test_a_large_matrix_is_an_array(tables, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(result_tables, "TEXT_SAMPLES", 10)
    out = tmp_path / "out"
    words = "fit", tables / "expr.csv", "--k", 3, *SMALL, "-o", out, "-q"
    assert call(*words, "--write", "consensus") == 0
    assert np.load(out / "consensus.npy").shape == (42, 42)
    monkeypatch.setattr(result_tables, "MATRIX_SAMPLES", 20)
    assert call(*words, "--write", "consensus") == 2
    assert "written for at most 20" in capsys.readouterr().err
    assert call(*words, "--write", "consensus,label") == 2
    assert "'label' is not an additional table" in capsys.readouterr().err


def test_uncertain_samples_are_left_out(tables, tmp_path, capsys) -> None:
    out = tmp_path / "out"
    words = "fit", tables / "expr.csv", "--k", 4, "--ensemble-size", 10, "-o", out
    assert call(*words, "--min-confidence", 0.8) == 0
    shown = capsys.readouterr().out
    rows = rows_of(out / "labels.csv")
    below = [row["cluster"] == "-1" for row in rows]
    assert below == [float(row["confidence"]) < 0.8 for row in rows]
    assert 0 < sum(below) < 42
    assert f"{sum(below)} samples are left out (cluster -1)" in shown
    assert json.loads((out / "summary.json").read_text())["n_left_out"] == sum(below)
    model = MDEC.load(out / "model.npz")
    assert model.min_confidence == 0.8
    assert model.labels_.tolist() == [int(row["cluster"]) for row in rows]
    placed = tmp_path / "placed.csv"
    words = "predict", out / "model.npz", tables / "expr.csv", "--out", placed, "-q"
    assert call(*words) == 0
    for row in rows_of(placed):
        assert (row["cluster"] == "-1") == (float(row["confidence"]) < 0.8)
    again = tmp_path / "again"
    assert call("consensus", out / "ensemble.npz", "--k", 4, "-o", again, "-q") == 0
    assert rows_of(again / "labels.csv") == rows


def test_base_clusterings_of_each_table_may_draw_their_preparation(tmp_path) -> None:
    draw = np.random.default_rng(0)
    files = [tmp_path / f"{name}.npy" for name in ("genes", "scores")]
    np.save(files[0], draw.lognormal(5.0, 2.0, size=(40, 300)))
    np.save(files[1], draw.normal(size=(40, 6)))
    both = InputOptions(view=files[1:], prepare="diversified")
    expected = dict.fromkeys(("genes", "scores"), "diversified")
    assert read_inputs(files[0], both).model.preparation == expected
    alone = InputOptions(prepare="diversified")
    assert read_inputs(files[0], alone).model.preparation == "diversified"
    plain = InputOptions(view=files[1:], prepare="none")
    assert read_inputs(files[0], plain).model.preparation is None


def test_sparse_tables_stay_sparse_until_genes_are_chosen(tmp_path) -> None:
    h5py = pytest.importorskip("h5py")
    draw = np.random.default_rng(0)
    counts = sparse.random_array(
        (200, 20_000),
        density=0.02,
        format="csr",
        random_state=draw,
        data_sampler=lambda size: draw.poisson(3.0, size) + 1.0,
    )
    files = [tmp_path / f"{name}.h5ad" for name in ("rna", "atac")]
    for path in files:
        with h5py.File(path, "w") as file:
            group = file.create_group("X")
            group.attrs.update({"shape": counts.shape, "encoding-type": "csr_matrix"})
            for name in ("data", "indices", "indptr"):
                group[name] = getattr(counts, name)
            for name, size in zip(("obs", "var"), counts.shape, strict=True):
                names = file.create_group(name)
                names.attrs["_index"] = "_index"
                names["_index"] = [f"{name}{i}" for i in range(size)]
    tracemalloc.start()
    try:
        inputs = read_inputs(files[0], InputOptions(view=files[1:]))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert inputs.shape == "200 samples x features of rna (2000), atac (2000)"
    assert peak < 12 * counts.shape[0] * counts.shape[1]


def test_views_are_told_before_a_run(tables, tmp_path, capsys) -> None:
    words = "fit", tables / "expr.csv", "--view", tables / "<b>meth.csv", "--dry-run"
    assert call(*words, "--out", tmp_path / "out") == 0
    assert "expr; <b>meth" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()


def test_drawn_samples(tables, tmp_path, capsys) -> None:
    out = tmp_path / "out"
    words = "fit", tables / "expr.csv", "--k", 2, "-o", out, "-q"
    assert call(*words, "--max-samples", 0.5, "--ensemble-size", 30) == 0
    ensemble = Ensemble.load(out / "ensemble.npz")
    assert ((ensemble.labels >= 0).sum(axis=0) == 21).all()
    assert MDEC.load(out / "model.npz").max_samples == 0.5
    assert call(*words, "--max-samples", 0.02) == 2
    assert "draws 1 of the 42 samples" in capsys.readouterr().err
    assert call(*words, "--max-samples", 0.1, "--ensemble-size", 2) == 2
    assert "in none of the 2 base clusterings" in capsys.readouterr().err
