"""Compare the paper's nine rivals with their published scores, settings and seconds.

    mdec bench run paper-tables
    python benchmarks/baselines_table.py --report --records paper-tables.jsonl
    python benchmarks/baselines_table.py DATA --sensitivity --only DS-1 DS-11
    python benchmarks/baselines_table.py DATA --reference --only DS-26 DS-30
    python benchmarks/baselines_table.py DATA --only DS-26 DS-30

The scores come from the records of the study; this script runs what the study has not:
other settings, and seconds beside those of MDEC-HC. DATA holds ``DS-XX_name.npz`` files
with X and y. One ensemble of each kind per dataset and seed serves all methods. Every
run is one line of JSON in the results file, so an interrupted study goes on where it
stopped; ``--report`` prints the tables from the files alone. Seconds are those of the
CPU, on one core, so that other programs on the machine count for little; the seconds
table shows datasets with a ``--reference`` run of MDEC-HC.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import mdec
from mdec.baselines import (
    BASELINES,
    GENERATION,
    generate_kmeans_ensemble,
    generate_stratified_ensemble,
)
from mdec.consensus import hierarchical
from mdec.evaluation import ari, nmi_max
from mdec.experiments.published import published_table
from mdec.experiments.records import Store, read_records
from mdec.experiments.summary import METRIC_TITLES, score_table

RIVALS = ("SSCSPA", "SSHGPA", "SSMCLA", "KCC", "PTGP", "SEC", "ECC", "LWGP", "SPCE")
GENERATORS = {
    "kmeans": generate_kmeans_ensemble,
    "stratified": generate_stratified_ensemble,
}
# SPCE solves up to 40 dense eigenvalue problems of order N: an hour at 11000 samples.
TOO_MANY = {"SPCE": 5000}

ROOT = Path(__file__).parents[1]

BEST_THRESHOLD = "best t by the true classes"

Record = dict[str, Any]


# What changes in the generation, from the numbers of samples, features and classes.
Generation = Callable[[int, int, int], dict[str, Any]]


def _unchanged(*_: int) -> dict[str, Any]:
    return {}


@dataclass(frozen=True)
class Setting:
    """One method with some of its parameters changed."""

    method: str
    name: str = "default"
    options: dict[str, Any] = field(default_factory=dict)
    generation: Generation = _unchanged


DEFAULTS = [Setting(name) for name in BASELINES]


def _strata(share: float) -> Generation:
    return lambda *shape: {"n_strata": max(1, round(share * math.sqrt(shape[1])))}


def _fixed(**parameters: Any) -> Generation:
    return lambda *_: parameters


def _from_classes(*shape: int) -> dict[str, Any]:
    n_samples, _, n_classes = shape
    high = max(n_classes, math.ceil(math.sqrt(n_samples)))
    return {"base_n_clusters_range": (n_classes, high)}


def _classes_only(*shape: int) -> dict[str, Any]:
    return {"base_n_clusters_range": (shape[2], shape[2])}


def sensitivity_settings() -> Iterator[Setting]:
    """Yield the settings of the choices that the published sources leave open."""
    for method in ("SSCSPA", "SSHGPA", "SSMCLA"):
        yield Setting(method, "1 stratum", {}, _fixed(n_strata=1))
        yield Setting(method, "sqrt(D)/2 strata", {}, _strata(0.5))
        yield Setting(method, "2 sqrt(D) strata", {}, _strata(2.0))
        yield Setting(method, "ratio 0.3", {}, _fixed(sampling_ratio=0.3))
        yield Setting(method, "K_m = K", {}, _classes_only)
    for utility, p in (
        ("U_H", 5),
        ("U_c", 5),
        ("U_cos", 5),
        ("U_Lp", 5),
        ("U_Lp", 8),
    ):
        for normalized in (False, True):
            name = f"{'N' if normalized else ''}{utility}".replace("p", str(p))
            options = {"utility": utility, "p": p, "normalized": normalized}
            if name != "U_H":
                yield Setting("KCC", name, options)
    yield Setting("KCC", "20 starts", {"n_init": 20})
    yield Setting("KCC", "K_m from K", {}, _from_classes)
    yield Setting(
        "ECC", "20 starts, 50 iterations", {"n_init": 20, "max_iterations": 50}
    )
    for n_init in (5, 20):
        yield Setting("SEC", f"{n_init} starts", {"n_init": n_init})
    yield Setting("SEC", "K_m from K", {}, _from_classes)
    for theta in (0.2, 1.0):
        yield Setting("LWGP", f"theta = {theta}", {"theta": theta})
    yield Setting("LWGP", "K_m from K", {}, _from_classes)
    for t in (0.0, 0.2, 0.3, 0.5):
        yield Setting("SPCE", f"t = {t}", {"threshold": t})
    yield Setting("SPCE", "K_m = K", {}, _classes_only)
    yield Setting("SPCE", "K_m = K, t = 0.5", {"threshold": 0.5}, _classes_only)


def dataset_id(path: Path) -> str:
    return f"DS-{int(path.name.split('_')[0].removeprefix('DS-'))}"


def load(path: Path) -> tuple[np.ndarray, np.ndarray]:
    with np.load(path, allow_pickle=False) as archive:
        return archive["X"], archive["y"]


class Ensembles:
    """Ensembles of one dataset and seed, each kind made once."""

    def __init__(self, X: np.ndarray, n_classes: int, seed: int) -> None:
        self.X, self.n_classes, self.seed = X, n_classes, seed
        self._made: dict[str, tuple[mdec.Ensemble, float]] = {}

    def get(self, setting: Setting) -> tuple[mdec.Ensemble, float]:
        kind = GENERATION[setting.method]
        parameters = setting.generation(*self.X.shape, self.n_classes)
        key = json.dumps([kind, parameters], sort_keys=True)
        if key not in self._made:
            start = time.process_time()
            ensemble = GENERATORS[kind](self.X, random_state=self.seed, **parameters)
            self._made[key] = ensemble, time.process_time() - start
        return self._made[key]


def score(
    dataset: str, setting: Setting, seed: int, ensembles: Ensembles, y: np.ndarray
) -> Record:
    ensemble, generation_seconds = ensembles.get(setting)
    start = time.process_time()
    labels = BASELINES[setting.method](
        ensemble, ensembles.n_classes, random_state=seed, **setting.options
    )
    return _record(dataset, setting.method, setting.name, seed, y, labels) | {
        "generation_cpu_seconds": round(generation_seconds, 2),
        "consensus_cpu_seconds": round(time.process_time() - start, 2),
    }


def _record(
    dataset: str,
    method: str,
    setting: str,
    seed: int,
    y: np.ndarray,
    labels: np.ndarray,
) -> Record:
    return {
        "dataset": dataset,
        "method": method,
        "setting": setting,
        "seed": seed,
        "nmi": round(100 * nmi_max(y, labels), 4),
        "ari": round(100 * ari(y, labels), 4),
        "n_clusters": int(labels.max()) + 1,
        "version": mdec.__version__,
    }


def study(
    path: Path,
    settings: list[Setting],
    seeds: dict[str, int],
    done: set[tuple[str, str, str, int]],
) -> Iterator[Record]:
    """Yield the missing records of one dataset."""
    X, y = load(path)
    dataset, n_classes = dataset_id(path), len(np.unique(y))
    for seed in range(max(seeds.values())):
        ensembles = Ensembles(X, n_classes, seed)
        for setting in settings:
            key = (dataset, setting.method, setting.name, seed)
            if seed < seeds[setting.method] and key not in done:
                yield score(dataset, setting, seed, ensembles, y)


def reference(path: Path, seed: int) -> Record:
    """Return the seconds and scores of MDEC-HC, to which the others are compared."""
    X, y = load(path)
    start = time.process_time()
    ensemble = mdec.generate_ensemble(X, random_state=seed)
    middle = time.process_time()
    labels = hierarchical(ensemble, len(np.unique(y)))
    return _record(dataset_id(path), "MDEC-HC", "default", seed, y, labels) | {
        "generation_cpu_seconds": round(middle - start, 2),
        "consensus_cpu_seconds": round(time.process_time() - middle, 2),
    }


def report(records: list[Record], store: Store) -> None:
    for metric in ("nmi_max", "ari"):
        _print_scores(store, metric)
    _print_sensitivity(records)
    _print_timing(records)


def _by(records: list[Record], *names: str) -> dict[Any, list[Record]]:
    groups: dict[Any, list[Record]] = defaultdict(list)
    for record in records:
        groups[tuple(record[name] for name in names)].append(record)
    return groups


def _order(dataset: str) -> int:
    return int(dataset[3:])


def _print_scores(store: Store, metric: str) -> None:
    table = score_table(store, metric, lambda run: run["method"] in RIVALS)
    paper = published_table(metric, table.datasets, table.methods)
    print(f"\n### {METRIC_TITLES[metric]}: ours (published, difference), percent\n")
    print("| dataset | runs | " + " | ".join(table.methods) + " |")
    print("|---" * (len(table.methods) + 2) + "|")
    gaps = table.mean - paper.mean
    for i, dataset in enumerate(table.datasets):
        counts = sorted(set(table.counts[i].tolist()) - {0})
        cells = [dataset, "-".join(map(str, counts))]
        for j in range(len(table.methods)):
            theirs = paper.status[i, j] or f"{paper.mean[i, j]:.1f}"
            ours = table.status[i, j] or f"{table.mean[i, j]:.1f}"
            apart = "" if np.isnan(gaps[i, j]) else f", {gaps[i, j]:+.1f}"
            cells.append(f"{ours} ({theirs}{apart})")
        print("| " + " | ".join(cells) + " |")
    known = ~np.isnan(gaps)
    ours = np.where(known, table.mean, np.nan)
    theirs = np.where(known, paper.mean, np.nan)
    means = zip(np.nanmean(ours, axis=0), np.nanmean(theirs, axis=0), strict=True)
    rows = {
        "mean": [f"{a:.1f} ({b:.1f})" for a, b in means],
        "mean difference": [f"{gap:+.1f}" for gap in np.nanmean(gaps, axis=0)],
        "mean absolute difference": [
            f"{gap:.1f}" for gap in np.nanmean(np.abs(gaps), axis=0)
        ],
    }
    for label, cells in rows.items():
        print(f"| **{label}** | | " + " | ".join(cells) + " |")


def _published(metric: str, datasets: list[str], method: str) -> list[float]:
    return published_table(metric, datasets, [method]).mean[:, 0].tolist()


def _print_sensitivity(records: list[Record]) -> None:
    groups = _by(records, "method", "setting", "dataset")
    datasets = sorted(
        {r["dataset"] for r in records if r["setting"] != "default"}, key=_order
    )
    names = {key[:2] for key in groups if key[1] != "default"}
    print("\n### NMI of other settings, percent: mean ± std over seeds\n")
    print("| method | setting | " + " | ".join(datasets) + " | mean |")
    print("|---" * (len(datasets) + 3) + "|")
    for method in [m for m in BASELINES if any(n[0] == m for n in names)]:
        paper = _published("nmi_max", datasets, method)
        cells = [f"{value:.2f}" for value in paper]
        print(f"| {method} | published | {' | '.join(cells)} | {np.mean(paper):.1f} |")
        settings = dict.fromkeys(r["setting"] for r in records if r["method"] == method)
        if method == "SPCE":
            groups |= _best_threshold(records, datasets)
            settings[BEST_THRESHOLD] = None
        for setting in ["default", *[s for s in settings if s != "default"]]:
            cells, means = [], []
            for dataset in datasets:
                runs = groups.get((method, setting, dataset), [])
                values = np.array([r["nmi"] for r in runs])
                cells.append(
                    f"{values.mean():.1f} ± {values.std():.1f}" if runs else "-"
                )
                means += [values.mean()] if runs else []
            if means:
                cells.append(
                    f"{np.mean(means):.1f}" if len(means) == len(datasets) else "-"
                )
                print(f"| {method} | {setting} | " + " | ".join(cells) + " |")


def _best_threshold(records: list[Record], datasets: list[str]) -> dict[Any, Any]:
    """Return SPCE with the threshold that the true classes favour, seed by seed."""
    scans = _by(
        [
            r
            for r in records
            if r["method"] == "SPCE"
            and r["dataset"] in datasets
            and (r["setting"] == "default" or r["setting"].startswith("t = "))
        ],
        "dataset",
        "seed",
    )
    best: dict[Any, list[Record]] = defaultdict(list)
    for (dataset, _), runs in scans.items():
        if len(runs) > 1:
            top = max(runs, key=lambda r: r["nmi"])
            best["SPCE", BEST_THRESHOLD, dataset].append(top)
    return best


def _print_timing(records: list[Record]) -> None:
    first = _by([r for r in records if r["setting"] == "default"], "dataset", "seed")
    for (dataset, seed), runs in first.items():
        seconds = {
            r["method"]: (r["generation_cpu_seconds"], r["consensus_cpu_seconds"])
            for r in runs
            if "consensus_cpu_seconds" in r
        }
        if seed != 0 or "MDEC-HC" not in seconds:
            continue
        (reference,) = _published("seconds", [dataset], "MDEC-HC")
        print(f"\n### CPU seconds on {dataset}, one core\n")
        print("| method | generation | consensus | over MDEC-HC | published ratio |")
        print("|---|---|---|---|---|")
        for method in ("MDEC-HC", *RIVALS):
            if method not in seconds:
                continue
            ratio = sum(seconds[method]) / sum(seconds["MDEC-HC"])
            (theirs,) = _published("seconds", [dataset], method)
            generation, consensus = seconds[method]
            print(
                f"| {method} | {generation:.1f} | {consensus:.1f} | {ratio:.2f} "
                f"| {theirs / reference:.2f} |"
            )


def seeds_of(path: Path, options: argparse.Namespace) -> dict[str, int]:
    """Return how many seeds each method gets on a dataset."""
    n_samples = len(load(path)[1])
    many = n_samples < 1000
    seeds = {}
    for method in BASELINES:
        seeds[method] = options.seeds if many else options.image_seeds
        if n_samples > TOO_MANY.get(method, n_samples):
            seeds[method] = 0
    return seeds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument(
        "--records",
        type=Path,
        default=ROOT / "docs/results/records/paper-tables.jsonl.gz",
        help="of the study paper-tables",
    )
    parser.add_argument("--seeds", type=int, default=10, help="below 1000 samples")
    parser.add_argument("--image-seeds", type=int, default=3, help="from 1000 on")
    parser.add_argument("--only", nargs="*", help="dataset ids")
    parser.add_argument("--methods", nargs="*", choices=BASELINES, default=RIVALS)
    parser.add_argument(
        "--results",
        type=Path,
        default=ROOT / "benchmarks/results/baselines.jsonl",
    )
    parser.add_argument("--sensitivity", action="store_true")
    parser.add_argument("--reference", action="store_true", help="run MDEC-HC")
    parser.add_argument("--report", action="store_true", help="print tables only")
    options = parser.parse_args()
    # Fewer clusters than asked for is a result here, and it is recorded.
    warnings.filterwarnings("ignore", category=UserWarning)
    records = []
    if options.results.exists():
        records = [
            json.loads(line) for line in options.results.read_text().splitlines()
        ]
    if options.report:
        report(records, read_records(options.records))
        return
    done = {(r["dataset"], r["method"], r["setting"], r["seed"]) for r in records}
    settings = list(sensitivity_settings()) if options.sensitivity else DEFAULTS
    settings = [s for s in settings if s.method in options.methods]
    for path in sorted(options.data.glob("DS-*.npz"), key=lambda p: len(load(p)[1])):
        if options.only and dataset_id(path) not in options.only:
            continue
        if options.reference:
            made = iter([reference(path, seed=0)])
        else:
            made = study(path, settings, seeds_of(path, options), done)
        for record in made:
            line = json.dumps(record)
            with options.results.open("a") as file:
                file.write(line + "\n")
            print(line, flush=True)


if __name__ == "__main__":
    main()
