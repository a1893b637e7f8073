"""The prose of the pages: short, in plain words, its numbers those of the records."""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
# Made by Sphinx, or results, which have tables for every dataset.
APART = {"_build", "_templates", "gallery", "tutorials", "generated", "results"}
GUIDE = sorted(
    path for path in DOCS.rglob("*.md") if not APART & set(path.relative_to(DOCS).parts)
)
PROSE = [
    *GUIDE,
    DOCS / "api" / "index.rst",
    DOCS / "results" / "README.md",
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "examples").rglob("*.py")),
    *sorted((ROOT / "examples").rglob("*.rst")),
]

MOST_WORDS_OF = {"deviations.md": 1200, "paper-to-code.md": 1200, "baselines.md": 1200}

SOURCE = [
    path
    for ending in ("*.py", "*.html")
    for path in sorted((ROOT / "src").rglob(ending))
]

ROOMS = r"(house|rooms?)"
# Words that readers stumbled over, and what to write instead.
PLAIN = {
    r"rivals?": "baseline, other cluster",
    r"(on|with|without) (a|the) card|nvidia card": "GPU",
    r"mend(s|ed|ing)?": "fix",
    r"can(not)? be had": "is available, on disk",
    r"(is|are) worth": "gains, changes",
    r"told": "given, said, recognised",
    r"held": "kept, put",
    r"tells? samples": "marks samples",
    r"half of the time are": "take half of the time",
    r"(is|are) no features?": "is not a feature",
    r"(data|values|samples|tables|rows) (that )?want": "need",
    r"how sure": "how certain, confidence",
    r"worth a look": "to consider",
    r"(?<!there )is no (file|folder|link|number|picture|table)": "is not a",
    r"goes on from": "continues",
    ROOMS: "package, sub-package",
}
# Reports of how something came to be belong to benchmarks/notes.
NOTEBOOK = [
    "has grown stronger",
    "were the goals",
    "next idea",
    "no command in this repository",
    "it is gone",
    "is gone.",
]


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def prose(path: Path) -> str:
    """Return a page on one line, without code and the words of directives."""
    text = path.read_text("utf-8")
    text = re.sub(r"^```.*?^```|^:::+.*?$|`[^`\n]+`", "", text, flags=re.M | re.S)
    return re.sub(r"\s+", " ", text)


def test_the_pages_can_be_finished() -> None:
    counted = runpy.run_path(str(DOCS / "_site" / "words.py"))
    words = counted["words_now"]()
    assert set(words) == {*map(named, GUIDE), "README.md"}
    assert len(GUIDE) > 20
    longest = sorted(words.items(), key=lambda page: -page[1])
    assert counted["total"](words) <= counted["MOST"], longest
    for name, most in MOST_WORDS_OF.items():
        assert words[f"docs/{name}"] <= most


@pytest.mark.parametrize("path", PROSE, ids=named)
def test_pages_are_in_plain_words(path: Path) -> None:
    text = prose(path)
    for pattern, instead in PLAIN.items():
        found = re.search(rf"\b({pattern})\b", text, re.I)
        around = found and text[max(found.start() - 40, 0) : found.end() + 20]
        assert found is None, f"{around!r}: write {instead}"
    for words in NOTEBOOK:
        assert words not in text


@pytest.mark.parametrize("path", SOURCE, ids=named)
def test_messages_and_docstrings_are_in_plain_words(path: Path) -> None:
    if path.suffix == ".html":
        texts = [re.sub(r"(?s)\{[{%].*?[}%]\}|<[^>]*>", "", path.read_text("utf-8"))]
    else:
        tree = ast.parse(path.read_text("utf-8"))
        constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        texts = [node.value for node in constants if isinstance(node.value, str)]
    for text in texts:
        words = " ".join(text.split())
        for pattern in set(PLAIN) - {ROOMS}:  # a disk may have no room
            assert " " not in words or not re.search(
                rf"\b({pattern})\b", words, re.I
            ), words


def test_the_check_leaves_out_code_alone() -> None:
    assert "Install" in prose(DOCS / "start.md")
    assert "pip install" not in prose(DOCS / "start.md")


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    """What writes measured numbers into the pages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(DOCS / "_site")
        return runpy.run_path(str(DOCS / "_site" / "measured.py"))


def test_the_numbers_are_those_of_the_records(made: dict[str, Any]) -> None:
    used = set()
    for path in made["PAGES"]:
        text = path.read_text("utf-8")
        assert made["renewed"](text) == text, (
            f"{named(path)} is older than its records; "
            "run python docs/_site/measured.py"
        )
        used |= set(re.findall(r"<!-- numbers: ([\w-]+) -->", text))
    assert used == set(made["BLOCKS"])


@pytest.mark.parametrize("path", [p for p in PROSE if p.suffix == ".md"], ids=named)
def test_no_measured_number_is_typed(path: Path) -> None:
    text = re.sub(
        r"<!-- numbers: .*?<!-- end of numbers -->", "", prose(path), flags=re.S
    )
    measured = r"\d ± \d|\b\d[\d.]* (points|CPU|ms\b)|\b(NMI|ARI) (of )?\d"
    found = re.search(rf".{{0,40}}({measured}).{{0,20}}", text)
    assert found is None, f"{found[0]!r}: write it by docs/_site/measured.py"


def test_every_page_of_numbers_is_renewed(made: dict[str, Any]) -> None:
    marked = [path for path in PROSE if "<!-- numbers:" in path.read_text("utf-8")]
    assert set(marked) == set(made["PAGES"])


@pytest.mark.parametrize("path", sorted((DOCS / "howto").glob("*.md")), ids=named)
def test_tasks_begin_with_code(path: Path) -> None:
    if path.stem == "index":
        pytest.skip("a list of the tasks")
    before, fence, _ = path.read_text("utf-8").partition("```")
    assert fence
    assert len(before.split()) < 60
