"""Seconds and memory of the baselines, beside those of py-cluster-ensemble.

    python benchmarks/peers_speed.py ours [--sizes 100 500 2000]
    python benchmarks/peers_speed.py ours --pce CHECKOUT [--python OTHER/bin/python]
    python benchmarks/peers_speed.py hypergraphs DATA   # folder of DS-XX_name.npz files

Both get the same ensembles, 20 k-means clusterings of a mixture of ten clusters in 30
dimensions, in a fresh process for each method. The first call is not counted: it
compiles or loads. py-cluster-ensemble is in no package registry; give the folder of a
checkout of its repository, and an interpreter that has what it needs.

``hypergraphs`` cuts the ensembles of small gene sets with Mt-KaHyPar's deterministic
preset and with the settings of this package.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

# Our name, and the module and function of py-cluster-ensemble.
METHODS = {
    "LWEA": "lwea",
    "LWGP": "lwgp",
    "PTA": "pta",
    "PTGP": "ptgp",
    "CSPA": "cspa",
    "MCLA": "mcla",
    "HGPA": "hgpa",
    "KCC": "kcc_uh",
    "SPCE": "spce",
}
N_CLUSTERS = 10
N_MEMBERS = 20

# Runs in any interpreter with NumPy: labels, repeats and who, then one line of JSON.
CHILD = """
import json, re, sys, time, types
import numpy as np
path, who, name, n_clusters, root = sys.argv[1:]
labels = np.load(path)
k = int(n_clusters)

def peak():
    with open("/proc/self/status") as file:
        return int(re.search(r"VmHWM:\\\\s+(\\\\d+) kB", file.read())[1]) * 1024

if who == "ours":
    from mdec import Ensemble
    from mdec.baselines import BASELINES
    ensemble = Ensemble.from_labels(labels)
    call = lambda: BASELINES[name](ensemble, k, random_state=0)
else:
    # Its __init__ wants packages that these functions do not use.
    for package in ("pce", "pce.consensus"):
        module = types.ModuleType(package)
        module.__path__ = [f"{root}/src/" + package.replace(".", "/")]
        sys.modules[package] = module
    import importlib
    function = getattr(importlib.import_module(f"pce.consensus.{name}"), name)
    call = lambda: function(
        labels + 1, nClusters=k, nBase=labels.shape[1], nRepeat=1
    )[0][0]
call()
start, cpu = time.perf_counter(), time.process_time()
found = call()
print(json.dumps({
    "seconds": time.perf_counter() - start,
    "cpu_seconds": time.process_time() - cpu,
    "peak_mb": peak() / 1e6,
    "labels": np.asarray(found).ravel().astype(int).tolist(),
}))
""".replace("\\\\", "\\")


def measured(python: str, *arguments: str) -> dict[str, Any]:
    """Return what one method takes in a fresh process, or its last words."""
    done = subprocess.run(
        [python, "-c", CHILD, *arguments], capture_output=True, text=True
    )
    if done.returncode:
        return {"failed": done.stderr.strip().splitlines()[-1]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(options: argparse.Namespace) -> None:
    from sklearn.datasets import make_blobs
    from sklearn.metrics import adjusted_rand_score

    from mdec.baselines import generate_kmeans_ensemble

    peers = {"ours": sys.executable}
    if options.pce:
        peers["pce"] = options.python
    print("| samples | method | who | seconds | CPU seconds | peak MB | ARI |")
    print("|---|---|---|---|---|---|---|")
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
            for name, theirs in METHODS.items():
                for who, python in peers.items():
                    called = name if who == "ours" else theirs
                    rest = str(N_CLUSTERS), options.pce or ""
                    found = measured(python, path, who, called, *rest)
                    if "failed" in found:
                        cells = [found["failed"], "", "", ""]
                    else:
                        score = adjusted_rand_score(y, found["labels"])
                        cells = [
                            f"{found['seconds']:.3f}",
                            f"{found['cpu_seconds']:.3f}",
                            f"{found['peak_mb']:.0f}",
                            f"{score:.3f}",
                        ]
                    row = [str(n_samples), name, who, *cells]
                    print("| " + " | ".join(row) + " |", flush=True)


def hypergraphs(folder: str) -> None:
    import mtkahypar
    from sklearn.metrics import normalized_mutual_info_score

    from mdec.baselines import _partitioning, generate_stratified_ensemble

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
    _, library = _partitioning._initialized()
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
    parser.add_argument("--pce")
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    if options.what == "ours":
        compare(options)
    else:
        hypergraphs(options.folder)


if __name__ == "__main__":
    main()
