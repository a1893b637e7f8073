"""The server of the page: for the person at this machine, and nobody else."""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
import subprocess
import sys
import tempfile
import webbrowser
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import (
    FileResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route

from mdec._support.memory import MAX_BYTES
from mdec.app.explore import Result
from mdec.app.folder import Folder
from mdec.app.jobs import Jobs
from mdec.app.tables import command_words, look_at, parse_options
from mdec.cli.options import name_flags
from mdec.results import MODEL

HOST = "127.0.0.1"
_STATIC = {"app.css": "text/css", "app.js": "text/javascript"}
_ERRORS = (ValueError, OSError, MemoryError, ImportError, RuntimeError, KeyError)
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
# A report is a file that may come from strangers: it runs as nobody's page, and can
# neither read this one nor ask the server for anything.
_REPORT_POLICY = "sandbox allow-scripts allow-downloads; frame-ancestors 'self'"
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
# The longest request but for files that arrive.
_LONGEST = 2_000_000
# Seconds between looks at the runs, and at most between two messages about them.
_LOOK, _SILENCE = 0.2, 15.0

Handler = Callable[[Request], Awaitable[Response]]


class Guard:
    """Lets requests through that come from the page itself, and marks all answers.

    The host must be this machine by number, so that no other name leads here; the
    origin that of the page, so that no other page asks; and the cookie the one that
    was exchanged for the token of the address.
    """

    def __init__(self, app: Any, port: int, token: str) -> None:
        self.app, self.token = app, token
        self.host = f"{HOST}:{port}"
        self.name, self.secret = f"mdec-{port}", secrets.token_urlsafe(32)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def mark(message: Any) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                extra = _HEADERS | {"content-security-policy": _POLICY}
                message["headers"] += [
                    (name.encode(), value.encode())
                    for name, value in extra.items()
                    if name.encode() not in given
                ]
            await send(message)

        request = Request(scope)
        answer = self._refuse(request) or self._admit(request)
        await (answer or self.app)(scope, receive, mark)

    def _refuse(self, request: Request) -> Response | None:
        """Return an answer to requests that come from elsewhere."""
        origin, site = (request.headers.get(n) for n in ("origin", "sec-fetch-site"))
        safe = request.method in ("GET", "HEAD")
        if (
            request.headers.getlist("host") != [self.host]
            or (origin != f"http://{self.host}" and (origin is not None or not safe))
            or site not in (None, "none", "same-origin")
        ):
            return PlainTextResponse("This page answers to itself alone.\n", 403)
        return None

    def _admit(self, request: Request) -> Response | None:
        """Exchange the token of the address for a cookie, or ask for that."""
        given = request.query_params.get("token")
        if request.url.path == "/" and given is not None and _equal(given, self.token):
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
    """What the page asks for.

    Parameters
    ----------
    root : Path
        The folder that it sees.
    start : str, default=""
        Name of the table or of the result to open first.
    max_bytes : int
        Limit for files.
    """

    def __init__(self, root: Path, start: str = "", max_bytes: int = MAX_BYTES) -> None:
        self.folder, self.start = Folder(root, max_bytes), start
        self.jobs, self.ending = Jobs(self.folder.root), False
        self._open: dict[str, tuple[float, Result]] = {}

    def build(self, port: int, token: str) -> Any:
        """Return the application for a port and a token."""

        @asynccontextmanager
        async def life(_: Any) -> AsyncIterator[None]:
            yield
            self.ending = True
            await run_in_threadpool(self.jobs.close)

        def get(path: str, handler: Handler) -> Route:
            return Route(path, _answer(handler), methods=["GET"])

        def post(path: str, handler: Handler) -> Route:
            return Route(path, _answer(handler), methods=["POST"])

        routes = [
            get("/", self.page),
            get("/static/{name}", self.static),
            get("/api/start", self.describe),
            get("/api/events", self.events),
            post("/api/upload", self.upload),
            post("/api/look", self.look),
            post("/api/run", self.run),
            post("/api/jobs/{number:int}/{act}", self.act),
            get("/results/{name}/report", self.report),
            get("/results/{name}/everything.zip", self.everything),
            get("/results/{name}/files/{file}", self.file),
            get("/api/results/{name}", self.result),
            post("/api/results/{name}/{act}", self.explore),
        ]
        return Guard(Starlette(routes=routes, lifespan=life), port, token)

    async def page(self, _: Request) -> Response:
        """Return the page itself."""
        return Response(_read("app.html"), media_type="text/html")

    async def static(self, request: Request) -> Response:
        """Return its script or style."""
        name = request.path_params["name"]
        if name not in _STATIC:
            return Response(status_code=404)
        return Response(_read(name), media_type=_STATIC[name])

    async def describe(self, _: Request) -> Response:
        """Return tables, results and runs."""
        return JSONResponse(
            {
                "root": self.folder.root.name,
                "start": self.start,
                "tables": await run_in_threadpool(self.folder.tables),
                "results": await run_in_threadpool(self.folder.results),
                "jobs": self.jobs.snapshot(),
                "max_bytes": self.folder.max_bytes,
            }
        )

    async def events(self, _: Request) -> Response:
        """Return a stream of the runs, each time that one of them has changed."""

        async def stream() -> AsyncIterator[str]:
            last, silent = -1, 0.0
            while not self.ending:
                if self.jobs.version != last or silent > _SILENCE:
                    last, silent = self.jobs.version, 0.0
                    yield f"data: {json.dumps(self.jobs.snapshot())}\n\n"
                await asyncio.sleep(_LOOK)
                silent += _LOOK

        return StreamingResponse(stream(), media_type="text/event-stream")

    async def upload(self, request: Request) -> Response:
        """Keep a file that arrives."""
        length = request.headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self.folder.max_bytes:
            limit = self.folder.max_bytes / 2**30
            raise ValueError(
                f"the file takes more than {limit:g} GB; give its path instead, or "
                "start mdec app with a larger --max-gb."
            )
        name = request.query_params.get("name", "")
        return JSONResponse({"file": await self.folder.receive(name, request.stream())})

    async def look(self, request: Request) -> Response:
        """Say how a table is read."""
        given = await _json(request)
        path = self.folder.path(given.get("file", ""))
        out = str(given.get("out") or self.folder.free_name(path.name.split(".")[0]))
        options, find = given.get("options") or {}, str(given.get("find") or "")
        file = str(given["file"])
        found = await run_in_threadpool(look_at, self.folder, file, options, out, find)
        return JSONResponse(found | {"out": out})

    async def run(self, request: Request) -> Response:
        """Put a run in line."""
        given = await _json(request)
        file = self.folder.name(self.folder.path(given.get("file", "")))
        out = self.folder.path(given.get("out", ""))
        if out.parent != self.folder.root or out.name.startswith((".", "-")):
            raise ValueError("the name of a result is that of a folder, without '/'.")
        options = given.get("options") or {}
        parse_options(options, self.folder.max_bytes / 2**30)
        words = command_words(file, options, out.name)
        return JSONResponse({"number": self.jobs.submit(words, out.name)})

    async def act(self, request: Request) -> Response:
        """Stop a run, or resume it."""
        acts = {"stop": self.jobs.stop, "resume": self.jobs.resume}
        act = acts.get(request.path_params["act"])
        if act is None:
            return Response(status_code=404)
        await run_in_threadpool(act, request.path_params["number"])
        return JSONResponse(self.jobs.snapshot())

    def _result(self, request: Request) -> Result:
        """Return an open result; one that was written again is opened again."""
        name = request.path_params["name"]
        path = self.folder.path(name)
        with suppress(OSError):
            changed = (path / MODEL).stat().st_mtime
            if name not in self._open or self._open[name][0] != changed:
                self._open = {name: (changed, Result(self.folder, name))}
            return self._open[name][1]
        return Result(self.folder, name)

    async def result(self, request: Request) -> Response:
        """Return what the page needs to explore a result."""
        result = self._result(request)
        return JSONResponse(await run_in_threadpool(result.describe))

    async def report(self, request: Request) -> Response:
        """Return the report of a result, as a page without any rights."""
        path = self._result(request).path / "report.html"
        headers = {"content-security-policy": _REPORT_POLICY}
        return FileResponse(path, headers=headers, media_type="text/html")

    async def file(self, request: Request) -> Response:
        """Return a file of a result, to be kept."""
        result, name = self._result(request), request.path_params["file"]
        if name not in {*result.files, *result.predictions()}:
            return Response(status_code=404)
        media = "application/octet-stream"
        return FileResponse(result.path / name, filename=name, media_type=media)

    async def everything(self, request: Request) -> Response:
        """Return all files of a result in one."""
        result = self._result(request)
        path = await run_in_threadpool(_zip, result)
        return FileResponse(
            path,
            filename=f"{result.path.name}.zip",
            background=BackgroundTask(path.unlink),
        )

    async def explore(self, request: Request) -> Response:
        """Do something with an open result."""
        result, given = self._result(request), await _json(request)
        work: dict[str, tuple[Any, ...]] = {
            "recluster": (result.recluster, given.get("k"), given.get("consensus")),
            "features": (result.find_features, str(given.get("words", ""))),
            "feature": (result.feature, str(given.get("name", ""))),
            "compare": (result.compare, given.get("samples")),
            "names": (result.rename, given.get("clusters")),
            "predict": (self._predict, result, given.get("file", "")),
        }
        act = request.path_params["act"]
        if act not in work:
            return Response(status_code=404)
        return JSONResponse(await run_in_threadpool(*work[act]))

    def _predict(self, result: Result, file: str) -> dict[str, Any]:
        """Place new samples by `mdec predict`, in a process of its own."""
        path = self.folder.path(file)
        out = result.path / f"predicted-{self.folder.free_name(path.stem)[:-7]}.csv"
        model = self.folder.name(result.path / MODEL)
        words = ["predict", model, self.folder.name(path), "--json"]
        words += ["--out", self.folder.name(out)]
        done = subprocess.run(
            [sys.executable, "-m", "mdec", *words],
            cwd=self.folder.root,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            encoding="utf-8",
            check=False,
        )
        if done.returncode != 0:
            words = done.stderr.strip().removeprefix("mdec: ").splitlines() or [""]
            raise ValueError(words[0] or "the new samples could not be placed.")
        found: dict[str, Any] = json.loads(done.stdout)
        return found | {"out": out.name}


def _answer(handler: Handler) -> Handler:
    """Return a handler that answers foreseen errors with one sentence."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except ClientDisconnect:
            return Response(status_code=499)
        except _ERRORS as error:
            words = name_flags(str(error)) or type(error).__name__
            return JSONResponse({"error": words}, 400)

    return answer


async def _json(request: Request) -> dict[str, Any]:
    """Return the content of a request, an object of reasonable length."""
    content = b""
    async for chunk in request.stream():
        content += chunk
        if len(content) > _LONGEST:
            raise ValueError("the request is too long.")
    found = json.loads(content or b"{}")
    if not isinstance(found, dict):
        raise ValueError("the request is no object.")
    return found


def _zip(result: Result) -> Path:
    """Return a temporary file with all files of a result."""
    with (
        tempfile.NamedTemporaryFile(suffix=".zip", delete=False) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name in sorted({*result.files, *result.predictions()}):
            archive.write(result.path / name, f"{result.path.name}/{name}")
    return Path(file.name)


def _read(name: str) -> bytes:
    return (files("mdec.app") / "static" / name).read_bytes()


def serve(
    root: Path,
    start: Path | None = None,
    *,
    port: int = 0,
    browser: bool = True,
    max_bytes: int = MAX_BYTES,
) -> None:
    """Serve the page until it is interrupted.

    Parameters
    ----------
    root : Path
        The folder that the page sees.
    start : Path, optional
        Table or result in it to open first.
    port : int, default=0
        Port on this machine; 0 for a free one.
    browser : bool, default=True
        Whether to open the browser.
    max_bytes : int
        Limit for files.
    """
    name = ""
    if start is not None:
        place = Path(root, start).resolve()
        if not place.is_relative_to(root.resolve()):
            raise ValueError(
                f"{str(start)!r} lies outside of this folder, and the page sees only "
                "this; start mdec app where the file is."
            )
        if not place.exists():
            raise ValueError(f"{str(start)!r} is not there; check its name.")
        name = place.relative_to(root.resolve()).as_posix()
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((HOST, port))
        port, token = listening.getsockname()[1], secrets.token_urlsafe(24)
        page = Page(root, name, max_bytes)
        config = uvicorn.Config(
            page.build(port, token),
            access_log=False,  # it would show the token
            log_level="error",
            server_header=False,
            timeout_graceful_shutdown=3,
        )
        address = f"http://{HOST}:{port}/?token={token}"
        sys.stdout.write(f"Open {address}\nCtrl-C ends it.\n")
        sys.stdout.flush()
        if browser:
            webbrowser.open(address)
        _Server(config, page).run(sockets=[listening])


class _Server(uvicorn.Server):
    """A server that ends its streams when it is told to end."""

    def __init__(self, config: uvicorn.Config, page: Page) -> None:
        super().__init__(config)
        self.page = page

    def handle_exit(self, sig: int, frame: Any) -> None:
        self.page.ending = True
        super().handle_exit(sig, frame)
