"""Figures of members that cluster a share of the samples.

Usage: python benchmarks/drawn_samples.py speed
       python benchmarks/drawn_samples.py scores DATA [XX ...]

`speed` prints the processor seconds of 20 members of Gaussian groups in 100 features,
and of each consensus function after them. `scores` prints the NMI (in percent, over the
larger entropy, mean of three seeds) of each consensus function on the sets of DATA, a
folder of DS-XX_name.npz files with X and y; the numbers XX choose some of them.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from mdec import generate_ensemble
from mdec._support.parallel import single_threaded_blas
from mdec.bench.evaluation import nmi_max
from mdec.consensus import CONSENSUS
from mdec.weights import ensemble_driven_cluster_index

RATIOS = (1.0, 0.8, 0.5)
SIZES = (4000, 8000, 16_000)
SETS = ("01", "02", "05", "08", "13", "17", "24")
SEEDS = range(3)


def row(*cells: object) -> None:
    """Print one row of a Markdown table."""
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def speed() -> None:
    """Print what members and consensus functions take."""
    row("N", "max_samples", "20 members", "ECI", *CONSENSUS)
    rng = np.random.default_rng(0)
    for size in SIZES:
        y = rng.integers(0, 10, size)
        X = rng.normal(size=(10, 100))[y] + rng.normal(size=(size, 100))
        for ratio in RATIOS:
            taken = [time.process_time()]
            ensemble = generate_ensemble(
                X, ensemble_size=20, max_samples=ratio, n_jobs=1, random_state=0
            )
            taken.append(time.process_time())
            with single_threaded_blas():
                weights = ensemble_driven_cluster_index(ensemble)
                taken.append(time.process_time())
                for consensus in CONSENSUS.values():
                    consensus(ensemble, 10, weights, random_state=0)
                    taken.append(time.process_time())
            row(size, ratio, *(f"{spent:.1f}" for spent in np.diff(taken)))


def scores(folder: str, *only: str) -> None:
    """Print the NMI by set and ratio."""
    row("set", "max_samples", *CONSENSUS)
    totals: dict[float, list[np.ndarray]] = {ratio: [] for ratio in RATIOS}
    for number in only or SETS:
        (path,) = Path(folder).glob(f"DS-{number}_*.npz")
        with np.load(path) as archive:
            X, y = archive["X"].astype(np.float64), archive["y"]
        n_classes = np.unique(y).size
        for ratio in RATIOS:
            found = []
            for seed in SEEDS:
                ensemble = generate_ensemble(
                    X, max_samples=ratio, n_jobs=1, random_state=seed
                )
                with single_threaded_blas():
                    weights = ensemble_driven_cluster_index(ensemble)
                    labels = [
                        consensus(ensemble, n_classes, weights, random_state=seed)
                        for consensus in CONSENSUS.values()
                    ]
                found.append([100 * nmi_max(y, each) for each in labels])
            mean = np.mean(found, axis=0)
            totals[ratio].append(mean)
            row(path.stem, ratio, *(f"{score:.1f}" for score in mean))
    for ratio, means in totals.items():
        row("mean", ratio, *(f"{score:.1f}" for score in np.mean(means, axis=0)))


if __name__ == "__main__":
    {"speed": speed, "scores": scores}[sys.argv[1]](*sys.argv[2:])
