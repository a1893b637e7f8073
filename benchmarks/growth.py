"""Measure how time grows with samples, members and features, and fit exponents.

    python benchmarks/growth.py [--only "hierarchical (M"] [--figure FILE.svg]
        [--record]
    python benchmarks/growth.py --cuts

Generation makes a few members of a generated mixture on one core; the consensus
functions run on generated label matrices of the size that N samples would have, the
second of two runs, whose memory is at hand. Seconds are those of the processor. The
exponent is the slope of log seconds over the upper half of each range. With
``--cuts`` the two forms of the transfer cut are timed against each other instead.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from memory import drawn_labels
from numpy.typing import NDArray
from records import append_lines, commit_of_source

import mdec
from mdec._support.parallel import single_threaded_blas
from mdec.consensus import CONSENSUS
from mdec.consensus.graph_cuts import cut_blocks
from mdec.ensemble import Ensemble
from mdec.weights import ensemble_driven_cluster_index

SAMPLES = (1000, 2000, 4000, 8000, 16000, 32000)
MEMBERS = (20, 50, 100, 200, 300)
FEATURES = (100, 300, 1000, 3000, 10000, 30000)


def mixture(n_samples: int, n_features: int) -> NDArray[np.float32]:
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(10, n_features)).astype(np.float32)
    noise = rng.standard_normal((n_samples, n_features), dtype=np.float32)
    return centers[rng.integers(10, size=n_samples)] + noise


def generation(n_samples: int, n_features: int, n_members: int = 3) -> float:
    X = mixture(n_samples, n_features)
    start = time.process_time()
    mdec.generate_ensemble(
        X, ensemble_size=n_members, base_n_clusters_range=(20, 20), random_state=0
    )
    return (time.process_time() - start) / n_members


def consensus(name: str) -> Callable[[int, int], float]:
    def seconds(n_samples: int, n_members: int) -> float:
        ensemble = Ensemble(drawn_labels(n_samples, n_members))
        weights = ensemble_driven_cluster_index(ensemble)
        taken = []
        for _ in range(2):
            again = Ensemble(ensemble.labels)
            with single_threaded_blas():
                start = time.process_time()
                CONSENSUS[name](again, 10, weights, random_state=0)
            taken.append(time.process_time() - start)
        return taken[-1]

    return seconds


def cut_seconds(n_samples: int) -> tuple[float, float]:
    """Return CPU seconds of the bipartite consensus: sparse graph, and blocks."""
    ensemble = Ensemble(drawn_labels(n_samples, 100))
    weights = ensemble_driven_cluster_index(ensemble)
    seconds = []
    with single_threaded_blas():
        for cluster in (CONSENSUS["bipartite"], cut_blocks):
            start = time.process_time()
            cluster(ensemble, 10, weights, random_state=0)
            seconds.append(time.process_time() - start)
    return seconds[0], seconds[1]


def index_seconds(n_samples: int, n_members: int) -> float:
    ensemble = Ensemble(drawn_labels(n_samples, n_members))
    start = time.process_time()
    ensemble_driven_cluster_index(ensemble)
    return time.process_time() - start


def exponent(sizes: tuple[int, ...], seconds: list[float]) -> float:
    half = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[half:]), np.log(seconds[half:]), 1)[0])


def measure(only: str) -> dict[str, tuple[tuple[int, ...], list[float]]]:
    """Return sizes and seconds of each curve whose title has some words in it."""
    generation(1200, 100)
    for name in CONSENSUS:
        consensus(name)(1000, 5)
    consensus("hierarchical")(5000, 5)
    curves: dict[str, tuple[tuple[int, ...], Callable[[int], float]]] = {
        "generation, per member (D = 200) over N": (
            SAMPLES,
            lambda n: generation(n, 200),
        ),
        "generation, per member (N = 1500) over D": (
            FEATURES,
            lambda d: generation(1500, d),
        ),
        "weights (M = 100) over N": (SAMPLES, lambda n: index_seconds(n, 100)),
        "weights (N = 4000) over M": (MEMBERS, lambda m: index_seconds(4000, m)),
    }
    for name in CONSENSUS:
        seconds = consensus(name)
        curves[f"{name} (M = 100) over N"] = SAMPLES, partial(seconds, n_members=100)
        curves[f"{name} (N = 4000) over M"] = MEMBERS, partial(seconds, 4000)
    return {
        title: (sizes, [seconds(size) for size in sizes])
        for title, (sizes, seconds) in curves.items()
        if only in title
    }


def draw(curves: dict[str, tuple[tuple[int, ...], list[float]]], path: str) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
    for axis, variable in zip(axes, "NMD", strict=True):
        for title, (sizes, seconds) in curves.items():
            name, over = title.rsplit(" over ", 1)
            if over == variable:
                axis.loglog(sizes, seconds, marker="o", label=name)
        axis.set_xlabel({"N": "samples", "M": "members", "D": "features"}[variable])
        axis.set_ylabel("seconds")
        if variable == "M":
            axis.set_xticks(MEMBERS, [str(m) for m in MEMBERS])
            axis.minorticks_off()
        axis.grid(alpha=0.3)
        axis.legend(fontsize=7)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", help="where to draw the curves")
    parser.add_argument("--only", default="", help="words in the titles of the rows")
    parser.add_argument("--cuts", action="store_true", help="time the transfer cuts")
    parser.add_argument("--record", action="store_true", help="append to the record")
    options = parser.parse_args()
    if options.cuts:
        cut_seconds(300)
        for n_samples in (250, 2000, 11000):
            sparse, blocks = cut_seconds(n_samples)
            print(f"N = {n_samples}: sparse {sparse:.2f} s, blocks {blocks:.2f} s")
        return
    curves = measure(options.only)
    print("| what | sizes | seconds | exponent |")
    print("|---|---|---|---|")
    for title, (sizes, seconds) in curves.items():
        times = ", ".join(f"{value:.3g}" for value in seconds)
        slope = exponent(sizes, seconds)
        print(f"| {title} | {sizes[0]} to {sizes[-1]} | {times} | {slope:.2f} |")
        if options.record:
            found = {"sizes": sizes, "seconds": seconds, "exponent": round(slope, 3)}
            line = {"name": f"growth {title}", **found, "commit": commit_of_source()}
            append_lines("performance", [line])
    if options.figure:
        draw(curves, options.figure)


if __name__ == "__main__":
    main()
