"""How much work base clusterings are, before they are made."""

from __future__ import annotations

import numpy as np

# Processor seconds of a base clustering for each of `list_terms`, by its base;
# `python benchmarks/estimate.py` fits them.
SECONDS = {
    "graph": (2.0e-5, 1.1e-8, 2.8e-11, 0.0),
    "landmark": (3.7e-5, 1.4e-8, 0.0, 2.1e-7),
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
    19.6
    """
    terms = list_terms(base, n_samples, n_features)
    return float(np.dot(SECONDS[base], terms))


def list_terms(base: str, n: float, d: float) -> list[float]:
    """Return what the work on n samples with d features grows with.

    Samples that are looked at, pairs of these, these and features, and all values.
    """
    seen = min(n, MOST_LOOKED_AT) if base == "landmark" else n
    return [seen, seen * seen, seen * seen * d, n * d]
