"""The pages: links lead somewhere, code runs, names and figures are all there."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import runpy
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
GALLERY = ROOT / "examples" / "gallery"
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "benchmarks" / "notes").glob("*.md"),
        *(p for p in DOCS.rglob("*.md") if "_build" not in p.parts),
    ]
)
MADE = (
    "gallery/",
    "tutorials/",
    "api/index",
)  # by `make docs`, which follows these links itself

# Pages whose code runs as it stands, a later block with the names of earlier ones.
COMPLETE = [
    "howto/missing-values.md",
    "howto/own-distances.md",
    "howto/own-parts.md",
    "howto/scale-features.md",
    "howto/several-tables.md",
    "howto/sparse.md",
    pytest.param("start.md", marks=pytest.mark.slow),
]
TUTORIALS = sorted((ROOT / "examples" / "tutorials").glob("plot_*.py"))
# Pages that speak of some X of the reader's.
ABOUT_X = ["choosing-k.md", "confidence.md", "quality.md", "baselines.md"]

# Whose names the API reference lists: modules with `__all__`, and what of it rooms show
# each other only.
PUBLIC = {
    "mdec": {"__version__"},
    "mdec.consensus": {"CONSENSUS", "find_consensus"},
    "mdec.base": set(),
    "mdec.selection": set(),
    "mdec.preparation": {
        *("DRAWN", "KINDS", "RECIPES", "Preparation", "Recipe", "prepare"),
    },
    "mdec.baselines": {"BASELINES", "GENERATION"},
    "mdec.datasets": {"BASE_URL"},
    "mdec.tables": set(),
    "mdec.rows": {"Rows", "as_rows"},
    "mdec.report.plots": set(),
    "mdec.report": set(),
}


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def without_code(text: str) -> str:
    """Leave out code, in blocks and in lines."""
    return re.sub(
        r"^(`{3,}|:{3,}).*?$|`[^`\n]+`",
        "",
        re.sub(r"^```(?!\{).*?^```", "", text, flags=re.M | re.S),
        flags=re.M,
    )


def anchors(path: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and MyST form them."""
    text = re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.M | re.S)
    found = set()
    for heading in re.findall(r"^#{1,6} (.+)$", text, re.M):
        plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        found.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return found


def links(path: Path) -> list[str]:
    """Return what the links and pictures of a page lead to."""
    text = without_code(path.read_text("utf-8"))
    return re.findall(r"\]\(([^()\s]+)\)", text)


@pytest.mark.parametrize("path", PAGES, ids=named)
def test_links_lead_somewhere(path: Path) -> None:
    for link in links(path):
        if re.match(r"[a-z]+:", link):
            continue
        place, _, anchor = unquote(link).partition("#")
        target = (path.parent / place).resolve() if place else path
        from_docs = (
            target.relative_to(DOCS).as_posix() if DOCS in target.parents else ""
        )
        if from_docs.startswith(MADE):
            name = Path(from_docs).name
            folder = GALLERY.parent / from_docs.split("/")[0]
            assert name == "index" or (folder / f"{name}.py").is_file(), link
            continue
        assert target.exists(), f"{named(path)} leads to {link}"
        if anchor:
            assert anchor in anchors(target), f"{named(path)} leads to {link}"


def test_the_walk_sees_links_and_anchors() -> None:
    assert "docs/choosing-k.md" in links(ROOT / "README.md")
    assert "the-printed-kernel" in anchors(DOCS / "results" / "README.md")


def test_the_readme_is_a_front_page() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 120


def run_blocks(page: str, names: dict[str, object]) -> None:
    text = (DOCS / page).read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    assert blocks
    for number, block in enumerate(blocks):
        exec(compile(block, f"{page} block {number}", "exec"), names)


@pytest.mark.parametrize("page", COMPLETE)
def test_the_code_of_complete_pages_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    run_blocks(page, names)
    if page in CHECKED:
        CHECKED[page](names)


def check_parts(names: dict[str, Any]) -> None:
    for model in ("mixed", "drawn", "baseline"):
        assert adjusted_rand_score(names["y"], names[model].labels_) > 0.8
    assert (names["drawn"].ensemble_.labels < 0).mean() == pytest.approx(0.2)


def check_distances(names: dict[str, Any]) -> None:
    assert adjusted_rand_score(names["y"], names["model"].labels_) > 0.8


def check_scaling(names: dict[str, Any]) -> None:
    assert adjusted_rand_score(names["y"], names["labels"]) > 0.8


def check_tables(names: dict[str, Any]) -> None:
    assert adjusted_rand_score(names["y"], names["model"].labels_) > 0.9


def check_sparse(names: dict[str, Any]) -> None:
    assert adjusted_rand_score(names["topic"], names["by_topic"].labels_) > 0.9


# That the code of a page means what the page says.
CHECKED = {
    "howto/own-parts.md": check_parts,
    "howto/own-distances.md": check_distances,
    "howto/scale-features.md": check_scaling,
    "howto/several-tables.md": check_tables,
    "howto/sparse.md": check_sparse,
}


def by_hand(frame: pd.DataFrame) -> np.ndarray:
    """Return Gower's distances, column by column."""
    total = np.zeros((len(frame), len(frame)))
    for name in frame:
        column = frame[name].to_numpy()
        if column.dtype.kind == "f":
            total += np.abs(np.subtract.outer(column, column)) / np.ptp(column)
        else:
            total += column[:, None] != column[None, :]
    return total / frame.shape[1]


def run_example(path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.setattr(pyplot, "show", lambda: pyplot.close("all"))
    return runpy.run_path(str(path))


def test_gowers_distance_is_the_mean_over_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = run_example(GALLERY / "plot_gower.py", monkeypatch)
    for model in ("by_pairs", "by_columns"):
        assert adjusted_rand_score(names["y"], names[model].labels_) > 0.8
    np.testing.assert_allclose(names["gower"], by_hand(names["frame"]), atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_tutorials_run(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_example(path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("page", ABOUT_X)
def test_the_code_about_some_x_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(3, 12)), 40, axis=0) + rng.normal(size=(120, 12))
    run_blocks(page, {"__name__": "page", "X": X, "X_new": X[:4] + 0.1})


def listed() -> set[str]:
    """Return the names that the API reference lists."""
    found, module = set(), ""
    for line in (DOCS / "api" / "index.rst").read_text("utf-8").splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.removeprefix(".. currentmodule:: ")
        elif re.fullmatch(r"   \w+", line):
            found.add(f"{module}.{line.strip()}")
    return found


@pytest.mark.parametrize("module", PUBLIC)
def test_the_reference_lists_every_public_name(module: str) -> None:
    names = importlib.import_module(module).__all__
    public = {f"{module}.{name}" for name in names if name not in PUBLIC[module]}
    assert public <= listed()


def test_the_reference_lists_what_there_is() -> None:
    for name in listed():
        module, _, attribute = name.rpartition(".")
        found = getattr(importlib.import_module(module), attribute)
        assert inspect.getdoc(found)


def test_equations_lead_to_listed_functions() -> None:
    text = (DOCS / "how-it-works.md").read_text("utf-8")
    named = set(re.findall(r"\{py:(?:func|class)\}`~?([\w.]+)`", text))
    assert len(named) >= 20
    assert named <= listed()


def test_the_gallery_has_captions() -> None:
    """The build runs the examples; here each is read: a title, and named figures."""
    examples = sorted(GALLERY.glob("plot_*.py"))
    assert len(examples) >= 8
    for path in examples:
        tree = ast.parse(path.read_text("utf-8"))
        assert re.match(r"\n.+\n=+\n", ast.get_docstring(tree, clean=False)), path.name
        made = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            and ast.unparse(node.func) in ("plt.subplots", "plt.figure")
        ]
        assert made, path.name
        for call in made:
            assert "num" in {each.arg for each in call.keywords}, path.name


def test_pictures_are_described() -> None:
    for path in PAGES:
        text = path.read_text("utf-8")
        for alt in re.findall(r"!\[([^\]]*)\]\(", without_code(text)):
            assert alt.strip(), named(path)
        for block in re.findall(r"^:::\{figure\}.*?^:::", text, re.M | re.S):
            assert re.search(r"^:alt: .{20,}", block, re.M), named(path)


def test_actions_are_pinned_and_rights_are_given_one_by_one() -> None:
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    if not workflows:
        pytest.skip("workflows are not part of an sdist")
    for path in workflows:
        text = path.read_text("utf-8")
        assert re.search(r"^permissions: \{\}$", text, re.M), path.name
        for action in re.findall(r"uses: (.+)", text):
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[\d.]+", action), action


def test_the_changelog_keeps_its_form() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    heads = re.findall(r"^## (.+)$", text, re.M)
    assert heads[0] == "[Unreleased]"
    for head in heads[1:]:
        assert re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", head), head
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.+)$", text, re.M)) <= kinds


def test_the_lowest_versions_are_those_of_the_package() -> None:
    """Every bound of what the tests need is tested: the constraints name it."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = ("cli", "report", "data", "metis", "hypergraph", "distributed", "test")
    wanted = list(project["dependencies"])
    for extra in extras:
        wanted += project["optional-dependencies"][extra]
    bounds = {
        re.match(r"[\w-]+", each)[0]: each.partition(">=")[2]
        for each in wanted
        if ">=" in each
    }
    lines = (ROOT / "tests" / "lowest.txt").read_text("utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if "==" in line)
    for name, bound in bounds.items():
        assert re.sub(r"(\.0)+$", "", pins[name]) == re.sub(r"(\.0)+$", "", bound), name


def test_the_walk_from_a_table_to_its_report_is_the_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The architecture names at most ten functions, which run in its order."""
    pytest.importorskip("typer")
    from mdec.cli import main

    text = (DOCS / "architecture.md").read_text("utf-8")
    steps = re.findall(r"^\| \d+ \| `([\w.]+)` \| `([\w/]+\.py)` \|", text, re.M)
    assert 5 <= len(steps) <= 10
    source = Path(inspect.getfile(importlib.import_module("mdec"))).parent
    places = {(name, str(source / file)): name for name, file in steps}
    called: list[str] = []

    def note(frame: Any, event: str, _: object) -> None:
        name = places.get((frame.f_code.co_qualname, frame.f_code.co_filename))
        if event == "call" and name and name not in called:
            called.append(name)

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(3, 12)), 20, axis=0) + rng.normal(size=(60, 12))
    pd.DataFrame(X).add_prefix("gene").to_csv("table.csv", index=False)
    sys.setprofile(note)
    try:
        with pytest.raises(SystemExit) as ended:
            main(["fit", "table.csv", "--ensemble-size", "10", "--quiet"])
    finally:
        sys.setprofile(None)
    assert ended.value.code == 0
    assert called == [name for name, _ in steps]
    assert (tmp_path / "mdec-result" / "report.html").is_file()


def test_the_example_of_a_study_can_be_read() -> None:
    from mdec.bench.study import read_study

    study = read_study(ROOT / "examples" / "study.toml")
    assert list(study.methods) == ["MDEC-HC", "KCC", "k-means"]
