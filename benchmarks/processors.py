"""Show whether one seed gives the same clusters on other processors.

    python benchmarks/processors.py DATA [--datasets DS-XX ...] [--samples N] [--record]

DATA holds ``DS-XX_name.npz`` files with X and y. Other processors are imitated: BLAS
takes the kernels of another one where ``OPENBLAS_CORETYPE`` says so, and numba compiles
for any x86-64 with ``NUMBA_CPU_NAME=generic``. Each setting has a process of its own,
whose members and consensus labels are compared with those of this machine as it is.
``--samples`` takes every so-many-th row of larger datasets, about N of them.
``--record`` appends what differs to benchmarks/results/machines.jsonl.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from records import append_lines, commit_of_source
from sklearn.metrics import adjusted_rand_score

Labels = NDArray[np.integer[Any]]
Results = dict[str, NDArray[Any]]

CORES = ("Nehalem", "Sandybridge", "Haswell", "Zen", "SkylakeX")
THIS_MACHINE = "this machine"
SETTINGS: dict[str, dict[str, str]] = {
    THIS_MACHINE: {},
    **{core: {"OPENBLAS_CORETYPE": core} for core in CORES},
    "generic": {"NUMBA_CPU_NAME": "generic"},
}
CONSENSUS = {"HC": "hierarchical", "SC": "spectral", "BG": "bipartite"}


def number_by_first_samples(labels: Labels) -> Labels:
    """Number the clusters in the order of their first samples, -1 staying what it is.

    Examples
    --------
    >>> number_by_first_samples(np.array([7, 7, -1, 2, 7]))
    array([ 0,  0, -1,  1,  0])
    """
    found, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    present = found >= 0
    rank = np.full(found.size, -1)
    rank[present] = np.argsort(np.argsort(first[present]))
    return rank[inverse]


def count_differences(ours: Labels, theirs: Labels) -> tuple[int, int]:
    """Count the columns that are other partitions, and those numbered otherwise."""
    other = renumbered = 0
    for a, b in zip(ours.T, theirs.T, strict=True):
        if not np.array_equal(a, b):
            same = np.array_equal(
                number_by_first_samples(a), number_by_first_samples(b)
            )
            other += not same
            renumbered += same
    return other, renumbered


def compare(
    ours: dict[str, Results], others: dict[str, dict[str, Results]]
) -> list[dict[str, Any]]:
    """Count what differs for each setting and dataset.

    Members that are other partitions, those that are numbered otherwise, and consensus
    labels that are not the same.
    """
    found: list[dict[str, Any]] = []
    for setting, results in others.items():
        for name, own in ours.items():
            theirs = results[name]
            other, renumbered = count_differences(own["members"], theirs["members"])
            differ = [e for e in CONSENSUS if not np.array_equal(own[e], theirs[e])]
            found.append(
                {
                    **{"setting": setting, "dataset": name},
                    **{"members": own["members"].shape[1], "consensus": len(CONSENSUS)},
                    **{"other": other, "renumbered": renumbered, "differ": differ},
                }
            )
    return found


def row_of_table(name: str, setting: str, ours: Results, theirs: Results) -> str:
    """Return the line of one dataset under one setting."""
    n_members = ours["members"].shape[1]
    other, renumbered = count_differences(ours["members"], theirs["members"])
    cells = [f"{100 * share / n_members:.0f} %" for share in (other, renumbered)]
    for short in CONSENSUS:
        same = np.array_equal(ours[short], theirs[short])
        index = adjusted_rand_score(ours[short], theirs[short])
        cells.append("same" if same else f"ARI {index:.3f}")
    return f"| {name} | {setting} | {' | '.join(cells)} |"


def thinned(X: NDArray[Any], n_samples: int | None) -> slice:
    """Return the rows to take of more than so many samples."""
    return slice(None, None, max(1, len(X) // n_samples) if n_samples else 1)


def write_results(options: argparse.Namespace, out: Path) -> None:
    """Cluster every dataset in this process."""
    from mdec import generate_ensemble
    from mdec.consensus import CONSENSUS as FUNCTIONS

    for path in find_datasets(options):
        with np.load(path, allow_pickle=False) as archive:
            rows = thinned(archive["y"], options.samples)
            X, y = archive["X"][rows], archive["y"][rows]
        begun = time.process_time()
        ensemble = generate_ensemble(
            X, ensemble_size=options.members, random_state=options.seed
        )
        seconds = time.process_time() - begun
        labels = {
            short: FUNCTIONS[name](
                ensemble, len(np.unique(y)), random_state=options.seed
            )
            for short, name in CONSENSUS.items()
        }
        np.savez(
            out / f"{path.stem.split('_')[0]}.npz",
            members=ensemble.labels,
            seconds=seconds,
            **labels,
        )


def find_datasets(options: argparse.Namespace) -> list[Path]:
    """Return the files of the datasets that are asked for."""
    found = sorted(options.data.glob("DS-*.npz"))
    wanted = options.datasets or [path.name.split("_")[0] for path in found]
    chosen = [path for path in found if path.name.split("_")[0] in wanted]
    if not chosen or len(chosen) < len(set(wanted)):
        raise SystemExit(f"{options.data} does not hold all of {', '.join(wanted)}.")
    return chosen


def run_setting(setting: str, folder: Path) -> dict[str, Results]:
    """Run this command again under a setting; return its results by dataset."""
    out = folder / setting.replace(" ", "-")
    out.mkdir()
    changes = SETTINGS[setting]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **changes}
    if "NUMBA_CPU_NAME" in changes:
        environment["NUMBA_CACHE_DIR"] = str(folder / "numba")
    command = [sys.executable, *sys.argv, "--out", str(out)]
    subprocess.run(command, env=environment, check=True)
    return {path.stem: dict(np.load(path)) for path in sorted(out.glob("*.npz"))}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--datasets", nargs="+", default=[], metavar="DS-XX")
    parser.add_argument("--samples", type=int, help="about so many rows at most")
    parser.add_argument("--members", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="settings at a time")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.out is not None:
        write_results(options, options.out)
        return 0
    find_datasets(options)
    with TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        found = pool.map(lambda each: run_setting(each, Path(folder)), SETTINGS)
        results = dict(zip(SETTINGS, found, strict=True))
    ours = results.pop(THIS_MACHINE)
    print("| dataset | setting | other partitions | numbered otherwise |", end="")
    print("".join(f" {short} |" for short in CONSENSUS))
    print("|---" * (4 + len(CONSENSUS)) + "|")
    for name, own in ours.items():
        for setting, theirs in results.items():
            print(row_of_table(name, setting, own, theirs[name]))
    found = compare(ours, results)
    print("\n| setting | other partitions | numbered otherwise | consensus |")
    print("|---" * 4 + "|")
    for setting in results:
        rows = [row for row in found if row["setting"] == setting]
        members, labels = (
            sum(row[e] for row in rows) for e in ("members", "consensus")
        )
        other, renumbered = (
            sum(row[e] for row in rows) for e in ("other", "renumbered")
        )
        differ = sum(len(row["differ"]) for row in rows)
        counts = f"{other} of {members} | {renumbered} of {members}"
        print(f"| {setting} | {counts} | {differ} of {labels} |")
    if options.record:
        made = {"what": "labels", "commit": commit_of_source()}
        append_lines("machines", [{**made, **row} for row in found])
    return int(any(row["other"] or row["differ"] for row in found))


if __name__ == "__main__":
    sys.exit(main())
