"""Measure the effect of each choice between paper and released code.

    python benchmarks/deviations.py DATA [--seeds 10] [--record]

DATA holds ``DS-XX_name.npz`` files with X and y; sets of more than 300 samples are left
out. Prints, for each choice, the mean NMI and ARI over datasets and seeds with our
setting and with the other one, on the same seeds; `--record` appends them to the record
that docs/deviations.md shows.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from records import append_lines, commit_of_source
from sklearn.metrics import normalized_mutual_info_score

import mdec
from mdec.bench.evaluation import ari, nmi_max
from mdec.coassociation import coassociation_factor
from mdec.consensus import CONSENSUS
from mdec.consensus.graph_cuts import bipartite_graph
from mdec.ensemble import Ensemble
from mdec.numerics.affinity import unit_rows
from mdec.numerics.kmeans import kmeans
from mdec.weights import ensemble_driven_cluster_index, uniform_weights

Labels = NDArray[np.integer]


def paper_diagonal_spectral(ensemble: Ensemble, n_clusters: int, seed: int) -> Labels:
    """Spectral consensus with the diagonal of A as Eq. 21 gives it."""
    factor = coassociation_factor(ensemble, ensemble_driven_cluster_index(ensemble))
    A = (factor @ factor.T).toarray()
    scale = 1.0 / np.sqrt(A.sum(axis=1))
    _, vectors = np.linalg.eigh(scale[:, None] * A * scale)
    rows = unit_rows(vectors[:, -n_clusters:])
    return kmeans(rows, n_clusters, np.random.default_rng(seed))


def full_transfer_cut(ensemble: Ensemble, n_clusters: int, seed: int) -> Labels:
    """Bipartite consensus with the column factor of the exact normalised cut."""
    B = bipartite_graph(ensemble, ensemble_driven_cluster_index(ensemble)).toarray()
    to_samples = B / B.sum(axis=1, keepdims=True)
    scale = 1.0 / np.sqrt(B.sum(axis=0))
    values, vectors = np.linalg.eigh(scale[:, None] * (B.T @ to_samples) * scale)
    columns = scale[:, None] * vectors[:, -n_clusters:]
    rows = unit_rows(to_samples @ columns / np.sqrt(values[-n_clusters:]))
    return kmeans(rows, n_clusters, np.random.default_rng(seed))


def standard(name: str, weights: Callable[[Ensemble], Any] | None = None) -> Any:
    def cluster(ensemble: Ensemble, n_clusters: int, seed: int) -> Labels:
        chosen = None if weights is None else weights(ensemble)
        return CONSENSUS[name](ensemble, n_clusters, chosen, random_state=seed)

    return cluster


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--record", action="store_true", help="append to the record")
    options = parser.parse_args()
    scores: dict[str, list[tuple[float, float, float]]] = {}

    def note(choice: str, y: Labels, labels: Labels) -> None:
        geometric = normalized_mutual_info_score(y, labels, average_method="geometric")
        row = 100 * nmi_max(y, labels), 100 * ari(y, labels), 100 * geometric
        scores.setdefault(choice, []).append(row)

    generations: dict[str, dict[str, Any]] = {
        "ours": {},
        "kernel as printed": {"kernel": "scaled_exponential"},
        "k from 5 to 19": {"n_neighbors_range": (5, 19)},
        "M = 30": {"ensemble_size": 30},
    }
    for path in sorted(options.data.glob("DS-*.npz")):
        with np.load(path, allow_pickle=False) as archive:
            X, y = archive["X"], archive["y"]
        if len(X) > 300:
            continue
        n_clusters = len(np.unique(y))
        for seed in range(options.seeds):
            for title, settings in generations.items():
                ensemble = mdec.generate_ensemble(
                    X, random_state=seed, n_jobs=2, **settings
                )
                for name in CONSENSUS:
                    labels = standard(name)(ensemble, n_clusters, seed)
                    note(f"{name}: {title}", y, labels)
                if title != "ours":
                    continue
                for name in CONSENSUS:
                    labels = standard(name, uniform_weights)(ensemble, n_clusters, seed)
                    note(f"{name}: uniform weights", y, labels)
                labels = paper_diagonal_spectral(ensemble, n_clusters, seed)
                note("spectral: diagonal of Eq. 21", y, labels)
                labels = full_transfer_cut(ensemble, n_clusters, seed)
                note("bipartite: with column factor", y, labels)
    print("| choice | NMI (max) | ARI | NMI (geometric) | runs |")
    print("|---|---|---|---|---|")
    for choice in sorted(scores):
        mean = np.mean(scores[choice], axis=0)
        cells = " | ".join(f"{value:.2f}" for value in mean)
        print(f"| {choice} | {cells} | {len(scores[choice])} |")
        if options.record:
            found = dict(zip(("nmi_max", "ari", "nmi_geometric"), mean, strict=True))
            line = {"choice": choice, **found, "runs": len(scores[choice])}
            append_lines("deviations", [line | {"commit": commit_of_source()}])


if __name__ == "__main__":
    main()
