"""Figures of docs/choosing-k.md and docs/confidence.md.

Usage: python benchmarks/people_figures.py PART [DATA [XX ...]]
       python benchmarks/people_figures.py noise [SETS [KIND ...]]

PART is k, noise, rules, scan, auto, confidence, membership, predict or unlike. DATA is
a folder of DS-XX_name.npz files with X and y; noise and scan need none. The numbers XX
choose some of the sets. Each part prints a Markdown table; noise also keeps its answers
in results/noise.jsonl.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from mdec import MDEC, generate_ensemble
from mdec._support.parallel import single_threaded_blas
from mdec.bench.evaluation import nmi_max
from mdec.clustering import Settings, cluster_ensemble
from mdec.coassociation import locally_weighted_coassociation
from mdec.confidence import confidence, item_consensus
from mdec.consensus import CONSENSUS, hierarchical
from mdec.numerics.novelty import NoveltyDetector
from mdec.prediction import TrainingRows, nearest_profiles, predict_base_clusters
from mdec.preparation import ExpressionPreparation
from mdec.rows import as_rows
from mdec.selection.criteria import eigengaps
from mdec.selection.null import NULL_LEVEL, null_reference
from mdec.selection.rule import select_n_clusters
from mdec.tables import Table
from mdec.tables.steps import TableSteps
from mdec.weights import ensemble_driven_cluster_index

GENE_SETS = ("01", "02", "03", "05", "06", "08", "10", "11", "13", "14", "16", "17")
ALL_GENE_SETS = tuple(f"{number:02d}" for number in range(1, 19))
IMAGE_SETS = ("20", "22", "23", "24", "26", "30")
NOISE_SHAPE = 40, 40
NOISE_RECORD = Path(__file__).parent / "results" / "noise.jsonl"


def datasets(
    folder: str, numbers: tuple[str, ...], only: tuple[str, ...]
) -> Iterator[tuple[str, ...]]:
    """Yield name, data and classes of each set that the folder has."""
    for number in only or numbers:
        for path in sorted(Path(folder).glob(f"DS-{number}_*.npz")):
            with np.load(path) as archive:
                X = archive["X"]
                exact = X.dtype if X.dtype.kind == "f" else np.float32
                yield path.stem, X.astype(exact), archive["y"]


def row(*cells: object) -> None:
    """Print one row of a Markdown table."""
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def choosing_k(folder: str, *only: str) -> None:
    """Print the suggestion beside what single criteria would suggest."""
    names = ("best K from 2", "PAC", "delta area", "eigengap")
    row("dataset", "N", "classes", "suggested", "p of one cluster", *names)
    hits = np.zeros(5, dtype=int)
    for name, X, y in datasets(folder, GENE_SETS, only):
        ensemble = generate_ensemble(X, ensemble_size=100, random_state=0)
        selection = select_n_clusters(ensemble, X=np.asarray(X, dtype=np.float64))
        table, numbers = selection.table, selection.table["n_clusters"]
        scored = table["eigengap"] * table["silhouette"] * table["agreement"]
        # Delta area: the last number whose area still grows by a tenth or more.
        grown = numbers[np.flatnonzero(table["delta_area"] >= 0.1)[-1]]
        answers = [
            selection.n_clusters,
            numbers[scored.argmax()],
            numbers[table["pac"].argmin()],
            grown,
            numbers[table["eigengap"].argmax()],
        ]
        classes = np.unique(y).size
        hits += [abs(int(answer) - classes) <= 1 for answer in answers]
        p_value = f"{selection.null.p_value:.3f}"
        row(name, len(X), classes, answers[0], p_value, *answers[1:])
    row("classes or a neighbour", "", "", hits[0], "", *hits[1:])


def noise_of(kind: str, rng: np.random.Generator) -> np.ndarray:
    """Draw one cluster of some shape."""
    X = rng.standard_normal(NOISE_SHAPE)
    if kind == "correlated":  # five strong factors
        factors = rng.standard_normal((len(X), 5))
        X += 2.0 * factors @ rng.standard_normal((5, X.shape[1]))
    elif kind == "heavy-tailed":
        X = rng.standard_t(3, NOISE_SHAPE)
    elif kind == "uniform":
        X = rng.random(NOISE_SHAPE)
    elif kind == "elongated":  # along the diagonal of the cube
        X += 3.0 * rng.standard_normal((len(X), 1))
    return X


NOISES = ("Gaussian", "correlated", "heavy-tailed", "uniform", "elongated")


def noise(n_sets: str = "200", *only: str) -> None:
    """Record and print how often one cluster is called more than one."""
    seeds = range(int(n_sets))
    NOISE_RECORD.touch()
    done = [json.loads(line) for line in NOISE_RECORD.read_text().splitlines()]
    with NOISE_RECORD.open("a") as record:
        for kind in only or NOISES:
            have = {row["seed"] for row in done if row["kind"] == kind}
            for seed in sorted(set(seeds) - have):
                X = noise_of(kind, np.random.default_rng(seed))
                ensemble = generate_ensemble(X, ensemble_size=20, random_state=seed)
                null = null_reference(X, ensemble, range(2, 8), "entropy", seed)
                p_value, n_draws = float(null.p_value), len(null.draws)
                line = {"kind": kind, "seed": seed, "p": p_value, "draws": n_draws}
                done.append(line)
                record.write(json.dumps(line) + "\n")
                record.flush()
    names = ("called more", "share", "standard error", "draws on average")
    row("one cluster", "sets", *names)
    for kind in NOISES:
        lines = [line for line in done if line["kind"] == kind]
        called = sum(line["p"] <= NULL_LEVEL for line in lines)
        share = called / max(len(lines), 1)
        error = np.sqrt(share * (1.0 - share) / max(len(lines), 1))
        draws = np.mean([line["draws"] for line in lines]) if lines else 0.0
        cells = f"{100 * share:.1f} %", f"{100 * error:.1f}", f"{draws:.1f}"
        row(kind, len(lines), called, *cells)


def scored(table: dict[str, np.ndarray], values: np.ndarray) -> dict[str, np.ndarray]:
    """Return what each rule makes of the criteria and eigenvalues; the largest wins."""
    numbers = table["n_clusters"]
    names = ("eigengap", "silhouette", "agreement")
    gap, silhouette, agreement = (np.maximum(table[name], 0.0) for name in names)
    score = gap * silhouette * agreement
    return {
        "eigengap x silhouette x agreement (the rule)": score,
        "without agreement": gap * silhouette,
        "without silhouette": gap * agreement,
        "without eigengap": silhouette * agreement,
        "eigengap relative to the eigenvalue": score / values,
        "times the root of K": score * np.sqrt(numbers),
        "times K": score * numbers,
        "last K with half of the largest": (score >= 0.5 * score.max()) * numbers,
    }


def errors(X: np.ndarray, n_classes: int) -> dict[str, float]:
    """Return how many doublings each rule is away from the number of classes."""
    ensemble = generate_ensemble(X, ensemble_size=100, random_state=0)
    table = select_n_clusters(ensemble).table
    numbers = table["n_clusters"]
    gaps = eigengaps(locally_weighted_coassociation(ensemble), range(1, len(X) + 1))
    values = np.cumsum(gaps[::-1])[::-1][numbers - 1]
    return {
        name: abs(float(np.log2(numbers[score.argmax()] / n_classes)))
        for name, score in scored(table, values).items()
    }


def rules(folder: str, *only: str) -> None:
    """Print how far other rules are from the classes, without a test for one cluster.

    The last row chooses the rule for each set by all other sets.
    """
    sets = list(datasets(folder, ALL_GENE_SETS, only))
    row("mean doublings from the classes", "raw values", "prepared")
    tables, gains = [], []
    for change in (np.asarray, ExpressionPreparation().fit_transform):
        found = [errors(np.asarray(change(X)), np.unique(y).size) for _, X, y in sets]
        table = np.array([list(each.values()) for each in found])
        others = [np.delete(table, i, axis=0).mean(axis=0) for i in range(len(table))]
        gain = table[np.arange(len(table)), np.argmin(others, axis=1)] - table[:, 0]
        error = gain.std(ddof=1) / np.sqrt(len(gain))
        tables.append(table.mean(axis=0))
        gains.append(f"{gain.mean():+.2f} (standard error {error:.2f})")
    for name, raw, prepared in zip(found[0], *tables, strict=True):
        row(name, f"{raw:.2f}", f"{prepared:.2f}")
    row(f"chosen by the {len(sets) - 1} others, less the rule", *gains)


def scan() -> None:
    """Print the time of a scan over K on a finished ensemble."""
    X = np.random.default_rng(0).standard_normal((500, 50))
    ensemble = generate_ensemble(X, ensemble_size=100, random_state=0)
    select_n_clusters(ensemble[:4], k_range=[2, 3])
    start = time.perf_counter()
    select_n_clusters(ensemble, k_range=range(2, 13))
    print(f"K = 2..12, 500 samples: {time.perf_counter() - start:.2f} s")


def auto(folder: str, *only: str) -> None:
    """Print processor seconds of a fit with and without the number of clusters."""
    row("dataset", "K given", "auto", "draws")
    for name, X, y in datasets(folder, ("11",), only):
        MDEC("auto", ensemble_size=10, random_state=0).fit(X[:220])
        seconds = []
        for n_clusters in (np.unique(y).size, "auto"):
            start = time.process_time()
            model = MDEC(n_clusters, random_state=0).fit(X)
            seconds.append(f"{time.process_time() - start:.2f}")
        row(name, *seconds, len(model.k_selection_.null.draws))


def pure(labels: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Tell which samples are of the commonest class of their cluster."""
    right = np.zeros(len(y), dtype=bool)
    for k in np.unique(labels):
        inside = labels == k
        right[inside] = y[inside] == np.bincount(y[inside]).argmax()
    return right


def purities(X: np.ndarray, y: np.ndarray, seed: int) -> list[float]:
    """Return the purity of each quartile of confidence, and of the first less rest."""
    ensemble = generate_ensemble(X, ensemble_size=100, random_state=seed)
    weights = ensemble_driven_cluster_index(ensemble)
    with single_threaded_blas():
        labels = hierarchical(ensemble, np.unique(y).size, weights)
    sure = confidence(item_consensus(ensemble, labels, weights), labels)
    right = pure(labels, y)[np.argsort(-sure, kind="stable")]
    quarters = np.array_split(right, 4)
    rest = right[len(quarters[0]) :].mean()
    return [*(part.mean() for part in quarters), quarters[0].mean() - rest]


def calibration(folder: str, *only: str) -> None:
    """Print purity by quartile of confidence, mean of five seeds."""
    names = ("top quartile", "second", "third", "lowest", "top less rest")
    row("dataset", *names, "seeds where above 0")
    for name, X, y in datasets(folder, GENE_SETS + IMAGE_SETS[:-1], only):
        scores = 100 * np.array([purities(X, y, seed) for seed in range(5)])
        cells = [f"{value:.1f}" for value in scores.mean(axis=0)]
        row(name, *cells, int((scores[:, -1] > 0.0).sum()))


def membership(folder: str, *only: str) -> None:
    """Print how often the largest membership is that of the label, in percent."""
    row("dataset", *CONSENSUS)
    means = []
    for name, X, y in datasets(folder, GENE_SETS, only):
        found = []
        for seed in range(3):
            model = MDEC(np.unique(y).size, random_state=seed).fit(X)
            shares = []
            for consensus in CONSENSUS:
                labels = model.recluster(consensus=consensus)
                weights = model.cluster_weights_
                association = item_consensus(model.ensemble_, labels, weights)
                shares.append(100 * (association.argmax(axis=1) == labels).mean())
            found.append(shares)
        means.append(np.mean(found, axis=0))
        row(name, *(f"{value:.1f}" for value in means[-1]))
    row("mean", *(f"{value:.1f}" for value in np.mean(means, axis=0)))


def held_back(X: np.ndarray, y: np.ndarray, seed: int) -> dict[str, list[float]]:
    """Score a held-back fifth, placed and clustered with the rest, and that rest.

    For each consensus: NMI of the fifth clustered together with the rest, NMI of the
    fifth placed in clusters of the rest, and by how much the NMI of the rest itself
    changes when it is clustered without the fifth.
    """
    n_clusters = np.unique(y).size
    held = np.zeros(len(X), dtype=bool)
    held[np.random.default_rng(seed).permutation(len(X))[: len(X) // 5]] = True
    together = generate_ensemble(X, ensemble_size=100, random_state=seed)
    fitted = generate_ensemble(X[~held], ensemble_size=100, random_state=seed)
    rows = TrainingRows.of(as_rows(X[~held]), fitted)
    base, scores = predict_base_clusters(X[held], rows), {}
    for name, combine in CONSENSUS.items():
        with single_threaded_blas():
            joint = combine(together, n_clusters, random_state=seed)
        found = cluster_ensemble(fitted, Settings(n_clusters, name, seed=seed), [rows])
        known = found.placement
        with single_threaded_blas():
            placed = nearest_profiles(base, known.offsets, known.means, known.weights)
        rest = nmi_max(y[~held], found.labels) - nmi_max(y[~held], joint[~held])
        scores[name] = [nmi_max(y[held], joint[held]), nmi_max(y[held], placed), rest]
    return scores


def predict(folder: str, *only: str) -> None:
    """Print NMI of held-back rows, placed and clustered together with the rest."""
    names = ("clustered together", "placed", "difference", "standard error")
    row("dataset", "consensus", "splits", *names, "rest, without the fifth")
    for name, X, y in datasets(folder, IMAGE_SETS, only):
        n_splits = 5 if len(X) < 5000 else 2
        splits = [held_back(X, y, seed) for seed in range(n_splits)]
        for consensus in CONSENSUS:
            scores = 100 * np.array([split[consensus] for split in splits])
            together, placed, rest = scores.mean(axis=0)
            error = (scores[:, 1] - scores[:, 0]).std(ddof=1) / np.sqrt(n_splits)
            values = (together, placed, placed - together, error, rest)
            cells = [f"{value:.1f}" for value in values]
            row(name, consensus, n_splits, *cells)


def flagged(X: np.ndarray, seed: int) -> list[float]:
    """Return the shares of held-out rows that are flagged, as they are and changed."""
    rng = np.random.default_rng(seed)
    held = np.zeros(len(X), dtype=bool)
    held[rng.permutation(len(X))[: len(X) // 5]] = True
    new, old = X[held].astype(np.float64), X[~held].astype(np.float64)
    features = [str(j) for j in range(X.shape[1])]
    fitted = ExpressionPreparation().fit(old)
    steps = TableSteps.from_table(Table(old, [], features), "none", fitted)
    known = NoveltyDetector.of(steps.apply(old))
    shift = X.std(dtype=np.float64)
    changed = {
        "held out": new,
        "plus one": new + shift,
        "plus ten": new + 10.0 * shift,
        "doubled": 2.0 * new,
        "columns permuted": new[:, rng.permutation(X.shape[1])],
        "far": new + 1e6 * shift,
    }
    flags = (
        known.is_novel(steps.apply(rows)) | steps.off_level(rows)
        for rows in changed.values()
    )
    return [float(each.mean()) for each in flags]


def unlike(folder: str, *only: str) -> None:
    """Print how often rows are called unlike training, held out and changed."""
    names = ("held out", "+ 1 sd", "+ 10 sd", "doubled", "columns permuted", "+ 1e6 sd")
    row("dataset", "rows", *names)
    means = []
    for name, X, _ in datasets(folder, GENE_SETS + IMAGE_SETS, only):
        n_splits = 20 if len(X) < 1000 else 5
        with single_threaded_blas():
            shares = 100 * np.array([flagged(X, seed) for seed in range(n_splits)])
        means.append(shares.mean(axis=0))
        row(name, len(X), *(f"{value:.1f}" for value in means[-1]))
    row("mean", "", *(f"{value:.1f}" for value in np.mean(means, axis=0)))


if __name__ == "__main__":
    part, *arguments = sys.argv[1:] or ["help"]
    parts = {
        "k": choosing_k,
        "noise": noise,
        "rules": rules,
        "scan": scan,
        "auto": auto,
        "confidence": calibration,
        "membership": membership,
        "predict": predict,
        "unlike": unlike,
    }
    if part not in parts:
        sys.exit(__doc__)
    parts[part](*arguments)
