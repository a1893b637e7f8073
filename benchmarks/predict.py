"""Time `predict` of one row and of many, and the memory that it takes.

    python benchmarks/predict.py DATA [--checkout CHECKOUT] [--members 100] [--record]

DATA holds ``DS-XX_name.npz`` files; the model is of the first 1600 rows of DS-26
(1600 x 649), the new rows are the other 400. For each base and preparation a process of
its own fits, warms the compiled loops on another model, and then asks in turn for one
row, for another row and for all 400; printed are CPU seconds, and the peak above what
the fitted model holds. ``--checkout`` takes the package from CHECKOUT/src, ``--record``
appends the seconds to the record that docs/performance.md shows.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import time
import tracemalloc
import warnings
from copy import deepcopy
from pathlib import Path

import numpy as np
from records import append_lines, commit_of_source

N_TRAINING = 1600
CASES = {
    "graph": {"base": "graph"},
    "graph, diversified": {"base": "graph", "preparation": "diversified"},
    "landmark": {"base": "landmark"},
}


def measured(data: Path, case: str, n_members: int, *, recorded: bool) -> str:
    """Return a row of the table, by the package that is on the path."""
    from mdec import MDEC

    warnings.simplefilter("ignore")
    X = np.load(next(data.glob("DS-26*.npz")))["X"].astype(np.float64)
    X = X[np.random.default_rng(0).permutation(len(X))]
    new = X[N_TRAINING:]
    settings = {"n_clusters": 10, "random_state": 0, "n_jobs": 1, **CASES[case]}
    few = MDEC(ensemble_size=2, **settings).fit(X[:N_TRAINING])
    few.predict(new)
    model = MDEC(ensemble_size=n_members, **settings)
    start = time.process_time()
    model.fit(X[:N_TRAINING])
    spent = [time.process_time() - start]
    digest = hashlib.sha256()
    other = deepcopy(model)
    for rows in (new[:1], new[1:2], new, new):
        start = time.process_time()
        labels = model.predict(rows)
        spent.append(time.process_time() - start)
        digest.update(labels.astype(np.int32).tobytes())
    tracemalloc.start()
    other.predict(new)
    peak = tracemalloc.get_traced_memory()[1]
    if recorded:
        names = ("fit", "one row", "another row", "400 rows", "400 rows again")
        found = dict(zip(names, (round(each, 3) for each in spent), strict=True))
        line = {"name": f"predict {case}", **found, "commit": commit_of_source()}
        append_lines("performance", [line])
    text = " ".join(f"{each:9.3f}" for each in spent)
    return f"{case:20s} {text} {peak / 1e6:8.0f} MB  {digest.hexdigest()[:8]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder of DS-XX_name.npz files")
    parser.add_argument("--checkout", type=Path, help="take the package from here")
    parser.add_argument("--members", type=int, default=100)
    parser.add_argument("--record", action="store_true", help="append to the record")
    parser.add_argument("--case", choices=list(CASES), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case is not None:
        given = options.data, options.case, options.members
        print(measured(*given, recorded=options.record))
        return
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    if options.checkout is not None:
        env["PYTHONPATH"] = str(options.checkout.resolve() / "src")
    print(
        "CPU seconds               fit   one row   another  400 rows     again     "
        "peak  labels"
    )
    for case in CASES:
        command = [sys.executable, __file__, str(options.data), "--case", case]
        command += ["--members", str(options.members)]
        command += ["--record"] * options.record
        subprocess.run(command, check=True, env=env)


if __name__ == "__main__":
    main()
