"""What `mdec fit` does to the values first, and what it says of it."""

from __future__ import annotations

import csv
import html
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_wine

from mdec import MDEC, generate_ensemble
from mdec.cli import main
from mdec.cli.fit import Run
from mdec.cli.options import InputOptions
from mdec.preparation import ExpressionPreparation
from mdec.preparation.recipes import KINDS, RECIPES
from mdec.tables import Table, read_table
from mdec.tables.steps import describe_recipe, prepare_table


def run_of(ready, model=None, **options):
    """Return a run of one table that is prepared."""
    tables, source = {"": ready}, InputOptions(**options)
    return Run(Path("table.csv"), source, tables, model or MDEC())


SMALL = ["--ensemble-size", "10", "--k", "2"]
N_SAMPLES, N_FEATURES = 24, 150


def intensities(least=0.0):
    """Two groups with noise that grows with the level, less a background."""
    rng = np.random.default_rng(0)
    logs = rng.normal(7.0, 1.5, N_FEATURES) + rng.normal(
        0.0, 0.4, (N_SAMPLES, N_FEATURES)
    )
    logs[::2, :50] += 1.5
    return np.exp(logs) + least


def counts():
    rng = np.random.default_rng(1)
    means = np.exp(rng.normal(2.0, 1.5, N_FEATURES)) * np.ones((N_SAMPLES, 1))
    means[::2, :50] *= 4.0
    depth = np.exp(rng.normal(0.0, 0.5, (N_SAMPLES, 1)))
    return rng.poisson(rng.gamma(2.0, depth * means / 2.0)).astype(float)


def log_ratios():
    rng = np.random.default_rng(2)
    spreads = np.exp(rng.normal(-0.3, 0.5, N_FEATURES))
    values = spreads * rng.standard_t(5, (N_SAMPLES, N_FEATURES))
    values[::2, :20] += 2.0
    return values


def ordinary():
    rng = np.random.default_rng(3)
    return rng.normal(size=(N_SAMPLES, 8)) + 4.0 * (np.arange(N_SAMPLES) % 2)[:, None]


def as_table(values, kind=None):
    samples = [f"s{i}" for i in range(len(values))]
    features = [f"g{j}" for j in range(values.shape[1])]
    return Table(values, samples, features, kind=kind)


def prepare(values, how="auto", transform="none", kind=None):
    return prepare_table(as_table(values, kind), how, transform)


def call(*arguments):
    with pytest.raises(SystemExit) as caught:
        main([str(word) for word in arguments])
    return caught.value.code or 0


def written(folder, values):
    path = folder / "values.npy"
    np.save(path, values)
    return path


@pytest.mark.parametrize(
    ("make", "kind", "how"),
    [
        (intensities, "intensities", "expression"),
        (counts, "counts", "auto"),
        (counts, "counts", "expression"),
        (log_ratios, "log-ratios", "auto"),
        (log_ratios, "log-ratios", "expression"),
    ],
)
def test_expression_is_prepared_as_the_transformer_does(make, kind, how):
    X = make()
    ready = prepare(X, how)
    preparation = ExpressionPreparation().fit(X)
    assert ready.words["kind"] == preparation.kind_ == kind
    assert ready.words["reason"] == preparation.reason_
    assert run_of(ready).words["flag"] == "--prepare none"
    np.testing.assert_array_equal(ready.values, preparation.transform(X))
    assert ready.table.values is ready.values
    assert ready.preparation is None
    kept = [f"g{j}" for j in preparation.features_]
    assert ready.table.feature_names == kept
    assert len(kept) == ready.values.shape[1]


@pytest.mark.parametrize(
    "X",
    [
        ordinary(),
        np.tile(ordinary()[:, :1], N_FEATURES),
        np.full((N_SAMPLES, N_FEATURES), 7.0),
        (log_ratios() - log_ratios().mean(axis=0)) / log_ratios().std(axis=0),
    ],
    ids=["few features", "equal features", "constant", "standardised"],
)
def test_other_values_are_left_alone(X):
    ready = prepare(X)
    assert ready.values is X
    assert ready.words["kind"] == "other"
    assert ready.words["prepared"] is None
    assert run_of(ready).words["flag"] is None
    (line,) = run_of(ready).describe_preparation()
    assert line == f"Not prepared: {ready.words['reason']}"
    with pytest.raises(ValueError, match=r"no expression values .*prepare='none'"):
        prepare(X, "expression")


def test_none_does_not_look():
    X = intensities()
    ready = prepare(X, "none")
    assert ready.values is X
    assert ready.words["kind"] is None


def test_one_change_is_enough():
    X = intensities()
    ready = prepare(X, transform="log")
    np.testing.assert_array_equal(ready.values, np.log2(X + 1.0))
    assert ready.words["reason"] == "The values are transformed: log."
    for how in ("expression", "diversified"):
        with pytest.raises(ValueError, match="twice; give one of them"):
            prepare(X, how, "standardise")


def test_members_draw_from_the_values_as_they_are():
    X = intensities()
    ready = prepare(X, "diversified")
    assert ready.values is X
    assert ready.preparation == "diversified"
    np.testing.assert_allclose(ready.table.values, X**0.75)
    assert "x^0.35 in 1 of 4 base clusterings and stays x" in ready.words["prepared"]
    drawn = prepare(log_ratios(), "diversified")
    assert "10% to 100%" in drawn.words["prepared"]


def test_auto_takes_one_recipe_for_all_members():
    X = intensities()
    ready = prepare(X)
    np.testing.assert_array_equal(
        ready.values, ExpressionPreparation().fit_transform(X)
    )
    assert ready.preparation is None


def test_landmarks_of_intensities_are_made_of_one_recipe(tmp_path, capsys):
    path = written(tmp_path, np.tile(intensities(), (3, 1)))
    options = ["--base", "landmark", "--dry-run", "--json"]
    assert call("fit", path, "--out", tmp_path / "out", *options) == 0
    assert "x^0.75" in json.loads(capsys.readouterr().out)["plan"]["prepared"]


def test_the_file_knows_better():
    X = ordinary() ** 2
    ready = prepare(X, kind="counts")
    assert ready.words["reason"] == "The file itself says that these are counts."
    np.testing.assert_array_equal(
        ready.values, ExpressionPreparation("counts").fit_transform(X)
    )
    left = prepare(X, kind="log-counts")
    assert left.values is X
    assert left.words["reason"].endswith("They need no more.")


@pytest.mark.parametrize("kind", KINDS)
def test_words_and_deeds_agree(kind):
    """Nothing is said exactly where a recipe changes nothing."""
    X = counts()
    changed = ExpressionPreparation(kind).fit_transform(X)
    same = changed.shape == X.shape and (changed == X).all()
    assert (describe_recipe(RECIPES[kind]) == "") == same


def silent_sample():
    X = counts()
    X[5] = 0.0
    return X


def constant_columns():
    X = intensities()
    X[:, 10:30] = 100.0
    X[:, 30:40] = 0.0
    return X


@pytest.mark.parametrize(
    ("X", "kind"),
    [
        (silent_sample(), "counts"),
        (constant_columns(), "intensities"),
        (intensities(least=-200.0), "intensities"),
    ],
    ids=["silent sample", "constant columns", "negative intensities"],
)
def test_hostile_values_come_through(X, kind, tmp_path, capsys):
    out = tmp_path / "out"
    assert call("fit", written(tmp_path, X), "--out", out, *SMALL) == 0
    summary = json.loads((out / "summary.json").read_text())["preparation"]
    assert summary["kind"] == kind
    printed = capsys.readouterr().out
    assert (
        f"Prepared: {summary['prepared']}. Turn this off with --prepare none."
        in printed
    )
    page = (out / "report.html").read_text()
    assert 'id="fig-before"' in page
    assert "nan" not in re.findall(r'[xy]="(\w+)"', page)


def test_labels_are_those_of_the_pipeline(tmp_path, capsys):
    X = log_ratios()
    path = written(tmp_path, X)
    ready = ExpressionPreparation().fit_transform(X)
    for how, model, data in (
        ("auto", MDEC(2, ensemble_size=10, random_state=0), ready),
        ("none", MDEC(2, ensemble_size=10, random_state=0), X),
        (
            "diversified",
            MDEC(2, ensemble_size=10, preparation="diversified", random_state=0),
            X,
        ),
    ):
        out = tmp_path / how
        assert call("fit", path, "--out", out, *SMALL, "--prepare", how) == 0
        rows = (out / "labels.csv").read_text().splitlines()[1:]
        found = [int(row.split(",")[1]) for row in rows]
        assert found == model.fit(data).labels_.tolist(), how
        summary = json.loads((out / "summary.json").read_text())
        assert set(summary["preparation"]) == {"kind", "prepared", "reason", "flag"}
        assert summary["parameters"]["prepare"] == how
        printed = capsys.readouterr().out
        assert ("Prepared: " in printed) == (how != "none")
        page = (out / "report.html").read_text()
        assert ('id="fig-after"' in page) == (how != "none")


def test_one_p_value_at_every_door(tmp_path):
    X = intensities()
    path, out, again = written(tmp_path, X), tmp_path / "out", tmp_path / "again"
    words = [*SMALL[:2], "--prepare", "diversified", "-q"]
    assert call("fit", path, "--out", out, *words) == 0
    assert call("consensus", out / "ensemble.npz", "--out", again, "-q") == 0
    model = MDEC("auto", ensemble_size=10, preparation="diversified", random_state=0)
    selection = model.fit(X).k_selection_
    for folder in (out, again):
        summary = json.loads((folder / "summary.json").read_text())
        assert summary["one_cluster_p_value"] == selection.null.p_value
        assert summary["n_clusters"] == selection.n_clusters


def test_an_ordinary_table_comes_out_the_same(tmp_path, capsys):
    path = written(tmp_path, ordinary())
    labels = []
    for options in ([], ["--prepare", "none"]):
        out = tmp_path / f"out{len(options)}"
        assert call("fit", path, "--out", out, *SMALL, *options) == 0
        labels.append((out / "labels.csv").read_bytes())
        assert 'id="fig-before"' not in (out / "report.html").read_text()
    assert labels[0] == labels[1]
    assert "Not prepared: 8 features are too few" in capsys.readouterr().out


def test_a_dry_run_says_what_would_be_done(tmp_path, capsys):
    path = written(tmp_path, counts())
    assert call("fit", path, "--dry-run", "--json", "--out", tmp_path / "out") == 0
    plan = json.loads(capsys.readouterr().out)["plan"]
    assert plan["prepare"] == "auto"
    assert plan["kind"] == "counts"
    assert "log2(1 + x)" in plan["prepared"]
    assert plan["seed"] == 0
    assert re.fullmatch(r"about .+ of processor time .+ and .+", plan["estimated work"])


@pytest.mark.parametrize(
    "options",
    [
        ["--prepare", "magic"],
        ["--prepare", "expression"],
        ["--prepare", "diversified", "--transform", "standardise"],
    ],
)
def test_what_cannot_be_is_one_sentence(tmp_path, capsys, options):
    path = written(tmp_path, ordinary())
    assert call("fit", path, "--out", tmp_path / "out", *SMALL, *options) == 2
    error = capsys.readouterr().err
    assert error.startswith("mdec: --prepare ")
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_checkpoint_belongs_to_its_preparation(tmp_path, capsys):
    X = log_ratios()
    path, out = written(tmp_path, X), tmp_path / "out"
    ready = ExpressionPreparation().fit_transform(X)
    generate_ensemble(
        ready, ensemble_size=4, checkpoint=out / "checkpoint", random_state=0
    )
    options = ["--out", out, *SMALL, "-q", "--resume"]
    for how, what in (("none", "data"), ("diversified", "data, preparation")):
        assert call("fit", path, *options, "--prepare", how) == 2
        error = capsys.readouterr().err
        assert "was made with other settings" in error
        assert all(word in error for word in what.split(", "))
    assert call("fit", path, *options) == 0


def test_layers_of_anndata_are_known_by_name(tmp_path):
    h5py = pytest.importorskip("h5py")
    X = ordinary() ** 2
    path = tmp_path / "cells.h5ad"
    with h5py.File(path, "w") as file:
        file["X"] = np.log1p(X)
        file["layers/counts"] = X
        file["layers/scaled"] = X - X.mean(axis=0)
        file["obsm/X_pca"] = X[:, :3]
        file.create_group("uns/log1p")
        for name, size in (("obs", len(X)), ("var", X.shape[1])):
            group = file.create_group(name)
            group.attrs["_index"] = "_index"
            group["_index"] = [f"{name}{i}" for i in range(size)]
    assert read_table(path).kind == "log-counts"
    assert read_table(path, variable="layers/counts").kind == "counts"
    assert read_table(path, variable="layers/scaled").kind is None
    assert read_table(path, variable="obsm/X_pca").kind is None


def test_the_lines_of_python_keep_as_many_genes(tmp_path):
    path, out = written(tmp_path, counts()), tmp_path / "out"
    genes = "--n-top-genes", 30
    assert call("fit", path, "--out", out, *SMALL, *genes) == 0
    page = html.unescape((out / "report.html").read_text())
    lines = re.search(r'<pre id="python">(.*?)</pre>', page, re.DOTALL).group(1)
    again: dict = {}
    exec(lines.rpartition("\n")[0], again)
    assert again["X"].shape[1] == 30


def test_wine_alone_is_clustered_as_by_hand(tmp_path, capsys):
    frame = load_wine(as_frame=True).frame
    path, out = tmp_path / "wine.csv", tmp_path / "out"
    frame.to_csv(path, index=False)
    columns = ("--label-column", "target", "--k", 3, "--ensemble-size", 20)
    assert call("fit", path, "--out", out, *columns) == 0
    said = capsys.readouterr().out
    assert "Found measurements in different units: Spreads differ 2500-fold" in said
    assert "Prepared: each feature is standardised. Turn this off" in said
    summary = json.loads((out / "summary.json").read_text())
    assert summary["scores"]["ari"] > 0.7
    page = (out / "report.html").read_text()
    lines = re.search(r'<pre id="python">(.*?)</pre>', page, re.DOTALL).group(1)
    again: dict = {}
    exec(html.unescape(lines), again)
    with (out / "labels.csv").open() as file:
        clusters = [int(row["cluster"]) for row in csv.DictReader(file)]
    assert again["labels"].tolist() == clusters
    new = tmp_path / "new.csv"
    frame.drop(columns="target").to_csv(new, index=False)
    placed = tmp_path / "placed.csv"
    assert call("predict", out / "model.npz", new, "--out", placed) == 0
    with placed.open() as file:
        found = [int(row["cluster"]) for row in csv.DictReader(file)]
    assert np.mean(np.array(found) == clusters) > 0.9


def test_work_is_estimated_before_it_begins(tmp_path, capsys):
    path, out = written(tmp_path, ordinary()), tmp_path / "out"
    assert call("fit", path, "--out", out, *SMALL, "--dry-run") == 0
    assert re.search(
        r"^estimated work +about \d+ s of processor time for the base clusterings and "
        r"\d+\.\d GB of memory$",
        capsys.readouterr().out,
        re.M,
    )
    assert call("fit", path, "--out", out, *SMALL) == 0
    said = capsys.readouterr().out
    words = (
        r"^Estimated work: about \d+ s of processor time for the base clusterings and "
        r"\d+\.\d GB of memory\.$"
    )
    assert re.search(words, said, re.M)


@pytest.mark.parametrize(
    ("given", "instead"),
    [
        ({}, ""),
        ({"prepare": "none"}, " in place of --prepare none"),
        ({"prepare": "diversified"}, " in place of --prepare diversified"),
        ({"transform": "log"}, " in place of --transform log"),
    ],
)
def test_long_work_on_all_genes_names_a_shorter_way(given, instead):
    ready = prepare(np.ones((1000, 9000), dtype=np.float32), "none")
    long, short = MDEC(4, ensemble_size=2000), MDEC(4, ensemble_size=20)
    words = run_of(ready, long, **given).estimate()
    way = "about .* of processor time .* and .* GB of memory"
    way += rf"; with --n-top-genes 2000{instead}, about \d.*"
    assert re.fullmatch(way, words)
    assert "with" not in run_of(ready, short, **given).estimate()
    assert "with" not in run_of(ready, long, n_top_genes=5000).estimate()
    few = prepare(np.ones((1000, 2000)), "none")
    assert "with" not in run_of(few, long).estimate()


def test_estimates_grow_as_the_work_does():
    def seconds(n_samples, n_features, **parameters):
        ready = prepare(np.ones((n_samples, n_features)), "none")
        given = {"n_clusters": 3, **parameters}
        return run_of(ready, MDEC(**given)).seconds()

    once = seconds(1000, 100)
    assert seconds(1000, 100, ensemble_size=200) == pytest.approx(2 * once)
    assert seconds(1000, 100, n_clusters="auto") == pytest.approx(2 * once)
    assert 2.0 * once < seconds(2000, 100) < 4.0 * once
    assert once < seconds(1000, 2000) < 20.0 * once
    assert seconds(100_000, 9, base="landmark") < 0.1 * seconds(100_000, 9)
    more = seconds(300_000, 9, base="landmark")
    assert more < 4.0 * seconds(100_000, 9, base="landmark")
    assert seconds(2000, 9000, max_samples=0.5) < seconds(2000, 9000) / 2


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_memory_is_estimated():
    code = (
        "import sys, numpy as np\n"
        "from mdec import MDEC\n"
        "from mdec.estimator.costs import estimate_memory\n"
        "X = np.random.default_rng(0).normal(size=(6000, 60))\n"
        "model = MDEC(4, ensemble_size=6, n_jobs=2, random_state=0)\n"
        "model.fit(X[:300])\n"
        "estimate = estimate_memory([X], model)\n"
        "model.fit(X)\n"
        "peak = next(x for x in open('/proc/self/status') if 'VmHWM' in x)\n"
        "print(estimate, 1024 * int(peak.split()[1]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    estimate, peak = map(int, done.stdout.split())
    assert 0.8 * peak < estimate < 1.5 * peak
