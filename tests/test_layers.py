"""Files import only from files before them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import mdec

SOURCE = Path(mdec.__file__).parent

# From the ground up; names of one line do not know each other unless in this order.
LAYERS = [
    "mdec._arrays",
    "mdec._files",
    "mdec._optional",
    "mdec._progress",
    "mdec._random",
    "mdec._parallel",
    "mdec._memory",
    "mdec._compiled._jit",
    "mdec._compiled._selection",
    "mdec._compiled._sparse",
    "mdec._compiled._dense",
    "mdec._compiled._kmeans",
    "mdec._compiled._landmarks",
    "mdec._compiled._elkan",
    "mdec._compiled._triangle",
    "mdec._compiled._linkage",
    "mdec._compiled",
    "mdec.neighbors",
    "mdec.kernels",
    "mdec.graphs",
    "mdec.eigen",
    "mdec.kmeans",
    "mdec.spectral",
    "mdec._torch._device",
    "mdec._torch._neighbors",
    "mdec._torch._graphs",
    "mdec._torch._eigen",
    "mdec._torch._kmeans",
    "mdec._torch._linkage",
    "mdec._torch._members",
    "mdec._torch",
    "mdec.transfer",
    "mdec.row_blocks",
    "mdec.ensemble",
    "mdec.checkpoint",
    "mdec.devices",
    "mdec.landmark_search",
    "mdec.landmarks",
    "mdec.distributed",
    "mdec.draws",
    "mdec.generation",
    "mdec.weights",
    "mdec.coassociation",
    "mdec.confidence",
    "mdec.consensus._shared",
    "mdec.consensus._blocks",
    "mdec.consensus._regions",
    "mdec.consensus._hierarchical",
    "mdec.consensus._spectral",
    "mdec.consensus._bipartite",
    "mdec.consensus",
    "mdec.cluster",
    "mdec.prediction",
    "mdec.criteria",
    "mdec.null",
    "mdec.selection",
    "mdec._callbacks",
    "mdec.estimator",
    "mdec",
    "mdec.baselines._compiled",
    "mdec.baselines._starts",
    "mdec.baselines._generation",
    "mdec.baselines._estimator",
    "mdec.baselines._kcc",
    "mdec.baselines._sec",
    "mdec.baselines._local_weights",
    "mdec.baselines._trajectories",
    "mdec.baselines._ptgp",
    "mdec.baselines._spce",
    "mdec.baselines._partitioning",
    "mdec.baselines._partitioning_estimators",
    "mdec.baselines",
    "mdec.evaluation",
    "mdec._table_files",
    "mdec._table_text",
    "mdec.tables",
    "mdec.containers",
    "mdec.datasets._registry",
    "mdec.datasets._formats",
    "mdec.datasets._fetch",
    "mdec.datasets._load",
    "mdec.datasets",
    "mdec.experiments.methods",
    "mdec.experiments.study",
    "mdec.experiments.plan",
    "mdec.experiments.records",
    "mdec.experiments.process",
    "mdec.experiments.worker",
    "mdec.experiments.run",
    "mdec.experiments.summary",
    "mdec.experiments.published",
    "mdec.experiments.ranking",
    "mdec.experiments.sweep",
    "mdec.experiments",
    "mdec.studies",
    "mdec.report",
    "mdec.report.tables",
    "mdec.report.figures",
    "mdec.report.rank_diagram",
    "mdec.report.document",
    "mdec.report.clustering.svg",
    "mdec.report.clustering.compute",
    "mdec.report.clustering.figures",
    "mdec.report.clustering.render",
    "mdec.report.clustering",
    "mdec.plots",
    "mdec.cli._output",
    "mdec.cli._work",
    "mdec.cli.fit",
    "mdec.cli.consensus",
    "mdec.cli.demo",
    "mdec.cli.datasets",
    "mdec.cli.bench",
    "mdec.cli",
]


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for path in sorted(SOURCE.rglob("*.py"))}


def imported(path: Path) -> set[str]:
    """Return every module of the package that a file imports, at any depth of it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} has a relative import"
            assert node.module is not None
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in FILES else node.module)
    return {name for name in found if name.split(".")[0] == "mdec"}


def test_every_file_has_its_place() -> None:
    assert sorted(FILES) == sorted(LAYERS)


@pytest.mark.parametrize("name", LAYERS)
def test_imports_point_downwards(name: str) -> None:
    below = set(LAYERS[: LAYERS.index(name)])
    assert imported(FILES[name]) <= below


def test_the_walk_sees_imports() -> None:
    assert "mdec.generation" in imported(FILES["mdec.estimator"])
    assert "mdec._compiled" in imported(FILES["mdec.kmeans"])


def test_pytorch_is_imported_in_one_place_only() -> None:
    for name, path in FILES.items():
        if not name.startswith("mdec._torch"):
            tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            for node in tree:
                if isinstance(node, ast.Import):
                    assert all(alias.name != "torch" for alias in node.names), name
                elif isinstance(node, ast.ImportFrom):
                    assert node.module != "torch", name
