"""The built site in a real browser: no complaints, nothing cut, a search that finds."""

from __future__ import annotations

import functools
import http.server
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser

SITE = Path(__file__).resolve().parents[2] / "docs" / "_build" / "html"
PAGES = [
    "index.html",
    "start.html",
    "report.html",
    "how-it-works.html",
    "quality.html",
    "scale.html",
    "evidence.html",
    "baselines.html",
    "tutorials/index.html",
    "tutorials/plot_biologist.html",
    "tutorials/plot_researcher.html",
    "howto/index.html",
    "howto/app.html",
    "howto/scale-features.html",
    "gallery/index.html",
    "gallery/plot_digits.html",
    "api/index.html",
    "api/generated/mdec.MDEC.html",
    "results/paper-tables/report.html",
]
BAR = ["Get started", "Tutorials", "User guide", "API reference", "Gallery", "Results"]

# What people look for, and a page that must be among the first five found.
SEARCHES = {
    "MDEC": "api/generated/mdec.MDEC.html",
    "scale features": "howto/scale-features.html",
    "missing values": "howto/missing-values.html",
    "choose K": "choosing-k.html",
    "h5ad": "howto/anndata.html",
    "confidence": "confidence.html",
    "sparse": "howto/sparse.html",
    "predict new samples": "command-line.html",
}

# Elements that reach beyond the column of text. What is inside a part that scrolls by
# itself is left out, and so is the sign of a link that shows under the pointer.
TOO_WIDE = """
const article = document.querySelector('.bd-article');
if (!article) { return []; }  // the search and the index have none
const column = article.getBoundingClientRect();
const scrolls = (each) => {
  for (let at = each.parentElement; at && at.className !== 'bd-article';
       at = at.parentElement) {
    if (getComputedStyle(at).overflowX !== 'visible') { return true; }
  }
  return false;
};
const all = document.querySelectorAll('.bd-article *:not(.headerlink)');
return [...all].filter((each) => {
  const box = each.getBoundingClientRect();
  return box.width > 0 && box.right > column.right + 2 && !scrolls(each);
}).map((each) => each.outerHTML.slice(0, 80));
"""
CUT_CODE = """
return [...document.querySelectorAll('.bd-article pre')]
  .filter((each) => each.scrollWidth > each.clientWidth + 1)
  .map((each) => each.textContent.slice(0, 80));
"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, *words: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def address():
    """The site on this machine, as a reader would have it."""
    if not (SITE / "index.html").is_file():
        pytest.skip("needs the site; run `make docs`")
    handler = functools.partial(Quiet, directory=SITE)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def resize(browser, width: int, scheme: str) -> None:
    size = {
        "width": width,
        "height": 900,
        "deviceScaleFactor": 1,
        "mobile": width < 500,
    }
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)


def wait_for(found: Callable[[], Any]) -> Any:
    """Ask again for half a minute, until there is an answer; return the last."""
    for _ in range(150):
        if answer := found():
            return answer
        time.sleep(0.2)
    return found()


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(
    ("width", "scheme"), [(1400, "light"), (1000, "dark"), (420, "dark")]
)
def test_pages_are_quiet_and_fit(browser, address, page, width, scheme) -> None:
    resize(browser, width, scheme)
    browser.get_log("browser")
    browser.get(f"{address}/{page}")
    time.sleep(0.3)
    said = [
        e for e in browser.get_log("browser") if e["level"] in ("SEVERE", "WARNING")
    ]
    assert not said
    script = "return document.documentElement.scrollWidth - window.innerWidth"
    assert browser.execute_script(script) <= 0, "the page is wider than the window"
    theme = browser.execute_script("return document.documentElement.dataset.theme")
    assert theme == scheme
    fetched = browser.execute_script(
        "return performance.getEntriesByType('resource').map((entry) => entry.name)"
    )
    assert all(each.startswith((address, "data:")) for each in fetched)


@pytest.mark.parametrize("width", [1400, 1000, 420])
def test_nothing_is_wider_than_its_column(browser, address, width) -> None:
    resize(browser, width, "light")
    made = [path.relative_to(SITE) for path in SITE.rglob("*.html")]
    pages = [path for path in made if path.parts[0] not in ("_static", "demo")]
    assert len(pages) > 100
    found = {}
    for page in pages:
        browser.get(f"{address}/{page.as_posix()}")
        if wide := browser.execute_script(TOO_WIDE):
            found[str(page)] = wide[:3]
        if "results" not in page.parts and (cut := browser.execute_script(CUT_CODE)):
            found[f"{page}, code"] = cut
    assert found == {}


def test_the_bar_has_what_people_expect(browser, address) -> None:
    resize(browser, 1400, "light")
    browser.get(f"{address}/index.html")
    script = (
        "return [...document.querySelectorAll('.bd-header .navbar-nav .nav-link')]"
        ".filter((each) => each.offsetWidth > 0).map((each) => each.innerText.trim())"
    )
    assert browser.execute_script(script) == BAR


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_is_live_in_its_page(browser, address, scheme) -> None:
    resize(browser, 1000, scheme)
    browser.get(f"{address}/report.html")
    browser.switch_to.frame("demo-report")
    try:
        slider = "document.querySelector('input[type=range]')"
        shown = "return document.querySelector('.samples').innerHTML"
        before = browser.execute_script(shown)
        browser.execute_script(
            f"const slider = {slider}; slider.value = slider.min;"
            "slider.dispatchEvent(new Event('input', {bubbles: true}))"
        )
        assert wait_for(lambda: browser.execute_script(shown) != before)
        wide = "return document.documentElement.scrollWidth - window.innerWidth"
        assert browser.execute_script(wide) <= 0
    finally:
        browser.switch_to.default_content()


def set_to(browser, selector: str, value: str, kind: str = "change") -> None:
    """Give a field of the page another value, as a person does."""
    browser.execute_script(
        "const it = document.querySelector(arguments[0]); it.value = arguments[1];"
        "it.dispatchEvent(new Event(arguments[2], {bubbles: true}))",
        *(selector, value, kind),
    )


def read_text(browser, selector: str) -> str:
    script = "return document.querySelector(arguments[0]).innerText"
    return browser.execute_script(script, selector)


def clusters_in_the_report(browser) -> str:
    """Return the first number of the report that the app frames."""
    browser.switch_to.frame(browser.find_element("css selector", "#report"))
    try:
        return read_text(browser, ".fact b")
    finally:
        browser.switch_to.parent_frame()


@pytest.fixture
def app(browser, address):
    """The app in its page of the guide."""
    resize(browser, 1400, "light")
    browser.get_log("browser")
    browser.get(f"{address}/howto/app.html")
    browser.switch_to.frame("demo-app")
    wait_for(lambda: read_text(browser, "#k-shown"))
    yield browser
    said = [e for e in browser.get_log("browser") if e["level"] == "SEVERE"]
    browser.switch_to.default_content()
    assert not said


def test_the_app_shows_other_clusters(app) -> None:
    assert wait_for(lambda: clusters_in_the_report(app))
    set_to(app, "#k", "5", "input")
    assert wait_for(lambda: clusters_in_the_report(app) == "5")
    set_to(app, "#consensus", "bipartite")
    options = "return [...document.querySelectorAll('#choose option')].at(-1).value"
    set_to(app, "#choose", app.execute_script(options))
    assert wait_for(lambda: read_text(app, "#compared"))
    assert read_text(app, "#notice span") == ""


def test_the_app_reads_its_table_and_refuses_what_is_not_recorded(app) -> None:
    app.execute_script("location.hash = 'table/flowers.csv'")
    assert wait_for(lambda: "species" in read_text(app, "#doubt"))
    app.execute_script("document.querySelector('#cure').click()")
    wait_for(lambda: "--label-column" in read_text(app, "#command"))
    assert "150 samples" in read_text(app, "#h-reading")
    set_to(app, "[data-option=seed]", "7")
    assert wait_for(lambda: "recorded answers" in read_text(app, "#notice"))


def test_equations_are_shown(browser, address) -> None:
    resize(browser, 1400, "light")
    browser.get(f"{address}/how-it-works.html")
    heights = browser.execute_script(
        "return [...document.querySelectorAll('math')]"
        ".map((each) => each.getBoundingClientRect().height)"
    )
    assert len(heights) > 20
    assert min(heights) > 5


@pytest.mark.parametrize("words", SEARCHES)
def test_searches_find_their_page(browser, address, words) -> None:
    resize(browser, 1400, "light")
    browser.get(f"{address}/search.html?q={words.replace(' ', '+')}")
    script = (
        "return [...document.querySelectorAll('#search-results li > a')]"
        ".map((link) => link.getAttribute('href').split(/[?#]/)[0])"
    )

    def first_five() -> list[str]:
        return list(dict.fromkeys(browser.execute_script(script)))[:5]

    wait_for(lambda: SEARCHES[words] in first_five())
    assert SEARCHES[words] in first_five()
