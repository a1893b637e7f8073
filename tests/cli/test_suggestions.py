"""Commands that messages propose can be pasted, and work."""

from __future__ import annotations

import csv
import json
import shlex

import numpy as np
import pytest

from mdec.cli import main

pandas = pytest.importorskip("pandas")

N = 48


def call(*arguments):
    with pytest.raises(SystemExit) as caught:
        main([str(word) for word in arguments])
    return caught.value.code or 0


def customers():
    """Two groups of people, with all that tables of people have."""
    rng = np.random.default_rng(0)
    group = np.arange(N) % 2
    day = np.datetime64("2020-01-01") + rng.integers(0, 300, N) + 900 * group
    return pandas.DataFrame(
        {
            "customer id": [f"c{i:03d}" for i in range(N)],
            "age": rng.normal(30 + 30 * group, 4.0).round(),
            "income": [f"{x:,.0f}" for x in rng.normal(20_000 + 50_000 * group, 4000)],
            "city": np.where(rng.random(N) < 0.9, group, 1 - group).astype(str),
            "joined": day.astype(str),
            "remark": [f"remark {i // 2}" for i in range(N)],
        }
    ).replace({"city": {"0": "New York", "1": "Rome"}})


def genes_in_rows():
    rng = np.random.default_rng(0)
    rows = [["", *(f"s{i}" for i in range(12))], ["", *("tumour normal " * 6).split()]]
    rows += [[f"g{j}", *rng.normal(size=12).round(3)] for j in range(8)]
    return "\n".join("\t".join(map(str, row)) for row in rows)


def measured():
    values = np.random.default_rng(0).normal(size=(N, 4)).round(3)
    return pandas.DataFrame(values, columns=["a", "b", "c", "d"])


TABLES = {
    "customers.csv": customers(),
    "classes.csv": measured().assign(target=np.arange(N) % 3),
    "words.csv": measured().assign(kind=np.where(np.arange(N) % 2, "x y", "it's")),
    "identifier.csv": measured().assign(id=np.arange(N) // 2),
    "counted.csv": measured().rename_axis("n").reset_index(),
    "missing.csv": measured().mask(measured() > 2.0),
    "empty.csv": measured().assign(e=np.nan, f=1.5 * measured()["a"]),
    "mixed.csv": measured().astype(str).replace(str(measured().iloc[3, 1]), "broken"),
    "text row.txt": genes_in_rows(),
    "tissues.csv": measured().assign(gene=[f"ENSG{i:011d}" for i in range(N)])[
        ["gene", "a", "b", "c", "d"]
    ],
    "described.csv": measured().assign(
        symbol=[f"gene{i}" for i in range(N)], about=[f"of {i}" for i in range(N)]
    )[["symbol", "about", "a", "b", "c", "d"]],
    "unnamed genes.csv": measured()
    .set_axis([f"GSM{i}" for i in range(4)], axis=1)
    .assign(xyz=np.arange(N) * 7 + 1)[["xyz", "GSM0", "GSM1", "GSM2", "GSM3"]],
    "repeated.csv": measured().assign(patient_id=[f"p{i // 2}" for i in range(N)])[
        ["patient_id", "a", "b", "c", "d"]
    ],
    "header.csv": measured().set_axis(["1.5", "b", "c", "d"], axis=1),
    "series.csv": measured()[["a"]].rename_axis("time").reset_index(),
    "two groups.csv": measured()[["a"]].assign(group=np.arange(N) % 2 + 1),
    "two words.csv": measured()[["a"]].assign(feed=np.resize(["oats", "hay"], N)),
    "hidden.csv": measured()[["a"]].assign(
        type=np.resize([1, 2, 2], N), end=np.arange(N) % 2
    ),
    "header and classes.csv": measured()
    .set_axis(["1.5", "b", "c", "d"], axis=1)
    .assign(kind=np.resize(["u", "v"], N)),
    "limits.csv": measured().assign(lead=np.where(np.arange(N) % 9, "2.5", "<0.1")),
    "words for nothing.csv": measured().assign(
        ct=np.where(np.arange(N) % 9, "27.5", "Undetermined"), e=""
    ),
    "ranks.csv": measured()
    .assign(land=[f"Land {i}" for i in range(N)])
    .rename_axis("rank")[["land", "a", "b", "c", "d"]]
    .reset_index(),
    "sexes.csv": pandas.DataFrame(
        np.exp(np.random.default_rng(0).normal(5.0, 1.8, (N, 120))).round(1)
    )
    .add_prefix("G")
    .assign(sex=np.resize(["f", "m"], N), site=np.resize(list("xyz"), N)),
    "unnamed.csv": measured().assign(**{"": np.where(np.arange(N) % 2, "p", "q")}),
}


@pytest.mark.parametrize("name", TABLES)
def test_the_proposed_command_reads_the_table(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table = TABLES[name]
    if isinstance(table, str):
        (tmp_path / name).write_text(table)
    else:
        table.to_csv(name, index=False)
    assert call("fit", name, "--dry-run") == 2
    error = capsys.readouterr().err
    assert error.startswith("mdec: ")
    proposed = error.splitlines()[-1]
    assert proposed.startswith("Try: mdec fit ")
    assert call(*shlex.split(proposed)[2:]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert "n samples" in shown.out


def test_all_problems_come_at_once(tmp_path, capsys):
    path = tmp_path / "customers.csv"
    customers().assign(target=np.arange(N) % 2).to_csv(path, index=False)
    assert call("fit", path) == 2
    error = capsys.readouterr().err
    assert error.count("\n- ") == 4
    for words in ("'city'", "'joined'", "'remark'", "'target'"):
        assert words in error
    assert "--categories encode --dates number --label-column target" in error
    assert "--drop remark" in error


def test_customers_go_through_and_new_ones_are_placed(tmp_path, capsys):
    path, out = tmp_path / "customers.csv", tmp_path / "out"
    table = customers().assign(target=np.arange(N) % 2)
    table.to_csv(path, index=False)
    words = ["--categories", "encode", "--dates", "number", "--drop", "remark"]
    words += ["--label-column", "target", "--k", 2, "--ensemble-size", 20]
    assert call("fit", path, "--out", out, *words) == 0
    said = capsys.readouterr().out
    assert "a category weighs as one feature" in said
    assert "thousands are separated in 'income'" in said
    summary = json.loads((out / "summary.json").read_text())
    assert summary["scores"]["ari"] > 0.7
    # Other columns, another order, and a city that training did not have.
    new = table.iloc[:10, ::-1].assign(city=["Oslo", *table["city"][1:10]])
    new.to_csv(tmp_path / "new.csv", index=False)
    placed = tmp_path / "placed.csv"
    assert call("predict", out / "model.npz", tmp_path / "new.csv", "-o", placed) == 0
    with placed.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["sample"] for row in rows] == table["customer id"][:10].tolist()
    with (out / "labels.csv").open() as file:
        before = [row["cluster"] for row in csv.DictReader(file)]
    after = [row["cluster"] for row in rows]
    assert sum(map(str.__eq__, after, before)) >= 8


def test_the_training_table_is_placed_though_its_classes_come_first(tmp_path):
    table = measured()
    table.insert(0, "kind", np.where(np.arange(N) % 2, "p", "q"))
    table.to_csv(tmp_path / "a.csv", index=False)
    out, placed = tmp_path / "out", tmp_path / "placed.csv"
    words = ["--label-column", "kind", "--k", 2, "--ensemble-size", 5, "-q"]
    assert call("fit", tmp_path / "a.csv", "--out", out, *words) == 0
    model = out / "model.npz"
    assert call("predict", model, tmp_path / "a.csv", "--out", placed, "-q") == 0
    with placed.open() as file:
        assert next(csv.DictReader(file))["sample"] == "1"


def test_codes_are_pointed_out(tmp_path, capsys):
    table = measured()
    table.insert(2, "city", np.arange(N) % 3 + 1)
    table.to_csv(tmp_path / "a.csv", index=False)
    words = "fit", tmp_path / "a.csv", "--dry-run"
    assert call(*words) == 0
    assert "--category 'city'" in capsys.readouterr().out
    assert call(*words, "--category", "city", "--json") == 0
    reading = json.loads(capsys.readouterr().out)["reading"]
    assert (reading["categories"], reading["n_features"]) == (["city"], 7)


def test_whole_numbers_that_never_repeat_are_pointed_out(tmp_path, capsys):
    table = measured()
    table.insert(2, "serial", np.random.default_rng(0).permutation(9999)[:N])
    table.to_csv(tmp_path / "a.csv", index=False)
    words = "fit", tmp_path / "a.csv", "--dry-run"
    assert call(*words) == 0
    assert "--id-column 'serial'" in capsys.readouterr().out
    assert call(*words, "--id-column", "serial", "--json") == 0
    shown = capsys.readouterr().out
    assert json.loads(shown)["reading"]["n_features"] == 4
    assert "never repeat" not in shown


def test_one_cluster_has_no_confidence(tmp_path, capsys):
    measured().to_csv(tmp_path / "a.csv", index=False)
    out = tmp_path / "out"
    words = "--k", 1, "--ensemble-size", 5, "--out", out
    assert call("fit", tmp_path / "a.csv", *words) == 0
    assert "mean confidence" not in capsys.readouterr().out
    assert json.loads((out / "summary.json").read_text())["mean_confidence"] is None


def test_the_proposed_sheet_is_read(tmp_path, capsys):
    pytest.importorskip("openpyxl")
    path = tmp_path / "book.xlsx"
    with pandas.ExcelWriter(path) as book:
        for sheet in ("first half", "second half"):
            measured().to_excel(book, sheet_name=sheet, index=False)
        pandas.DataFrame({"notes": ["a", "b"]}).to_excel(book, sheet_name="notes")
    assert call("fit", path, "--dry-run") == 2
    proposed = capsys.readouterr().err.splitlines()[-1]
    assert call(*shlex.split(proposed)[2:]) == 0
    assert "'first half' is read" in capsys.readouterr().out
    assert call("fit", path, "--dry-run", "--sheet", "second half") == 0
    assert "'second half' is read" in capsys.readouterr().out


@pytest.mark.parametrize("label", ["", "2", "proposed"])
def test_the_row_of_classes_is_taken(label, tmp_path, capsys):
    path = tmp_path / "genes.txt"
    path.write_text(genes_in_rows().replace("g", "gene"))
    words = ["fit", path, "--label-column", label, "--transpose", "auto"]
    if label == "proposed":
        assert call("fit", path) == 2
        words = shlex.split(capsys.readouterr().err.splitlines()[-1])[2:]
    assert call(*words, "--dry-run", "--json") == 0
    reading = json.loads(capsys.readouterr().out)["reading"]
    assert (reading["n_samples"], reading["n_features"]) == (12, 8)
    assert reading["n_classes"] == 2
    assert "--no-transpose" in reading["notes"][0]


def test_the_test_for_groups_can_be_left_out(tmp_path, capsys):
    path, out = tmp_path / "a.csv", tmp_path / "out"
    X = np.random.default_rng(0).normal(size=(N, 6))
    pandas.DataFrame(X).add_prefix("f").to_csv(path, index=False)
    words = ["--ensemble-size", 10, "--out", out]
    assert call("fit", path, *words) == 0
    said = capsys.readouterr()
    assert "testing whether there are groups" in said.err
    assert "Suggested K: 1." in said.out
    for command in (["fit", path], ["consensus", out / "ensemble.npz"]):
        assert call(*command, *words[2:], "--no-test", "--overwrite") == 0
        said = capsys.readouterr()
        assert "testing whether there are groups" not in said.err
        assert "was not tested" in said.out
        summary = json.loads((out / "summary.json").read_text())
        assert summary["n_clusters"] == summary["suggested_n_clusters"] > 1
        assert summary["one_cluster_p_value"] is None


def test_categories_beside_expression_are_set_aside_as_proposed(tmp_path, capsys):
    rng = np.random.default_rng(0)
    means = np.exp(rng.normal(2.0, 1.5, 120))
    counts = rng.poisson(rng.gamma(2.0, means / 2.0, (N, 120)))
    table = pandas.DataFrame(counts, columns=[f"GENE{j}" for j in range(120)])
    table["site"] = np.where(np.arange(N) % 2, "x", "y")
    table.assign(age=np.arange(N) / 7).to_csv(tmp_path / "a.csv", index=False)
    words = ["fit", tmp_path / "a.csv", "--drop", "age", "--dry-run"]
    assert call(*words, "--categories", "encode") == 2
    assert "--categories 'annotate'" in capsys.readouterr().err
    assert call(*words, "--categories", "annotate") == 0
