"""How much work base clusterings are, before they are made."""

from __future__ import annotations

import numpy as np

# Processor seconds of a base clustering for each of `list_terms`, by its base;
# `python benchmarks/estimate.py` fits them.
SECONDS = {
    "graph": (1.1e-5, 4.0e-9, 1.6e-11, 9.5e-9),
    "landmark": (2.3e-5, 4.2e-9, 2.9e-7, 2.2e-7),
}
# Landmarks are chosen among no more samples than this.
MOST_LOOKED_AT = 10_000


def estimate_seconds(base: str, n_samples: float, n_features: float) -> float:
    """Return about how many processor seconds a base clustering takes.

    Parameters
    ----------
    base : {"graph", "landmark"}
        How it is made.
    n_samples, n_features : float
        Samples and features that it sees.

    Examples
    --------
    >>> round(100 * estimate_seconds("graph", 2000, 1000), 1)
    12.1
    """
    terms = list_terms(base, n_samples, n_features)
    return float(np.dot(SECONDS[base], terms))


def list_terms(base: str, n: float, d: float) -> list[float]:
    """Return what the work on n samples with d features grows with.

    On graphs samples, pairs of these, these and features, and all values. With
    landmarks these and pairs of them, the more alike the more samples they share, and
    all samples and values.
    """
    if base == "graph":
        return [n, n * n, n * n * d, n * d]
    seen = min(n, MOST_LOOKED_AT)
    return [seen, seen * seen * (n / seen) ** 0.3, n, n * d]
