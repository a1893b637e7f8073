"""Measure the peak memory of each step above its data, in fresh processes.

    python benchmarks/memory.py [NAME ...] [--record]

Ensembles are generated label matrices of the sizes that N samples would have; the data
of the generation step is a generated mixture. A million samples have labels without a
gap in the spectrum, as landmarks give them. Prints megabytes, seconds
and processor seconds; `--record` appends them to the record that docs/performance.md
shows.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from records import append_lines, commit_of_source

CASES = {
    "generation-11000": "under 500 MB",
    "hierarchical-11000": "under 500 MB",
    "spectral-11000": "under 300 MB",
    "bipartite-11000": "under 300 MB",
    "hierarchical-50000": "under 8000 MB",
    "spectral-200000": "under 4000 MB",
    "bipartite-200000": "under 4000 MB",
    "spectral-1000000": "under 4000 MB",
    "bipartite-1000000": "under 4000 MB",
}

# From here on labels are as landmarks give them.
LANDMARK_SAMPLES = 1_000_000


def drawn_labels(n_samples: int, n_members: int = 100) -> np.ndarray:
    """Noisy partitions of ten groups, with 2 to sqrt(N) clusters each."""
    rng = np.random.default_rng(0)
    truth = rng.integers(10, size=n_samples)
    part = rng.random((n_samples, 3))
    labels = np.empty((n_samples, n_members), dtype=np.int32)
    for m in range(n_members):
        k = int(rng.integers(2, np.sqrt(n_samples), endpoint=True))
        cut = (part @ rng.normal(size=3) * k / 20).astype(np.int64)
        labels[:, m] = (truth * max(1, k // 10) + cut) % k
        noise = rng.random(n_samples) < 0.1
        labels[noise, m] = rng.integers(k, size=int(noise.sum()))
    return labels


def gapless_labels(n_samples: int, n_members: int = 100) -> np.ndarray:
    """Noisy cells of 2 to 100 points in a cube, whose eigenvalues have no gap."""
    rng = np.random.default_rng(0)
    X = rng.random((n_samples, 4), dtype=np.float32)
    labels = np.empty((n_samples, n_members), dtype=np.int32)
    for m in range(n_members):
        points = X[rng.choice(n_samples, int(rng.integers(2, 101)), replace=False)]
        half = 0.5 * (points**2).sum(axis=1)
        for first in range(0, n_samples, 2**16):
            rows = slice(first, first + 2**16)
            labels[rows, m] = (half - X[rows] @ points.T).argmin(axis=1)
        noise = rng.random(n_samples) < 0.1
        labels[noise, m] = rng.integers(len(points), size=int(noise.sum()))
    return labels


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def measure(name: str, *, recorded: bool = False) -> None:
    step, size = name.rsplit("-", 1)
    n_samples = int(size)
    import mdec
    from mdec.consensus import CONSENSUS
    from mdec.consensus.graph_cuts import cut_blocks
    from mdec.ensemble import Ensemble

    if step == "generation":
        rng = np.random.default_rng(0)
        centers = rng.normal(size=(10, 256))
        X = centers[rng.integers(10, size=n_samples)]
        X = (X + rng.normal(size=X.shape)).astype(np.float32)
        mdec.generate_ensemble(X[:1500], ensemble_size=1, random_state=0)
        before, start, busy = resident(), time.perf_counter(), time.process_time()
        mdec.generate_ensemble(X, ensemble_size=3, random_state=0)
    else:
        warm = Ensemble.from_labels(drawn_labels(300, 5))
        CONSENSUS[step](warm, 3, random_state=0)
        cut_blocks(warm, 3, np.ones(warm.n_base_clusters), 0)
        drawn = gapless_labels if n_samples >= LANDMARK_SAMPLES else drawn_labels
        ensemble = Ensemble(drawn(n_samples))
        before, start, busy = resident(), time.perf_counter(), time.process_time()
        CONSENSUS[step](ensemble, 10, random_state=0)
    seconds = time.perf_counter() - start
    busy = time.process_time() - busy
    taken = f"{peak() - before:>9.0f} MB{seconds:>9.1f} s{busy:>9.1f} CPU s"
    print(f"{name:<22}{taken}   {CASES[name]}")
    if recorded:
        found = {"mb": round(peak() - before), "seconds": round(seconds, 2)}
        found |= {"cpu_seconds": round(busy, 2), "commit": commit_of_source()}
        append_lines("performance", [{"name": f"memory {name}", **found}])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=", ".join(CASES))
    parser.add_argument("--here", action="store_true", help="measure in this process")
    parser.add_argument("--record", action="store_true", help="append to the record")
    options = parser.parse_args()
    flags = ["--record"] if options.record else []
    for name in options.names or CASES:
        if options.here:
            measure(name, recorded=options.record)
        else:
            command = [sys.executable, __file__, "--here", name, *flags]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
