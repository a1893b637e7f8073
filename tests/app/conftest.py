"""A folder with a table and a result, and a client that holds the cookie."""

from __future__ import annotations

import asyncio
import shutil

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
