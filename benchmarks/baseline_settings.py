"""Settings of baselines that follow from the data, and a table of their scores.

python benchmarks/baseline_settings.py RECORDS

RECORDS are those of the studies baseline-thresholds.toml or baseline-theta.toml.
"""

from __future__ import annotations

import math
import re
import sys
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from mdec.baselines import (
    BASELINES,
    GENERATION,
    generate_kmeans_ensemble,
    generate_stratified_ensemble,
)
from mdec.bench.records import read_records
from mdec.bench.summary import published_table, score_table
from mdec.ensemble import Ensemble
from mdec.weights import ensemble_driven_cluster_index

GENERATORS = {
    "kmeans": generate_kmeans_ensemble,
    "stratified": generate_stratified_ensemble,
}


def strata(X: Any, *, share: float, random_state: int) -> Ensemble:
    """Make a stratified ensemble of some share of sqrt(D) strata."""
    n_strata = max(1, round(share * math.sqrt(X.shape[1])))
    return generate_stratified_ensemble(X, n_strata=n_strata, random_state=random_state)


def from_classes(
    X: Any,
    n_clusters: int,
    *,
    name: str,
    only: bool = False,
    ensemble_size: int = 100,
    random_state: int,
    **options: Any,
) -> Any:
    """Apply a baseline to base clusterings of K to sqrt(N) clusters, or of K only."""
    high = n_clusters if only else max(n_clusters, math.ceil(math.sqrt(len(X))))
    ensemble = GENERATORS[GENERATION[name]](
        X,
        ensemble_size=ensemble_size,
        base_n_clusters_range=(n_clusters, high),
        random_state=random_state,
    )
    return BASELINES[name](ensemble, n_clusters, random_state=random_state, **options)


def lwgp_by_rows(
    ensemble: Ensemble,
    n_clusters: int,
    *,
    rows: str,
    starts: int = 3,
    theta: float = 0.4,
    random_state: int,
) -> Any:
    """Apply LWGP with other rows for k-means: as they are, scaled, or of unit length.

    "scaled" divides each eigenvector by the root of its eigenvalue, as the exact cut
    has it. The starts of k-means are random samples.
    """
    members = ensemble.indicator().toarray() * ensemble_driven_cluster_index(
        ensemble, theta
    )
    degree = members.sum(axis=1, keepdims=True)
    reduced = members.T @ (members / degree)
    root = np.sqrt(reduced.sum(axis=1))
    values, vectors = np.linalg.eigh(reduced / np.outer(root, root))
    chosen = vectors[:, -n_clusters:] / root[:, None]
    if rows == "scaled":
        chosen = chosen / np.sqrt(values[-n_clusters:])
    points = (members / degree) @ chosen
    if rows != "as they are":
        points /= np.linalg.norm(points, axis=1, keepdims=True)
    kmeans = KMeans(
        n_clusters,
        init="random",
        n_init=starts,
        max_iter=100,
        random_state=random_state,
    )
    return kmeans.fit_predict(points)


def beside_published(records: str) -> str:
    """Return tables of SPCE and LWGP beside their published scores.

    Parameters
    ----------
    records : str
        Of baseline-thresholds.toml or baseline-theta.toml; datasets with a run of every
        method are shown.
    """
    store = read_records(records)
    nmi, ari = score_table(store, "nmi_max"), score_table(store, "ari")
    families: dict[str, list[int]] = {}
    for j, name in enumerate(nmi.methods):
        families.setdefault(re.split(r" t = | theta = | rows ", name)[0], []).append(j)
    whole = np.flatnonzero(~np.isnan(nmi.mean).any(axis=1))
    datasets = [nmi.datasets[i] for i in whole]
    lines = [
        f"| | {' | '.join(datasets)} | mean gap |",
        "|---" * (len(whole) + 2) + "|",
    ]
    for method in dict.fromkeys(family.split()[0] for family in families):
        paper = [
            published_table(metric, datasets, [method]).mean[:, 0]
            for metric in ("nmi_max", "ari")
        ]
        lines.append(_row(f"{method} published", *paper, None))
        for family, columns in families.items():
            if not family.startswith(method):
                continue
            ours = nmi.mean[np.ix_(whole, columns)], ari.mean[np.ix_(whole, columns)]
            gaps = np.abs(ours[0] - paper[0][:, None])
            fixed = int(gaps.mean(axis=0).argmin())
            setting = nmi.methods[columns[fixed]].removeprefix(family).strip()
            shown = [each[:, fixed] for each in ours]
            lines.append(_row(f"{family}, {setting}", *shown, gaps[:, fixed].mean()))
            best = ours[0].argmax(axis=1)[:, None]
            shown = [np.take_along_axis(each, best, 1)[:, 0] for each in ours]
            gap = float(np.abs(shown[0] - paper[0]).mean())
            lines.append(_row(f"{family}, best by the true classes", *shown, gap))
    return "\n".join(lines)


def _row(name: str, nmi: Any, ari: Any, gap: float | None) -> str:
    cells = [f"{a:.1f} / {b:.1f}" for a, b in zip(nmi, ari, strict=True)]
    return f"| {name} | {' | '.join(cells)} | {'' if gap is None else f'{gap:.1f}'} |"


if __name__ == "__main__":
    print(beside_published(sys.argv[1]))
