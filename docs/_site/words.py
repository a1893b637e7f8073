"""Count the words of the pages, and of those of another commit beside them.

    python docs/_site/words.py [COMMIT]

Results have a table for every dataset and are left out, as are tutorials and gallery,
which are scripts. The exit code is 1 if the pages, without the README, have too many.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST = 18_000
README = "README.md"


def is_page(name: str) -> bool:
    """Return whether a file is a page that somebody wrote."""
    made = ("docs/_build/", "docs/results/", "docs/gallery/", "docs/tutorials/")
    written = name.startswith("docs/") and not name.startswith((*made, "docs/api/"))
    return name == README or (name.endswith(".md") and written)


def words_now() -> dict[str, int]:
    """Return the words of each page."""
    names = (path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/**/*.md"))
    pages = sorted(name for name in (*names, README) if is_page(name))
    return {name: len((ROOT / name).read_text("utf-8").split()) for name in pages}


def words_at(commit: str) -> dict[str, int]:
    """Return the words of each page of a commit."""

    def ask(*words: str) -> str:
        return subprocess.check_output(["git", *words], cwd=ROOT, text=True)

    names = ask("ls-tree", "-r", "--name-only", commit).splitlines()
    pages = (name for name in names if is_page(name))
    return {name: len(ask("show", f"{commit}:{name}").split()) for name in pages}


def total(words: dict[str, int]) -> int:
    """Return the words of all pages but the README."""
    return sum(count for name, count in words.items() if name != README)


def main() -> None:
    """Print the counts."""
    now = words_now()
    tables = [now]
    if sys.argv[1:]:
        tables.insert(0, words_at(sys.argv[1]))
    heads = [sys.argv[1], "now"] if sys.argv[1:] else ["words"]
    print(f"| page | {' | '.join(heads)} |\n|---{'|---' * len(heads)}|")
    for name in sorted({each for table in tables for each in table}):
        counts = " | ".join(str(table.get(name, "")) for table in tables)
        print(f"| {name} | {counts} |")
    totals = " | ".join(str(total(table)) for table in tables)
    print(f"| all but the README | {totals} |")
    sys.exit(total(now) > MOST)


if __name__ == "__main__":
    main()
