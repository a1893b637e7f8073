"""Figures of docs/confidence.md.

Usage: python benchmarks/people_figures.py PART DATA [XX ...] [--record]

PART is confidence, membership, predict or unlike. DATA is a folder of DS-XX_name.npz
files with X and y. The numbers XX choose some of the sets. Each part prints a Markdown
table; `--record` appends it to the record that docs/confidence.md shows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from records import append_lines, commit_of_source

from mdec import MDEC, generate_ensemble
from mdec._support.parallel import single_threaded_blas
from mdec.bench.evaluation import nmi_max
from mdec.clustering import Settings, cluster_ensemble
from mdec.confidence import confidence, item_consensus
from mdec.consensus import CONSENSUS, hierarchical
from mdec.numerics.novelty import NoveltyDetector
from mdec.prediction import TrainingRows, nearest_profiles, predict_base_clusters
from mdec.preparation import ExpressionPreparation
from mdec.rows import as_rows
from mdec.tables import Table
from mdec.tables.steps import TableSteps
from mdec.weights import ensemble_driven_cluster_index

GENE_SETS = ("01", "02", "03", "05", "06", "08", "10", "11", "13", "14", "16", "17")
IMAGE_SETS = ("20", "22", "23", "24", "26", "30")


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


printed: list[tuple[object, ...]] = []


def row(*cells: object) -> None:
    """Print one row of a Markdown table."""
    printed.append(cells)
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


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
        known.is_novel(steps.apply(rows)) | steps.find_odd_means(rows)
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
    part, *arguments = [each for each in sys.argv[1:] if each != "--record"] or ["help"]
    parts = {
        "confidence": calibration,
        "membership": membership,
        "predict": predict,
        "unlike": unlike,
    }
    if part not in parts:
        sys.exit(__doc__)
    parts[part](*arguments)
    if "--record" in sys.argv:
        line = {"what": part, "rows": printed, "commit": commit_of_source()}
        append_lines("confidence", [line])
