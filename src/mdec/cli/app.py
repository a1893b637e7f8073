"""``mdec app``: the same in a browser, on this machine alone."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from mdec._support.memory import MAX_BYTES
from mdec._support.optional import import_optional
from mdec.cli.options import OUTPUT, option, with_groups
from mdec.cli.output import examples

EPILOG = examples("mdec app", "mdec app patients.csv", "mdec app mdec-demo")


@dataclass(frozen=True)
class ServerOptions:
    """Where the page is, and how much it takes."""

    PANEL: ClassVar[str] = OUTPUT

    port: int = option(0, "Port on 127.0.0.1; 0 takes a free one.", min=0, max=65535)
    browser: bool = option(True, "Whether to open the browser.")
    max_gb: float = option(MAX_BYTES / 2**30, "Refuse files that take more.", min=0.001)


@with_groups
def command(
    server: ServerOptions,
    file: Annotated[
        Path | None, typer.Argument(help="Table to open, or folder of a result.")
    ] = None,
) -> None:
    """Open a page that reads a table, clusters it and explores the result.

    It sees the folder that it is started in, and nobody else sees it. Ctrl-C ends it.
    """
    for name in ("starlette", "uvicorn"):
        import_optional(name, needed_for="mdec app", install=name)
    # Whoever does not open the page loads none of it.
    importlib.import_module("mdec.app.server").serve(
        Path.cwd(),
        file,
        port=server.port,
        browser=server.browser,
        max_bytes=int(server.max_gb * 2**30),
    )
