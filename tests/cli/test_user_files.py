"""Nothing of the user's is lost: what is read, what is theirs, and what was printed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from mdec import MDEC, Ensemble
from mdec.cli import main
from mdec.cli.output import resumable
from mdec.clustering import Settings, cluster_ensemble
from mdec.results import MAIN_FILES, own_files, write_result

pytest.importorskip("typer")

SMALL = ["--k", 2, "--ensemble-size", 5, "--prepare", "none", "-q"]
REPLACED = "is read, and the result would replace it; write the result to another place"


def call(*arguments: object) -> int:
    with pytest.raises(SystemExit) as caught:
        main([str(word) for word in arguments])
    code = caught.value.code
    return code if isinstance(code, int) else 0


def contents(folder: Path) -> dict[str, bytes]:
    files = [each for each in folder.rglob("*") if each.is_file()]
    return {each.relative_to(folder).as_posix(): each.read_bytes() for each in files}


def write_table(path: Path, n_samples: int = 24) -> Path:
    rows = np.random.default_rng(0).normal(size=(n_samples, 4))
    rows[: n_samples // 2] += 6.0
    lines = [f"s{i}," + ",".join(map(repr, row)) for i, row in enumerate(rows.tolist())]
    path.write_text("\n".join(["name,a,b,c,d", *lines]) + "\n")
    return path


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table and two results of it."""
    folder = tmp_path_factory.mktemp("results")
    table = write_table(folder / "table.csv")
    assert call("fit", table, "--out", folder / "a", *SMALL) == 0
    words = "consensus", folder / "a" / "ensemble.npz", "--k", 3, "-q"
    assert call(*words, "--out", folder / "b") == 0
    return folder


@pytest.mark.parametrize("way", ["plain", "relative", "linked folder", "linked file"])
@pytest.mark.parametrize("command", ["fit", "consensus"])
def test_a_table_called_like_a_result_is_kept(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    way: str,
) -> None:
    """``mdec fit labels.csv --out .``, by whatever name the file goes."""
    mine = tmp_path / "mine"
    mine.mkdir()
    file, out = write_table(mine / "labels.csv"), mine
    if command == "consensus":
        rows = [f"s{i},{i % 2},{i % 2},{i // 12}" for i in range(24)]
        file.write_text("\n".join(["name,x,y,z", *rows]) + "\n")
    monkeypatch.chdir(tmp_path)
    if way == "relative":
        file, out = Path("mine/../mine/labels.csv"), Path("./mine")
    elif way == "linked folder":
        out = tmp_path / "link"
        out.symlink_to(mine)
    elif way == "linked file":
        file = tmp_path / "linked.csv"
        file.symlink_to(mine / "labels.csv")
    before = contents(mine)
    words = [command, file, "--out", out, "--overwrite"]
    assert call(*words, *(SMALL if command == "fit" else ["--k", 2, "-q"])) == 2
    error = capsys.readouterr().err
    assert REPLACED in error
    assert error.count("\n") == 1
    assert contents(mine) == before


def test_a_view_that_would_go_with_an_earlier_result(
    results: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A table that is read is not removed either."""
    out = tmp_path / "out"
    table = results / "table.csv"
    assert call("fit", table, "--out", out, "--write", "membership", *SMALL) == 0
    write_table(out / "membership.csv")
    before = contents(out)
    words = "fit", table, "--view", out / "membership.csv", "--out", out
    assert call(*words, *SMALL) == 2
    assert REPLACED in capsys.readouterr().err
    assert contents(out) == before


@pytest.mark.parametrize("target", ["new.csv", "model.npz", "link.csv"])
def test_predict_keeps_its_model_and_its_table(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], target: str
) -> None:
    (tmp_path / "model.npz").write_bytes((results / "a" / "model.npz").read_bytes())
    write_table(tmp_path / "new.csv", 6)
    (tmp_path / "link.csv").symlink_to(tmp_path / "new.csv")
    before = contents(tmp_path)
    words = "predict", tmp_path / "model.npz", tmp_path / "new.csv"
    assert call(*words, "--out", tmp_path / target) == 2
    assert REPLACED in capsys.readouterr().err
    assert contents(tmp_path) == before
    assert call(*words, "--out", tmp_path / "placed.csv", "-q") == 0


@pytest.mark.parametrize("which", ["a", "b"])
def test_compare_keeps_both_sides(
    results: Path, capsys: pytest.CaptureFixture[str], which: str
) -> None:
    before = contents(results)
    words = "compare", results / "a", results / "b"
    assert call(*words, "--table", results / which / "labels.csv") == 2
    assert REPLACED in capsys.readouterr().err
    assert contents(results) == before


def test_compare_writes_both_files_or_none(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "compare", results / "a", results / "b", "--table", tmp_path / "t.svg"
    assert call(*words, "--out", tmp_path / "none" / "p.svg") == 2
    assert call(*words, "--out", tmp_path / "t.svg") == 2
    assert "--out and --table name one file" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_consensus_matrix_of_a_result_is_kept(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = "fit", results / "table.csv", "--out", out, "--write", "consensus"
    assert call(*words, *SMALL) == 0
    before = contents(out)
    words = "consensus", out / "consensus.csv", "--matrix", "--k", 2, "--out", out
    assert call(*words) == 2
    assert REPLACED in capsys.readouterr().err
    assert contents(out) == before


def test_an_ensemble_may_be_clustered_again_in_its_folder(
    results: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert call("fit", results / "table.csv", "--out", out, *SMALL) == 0
    labels = Ensemble.load(out / "ensemble.npz").labels
    words = "consensus", out / "ensemble.npz", "--k", 3, "--out", out, "-q"
    assert call(*words) == 0
    assert json.loads((out / "summary.json").read_text())["n_clusters"] == 3
    np.testing.assert_array_equal(Ensemble.load(out / "ensemble.npz").labels, labels)


FOREIGN = ["membership.csv", "consensus.csv", "consensus.npy", "labels-for-every-k.csv"]


@pytest.mark.parametrize("command", ["fit", "consensus"])
def test_files_of_another_origin_are_left_alone(
    results: Path, tmp_path: Path, command: str
) -> None:
    """Those that the run does not write, whatever their names."""
    for name in FOREIGN:
        (tmp_path / name).write_text("mine")
    file = results / ("table.csv" if command == "fit" else "a/ensemble.npz")
    options = [*SMALL, "--no-model"] if command == "fit" else ["--k", 2, "-q"]
    assert call(command, file, "--out", tmp_path, *options) == 0
    assert all((tmp_path / name).read_text() == "mine" for name in FOREIGN)


@pytest.mark.parametrize("name", ["labels.csv", "model.npz", "membership.csv"])
def test_files_of_another_origin_are_refused_before_the_work(
    results: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_text("mine")
    words = ["fit", results / "table.csv", "--out", out, *SMALL]
    words += ["--write", "membership"]
    with monkeypatch.context() as patched:
        patched.setattr(MDEC, "fit", lambda *_: pytest.fail("the work has begun"))
        assert call(*words) == 2
    error = capsys.readouterr().err
    assert f"has '{name}' from elsewhere, which the result would replace" in error
    assert error.endswith("or say --overwrite.\n")
    assert contents(out) == {name: b"mine"}
    assert call(*words, "--overwrite") == 0
    assert (out / name).read_bytes() != b"mine"
    # From now on it is one of ours, and goes with the others.
    assert call(*words[:-2], "--no-model") == 0
    assert (out / name).exists() == (name == "labels.csv")


def test_consensus_and_demo_refuse_them_as_well(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "report.html").write_text("mine")
    assert call("consensus", results / "a" / "ensemble.npz", "--out", tmp_path) == 2
    assert call("demo", "--out", tmp_path) == 2
    (tmp_path / "labels.csv").write_text("mine")
    matrix = tmp_path / "matrix.csv"
    np.savetxt(matrix, np.eye(4) / 2 + 0.5, delimiter=",")
    words = "consensus", matrix, "--matrix", "--k", 2, "--out", tmp_path
    assert call(*words) == 2
    assert capsys.readouterr().err.count("from elsewhere") == 3
    assert (tmp_path / "report.html").read_text() == "mine"
    assert (tmp_path / "labels.csv").read_text() == "mine"


def small_clustering():
    labels = np.repeat([[0, 0, 1], [1, 0, 0], [2, 1, 0]], 10, axis=0)
    return cluster_ensemble(Ensemble.from_labels(labels), Settings(3))


@pytest.mark.parametrize(
    "summary",
    [
        '{"files": {"../thesis.txt": "", "notes.txt": "", "checkpoint": ""}}',
        '{"files": ["labels.csv", {}]}',
        '{"files": 7}',
        "[" * 100_000,
        "not JSON",
        "",
    ],
)
def test_a_summary_names_files_of_results_alone(tmp_path: Path, summary: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / "thesis.txt").write_text("years of work")
    (out / "notes.txt").write_text("mine")
    (out / "summary.json").write_text(summary)
    assert own_files(out) == set()
    with pytest.raises(ValueError, match=r"has 'summary.json' from elsewhere"):
        write_result(small_clustering(), out)
    write_result(small_clustering(), out, overwrite=True)
    assert own_files(out) == set(MAIN_FILES)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"
    assert (out / "notes.txt").read_text() == "mine"


def test_a_copy_is_replaced_with_the_results_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, copy = tmp_path / "out", tmp_path / "cells.h5ad"

    @contextmanager
    def write(_source: Path, target: Path, *_: object, **__: object) -> Iterator[None]:
        yield
        target.write_text("new")

    monkeypatch.setattr("mdec.results.write_h5ad", write)
    copy.write_text("old")
    (out / "report.html").mkdir(parents=True)
    with pytest.raises(ValueError, match="is a folder where a file"):
        write_result(small_clustering(), out, h5ad=(copy, copy), overwrite=True)
    assert copy.read_text() == "old"
    (out / "report.html").rmdir()
    write_result(small_clustering(), out, h5ad=(copy, copy))
    assert copy.read_text() == "new"


def test_what_lies_in_a_checkpoint_stays(tmp_path: Path) -> None:
    place = tmp_path / "checkpoint"
    for folder in (place, place / "view-1"):
        folder.mkdir()
        for name in ("checkpoint.json", "member-000000.npz", "notes.txt"):
            (folder / name).write_text("")
    with resumable(tmp_path, resume=True) as folder:
        assert folder == place
    assert set(contents(place)) == {"notes.txt", "view-1/notes.txt"}
    for name in ("view-1/notes.txt", "notes.txt"):
        (place / name).unlink()
    with resumable(tmp_path, resume=False):
        pass
    assert not place.exists()


@pytest.mark.parametrize(
    "words",
    [
        ["fit", "{}/table.csv", "--out", ""],
        ["fit", "{}/table.csv", "--out="],
        ["consensus", "{}/a/ensemble.npz", "-o", ""],
        ["predict", "{}/a/model.npz", "{}/table.csv", "--out", ""],
        ["compare", "{}/a", "{}/b", "--table", ""],
        ["demo", "--out", ""],
    ],
)
def test_an_empty_path_is_not_the_current_folder(
    results: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(*(word.format(results) for word in words)) == 2
    error = capsys.readouterr().err
    assert error.startswith("mdec: the path of a result is empty; give a name")
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def shell(words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = f'set -o pipefail; "{sys.executable}" -m mdec {words}'
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=False
    )


FIT = "fit table.csv --k 2 --ensemble-size 5 --prepare none --out out"


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
def test_a_reader_who_leaves_stops_nothing(tmp_path: Path) -> None:
    """``mdec fit ... | head -1`` clusters, and its code is 0."""
    write_table(tmp_path / "table.csv")
    done = shell(f"{FIT} | (read line; echo $line)", tmp_path)
    assert done.stdout.startswith("Read 24 samples")
    assert done.returncode == 0
    assert "rror" not in done.stderr
    assert own_files(tmp_path / "out") == {*MAIN_FILES, "model.npz"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("option", ["", "--json"])
def test_what_cannot_be_shown_is_said(tmp_path: Path, option: str) -> None:
    """The results are there, and the code is neither 0 nor that of wrong input."""
    write_table(tmp_path / "table.csv")
    done = shell(f"{FIT} {option} > /dev/full", tmp_path)
    assert done.returncode == 3
    last = "mdec: done, but not all of it could be shown (No space left on device)."
    assert done.stderr.splitlines()[-1] == last
    assert own_files(tmp_path / "out") == {*MAIN_FILES, "model.npz"}


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
def test_signs_that_a_terminal_cannot_show(tmp_path: Path) -> None:
    path = write_table(tmp_path / "table.csv")
    path.write_text(path.read_text().replace("s0,", "Ωmega,"), encoding="utf-8")
    command = f"export PYTHONIOENCODING=latin-1; {sys.executable} -m mdec {FIT}"
    words = ["bash", "-c", command]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0
    assert b"Read 24 samples ('\\u03a9mega', ...;" in done.stdout


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
def test_closed_outputs(tmp_path: Path) -> None:
    write_table(tmp_path / "table.csv")
    assert shell(f"{FIT} >&- 2>&-", tmp_path).returncode == 0
    assert own_files(tmp_path / "out") == {*MAIN_FILES, "model.npz"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["predict", "a/model.npz", "table.csv", "--out", "a"], "'a' is a folder"),
        (
            ["predict", "a/model.npz", "table.csv", "--out", "no/x"],
            "'no' is not a folder",
        ),
        (["compare", "a", "b", "--table", "a"], "'a' is a folder; name a file"),
        (["compare", "a", "b", "--out", "no/x.svg"], "'no' is not a folder; make"),
        (["fit", "table.csv", "--out", "table.csv/x", *SMALL], "Not a directory: 'ta"),
        (["fit", "table.csv", "--out", "link", *SMALL], "File exists: 'link'"),
    ],
)
def test_places_that_hold_no_result_are_named(
    results: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    sentence: str,
) -> None:
    """By the names that the user gave, in one sentence."""
    for each in results.iterdir():
        (tmp_path / each.name).symlink_to(each)
    (tmp_path / "link").symlink_to("nowhere")
    before = contents(results)
    monkeypatch.chdir(tmp_path)
    assert call(*words) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"mdec: {sentence}")
    assert error.count("\n") == 1
    assert contents(results) == before
    assert not (tmp_path / "nowhere").exists()


def test_a_link_is_replaced_and_not_followed(results: Path, tmp_path: Path) -> None:
    """In the place of a file of a result, and of a table of new samples."""
    mine, out = tmp_path / "mine", tmp_path / "out"
    mine.write_text("mine")
    words = "consensus", results / "a" / "ensemble.npz", "--k", 2, "--out", out, "-q"
    assert call(*words) == 0
    (out / "labels.csv").unlink()
    places = out / "labels.csv", tmp_path / "placed.csv"
    for each in places:
        each.symlink_to(mine)
    assert call(*words) == 0
    words = "predict", results / "a" / "model.npz", results / "table.csv", "-q"
    assert call(*words, "--out", places[1]) == 0
    assert mine.read_text() == "mine"
    assert not any(each.is_symlink() for each in places)


def test_no_more_threads_than_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    from mdec.cli import options

    monkeypatch.setattr(options, "cpu_count", lambda: 4)
    taken = {each: options.WorkOptions(each).n_jobs for each in (None, 1, 100_000, -1)}
    assert taken == {None: None, 1: 1, 100_000: 4, -1: -1}
    with pytest.raises(ValueError, match="--jobs 0 does no work"):
        _ = options.WorkOptions(0).n_jobs
