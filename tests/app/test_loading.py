"""Whoever does not open the page loads none of it."""

from __future__ import annotations

import subprocess
import sys

RUN = """
import sys
import mdec
if sys.argv[1:]:
    from mdec.cli import main
    try:
        main(sys.argv[1:])
    except SystemExit as ended:
        assert not ended.code, ended.code
page = ("mdec.app", "starlette", "uvicorn")
found = [name for name in sys.modules if name.startswith(page)]
assert not found, found
"""


def test_neither_the_package_nor_a_fit_loads_the_page(root) -> None:
    fit = ["fit", str(root / "people.csv"), "--label-column", "kind", "--k", "3"]
    fit += ["--ensemble-size", "4", "--out", str(root / "new"), "--quiet"]
    for words in ([], fit):
        subprocess.run([sys.executable, "-c", RUN, *words], check=True, timeout=300)
    assert (root / "new" / "report.html").is_file()
