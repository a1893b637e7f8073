"""One run of `mdec` in a process of its own, which tells how far it is.

Lines of JSON go to standard output. The run is stopped when standard input ends, as it
does when the page's own process ends in whatever way.
"""

from __future__ import annotations

import _thread
import json
import os
import signal
import sys
import threading
from functools import partial
from typing import IO

from mdec import cli
from mdec._support.progress import progress_to


def main() -> None:
    """Run the command of the arguments, resumably."""
    words = sys.argv[1:]
    sys.argv = ["mdec", *words]  # the result tells by which command it was made
    # A shell that starts the app in the background lets its processes ignore this.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=_stop_with_parent, daemon=True).start()
    tell = partial(_tell, sys.stdout)
    tell("reading the table")
    with progress_to(
        members=partial(tell, "base clusterings"),
        null=partial(tell, "testing whether there are groups"),
    ):
        cli.main([*words, "--quiet", "--resume"])


def _stop_with_parent() -> None:
    while os.read(0, 4096):  # a buffered file would not let Python end
        pass
    _thread.interrupt_main()


def _tell(out: IO[str], step: str, done: int = 0, total: int = 0) -> None:
    if total and done == total:
        step, done, total = "consensus and report", 0, 0
    out.write(json.dumps({"step": step, "done": done, "total": total}) + "\n")
    out.flush()


if __name__ == "__main__":
    main()
