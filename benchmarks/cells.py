"""Compare `mdec fit` with what people use on single cells, the number of classes given.

    python benchmarks/cells.py run --data FOLDER [--sets NAME ...] [--seeds 3]
    python benchmarks/cells.py many [--members 100] [--shape genes components]
    python benchmarks/cells.py file [--members 100]
    python benchmarks/cells.py reduced --data FOLDER [--members 20]
    python benchmarks/cells.py tables

FOLDER holds sets of cells as NAME.npz: `data`, `indices`, `indptr` and `shape` of a CSR
matrix of cells by genes, and the classes `y`. `run` appends one record to the results
for each set, method and seed that is not there yet; `tables` prints means of NMI over
the larger entropy, in percent. "mdec" prepares the values as `mdec fit` does by itself
and has M = 100 members; the others see 50 principal components of the same values. The
resolution of Leiden is searched for the number of classes; it needs the packages
scanpy, leidenalg and igraph (scanpy 1.11 with pynndescent below 0.7) and is left out,
with a word, where they are missing.

`many` takes the time, the memory and the NMI of one clustering of many made-up cells,
each in a process of its own: counts of 2,000 genes in twelve kinds of cells, which both
prepare as `mdec fit` does, or Gaussian clusters as wide as components. Leiden is that
of igraph, at resolution 1, on 50 components; "mdec" takes base="auto" and the spectral
consensus. Each runs once before on a part of the cells, which compiles its loops and is
not timed. CPU seconds of fewer members than 100 are scaled to 100, those of the
consensus too but not those of preparing.

`file` takes the CPU seconds and the peak memory of `mdec fit --k 8` on a sparse file of
4,186 made-up cells and 13,500 genes, as a process that finds its loops compiled;
beside it those of a process that imports what it needs.

`reduced` scores the genes that `mdec fit` takes beside principal components of them,
on the sets of FOLDER and on counts of 4,500 made-up cells.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from scipy import sparse
from sklearn.cluster import AgglomerativeClustering, KMeans, SpectralClustering
from sklearn.decomposition import PCA

from mdec import MDEC, generate_ensemble
from mdec.bench.evaluation import nmi_max
from mdec.consensus import CONSENSUS
from mdec.generation import AUTO_SAMPLES
from mdec.preparation import ExpressionPreparation
from mdec.preparation.recipes import N_COMPONENTS
from mdec.tables import Table
from mdec.tables.steps import prepare_table

ROOT = Path(__file__).resolve().parents[1]
SHORT = {"hierarchical": "HC", "spectral": "SC", "bipartite": "BG"}
# Halvings of the interval of resolutions.
STEPS = 25
# Cells and features of the tables whose time and memory are taken.
MANY = {"genes": (10_000, 2000), "components": (100_000, 50)}
# As many compile all that more would: landmarks, and approximate neighbours of Leiden.
COMPILING = AUTO_SAMPLES + 1

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
    done = {
        (r.get("set"), r.get("family"), r.get("seed")) for r in read(options.results)
    }
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


def many(options: argparse.Namespace) -> None:
    """Append records of the time and memory that many cells take."""
    for shape in (MANY[name] for name in options.shape):
        for method in ("mdec", "Leiden"):
            words = [method, *map(str, shape), str(options.members)]
            command = [sys.executable, __file__, "one", "--many", *words]
            done = subprocess.run(
                command, check=True, stdout=subprocess.PIPE, text=True
            )
            with options.results.open("a") as file:
                file.write(done.stdout)


def make_counts(
    n_cells: int, n_genes: int, seed: int, strength: float, level: float = -1.5
) -> Any:
    """Return counts of made-up cells of twelve kinds of unequal size, and the kinds.

    A twentieth of the genes is higher in each kind, by a factor whose logarithm is
    `strength` on average; cells differ in depth, and counts more than by chance. The
    logarithm of a typical gene is `level`.
    """
    rng = np.random.default_rng(seed)
    levels = np.tile(rng.lognormal(level, 1.5, n_genes), (12, 1))
    for level in levels:
        marking = rng.choice(n_genes, n_genes // 20, replace=False)
        level[marking] *= rng.lognormal(strength, 0.5, len(marking))
    kinds = rng.choice(12, size=n_cells, p=rng.dirichlet(np.full(12, 1.5)))
    counts = np.empty((n_cells, n_genes), dtype=np.float32)
    for start in range(0, n_cells, 500):
        means = levels[kinds[start : start + 500]]
        depths = rng.lognormal(0.0, 0.4, (len(means), 1))
        noise = rng.gamma(2.0, 0.5, means.shape)
        counts[start : start + 500] = rng.poisson(means * depths * noise)
    return counts, kinds


def make_gaussian(n_cells: int, n_features: int) -> Any:
    """Return twelve Gaussian clusters of unit spread, and which cell is in which."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(12, n_features)).astype(np.float32)
    X = rng.standard_normal((n_cells, n_features), dtype=np.float32)
    kinds = rng.integers(12, size=n_cells)
    return X + centres[kinds], kinds


def one(method: str, n_cells: int, n_features: int, n_members: int) -> None:
    """Print the record of one clustering of made-up cells."""
    genes, size = n_features > N_COMPONENTS, (n_cells, n_features)
    X, kinds = make_counts(*size, 0, 0.3) if genes else make_gaussian(*size)
    take = {"mdec": _take_mdec, "Leiden": _take_leiden}[method]
    before = peak()
    take(_prepare(X, method) if genes else X[:COMPILING], 2)
    start = time.process_time()
    values = _prepare(X, method) if genes else X
    preparing = time.process_time() - start
    labels = take(values, n_members)
    seconds = time.process_time() - start
    record: Answers = {"many": [n_cells, n_features], "method": method}
    if method == "mdec":
        record |= {"members": n_members, "measured": round(seconds, 1)}
        seconds = preparing + (seconds - preparing) * 100 / n_members
    megabytes = {"data": X.nbytes / 1e6, "peak": peak(), "before": before}
    record |= {"seconds": round(seconds, 1)}
    record |= {"nmi": round(100.0 * nmi_max(kinds, labels), 1)}
    record |= {f"{name}_mb": round(size) for name, size in megabytes.items()}
    print(json.dumps(record))


def _prepare(counts: Any, method: str) -> Any:
    """Return the components of counts that mdec takes by itself, or those of others."""
    if method == "mdec":
        return ExpressionPreparation().fit_transform(counts)
    return components(ExpressionPreparation(n_components=0).fit_transform(counts), 0)


def _take_mdec(X: Any, n_members: int) -> Any:
    return MDEC(
        12,
        ensemble_size=n_members,
        base="auto",
        consensus="spectral",
        random_state=0,
    ).fit_predict(X)


def _take_leiden(X: Any, _: int) -> Any:
    import scanpy

    adata = scanpy.AnnData(X)
    scanpy.pp.neighbors(adata, n_neighbors=15, use_rep="X", random_state=0)
    scanpy.tl.leiden(
        adata, random_state=0, flavor="igraph", n_iterations=2, directed=False
    )
    return adata.obs["leiden"].astype(int).to_numpy()


def file(options: argparse.Namespace) -> None:
    """Append the record of `mdec fit` on a sparse file."""
    counts, _ = make_counts(4186, 13_500, 0, 0.3, level=-3.1)
    packed = sparse.csr_array(counts)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "cells.h5ad"
        with h5py.File(place, "w") as target:
            group = target.create_group("X")
            group.attrs.update({"encoding-type": "csr_matrix", "shape": packed.shape})
            for part in ("data", "indices", "indptr"):
                group[part] = getattr(packed, part)
            for part, size in zip(("obs", "var"), packed.shape, strict=True):
                names = target.create_group(part)
                names.attrs["_index"] = "_index"
                names["_index"] = [f"{part}{i}" for i in range(size)]
        words = ["fit", str(place), "--out", f"{folder}/out", "--k", "8", "--quiet"]
        words += ["--overwrite", "--ensemble-size"]
        again = [*words, str(options.members)]
        run = "from mdec.cli import main; main(sys.argv[1:])"
        load = "import mdec.cli.fit, mdec.report.page, sklearn.manifold, h5py, numba"
        # The first run compiles.
        _measure(run, [*words, "4"])
        record: Answers = {"file": [*packed.shape], "members": options.members}
        record |= {"stored_mb": _stored(packed)}
        for name, code in (("imports", load), ("fit", run)):
            record |= {f"{name}_{n}": x for n, x in _measure(code, again).items()}
    with options.results.open("a") as target:
        target.write(json.dumps(record) + "\n")
    print(json.dumps(record))


def _stored(packed: sparse.csr_array) -> int:
    return round((packed.data.nbytes + packed.indices.nbytes) / 1e6)


def _measure(code: str, words: list[str]) -> dict[str, float]:
    """Return CPU seconds and peak memory of a process of its own."""
    # Not the maximum that getrusage tells, which a process has from its parent.
    tail = (
        "peak = next(line for line in open('/proc/self/status') if 'VmHWM' in line)\n"
        "print(time.process_time(), int(peak.split()[1]) / 1e3, file=sys.stderr)"
    )
    whole = f"import sys, time\ntry:\n    {code}\nexcept SystemExit as end:\n"
    whole += f"    assert not end.code\n{tail}"
    command = [sys.executable, "-c", whole, *words]
    done = subprocess.run(command, check=True, stderr=subprocess.PIPE, text=True)
    seconds, size = map(float, done.stderr.split()[-2:])
    return {"seconds": round(seconds, 1), "mb": round(size)}


def reduced(options: argparse.Namespace) -> None:
    """Append records of genes and of principal components of them."""
    made_up = [(f"made up, {each:g}", each) for each in (0.15, 0.3)]
    sets: dict[str, Callable[[], Any]] = {
        path.stem: partial(_filled, path) for path in sorted(options.data.glob("*.npz"))
    } | {name: partial(make_counts, 4500, 3000, 0, each) for name, each in made_up}
    done = {(r.get("reduced"), r.get("components")) for r in read(options.results)}
    for name, make in sets.items():
        if options.sets and name not in options.sets:
            continue
        X, kinds = make()
        for number in (0, 20, 50):
            if (name, number) in done:
                continue
            values = ExpressionPreparation(n_components=number).fit_transform(X)
            start = time.process_time()
            ensemble = generate_ensemble(
                values, ensemble_size=options.members, random_state=0
            )
            seconds = time.process_time() - start
            n_clusters = len(np.unique(kinds))
            scores = {
                SHORT[each]: round(
                    100.0 * nmi_max(kinds, find(ensemble, n_clusters, random_state=0)),
                    2,
                )
                for each, find in CONSENSUS.items()
            }
            record = {"reduced": name, "components": number, "nmi": scores}
            record |= {"members": options.members, "seconds": round(seconds, 2)}
            with options.results.open("a") as file:
                file.write(json.dumps(record) + "\n")


def _filled(path: Path) -> Any:
    table, kinds = load(path)
    return table.values.toarray(), kinds


def peak() -> float:
    """Return the most memory that the process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def read(path: Path) -> list[dict[str, Any]]:
    """Return all records."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def tables(records: list[dict[str, Any]]) -> None:
    """Print each set and the means, over the seeds; then what many cells take."""
    found: dict[str, dict[str, list[float]]] = {}
    large = {(*r["many"], r["method"]): r for r in records if "many" in r}
    small = {(r["reduced"], r["components"]): r for r in records if "reduced" in r}
    records = [record for record in records if "set" in record]
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
    print("| cells | method | members run | CPU s | over Leiden | NMI | data | peak |")
    print("|---|---|---|---|---|---|---|---|")
    for (n_cells, n_features, method), record in large.items():
        leiden = large[n_cells, n_features, "Leiden"]
        row = [
            f"{n_cells:,} x {n_features}",
            method,
            record.get("members", "-"),
            record["seconds"],
            f"{record['seconds'] / leiden['seconds']:.1f}",
            record.get("nmi", ""),
            f"{record['data_mb']} MB",
            f"{record['peak_mb']:,} MB",
        ]
        print("| " + " | ".join(map(str, row)) + " |")
    print("| set | components | HC / SC / BG | CPU s of a member |")
    print("|---|---|---|---|")
    for (name, number), record in small.items():
        scores = " / ".join(f"{score:.1f}" for score in record["nmi"].values())
        seconds = record["seconds"] / record["members"]
        print(f"| {name} | {number or 'none'} | {scores} | {seconds:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "action", choices=("run", "many", "file", "reduced", "tables", "one")
    )
    parser.add_argument("--data", type=Path, help="folder of the sets")
    parser.add_argument("--sets", nargs="*")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--members", type=int, default=100)
    parser.add_argument("--shape", nargs="*", choices=MANY, default=[*MANY])
    parser.add_argument("--many", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument(
        "--results", type=Path, default=ROOT / "benchmarks/results/cells.jsonl"
    )
    options = parser.parse_args()
    if options.action == "tables":
        tables(read(options.results))
        return
    # Neighbour graphs of small sets fall apart, and scanpy tells its future.
    warnings.filterwarnings("ignore")
    if options.action in ("many", "file"):
        {"many": many, "file": file}[options.action](options)
        return
    if options.action == "one":
        method, *sizes = options.many
        one(method, *map(int, sizes))
        return
    if options.data is None or not options.data.is_dir():
        raise SystemExit("name the folder of the sets with --data.")
    reduced(options) if options.action == "reduced" else run(options)


if __name__ == "__main__":
    main()
