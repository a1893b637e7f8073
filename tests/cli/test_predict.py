"""``mdec predict``: tables as people have them, placed by a model file."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from mdec import MDEC
from mdec.cli import main
from mdec.results import read_result_model
from mdec.tables.reading import read_table
from mdec.tables.steps import prepare_table, transform_values

pandas = pytest.importorskip("pandas")

SMALL = ["--ensemble-size", "8", "--k", "3", "-q"]


def call(*arguments: object) -> int:
    with pytest.raises(SystemExit) as caught:
        main([str(word) for word in arguments])
    code = caught.value.code
    return code if isinstance(code, int) else 0


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6))
    X[20:40] += 4.0
    X[40:, :3] -= 4.0
    X = X[rng.permutation(60)]
    names = [f"s{i}" for i in range(60)]
    found = pandas.DataFrame(X, names, [f"g{j}" for j in range(6)])
    return found.rename_axis("sample")


@pytest.fixture(scope="module")
def result(frame, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("fit")
    frame[:45].to_csv(folder / "train.csv")
    assert call("fit", folder / "train.csv", "--out", folder / "out", *SMALL) == 0
    return folder / "out"


@pytest.fixture(scope="module")
def expected(frame):
    model = MDEC(3, ensemble_size=8, random_state=0).fit(frame[:45].to_numpy())
    return model.place(frame[45:].to_numpy())


def check(path: Path, expected, names=None) -> None:
    rows = rows_of(path)
    assert [int(row["cluster"]) for row in rows] == expected.clusters.tolist()
    assert [row["confidence"] for row in rows] == [
        f"{each:.4f}" for each in expected.confidence
    ]
    flags = {"true": True, "false": False}
    found = [flags[row["unlike_training"]] for row in rows]
    assert found == expected.unlike.tolist()
    if names is not None:
        assert [row["sample"] for row in rows] == list(names)


def test_a_new_table_is_placed_as_in_python(
    frame, result, expected, tmp_path, capsys
) -> None:
    frame[45:].to_csv(tmp_path / "new.csv")
    out = tmp_path / "placed.csv"
    words = ["predict", result / "model.npz", tmp_path / "new.csv", "--out", out]
    assert call(*words) == 0
    check(out, expected, frame.index[45:])
    printed = capsys.readouterr().out
    assert "New samples" in printed
    assert "15 samples are ambiguous" in printed
    assert call(*words, "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["n_samples"] == sum(row["size"] for row in summary["clusters"]) == 15
    assert summary["notes"] == []
    assert call(*words, "-q") == 0
    assert capsys.readouterr() == ("", "")


def test_the_default_name_of_the_table(frame, result, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    frame[45:].to_csv("new.csv")
    assert call("predict", result / "model.npz", "new.csv", "-q") == 0
    assert len(rows_of(Path("predicted.csv"))) == 15


def test_features_are_matched_by_name_in_any_order(
    frame, result, expected, tmp_path, capsys
) -> None:
    wild = frame[45:].iloc[:, ::-1].assign(comment="x", group=range(15), age=[1] * 15)
    wild.to_csv(tmp_path / "new.csv")
    words = ["predict", result / "model.npz", tmp_path / "new.csv"]
    assert call(*words, "--out", tmp_path / "p.csv") == 0
    check(tmp_path / "p.csv", expected, frame.index[45:])
    said = "3 columns are not features of the model: 'comment', 'group', 'age'"
    assert said in capsys.readouterr().out


def test_missing_features_are_counted_and_named(
    frame, result, tmp_path, capsys
) -> None:
    frame[45:].drop(columns=["g1", "g4"]).to_csv(tmp_path / "new.csv")
    out = tmp_path / "p.csv"
    words = ["predict", result / "model.npz", tmp_path / "new.csv", "--out", out]
    assert call(*words) == 2
    error = capsys.readouterr().err
    assert "lacks 2 of the model's 6 features: 'g1', 'g4';" in error
    assert error.count("\n") == 1
    assert not out.exists()


def test_a_feature_that_is_there_twice_is_refused(
    frame, result, tmp_path, capsys
) -> None:
    twice = pandas.concat([frame, frame[["g2"]]], axis=1)
    twice.to_csv(tmp_path / "new.csv")
    assert call("predict", result / "model.npz", tmp_path / "new.csv") == 2
    assert "more than one column 'g2'" in capsys.readouterr().err


def test_other_shapes_of_the_same_table(frame, result, expected, tmp_path) -> None:
    new = frame[45:]
    new.T.rename_axis("gene").to_csv(tmp_path / "turned.csv")
    new.reset_index().assign(note="n").to_csv(tmp_path / "id.tsv", sep="\t")
    new.to_parquet(tmp_path / "new.parquet")
    for name, options in {
        "turned.csv": ["--transpose"],
        "id.tsv": ["--id-column", "sample"],
        "new.parquet": [],
    }.items():
        words = ["predict", result / "model.npz", tmp_path / name, *options, "-q"]
        assert call(*words, "--out", tmp_path / "p.csv") == 0
        check(tmp_path / "p.csv", expected, new.index)


def test_one_sample_is_enough(frame, result, expected, tmp_path) -> None:
    frame[45:46].to_csv(tmp_path / "new.csv")
    words = ["predict", result / "model.npz", tmp_path / "new.csv", "-q"]
    assert call(*words, "--out", tmp_path / "p.csv") == 0
    assert rows_of(tmp_path / "p.csv")[0]["cluster"] == str(expected.clusters[0])


def test_tables_without_names_are_matched_by_position(
    frame, result, expected, tmp_path, capsys
) -> None:
    np.save(tmp_path / "new.npy", frame[45:].to_numpy())
    words = ["predict", result / "model.npz", tmp_path / "new.npy"]
    assert call(*words, "--out", tmp_path / "p.csv") == 0
    check(tmp_path / "p.csv", expected)
    assert "they were matched by position" in capsys.readouterr().out
    np.save(tmp_path / "new.npy", frame.to_numpy()[45:, :5])
    assert call(*words) == 2
    assert "has 5 features and the model 6" in capsys.readouterr().err


def test_a_model_of_a_table_without_names(frame, expected, tmp_path, capsys) -> None:
    np.save(tmp_path / "train.npy", frame.to_numpy()[:45])
    out = tmp_path / "out"
    assert call("fit", tmp_path / "train.npy", "--out", out, *SMALL) == 0
    frame[45:].to_csv(tmp_path / "new.csv")
    words = ["predict", out / "model.npz", tmp_path / "new.csv"]
    assert call(*words, "--out", tmp_path / "p.csv") == 0
    check(tmp_path / "p.csv", expected, frame.index[45:])
    assert "the model has no names of features" in capsys.readouterr().out


def test_rows_far_away_are_flagged(frame, result, tmp_path, capsys) -> None:
    (frame[45:] + 1e6).to_csv(tmp_path / "far.csv")
    words = ["predict", result / "model.npz", tmp_path / "far.csv"]
    assert call(*words, "--out", tmp_path / "p.csv") == 0
    flags = {row["unlike_training"] for row in rows_of(tmp_path / "p.csv")}
    assert flags == {"true"}
    assert "15 of 15 samples are unlike anything" in capsys.readouterr().out


@pytest.mark.parametrize("transform", ["standardise", "log"])
def test_transforms_of_the_training_table_are_used(frame, tmp_path, transform) -> None:
    values = np.abs(frame)
    values[:45].to_csv(tmp_path / "train.csv")
    # Rows of one cluster alone: their own means and spreads would be others.
    values[45:48].to_csv(tmp_path / "new.csv")
    out, options = tmp_path / "out", [*SMALL, "--transform", transform]
    assert call("fit", tmp_path / "train.csv", "--out", out, *options) == 0
    words = ["predict", out / "model.npz", tmp_path / "new.csv", "-q"]
    assert call(*words, "--out", tmp_path / "p.csv") == 0
    train = values[:45].to_numpy()
    both = np.vstack([train, values[45:48].to_numpy()])
    if transform == "standardise":
        both = (both - train.mean(axis=0)) / train.std(axis=0)
    else:
        both = np.log2(both + 1.0)
    model = MDEC(3, ensemble_size=8, random_state=0)
    model.fit(transform_values(train, transform))
    check(tmp_path / "p.csv", model.place(both[45:]))
    with pytest.warns(UserWarning, match=f"prepared first .transform {transform}"):
        MDEC.load(out / "model.npz")


@pytest.mark.parametrize("how", ["auto", "diversified"])
def test_prepared_expression_values(tmp_path, how) -> None:
    rng = np.random.default_rng(1)
    X = np.exp(rng.normal(5.0, 2.0, size=(50, 150)))
    X[:25, :40] *= 6.0
    names = [f"s{i}" for i in range(50)], [f"gene{j}" for j in range(150)]
    table = pandas.DataFrame(X[rng.permutation(50)], *names).rename_axis("id")
    table[:40].to_csv(tmp_path / "train.csv")
    table[40:].iloc[:, ::-1].to_csv(tmp_path / "new.csv")
    out, options = tmp_path / "out", ["--k", 2, *SMALL[:2], "-q", "--prepare", how]
    assert call("fit", tmp_path / "train.csv", "--out", out, *options) == 0
    words = ["predict", out / "model.npz", tmp_path / "new.csv", "-q"]
    assert call(*words, "--out", tmp_path / "p.csv") == 0
    read = read_table(tmp_path / "train.csv")
    ready = prepare_table(read, how)
    model = MDEC(2, ensemble_size=8, preparation=ready.preparation, random_state=0)
    model.fit(ready.values)
    assert ready.words["prepared"] is not None
    new = ready.steps.apply(table[40:].to_numpy())
    check(tmp_path / "p.csv", model.place(new))


@pytest.mark.parametrize("how", ["auto", "diversified"])
def test_an_offset_that_preparing_takes_away_is_flagged(tmp_path, how) -> None:
    rng = np.random.default_rng(1)
    spreads = np.exp(rng.normal(-0.3, 0.4, size=300))
    X = spreads * rng.standard_t(5, size=(60, 300))
    X[:30, :60] += 2.0
    names = [f"s{i}" for i in range(60)], [f"gene{j}" for j in range(300)]
    table = pandas.DataFrame(X[rng.permutation(60)], *names).rename_axis("id")
    table[:50].to_csv(tmp_path / "train.csv")
    table[50:].to_csv(tmp_path / "new.csv")
    (table[50:] + 1e6).to_csv(tmp_path / "far.csv")
    out, options = tmp_path / "out", ["--k", 2, *SMALL[:2], "-q", "--prepare", how]
    assert call("fit", tmp_path / "train.csv", "--out", out, *options) == 0
    summary = json.loads((out / "summary.json").read_text())["preparation"]
    assert "mean is subtracted" in summary["prepared"]
    for name, n_flagged in {"new": range(2), "far": [10]}.items():
        words = ["predict", out / "model.npz", tmp_path / f"{name}.csv", "-q"]
        assert call(*words, "--out", tmp_path / "p.csv") == 0
        flags = [row["unlike_training"] for row in rows_of(tmp_path / "p.csv")]
        assert flags.count("true") in n_flagged


def test_a_model_of_python(frame, expected, tmp_path) -> None:
    model = MDEC(3, ensemble_size=8, random_state=0).fit(frame[:45])
    model.save(tmp_path / "mine.mdec")
    frame[45:].iloc[:, ::-1].to_csv(tmp_path / "new.csv")
    words = ["predict", tmp_path / "mine.mdec", tmp_path / "new.csv", "-q"]
    assert call(*words, "--out", tmp_path / "p.csv") == 0
    check(tmp_path / "p.csv", expected, frame.index[45:])


def test_the_model_of_a_fit_is_that_of_python(frame, result) -> None:
    model, steps = read_result_model(result / "model.npz")
    own = MDEC(3, ensemble_size=8, random_state=0).fit(frame[:45].to_numpy())
    assert steps.names == tuple(frame.columns)
    assert (model.labels_ == own.labels_).all()
    assert (model.confidence_ == own.confidence_).all()
    assert model.get_params() == own.get_params()
    again = MDEC.load(result / "model.npz")
    assert (again.predict(frame.to_numpy()) == own.predict(frame.to_numpy())).all()


def test_formulas_in_names_are_written_as_text(frame, result, tmp_path) -> None:
    frame[45:47].rename(index={"s45": "=1+1"}).to_csv(tmp_path / "new.csv")
    words = ["predict", result / "model.npz", tmp_path / "new.csv", "-q"]
    assert call(*words, "--out", tmp_path / "p.csv") == 0
    assert rows_of(tmp_path / "p.csv")[0]["sample"] == "'=1+1"


def test_damaged_and_wrong_models_are_one_sentence(
    frame, result, tmp_path, capsys
) -> None:
    frame[45:].to_csv(tmp_path / "new.csv")
    content = bytearray((result / "model.npz").read_bytes())
    content[len(content) // 2] ^= 0x41
    (tmp_path / "damaged.npz").write_bytes(content)
    for model, said in {
        tmp_path / "damaged.npz": "is damaged",
        result / "ensemble.npz": "is not an mdec model",
        tmp_path / "new.csv": "damaged or was not written by mdec",
        tmp_path / "nothing.npz": "is not a file",
    }.items():
        assert call("predict", model, tmp_path / "new.csv") == 2
        error = capsys.readouterr().err
        assert said in error
        assert error.startswith("mdec: ")
        assert error.count("\n") == 1


def test_a_folder_that_is_not_there_is_said_before_the_work(
    result, tmp_path, capsys
) -> None:
    out = tmp_path / "nowhere" / "p.csv"
    # The table does not exist either, and is not looked for.
    assert call("predict", result / "model.npz", tmp_path / "new.csv", "-o", out) == 2
    assert "nowhere' is not a folder" in capsys.readouterr().err


def test_no_model_takes_an_old_one_away(frame, tmp_path, capsys) -> None:
    frame.to_csv(tmp_path / "train.csv")
    out = tmp_path / "out"
    words = ["fit", tmp_path / "train.csv", "--out", out, *SMALL[:-1]]
    assert call(*words) == 0
    assert "model.npz (" in capsys.readouterr().out
    summary = json.loads((out / "summary.json").read_text())
    assert summary["model"] == {"bytes": (out / "model.npz").stat().st_size}
    (out / "notes.txt").write_text("mine")
    assert call(*words, "--no-model") == 0
    assert not (out / "model.npz").exists()
    assert "model.npz" not in capsys.readouterr().out
    assert (out / "notes.txt").exists()


def test_training_rows_that_are_too_many_are_left_out(
    frame, tmp_path, capsys, monkeypatch
) -> None:
    monkeypatch.setattr("mdec.results.MODEL_BYTES", 1000)
    frame.to_csv(tmp_path / "train.csv")
    out = tmp_path / "out"
    assert call("fit", tmp_path / "train.csv", "--out", out, *SMALL[:-1]) == 0
    assert "No model was written: its training rows" in capsys.readouterr().out
    assert not (out / "model.npz").exists()
    assert "left_out" in json.loads((out / "summary.json").read_text())["model"]
