"""Seconds and memory of the baselines, beside those of py-cluster-ensemble.

    python benchmarks/peers_speed.py ours [--sizes 100 500 2000]
    python benchmarks/peers_speed.py ours --pce CHECKOUT [--python OTHER/bin/python]
    python benchmarks/peers_speed.py hypergraphs DATA   # folder of DS-XX_name.npz files

Both get the same ensembles, 20 k-means clusterings of a mixture of ten clusters in 30
dimensions, the same number of clusters and the same settings, and one thread, in a
fresh process for each method. CPU seconds are the least of several calls after a first
one, which compiles or loads; those of the programs that py-cluster-ensemble starts
count, and the peak of memory is the larger of theirs and its own. ARI compares with the
true clusters, and the last column compares the two answers with each other. Where a
function of py-cluster-ensemble gives up, it returns zeros; that shows as "fails".

py-cluster-ensemble is in no package registry; give the folder of a checkout of its
repository, with the METIS and hMETIS programs that it starts, and an interpreter that
has what it needs.

``hypergraphs`` cuts the ensembles of small gene sets with Mt-KaHyPar's deterministic
preset and with the settings of this package.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

N_CLUSTERS = 10
N_MEMBERS = 20

# Our name, the module and function of py-cluster-ensemble, and the settings that make
# ours the same problem as its defaults.
METHODS: dict[str, tuple[str, dict[str, float]]] = {
    "LWEA": ("lwea", {"theta": 10.0}),
    "LWGP": ("lwgp", {"theta": 10.0}),
    "PTA": ("ptaal", {}),
    "PTGP": ("ptgp", {}),
    "CSPA": ("cspa", {}),
    "MCLA": ("mcla", {}),
    "HGPA": ("hgpa", {}),
    "KCC": ("kcc_uh", {"max_iterations": 100}),
    "SPCE": ("spce", {"threshold": 0.5**0.5 / N_MEMBERS}),
}

# Runs in any interpreter with NumPy; prints one line of JSON at its end.
CHILD = """
import json, re, resource, sys, time, types
import numpy as np
path, who, name, n_clusters, settings, root = sys.argv[1:]
labels = np.load(path)
k = int(n_clusters)

def cpu():
    usage = (resource.getrusage(of) for of in (0, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in usage)

def peak():
    with open("/proc/self/status") as file:
        own = int(re.search(r"VmHWM:\\s+(\\d+) kB", file.read())[1])
    return max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) * 1024

if who == "ours":
    from mdec import Ensemble
    from mdec.baselines import BASELINES
    def call():
        ensemble = Ensemble.from_labels(labels)
        return BASELINES[name](ensemble, k, random_state=0, **json.loads(settings))
else:
    # Its __init__ wants packages that these functions do not use.
    for package in ("pce", "pce.consensus"):
        module = types.ModuleType(package)
        module.__path__ = [f"{root}/src/" + package.replace(".", "/")]
        sys.modules[package] = module
    import importlib
    function = getattr(importlib.import_module(f"pce.consensus.{name}"), name)
    def call():
        return function(labels + 1, nClusters=k, nBase=labels.shape[1], nRepeat=1)[0][0]

found = call()
taken = []
while len(taken) < 20 and sum(taken) < 2.0:
    start = cpu()
    call()
    taken.append(cpu() - start)
print()
print(json.dumps({
    "cpu_seconds": min(taken),
    "peak_mb": peak() / 1e6,
    "labels": np.asarray(found).ravel().astype(int).tolist(),
}))
""".replace("\\\\", "\\")


def measured(python: str, *arguments: str) -> dict[str, Any]:
    """Return what one method takes in a fresh process, or its last words."""
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    done = subprocess.run(
        [python, "-c", CHILD, *arguments],
        capture_output=True,
        text=True,
        env=os.environ | dict.fromkeys(threads, "1"),
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(options: argparse.Namespace) -> None:
    from sklearn.datasets import make_blobs
    from sklearn.metrics import adjusted_rand_score as ari

    from mdec.baselines import generate_kmeans_ensemble

    names = ["samples", "method", "seconds", "MB", "ARI"]
    if options.pce:
        names += ["their seconds", "ratio", "their MB", "their ARI", "agreement"]
    print("| " + " | ".join(names) + " |")
    print("|---" * len(names) + "|")
    with tempfile.TemporaryDirectory() as folder:
        for n_samples in options.sizes:
            X, y = make_blobs(
                n_samples, 30, centers=N_CLUSTERS, cluster_std=6.0, random_state=0
            )
            ensemble = generate_kmeans_ensemble(
                X, ensemble_size=N_MEMBERS, random_state=0
            )
            path = f"{folder}/{n_samples}.npy"
            np.save(path, ensemble.labels)
            for name in options.methods:
                theirs, settings = METHODS[name]
                rest = str(N_CLUSTERS), json.dumps(settings), options.pce or ""
                our = measured(sys.executable, path, "ours", name, *rest)
                row = [str(n_samples), name, f"{our['cpu_seconds']:.4f}"]
                row += [f"{our['peak_mb']:.0f}", f"{ari(y, our['labels']):.3f}"]
                their: dict[str, Any] = {}
                if options.pce:
                    their = measured(options.python, path, "pce", theirs, *rest)
                if their and not any(their["labels"]):
                    row += ["fails", "", "", "", ""]
                elif their:
                    row += [
                        f"{their['cpu_seconds']:.4f}",
                        f"{their['cpu_seconds'] / our['cpu_seconds']:.1f}",
                        f"{their['peak_mb']:.0f}",
                        f"{ari(y, their['labels']):.3f}",
                        f"{ari(our['labels'], their['labels']):.3f}",
                    ]
                print("| " + " | ".join(row) + " |", flush=True)


def hypergraphs(folder: str) -> None:
    import mtkahypar
    from sklearn.metrics import normalized_mutual_info_score

    from mdec.baselines import generate_stratified_ensemble
    from mdec.bench.baselines import _partitioning

    ensembles = []
    for path in sorted(Path(folder).glob("DS-*.npz")):
        with np.load(path) as content:
            X, y = content["X"], content["y"]
        if len(X) <= 400:
            for seed in range(3):
                made = generate_stratified_ensemble(
                    X.astype(np.float64), random_state=seed
                )
                ensembles.append((made, y))
    _, library = _partitioning._start_mtkahypar()
    settings = Path(_partitioning.__file__).with_name("mtkahypar.ini")
    contexts = {
        "deterministic preset": lambda: library.context_from_preset(
            mtkahypar.PresetType.DETERMINISTIC
        ),
        "8 first partitions": lambda: library.context_from_file(str(settings)),
    }
    for name, context_of in contexts.items():
        seconds, scores, cuts = 0.0, [], []
        for ensemble, y in ensembles:
            sizes = ensemble.cluster_sizes
            members = ensemble.indicator().T.tocsr()
            edges = np.split(members.indices, members.indptr[1:-1])
            kept = np.flatnonzero(sizes > 1)
            start = time.process_time()
            mtkahypar.set_seed(0)
            context = context_of()
            context.set_partitioning_parameters(
                np.unique(y).size, _partitioning.IMBALANCE, mtkahypar.Objective.CUT
            )
            context.logging = False
            n_samples = ensemble.n_samples
            hypergraph = library.create_hypergraph(
                context,
                n_samples,
                len(kept),
                [edges[c].tolist() for c in kept],
                [1] * n_samples,
                sizes[kept].tolist(),
            )
            parts = hypergraph.partition(context)
            labels = [parts.block_id(v) for v in range(n_samples)]
            seconds += time.process_time() - start
            scores.append(normalized_mutual_info_score(y, labels, average_method="max"))
            cuts.append(parts.cut())
        print(
            f"{name}: {len(ensembles)} ensembles, {seconds:.2f} CPU seconds, NMI "
            f"{100 * np.mean(scores):.2f}, cut {np.mean(cuts):.0f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["ours", "hypergraphs"])
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 500, 2000])
    parser.add_argument(
        "--methods", nargs="+", default=list(METHODS), choices=list(METHODS)
    )
    parser.add_argument("--pce")
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    if options.what == "ours":
        compare(options)
    else:
        hypergraphs(options.folder)


if __name__ == "__main__":
    main()
