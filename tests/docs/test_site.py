"""The built site in a real browser: no complaints, no requests elsewhere, a search."""

from __future__ import annotations

import functools
import http.server
import shutil
import tempfile
import threading
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

SITE = Path(__file__).resolve().parents[2] / "docs" / "_build" / "html"
PAGES = [
    "index.html",
    "start.html",
    "how-it-works.html",
    "tutorials/plot_biologist.html",
    "howto/index.html",
    "gallery/index.html",
    "gallery/plot_digits.html",
    "api/index.html",
    "api/generated/mdec.MDEC.html",
    "results/paper-tables/report.html",
]


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


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium that records its console and its requests."""
    webdriver = pytest.importorskip("selenium.webdriver")
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("needs chromium and chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (
        *("headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run"),
        *("disable-background-networking", "disable-component-update", "disable-sync"),
        f"user-data-dir={tempfile.mkdtemp()}",
    ):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options, webdriver.ChromeService(driver))
    yield started
    started.quit()


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


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
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


def test_equations_are_shown(browser, address) -> None:
    resize(browser, 1280, "light")
    browser.get(f"{address}/how-it-works.html")
    heights = browser.execute_script(
        "return [...document.querySelectorAll('math')]"
        ".map((each) => each.getBoundingClientRect().height)"
    )
    assert len(heights) > 20
    assert min(heights) > 5


def test_the_search_finds_the_estimator(browser, address) -> None:
    resize(browser, 1280, "light")
    browser.get(f"{address}/search.html?q=MDEC")
    script = (
        "return [...document.querySelectorAll('#search-results li a')]"
        ".map((link) => link.getAttribute('href'))"
    )
    for _ in range(50):
        found = browser.execute_script(script)
        if any("api/generated/mdec.MDEC.html" in link for link in found):
            return
        time.sleep(0.2)
    pytest.fail(f"the search found {found}")
