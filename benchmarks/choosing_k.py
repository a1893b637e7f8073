"""Figures of docs/choosing-k.md: how good, how stable and how honest the choice is.

Usage: python benchmarks/choosing_k.py PART --data FOLDER --cells FOLDER --cache FOLDER

The folder of data has the DS-XX_name.npz files; gene sets that it lacks come from
`mdec.datasets`, which looks in the folder of MDEC_DATA. The folder of cells has sparse
.npz files. Ensembles of 100 members with three seeds are made once and kept in the
cache, as is what is measured on them. Gene sets and cells are prepared by
`ExpressionPreparation`; of cells the 2000 genes that then vary most are taken.

    ensembles   make the ensembles
    sets        what "auto" answers for each set
    rules       NMI and stability by family, parameters chosen by the other families
    firm        in which sets groups are firm
    noise       how often one cluster is called more than one, and other shapes
    time        processor seconds of a fit, of the test for groups, and of both choices

`--record` appends what `rules`, `firm`, `noise` and `time` print to the lines of
benchmarks/results/choosing-k.jsonl, of which `docs/_site/measured.py` makes tables.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from records import append_lines, commit_of_source
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.preprocessing import StandardScaler

from mdec import MDEC, Ensemble, generate_ensemble
from mdec._support.parallel import single_threaded_blas
from mdec.bench.evaluation import nmi_max
from mdec.coassociation import locally_weighted_coassociation
from mdec.consensus.dendrogram import cut, merges
from mdec.datasets import load_dataset
from mdec.ensemble.plan import Plan
from mdec.preparation import ExpressionPreparation
from mdec.selection import null, select_n_clusters
from mdec.selection.criteria import eigengaps
from mdec.selection.null import NULL_LEVEL, null_reference
from mdec.selection.rule import EXPONENTS, MAX_SAMPLES
from mdec.weights import ensemble_driven_cluster_index

GENES = tuple(range(1, 19))
IMAGES = 20, 22, 23, 24, 26
FAMILIES = "genes", "images", "cells"
MEMBERS, SEEDS, MOST_GENES = 100, 3, 2000

# What the exponents are chosen from, each on its own: whole, half and quarter.
GRID = dict.fromkeys(EXPONENTS, (1.0, 0.5, 0.25))

NOISE_SHAPE = 40, 40
NOISES = (
    "Gaussian",
    "correlated",
    "elongated",
    "lognormal",
    "negative binomial",
    "row-scaled",
    "heavy-tailed",
    "binary, 2 factors",
    "answers from 1 to 5, 3 factors",
    "Poisson counts, samples of differing depth",
)
SHAPES = "gradient", "ring", "batch shift of 1 sd", "batch shift of 3 sd", "uniform"


def row(*cells: object) -> None:
    """Print one row of a Markdown table."""
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def record(what: str, **found: object) -> None:
    """Append a line to the record of the choice of K."""
    made = {"what": what, "date": datetime.now(UTC).date().isoformat()}
    append_lines("choosing-k", [made | {"commit": commit_of_source(), **found}])


def load_sets(
    data: Path, cells: Path
) -> Iterator[tuple[str, str, np.ndarray, np.ndarray]]:
    """Yield family, name, rows and classes of every set."""
    for number in GENES + IMAGES:
        family = "genes" if number in GENES else "images"
        for path in data.glob(f"DS-{number:02d}_*.npz"):
            with np.load(path) as archive:
                X, y = archive["X"], archive["y"]
            break
        else:
            found = load_dataset(f"DS-{number}", download=False)
            X, y = found.data, found.target
        X = np.asarray(X, dtype=np.float64)
        if family == "genes":
            X = ExpressionPreparation().fit_transform(X)
        yield family, f"DS-{number:02d}", X, np.asarray(y)
    for path in sorted(cells.glob("*.npz")):
        with np.load(path) as file:
            parts = file["data"], file["indices"], file["indptr"]
            X = sparse.csr_array(parts, shape=file["shape"]).toarray()
            y = file["y"]
        X = ExpressionPreparation().fit_transform(X.astype(np.float64))
        order = np.argsort(-X.var(axis=0), kind="stable")[:MOST_GENES]
        yield "cells", path.stem, X[:, np.sort(order)], y


def make_ensembles(data: Path, cells: Path, cache: Path) -> None:
    """Make and keep the ensembles that are not there yet."""
    for family, name, X, y in load_sets(data, cells):
        folder = cache / family / name
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "y.npz").exists():
            np.savez(folder / "y.npz", X=X, y=y)
        for seed in range(SEEDS):
            if not (folder / f"{seed}.npz").exists():
                made = generate_ensemble(X, ensemble_size=MEMBERS, random_state=seed)
                made.save(folder / f"{seed}.npz")
                print(family, name, seed, flush=True)


def kept(path: Path, measure: Any) -> Any:
    """Return what was measured before, or measure and keep it."""
    if not path.exists():
        path.write_text(json.dumps(measure()))
    return json.loads(path.read_text())


def measure_seed(folder: Path, seed: int) -> dict[str, Any]:
    """Return the criteria of one ensemble, and the NMI of its clusters for every K."""
    ensemble = Ensemble.load(folder / f"{seed}.npz")
    y = np.load(folder / "y.npz")["y"]
    table = select_n_clusters(ensemble).table
    ks = table["n_clusters"].tolist()
    some = np.arange(ensemble.n_samples)
    if some.size > MAX_SAMPLES:
        rng = np.random.default_rng(seed)
        some = rng.choice(some, MAX_SAMPLES, replace=False)
    with single_threaded_blas():
        matrix = locally_weighted_coassociation(ensemble.among(some))
        roots = 1.0 - np.cumsum([0.0, *eigengaps(matrix, range(1, max(ks) + 1))])
        tree = merges(ensemble, ensemble_driven_cluster_index(ensemble))
        wanted = sorted({*ks, np.unique(y).size})
        labels = {k: cut(*tree, ensemble.n_samples, k) for k in wanted}
    gaps = {"linear_gap": [roots[k - 1] ** 2 - roots[k] ** 2 for k in ks]}
    scores = {k: float(nmi_max(y, each)) for k, each in labels.items()}
    columns = {name: column.tolist() for name, column in table.items()}
    return columns | gaps | {"nmi": scores, "classes": int(np.unique(y).size)}


def choose_for_set(folder: Path) -> dict[str, Any]:
    """Return what "auto" answers; the seed of the ensemble does not matter."""
    X = np.load(folder / "y.npz")["X"]
    start = time.process_time()
    chosen = select_n_clusters(Ensemble.load(folder / "0.npz"), X=X)
    return {
        "n_samples": len(X),
        "n_clusters": chosen.n_clusters,
        "candidates": [each.n_clusters for each in chosen.candidates],
        "table": {name: column.tolist() for name, column in chosen.table.items()},
        "p": float(chosen.null.p_value),
        "draws": len(chosen.null.draws),
        "seconds": time.process_time() - start,
    }


def measured_sets(cache: Path) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Return what was measured with each seed, by family and set."""
    return {
        family: {
            folder.name: [
                kept(
                    folder / f"k-{seed}.json",
                    lambda f=folder, s=seed: measure_seed(f, s),
                )
                for seed in range(SEEDS)
            ]
            for folder in sorted((cache / family).iterdir())
            if all((folder / f"{seed}.npz").exists() for seed in range(SEEDS))
        }
        for family in FAMILIES
    }


def sets(cache: Path) -> None:
    """Print what "auto" answers for each set."""
    names = "set", "N", "classes", "suggested", "worth a look", "p", "NMI, K given"
    row(*names, "NMI, suggested", "NMI, first of the list")
    for family, found in measured_sets(cache).items():
        means, ones = [], 0
        for name, seeds in found.items():
            folder = cache / family / name
            auto = kept(folder / "auto.json", lambda f=folder: choose_for_set(f))
            first = auto["candidates"][0]
            given, listed = (
                100 * np.mean([each["nmi"][str(k)] for each in seeds])
                for k in (seeds[0]["classes"], first)
            )
            suggested = 0.0 if auto["n_clusters"] == 1 else listed
            ones += auto["n_clusters"] == 1
            means.append([given, suggested, listed])
            cells = [f"{value:.1f}" for value in means[-1]]
            listed_numbers = ", ".join(map(str, auto["candidates"]))
            facts = auto["n_samples"], seeds[0]["classes"], auto["n_clusters"]
            row(name, *facts, listed_numbers, f"{auto['p']:.3g}", *cells)
        cells = [f"{value:.1f}" for value in np.mean(means, axis=0)]
        row(f"{family}, mean", "", "", f"{ones} of {len(means)} one", "", "", *cells)


def answers(seeds: list[dict[str, Any]], exponents: dict[str, float]) -> list[int]:
    """Return the K of each seed by the largest product."""
    found = []
    for each in seeds:
        factors = (np.maximum(each[n], 0.0) ** power for n, power in exponents.items())
        found.append(each["n_clusters"][int(np.argmax(np.prod(list(factors), axis=0)))])
    return found


def answers_before(seeds: list[dict[str, Any]], n_samples: int) -> list[int]:
    """Return the K by eigengap x silhouette x agreement, up to the root of N or 20."""
    most = min(20, int(np.ceil(np.sqrt(n_samples))))
    cropped = []
    for each in seeds:
        rows = [i for i, k in enumerate(each["n_clusters"]) if k <= max(most, 2)]
        names = "n_clusters", "linear_gap", "silhouette", "agreement"
        cropped.append({name: [each[name][i] for i in rows] for name in names})
    return answers(cropped, {"linear_gap": 1.0, "silhouette": 1.0, "agreement": 1.0})


def score(
    found: dict[str, list[dict[str, Any]]], chosen: dict[str, list[int]]
) -> tuple[float, float]:
    """Return the mean NMI and the share of the sets where all seeds agree, percent."""
    nmi = [
        np.mean(
            [
                each["nmi"][str(k)] if k > 1 else 0.0
                for each, k in zip(seeds, chosen[n], strict=True)
            ]
        )
        for n, seeds in found.items()
    ]
    same = [len(set(chosen[name])) == 1 for name in found]
    return 100 * float(np.mean(nmi)), 100 * float(np.mean(same))


def rules(cache: Path, *, recorded: bool) -> None:
    """Print NMI and stability by family, the exponents chosen by the others."""
    all_sets = measured_sets(cache)
    grid = [
        dict(zip(GRID, values, strict=True))
        for values in itertools.product(*GRID.values())
    ]
    table = {
        family: [
            score(found, {n: answers(s, e) for n, s in found.items()}) for e in grid
        ]
        for family, found in all_sets.items()
    }
    row("rule", *(f"{f}, {len(found)} sets" for f, found in all_sets.items()))
    lines: dict[str, list[tuple[float, float]]] = {}
    for family, found in all_sets.items():
        sizes = {n: len(np.load(cache / family / n / "y.npz")["y"]) for n in found}
        others = [f for f in all_sets if f != family]
        best = max(range(len(grid)), key=lambda i: sum(table[f][i][0] for f in others))
        autos = {
            name: kept(
                cache / family / name / "auto.json",
                lambda f=cache / family / name: choose_for_set(f),
            )
            for name in found
        }
        first = {n: [auto["candidates"][0]] * SEEDS for n, auto in autos.items()}
        for name, chosen in {
            "K given": {n: [s[0]["classes"]] * SEEDS for n, s in found.items()},
            "eigengap x silhouette x agreement": {
                n: answers_before(s, sizes[n]) for n, s in found.items()
            },
            "powers of the other families": None,
            "the rule, on members that follow the seed": {
                n: answers(s, EXPONENTS) for n, s in found.items()
            },
            "powers of the other families, on its own members": {
                n: answers([auto["table"]], grid[best]) * SEEDS
                for n, auto in autos.items()
            },
            "the rule as it is": first,
            "best K of all (not attainable)": {
                n: [
                    int(max(each["n_clusters"], key=lambda k: each["nmi"][str(k)]))
                    for each in s
                ]
                for n, s in found.items()
            },
        }.items():
            value = table[family][best] if chosen is None else score(found, chosen)
            lines.setdefault(name, []).append(value)
        print(f"left out {family}: {grid[best]}")
    for name, values in lines.items():
        row(name, *(f"{nmi:.1f} ({same:.0f} %)" for nmi, same in values))
    if recorded:
        record(
            "rules",
            sets={family: list(found) for family, found in all_sets.items()},
            rows={name: np.round(values, 3).tolist() for name, values in lines.items()},
        )


def firm(data: Path, cells: Path, *, recorded: bool) -> None:
    """Print the p-value of one cluster for every set."""
    row("family", "set", "p")
    found: dict[str, dict[str, float]] = {family: {} for family in FAMILIES}
    for family, name, X, _ in load_sets(data, cells):
        p_value = null_reference([X], [Plan(*X.shape, entropy=0)]).p_value
        found[family][name] = p_value
        row(family, name, f"{p_value:.2g}")
    if recorded:
        record("firm", p_values=found, level=NULL_LEVEL)


def factors(rng: np.random.Generator, n_factors: int) -> np.ndarray:
    """Draw what few common factors give to samples."""
    n, d = NOISE_SHAPE
    return rng.standard_normal((n, n_factors)) @ rng.standard_normal((n_factors, d))


def noise_of(kind: str, rng: np.random.Generator) -> np.ndarray:
    """Draw data of one kind: one cluster, or a shape that is no cluster."""
    n, d = NOISE_SHAPE
    X = rng.standard_normal((n, d))
    if kind == "correlated":  # five strong factors
        X += 2.0 * factors(rng, 5)
    elif kind == "heavy-tailed":
        X = rng.standard_t(3, (n, d))
    elif kind == "elongated":  # along the diagonal of the cube
        X += 3.0 * rng.standard_normal((n, 1))
    elif kind == "lognormal":
        X = np.exp(X)
    elif kind == "negative binomial":
        means = rng.gamma(1.0, 5.0, d)
        X = rng.negative_binomial(2, 2.0 / (2.0 + means), (n, d)).astype(float)
    elif kind == "row-scaled":
        X *= np.exp(0.5 * rng.standard_normal((n, 1)))
    elif kind == "binary, 2 factors":
        X = 1.0 * (0.6 * factors(rng, 2) + X > 0.3)
    elif kind == "answers from 1 to 5, 3 factors":
        X = np.clip(np.round(3.0 + 0.6 * factors(rng, 3) + X), 1.0, 5.0)
    elif kind == "Poisson counts, samples of differing depth":
        depths = np.exp(0.5 * rng.standard_normal((n, 1)))
        X = 1.0 * rng.poisson(depths * np.exp(1.0 + 0.5 * rng.standard_normal(d)))
    elif kind == "gradient":
        X += 6.0 * rng.random((n, 1)) * rng.standard_normal((1, d))
    elif kind == "ring":
        turns = 2.0 * np.pi * rng.random((n, 1))
        wave = (
            np.cos(turns) * rng.standard_normal(d),
            np.sin(turns) * rng.standard_normal(d),
        )
        X += 4.0 * (wave[0] + wave[1])
    elif kind.startswith("batch shift"):
        X[: n // 2] += float(kind.split()[3]) * rng.standard_normal(d)
    elif kind == "uniform":
        X = rng.random((n, d))
    return X


def noise(cache: Path, n_sets: int, *, recorded: bool) -> None:
    """Print how often data of each kind are called more than one cluster."""
    row("data", "sets", f"p < {NULL_LEVEL:g}, percent", "draws, mean")
    lines, plan = [], Plan(*NOISE_SHAPE, entropy=0)
    for kind in NOISES + SHAPES:
        path = cache / f"noise-{kind.replace(' ', '-').replace(',', '')}.jsonl"
        path.touch()
        done = [json.loads(line) for line in path.read_text().splitlines()]
        with path.open("a") as file:
            for seed in range(len(done), n_sets if kind in NOISES else n_sets // 4):
                X = noise_of(kind, np.random.default_rng(seed))
                found = null_reference([X], [plan])
                done.append({"p": float(found.p_value), "draws": len(found.draws)})
                file.write(json.dumps(done[-1]) + "\n")
                file.flush()
        called = 100 * np.mean([each["p"] < NULL_LEVEL for each in done])
        draws = np.mean([each["draws"] for each in done])
        row(kind, len(done), f"{called:.1f}", f"{draws:.1f}")
        lines.append({"data": kind, "sets": len(done), "firm": round(called, 3)})
    if recorded:
        record("noise", rows=lines)


def seconds(data: Path, *, recorded: bool) -> None:
    """Print processor seconds of a fit, of the test for groups and of "auto"."""
    with np.load(next(data.glob("DS-11_*.npz"))) as archive:
        tables = {"DS-11": np.asarray(archive["X"], dtype=np.float64)}
    for load in (load_iris, load_wine, load_breast_cancer):
        name, X = load.__name__.removeprefix("load_"), load().data
        tables[name] = StandardScaler().fit_transform(X)
    MDEC("auto", ensemble_size=10, random_state=0).fit(tables["DS-11"][:220])
    row("data", "shape", "fit, K given", "test", "test, all draws", "auto, fits")
    lines = []
    for name, X in tables.items():
        turns = [time_table(X, turn) for turn in range(3)]
        spent = np.median(turns, axis=0)
        ratio = f"{spent[3] / spent[0]:.2f}"
        row(name, X.shape, *(f"{each:.2f}" for each in spent[:3]), ratio)
        lines.append(
            {"data": name, "shape": X.shape, "seconds": spent.round(4).tolist()}
        )
    if recorded:
        record("time", rows=lines)


def time_table(X: np.ndarray, seed: int) -> list[float]:
    """Return processor seconds: K given, the test, with all draws, K chosen."""
    plan = Plan(*X.shape, entropy=seed)

    def test(certain: float = null.CERTAIN) -> None:
        with mock.patch.object(null, "CERTAIN", certain):
            null_reference([X], [plan])

    spent = []
    for job in (
        lambda: MDEC(2, random_state=seed).fit(X),
        test,
        lambda: test(0.0),
        lambda: MDEC("auto", random_state=seed).fit(X),
    ):
        start = time.process_time()
        job()
        spent.append(time.process_time() - start)
    return spent


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = "ensembles", "sets", "rules", "firm", "noise", "time"
    parser.add_argument("part", choices=parts)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--cells", type=Path)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--sets", type=int, default=1000, help="sets of each noise")
    parser.add_argument("--record", action="store_true", help="append to the record")
    given = parser.parse_args()
    if given.part == "ensembles":
        make_ensembles(given.data, given.cells, given.cache)
    elif given.part == "firm":
        firm(given.data, given.cells, recorded=given.record)
    elif given.part == "noise":
        noise(given.cache, given.sets, recorded=given.record)
    elif given.part == "rules":
        rules(given.cache, recorded=given.record)
    elif given.part == "sets":
        sets(given.cache)
    else:
        seconds(given.data, recorded=given.record)
