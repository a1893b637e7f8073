"""The page says of a table what `mdec fit --dry-run` says, in the same words."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pytest
import scipy.io

from mdec.app.folder import Folder, command_words, look_at
from mdec.cli import main
from mdec.cli.fit import FOR_CELLS


def look(root, **options):
    return look_at(Folder(root), "people.csv", options, "out")


def test_doubts_are_those_of_the_command(root, capsys) -> None:
    found = look(root)
    with pytest.raises(SystemExit):
        main(["fit", str(root / "people.csv"), "--dry-run"])
    printed = capsys.readouterr().err
    assert found["error"] in printed
    assert found["cure"] == {"label_column": "kind"}
    assert found["python"] is None


def test_what_was_read_is_that_of_a_dry_run(root, capsys, monkeypatch) -> None:
    found = look(root, label_column="kind", k="2:5")
    monkeypatch.chdir(root)
    with pytest.raises(SystemExit, match=r"^0$"):
        main([*shlex.split(found["command"])[1:], "--dry-run", "--json"])
    printed = json.loads(capsys.readouterr().out)
    assert found["reading"] == printed["reading"]
    assert printed["plan"]["k"] == "2:5"
    assert printed["plan"]["reason"] in " ".join(found["lines"])
    assert found["error"] is None


def test_the_lines_of_python_give_the_clusters(root, monkeypatch) -> None:
    found = look(root, label_column="kind", k="3", ensemble_size=20)
    monkeypatch.chdir(root)
    scope: dict = {}
    exec(found["python"], scope)
    assert len(set(scope["labels"])) == 3


def test_columns_have_roles_and_cells(root) -> None:
    found = look(root, label_column="kind", drop=["age"], annotate=["pulse"])
    columns = {each["name"]: each for each in found["preview"]["columns"]}
    assert {name: each["role"] for name, each in columns.items()} == {
        "name": "id",
        "height": "feature",
        "weight": "feature",
        "<b>dose</b>": "feature",
        "age": "ignore",
        "pulse": "annotation",
        "iron": "feature",
        "kind": "class",
    }
    first = (root / "people.csv").read_text().splitlines()[1].split(",")
    assert [each["cells"][0] for each in columns.values()] == [
        str(float(cell)) if cell[-1].isdigit() and cell[0] != "s" else cell
        for cell in first
    ]


def test_a_column_in_doubt_is_marked(root) -> None:
    columns = look(root)["preview"]["columns"]
    assert [each["name"] for each in columns if each["doubt"]] == ["kind"]


def test_wide_tables_show_what_is_special_and_what_is_looked_for(tmp_path) -> None:
    names = ["id", *(f"g{j}" for j in range(500)), "class"]
    rows = [[f"s{i}", *(str(i + j % 7 + 0.5) for j in range(500)), "ab"[i % 2]]
            for i in range(12)]  # fmt: skip
    lines = [",".join(row) for row in [names, *rows]]
    (tmp_path / "wide.csv").write_text("\n".join(lines))
    given = {"label_column": "class"}
    found = look_at(Folder(tmp_path), "wide.csv", given, "out", find="g49")
    shown = [each["name"] for each in found["preview"]["columns"]]
    assert {"id", "class", "g49", "g490", "g499", "g0"} <= set(shown)
    assert len(shown) == 60
    assert found["preview"]["n_columns"] == 502


def test_words_of_an_option_are_words_alone(root) -> None:
    given = {"drop": ["--out", "a b; rm -rf /"], "label_column": "kind", "seed": 3}
    given |= {"device": "cuda", "no_such_option": 1}
    words = command_words("people.csv", given, "out")
    assert words[:2] == ["fit", "people.csv"]
    assert words[-2:] == ["--out", "out"]
    pairs = sorted(zip(words[2:-2:2], words[3:-2:2], strict=True))
    assert pairs == [
        ("--drop", "--out"),
        ("--drop", "a b; rm -rf /"),
        ("--label-column", "kind"),
        ("--seed", "3"),
    ]
    assert "has no column '--out'" in look(root, **given)["error"]


def test_further_tables_lie_in_the_folder(root, tmp_path) -> None:
    text = (root / "people.csv").read_text()
    for place in (root, tmp_path):
        more = [line.rpartition(",")[0] for line in text.splitlines()]
        (place / "more.csv").write_text("\n".join(more))
    given = {"label_column": "kind", "view": ["more.csv"]}
    found = look(root, **given)
    assert (found["error"], found["shape"]) == (
        None,
        "60 samples x features of people (6), more (6)",
    )
    assert "--view more.csv" in found["command"]
    for name in ("../more.csv", str(tmp_path / "more.csv"), "/etc/passwd"):
        error = look(root, **given | {"view": [name]})["error"]
        assert "start mdec app in the folder" in error


def test_the_consensus_is_that_of_the_command(tmp_path, monkeypatch, capsys) -> None:
    rng = np.random.default_rng(0)
    depth = rng.lognormal(0.0, 0.5, (60, 1))
    counts = rng.poisson(rng.lognormal(-2.0, 1.0, 2600) * depth)
    names = ",".join(f"gene{j}" for j in range(2600))
    np.savetxt(tmp_path / "c.csv", counts, "%d", ",", header=names, comments="")
    found = look_at(Folder(tmp_path), "c.csv", {}, "out")
    assert "consensus='spectral'" in found["python"]
    assert FOR_CELLS in found["lines"]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match=r"^0$"):
        main([*shlex.split(found["command"])[1:], "--dry-run", "--json"])
    plan = json.loads(capsys.readouterr().out)["plan"]
    assert plan["consensus"] == "spectral"
    assert f"Estimated work: {plan['estimated work']}." in found["lines"]


@pytest.mark.parametrize(
    "given", [{"impute": "magic"}, {"k": "many"}, {"drop": 3}, {"k": "99"}]
)
def test_options_that_cannot_be_are_said(root, given) -> None:
    found = look(root, **{"label_column": "kind", **given})
    assert found["error"]
    assert found["python"] is None


def test_a_damaged_file_is_said(root, client) -> None:
    (root / "bad.npz").write_bytes(b"PK nothing")
    answer = client.post("/api/look", json={"file": "bad.npz"})
    assert answer.status_code == 200
    assert "bad.npz" in answer.json()["error"]
    assert client.post("/api/look", json={"file": "../x"}).status_code == 400


def test_a_file_beyond_the_limit_of_the_folder_is_said(root) -> None:
    size = (root / "people.csv").stat().st_size
    for limit, fits in ((size // 2, False), (100 * size, True)):
        folder = Folder(root, max_bytes=limit)
        error = look_at(folder, "people.csv", {"label_column": "kind"}, "out")["error"]
        assert (error is None) is fits
        assert fits or "people.csv" in error


def test_sheets_and_arrays_of_a_file_are_listed(tmp_path) -> None:
    openpyxl, h5py = map(pytest.importorskip, ("openpyxl", "h5py"))
    book = openpyxl.Workbook()
    book.active.title = "Müller & <b>"
    for number, sheet in enumerate([book.active, book.create_sheet("second")]):
        sheet.append(["a", "b", "c"])
        for i in range(12):
            sheet.append([i * i % 11 + 0.25 + number, i % 5 + 0.5, i * 7 % 12 + 0.1])
    book.save(tmp_path / "book.xlsx")
    arrays = {"first": np.eye(6), "other": np.ones((6, 2))}
    np.savez(tmp_path / "arrays.npz", **arrays)
    scipy.io.savemat(tmp_path / "arrays.mat", arrays)
    with h5py.File(tmp_path / "cells.h5ad", "w") as file:
        file["X"], file["layers/counts"], file["obsm/X_pca"] = (np.eye(6),) * 3
    expected = {
        "book.xlsx": ["Müller & <b>", "second"],
        "arrays.npz": ["first", "other"],
        "arrays.mat": ["first", "other"],
        "cells.h5ad": ["X", "layers/counts", "obsm/X_pca"],
    }
    for name, parts in expected.items():
        assert look_at(Folder(tmp_path), name, {}, "out")["parts"] == parts
        damaged = tmp_path / f"damaged-{name}"
        damaged.write_bytes((tmp_path / name).read_bytes()[:300])
        found = look_at(Folder(tmp_path), damaged.name, {}, "out")
        assert len(found["parts"]) < 2
        assert found["error"]
    found = look_at(Folder(tmp_path), "book.xlsx", {"variable": "second"}, "out")
    assert found["error"] is None
    assert "second" in " ".join(found["reading"]["notes"]) + found["command"]
    assert look_at(Folder(tmp_path), "arrays.csv", {}, "out")["parts"] == []
