"""Check the built site: every link and anchor leads somewhere, nothing is fetched.

Run with ``python docs/_site/check.py FOLDER``; the exit code is the number of faults,
at most 1.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The anchors, links, fetched files and pictures of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.undescribed: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what the tag names, leads to or fetches."""
        found = dict(attrs)
        self.anchors |= {found[key] or "" for key in ("id", "name") if key in found}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"] or "")
        if tag == "link" and found.get("rel") not in ("canonical", "author"):
            self.fetched.append(found.get("href") or "")
        if tag in ("script", "img", "iframe", "source") and found.get("src"):
            self.fetched.append(found["src"] or "")
        source = found.get("src") or ""
        # A thumbnail stands beside its own title, which says what it shows.
        if tag == "img" and not found.get("alt") and "_thumb." not in source:
            self.undescribed.append(source)


def faults(folder: Path) -> list[str]:
    """Return one sentence for each link that leads nowhere and each outside file."""
    pages = {
        path.resolve(): Page(path.read_text("utf-8"))
        for path in sorted(folder.rglob("*.html"))
        if "_static" not in path.parts  # templates of the theme
    }
    found = []
    for path, page in pages.items():
        name = path.relative_to(folder.resolve())
        found += [f"{name}: no alternative text for {src}" for src in page.undescribed]
        for link in page.links + page.fetched:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.fetched and parts.scheme != "data":
                    found.append(f"{name}: fetches {link}")
                continue
            target = path
            if parts.path:
                target = (path.parent / unquote(parts.path)).resolve()
            if not target.is_file():
                found.append(f"{name}: {link} leads nowhere")
            elif parts.fragment and target in pages:
                wanted = unquote(parts.fragment)
                if wanted not in pages[target].anchors:
                    found.append(f"{name}: {link} has no such anchor")
    for path in sorted(folder.rglob("*.css")):
        text = path.read_text("utf-8")
        for link in re.findall(r"url\(['\"]?((?:https?:)?//[^)'\"]+)", text):
            found.append(f"{path.relative_to(folder)}: fetches {link}")
    return found


def main() -> None:
    """Print the faults of a folder."""
    found = faults(Path(sys.argv[1]))
    print(*found, sep="\n")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
