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
    from mdec.cli import bench, compare, consensus, datasets, demo, fit, predict

    app = typer.Typer(
        name="mdec",
        help="Multidiversified ensemble clustering. --debug shows where errors arise, "
        "--version which version this is, both anywhere on the line.",
        epilog="Exit codes: 0 done, 2 wrong input or usage, 130 interrupted.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.add_typer(datasets.app, name="datasets")
    app.add_typer(bench.app, name="bench")
    for name, module in {
        "fit": fit,
        "predict": predict,
        "consensus": consensus,
        "compare": compare,
        "demo": demo,
    }.items():
        app.command(name, epilog=module.EPILOG)(module.command)
    return app


def main(arguments: list[str] | None = None) -> None:
    """Run a command; docs/command-line.md tells what the exit codes mean.

    Parameters
    ----------
    arguments : list of str, default=None
        What follows the name of the program; None takes it from the system.
    """
    given = sys.argv[1:] if arguments is None else arguments
    if "--version" in given:
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
