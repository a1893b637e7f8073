"""Bars for the long steps of a command, and runs that can be stopped and resumed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from mdec._support.progress import Progress as Hook
from mdec._support.progress import duration, progress_to
from mdec.engines.checkpoint import HEADER

CHECKPOINT = "checkpoint"
EXIT_STOPPED = 130


@contextmanager
def progress_bars(*, quiet: bool) -> Iterator[None]:
    """Show how far the long steps are: bars on a terminal, and lines elsewhere."""
    if quiet:
        yield
        return
    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )

    def hook(description: str) -> Hook:
        started: list[Any] = []

        def advance(done: int, total: int) -> None:
            if not started:
                bars.start()
                started.append(bars.add_task(description, total=total))
            bars.update(started[0], completed=done, total=total)

        return advance

    from mdec.numerics.loops.jit import report_compiling

    make = hook if bars.console.is_terminal else ProgressLines().hook
    hooks = {
        "members": make("base clusterings"),
        "null": make("testing whether there are groups"),
    }
    try:
        with (
            report_compiling(lambda line: bars.console.print(f"mdec: {line}")),
            progress_to(**hooks),
        ):
            yield
    finally:
        if bars.tasks:
            bars.stop()


class ProgressLines:
    """Lines that say, every tenth of a step, how long the rest of it will take."""

    def __init__(self) -> None:
        self.last = time.monotonic()

    def hook(self, description: str) -> Hook:
        """Return a hook of one step, which begins where the one before has ended."""
        start, before = self.last, 0

        def advance(done: int, total: int) -> None:
            nonlocal start, before
            if before == 0 or done < before:
                start, before = self.last, 0
            self.last = time.monotonic()
            tenths, before = 10 * before // total, done
            if done < total and 10 * done // total == tenths:
                return
            left = (self.last - start) * (total - done) / max(done, 1)
            rest = f", about {duration(left)} left" if done < total else ""
            typer.echo(f"mdec: {description}: {done} of {total}{rest}", err=True)

        return advance


@contextmanager
def resumable(out: Path, *, resume: bool) -> Iterator[Path]:
    """Yield the folder of the checkpoint of a run, which goes when the run is done.

    Parameters
    ----------
    out : Path
        Folder of the results, and of the checkpoint until they are there.
    resume : bool
        Go on with an old checkpoint; without it one is refused.
    """
    folder = out / CHECKPOINT
    if not resume and any(folder.rglob(HEADER)):
        raise ValueError(
            f"{str(folder)!r} holds a run that was stopped; add --resume to go on with "
            "it, or give another --out."
        )
    try:
        yield folder
    except KeyboardInterrupt:
        n_members = len(list(folder.rglob("member-??????.npz")))
        typer.echo(
            f"mdec: stopped; {n_members} base clusterings are kept in {str(folder)!r}, "
            "and the same command with --resume goes on from there.",
            err=True,
        )
        raise typer.Exit(EXIT_STOPPED) from None
    _remove_checkpoint(folder)


def _remove_checkpoint(folder: Path) -> None:
    """Remove the files of a checkpoint, and its folders if they hold nothing else."""
    for each in [*folder.glob("view-*"), folder]:
        for file in [*each.glob("member-*"), each / HEADER]:
            file.unlink(missing_ok=True)
        with suppress(OSError):
            each.rmdir()
