"""``mdec fit cells.h5ad``: names of matrices, sparse counts, and what suits cells."""

from __future__ import annotations

import csv
import html
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

h5py = pytest.importorskip("h5py", reason="the package h5py is not installed")
pytest.importorskip("typer")

from mdec import Ensemble  # noqa: E402
from mdec.cli import main  # noqa: E402
from mdec.cli.fit import FOR_CELLS  # noqa: E402
from mdec.results import read_result_model  # noqa: E402
from mdec.tables import read_table  # noqa: E402
from mdec.tables.budget import TableError  # noqa: E402
from mdec.tables.steps import prepare_table  # noqa: E402

N_CELLS, N_GENES = 60, 2300
SMALL = ("--ensemble-size", 8, "--quiet")


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(0)
    levels = np.tile(rng.lognormal(-1.5, 1.0, N_GENES), (2, 1))
    levels[0, :60] *= 10.0
    depth = rng.lognormal(0.0, 0.4, (N_CELLS, 1))
    types = np.arange(N_CELLS) % 2
    return sparse.csr_array(rng.poisson(levels[types] * depth).astype(np.float32))


@pytest.fixture
def path(tmp_path, counts):
    """Write counts as X, their components, a layer and raw, and the types of cells."""
    place = tmp_path / "cells.h5ad"
    with h5py.File(place, "w") as file:
        for name, matrix in (("X", counts), ("raw/X", 2.0 * counts)):
            group = file.create_group(name)
            group.attrs.update({"encoding-type": "csr_matrix", "shape": matrix.shape})
            for part in ("data", "indices", "indptr"):
                group[part] = getattr(matrix, part)
        file["layers/counts"] = 3.0 * counts.toarray()
        file["obsm/X_pca"] = counts.toarray()[:, :5]
        for name, size in (("obs", N_CELLS), ("var", N_GENES), ("raw/var", N_GENES)):
            group = file.require_group(name)
            group.attrs["_index"] = "_index"
            group["_index"] = [f"{name}{i}" for i in range(size)]
        file["obs/kind"] = [f"type{i % 2}" for i in range(N_CELLS)]
    return place


def call(*words):
    with pytest.raises(SystemExit) as caught:
        main([str(word) for word in words])
    return caught.value.code or 0


@pytest.mark.parametrize(
    ("name", "place"),
    [("raw", "raw/X"), ("counts", "layers/counts"), ("X_pca", "obsm/X_pca")],
)
def test_matrices_are_found_without_their_folders(path, name, place):
    short, long = read_table(path, variable=name), read_table(path, variable=place)
    np.testing.assert_array_equal(short.values, long.values)
    assert short.feature_names == long.feature_names
    with pytest.raises(TableError, match="layers/counts"):
        read_table(path, variable="count")


def test_sparse_counts_stay_sparse(path, counts):
    table, filled = read_table(path, sparse=True), read_table(path)
    assert sparse.issparse(table.values)
    np.testing.assert_array_equal(table.values.toarray(), filled.values)
    assert table.reading == filled.reading
    ready, plain = prepare_table(table), prepare_table(filled)
    assert ready.words == plain.words
    assert "the 2000 genes" in ready.words["prepared"]
    np.testing.assert_array_equal(ready.values, plain.values)
    np.testing.assert_array_equal(prepare_table(table, "none").values, counts.toarray())


def test_a_sparse_matrix_that_is_not_finite_is_refused(path):
    for value, words in ((np.nan, "missing"), (np.inf, "infinite")):
        with h5py.File(path, "r+") as file:
            file["X/data"][3] = value
        with pytest.raises(TableError, match=words):
            read_table(path, sparse=True)


@pytest.mark.parametrize("flag", ["--k", "--clusters", "--n-clusters"])
def test_the_number_of_clusters_has_three_names(path, capsys, flag):
    words = ("fit", path, "--label-column", "kind", flag, 2, "--dry-run")
    assert call(*words) == 0
    said = dict(
        line.split(maxsplit=1) if line.startswith(("k ", "classes")) else (line, "")
        for line in capsys.readouterr().out.splitlines()
    )
    assert said["k"] == "2"
    assert said["classes"] == "kind"


def test_cells_have_the_spectral_consensus_and_lines_that_repeat_it(
    path, tmp_path, capsys
):
    out = tmp_path / "out"
    given = ("--k", 2, "--n-top-genes", 200, "--label-column", "kind")
    words = ("fit", path, "--out", out, *given, "--ensemble-size", 8)
    assert call(*words) == 0
    assert FOR_CELLS in " ".join(capsys.readouterr().out.split())
    summary = json.loads((out / "summary.json").read_text())
    assert summary["parameters"]["consensus"] == "spectral"
    assert summary["parameters"]["consensus_choice"] == FOR_CELLS
    assert summary["scores"]["ari"] > 0.9
    page = (out / "report.html").read_text()
    assert html.escape(FOR_CELLS) in " ".join(page.split())
    lines = re.search(r'<pre id="python">(.*?)</pre>', page, re.DOTALL).group(1)
    again: dict = {}
    exec(html.unescape(lines), again)
    assert again["X"].shape == (N_CELLS, 200)
    with (out / "labels.csv").open() as file:
        clusters = [int(row["cluster"]) for row in csv.DictReader(file)]
    assert again["labels"].tolist() == clusters


@pytest.mark.parametrize(
    ("more", "consensus"),
    [
        (("--consensus", "bipartite"), "bipartite"),
        (("--prepare", "none"), "hierarchical"),
        (("--variable", "X_pca"), "hierarchical"),
    ],
)
def test_else_the_consensus_is_what_it_was(path, tmp_path, more, consensus):
    assert call("fit", path, "--out", tmp_path / "out", "--k", 2, *SMALL, *more) == 0
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    assert summary["parameters"]["consensus"] == consensus
    assert "consensus_choice" not in summary["parameters"]


@pytest.mark.parametrize(
    "more",
    [("--prepare", "none"), ("--prepare", "diversified"), ("--transform", "log")],
)
def test_genes_are_not_chosen_twice_or_in_vain(path, tmp_path, capsys, more):
    words = ("fit", path, "--out", tmp_path / "out", "--n-top-genes", 9, *more)
    assert call(*words) == 2
    assert f"and {more[0]} {more[1]!r} does not" in capsys.readouterr().err


def test_many_cells_are_clustered_by_components_and_shown_by_genes(
    path, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr("mdec.preparation.recipes.MANY_CELLS", N_CELLS - 1)
    out, new = tmp_path / "out", tmp_path / "new.csv"
    given = ("--k", 2, "--n-top-genes", 55, "--label-column", "kind")
    assert call("fit", path, "--out", out, *given, "--ensemble-size", 8) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "50 principal components stand for them, as there are more than" in said
    summary = json.loads((out / "summary.json").read_text())
    assert summary["scores"]["ari"] > 0.9
    with (out / "signatures.csv").open() as file:
        found = {row["feature"] for row in csv.DictReader(file)}
    assert found
    assert all(name.startswith("var") for name in found)
    assert sum(int(name[3:]) < 60 for name in found) > len(found) / 2
    model, _ = read_result_model(out / "model.npz")
    assert model.n_features_in_ == 50
    names = Ensemble.load(out / "ensemble.npz").names
    assert names["features"][0] == "component 1"
    assert call("predict", out / "model.npz", path, "--out", new, "--quiet") == 0
    first, again = (
        [row["cluster"] for row in csv.DictReader(each.read_text().splitlines())]
        for each in (out / "labels.csv", new)
    )
    assert first == again
    page = (out / "report.html").read_text()
    lines = re.search(r'<pre id="python">(.*?)</pre>', page, re.DOTALL).group(1)
    repeated: dict = {}
    exec(html.unescape(lines), repeated)
    assert repeated["X"].shape == (N_CELLS, 50)
    assert list(map(str, repeated["labels"])) == first


def test_base_clusterings_that_prepare_cells_themselves_see_no_components(
    path, counts, monkeypatch
):
    monkeypatch.setattr("mdec.preparation.recipes.MANY_CELLS", 20)
    few = replace(
        read_table(path, sparse=True),
        values=counts[:, :55],
        feature_names=[f"gene{i}" for i in range(55)],
    )
    for how, width in (("auto", 50), ("diversified", 55)):
        prepared = prepare_table(replace(few, kind="counts"), how)
        said = prepared.words["prepared"] or ""
        assert ("components" in said) == (how == "auto")
        assert prepared.values.shape == (N_CELLS, width)
