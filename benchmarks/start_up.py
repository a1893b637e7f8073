"""Time the import and a small fit, in a cold process and in a warm one.

    python benchmarks/start_up.py

The cold process finds the compiled loops on disk; with ``--compile`` it starts from an
empty cache, as the first run after an installation does.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile

CODE = """
import time
start = time.perf_counter()
import mdec
imported = time.perf_counter()
import sklearn.base
theirs = time.perf_counter()
mdec.MDEC()
loaded = time.perf_counter()
import numpy as np
X = np.random.default_rng(0).normal(size=(100, 1000))
ready = time.perf_counter()
mdec.MDEC(n_clusters=4, random_state=0).fit(X)
cold = time.perf_counter()
mdec.MDEC(n_clusters=4, random_state=1).fit(X)
warm = time.perf_counter()
print(f"import {imported - start:.2f} s, then scikit-learn {theirs - imported:.2f} s "
      f"and MDEC() {loaded - theirs:.2f} s, fit of 100 x 1000: cold "
      f"{cold - ready:.2f} s, warm {warm - cold:.2f} s")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compile", action="store_true", help="empty the cache first")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cache = {"NUMBA_CACHE_DIR": folder} if options.compile else {}
        runs = 1 if options.compile else 3
        for _ in range(runs):
            subprocess.run(
                [sys.executable, "-c", CODE], check=True, env=os.environ | cache
            )


if __name__ == "__main__":
    main()
