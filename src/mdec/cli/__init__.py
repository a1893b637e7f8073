"""The command line: a skin over the library."""

from __future__ import annotations

import sys
from typing import Any

from mdec import __version__
from mdec._support.optional import import_optional

_ERRORS = (ValueError, OSError, MemoryError, ImportError, RuntimeError)


def build_app() -> Any:
    """Return the application with all its commands."""
    typer = import_optional("typer", needed_for="the command line", install="mdec[cli]")
    import_optional("rich", needed_for="the command line", install="mdec[cli]")
    from mdec.cli import bench, consensus, datasets, demo, fit

    app = typer.Typer(
        name="mdec",
        help="Multidiversified ensemble clustering. --debug shows where errors arise, "
        "--version which version this is.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=False,
    )
    app.add_typer(datasets.app, name="datasets")
    app.add_typer(bench.app, name="bench")
    app.command("fit")(fit.command)
    app.command("consensus")(consensus.command)
    app.command("demo")(demo.command)
    return app


def main(arguments: list[str] | None = None) -> None:
    """Run a command; an error is one sentence and exit code 2.

    Parameters
    ----------
    arguments : list of str, default=None
        What follows the name of the program; None takes it from the system.
    """
    given = sys.argv[1:] if arguments is None else arguments
    if given == ["--version"]:
        sys.stdout.write(f"mdec {__version__}\n")
        return
    try:
        build_app()([word for word in given if word != "--debug"])
    except KeyboardInterrupt:
        sys.stderr.write("mdec: stopped.\n")
        raise SystemExit(130) from None
    except _ERRORS as error:
        if "--debug" in given:
            raise
        sys.stderr.write(f"mdec: {error}\n")
        raise SystemExit(2) from None
