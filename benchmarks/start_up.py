"""CPU seconds of the import and a small fit, in a cold process and in a warm one.

    python benchmarks/start_up.py [--record]
    python benchmarks/start_up.py --compile [--checkout CHECKOUT] [--record]

The cold process finds the compiled loops on disk. With ``--compile`` it starts from an
empty cache, as the first run after an installation does: CPU seconds of a fit of
300 x 50 with 20 members, then of 2000 x 50 in a second process that finds what the
first has compiled, and for each loop what the compiler spent on it, with and without
what it calls. ``--checkout`` takes the package from CHECKOUT/src, ``--record`` appends
the times to the record that docs/performance.md shows.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from records import append_lines, commit_of_source

CODE = """
import time
start = time.process_time()
import mdec
imported = time.process_time()
import sklearn.base
theirs = time.process_time()
mdec.MDEC()
loaded = time.process_time()
import numpy as np
X = np.random.default_rng(0).normal(size=(100, 1000))
ready = time.process_time()
mdec.MDEC(n_clusters=4, random_state=0).fit(X)
cold = time.process_time()
mdec.MDEC(n_clusters=4, random_state=1).fit(X)
warm = time.process_time()
print(imported - start, theirs - imported, loaded - theirs, cold - ready, warm - cold)
"""

# What the numbers of the code are.
TIMED = ("import mdec", "import of scikit-learn", "MDEC()", "cold fit", "warm fit")
SIZES = (300, 2000)
N_FEATURES, N_MEMBERS = 50, 20


def first_fit(n_samples: int) -> dict[str, float]:
    """Fit twice and print the CPU seconds, and those of the compiler by function."""
    import numpy as np

    import mdec

    estimator = mdec.MDEC(n_clusters=4, ensemble_size=N_MEMBERS, random_state=0)
    start = time.process_time()
    from numba.core import event

    imported = time.process_time() - start
    spent: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    running: list[list[float]] = []

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:  # noqa: ARG002
            running.append([time.process_time(), 0.0])

        def on_end(self, event: Any) -> None:
            begun, within = running.pop()
            seconds = time.process_time() - begun
            if running:
                running[-1][1] += seconds
            function = event.data["dispatcher"].py_func
            name = f"{function.__module__}.{function.__qualname__}"
            for place, value in enumerate((seconds, seconds - within, 1.0)):
                spent[name][place] += value

    event.register("numba:compile", Listener())
    X = np.random.default_rng(0).normal(size=(n_samples, N_FEATURES))
    times = []
    for _ in range(2):
        start = time.process_time()
        estimator.fit(X)
        times.append(time.process_time() - start)
    compiler = sum(own for _, own, _ in spent.values())
    print(
        f"{n_samples} x {N_FEATURES}: first fit {times[0]:.2f} CPU s, second "
        f"{times[1]:.2f}, import of numba {imported:.2f}, compiler {compiler:.2f} in "
        f"{len(spent)} functions"
    )
    for name, (total, own, count) in sorted(spent.items(), key=lambda x: -x[1][1]):
        if own >= 0.05:
            print(f"{total:8.2f} {own:6.2f} {count:3.0f}x  {name}")
    return {"first fit": times[0], "second fit": times[1]}


def record(name: str, seconds: dict[str, float]) -> None:
    """Append seconds to the record."""
    rounded = {each: round(value, 3) for each, value in seconds.items()}
    line = {"name": f"start-up {name}", **rounded, "commit": commit_of_source()}
    append_lines("performance", [line])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compile", action="store_true", help="empty the cache first")
    parser.add_argument("--checkout", type=Path, help="take the package from here")
    parser.add_argument("--record", action="store_true", help="append to the record")
    parser.add_argument("--first-fit", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.first_fit is not None:
        found = first_fit(options.first_fit)
        if options.record:
            record(f"{options.first_fit} x {N_FEATURES}", found)
        return
    env = dict(os.environ)
    if options.checkout is not None:
        env["PYTHONPATH"] = str(options.checkout.resolve() / "src")
    if not options.compile:
        best: dict[str, float] = {}
        for _ in range(3):
            words = subprocess.check_output([sys.executable, "-c", CODE], env=env)
            found = dict(zip(TIMED, map(float, words.split()), strict=True))
            print(
                ", ".join(f"{name} {value:.2f} CPU s" for name, value in found.items())
            )
            best = {name: min(best.get(name, v), v) for name, v in found.items()}
        if options.record:
            record("100 x 1000", best)
        return
    with tempfile.TemporaryDirectory() as folder:
        env |= {"NUMBA_CACHE_DIR": folder, "OMP_NUM_THREADS": "1"}
        for size in SIZES:
            command = [sys.executable, __file__, "--first-fit", str(size)]
            command += ["--record"] * options.record
            subprocess.run(command, check=True, env=env)


if __name__ == "__main__":
    main()
