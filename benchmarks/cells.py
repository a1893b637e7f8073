"""Compare `mdec fit` with what people use on single cells, the number of classes given.

    python benchmarks/cells.py run --data FOLDER [--sets NAME ...] [--seeds 3]
    python benchmarks/cells.py tables

FOLDER holds sets of cells as NAME.npz: `data`, `indices`, `indptr` and `shape` of a CSR
matrix of cells by genes, and the classes `y`. `run` appends one record to the results
for each set, method and seed that is not there yet; `tables` prints means of NMI over
the larger entropy, in percent. "mdec" prepares the values as `mdec fit` does by itself
and has M = 100 members; the others see 50 principal components of the same values. The
resolution of Leiden is searched for the number of classes; it needs the packages
scanpy, leidenalg and igraph and is left out, with a word, where they are missing.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.cluster import AgglomerativeClustering, KMeans, SpectralClustering
from sklearn.decomposition import PCA

from mdec import generate_ensemble
from mdec.bench.evaluation import nmi_max
from mdec.consensus import CONSENSUS
from mdec.tables import Table
from mdec.tables.steps import prepare_table

ROOT = Path(__file__).resolve().parents[1]
SHORT = {"hierarchical": "HC", "spectral": "SC", "bipartite": "BG"}
# Halvings of the interval of resolutions.
STEPS = 25

Answers = dict[str, Any]


def load(path: Path) -> tuple[Table, Any]:
    """Return cells by genes, sparse, and their classes."""
    with np.load(path, allow_pickle=False) as parts:
        entries = parts["data"].astype(np.float32), parts["indices"], parts["indptr"]
        X = sparse.csr_array(entries, shape=tuple(parts["shape"]))
        y = parts["y"]
    cells, genes = (
        [f"{what} {i}" for i in range(n)]
        for what, n in zip(("cell", "gene"), X.shape, strict=True)
    )
    return Table(X, cells, genes, reading={"names_of_columns": True}), y


def by_mdec(values: Any, n_clusters: int, seed: int) -> Answers:
    """Cluster by the three consensus functions of one ensemble."""
    ensemble = generate_ensemble(values, random_state=seed)
    return {
        f"mdec, {SHORT[name]}": function(ensemble, n_clusters, random_state=seed)
        for name, function in CONSENSUS.items()
    }


def on_components(values: Any, n_clusters: int, seed: int) -> Answers:
    """Cluster 50 principal components by k-means, Ward and a neighbour graph."""
    parts = components(values, seed)
    near = min(15, len(parts) - 1)
    methods = {
        "k-means": KMeans(n_clusters, n_init=10, random_state=seed),
        "Ward": AgglomerativeClustering(n_clusters),
        "spectral kNN": SpectralClustering(
            n_clusters,
            affinity="nearest_neighbors",
            n_neighbors=near,
            random_state=seed,
        ),
    }
    return {name: method.fit_predict(parts) for name, method in methods.items()}


def components(values: Any, seed: int) -> Any:
    """Return 50 principal components."""
    return PCA(min(50, *values.shape), random_state=seed).fit_transform(values)


def by_leiden(values: Any, n_clusters: int, seed: int) -> Answers:
    """Cluster by Leiden, its resolution searched for the number of clusters."""
    import scanpy

    adata = scanpy.AnnData(components(values, seed))
    scanpy.pp.neighbors(adata, n_neighbors=15, use_rep="X", random_state=seed)
    low, high, best = 1e-3, 16.0, None
    for _ in range(STEPS):
        middle = float(np.sqrt(low * high))
        scanpy.tl.leiden(
            adata, resolution=middle, random_state=seed, flavor="leidenalg"
        )
        labels = adata.obs["leiden"].astype(int).to_numpy()
        found = int(labels.max()) + 1
        if best is None or abs(found - n_clusters) < abs(best[0] - n_clusters):
            best = found, labels
        if found == n_clusters:
            break
        low, high = (middle, high) if found < n_clusters else (low, middle)
    return {"Leiden, K searched": best[1]}


def run(options: argparse.Namespace) -> None:
    """Append the records that are missing."""
    methods: dict[str, Callable[[Any, int, int], Answers]] = {
        "mdec": by_mdec,
        "components": on_components,
        "Leiden": by_leiden,
    }
    try:
        import igraph  # noqa: F401
        import leidenalg  # noqa: F401
        import scanpy  # noqa: F401
    except ImportError as error:
        print(f"Leiden is left out: {error}.")
        del methods["Leiden"]
    done = {(r["set"], r["family"], r["seed"]) for r in read(options.results)}
    for path in sorted(options.data.glob("*.npz")):
        if options.sets and path.stem not in options.sets:
            continue
        table, y = load(path)
        prepared = prepare_table(table)
        for seed in range(options.seeds):
            for family, method in methods.items():
                if (path.stem, family, seed) in done:
                    continue
                start = time.process_time()
                answers = method(prepared.values, len(np.unique(y)), seed)
                record = {
                    "set": path.stem,
                    "family": family,
                    "seed": seed,
                    "kind": prepared.words["kind"],
                    "seconds": round(time.process_time() - start, 2),
                    "nmi": {
                        name: round(100.0 * nmi_max(y, labels), 2)
                        for name, labels in answers.items()
                    },
                }
                with options.results.open("a") as file:
                    file.write(json.dumps(record) + "\n")


def read(path: Path) -> list[dict[str, Any]]:
    """Return all records."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def tables(records: list[dict[str, Any]]) -> None:
    """Print each set and the means, over the seeds."""
    found: dict[str, dict[str, list[float]]] = {}
    for record in records:
        for name, score in record["nmi"].items():
            found.setdefault(name, {}).setdefault(record["set"], []).append(score)
    sets = sorted({record["set"] for record in records})
    names = [name for name, scores in found.items() if set(scores) == set(sets)]
    print("| set | " + " | ".join(names) + " |")
    print("|---" * (len(names) + 1) + "|")
    means = np.array([[np.mean(found[name][each]) for name in names] for each in sets])
    for each, row in zip(sets, means, strict=True):
        print(f"| {each} | " + " | ".join(f"{score:.1f}" for score in row) + " |")
    cells = " | ".join(f"{score:.1f}" for score in means.mean(axis=0))
    print(f"| mean of {len(sets)} | {cells} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=("run", "tables"))
    parser.add_argument("--data", type=Path, help="folder of the sets")
    parser.add_argument("--sets", nargs="*")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--results", type=Path, default=ROOT / "benchmarks/results/cells.jsonl"
    )
    options = parser.parse_args()
    if options.action == "tables":
        tables(read(options.results))
        return
    if options.data is None or not options.data.is_dir():
        raise SystemExit("name the folder of the sets with --data.")
    # Neighbour graphs of small sets fall apart, and scanpy tells its future.
    warnings.filterwarnings("ignore")
    run(options)


if __name__ == "__main__":
    main()
