"""Every public name is documented, and every equation's function says which."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

import mdec

SOURCE = Path(mdec.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))

# Functions that are an equation of the paper, and one of its numbers.
EQUATIONS = {
    "ensemble.draws.draw_kernel_params": (4, 5),
    "base.kernels.mean_neighbor_distance": (2,),
    "base.kernels.scaling_term": (3,),
    "base.kernels.scaled_exponential_similarity": (1,),
    "ensemble.plan.Plan.member": (4, 7),
    "base.members.member_similarity": (),
    "base.members.base_clustering": (11, 13),
    "generation.generate_ensemble": (14,),
    "numerics.affinity.normalized_affinity": (12,),
    "weights.cluster_entropy": (16, 17),
    "weights.ensemble_entropy": (18,),
    "weights.ensemble_driven_cluster_index": (19,),
    "coassociation.locally_weighted_coassociation": (20, 23),
    "consensus.dendrogram.merges": (24, 26),
    "consensus.graph_cuts.bipartite_graph": (29, 30),
}


def documented(path: Path) -> dict[str, ast.AST]:
    """Return the public functions, classes and methods of a file."""
    found: dict[str, ast.AST] = {}

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                if node.name.startswith("_"):
                    continue
                found[prefix + node.name] = node
                if isinstance(node, ast.ClassDef):
                    visit(node.body, f"{prefix}{node.name}.")

    visit(ast.parse(path.read_text(encoding="utf-8")).body, "")
    return found


def relative(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


def test_public_names_are_documented() -> None:
    for path in FILES:
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path
        for name, node in documented(path).items():
            assert ast.get_docstring(node), f"{relative(path)}: {name}"


def test_summaries_are_sentences() -> None:
    for path in FILES:
        for name, node in documented(path).items():
            summary = ast.get_docstring(node).split("\n\n")[0]
            assert summary.endswith("."), f"the summary of {name} is no sentence"
            assert "\n" not in summary, f"the summary of {name} is longer than a line"


@pytest.mark.parametrize("name", EQUATIONS)
def test_equations_are_named(name: str) -> None:
    module, function = re.fullmatch(r"([a-z_.]+)\.([A-Z]\w+\.\w+|\w+)", name).groups()
    path = SOURCE.joinpath(*module.split(".")).with_suffix(".py")
    docstring = ast.get_docstring(documented(path)[function]) or ""
    mentions = re.findall(r"Eqs?\. (\d+)(?:(?:,| and| to) (\d+))?", docstring)
    assert mentions, f"{name} does not say which equation it is"
    numbers = {int(number) for pair in mentions for number in pair if number}
    assert set(EQUATIONS[name]) <= numbers


def test_parameters_of_public_functions_are_described() -> None:
    """The names that users call describe each of their parameters."""
    for name in (
        "generation.generate_ensemble",
        "consensus.dendrogram.hierarchical",
        "consensus.graph_cuts.spectral",
        "consensus.graph_cuts.bipartite",
        "coassociation.locally_weighted_coassociation",
        "weights.ensemble_driven_cluster_index",
    ):
        module, function = name.rsplit(".", 1)
        path = SOURCE.joinpath(*module.split(".")).with_suffix(".py")
        node = documented(path)[function]
        assert isinstance(node, ast.FunctionDef)
        docstring = ast.get_docstring(node) or ""
        for argument in [*node.args.args, *node.args.kwonlyargs]:
            assert f"\n{argument.arg} : " in docstring, f"{name}: {argument.arg}"


def test_functions_of_the_paper_are_there() -> None:
    """The table that leads from equations to code names what exists."""
    page = SOURCE.parents[1] / "docs" / "paper-to-code.md"
    if not page.exists():
        pytest.skip("the page is not beside an installed package")
    rows = re.findall(r"^\|(.*)\|$", page.read_text(encoding="utf-8"), re.MULTILINE)
    cells = [row.split("|")[2] for row in rows]
    names = [n for cell in cells for n in re.findall(r"`(\w+\.[\w.]+)`", cell)]
    assert len(names) > 20
    for name in names:
        parts = name.split(".")
        if parts[0] == "Ensemble":
            parts = ["ensemble", *parts]
        for length in range(len(parts), 0, -1):
            path = SOURCE.joinpath(*parts[:length])
            if path.is_dir() or path.with_suffix(".py").exists():
                break
        found = importlib.import_module(".".join(["mdec", *parts[:length]]))
        for part in parts[length:]:
            found = getattr(found, part, None)
        assert found is not None, f"docs/paper-to-code.md names {name}"
