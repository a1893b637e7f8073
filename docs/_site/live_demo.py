"""Put the report and the app of ``mdec demo`` into the site, where pages frame them.

A static site cannot run the server of ``mdec app``. So the app is started when the site
is built, asked everything that its page may ask about the result of the demo and about
one table, and its answers are stored. In the site the same page, script and style take
their answers from this recording (``recorded.js``); what was not recorded is refused in
one sentence.
"""

from __future__ import annotations

import base64
import hashlib
import http.cookiejar
import json
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPCookieProcessor, Request, build_opener

import numpy as np
from sklearn.datasets import load_iris

HERE = Path(__file__).parent
RESULT, TABLE = "mdec-demo", "flowers.csv"
# The most clusters that are recorded, of the 30 that the app offers.
MOST = 12
# What people are likely to set for the table, one at a time, once it can be read.
SETTINGS: list[dict[str, Any]] = [
    {},
    {"transform": "standardise"},
    {"transform": "log"},
    {"prepare": "none"},
    {"consensus": "spectral"},
    {"consensus": "bipartite"},
    {"k": "3"},
    {"k": "2:12"},
]
LISTENS = r"/^http:\/\/127\.0\.0\.1:\d+$/"
LISTENS_HERE = (
    "{ test: (origin) => origin === location.origin || location.protocol === 'file:' }"
)
SCRIPT = r"<script>(.*?)</script>"
# Stands before the page and says what it is.
NOTE = (
    '<p class="recorded">This copy of <code>mdec app</code> shows recorded answers and '
    "keeps nothing. To cluster your own tables, run <code>mdec app</code> on your "
    "machine.</p>"
)
STYLE = (
    "<style>.recorded { margin: 0; max-width: none; padding: .4rem 1rem; "
    "font-size: .85rem; background: #fff3cd; color: #533f03; }</style>"
)


class App:
    """The app of a folder, on loopback, and everything that it answered."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "mdec", "app", "--no-browser"]
        self.process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        found = re.search(r"http://\S+", self.process.stdout.readline())
        assert found is not None
        parts = urlsplit(found[0])
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.opener = build_opener(HTTPCookieProcessor(http.cookiejar.CookieJar()))
        self.opener.open(found[0]).close()  # exchanges the token for a cookie
        self.answers: dict[str, Any] = {}

    def ask(self, act: str, **content: Any) -> Any:
        """Return the answer to a request of the page, and store it."""
        request = Request(
            f"{self.origin}/api/{act}",
            json.dumps(content).encode(),
            {"content-type": "application/json", "origin": self.origin},
        )
        try:
            with self.opener.open(request) as answer:
                found = json.load(answer)
        except HTTPError as error:
            with error:
                raise RuntimeError(f"{act}: {error.read().decode()}") from error
        self.answers[question(act, content)] = found
        return found

    def close(self) -> None:
        """End the app."""
        self.process.terminate()
        self.process.wait()


def question(act: str, content: dict[str, Any]) -> str:
    """Return a request as text, the same as `recorded.js` makes of it."""
    return act + " " + json.dumps(content, sort_keys=True, separators=(",", ":"))


def record_table(app: App) -> None:
    """Record how a table is read: the doubt, what cures it, and some settings."""
    first = app.ask("look", file=TABLE, out="", options={}, find="")
    assert first["cure"], "the table of the example raises no doubt"
    for options in SETTINGS:
        given = first["cure"] | options
        app.ask("look", file=TABLE, out=first["out"], options=given, find="")
        app.ask("look", file=TABLE, out="", options=given, find="")


def record_result(app: App) -> None:
    """Record the result: every K and consensus, each cluster, each feature."""
    about = app.ask("describe", result=RESULT)
    about["most"] = MOST
    for name in about["features"]:
        app.ask("feature", name=name, result=RESULT)
    for consensus in about["choices"]:
        for k in range(1, MOST + 1):
            found = app.ask("recluster", k=k, consensus=consensus, result=RESULT)
            clusters = np.frombuffer(base64.b64decode(found["cluster"]["u8"]), "u1")
            for cluster in np.unique(clusters) if k > 1 else ():
                own = np.flatnonzero(clusters == cluster).tolist()
                app.ask("compare", samples=own, result=RESULT)


def listen_here(report: str) -> str:
    """Let a report take messages from the page of its own site.

    As it is written it takes them from an app on the reader's machine alone. The digest
    of its script, which its policy names, changes with it.
    """
    [script] = [each for each in re.findall(SCRIPT, report, re.S) if LISTENS in each]
    assert script.count(LISTENS) == 1
    new = script.replace(LISTENS, LISTENS_HERE)
    report = report.replace(script, new)
    assert digest(script) in report
    return report.replace(digest(script), digest(new))


def digest(script: str) -> str:
    """Return the digest of a script, as a page names it."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def write_app(app: App, folder: Path, target: Path) -> None:
    """Write the page with its recorded answers, and the files of the result."""
    target.mkdir(parents=True, exist_ok=True)
    static = files("mdec.app") / "static"
    shared = files("mdec.report")
    for place, name in (
        *((static, "app.js"), (static, "app.css")),
        *((shared, "shared.js"), (shared, "shared.css")),
    ):
        (target / name).write_bytes((place / name).read_bytes())
    shutil.copyfile(HERE / "recorded.js", target / "recorded.js")
    answers = json.dumps(app.answers, separators=(",", ":"))
    (target / "answers.js").write_text(f"window.answers = {answers};", "utf-8")
    page = (static / "app.html").read_text("utf-8").replace("/static/", "")
    page = page.replace("</head>", f"{STYLE}</head>").replace("<body>", f"<body>{NOTE}")
    before = '<script src="answers.js"></script>\n<script src="recorded.js"></script>\n'
    page = page.replace("<script src", before + "<script src", 1)
    (target / "index.html").write_text(page, "utf-8")
    kept = target / "results" / RESULT
    shutil.copytree(folder / RESULT, kept, dirs_exist_ok=True)
    shutil.make_archive(str(kept / "everything"), "zip", folder, RESULT)
    report = kept / "report.html"
    report.write_text(listen_here(report.read_text("utf-8")), encoding="utf-8")


def make_demo(target: Path) -> None:
    """Run the demo as a user would, and write its report and app into a folder."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "example"
        folder.mkdir()
        subprocess.run(
            [sys.executable, "-m", "mdec", "demo", "--out", RESULT, "--quiet"],
            cwd=folder,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        target.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / RESULT / "report.html", target / "report.html")
        flowers = load_iris(as_frame=True).frame
        flowers["species"] = load_iris().target_names[flowers.pop("target")]
        flowers.to_csv(folder / TABLE, index=False)
        app = App(folder)
        try:
            app.ask("start")
            record_table(app)
            record_result(app)
        finally:
            app.close()
        write_app(app, folder, target / "app")


def make_site(app: Any, error: Exception | None) -> None:
    """Add report and app once the pages are written."""
    if error is None and app.builder.format == "html":
        make_demo(Path(app.outdir) / "demo")


def setup(app: Any) -> dict[str, bool]:
    """Connect what this extension does."""
    app.connect("build-finished", make_site)
    return {"parallel_read_safe": True}


if __name__ == "__main__":
    make_demo(Path(sys.argv[1]))
