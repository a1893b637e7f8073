"""Rooms import only from rooms before them, and only what those show."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import mdec

SOURCE = Path(mdec.__file__).parent

# The story from the ground up: each a folder or a file of the package.
ROOMS = [
    *("_support", "numerics", "rows", "preparation", "ensemble", "base"),
    *("engines", "generation", "weights", "coassociation", "confidence", "consensus"),
    *("prediction", "selection", "clustering", "estimator"),
    *("tables", "report", "results", "anndata", "cli", "app", "__main__"),
    *("bench", "baselines", "datasets"),
]

# The one place where PyTorch may be imported.
TENSORS = "mdec.engines.tensors"


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for path in sorted(SOURCE.rglob("*.py"))}


def room(module: str) -> str:
    """Return the room of a module; the package itself has none."""
    return module.split(".")[1] if "." in module else ""


def imported(path: Path) -> set[str]:
    """Return what a file imports of the package, at any depth of it, names included."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} has a relative import"
            assert node.module is not None
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.split(".")[0] == "mdec"}


def module_of(name: str) -> str:
    """Return the module in which an imported name lies."""
    return name if name in FILES else name.rpartition(".")[0]


def test_every_file_is_in_a_room() -> None:
    assert {room(name) for name in FILES if name != "mdec"} == set(ROOMS)


def test_the_root_is_small() -> None:
    entries = [each for each in SOURCE.iterdir() if each.name != "__pycache__"]
    assert len(entries) <= 28


def test_imports_point_downwards() -> None:
    for name in FILES.keys() - {"mdec"}:
        allowed = {"", *ROOMS[: ROOMS.index(room(name)) + 1]}
        for each in imported(FILES[name]):
            assert room(module_of(each)) in allowed, f"{name} imports {each}"


def test_rooms_keep_their_private_names() -> None:
    for name in FILES:
        for each in imported(FILES[name]):
            inside = each.split(".")[2:]
            private = [p for p in inside if p.startswith("_") and p != "__all__"]
            assert not private or room(each) == room(name), f"{name} imports {each}"


def test_no_room_has_a_cycle() -> None:
    for place in ROOMS:
        modules = {name for name in FILES if room(name) == place}
        graph = {
            name: {module_of(each) for each in imported(FILES[name])} & modules
            for name in modules
        }
        TopologicalSorter(graph).prepare()


def test_the_walk_sees_imports() -> None:
    assert "mdec.generation" in imported(FILES["mdec.estimator"])
    assert "mdec.numerics.loops.kmeans" in imported(FILES["mdec.numerics.kmeans"])


def test_pytorch_is_imported_in_one_place_only() -> None:
    for name, path in FILES.items():
        if not name.startswith(TENSORS):
            tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            for node in tree:
                if isinstance(node, ast.Import):
                    assert all(alias.name != "torch" for alias in node.names), name
                elif isinstance(node, ast.ImportFrom):
                    assert node.module != "torch", name
