"""The server of the page, on this machine alone."""

from __future__ import annotations

import secrets
import socket
import sys
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from mdec.app.explore import Result
from mdec.app.folder import ERRORS, Folder
from mdec.app.guard import HOST, Guard
from mdec.app.jobs import Jobs
from mdec.app.tables import command_words, look_at, make_groups
from mdec.cli.options import name_flags

_STATIC = {"app.html": "html", "app.css": "css", "app.js": "javascript"}
_SHARED = {"shared.css": "css", "shared.js": "javascript"}
# A report is a file that may come from strangers: it runs as nobody's page, and can
# neither read this one nor ask the server for anything.
_REPORT = {
    "content-security-policy": "sandbox allow-scripts allow-downloads; "
    "frame-ancestors 'self'"
}
# What a result is asked for, with the names of what is given.
_EXPLORE = {
    "describe": (),
    "recluster": ("k", "consensus", "quick"),
    "prepare": ("k", "consensus", "quick"),
    "feature": ("name",),
    "compare": ("samples",),
    "rename": ("clusters",),
    "predict": ("file",),
}
Given = dict[str, Any]


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
        if kind := _STATIC.get(name):
            content = (files("mdec.app") / "static" / name).read_bytes()
        elif kind := _SHARED.get(name):
            content = (files("mdec.report") / name).read_bytes()
        else:
            return Response(status_code=404)
        return Response(content, media_type=f"text/{kind}")

    async def upload(self, request: Request) -> Response:
        """Keep a file that arrives."""
        self.folder.check_size(int(request.headers.get("content-length", 0)))
        name = request.query_params.get("name", "")
        return JSONResponse({"file": await self.folder.receive(name, request.stream())})

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
        own: Given = {
            "start": self.describe,
            "look": self.look,
            "run": self.run,
            "jobs": lambda _: self.jobs.snapshot(),
            "stop": lambda given: self.jobs.stop(given["number"]),
            "resume": lambda given: self.jobs.resume(given["number"]),
        }
        if act in own:
            return JSONResponse(await run_in_threadpool(own[act], given))
        if act not in _EXPLORE:
            return Response(status_code=404)
        work = getattr(self._result(given["result"]), act)
        values = [given.get(name) for name in _EXPLORE[act]]
        return JSONResponse(await run_in_threadpool(work, *values))

    def describe(self, _: Given) -> Given:
        """Return tables, results and runs."""
        return {
            "root": self.folder.root.name,
            "start": self.start,
            "tables": self.folder.tables(),
            "results": self.folder.results(),
            "max_bytes": self.folder.max_bytes,
        }

    def look(self, given: Given) -> Given:
        """Say how a table is read."""
        file, options = str(given.get("file", "")), given.get("options") or {}
        out = given.get("out") or self.folder.free_name(Path(file).name.split(".")[0])
        return look_at(self.folder, file, options, out, str(given.get("find", "")))

    def run(self, given: Given) -> Given:
        """Put a run in line."""
        file = self.folder.name(self.folder.path(given.get("file")))
        out = self.folder.path(given.get("out"))
        if out.parent != self.folder.root or out.name.startswith((".", "-")):
            raise ValueError("the name of a result is that of a folder, without '/'.")
        options = given.get("options") or {}
        make_groups(self.folder, options)
        words = command_words(file, options, out.name)
        return {"number": self.jobs.submit(words, out.name)}

    def _result(self, name: str) -> Result:
        """Return a result; the last one stays open unless it is written again."""
        path, last = self.folder.path(name), self._open
        if last is None or last.path != path or not last.is_current:
            self._open = last = Result(self.folder, name)
        return last


async def _complain(_: Request, error: Exception) -> Response:
    """Answer a foreseen error with one sentence."""
    words = name_flags(str(error)) or type(error).__name__
    return JSONResponse({"error": words}, 400)


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
        how: Given = {"access_log": False, "log_level": "error", "server_header": False}
        server = uvicorn.Server(uvicorn.Config(page.build(port, token), **how))
        address = f"http://{HOST}:{port}/?token={token}"
        sys.stdout.write(f"Open {address}\nCtrl-C ends it.\n")
        sys.stdout.flush()
        if browser:
            webbrowser.open(address)
        server.run(sockets=[listening])
