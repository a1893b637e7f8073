"""``mdec compare`` and ``mdec consensus`` of results: names are kept and matched."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from mdec import MDEC, Ensemble, MultiViewMDEC
from mdec.cli import main
from mdec.cli.finished import _draw
from mdec.consensus.partitions import match_clusters

pandas = pytest.importorskip("pandas")

SMALL = ["--ensemble-size", "8", "--k", "3", "-q"]


def call(*arguments: object) -> int:
    with pytest.raises(SystemExit) as caught:
        main([str(word) for word in arguments])
    code = caught.value.code
    return code if isinstance(code, int) else 0


def labels_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "labels.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(48, 6))
    X[16:32] += 4.0
    X[32:, :3] -= 4.0
    frame = pandas.DataFrame(X, [f"p{i}" for i in range(48)], list("uvwxyz"))
    return frame.rename_axis("id").assign(kind=np.repeat(["a", "b", "c"], 16))


@pytest.fixture(scope="module")
def result(data, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("fit")
    data.to_csv(folder / "t.csv")
    options = ["--label-column", "kind", "--out", folder / "out", *SMALL]
    assert call("fit", folder / "t.csv", *options) == 0
    return folder / "out"


def test_a_consensus_keeps_names_classes_and_features(
    data, result, tmp_path, capsys
) -> None:
    out = tmp_path / "four"
    words = ["consensus", result / "ensemble.npz", "--k", 4]
    assert call(*words, "--out", out) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "Names and known classes come from 'ensemble.npz'." in printed
    assert "Values and features come from 'model.npz' beside it." in printed
    rows = labels_of(out)
    assert [row["sample"] for row in rows] == data.index.tolist()
    assert [row["known_class"] for row in rows] == data["kind"].tolist()
    model = MDEC(4, ensemble_size=8, random_state=0).fit(data.drop(columns="kind"))
    assert [int(row["cluster"]) for row in rows] == model.labels_.tolist()
    assert Ensemble.load(out / "ensemble.npz").names["features"] == tuple("uvwxyz")
    summary = json.loads((out / "summary.json").read_text())
    assert summary["scores"]["classes"] == ["a", "b", "c"]
    assert len(summary["reading"]["notes"]) == 2
    # The new result has a model of its own, with the new clusters.
    again = MDEC.load(out / "model.npz")
    assert (again.labels_ == model.labels_).all()
    new = data.drop(columns="kind").to_numpy()[:5] + 0.1
    assert (
        again.predict(new)
        == model.set_params(n_jobs=1).predict(
            pandas.DataFrame(new, columns=list("uvwxyz"))
        )
    ).all()


def test_without_a_model_the_names_are_still_there(data, result, tmp_path) -> None:
    alone = tmp_path / "elsewhere.npz"
    alone.write_bytes((result / "ensemble.npz").read_bytes())
    out = tmp_path / "out"
    assert call("consensus", alone, "--k", 2, "--out", out, "-q") == 0
    rows = labels_of(out)
    assert [row["sample"] for row in rows] == data.index.tolist()
    assert not (out / "model.npz").exists()


def test_a_model_of_another_run_is_not_taken(result, tmp_path, capsys) -> None:
    ensemble = Ensemble.load(result / "ensemble.npz")[:5]
    ensemble.save(tmp_path / "ensemble.npz")
    (tmp_path / "model.npz").write_bytes((result / "model.npz").read_bytes())
    out = tmp_path / "out"
    words = ["consensus", tmp_path / "ensemble.npz", "--k", 2, "--out", out]
    assert call(*words) == 0
    printed = capsys.readouterr().out
    assert "Names and known classes come" in printed
    assert "Values and features" not in printed


def split_first_feature(rows, n_clusters, rng):  # noqa: ARG001
    return np.argsort(np.argsort(rows[:, 0])) * n_clusters // len(rows)


@pytest.mark.parametrize("kind", ["sparse", "own base", "landmark", "views"])
def test_a_consensus_beside_any_model(data, tmp_path, kind) -> None:
    X = data.drop(columns="kind").to_numpy()
    settings = {"ensemble_size": 8, "random_state": 0}
    if kind == "views":
        views = {"left": X[:, :3], "right": X[:, 3:]}
        model = MultiViewMDEC(MDEC(3, **settings)).fit(views)
    else:
        own = {"own base": split_first_feature, "landmark": "landmark"}.get(
            kind, "graph"
        )
        rows = sparse.csr_array(np.abs(X)) if kind == "sparse" else X
        model = MDEC(3, base=own, **settings).fit(rows)
    model.save(tmp_path / "model.npz")
    model.ensemble_.save(tmp_path / "ensemble.npz")
    out = tmp_path / "out"
    for k in ("2", "auto"):
        words = ["consensus", tmp_path / "ensemble.npz", "--k", k, "-q", "--out", out]
        assert call(*words) == 0
    again = type(model).load(out / "model.npz")
    # A file has the name of a function only, so that no null reference is drawn.
    stored = type(model).load(tmp_path / "model.npz")
    expected = stored.clustering_.recluster("auto")
    found = [int(row["cluster"]) for row in labels_of(out)]
    assert found == expected.labels.tolist() == again.labels_.tolist()


def test_two_results_side_by_side(data, result, tmp_path, capsys) -> None:
    other = tmp_path / "other.csv"
    rng = np.random.default_rng(1)
    kind = data["kind"].where(rng.random(48) > 0.2, "b")
    shuffled = kind.rename({"p3": "q3"}).iloc[::-1]
    shuffled.rename("cluster").to_csv(other)
    picture, table = tmp_path / "c.svg", tmp_path / "c.csv"
    words = ["compare", result, other]
    assert call(*words, "--out", picture, "--table", table) == 0
    printed = capsys.readouterr().out
    assert "1 samples are only in A and left out: 'p3'." in printed
    assert "1 samples are only in B and left out: 'q3'." in printed
    clusters = [row["cluster"] for row in labels_of(result)]
    both = [i for i in range(48) if i != 3]
    a, b = [clusters[i] for i in both], [kind.iloc[i] for i in both]
    assert f"ARI {adjusted_rand_score(a, b):.3f}" in printed
    nmi = normalized_mutual_info_score(a, b, average_method="max")
    assert f"NMI {nmi:.3f}" in printed
    with table.open() as file:
        header, *rows = list(csv.reader(file))
    counts = {
        (row[0], h): int(c)
        for row in rows
        for h, c in zip(header[1:], row[1:], strict=True)
    }
    assert counts == {
        (x, y): sum(pair == (x, y) for pair in zip(a, b, strict=True))
        for x in set(a)
        for y in set(b)
    }
    assert sum(int(row[1 + i]) for i, row in enumerate(rows)) > 35
    assert picture.read_text().startswith("<?xml")
    assert call(*words, "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["only_in_a"] == ["p3"]
    assert np.sum(summary["counts"]) == 47


def test_a_png_can_be_drawn_with_hostile_names(tmp_path) -> None:
    labels = ["$x^", "<b>", "=1+1", r"\frac"]
    lines = [f"s{i},{labels[i % 4]}" for i in range(12)]
    (tmp_path / "a.csv").write_text("sample,cluster\n" + "\n".join(lines))
    out, table = tmp_path / "c.png", tmp_path / "c.csv"
    words = ["compare", tmp_path / "a.csv", tmp_path / "a.csv", "-q"]
    assert call(*words, "--out", out, "--table", table) == 0
    assert out.read_bytes().startswith(b"\x89PNG")
    assert "'=1+1" in table.read_text()


def test_the_shades_are_shares_of_the_clusters_of_a(monkeypatch) -> None:
    pytest.importorskip("matplotlib")
    drawn = []
    monkeypatch.setattr(
        "matplotlib.axes.Axes.imshow", lambda _, shares, **__: drawn.append(shares)
    )
    summary = {"counts": [[3, 1], [0, 5]], "ari": 0.5, "nmi_max": 0.5}
    summary |= {"clusters_a": ["1", "2"], "clusters_b": ["1", "2"]}
    _draw(io.BytesIO(), ".png", summary)
    np.testing.assert_array_equal(drawn[0], [[0.75, 0.25], [0.0, 1.0]])


def test_classes_of_a_result_against_its_clusters(result, capsys) -> None:
    assert call("compare", result, result, "--column-b", "known_class", "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["ari"] == pytest.approx(1.0)
    assert summary["clusters_b"] == ["a", "b", "c"]
    assert np.count_nonzero(summary["counts"]) == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sample,r1,r2\n" + "".join(f"s{i},{i % 2},0\n" for i in range(9)), "2 clust"),
        ("sample,cluster\n" + "".join(f"t{i},{i % 2}\n" for i in range(9)), "share 0"),
        ("sample,cluster\n" + "s1,0\n" * 9, "'s1' more than once"),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(
    result, tmp_path, capsys, text, said
) -> None:
    (tmp_path / "b.csv").write_text(text)
    assert call("compare", result, tmp_path / "b.csv") == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_bad_places_are_one_sentence(result, tmp_path, capsys) -> None:
    assert call("compare", result, tmp_path) == 2
    assert "labels.csv' is not a file" in capsys.readouterr().err
    assert call("compare", result, result, "--out", tmp_path / "c.doc") == 2
    assert "is not a picture; give .png, .svg, .pdf" in capsys.readouterr().err
    assert call("compare", result, result, "--column-a", "nobody") == 2
    assert "no column 'nobody'" in capsys.readouterr().err


def test_more_clusters_on_either_side_are_kept() -> None:
    a = np.array(["0", "0", "1", "10", "2"])
    b = np.array(["x", "x", "y", "y", "y"])
    rows, columns, counts = match_clusters(a, b)
    assert rows == ["0", "1", "2", "10"]
    assert columns == ["x", "y"]
    assert counts.tolist() == [[2, 0], [0, 1], [0, 1], [0, 1]]
    rows, columns, counts = match_clusters(b, a)
    assert columns == ["0", "1", "2", "10"]
    assert counts.tolist() == [[2, 0, 0, 0], [0, 1, 1, 1]]


CLASSES = '"","K2","K3","K4"\n' + "".join(
    f'"GSM{i:03}",{1 + (i >= 8)},{1 + i // 6},{1 + i // 4}\n' for i in range(16)
)


def test_classes_of_consensus_cluster_plus(tmp_path) -> None:
    """As write.csv writes them, with row names."""
    (tmp_path / "classes.csv").write_text(CLASSES)
    out = tmp_path / "out"
    assert call("consensus", tmp_path / "classes.csv", "--k", 2, "-o", out, "-q") == 0
    rows = labels_of(out)
    assert rows[3]["sample"] == "GSM003"
    assert [int(row["cluster"]) for row in rows] == [0] * 8 + [1] * 8


@pytest.mark.parametrize("named", [True, False])
def test_a_consensus_matrix_is_refused_with_a_way_out(tmp_path, capsys, named) -> None:
    labels = np.random.default_rng(0).integers(3, size=(20, 12))
    matrix = (labels[:, :, None] == labels[:, None]).mean(axis=0)
    frame = pandas.DataFrame(matrix)
    if named:
        frame.index = frame.columns = [f"GSM{i}" for i in range(12)]
    frame.to_csv(tmp_path / "m.csv", index=named, header=named)
    assert call("consensus", tmp_path / "m.csv", "--out", tmp_path / "out") == 2
    error = capsys.readouterr().err
    assert "is a consensus matrix and no table of labels" in error
    assert "with --matrix and --k" in error
    assert error.count("\n") == 1


def test_a_cluster_called_like_the_first_column(tmp_path):
    """It has a column of its own all the same."""
    for name, labels in {"a": "xxyy", "b": ["cluster", "cluster", "z", "z"]}.items():
        lines = [f"s{i},{label}" for i, label in enumerate(labels)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["sample,group", *lines]))
    table = tmp_path / "t.csv"
    words = ["compare", tmp_path / "a.csv", tmp_path / "b.csv", "--table", table, "-q"]
    assert call(*words) == 0
    assert table.read_text().split() == ["cluster,cluster,z", "x,2,0", "y,0,2"]
