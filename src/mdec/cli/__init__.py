"""The command line: a skin over the library."""

from __future__ import annotations

import errno
import importlib
import inspect
import io
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr, redirect_stdout, suppress
from itertools import pairwise
from typing import Any, TextIO, cast

from mdec import __version__
from mdec._support.optional import import_optional

# A command is loaded when it is named; for help on all of them these words do.
COMMANDS = {
    "fit": "Cluster a table of samples by features and write labels and a report.",
    "predict": "Assign the samples of a new table to the clusters of a model.",
    "consensus": "Combine your own base clusterings; empty cells, NA and -1 are left "
    "out.",
    "compare": "Compare two clusterings: ARI, NMI, and which clusters are which.",
    "demo": "Cluster handwritten digits into ten, assign new ones, and write the "
    "report.",
    "app": "Open a page to read a table, cluster it and explore the result.",
    "datasets": "List, describe and fetch the paper's datasets.",
    "bench": "Run studies: datasets x methods x repetitions.",
}
# Modules of commands that have none of their name; those of bench hold a group each.
_MODULES = {
    **{"app": "demo", "predict": "finished", "compare": "finished"},
    **{"datasets": "bench", "bench": "bench"},
}
EXIT_CODES = (
    "Exit codes: 0 done, 1 a bug in mdec, 2 wrong input or options, 3 done but not "
    "all shown, 130 interrupted."
)
EXIT_UNSHOWN, EXIT_STOPPED = 3, 130
_EXAMPLES = "\n\nExamples\n--------\n"
_DETECTED = ("--transpose", "--header", "--index")
# What other programs call --k.
_ALSO_K = {"clusters": "k", "n-clusters": "k"}
_READER_LEFT = (errno.EPIPE, *((errno.EINVAL,) if os.name == "nt" else ()))
_ERRORS = (ValueError, OSError, MemoryError, ImportError, RuntimeError)


def build_app(named: Iterable[str] = tuple(COMMANDS)) -> Any:
    """Return the application; commands that are not named have their words alone."""
    typer = import_optional("typer", needed_for="the command line", install="mdec[cli]")
    import_optional("rich", needed_for="the command line", install="mdec[cli]")
    core = importlib.import_module("typer.core")
    groups, command = _make_class(core.TyperGroup), _make_class(core.TyperCommand)
    app = typer.Typer(
        name="mdec",
        help="Multidiversified ensemble clustering. --debug shows tracebacks, and "
        "--version the version, anywhere on the line.",
        epilog=EXIT_CODES,
        cls=groups,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={
            "help_option_names": ["-h", "--help"],
            "token_normalize_func": lambda name: _ALSO_K.get(name, name),
        },
    )
    named = set(named)
    for name, words in COMMANDS.items():
        place = _MODULES.get(name, name)
        if name not in named:
            app.command(name, help=words)(lambda: None)
        elif place == "bench":
            # The comparison imports from here, and not the other way round.
            commands = importlib.import_module("mdec.bench.commands")
            app.add_typer(getattr(commands, f"{name}_app"), name=name, cls=groups)
        else:
            run = getattr(importlib.import_module(f"mdec.cli.{place}"), name)
            page, _, lines = inspect.cleandoc(run.__doc__).partition(_EXAMPLES)
            epilog = "\n\n".join(["Examples:", *lines.splitlines(), EXIT_CODES])
            app.command(name, cls=command, help=page, epilog=epilog)(run)
    return app


def _make_class(base: Any) -> Any:
    """Return a class of commands, or of groups of them, whose switches show no type.

    ``auto`` after a switch leaves it to the command, as if neither were there.
    """

    class Plain(base):  # type: ignore[misc]
        def parse_args(self, ctx: Any, args: list[str]) -> Any:
            pairs = enumerate(pairwise([*args, ""]))
            auto = {i for i, (a, b) in pairs if a in _DETECTED and b == "auto"}
            left = [each for i, each in enumerate(args) if not {i, i - 1} & auto]
            return super().parse_args(ctx, left)

        def get_params(self, ctx: Any) -> Any:
            params = super().get_params(ctx)
            for each in params:
                each.metavar = "" if getattr(each, "is_flag", False) else each.metavar
            return params

    return Plain


class _Stream:
    """An output whose reader may leave, or which may be full: the work goes on.

    `error` is what went wrong first.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream or io.StringIO()  # None for one that was closed before
        self.error: OSError | None = None
        # Signs that a terminal cannot show are no reason to stop either.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, words: str) -> int:
        """Write words, or nothing from the first error on."""
        self._attempt(self._stream.write, words)
        return len(words)

    def flush(self) -> None:
        """Show what was written."""
        self._attempt(self._stream.flush)

    def _attempt(self, act: Callable[..., Any], *words: str) -> None:
        if self.error is not None:
            return
        try:
            act(*words)
        except OSError as error:
            self.error = error
            # What is left in the buffer would fail again when Python ends.
            with suppress(OSError):
                place = self._stream.fileno()
                os.dup2(os.open(os.devnull, os.O_WRONLY), place)


def main(arguments: list[str] | None = None) -> None:
    """Run a command; docs/command-line.md tells what the exit codes mean.

    Parameters
    ----------
    arguments : list of str, default=None
        What follows the name of the program; None takes it from the system.
    """
    given = sys.argv[1:] if arguments is None else arguments
    code: Any = None
    shown, said = _Stream(sys.stdout), _Stream(sys.stderr)
    with redirect_stdout(cast(TextIO, shown)), redirect_stderr(cast(TextIO, said)):
        try:
            _run(given)
        except SystemExit as ended:
            code = ended.code
        shown.flush()
        # A reader who has seen enough, as head has, leaves the pipe.
        error = shown.error
        if not code and error is not None and error.errno not in _READER_LEFT:
            why = error.strerror
            said.write(f"mdec: done, but not all of it could be shown ({why}).\n")
            code = EXIT_UNSHOWN
    if code is not None:
        raise SystemExit(code)


def _run(given: list[str]) -> None:
    """Run a command; errors that are foreseen end it with one sentence."""
    if "--version" in given:
        sys.stdout.write(f"mdec {__version__}\n")
        return
    # Shells that complete a command put its words here.
    words = (os.environ.get(n, "") for n in ("COMP_WORDS", "_TYPER_COMPLETE_ARGS"))
    named = {*given, *" ".join(words).split()}
    try:
        build_app(named)([word for word in given if word != "--debug"])
    except KeyboardInterrupt:
        sys.stderr.write("mdec: stopped.\n")
        raise SystemExit(EXIT_STOPPED) from None
    except _ERRORS as error:
        if "--debug" in given:
            raise
        sentence = str(error)
        if isinstance(error, OSError) and error.strerror:
            sentence = f"{error.strerror}: {str(error.filename2 or error.filename)!r}."
        if not isinstance(error, ImportError):  # else typer may be what is missing
            from mdec.cli.options import name_flags, suggest_command

            sentence = name_flags(getattr(error, "findings", sentence))
            if cure := getattr(error, "cure", None):
                sentence += f"\nTry: {suggest_command(given, cure)}"
        sys.stderr.write(f"mdec: {sentence}\n")
        raise SystemExit(2) from None
