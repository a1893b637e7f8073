"""The settings of other machines: what cannot be made is named, what ran is counted."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "machines.py"
if not SCRIPT.exists():
    pytest.skip("needs benchmarks/machines.py", allow_module_level=True)


@pytest.fixture(scope="module")
def machines():
    return runpy.run_path(str(SCRIPT))


def test_a_setting_that_cannot_be_made_is_skipped_with_its_reason(machines, tmp_path):
    Setting, run_setting = machines["Setting"], machines["run_setting"]
    reasons = {
        "no such interpreter": Setting("absent", (), python=""),
        "no-such-program is not installed": Setting(
            "program", (), prefix=("no-such-program",)
        ),
        "ended with 1": Setting("refused", (), prefix=("false",)),
    }
    for reason, setting in reasons.items():
        found = run_setting(setting, tmp_path / setting.name, 1, False)
        assert found.text == f"skipped: {reason}"
        table = machines["format_table"]({setting.name: found})
        assert f"| {setting.name} | skipped: {reason} |" in table


def test_every_setting_names_tests_that_exist(machines):
    settings = machines["list_settings"]()
    assert len({each.name for each in settings}) == len(settings) >= 12
    for setting in settings:
        assert all((machines["ROOT"] / test).exists() for test in setting.tests)


TESTS = """
import os, pytest
def test_kept(): assert os.environ["OPENBLAS_CORETYPE"] == "Haswell"
def test_lost(): assert "ü" not in os.getcwd()
def test_left(): pytest.skip("left out")
def test_home_cannot_be_written():
    assert not os.access(os.environ["HOME"], os.W_OK) or os.geteuid() == 0
"""


def test_outcomes_are_counted_in_a_copy_that_stays_removable(
    machines, tmp_path, monkeypatch
):
    checkout = tmp_path / "checkout"
    (checkout / "tests").mkdir(parents=True)
    (checkout / "tests" / "test_it.py").write_text(TESTS)
    (checkout / ".venv").mkdir()
    monkeypatch.setitem(machines["run_setting"].__globals__, "ROOT", checkout)
    setting = machines["Setting"](
        "all at once",
        ("tests/test_it.py",),
        {"OPENBLAS_CORETYPE": "Haswell"},
        sys.executable,
        folder="für alle",
        read_only=True,
    )
    found = machines["run_setting"](setting, tmp_path / "place", 1, False)
    assert (found.passed, found.failed, found.skipped) == (2, 1, 1), found.text
    assert found.text.startswith("FAILED tests/test_it.py::test_lost")
    copy = tmp_path / "place" / "für alle" / "mdec"
    assert [each.name for each in copy.iterdir()] == ["tests"]
    assert os.access(copy, os.W_OK)


def test_a_line_of_the_record_says_why_but_not_what_failed(machines, monkeypatch):
    Outcome, line_of = machines["Outcome"], machines["line_of"]
    monkeypatch.setitem(line_of.__globals__, "commit_of_source", lambda: "abc1234")
    skipped = line_of("a", Outcome(text="skipped: no such interpreter"), False)
    assert skipped["text"] == "skipped: no such interpreter"
    ran = line_of("b", Outcome(3, 1, 2, 4.5678, "FAILED tests/x.py"), True)
    assert ran["text"] == ""
    assert (ran["what"], ran["setting"], ran["commit"]) == ("tests", "b", "abc1234")
    assert (ran["passed"], ran["failed"], ran["skipped"]) == (3, 1, 2)
    assert (ran["seconds"], ran["whole"]) == (4.6, True)
