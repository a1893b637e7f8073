"""Score MDEC on the paper's datasets, beside the published tables.

    python benchmarks/paper_tables.py DATA [--tables DIR] [--seeds 10] [--only DS-26]

DATA holds ``DS-XX_name.npz`` files with X and y. One ensemble per dataset, kernel and
seed serves the three consensus functions. Every run is one line of JSON in the results
file, so an interrupted study goes on where it stopped; ``--report`` prints the tables
from that file alone.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from pathlib import Path

import numpy as np

import mdec
from mdec.consensus import CONSENSUS
from mdec.evaluation import ari, nmi_max
from mdec.weights import ensemble_driven_cluster_index

KERNELS = ("scaled_gaussian", "scaled_exponential")
NAMES = {"hierarchical": "HC", "spectral": "SC", "bipartite": "BG"}
FEW_SEEDS = {"DS-30": 3}


def dataset_id(path: Path) -> str:
    return f"DS-{int(path.name.split('_')[0].removeprefix('DS-'))}"


def run(path: Path, kernel: str, seed: int, n_jobs: int) -> dict[str, object]:
    with np.load(path, allow_pickle=False) as archive:
        X, y = archive["X"], archive["y"]
    start = time.perf_counter()
    ensemble = mdec.generate_ensemble(
        X, kernel=kernel, random_state=seed, n_jobs=n_jobs
    )
    record: dict[str, object] = {
        "dataset": dataset_id(path),
        "kernel": kernel,
        "seed": seed,
        "version": mdec.__version__,
        "generation_seconds": round(time.perf_counter() - start, 3),
        "failures": len(ensemble.failures),
    }
    weights = ensemble_driven_cluster_index(ensemble)
    for name, consensus in CONSENSUS.items():
        labels = consensus(ensemble, len(np.unique(y)), weights, random_state=seed)
        record[f"{NAMES[name]}_nmi"] = round(100 * nmi_max(y, labels), 4)
        record[f"{NAMES[name]}_ari"] = round(100 * ari(y, labels), 4)
    return record


def published(tables: Path, score: str) -> dict[str, dict[str, tuple[float, float]]]:
    with (tables / f"table_{score}.csv").open() as file:
        return {
            row["dataset"]: {
                name: (float(row[f"MDEC-{name}"]), float(row[f"MDEC-{name}_std"]))
                for name in NAMES.values()
            }
            for row in csv.DictReader(file)
            if row["dataset"].startswith("DS-")
        }


def report(records: list[dict[str, object]], tables: Path | None) -> None:
    for score, title in (
        ("nmi", "NMI (divided by the larger entropy)"),
        ("ari", "ARI"),
    ):
        for kernel in KERNELS:
            chosen = [r for r in records if r["kernel"] == kernel]
            if chosen:
                truth = published(tables, score) if tables else {}
                _print_table(chosen, score, f"{title}, {kernel}", truth)


def _print_table(
    records: list[dict[str, object]],
    score: str,
    title: str,
    truth: dict[str, dict[str, tuple[float, float]]],
) -> None:
    print(f"\n### {title}, percent, mean ± std\n")
    print("| dataset | seeds | HC | paper | SC | paper | BG | paper |")
    print("|---|---|---|---|---|---|---|---|")
    datasets = sorted({str(r["dataset"]) for r in records}, key=lambda d: int(d[3:]))
    differences: dict[str, list[float]] = {name: [] for name in NAMES.values()}
    means: dict[str, list[float]] = {name: [] for name in NAMES.values()}
    misses = []
    for dataset in datasets:
        runs = [r for r in records if r["dataset"] == dataset]
        cells = [dataset, str(len(runs))]
        for name in NAMES.values():
            values = np.array([float(str(r[f"{name}_{score}"])) for r in runs])
            means[name].append(values.mean())
            cells.append(f"{values.mean():.2f} ± {values.std():.2f}")
            if dataset not in truth:
                cells.append("")
                continue
            mean, std = truth[dataset][name]
            cells.append(f"{mean:.2f} ± {std:.2f}")
            difference = values.mean() - mean
            differences[name].append(difference)
            if abs(difference) > max(3.0, 2.0 * std):
                misses.append(f"{dataset} {name} {difference:+.2f} (std {std:.2f})")
        print("| " + " | ".join(cells) + " |")
    cells = ["mean", ""]
    for name in NAMES.values():
        average = [truth[d][name][0] for d in datasets if d in truth]
        cells.append(f"**{np.mean(means[name]):.2f}**")
        cells.append(f"{np.mean(average):.2f}" if average else "")
    print("| " + " | ".join(cells) + " |")
    if truth:
        for name, values in differences.items():
            print(
                f"\n{name}: mean absolute difference {np.abs(values).mean():.2f}",
                end="",
            )
        print("\n\noff by more than max(3, 2 std):", "; ".join(misses) or "none")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--tables", type=Path, help="folder of table_nmi.csv and so on")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", nargs="*", help="dataset ids")
    parser.add_argument("--kernels", nargs="*", default=KERNELS, choices=KERNELS)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--results", type=Path, default=Path("paper_tables.jsonl"))
    parser.add_argument("--report", action="store_true", help="print tables only")
    options = parser.parse_args()
    records = []
    if options.results.exists():
        records = [
            json.loads(line) for line in options.results.read_text().splitlines()
        ]
    done = {(r["dataset"], r["kernel"], r["seed"]) for r in records}
    paths = sorted(options.data.glob("DS-*.npz"), key=lambda p: p.stat().st_size)
    for path in [] if options.report else paths:
        dataset = dataset_id(path)
        if options.only and dataset not in options.only:
            continue
        for kernel in options.kernels:
            for seed in range(
                min(options.seeds, FEW_SEEDS.get(dataset, options.seeds))
            ):
                if (dataset, kernel, seed) in done:
                    continue
                record = run(path, kernel, seed, options.jobs)
                records.append(record)
                with options.results.open("a") as file:
                    file.write(json.dumps(record) + "\n")
                print(json.dumps(record), flush=True)
    report(records, options.tables)


if __name__ == "__main__":
    main()
