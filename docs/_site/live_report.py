"""Put the report of ``mdec demo`` into the site, where docs/report.md frames it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any


def make_report(app: Any, error: Exception | None) -> None:
    """Run the demo as a user would, and copy its report beside the pages."""
    if error is not None or app.builder.format != "html":
        return
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "mdec", "demo", "--out", folder, "--quiet"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        target = Path(app.outdir) / "demo" / "report.html"
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(Path(folder) / "report.html", target)


def setup(app: Any) -> dict[str, bool]:
    """Make the report once the pages are written."""
    app.connect("build-finished", make_report)
    return {"parallel_read_safe": True}
