"""Cluster scikit-learn's embedded digits: one ensemble, three consensus functions."""

from __future__ import annotations

import time
import warnings

from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import load_digits

from mdec import MDEC
from mdec.bench.evaluation import ari, nmi_max
from mdec.consensus import CONSENSUS


def main() -> None:
    X, y = load_digits(return_X_y=True)
    print(f"digits: {X.shape[0]} samples, {X.shape[1]} features, 10 classes\n")
    print(f"{'method':<22}{'NMI (max)':>10}{'ARI':>8}{'seconds':>9}")

    def row(name: str, labels: object, start: float) -> None:
        seconds = time.perf_counter() - start
        scores = f"{nmi_max(y, labels):>10.3f}{ari(y, labels):>8.3f}"
        print(f"{name:<22}{scores}{seconds:>9.2f}", flush=True)

    start = time.perf_counter()
    row("k-means", KMeans(10, n_init=10, random_state=0).fit_predict(X), start)
    start = time.perf_counter()
    with warnings.catch_warnings():
        # Its graph of neighbours falls apart, which it warns of.
        warnings.simplefilter("ignore", UserWarning)
        spectral = SpectralClustering(
            10, affinity="nearest_neighbors", random_state=0
        ).fit_predict(X)
    row("spectral clustering", spectral, start)

    start = time.perf_counter()
    model = MDEC(n_clusters=10, n_jobs=2, random_state=0).fit(X)
    seconds = time.perf_counter() - start
    print(f"\n100 base clusterings in {seconds:.1f} s (compiled on the first run)")
    for consensus in CONSENSUS:
        start = time.perf_counter()
        row(f"MDEC, {consensus}", model.recluster(consensus=consensus), start)


if __name__ == "__main__":
    main()
