"""Fit the costs by which `mdec fit` estimates its work before it begins.

    python benchmarks/estimate.py        # times base clusterings and fits their costs
    python benchmarks/estimate.py far    # what many rows on many workers would take

Base clusterings of made-up tables are timed in processor seconds, on graphs and with
landmarks; up to ten million rows come from the record of `many_rows.py npy`, of which
the sizes in CHECKED are not fitted but compared. Costs are fitted to relative errors,
none below zero. Prints each table with its time and that by
`mdec.estimator.costs.SECONDS`, and the costs that suit these times.

What `far` prints follows from these costs, from the bytes that the method has to read
and from what `many_rows.py dask` was seen to send, in proportion to the rows.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from growth import mixture
from records import read_lines
from scipy.optimize import nnls

import mdec
from mdec.estimator.costs import SECONDS, estimate_seconds, list_terms
from mdec.rows.blocks import BLOCK_ROWS

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
CHECKED = 300_000, 3_000_000

# The tables that `far` speaks of: features, members, workers of two cores, and what the
# scheduler of Dask takes for a task, as its documentation says.
FAR_FEATURES, FAR_MEMBERS, FAR_WORKERS, CORES = 64, 50, 64, 2
TASK_SECONDS, TASKS_PER_BLOCK = 1e-3, 5


def measure(base: str, n_samples: int, n_features: int) -> float:
    """Return the processor seconds of a base clustering."""
    X = mixture(n_samples, n_features)
    start = time.process_time()
    mdec.generate_ensemble(X, ensemble_size=MEMBERS, base=base, random_state=0)
    return (time.process_time() - start) / MEMBERS


def many_rows(kind: str = "npy") -> dict[int, dict[str, Any]]:
    """Return the newest record of each number of rows."""
    lines = read_lines("many-rows")
    return {each["rows"]: each for each in lines if each["what"] == kind}


def print_far() -> None:
    """Print what up to 10^9 rows would take on many workers."""
    # Both clients of a record make base clusterings, two members twice at the most.
    per_row = max(
        1e9 * each["loopback_gb"] / each["rows"] / each["members"]
        for each in many_rows("dask").values()
    )
    print("| rows | CPU h | h on the workers | read, TB | sent, TB | scheduler, h |")
    print("|---|---|---|---|---|---|")
    for rows in (10**6, 10**7, 10**8, 10**9):
        one = estimate_seconds("landmark", rows, 0.5 * FAR_FEATURES)
        cpu = FAR_MEMBERS * one / 3600
        tasks = FAR_MEMBERS * TASKS_PER_BLOCK * -(-rows // BLOCK_ROWS)
        cells = (
            f"{cpu:.3g}",
            f"{cpu / FAR_WORKERS / CORES:.2g}",
            f"{FAR_MEMBERS * rows * FAR_FEATURES * 4 / 1e12:.3g}",
            f"{FAR_MEMBERS * rows * per_row / 1e12:.3g}",
            f"{tasks * TASK_SECONDS / 3600:.2g}",
        )
        print(f"| {rows:.0e} | {' | '.join(cells)} |")


def main() -> None:
    if sys.argv[1:] == ["far"]:
        print_far()
        return
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
        if base == "landmark":
            for n, record in sorted(many_rows().items()):
                one = record["cpu_seconds"] / record["members"]
                term = list_terms(base, n, 0.5 * record["features"])
                ratio = np.dot(term, SECONDS[base]) / one
                print(f"{n} rows: {one:.1f} s a member, estimated {ratio:.2f} of it")
                if n not in CHECKED:
                    terms.append(term)
                    taken.append(one)
        scaled = np.array(terms) / np.array(taken)[:, None]
        costs, _ = nnls(scaled, np.ones(len(taken)))
        ratios = scaled @ costs
        print(f"{base}: {', '.join(f'{cost:.1e}' for cost in costs)}; estimates are")
        print(f"{ratios.min():.2f} to {ratios.max():.2f} of these times")


if __name__ == "__main__":
    main()
