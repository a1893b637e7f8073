"""The command line of datasets and studies, and the figures of reports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mdec.bench.summary import published_table, rank_test

pytest.importorskip("typer")
pytest.importorskip("rich")

from mdec.bench import commands
from mdec.cli import main


def _run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    code = end.value.code
    return code if isinstance(code, int) else 0


def test_datasets_commands(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MDEC_DATA", str(tmp_path))
    assert _run("datasets", "list") == 0
    listed = capsys.readouterr().out
    assert all(f"DS-{i} " in listed for i in range(1, 31))
    assert _run("datasets", "info", "ds11") == 0
    assert "248 samples, 2526 features, 2 classes" in capsys.readouterr().out
    assert _run("datasets", "path") == 0
    assert capsys.readouterr().out.strip() == str(tmp_path)


def test_path_prints_the_files(
    capsys: pytest.CaptureFixture[str], shared: Path
) -> None:
    raw = shared / "datasets" / "raw"
    assert _run("datasets", "path", "DS-26", "--folder", str(raw)) == 0
    assert Path(capsys.readouterr().out.strip()).name == "data_MF.mat"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["datasets", "info", "DS-31"], "there is no dataset 'DS-31'"),
        (["datasets", "path", "DS-29"], "put gisette_train.data"),
        (["bench", "run", "no-such-study"], "there is no study 'no-such-study'"),
        (["bench", "report", "absent.jsonl"], "there is no file absent.jsonl"),
    ],
)
def test_errors_are_one_sentence(
    capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    assert _run(*arguments) == 2
    text = capsys.readouterr().err
    assert text.startswith("mdec: ")
    assert sentence in text
    assert text.count("\n") == 1


def test_debug_shows_where_an_error_arises() -> None:
    with pytest.raises(ValueError, match="DS-31"):
        main(["datasets", "info", "DS-31", "--debug"])


def test_a_missing_extra_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text(
        "raise ModuleNotFoundError('No module named typer', name='typer')\n"
    )
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); "
    program += "from mdec.cli import main; main(['datasets', 'list'])"
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert ended.stderr == (
        "mdec: the command line needs the package 'typer'; install it with pip "
        "install 'typer'.\n"
    )


def test_a_study_from_command_to_report(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    study = tmp_path / "sweep.toml"
    study.write_text(
        'name = "sweep"\ndatasets = ["wine", "gaussians"]\n'
        'methods = ["k-means", "Ward", "HDBSCAN"]\n'
        '[report]\nmetrics = ["nmi_max"]\ncritical_difference = true\ntimes = true\n'
    )
    records, folder = tmp_path / "r.jsonl", tmp_path / "report"
    assert _run("bench", "run", str(study), "--records", str(records)) == 0
    assert "6 of 6 runs" in capsys.readouterr().out.replace("\n", " ")
    assert _run("bench", "report", str(records), "--output", str(folder)) == 0
    assert {p.name for p in (folder / "tables").iterdir()} == {
        f"{name}.{kind}"
        for name in ("nmi_max", "cpu_seconds", "seconds")
        for kind in ("md", "html", "tex")
    }
    assert (folder / "figures" / "nmi_max_ranks.svg").read_text().startswith("<?xml")
    assert (folder / "figures" / "nmi_max_ranks.png").read_bytes()[1:4] == b"PNG"
    page = (folder / "report.md").read_text()
    assert "NMI (mutual information over the larger entropy)" in page
    assert "figures/nmi_max_ranks.svg" in page


def test_a_study_says_how_far_it_is(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    study = tmp_path / "three.toml"
    study.write_text(
        'name = "three"\ndatasets = ["wine"]\nmethods = ["Ward"]\nrepetitions = 3\n'
    )
    monkeypatch.setattr(commands, "SECONDS_BETWEEN_LINES", 0.0)

    def told(name: str, *options: str) -> pytest.CaptureResult[str]:
        records = str(tmp_path / f"{name}.jsonl")
        assert _run("bench", "run", str(study), "--records", records, *options) == 0
        return capsys.readouterr()

    lines = told("plain").err.splitlines()
    assert [line[:18] for line in lines] == [f"mdec: {i} of 3 runs," for i in (1, 2, 3)]
    assert "left, wine Ward #2: ok" in lines[1]
    assert lines[2].endswith("runs, wine Ward #3: ok")
    assert told("plain", "--quiet") == ("", "")
    monkeypatch.setenv("FORCE_COLOR", "1")
    shown = told("terminal").err
    assert "3/3" in shown
    assert shown.count("\n") == 1


def test_critical_difference_groups_hold_what_is_indistinguishable() -> None:
    pytest.importorskip("matplotlib")
    from mdec.bench.figures import rank_figure

    table = published_table("nmi_max")
    test = rank_test(table)
    order, ranks = test.order(), np.sort(test.mean_ranks)
    assert [table.methods[j] for j in order[:3]] == ["MDEC-HC", "MDEC-BG", "MDEC-SC"]
    together = {
        (i, j)
        for first, last in test.groups()
        for i in range(first, last + 1)
        for j in range(first, last + 1)
    }
    apart = np.abs(ranks[:, None] - ranks)
    for i, j in np.ndindex(apart.shape):
        if i != j:
            alike = apart[i, j] <= test.critical_difference
            assert alike == ((i, j) in together)
    (ax,) = rank_figure(table).axes
    assert any("MDEC-HC  2.03" in text.get_text() for text in ax.texts)
