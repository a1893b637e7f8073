"""Records of what was measured, in lines of JSON."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"


def commit_of_source() -> str:
    """Return the commit of the checkout, with a + where source or tests changed."""

    def ask(*words: str) -> str:
        command = ["git", *words]
        return subprocess.check_output(command, cwd=ROOT, text=True).strip()

    changed = ask("status", "--porcelain", "--", "src", "tests")
    return ask("rev-parse", "--short", "HEAD") + ("+" if changed else "")


def append_lines(name: str, lines: list[dict[str, Any]]) -> None:
    """Append lines to a record, which is written once for all of them."""
    with (RESULTS / f"{name}.jsonl").open("a", encoding="utf-8") as file:
        file.write("".join(f"{json.dumps(line)}\n" for line in lines))


def read_lines(name: str) -> list[dict[str, Any]]:
    """Return the lines of a record, the oldest first."""
    path = RESULTS / f"{name}.jsonl"
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
