"""Figures on a graphics card: times with their parts, memory, agreement with the CPU.

python benchmarks/gpu.py sets --data DATA       three sets: times, parts, kernels
python benchmarks/gpu.py large wide long million  many rows, made here
python benchmarks/gpu.py cells genes components    what cells.py takes on the CPU
python benchmarks/gpu.py agree --data DATA      every set on the CPU and on the card

DATA is a folder of ``*.npz`` files with arrays X and y. Lines are added to the record
``gpu`` or to the file that ``--out`` names.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from cells import COMPILING, MANY, make_counts, make_gaussian
from records import RESULTS, commit_of_source
from scale import mixture as twenty_clusters
from scale import nmi
from sklearn.metrics import adjusted_rand_score
from torch.profiler import ProfilerActivity, profile

from mdec import MDEC, generate_ensemble
from mdec.consensus import CONSENSUS
from mdec.engines import tensors
from mdec.engines.tensors import landmarks, members
from mdec.preparation import ExpressionPreparation
from mdec.weights import ensemble_driven_cluster_index

PARTS = {
    "neighbor_lists": (members, "neighbours"),
    "leading_vectors": (members, "eigenvectors"),
    "best_labels": (members, "k-means"),
}
# What kernels do, by parts of their names; the first that fits.
KERNELS = {
    "products": ("gemm", "cutlass", "gemv"),
    "products with graphs": ("graph_step",),
    "rotations of vectors": ("add_products",),
    "k-means": ("_assign", "_move", "choose_centers"),
    "selection and sorting": (
        "_smallest",
        "opk",
        "adix",
        "ort",
        "ArgMin",
        "MinOps",
        "gather",
    ),
    "copies from and to the host": ("HtoD", "DtoH"),
    "differences of pairs": ("pair_squares",),
    "similarities": ("unlike", "log_kernel"),
}
TIMED = ("DS-11", "DS-26", "DS-30")


def load(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    with np.load(next(folder.glob(f"{name}_*.npz"))) as file:
        return file["X"], file["y"]


def mixture(n_samples: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Return overlapping clusters of unequal size in 30 directions, and noise."""
    rng = np.random.default_rng(0)
    share = rng.dirichlet(np.full(40, 2.0))
    group = rng.choice(40, n_samples, p=share)
    spread = rng.normal(size=(30, n_features)).astype(np.float32)
    latent = rng.normal(scale=3.0, size=(40, 30))[group]
    latent += rng.normal(size=latent.shape)
    data = latent.astype(np.float32) @ spread
    return data + rng.normal(scale=3.0, size=data.shape).astype(np.float32), group


LARGE: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "wide": (partial(mixture, 50_000, 784), {"base": "graph"}),
    "long": (partial(mixture, 100_000, 50), {"base": "graph"}),
    "million": (
        partial(twenty_clusters, 10**6),
        {"base": "landmark", "ensemble_size": 50},
    ),
}


def clock(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of some work, everything on the card included."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    result = work()
    torch.cuda.synchronize()
    return time.perf_counter() - start, result


def seconds(work: Callable[[], Any], repeats: int = 3) -> float:
    """Return the median time of some work, warm."""
    return float(np.median([clock(work)[0] for _ in range(repeats)]))


@contextmanager
def parts() -> Iterator[dict[str, float]]:
    """Collect the time of each part; one batch at a time, and waiting after each."""
    total: dict[str, float] = defaultdict(float)
    originals = {name: getattr(module, name) for name, (module, _) in PARTS.items()}

    def timed(name: str) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            took, result = clock(lambda: originals[name](*args))
            total[PARTS[name][1]] += took
            return result

        return run

    # The landmarks have imported two of them.
    places = [(module, n) for n in PARTS for module in (members, landmarks)]
    places = [each for each in places if hasattr(*each)]
    for module, name in places:
        setattr(module, name, timed(name))
    together = tensors.side_by_side
    tensors.side_by_side = lambda work, batches, _: map(work, batches)
    try:
        yield total
    finally:
        tensors.side_by_side = together
        for module, name in places:
            setattr(module, name, originals[name])


def kernels(work: Callable[[], Any]) -> dict[str, Any]:
    """Return what the card does during some work: seconds of each kind, launches."""
    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with profile(activities=activities) as found:
        work()
        torch.cuda.synchronize()
    on_card = torch.autograd.DeviceType.CUDA
    events = [each for each in found.key_averages() if each.device_type == on_card]
    spent: dict[str, float] = defaultdict(float)
    for each in events:
        kinds = (k for k, words in KERNELS.items() if any(w in each.key for w in words))
        spent[next(kinds, "everything else")] += each.self_device_time_total / 1e6
    slowest = sorted(events, key=lambda each: -each.self_device_time_total)[:8]
    return {
        "kernels": dict(spent),
        "busy": sum(spent.values()),
        "launches": sum(each.count for each in events),
        "slowest": {e.key[:90]: e.self_device_time_total / 1e6 for e in slowest},
    }


def measure_set(X: np.ndarray, choose: bool) -> dict[str, Any]:
    """Time an ensemble, its parts and a fit, also one that chooses K if asked to."""
    make = partial(generate_ensemble, X, random_state=0, device="cuda")
    first, ensemble = clock(make)
    row: dict[str, Any] = {"first run": first, "generation": seconds(make)}
    with parts() as spent:
        again = make()
    row["parts"] = dict(spent)
    row["repeatable"] = bool(np.array_equal(ensemble.labels, again.labels))
    row |= kernels(make)
    for name in CONSENSUS:
        model = MDEC(10, consensus=name, device="cuda", random_state=0)
        row[f"fit, {name}"] = seconds(partial(model.fit, X))
    model = MDEC(10, device="cuda", random_state=0).fit(X)
    row["first predict, 400 rows"] = clock(partial(model.predict, X[:400]))[0]
    row["predict, 400 rows"] = seconds(partial(model.predict, X[:400]))
    if choose:
        model = MDEC("auto", device="cuda", random_state=0)
        row["first run, auto"] = clock(partial(model.fit, X))[0]
        row["fit, auto"] = seconds(partial(model.fit, X))
    return row


def measure_large(name: str) -> dict[str, Any]:
    """Time one ensemble of many rows and a consensus, once."""
    make_rows, settings = LARGE[name]
    X, y = make_rows()
    settings = {"random_state": 0, "device": "cuda", **settings}
    row: dict[str, Any] = {"shape": X.shape}
    # Kernels are compiled, and memory is taken, on the first run.
    generate_ensemble(X[:12_000], **settings | {"ensemble_size": 4})
    make = partial(generate_ensemble, X, **settings)
    row["generation"], ensemble = clock(make)
    row["weights"], weights = clock(
        lambda: ensemble_driven_cluster_index(ensemble, device="cuda")
    )
    k = len(np.unique(y))
    agree = partial(CONSENSUS["bipartite"], ensemble, k, weights, 0, "cuda")
    row["bipartite"], labels = clock(agree)
    row["NMI, bipartite"] = nmi(y, labels)
    row["peak GB"] = torch.cuda.max_memory_allocated() / 1e9
    if settings["base"] == "landmark":
        model = MDEC(k, consensus="bipartite", **settings)
        row["fit, bipartite"] = clock(partial(model.fit, X))[0]
        new = partial(model.predict, X[:100_000])
        row["first predict, 100,000 rows"] = clock(new)[0]
        row["predict, 100,000 rows"] = clock(new)[0]
    return row


def measure_cells(name: str) -> dict[str, Any]:
    """Time one fit of many made-up cells, with preparing; a part of them compiles."""
    size = MANY[name]
    prepare = ExpressionPreparation().fit_transform if name == "genes" else np.asarray
    make = partial(make_counts, seed=0, strength=0.3)
    X, kinds = (make if name == "genes" else make_gaussian)(*size)
    model = MDEC(12, base="auto", consensus="spectral", device="cuda", random_state=0)
    model.fit(prepare(X[:COMPILING]))
    preparing, values = clock(partial(prepare, X))
    fitting, labels = clock(partial(model.fit_predict, values))
    return {
        "shape": size,
        "preparing": preparing,
        "fit, spectral": preparing + fitting,
        "NMI, spectral": nmi(kinds, labels),
    }


def compare(
    X: np.ndarray, y: np.ndarray, seeds: int, **settings: Any
) -> dict[str, Any]:
    """Compare members and scores of the card with those of the CPU."""
    alike: list[float] = []
    scores: dict[str, list[list[float]]] = defaultdict(list)
    k = len(np.unique(y))
    for seed in range(seeds):
        settings = settings | {"random_state": seed}
        here = generate_ensemble(X, n_jobs=-1, **settings)
        there = generate_ensemble(X, device="cuda", **settings)
        pairs = zip(here.labels.T, there.labels.T, strict=True)
        alike += [adjusted_rand_score(*each) for each in pairs]
        for name, function in CONSENSUS.items():
            both = (here, "cpu"), (there, "cuda")
            found = [function(e, k, None, seed, place) for e, place in both]
            scores[name].append([nmi(y, labels) for labels in found])
    means = {name: np.mean(pairs, axis=0) for name, pairs in scores.items()}
    return {
        "members": len(alike),
        "mean ARI": float(np.mean(alike)),
        "share at 0.99": float(np.mean(np.array(alike) >= 0.99)),
        **{f"NMI, {name}": pair.tolist() for name, pair in means.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("sets", "large", "cells", "agree"))
    parser.add_argument(
        "names", nargs="*", help="sets, or those of LARGE and of MANY cells"
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--members", type=int, default=100)
    parser.add_argument("--base", default="graph", choices=("graph", "landmark"))
    parser.add_argument("--out", type=Path, default=RESULTS / "gpu.jsonl")
    parser.add_argument("--commit", help="where there is no git; asked of it otherwise")
    options = parser.parse_args()
    made = {
        "date": date.today().isoformat(),
        "commit": options.commit or commit_of_source(),
        "card": torch.cuda.get_device_name(),
        "torch": torch.__version__,
    }
    folder = options.data
    known = {
        "sets": TIMED,
        "large": tuple(LARGE),
        "cells": tuple(MANY),
        "agree": () if folder is None else sorted(p.name[:5] for p in folder.iterdir()),
    }
    for name in options.names or known[options.what]:
        if options.what in ("large", "cells"):
            row = {"large": measure_large, "cells": measure_cells}[options.what](name)
        else:
            X, y = load(folder, name)
            row = {"shape": X.shape}
            if options.what == "sets":
                row |= measure_set(X, choose=name == TIMED[0])
            else:
                drawn = {"base": options.base, "ensemble_size": options.members}
                row |= drawn | compare(X, y, options.seeds, **drawn)
        line = {"name": f"{options.what} {name}", **row, **made}
        text = json.dumps(
            json.loads(json.dumps(line), parse_float=lambda x: float(f"{float(x):.4g}"))
        )
        print(text, flush=True)
        with options.out.open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")


if __name__ == "__main__":
    main()
