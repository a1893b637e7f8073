"""Compare the speed of checkouts of mdec, in turns.

    python benchmarks/race_checkouts.py DATA BEFORE AFTER [MORE ...] [--rounds 7]

Each round runs every CHECKOUT/src once, in a process of its own: generation of three
datasets on one core, weights and the consensus functions of 8000 samples. Printed are
the CPU times of the first, and for the others the ratios of least times and of medians
to it; on a machine with other work the least times tell more.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from statistics import median

import numpy as np

GENERATED = {"DS-11": 60, "DS-26": 20, "DS-30": 3}
N_SAMPLES, N_MEMBERS = 8000, 100


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def measured(data: Path) -> dict[str, float]:
    """Return CPU seconds of the package that is on the path."""
    import mdec
    from mdec.consensus import CONSENSUS
    from mdec.ensemble import Ensemble
    from mdec.weights import ensemble_driven_cluster_index

    warnings.simplefilter("ignore")
    found = {}
    for name, n_members in GENERATED.items():
        X = np.load(next(data.glob(f"{name}*.npz")))["X"]
        settings = {"random_state": 0, "n_jobs": 1}
        mdec.generate_ensemble(X[:1500], ensemble_size=2, **settings)
        spent = seconds(
            lambda X=X, m=n_members, settings=settings: mdec.generate_ensemble(
                X, ensemble_size=m, **settings
            )
        )
        found[f"generation {X.shape[0]} x {X.shape[1]}"] = spent / n_members
    labels = import_module("memory").drawn_labels(N_SAMPLES, N_MEMBERS)
    few = Ensemble.from_labels(labels[:300, :10])
    weights = ensemble_driven_cluster_index(Ensemble(labels))
    whole = Ensemble(labels)
    found["weights"] = seconds(lambda: ensemble_driven_cluster_index(whole))
    for name, consensus in CONSENSUS.items():
        consensus(few, 3, random_state=0)
        ensemble = Ensemble(labels)
        found[name] = seconds(
            lambda c=consensus, e=ensemble: c(e, 10, weights, random_state=0)
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder of DS-XX_name.npz files")
    parser.add_argument("checkouts", type=Path, nargs="*")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    if not options.checkouts:
        print(json.dumps(measured(options.data)))
        return
    runs: dict[Path, list[dict[str, float]]] = {each: [] for each in options.checkouts}
    for _ in range(options.rounds):
        for checkout, found in runs.items():
            paths = [checkout.resolve() / each for each in ("src", "benchmarks")]
            env = {"PYTHONPATH": os.pathsep.join(map(str, paths))}
            threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
            done = subprocess.run(
                [sys.executable, __file__, options.data.resolve()],
                env={**os.environ, **env, **threads},
                check=True,
                capture_output=True,
                text=True,
            )
            found.append(json.loads(done.stdout.splitlines()[-1]))
    first, *others = runs.values()
    for line in first[0]:
        times = [each[line] for each in first]
        text = f"{line:24s} {1e3 * min(times):9.2f} ms"
        for other in others:
            theirs = [each[line] for each in other]
            text += f"   least {min(theirs) / min(times):5.2f}"
            text += f"   median {median(theirs) / median(times):5.2f}"
        print(text)


if __name__ == "__main__":
    main()
