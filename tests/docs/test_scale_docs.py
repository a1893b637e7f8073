"""The code about many rows is code, and names what there is."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"


def blocks(page: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text("utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)


def test_python_blocks_parse_and_import_what_exists() -> None:
    for page in ("scale.md", "howto/dask.md"):
        assert len(blocks(page)) >= 2
    scripts = [*blocks("scale.md"), *blocks("howto/dask.md")]
    for block in [*scripts, (EXAMPLES / "slurm.py").read_text("utf-8")]:
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("mdec"):
                module = importlib.import_module(node.module)
                assert all(hasattr(module, alias.name) for alias in node.names)


def test_the_cluster_files_parse() -> None:
    yaml = pytest.importorskip("yaml")
    spec = yaml.safe_load((EXAMPLES / "kubernetes.yaml").read_text("utf-8"))
    assert spec["kind"] == "DaskCluster"
    for part in ("scheduler", "worker"):
        assert spec["spec"][part]["spec"]["containers"][0]["args"]


def test_the_stated_rules_are_the_code() -> None:
    from mdec import generation
    from mdec.base import landmarks
    from mdec.consensus import dendrogram, graph_cuts
    from mdec.ensemble import draws
    from mdec.numerics import landmark_search
    from mdec.rows import blocks

    assert generation.AUTO_SAMPLES == 20_000
    assert landmarks.POOL_ROWS == graph_cuts.CENTER_ROWS == 50_000
    assert draws.MAX_LANDMARKS == 10_000
    assert draws.MAX_LANDMARK_CLUSTERS == 100
    assert landmarks.CANDIDATES == 2
    assert landmark_search.REFINEMENTS == 2
    assert landmark_search.SEARCHED_WHOLE == 2000
    assert landmark_search.N_CELLS == 200
    assert landmark_search.AROUND_CELL == 1000
    assert blocks.BLOCK_ROWS == 65_536
    assert graph_cuts.BLOCKED_SAMPLES == 100_000
    assert graph_cuts.BLOCKED_CLUSTERS == 10_000
    assert dendrogram.LINKED_SAMPLES == 60_000
    assert graph_cuts.REGIONS == 4000
