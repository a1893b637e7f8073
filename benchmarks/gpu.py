"""Figures on a graphics card: times with their split, roofline, memory, agreement.

python benchmarks/gpu.py card --data DATA            everything that needs the card
python benchmarks/gpu.py labels --data DATA --out F  labels of the datasets on the card
python benchmarks/gpu.py compare F --data DATA       the same on the CPU, compared

DATA is a folder of ``*.npz`` files with arrays X and y.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.utils import check_array

from mdec import MDEC, generate_ensemble
from mdec.base.members import member_similarity
from mdec.consensus import CONSENSUS
from mdec.engines import tensors
from mdec.engines.tensors import members
from mdec.engines.tensors.neighbors import SPARE, TiledDistances
from mdec.weights import ensemble_driven_cluster_index

STAGES = {
    "_neighbors": "neighbours and similarities",
    "joined_graph": "graph",
    "_embeddings": "eigenvectors",
    "_discretised": "k-means",
}
FLOATS = (np.float64, np.float32)
N_GRAPHS = 3
TIMED = ("DS-30", "DS-26", "DS-11")


def load(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    with np.load(next(folder.glob(f"{name}_*.npz"))) as file:
        return file["X"], file["y"]


def mixture(n_samples: int, n_features: int) -> np.ndarray:
    """Return overlapping clusters of unequal size in 30 directions, and noise."""
    rng = np.random.default_rng(0)
    share = rng.dirichlet(np.full(40, 2.0))
    group = rng.choice(40, n_samples, p=share)
    spread = rng.normal(size=(30, n_features)).astype(np.float32)
    latent = rng.normal(scale=3.0, size=(40, 30))[group]
    latent += rng.normal(size=latent.shape)
    data = latent.astype(np.float32) @ spread
    return data + rng.normal(scale=3.0, size=data.shape).astype(np.float32)


def seconds(work: Callable[[], Any], repeats: int = 3) -> float:
    """Return the median time of some work, warm, everything on the card included."""
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


@contextmanager
def split() -> Iterator[dict[str, float]]:
    """Collect the time of each stage; waiting after each costs a little."""
    total: dict[str, float] = defaultdict(float)
    originals = {name: getattr(members, name) for name in STAGES}

    def timed(name: str) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            torch.cuda.synchronize()
            start = time.perf_counter()
            result = originals[name](*args)
            torch.cuda.synchronize()
            total[STAGES[name]] += time.perf_counter() - start
            return result

        return run

    for name in STAGES:
        setattr(members, name, timed(name))
    try:
        yield total
    finally:
        for name, original in originals.items():
            setattr(members, name, original)


def ceilings() -> tuple[float, float]:
    """Return the card's measured float32 FLOP/s and bytes/s."""
    a, b = (torch.randn(8192, 8192, device="cuda") for _ in range(2))
    (a @ b).sum().item()
    flops = 2 * 8192**3 / seconds(lambda: a @ b, 5)
    source = torch.randn(2**29, device="cuda")
    target = torch.empty_like(source)
    target.copy_(source)
    n_bytes = 2 * 4 * source.numel() / seconds(lambda: target.copy_(source), 5)
    return flops, n_bytes


def roofline(X: np.ndarray, peak: float, bandwidth: float) -> dict[str, float]:
    """Return the share of the card's ceiling that the neighbour search reaches."""
    n_samples, n_features = X.shape
    half = torch.from_numpy(X[None, :, : n_features // 2]).cuda()
    tile = max(1, 2 * 10**9 // (12 * n_samples))

    def search() -> None:
        TiledDistances.of(half, torch.float32, tile).smallest(12 + SPARE)

    search()
    took = seconds(search)
    flops = 2.0 * n_samples**2 * half.shape[2]
    # Distances are written once and read once; the data hardly counts.
    moved = 2.0 * 4.0 * n_samples**2
    return {
        "seconds": took,
        "share": max(flops / peak, moved / bandwidth) / took,
        "tflops": flops / took / 1e12,
    }


def measured(X: np.ndarray, repeats: int, consensus: bool = True) -> dict[str, Any]:
    """Time an ensemble and its consensus on the card."""

    def make(seed: int = 0) -> Any:
        return generate_ensemble(X, random_state=seed, device="cuda")

    torch.cuda.reset_peak_memory_stats()
    first = time.perf_counter()
    with split() as stages:
        ensemble = make()
    row: dict[str, Any] = {"first run": time.perf_counter() - first}
    row["split"] = dict(stages)
    row["peak GB"] = torch.cuda.max_memory_allocated() / 1e9
    if repeats:
        row["generation"] = seconds(make, repeats)
        with split() as stages:
            again = make()
        row["split"] = dict(stages)
        row["repeatable"] = bool(np.array_equal(ensemble.labels, again.labels))
    if consensus:
        weights = ensemble_driven_cluster_index(ensemble, device="cuda")
        row["weights"] = seconds(
            lambda: ensemble_driven_cluster_index(ensemble, device="cuda"), 1
        )
        for name, function in CONSENSUS.items():
            agree = partial(function, ensemble, 10, weights, random_state=0)
            agree(device="cuda")
            row[name] = seconds(partial(agree, device="cuda"), max(1, repeats))
            if repeats:
                row[f"{name}, on the host"] = seconds(agree, repeats)
            model = MDEC(10, consensus=name, device="cuda", random_state=0)
            fit = partial(model.fit, X)
            row[f"fit, {name}"] = seconds(fit, max(1, repeats))
        row["repeatable"] = bool(
            np.array_equal(model.ensemble_.labels, ensemble.labels)
        )
        row["consensus peak GB"] = torch.cuda.max_memory_allocated() / 1e9
    return row


def card(arguments: argparse.Namespace) -> None:
    peak, bandwidth = ceilings()
    about = {
        "card": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "float32 TFLOP/s": peak / 1e12,
        "copy TB/s": bandwidth / 1e12,
    }
    report("about", about)
    for name in TIMED:
        X, _ = load(arguments.data, name)
        report(f"{name} {X.shape}", measured(X, 3))
    for n_samples in arguments.large:
        X = mixture(n_samples, 784)
        report(f"roofline {X.shape}", roofline(X, peak, bandwidth))
        report(f"mixture {X.shape}", measured(X, 0, n_samples <= 50_000))


def report(name: str, row: dict[str, Any]) -> None:
    rounded = json.loads(
        json.dumps(row), parse_float=lambda x: float(f"{float(x):.4g}")
    )
    print(json.dumps({"name": name, **rounded}), flush=True)


def labels(arguments: argparse.Namespace) -> None:
    """Write the ensembles that the card makes of every dataset, and some graphs."""
    found: dict[str, np.ndarray] = {}
    for path in sorted(arguments.data.glob("*.npz")):
        name = path.stem.partition("_")[0]
        X, _ = load(arguments.data, name)
        for seed in range(arguments.seeds):
            ensemble = generate_ensemble(X, random_state=seed, device=arguments.device)
            found[f"{name} labels {seed}"] = ensemble.labels.astype(np.int16)
        for index in range(N_GRAPHS):
            graph = graph_on_device(X, ensemble, index, arguments.device)
            found[f"{name} indptr {index}"] = graph.indptr.cpu().numpy()
            found[f"{name} indices {index}"] = graph.indices.cpu().numpy()
            found[f"{name} data {index}"] = graph.data.float().cpu().numpy()
        print(path.stem, flush=True)
    np.savez_compressed(arguments.out, **found)


def graph_on_device(X: np.ndarray, ensemble: Any, index: int, device: str) -> Any:
    """Return the similarity graph of one member as the GPU makes it."""
    place = tensors.find_device(device)
    plan, member = ensemble.plan, ensemble.members[index]
    data = tensors.Data.on(check_array(X, dtype=FLOATS), place)
    lists = members.neighbor_lists(data, plan, [member], 10**9)
    return members.join_graph(lists, len(X))


def compare(arguments: argparse.Namespace) -> None:
    """Make the same ensembles on the CPU; print how far they agree."""
    scores: dict[str, list[tuple[float, float]]] = defaultdict(list)
    with np.load(arguments.file) as found:
        for name in sorted({key.split()[0] for key in found.files}):
            X, y = load(arguments.data, name)
            alike = []
            for seed in range(arguments.seeds):
                key = f"{name} labels {seed}"
                here = generate_ensemble(X, random_state=seed, n_jobs=2)
                there = replace(here, labels=found[key].astype(np.int32))
                alike += [
                    adjusted_rand_score(a, b)
                    for a, b in zip(here.labels.T, there.labels.T, strict=True)
                ]
                for consensus, function in CONSENSUS.items():
                    both = [
                        normalized_mutual_info_score(
                            y,
                            function(each, len(np.unique(y)), random_state=seed),
                            average_method="max",
                        )
                        for each in (here, there)
                    ]
                    scores[f"{name} {consensus}"].append((both[0], both[1]))
            edges, values = compared_graphs(X, here, found, name)
            share = np.mean(np.array(alike) >= 0.99)
            nmi = [
                f"{100 * (b - a):+.2f}"
                for c in CONSENSUS
                for a, b in [np.mean(scores[f"{name} {c}"], axis=0)]
            ]
            print(
                f"{name} members alike {share:.3f}, edges differing {edges:.1e}, "
                f"weights {values:.1e}, NMI differences {' '.join(nmi)}",
                flush=True,
            )
    for consensus in CONSENSUS:
        rows = [np.mean(v, axis=0) for k, v in scores.items() if k.endswith(consensus)]
        cpu, gpu = 100 * np.mean(rows, axis=0)
        print(f"{consensus}: mean NMI {cpu:.2f} on the CPU, {gpu:.2f} on the card")


def compared_graphs(
    X: np.ndarray, ensemble: Any, found: Any, name: str
) -> tuple[float, float]:
    """Return the share of edges that differ and the largest relative difference."""
    X = check_array(X, dtype=FLOATS)
    n_differing, n_edges, worst = 0, 0, 0.0
    for index in range(N_GRAPHS):
        member = ensemble.members[index]
        here = member_similarity(X, member, ensemble.plan)
        arrays = [found[f"{name} {part} {index}"] for part in ("data", "indices")]
        pointers = found[f"{name} indptr {index}"]
        there = sparse.csr_array((*arrays, pointers), shape=here.shape)
        only = abs((here != 0).astype(int) - (there != 0).astype(int))
        n_differing, n_edges = n_differing + only.sum(), n_edges + here.nnz
        shared = here.multiply(there != 0)
        gap = abs(shared - there.multiply(here != 0)).max() / here.data.max()
        worst = max(worst, float(gap))
    return n_differing / n_edges, worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("card")
    one.add_argument("--large", type=int, nargs="*", default=[50_000, 100_000])
    one.set_defaults(run=card)
    two = commands.add_parser("labels")
    two.add_argument("--out", type=Path, required=True)
    two.set_defaults(run=labels)
    three = commands.add_parser("compare")
    three.add_argument("file", type=Path)
    three.set_defaults(run=compare)
    for each in (two, three):
        each.add_argument("--seeds", type=int, default=3)
        each.add_argument("--device", default="cuda")
    for each in (one, two, three):
        each.add_argument("--data", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
