"""The server of the page, on this machine alone, and who may ask it."""

from __future__ import annotations

import secrets
import socket
import sys
import webbrowser
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import (
    FileResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import Route

from mdec.app.explore import Result
from mdec.app.folder import ERRORS, Folder, command_words, look_at, make_groups
from mdec.app.jobs import Jobs
from mdec.cli.options import name_flags
from mdec.report.page import to_json

HOST = "127.0.0.1"
# Of the page, and of what it shares with the report.
_STATIC = {
    **dict.fromkeys(["app.html", "app.css", "app.js"], "mdec.app.static"),
    **dict.fromkeys(["shared.css", "shared.js"], "mdec.report"),
}
_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src "
    "'self'; img-src 'self' data:; connect-src 'self'; frame-src 'self'; base-uri "
    "'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
# A report is a file that may come from strangers: it runs as nobody's page, and can
# neither read this one nor ask the server for anything.
_REPORT = {
    "content-security-policy": "sandbox allow-scripts allow-downloads; "
    "frame-ancestors 'self'"
}
# What a result is asked for, by the names of its methods.
_EXPLORE = (
    "describe",
    "recluster",
    "prepare",
    "feature",
    "compare",
    "rename",
    "predict",
)
Options = dict[str, Any] | None


class Guard(BaseHTTPMiddleware):
    """Lets requests of the page through, and marks all answers.

    The host must be this machine by number, so that no other name leads here; the
    origin that of the page, so that no other page asks; and the cookie the one that
    was exchanged for the token of the address.
    """

    def __init__(self, app: Any, port: int, token: str) -> None:
        super().__init__(app)
        self.token, self.host = token, f"{HOST}:{port}"
        self.name, self.secret = f"mdec-{port}", secrets.token_urlsafe(32)

    async def dispatch(self, request: Request, call_next: Any) -> Response:
        """Answer a request, or refuse it."""
        answer: Response = self._refuse(request) or await call_next(request)
        for name, value in _HEADERS.items():
            answer.headers.setdefault(name, value)
        return answer

    def _refuse(self, request: Request) -> Response | None:
        """Return the answer to a stranger, or to one who brings the token."""
        origin, site = (request.headers.get(n) for n in ("origin", "sec-fetch-site"))
        asked = origin is not None or request.method not in ("GET", "HEAD")
        if (
            request.headers.getlist("host") != [self.host]
            or (asked and origin != f"http://{self.host}")
            or site not in (None, "none", "same-origin")
        ):
            return PlainTextResponse("This page answers only its own requests.\n", 403)
        given = request.query_params.get("token", "")
        if request.url.path == "/" and _equal(given, self.token):
            answer = RedirectResponse("/", 303)
            answer.set_cookie(self.name, self.secret, httponly=True, samesite="strict")
            return answer
        if _equal(request.cookies.get(self.name, ""), self.secret):
            return None
        words = "Open the address that mdec app has printed in its terminal.\n"
        return PlainTextResponse(words, 403)


def _equal(given: str, secret: str) -> bool:
    return secrets.compare_digest(given.encode(), secret.encode())


class Page:
    """What the page asks for; `start` is the table or the result to open first."""

    def __init__(self, folder: Folder, start: str = "") -> None:
        self.folder, self.start = folder, start
        self.jobs = Jobs(folder.root)
        self._open: Result | None = None

    def build(self, port: int, token: str) -> Guard:
        """Return the application for a port and a token."""

        @asynccontextmanager
        async def life(_: Any) -> AsyncIterator[None]:
            yield
            await run_in_threadpool(self.jobs.close)

        routes = [
            Route("/", self.static),
            Route("/static/{name}", self.static),
            Route("/results/{name}/{file}", self.file),
            Route("/upload", self.upload, methods=["POST"]),
            Route("/api/{act}", self.api, methods=["POST"]),
        ]
        sentences: Any = dict.fromkeys([*ERRORS, ClientDisconnect], _complain)
        app = Starlette(routes=routes, lifespan=life, exception_handlers=sentences)
        return Guard(app, port, token)

    async def static(self, request: Request) -> Response:
        """Return the page, its script or its style."""
        name = request.path_params.get("name", "app.html")
        if name not in _STATIC:
            return Response(status_code=404)
        content = (files(_STATIC[name]) / name).read_bytes()
        return Response(content, media_type=_KINDS[Path(name).suffix])

    async def upload(self, request: Request) -> Response:
        """Keep a file that arrives."""
        self.folder.check_size(int(request.headers.get("content-length", 0)))
        name = request.query_params.get("name", "")
        return _answer({"file": await self.folder.receive(name, request.stream())})

    async def file(self, request: Request) -> Response:
        """Return the report of a result, one of its files, or all of them."""
        result = self._result(request.path_params["name"])
        name = request.path_params["file"]
        if name == "report":
            return FileResponse(result.path / "report.html", headers=_REPORT)
        if name == "everything.zip":
            path = await run_in_threadpool(result.pack)
            gone, kept = BackgroundTask(path.unlink), f"{result.path.name}.zip"
            return FileResponse(path, filename=kept, background=gone)
        if name not in result.listed:
            return Response(status_code=404)
        media = "application/octet-stream"
        return FileResponse(result.path / name, filename=name, media_type=media)

    async def api(self, request: Request) -> Response:
        """Do what the page asks for, and answer in JSON."""
        act, given = request.path_params["act"], await request.json()
        own: dict[str, Callable[..., Any]] = {
            "start": self.describe,
            "look": self.look,
            "run": self.run,
            "jobs": self.jobs.snapshot,
            "stop": self.jobs.stop,
            "resume": self.jobs.resume,
        }
        if act in own:
            work = own[act]
        elif act in _EXPLORE:
            work = getattr(self._result(given.pop("result")), act)
        else:
            return Response(status_code=404)
        return _answer(await run_in_threadpool(work, **given))

    def describe(self) -> dict[str, Any]:
        """Return tables, results and runs."""
        return {
            "root": self.folder.root.name,
            "start": self.start,
            "tables": self.folder.tables(),
            "results": self.folder.results(),
            "max_bytes": self.folder.max_bytes,
        }

    def look(
        self, file: str = "", options: Options = None, out: str = "", find: str = ""
    ) -> dict[str, Any]:
        """Say how a table is read."""
        out = out or self.folder.free_name(Path(file).name.split(".")[0])
        return look_at(self.folder, file, options or {}, out, find)

    def run(self, file: str, out: str, options: Options = None) -> dict[str, Any]:
        """Put a run in line."""
        file, path = self.folder.name(self.folder.path(file)), self.folder.path(out)
        if path.parent != self.folder.root or path.name.startswith((".", "-")):
            raise ValueError("the name of a result is that of a folder, without '/'.")
        make_groups(self.folder, options or {})
        words = command_words(file, options or {}, path.name)
        return {"number": self.jobs.submit(words, path.name)}

    def _result(self, name: str) -> Result:
        """Return a result; the last one stays open unless it is written again."""
        path, last = self.folder.path(name), self._open
        if last is None or last.path != path or not last.is_current:
            self._open = last = Result(self.folder, name)
        return last


def _answer(content: Any, status: int = 200) -> Response:
    return Response(to_json(content), status, media_type="application/json")


async def _complain(_: Request, error: Exception) -> Response:
    """Answer a foreseen error with one sentence."""
    return _answer({"error": name_flags(str(error)) or type(error).__name__}, 400)


def serve(
    root: Path, start: Path | None, *, port: int, browser: bool, max_bytes: int
) -> None:
    """Serve the page of a folder until it is interrupted, `start` opened first."""
    folder, name = Folder(root, max_bytes), ""
    if start is not None:
        place = folder.path(Path(root, start).absolute().relative_to(folder.root))
        name = folder.name(place)
        if not place.exists():
            raise ValueError(f"{str(start)!r} is not there; check its name.")
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((HOST, port))
        listening.listen()  # whoever reads the address may ask at once
        port, token = listening.getsockname()[1], secrets.token_urlsafe(24)
        page = Page(folder, name)
        # A log of requests would show the token.
        how: dict[str, Any] = {
            "access_log": False,
            "log_level": "error",
            "server_header": False,
        }
        server = uvicorn.Server(uvicorn.Config(page.build(port, token), **how))
        address = f"http://{HOST}:{port}/?token={token}"
        sys.stdout.write(f"Open {address}\nCtrl-C ends it.\n")
        sys.stdout.flush()
        if browser:
            webbrowser.open(address)
        server.run(sockets=[listening])
