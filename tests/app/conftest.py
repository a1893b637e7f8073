"""A folder with a table and a result, and a client that holds the cookie."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest

from mdec.cli import main

pytest.importorskip("starlette")
httpx = pytest.importorskip("httpx")

PORT, TOKEN = 8123, "the-token"
ORIGIN = f"http://127.0.0.1:{PORT}"


def write_table(path, n_samples=60, seed=0) -> None:
    """Write a table of three groups, with names and classes."""
    rng = np.random.default_rng(seed)
    group = np.arange(n_samples) % 3
    X = rng.normal(size=(n_samples, 6)) + 4.0 * np.eye(3, 6)[group]
    lines = ["name,height,weight,<b>dose</b>,age,pulse,iron,kind"]
    for i, row in enumerate(X):
        cells = ",".join(f"{value:.4f}" for value in row)
        lines.append(f"s{i},{cells},{'abc'[group[i]]}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A folder with a table, and the result of the table."""
    root = tmp_path_factory.mktemp("app")
    write_table(root / "people.csv")
    words = ["fit", str(root / "people.csv"), "--label-column", "kind", "--k", "3"]
    words += ["--ensemble-size", "20", "--out", str(root / "people-result"), "--quiet"]
    with pytest.raises(SystemExit, match=r"^0$"):
        main(words)
    return root


@pytest.fixture
def root(made, tmp_path):
    """A copy of it that a test may change."""
    folder = tmp_path / "work"
    shutil.copytree(made, folder)
    return folder


@pytest.fixture
def page(root):
    """What the page asks; its runs end with the test."""
    from mdec.app.folder import Folder
    from mdec.app.server import Page

    made = Page(Folder(root, max_bytes=2**20))
    yield made
    made.jobs.close()


class Client:
    """Asks an application without a server, as a browser would on its own page."""

    def __init__(self, app) -> None:
        self.app, self.headers, self.cookies = app, {"origin": ORIGIN}, httpx.Cookies()

    def ask(self, method, place, headers=None, **given):
        async def send():
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(
                transport=transport, base_url=ORIGIN, cookies=self.cookies
            ) as client:
                answer = await client.request(
                    method, place, headers=self.headers | (headers or {}), **given
                )
                self.cookies = client.cookies
                return answer

        return asyncio.run(send())

    def get(self, place, **given):
        return self.ask("GET", place, **given)

    def post(self, place, **given):
        return self.ask("POST", place, **given)


@pytest.fixture
def stranger(page):
    """A client without the cookie, but from the right place."""
    return Client(page.build(PORT, TOKEN))


@pytest.fixture
def client(stranger):
    """A client that has opened the address with the token."""
    assert stranger.get("/", params={"token": TOKEN}).status_code == 303
    return stranger


QUERIES = (
    "const $ = (words) => document.querySelector(words);"
    "const $$ = (words) => [...document.querySelectorAll(words)];"
)


@contextmanager
def started_app(folder, **how):
    """Start the app of a folder as a person does; gives its process and address."""
    command = [sys.executable, "-m", "mdec", "app", "--no-browser"]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, text=True, **how
    ) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().split()[1]
        process.terminate()


class Tab:
    """A tab with the page, and what a person does to it."""

    def __init__(self, browser, address):
        self.browser, self.address = browser, address
        self.base = address.partition("?")[0]

    def open(self, *place):
        """Load the page anew, at a place such as "explore", "wine-result"."""
        self.browser.get("about:blank")
        self.browser.get(self.address)
        self.wait("return $('#root').textContent !== ''")
        self.run(
            "location.hash = arguments[0].map(encodeURIComponent).join('/')", place
        )
        return self

    def explore(self, name):
        """Open a result, and wait until its report has come."""
        self.open("explore", name)
        self.wait("return $$('#names [data-cluster]').length > 0")
        self.wait_inside("return $$('.halo').length > 0")
        self.run("$$('aside details').forEach(each => each.open = true)")
        return self

    def read(self, name):
        """Open a table, and do what is proposed until it can be run."""
        self.open("table", name)
        self.wait("return $('#h-reading').textContent.startsWith(arguments[0])", name)
        if self.run("return $('#run').disabled"):
            self.click("#cure")
        self.wait("return !$('#run').disabled")
        return self

    def start_run(self, out, size):
        """Run the table that is open, and return the number of the run."""
        self.set("[data-option=ensemble_size]", str(size))
        self.set("[data-option=k]", "3")
        self.set("#out", out)
        written = "$('#command').textContent.endsWith(arguments[0])"
        self.wait(f"return {written} && !$('#run').disabled", f"--out {out}")
        self.click("#run")
        self.wait("return $('#jobs h2')?.textContent === arguments[0]", out)
        return self.run("return $('#jobs li').dataset.job")

    def one(self, selector):
        return self.browser.find_element("css selector", selector)

    def run(self, script, *given):
        return self.browser.execute_script(QUERIES + script, *given)

    def text(self, selector):
        return self.run("return $(arguments[0]).textContent", selector)

    def set(self, selector, value, kind="change"):
        self.run(
            "const it = $(arguments[0]); it.value = arguments[1];"
            "it.dispatchEvent(new Event(arguments[2], {bubbles: true}))",
            selector,
            value,
            kind,
        )

    def wait(self, script, *given, seconds=120, run=None):
        """Wait until a script returns something, and return it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := (run or self.run)(script, *given):
                return found
            time.sleep(0.05)
        seen = self.run("return document.body.innerText")
        raise AssertionError(f"{script} {given}: {seen}")

    def click(self, selector):
        """Click what can be seen and used."""
        usable = "return it?.offsetParent && !it.disabled"
        self.wait(f"const it = $(arguments[0]); {usable}", selector)
        self.one(selector).click()

    def inside(self, script, *given):
        """Run a script in the report."""
        self.browser.switch_to.frame(self.one("#report"))
        try:
            return self.run(script, *given)
        finally:
            self.browser.switch_to.default_content()

    def wait_inside(self, script, *given, seconds=120):
        """Wait until a script returns something in the report, and return it."""
        return self.wait(script, *given, seconds=seconds, run=self.inside)

    def size(self, width, height, *, dark=False):
        self.browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )
        value = "dark" if dark else "light"
        self.browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": value}]},
        )
