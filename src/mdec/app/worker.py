"""One run of `mdec` in a process of its own, which tells how far it is.

Lines of JSON go to standard output. The run is stopped when standard input ends, as it
does when the page's own process ends in whatever way.
"""

from __future__ import annotations

import _thread
import json
import os
import sys
import threading
import time
from typing import IO

from mdec import cli
from mdec._support.progress import Progress, progress_to


def main() -> None:
    """Run the command of the arguments, resumably."""
    words = sys.argv[1:]
    sys.argv = ["mdec", *words]  # the result tells by which command it was made
    threading.Thread(target=_stop_with_parent, daemon=True).start()
    out = sys.stdout
    _tell(out, step="reading the table")
    with progress_to(
        members=_hook(out, "base clusterings"),
        null=_hook(out, "testing whether there are groups"),
    ):
        cli.main([*words, "--quiet", "--resume"])


def _stop_with_parent() -> None:
    while os.read(0, 4096):  # a buffered file would not let Python end
        pass
    _thread.interrupt_main()


def _tell(out: IO[str], **content: object) -> None:
    out.write(json.dumps(content) + "\n")
    out.flush()


def _hook(out: IO[str], step: str) -> Progress:
    """Return a hook that tells what is done and how many seconds are left."""
    start, first = 0.0, 0

    def advance(done: int, total: int) -> None:
        nonlocal start, first
        now = time.monotonic()
        if not start or done < first:
            # Of a run that goes on, the first number was there before.
            start, first = now, done
        rate = (now - start) / max(done - first, 1)
        left = rate * (total - done) if done > first else None
        _tell(out, step=step, done=done, total=total, left=left)
        if done == total:
            _tell(out, step="consensus and report")

    return advance


if __name__ == "__main__":
    main()
