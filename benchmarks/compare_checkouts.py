"""Show whether two checkouts of mdec give the same labels.

    python benchmarks/compare_checkouts.py labels CHECKOUT DATA --out FOLDER
    python benchmarks/compare_checkouts.py compare FOLDER_A FOLDER_B

DATA holds ``DS-XX_name.npz`` files with X and y. `labels` runs the package in
CHECKOUT/src in a process of its own and writes one file for each dataset, base, kernel
and seed; a run that was stopped goes on with the files that are missing or that other
source code wrote. ``--part`` and ``--datasets`` do a share of the work. `compare`
prints a table and exits with 1 if anything differs: labels, members and predictions
must be equal, cluster weights within 1e-12 and confidences within 1e-9. Clusters are
numbered by first samples before they are compared, because early versions numbered them
otherwise. Under the table stands how many members and labels agree in all.

Only the public names that all versions have are used, so that the checkouts may be
laid out as they like.
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

Array = NDArray[Any]

MEMBERS = 20
SEEDS = (0, 1)
KERNELS = ("scaled_gaussian", "scaled_exponential")
CONSENSUS = ("hierarchical", "spectral", "bipartite")
NEW_ROWS = 20

# From so many features on a block has 1024 rows, as few as it gets. The part "dask"
# repeats columns up to it, so that its datasets have two blocks each.
WIDE = 2**14

EQUAL = (*CONSENSUS, "members", "predicted")
CLOSE = {"weights": 1e-12, "confidence": 1e-9}


@dataclass(frozen=True)
class Part:
    """A way to fit; without names of datasets, all of them."""

    base: str
    # Not the same for all parts, because `predict` differs between them.
    consensus: str
    device: str = "cpu"
    datasets: tuple[str, ...] = ()
    on_cluster: bool = False


PARTS = {
    "graph": Part("graph", "hierarchical"),
    "landmark": Part("landmark", "hierarchical"),
    "torch": Part(
        "graph", "spectral", device="torch", datasets=("DS-03", "DS-16", "DS-24")
    ),
    "dask": Part(
        "landmark",
        "bipartite",
        datasets=("DS-20", "DS-24", "DS-26"),
        on_cluster=True,
    ),
}


def source_digest(source: Path) -> str:
    """Return what tells one state of the package from another."""
    digest = hashlib.sha256()
    for path in sorted(source.glob("mdec/**/*.py")):
        digest.update(str(path.relative_to(source)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def found_datasets(folder: Path, wanted: list[str]) -> dict[str, Path]:
    found = {path.name.split("_")[0]: path for path in sorted(folder.glob("DS-*.npz"))}
    missing = sorted(set(wanted) - set(found))
    if missing or not found:
        raise SystemExit(
            f"{folder} has no {', '.join(missing) or 'DS-XX_name.npz'}; it has "
            f"{', '.join(found) or 'no dataset'}."
        )
    return {name: found[name] for name in wanted or found}


@contextmanager
def local_cluster() -> Iterator[None]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster),
    ):
        yield


def brought(array: Any) -> Array:
    """Return an array that may be on a cluster."""
    return np.asarray(array.compute() if hasattr(array, "compute") else array)


def fitted(path: Path, part: Part, kernel: str, seed: int) -> dict[str, Array]:
    """Return all that is compared of one ensemble."""
    from mdec import MDEC

    with np.load(path, allow_pickle=False) as archive:
        X, n_clusters = archive["X"], len(np.unique(archive["y"]))
    rows: Any = X
    repeats = 1
    if part.on_cluster:
        from dask import array

        repeats = -(-WIDE // X.shape[1])
        X = X.astype(np.float32)
        rows = array.from_array(X, chunks=(-(-len(X) // 3), -1))
        rows = array.tile(rows, (1, repeats))
    known = inspect.signature(MDEC).parameters
    share = "max_features" if "max_features" in known else "sampling_ratio"
    model = MDEC(
        n_clusters,
        consensus=part.consensus,
        ensemble_size=MEMBERS,
        # As many columns as without repeats, because all of them would take minutes.
        **{share: 0.5 / repeats},
        kernel=kernel,
        base=part.base,
        device=part.device,
        random_state=seed,
    ).fit(rows)
    others = [name for name in CONSENSUS if name != part.consensus]
    ensemble = model.ensemble_
    if hasattr(ensemble, "gather"):
        ensemble = ensemble.gather()
    return {
        part.consensus: brought(model.labels_),
        **{name: brought(model.recluster(consensus=name)) for name in others},
        "members": brought(ensemble.labels),
        "predicted": model.predict(np.tile(X[:NEW_ROWS], repeats)),
        "weights": brought(model.cluster_weights_),
        "confidence": brought(model.confidence_),
    }


def is_done(path: Path, digest: str) -> bool:
    if not path.exists():
        return False
    with np.load(path, allow_pickle=False) as archive:
        return str(archive["source"]) == digest


def write_labels(source: Path, data: Path, out: Path, options: Any) -> None:
    """Fit everything that is asked for and not yet there."""
    import mdec

    if not Path(mdec.__file__).resolve().is_relative_to(source):
        raise SystemExit(f"{source} has no package mdec; give the top of a checkout.")
    start = time.perf_counter()
    digest = source_digest(source)
    datasets = found_datasets(data, options.datasets)
    out.mkdir(parents=True, exist_ok=True)
    for title in PARTS if options.part == "all" else [options.part]:
        part = PARTS[title]
        names = [name for name in datasets if name in (part.datasets or datasets)]
        keys = {
            out / f"{title}+{name}+{kernel}+{seed}.npz": (datasets[name], kernel, seed)
            for name, kernel, seed in product(names, KERNELS, SEEDS)
        }
        to_do = {path: key for path, key in keys.items() if not is_done(path, digest)}
        print(f"{title}: {len(to_do)} of {len(keys)} to do", flush=True)
        with local_cluster() if part.on_cluster and to_do else nullcontext():
            for path, (dataset, kernel, seed) in to_do.items():
                begun = time.perf_counter()
                found = fitted(dataset, part, kernel, seed)
                unfinished = path.with_suffix(".unfinished")
                with unfinished.open("wb") as file:
                    np.savez_compressed(file, source=digest, **found)
                unfinished.replace(path)
                now = time.perf_counter()
                print(
                    f"  {path.stem.replace('+', ' ')}: {now - begun:.1f} s, "
                    f"{now - start:.0f} s in all",
                    flush=True,
                )
    print(f"finished after {time.perf_counter() - start:.0f} s", flush=True)


def in_own_process(source: Path) -> int:
    """Run this command again, with the package of the checkout and one thread."""
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *sys.argv, "--here"]
    return subprocess.run(command, env=environment, check=False).returncode


def difference(name: str, a: Array, b: Array) -> str:
    """Return what is different in one sentence part, or "" for nothing."""
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return f"{a.dtype}{list(a.shape)} and {b.dtype}{list(b.shape)}"
    if name in CLOSE:
        largest = np.abs(a - b).max()
        # A NaN is not within any bound.
        return "" if largest <= CLOSE[name] else f"by {largest:.1e}"
    differs = a != b
    if not differs.any():
        return ""
    if name == "members":
        return f"{differs.any(axis=0).sum()} members, {differs.sum()} labels"
    return f"{differs.sum()} of {len(a)} samples"


def numbers_by_first(labels: Array) -> dict[int, int]:
    """Return the number of each cluster in the order of first samples."""
    values, first = np.unique(labels, return_index=True)
    ranks = np.argsort(np.argsort(first))
    return dict(zip(values.tolist(), ranks.tolist(), strict=True))


def renumbered(labels: Array, numbers: dict[int, int]) -> Array:
    """Return labels with other numbers; what has none stays."""
    return np.array([numbers.get(k, k) for k in labels.tolist()], dtype=labels.dtype)


def numbered_by_first(key: str, found: dict[str, Array]) -> dict[str, Array]:
    """Return a result with its clusters numbered by their first samples."""
    numbers = {name: numbers_by_first(found[name]) for name in CONSENSUS}
    canonical = {name: renumbered(found[name], numbers[name]) for name in CONSENSUS}
    own = numbers[PARTS[key.split("+")[0]].consensus]
    canonical["predicted"] = renumbered(found["predicted"], own)
    of_members = [numbers_by_first(column) for column in found["members"].T]
    columns = zip(found["members"].T, of_members, strict=True)
    canonical["members"] = np.stack([renumbered(*each) for each in columns], axis=1)
    # Weights stand in the order of the clusters, member by member.
    order = np.concatenate(
        [np.array(sorted(each, key=each.__getitem__)) for each in of_members]
    )
    starts = np.cumsum([0, *map(len, of_members)])[:-1]
    place = order + np.repeat(starts, [len(each) for each in of_members])
    if len(place) == len(found["weights"]):
        canonical["weights"] = found["weights"][place]
    return {**found, **canonical}


def agreement(ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    """Return how many members and consensus labels of two folders agree, in words."""
    both = sorted(ours.keys() & theirs.keys())
    pairs = [(ours[key], theirs[key]) for key in both]
    equal = [(a["members"] == b["members"]).all(axis=0) for a, b in pairs]
    n_equal, n_members = sum(map(np.sum, equal)), sum(map(len, equal))
    words = [f"members {n_equal} of {n_members}"]
    for name in CONSENSUS:
        same = [(a[name] == b[name]).all() for a, b in pairs]
        scores = [adjusted_rand_score(a[name], b[name]) for a, b in pairs]
        words.append(f"{name} {sum(same)} of {len(same)}, ARI {np.mean(scores):.3f}")
    return "; ".join(words)


def read_folder(folder: Path) -> dict[str, dict[str, Array]]:
    found = {}
    for path in sorted(folder.glob("*.npz")):
        with np.load(path, allow_pickle=False) as archive:
            found[path.stem] = dict(archive)
    sources = {str(arrays.pop("source")) for arrays in found.values()}
    found = {key: numbered_by_first(key, arrays) for key, arrays in found.items()}
    if len(sources) != 1:
        raise SystemExit(
            f"{folder} holds results of {len(sources)} states of the package, not of "
            "one; run `labels` with it as --out."
        )
    print(f"{folder}: {len(found)} results of source {sources.pop()}")
    return found


def compare(a: Path, b: Path) -> int:
    """Print what differs between two folders and return the exit code."""
    ours, theirs = read_folder(a), read_folder(b)
    columns = (*EQUAL, *CLOSE)
    print(f"\n| part | dataset | kernel | seed | {' | '.join(columns)} |")
    print("|---" * (4 + len(columns)) + "|")
    different = 0
    for key in sorted(ours.keys() | theirs.keys()):
        if key in ours and key in theirs:
            found = [
                difference(name, ours[key][name], theirs[key][name]) for name in columns
            ]
        else:
            found = [f"not in {b if key in ours else a}"] * len(columns)
        different += any(found)
        cells = " | ".join(each or "identical" for each in found)
        print(f"| {key.replace('+', ' | ')} | {cells} |")
    print(f"\nEqual: {agreement(ours, theirs)}.")
    print(f"\n{different} of {len(ours.keys() | theirs.keys())} results differ.")
    return int(different > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    labels = commands.add_parser("labels", help="compute the labels of a checkout")
    labels.add_argument("checkout", type=Path)
    labels.add_argument("data", type=Path)
    labels.add_argument("--out", type=Path, required=True, help="folder of results")
    labels.add_argument("--datasets", nargs="+", default=[], metavar="DS-XX")
    labels.add_argument("--part", choices=[*PARTS, "all"], default="all")
    labels.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    pair = commands.add_parser("compare", help="compare two folders of results")
    pair.add_argument("a", type=Path)
    pair.add_argument("b", type=Path)
    options = parser.parse_args()
    if options.command == "compare":
        return compare(options.a, options.b)
    source = (options.checkout / "src").resolve()
    if not options.here:
        return in_own_process(source)
    write_labels(source, options.data, options.out, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
