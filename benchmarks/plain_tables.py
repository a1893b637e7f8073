"""Measure what `mdec fit` makes of plain tables by itself, and what by hand.

    python benchmarks/plain_tables.py decide
    python benchmarks/plain_tables.py run [--tables NAME ...] [--seeds N]
    python benchmarks/plain_tables.py tables

`decide` prints what `mdec fit` decides on each table and why. `run` clusters each table
with known classes as it is, as `mdec fit` does by itself, and with each transform by
hand, once with the number of classes given and once with the number chosen, and appends
a record for each to the results. `tables` prints what docs/tables.md shows. The tables
are those of scikit-learn, of statsmodels and vega_datasets where these are installed,
of the paper where they are found, and simulated ones; some are read from files.
"""

from __future__ import annotations

import argparse
import importlib
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.metrics import adjusted_rand_score

from mdec import MDEC
from mdec.bench.evaluation import nmi_max
from mdec.datasets import load_dataset
from mdec.tables import Table, read_table
from mdec.tables.steps import PreparedTable, prepare_table

ROOT = Path(__file__).resolve().parents[1]
MOST_SAMPLES = 600
WAYS = ("none", "auto", "log", "standardise")
SCORES = ("given_nmi", "given_ari", "chosen_nmi", "chosen_ari", "k")

# Column of the classes, and columns that are neither features nor classes.
STATSMODELS: dict[str, tuple[str | None, tuple[str, ...]]] = {
    "anes96": ("vote", ()),
    "ccard": ("OWNRENT", ()),
    "committee": ("PRESTIGE", ()),
    "copper": (None, ("TIME",)),
    "cpunish": ("SOUTH", ()),
    "engel": (None, ()),
    "fair": ("affairs", ()),
    "grunfeld": (None, ("firm", "year")),
    "heart": ("censors", ()),
    "longley": (None, ("YEAR",)),
    "macrodata": (None, ("year", "quarter")),
    "modechoice": ("mode", ("individual", "choice")),
    "scotland": (None, ()),
    "spector": ("GRADE", ()),
    "stackloss": (None, ()),
    "star98": (None, ()),
    "statecrime": (None, ()),
}
VEGA: dict[str, tuple[str | None, tuple[str, ...]]] = {
    "burtin": ("Gram_Staining", ()),
    "cars": ("Origin", ()),
    "driving": (None, ()),
    "ohlc": (None, ()),
    "seattle_weather": ("weather", ()),
    "us_employment": (None, ()),
    "wheat": (None, ("year",)),
}

Classes = NDArray[Any] | None


class Example(NamedTuple):
    """A table, its classes if it has some, and where it comes from.

    One that was read from a file may have categories.
    """

    name: str
    source: str
    X: NDArray[np.float64]
    y: Classes
    table: Table | None = None


def examples(data: Path | None) -> Iterator[Example]:
    """Yield the tables, at most some hundred samples of each."""
    yield from _file_examples()
    for name, source, X, y, _ in _all_examples(data):
        step = -(-len(X) // MOST_SAMPLES)
        thin = None if y is None else np.asarray(y)[::step]
        yield Example(name, source, np.asarray(X, dtype=np.float64)[::step], thin)


def _file_examples() -> Iterator[Example]:
    """Yield tables that a reader has to understand first."""
    iris = datasets.load_iris(as_frame=True).frame.rename(columns={"target": "y"})
    iris.insert(0, "id", range(1, len(iris) + 1))
    X, y = customers(np.random.default_rng(0))
    shop = pandas.DataFrame(X, columns=["age", "income", "visits", "spent", "score"])
    shop["income"] = [f"{each:,.0f}" for each in shop["income"]]
    rng = np.random.default_rng(1)
    home = np.where(rng.random(len(y)) < 0.7, y, rng.integers(4, size=len(y)))
    shop.insert(0, "customer", [f"C{i:03d}" for i in range(len(y))])
    shop["city"] = np.array(["Berlin", "Oslo", "Paris", "Rome"])[home]
    joined = np.datetime64("2018-01-01") + 300 * y + rng.integers(0, 600, len(y))
    shop["joined"] = joined.astype(str)
    shop["y"] = y
    given = {"categories": "encode", "dates": "number", "label_column": "y"}
    for name, frame in (("iris with ids", iris), ("customers, a file", shop)):
        with TemporaryDirectory() as folder:
            path = Path(folder) / "table.csv"
            frame.to_csv(path, index=False)
            table = read_table(path, **given)
        yield Example(name, "file", table.values, table.labels, table)


def _all_examples(data: Path | None) -> Iterator[Example]:
    for name in ("wine", "breast_cancer", "iris", "digits"):
        found = getattr(datasets, f"load_{name}")()
        yield Example(name, "scikit-learn", found.data, found.target)
    for scaled in (False, True):
        X, _ = datasets.load_diabetes(return_X_y=True, scaled=scaled)
        yield Example("diabetes" + ", scaled" * scaled, "scikit-learn", X, None)
    for source, columns in (("statsmodels", STATSMODELS), ("vega_datasets", VEGA)):
        yield from _package_examples(source, columns)
    for make in SIMULATED:
        X, y = make(np.random.default_rng(0))
        yield Example(make.__name__.replace("_", " "), "simulated", X, y)
    for name in ("DS-2", "DS-5", "DS-8", "DS-17", "DS-20", "DS-24"):
        try:
            found = load_dataset(name, folder=data, download=False)
        except (ValueError, OSError):
            continue
        yield Example(name, "paper", found.data, found.target)


def _package_examples(
    source: str, columns: dict[str, tuple[str | None, tuple[str, ...]]]
) -> Iterator[Example]:
    """Yield the tables of an installed package: columns of numbers without gaps."""
    for name, (classes, left_out) in columns.items():
        try:
            if source == "statsmodels":
                module = importlib.import_module(f"statsmodels.datasets.{name}")
                frame = module.load_pandas().data
            else:
                frame = importlib.import_module(source).local_data
                frame = getattr(frame, name)()
        except ImportError:
            continue
        frame = frame.drop(columns=list(left_out)).dropna(axis=1, how="all").dropna()
        y = None
        if classes is not None:
            y = frame.pop(classes).to_numpy()
            # Affairs are hours in the week; whether there are any is the class.
            y = y > 0.0 if name == "fair" else y
        yield Example(name, source, frame.select_dtypes("number").to_numpy(), y)


def customers(rng: np.random.Generator) -> tuple[Any, Any]:
    """Ages, incomes, visits, money spent and scores of four groups."""
    y = rng.integers(4, size=400)
    columns = [
        rng.normal(np.array([25, 35, 50, 68])[y], 4.0).round(),
        rng.lognormal(np.array([9.8, 10.8, 11.5, 10.2])[y], 0.5).round(-2),
        rng.poisson(np.array([12, 4, 7, 2])[y]),
        rng.lognormal(np.array([3.0, 5.0, 4.0, 6.0])[y], 0.8).round(2),
        rng.normal(np.array([30, 60, 50, 80])[y], 8.0).round(),
    ]
    return np.stack(columns, axis=1), y


def heart_patients(rng: np.random.Generator) -> tuple[Any, Any]:
    """Draw sick and healthy people, measured as clinics do."""
    y = rng.integers(2, size=300)
    columns = [
        rng.normal(52 + 6 * y, 8.0).round(),
        rng.random(300) < 0.55 + 0.25 * y,
        np.minimum(rng.poisson(0.6 + 1.8 * y), 3),
        rng.normal(129 + 6 * y, 17.0).round(),
        rng.normal(243 + 10 * y, 50.0).round(),
        rng.random(300) < 0.15,
        rng.normal(160 - 25 * y, 17.0).round(),
        rng.random(300) < 0.14 + 0.45 * y,
        rng.exponential(0.5 + 1.2 * y).round(1),
        np.minimum(rng.poisson(0.3 + 1.0 * y), 4),
    ]
    return np.stack(columns, axis=1).astype(float), y


def coded_patients(rng: np.random.Generator) -> tuple[Any, Any]:
    """The same people, with codes for the kinds of pain, slope and vessels."""
    X, y = heart_patients(rng)
    pain = np.where(rng.random(300) < 0.5, 4 * y, rng.integers(1, 5, 300))
    slope = np.where(rng.random(300) < 0.6, 1 + y, rng.integers(1, 4, 300))
    thal = np.where(rng.random(300) < 0.35 + 0.4 * y, 7, 3)
    return np.c_[X, np.maximum(pain, 1), slope, rng.integers(0, 3, 300), thal], y


def outliers(rng: np.random.Generator) -> tuple[Any, Any]:
    """Three groups with tails as heavy as they come, in eight units."""
    y = rng.integers(3, size=240)
    X = 2.5 * rng.normal(size=(3, 8))[y] + rng.standard_t(2, size=(240, 8))
    return X * 10.0 ** rng.uniform(-2, 3, 8) + 10.0 ** rng.uniform(2, 4, 8), y


def embedding(rng: np.random.Generator) -> tuple[Any, Any]:
    """A mixture in 64 dimensions."""
    y = rng.integers(5, size=400)
    return 1.2 * rng.normal(size=(5, 64))[y] + rng.normal(size=(400, 64)), y


def components(rng: np.random.Generator) -> tuple[Any, Any]:
    """The same, projected: spreads fall by orders of magnitude."""
    X, y = embedding(rng)
    X = X @ np.diag(0.9 ** np.arange(64)) @ np.linalg.qr(rng.normal(size=(64, 64)))[0]
    left, sizes, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    return left * sizes, y


def counts_of_genes(rng: np.random.Generator, n_genes: int = 60) -> tuple[Any, Any]:
    """Counts of three types of cells."""
    y = rng.integers(3, size=300)
    means = np.exp(rng.normal(1.5, 1.5, n_genes) + rng.normal(0, 0.7, (3, n_genes)))
    return rng.poisson(rng.gamma(2.0, means[y] / 2.0)), y


def intensities(rng: np.random.Generator) -> tuple[Any, Any]:
    """Raw intensities of a panel of genes in three types of samples."""
    y = rng.integers(3, size=200)
    levels = rng.normal(5.0, 1.5, 80) + rng.normal(0.0, 0.6, (3, 80))
    return np.exp(levels[y] + rng.normal(0.0, 0.7, (200, 80))) + 10.0, y


def percentages(rng: np.random.Generator) -> tuple[Any, Any]:
    """Compositions of four kinds, which sum to 100."""
    y = rng.integers(4, size=300)
    alphas = rng.gamma(1.0, 6.0, (4, 9)) + 0.2
    return 100.0 * np.stack([rng.dirichlet(alphas[each]) for each in y]), y


def one_hot(rng: np.random.Generator) -> tuple[Any, Any]:
    """Six questions of four answers each."""
    y = rng.integers(3, size=300)
    chances = rng.dirichlet(np.ones(4), (3, 6))
    answers = [[rng.choice(4, p=p) for p in chances[each]] for each in y]
    return np.eye(4)[np.array(answers)].reshape(300, -1), y


SIMULATED: list[Callable[[np.random.Generator], tuple[Any, Any]]] = [
    *(customers, heart_patients, coded_patients, outliers, embedding, components),
    *(counts_of_genes, intensities, percentages, one_hot),
]


def prepared(example: Example, way: str) -> PreparedTable:
    """Return a table as `mdec fit` clusters it."""
    names = [f"feature {j + 1}" for j in range(example.X.shape[1])]
    bare = Table(example.X, [str(i) for i in range(len(example.X))], names)
    table = example.table or bare
    if way == "auto":
        return prepare_table(table)
    return prepare_table(table, "none", way)


def decide(options: argparse.Namespace) -> None:
    """Print what is decided."""
    print("| table | source | samples x features | decided | why |")
    print("|---|---|---|---|---|")
    for example in examples(options.data):
        words = prepared(example, "auto").words
        size = f"{example.X.shape[0]} x {example.X.shape[1]}"
        decided = words["kind"] if words["prepared"] else "left alone"
        print(
            f"| {example.name} | {example.source} | {size} | {decided} | "
            f"{words['reason']} |"
        )


def run(options: argparse.Namespace) -> None:
    """Append the records that are missing."""
    done = {(r["table"], r["way"], r["seed"]) for r in read(options.results)}
    for example in examples(options.data):
        if example.y is None or (options.tables and example.name not in options.tables):
            continue
        for seed in range(options.seeds):
            for way in WAYS:
                if (example.name, way, seed) not in done:
                    record = score(example, way, seed)
                    with options.results.open("a") as file:
                        file.write(json.dumps(record) + "\n")


def score(example: Example, way: str, seed: int) -> dict[str, Any]:
    """Return NMI and ARI with the number of clusters given, and with it chosen."""
    record = {"table": example.name, "way": way, "seed": seed}
    try:
        ready = prepared(example, way)
    except ValueError:
        return record
    n_classes = len(np.unique(example.y))
    record |= {"kind": ready.words["kind"], "classes": n_classes}
    model = MDEC("auto", preparation=ready.preparation, random_state=seed)
    chosen = model.fit(ready.values).clustering_
    for name, found in (("given", chosen.recluster(n_classes)), ("chosen", chosen)):
        record |= {
            f"{name}_nmi": round(100.0 * nmi_max(example.y, found.labels), 2),
            f"{name}_ari": round(adjusted_rand_score(example.y, found.labels), 4),
        }
    return record | {"k": chosen.n_clusters}


def read(path: Path) -> list[dict[str, Any]]:
    """Return all records."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def tables(options: argparse.Namespace) -> None:
    """Print NMI and ARI by table, means over the seeds, and the number chosen."""
    records = [each for each in read(options.results) if "k" in each]
    print("| table | classes | " + " | ".join(WAYS) + " |")
    print("|---" * (len(WAYS) + 2) + "|")
    for name in dict.fromkeys(each["table"] for each in records):
        cells = []
        for way in WAYS:
            of = [r for r in records if (r["table"], r["way"]) == (name, way)]
            mean = {k: np.mean([r[k] for r in of]) for k in SCORES} if of else {}
            cells.append(
                f"{mean['given_nmi']:.0f}, {mean['given_ari']:.2f}; "
                f"{mean['chosen_nmi']:.0f}, {mean['chosen_ari']:.2f} ({mean['k']:.1f})"
                if of
                else "-"
            )
        classes = next(each["classes"] for each in records if each["table"] == name)
        print(f"| {name} | {classes} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=("decide", "run", "tables"))
    parser.add_argument("--tables", nargs="*")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--data", type=Path, help="folder of the paper's files")
    parser.add_argument(
        "--results", type=Path, default=ROOT / "benchmarks/results/plain-tables.jsonl"
    )
    options = parser.parse_args()
    warnings.filterwarnings("ignore", category=UserWarning)
    {"decide": decide, "run": run, "tables": tables}[options.action](options)


if __name__ == "__main__":
    main()
