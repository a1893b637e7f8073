"""The command line as a user meets it, in a process of its own."""

from __future__ import annotations

import csv
import html
import io
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from mdec import MDEC, Ensemble, __version__
from mdec.cli import main
from mdec.cli.output import ProgressLines, criteria_table
from mdec.tables.reading import read_table

SMALL = ["--ensemble-size", "20"]


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(45, 8))
    X[15:30] += 4.0
    X[30:, :4] -= 4.0
    lines = ["id," + ",".join(f"g{i}" for i in range(8)) + ",group"]
    for i, row in enumerate(X):
        cells = ",".join(repr(float(value)) for value in row)
        lines.append(f"s{i},{cells},{i // 15}")
    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines))
    return path, X


def call(*arguments):
    with pytest.raises(SystemExit) as caught:
        main([str(word) for word in arguments])
    return caught.value.code or 0


def read_labels(folder):
    with (folder / "labels.csv").open() as file:
        return list(csv.DictReader(file))


def test_fit_takes_several_kernels(table, tmp_path):
    path, X = table
    out, words = tmp_path / "out", ("--kernel", "scaled_gaussian,correlation")
    columns = ("--label-column", "group")
    assert call("fit", path, "--k", 3, "--out", out, *columns, *words, *SMALL) == 0
    kernel = ["scaled_gaussian", "correlation"]
    model = MDEC(3, kernel=kernel, ensemble_size=20, random_state=0).fit(X)
    made = Ensemble.load(out / "ensemble.npz")
    assert made.members == model.ensemble_.members
    np.testing.assert_array_equal(made.labels, model.ensemble_.labels)
    found = json.loads((out / "summary.json").read_text())["parameters"]["kernel"]
    assert found == kernel
    page = html.unescape((out / "report.html").read_text())
    assert f"kernel={kernel!r}" in page
    assert MDEC.load(out / "model.npz").kernel == tuple(kernel)


def test_fit_names_a_kernel_that_does_not_exist(table, tmp_path, capsys):
    words = ("--kernel", "cosine,rbf", "--label-column", "group")
    assert call("fit", table[0], "--k", 3, "--out", tmp_path / "out", *words) != 0
    assert "'rbf' in kernel=['cosine', 'rbf'] is not one of" in capsys.readouterr().err


def test_fit_writes_its_files(table, tmp_path, capsys):
    path, X = table
    out = tmp_path / "out"
    code = call("fit", path, "--k", 3, "--out", out, "--label-column", "group", *SMALL)
    assert code == 0
    names = {"ensemble.npz", "labels.csv", "model.npz", "report.html", "summary.json"}
    names |= {"signatures.csv"}
    assert {each.name for each in out.iterdir()} == names
    model = MDEC(3, ensemble_size=20, random_state=0).fit(X)
    rows = read_labels(out)
    assert [row["sample"] for row in rows] == [f"s{i}" for i in range(45)]
    assert [int(row["cluster"]) for row in rows] == model.labels_.tolist()
    confidence = [float(row["confidence"]) for row in rows]
    np.testing.assert_allclose(confidence, model.confidence_, atol=1e-4)
    assert {row["second_choice"] for row in rows} <= {"0", "1", "2"}
    ensemble = Ensemble.load(out / "ensemble.npz")
    assert (ensemble.labels == model.ensemble_.labels).all()
    summary = json.loads((out / "summary.json").read_text())
    assert summary["scores"]["ari"] == pytest.approx(1.0)
    assert summary["parameters"]["transform"] == "none"
    assert summary["seed"] == 0
    assert set(summary["versions"]) >= {"mdec", "numpy", "scikit-learn"}
    assert summary["timings_s"]["base clusterings"] > 0.0
    printed = capsys.readouterr().out
    assert "45 samples" in printed
    assert "transform: none" in printed
    assert "ARI 1.000" in printed


def test_auto_and_ranges(table, tmp_path, capsys):
    path, _ = table
    for k in ("auto", "2:6"):
        out = tmp_path / k.replace(":", "-")
        options = ["--label-column", "group", "--json", *SMALL]
        assert call("fit", path, "--k", k, "--out", out, *options) == 0
        summary = json.loads(capsys.readouterr().out)
        assert summary["n_clusters"] == summary["suggested_n_clusters"] == 3
        assert summary["one_cluster_p_value"] < 0.05
    assert [row["n_clusters"] for row in summary["criteria"]] == [2, 3, 4, 5, 6]


def test_the_table_of_numbers_of_clusters():
    from rich.console import Console

    criteria = [
        {"n_clusters": 2, "score": 0.25, "pac": 0.5},
        {"n_clusters": 3, "score": 0.875, "eigengap": 0.1, "pac": 0.0004},
    ]
    shown = criteria_table({"suggested_n_clusters": 3, "criteria": criteria})
    console = Console(width=100, file=io.StringIO())
    console.print(shown)
    title, header, *rows = console.file.getvalue().splitlines()
    assert title.strip() == "Number of clusters"
    places = [header.index(name) + len(name) for name in ("score", "eigengap", "pac")]
    assert [row.split() for row in rows] == [
        ["2", "0.250", "0.500"],
        ["3", "*", "0.875", "0.100", "0.000"],
    ]
    assert [rows[1][:place].split()[-1] for place in places] == [
        *("0.875", "0.100", "0.000")
    ]


def test_quiet_prints_nothing(table, tmp_path, capfd):
    path, _ = table
    out = tmp_path / "out"
    assert (
        call("fit", path, "--k", 2, "--drop", "group", "--out", out, "-q", *SMALL) == 0
    )
    assert capfd.readouterr() == ("", "")


def test_every_option_of_the_estimator(table, tmp_path):
    path, X = table
    out = tmp_path / "out"
    options = [
        *("--consensus", "bipartite", "--ensemble-size", "15", "--seed", "4"),
        *("--max-features", "0.7", "--kernel", "scaled_exponential"),
        *("--mu-range", "0.3:0.6", "--n-neighbors-range", "4:9"),
        *("--base-n-clusters-range", "2:5", "--weighting", "uniform"),
        *("--transform", "standardise", "-q"),
    ]
    group = ["--label-column", "group"]
    assert call("fit", path, "--k", 3, "--out", out, *group, *options) == 0
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    model = MDEC(
        3,
        consensus="bipartite",
        ensemble_size=15,
        max_features=0.7,
        kernel="scaled_exponential",
        mu_range=(0.3, 0.6),
        n_neighbors_range=(4, 9),
        base_n_clusters_range=(2, 5),
        weighting="uniform",
        random_state=4,
    ).fit(scaled)
    assert [int(r["cluster"]) for r in read_labels(out)] == model.labels_.tolist()


@pytest.mark.parametrize(
    "options",
    [
        ["--k", "0"],
        ["--k", "99"],
        ["--k", "many"],
        ["--k", "5:2"],
        ["--kernel", "magic"],
        ["--consensus", "vote"],
        ["--transform", "cube"],
        ["--mu-range", "high"],
        ["--max-features", "2"],
        ["--jobs", "0"],
        ["--label-column", "nobody"],
        ["--id-column", "nobody"],
        ["--drop", "nobody"],
        ["--features", "x*"],
        ["--variable", "layers/x"],
        ["--impute", "zero"],
        ["--transform", "log"],
        ["--max-gb", "1e-9"],
    ],
)
def test_bad_options_are_one_sentence(table, tmp_path, capsys, options):
    path, _ = table
    if "--label-column" not in options:
        options = ["--label-column", "group", *options]
    assert call("fit", path, "--out", tmp_path / "out", *options) == 2
    error = capsys.readouterr().err
    assert error.startswith("mdec: ")
    assert "looks like" not in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_suspicious_column_stops_the_run(table, tmp_path, capsys):
    path, _ = table
    assert call("fit", path, "--out", tmp_path / "out") == 2
    error = capsys.readouterr().err
    assert "'group' (3 values: 0, 1, 2) looks like known classes" in error
    assert "--label-column 'group'" in error
    assert not (tmp_path / "out").exists()


def test_dry_run_says_what_was_read_and_writes_nothing(table, tmp_path, capsys):
    path, X = table
    options = ["--dry-run", "--label-column", "group", "--out", tmp_path / "out"]
    assert call("fit", path, *options) == 0
    printed = capsys.readouterr().out
    assert "column 'id'" in printed
    assert "g0 (numbers, " in printed
    assert call("fit", path, "--json", *options) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["reading"]["n_features"] == 8
    assert summary["reading"]["range"] == [X.min(), X.max()]
    assert summary["plan"]["k"] == "auto"
    assert call("fit", path, "--dry-run", "--out", tmp_path / "out") == 2
    shown = capsys.readouterr()
    assert "suspicious" in shown.out
    assert "--label-column 'group'" in shown.out
    assert "label_column=" not in shown.out
    assert "looks like known classes" in shown.err
    assert not (tmp_path / "out").exists()


def test_samples_without_a_class_are_not_scored(table, tmp_path, capsys):
    path, X = table
    lines = path.read_text().splitlines()
    for i in (2, 20, 40):
        lines[i] = lines[i].rpartition(",")[0] + ","
    path.write_text("\n".join(lines))
    out = tmp_path / "out"
    options = ["--k", 3, "--out", out, "--label-column", "group", *SMALL]
    assert call("fit", path, *options) == 0
    assert "3 samples have no known class" in capsys.readouterr().out
    summary = json.loads((out / "summary.json").read_text())
    assert summary["scores"]["ari"] == pytest.approx(1.0)
    assert summary["scores"]["classes"] == ["0", "1", "2"]
    assert np.sum(summary["scores"]["counts"]) == 42
    assert summary["reading"]["n_without_class"] == 3
    rows = read_labels(out)
    assert [i for i, row in enumerate(rows) if not row["known_class"]] == [1, 19, 39]
    model = MDEC(3, ensemble_size=20, random_state=0).fit(X)
    assert [int(row["cluster"]) for row in rows] == model.labels_.tolist()


def test_standard_input(table, tmp_path, monkeypatch):
    path, X = table
    out = tmp_path / "out"
    with path.open("rb") as file:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(file))
        code = call("fit", "-", "--k", 3, "-o", out, "--drop", "group", "-q", *SMALL)
    assert code == 0
    model = MDEC(3, ensemble_size=20, random_state=0).fit(X)
    assert [int(r["cluster"]) for r in read_labels(out)] == model.labels_.tolist()


def test_formulas_in_names_are_written_as_text(table, tmp_path):
    path, _ = table
    text = path.read_text().replace("s7,", '"=HYPERLINK(""http://x"",""y"")",')
    path.write_text(text)
    out = tmp_path / "out"
    options = ["--k", 3, "--out", out, "--label-column", "group", "-q", *SMALL]
    assert call("fit", path, *options) == 0
    assert read_labels(out)[7]["sample"].startswith("'=HYPERLINK")
    found = read_table(out / "labels.csv", features=["cluster", "confidence"])
    assert found.sample_names[7] == '=HYPERLINK("http://x","y")'


def test_bad_file_writes_nothing(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("a,b\nx,y\n")
    assert call("fit", tmp_path / "a.csv", "--out", tmp_path / "out") == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert sentence.startswith("mdec: 'a.csv': column 'b' holds no numbers")
    assert [each.name for each in tmp_path.iterdir()] == ["a.csv"]


def test_clusters_of_variables_are_not_written_to_observations(tmp_path, capsys):
    path, target = tmp_path / "a.h5ad", tmp_path / "b.h5ad"
    words = ["fit", path, "--transpose", "--write-h5ad", target, "--out", tmp_path]
    assert call(*words) == 2
    # At once: the file is not looked for.
    assert "--transpose clusters the variables" in capsys.readouterr().err


def test_a_file_that_cannot_be_copied_is_refused_before_it_is_clustered(
    tmp_path, capsys
):
    h5py = pytest.importorskip("h5py")
    path, out = tmp_path / "a.h5ad", tmp_path / "out"
    with h5py.File(path, "w") as file:
        file["X"] = np.random.default_rng(0).normal(size=(20, 4))
        file["uns/other"] = h5py.ExternalLink("elsewhere.h5", "/secret")
    words = ["fit", path, "--write-h5ad", tmp_path / "b.h5ad", "--out", out]
    assert call(*words, "--max-gb", 1) == 2
    assert "link" in capsys.readouterr().err
    assert call(*words, "--max-gb", 1e-7) == 2
    assert not out.exists()


def test_version(capsys):
    main(["--version"])
    assert capsys.readouterr().out == f"mdec {__version__}\n"


def test_results_are_as_open_as_other_files(table, tmp_path):
    path, _ = table
    options = ["--k", 3, "--ensemble-size", 5, "--label-column", "group", "-q"]
    assert call("fit", path, "--out", tmp_path / "out", *options) == 0
    (tmp_path / "plain").touch()
    expected = (tmp_path / "plain").stat().st_mode
    modes = {each.stat().st_mode for each in (tmp_path / "out").iterdir()}
    assert modes == {expected}


def test_debug_shows_the_traceback(tmp_path):
    with pytest.raises(ValueError, match="not a file"):
        main(["fit", str(tmp_path / "nothing.csv"), "--debug"])


def test_consensus_of_own_clusterings(tmp_path, capsys):
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(3), 12)
    rows = ["sample," + ",".join(f"run{m}" for m in range(15))]
    for i, k in enumerate(truth):
        noisy = np.where(rng.random(15) < 0.1, (k + 1) % 3, k)
        cells = ["" if rng.random() < 0.1 else "ABC"[label] for label in noisy]
        rows.append(f"p{i}," + ",".join(cells))
    path = tmp_path / "labels.csv"
    path.write_text("\n".join(rows))
    out = tmp_path / "out"
    assert call("consensus", path, "--out", out, "--json") == 0
    assert json.loads(capsys.readouterr().out)["n_clusters"] == 3
    clusters = [int(row["cluster"]) for row in read_labels(out)]
    assert clusters == truth.tolist()
    again = tmp_path / "again"
    assert call("consensus", out / "ensemble.npz", "--k", 3, "--out", again, "-q") == 0
    assert [int(row["cluster"]) for row in read_labels(again)] == clusters


def test_consensus_says_what_it_read(tmp_path, capsys):
    path = tmp_path / "labels.csv"
    path.write_text("".join(f"{'ab'[i // 6]}\n" for i in range(12)))
    out = tmp_path / "out"
    assert call("consensus", path, "--k", 2, "--out", out) == 0
    said = "Read 12 samples ('1', ...) with 1 base clusterings ('clustering 1', ...)"
    assert said in capsys.readouterr().out.replace("\n", " ")
    clusters = [int(row["cluster"]) for row in read_labels(out)]
    assert clusters == [0] * 6 + [1] * 6
    path.write_text("x\na\na\nb\nb\n")
    assert call("consensus", path, "--k", 2, "--out", out) == 2
    assert "--header or --no-header" in capsys.readouterr().err


def test_consensus_of_a_bomb(tmp_path, capsys):
    labels = np.zeros((2000, 5000), dtype=np.int32)
    np.savez_compressed(tmp_path / "bomb.npz", labels=labels, provenance="{}")
    options = ["--max-gb", "0.01", "--out", tmp_path / "out"]
    assert call("consensus", tmp_path / "bomb.npz", *options) == 2
    assert "unpacks to 0.0 GB and the limit" in capsys.readouterr().err


def test_without_pandas_there_is_one_sentence(table):
    path, _ = table
    code = (
        "import sys; sys.modules['pandas'] = None\n"
        f"from mdec.cli import main; main(['fit', {str(path)!r}])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert "pip install 'pandas'" in done.stderr
    assert done.stderr.count("\n") == 1


def start(path, out, *options):
    return subprocess.Popen(
        [
            sys.executable,
            "-c",
            # Shells start background jobs with the interrupt ignored.
            "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "import time, mdec.engines.threads as g; made = g.base_clustering\n"
            "def slow(*a, **k):\n    time.sleep(0.05); return made(*a, **k)\n"
            "g.base_clustering = slow\nfrom mdec.cli import main; main()",
            *("fit", str(path), "--k", "3", "--out", str(out)),
            *("--ensemble-size", "60", "--label-column", "group", *options),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def wait_for_members(out, number):
    for _ in range(12_000):
        if len(list((out / "checkpoint").glob("member-*.npz"))) >= number:
            return
        time.sleep(0.05)
    pytest.fail("no members were kept")


@pytest.mark.slow
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_run_is_resumed(table, tmp_path, sign, capsys):
    path, X = table
    out = tmp_path / "out"
    process = start(path, out)
    wait_for_members(out, 5)
    process.send_signal(sign)
    _, error = process.communicate(timeout=600)
    if sign is signal.SIGINT:
        assert process.returncode == 130, error
        assert "base clusterings are kept" in error
        assert "--resume" in error
        assert "Traceback" not in error
    assert not (out / "labels.csv").exists()
    options = ["--k", 3, "--out", out, "--ensemble-size", 60, "-q"]
    options += ["--label-column", "group"]
    assert call("fit", path, *options) == 2
    assert "--resume" in capsys.readouterr().err
    assert call("fit", path, *options, "--resume", "--seed", 1) == 2
    assert "the seed differ" in capsys.readouterr().err
    assert call("fit", path, *options, "--resume") == 0
    model = MDEC(3, ensemble_size=60, random_state=0).fit(X)
    assert [int(r["cluster"]) for r in read_labels(out)] == model.labels_.tolist()
    assert not (out / "checkpoint").exists()


def test_without_the_extra_there_is_one_sentence():
    code = (
        "import sys; sys.modules['typer'] = None\n"
        "from mdec.cli import main; main(['demo'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert "pip install 'typer'" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_demo_ends_with_the_path_of_the_report(tmp_path, capsys):
    assert call("demo", "--out", tmp_path / "demo", "-q") == 0
    last = capsys.readouterr().out.strip().splitlines()[-1]
    assert last == f"Report: {tmp_path / 'demo' / 'report.html'}"
    assert (tmp_path / "demo" / "report.html").stat().st_size > 50_000


def test_lines_of_progress_every_tenth(capsys, monkeypatch):
    """Off a terminal; each step has its own clock, and may begin again."""
    now = iter(range(1000))
    monkeypatch.setattr("mdec.cli.output.time.monotonic", lambda: next(now))
    lines = ProgressLines()
    members, null = lines.hook("base clusterings"), lines.hook("testing")
    for done in range(1, 41):
        members(done, 40)
    for done in (1, 2, 1, 2):
        null(done, 2)
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 10 + 4
    assert said[0] == "mdec: base clusterings: 4 of 40, about 36 s left"
    assert said[8] == "mdec: base clusterings: 36 of 40, about 4 s left"
    assert said[9] == "mdec: base clusterings: 40 of 40"
    assert said[10:] == 2 * [
        "mdec: testing: 1 of 2, about 1 s left",
        "mdec: testing: 2 of 2",
    ]


def test_columns_to_colour_by_and_both_spellings(table, tmp_path):
    path, _ = table
    out = tmp_path / "out"
    words = ["--annotate", "group", "--transform", "standardize", "-q"]
    assert call("fit", path, "--k", 3, "--out", out, *words, *SMALL) == 0
    summary = json.loads((out / "summary.json").read_text())
    assert summary["parameters"]["transform"] == "standardise"
    assert summary["reading"]["n_features"] == 8
    page = (out / "report.html").read_text()
    assert '"name":"group","kind":"classes"' in page
    assert "drop=[&#39;group&#39;]" in page
