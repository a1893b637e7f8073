"""Lines of a record come back, and name the commit of what they were made from."""

from __future__ import annotations

import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "records.py"
if not SCRIPT.exists():
    pytest.skip("needs benchmarks/records.py", allow_module_level=True)


@pytest.fixture
def records(tmp_path, monkeypatch):
    made = runpy.run_path(str(SCRIPT))
    for name, value in {"ROOT": tmp_path, "RESULTS": tmp_path}.items():
        monkeypatch.setitem(made["append_lines"].__globals__, name, value)
    return made


def test_lines_are_appended(records, tmp_path):
    assert records["read_lines"]("made-up") == []
    records["append_lines"]("made-up", [{"a": 1}, {"b": "ü"}])
    records["append_lines"]("made-up", [{"c": [2.5]}])
    assert records["read_lines"]("made-up") == [{"a": 1}, {"b": "ü"}, {"c": [2.5]}]
    assert len((tmp_path / "made-up.jsonl").read_text().splitlines()) == 3


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_changed_source_is_marked(records, tmp_path):
    def git(*words):
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True)

    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("a = 1\n")
    (tmp_path / "notes.md").write_text("")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "Begin")
    clean = records["commit_of_source"]()
    assert len(clean) >= 7
    (tmp_path / "notes.md").write_text("more")
    assert records["commit_of_source"]() == clean
    (tmp_path / "src" / "b.py").write_text("b = 1\n")
    assert records["commit_of_source"]() == f"{clean}+"
