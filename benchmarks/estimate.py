"""Fit the costs by which `mdec fit` estimates its work before it begins.

    python benchmarks/estimate.py

Base clusterings of made-up tables are timed in processor seconds, on graphs and with
landmarks. Costs are fitted to relative errors, none below zero. Prints each table with
its time and that of `mdec.base.costs.SECONDS`, and the costs that suit these times.
"""

from __future__ import annotations

import time

import numpy as np
from growth import mixture
from scipy.optimize import nnls

import mdec
from mdec.base.costs import SECONDS, list_terms

SHAPES = {
    "graph": (
        *((n, d) for n in (200, 500, 1000, 2000, 4000) for d in (20, 200, 2000)),
        *((1000, 19_000), (2100, 19_000), (4000, 8000)),
    ),
    "landmark": (
        *((n, 50) for n in (2000, 5000, 10_000, 40_000)),
        *((10_000, 500), (5000, 2000), (10_000, 2000)),
    ),
}
MEMBERS = 8


def measure(base: str, n_samples: int, n_features: int) -> float:
    """Return the processor seconds of a base clustering."""
    X = mixture(n_samples, n_features)
    start = time.process_time()
    mdec.generate_ensemble(X, ensemble_size=MEMBERS, base=base, random_state=0)
    return (time.process_time() - start) / MEMBERS


def main() -> None:
    measure("graph", 300, 20)  # compiles
    measure("landmark", 300, 20)
    for base, shapes in SHAPES.items():
        terms, taken = [], []
        for n, d in shapes:
            terms.append(list_terms(base, n, 0.5 * d))  # of max_features=0.5
            taken.append(measure(base, n, d))
            told = np.dot(terms[-1], SECONDS[base])
            print(
                f"{base:9} {n:6} x {d:<6} {taken[-1]:8.4f} s, estimated {told:8.4f} s"
            )
        scaled = np.array(terms) / np.array(taken)[:, None]
        costs, _ = nnls(scaled, np.ones(len(taken)))
        ratios = scaled @ costs
        print(f"{base}: {', '.join(f'{cost:.1e}' for cost in costs)}; estimates are")
        print(f"{ratios.min():.2f} to {ratios.max():.2f} of these times")


if __name__ == "__main__":
    main()
