"""What a fit takes, in time and memory, before it begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from mdec._support.memory import resident_memory
from mdec.base.members import member_memory
from mdec.consensus.dendrogram import LINKED_SAMPLES, linkage_memory
from mdec.consensus.graph_cuts import BLOCKED_SAMPLES
from mdec.ensemble.plan import Plan
from mdec.generation import resolve_base
from mdec.rows import as_rows

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

    It sees so many samples and features.

    Examples
    --------
    >>> round(100 * estimate_seconds("graph", 2000, 1000), 1)
    12.1
    """
    return float(np.dot(SECONDS[base], list_terms(base, n_samples, n_features)))


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


def estimate_memory(tables: Sequence[Any], model: Any) -> int:
    """Estimate the peak memory of a process that fits an estimator, in bytes.

    To what it holds already come the labels and the larger of two: base clusterings
    that are made together, and the consensus of up to so many samples at once. Of the
    estimator the parameters are read.
    """
    n, size = tables[0].shape[0], model.ensemble_size
    shares = {"max_features": model.max_features, "max_samples": model.max_samples}
    pairs = n if model.consensus == "hierarchical" and n <= LINKED_SAMPLES else 0
    most = linkage_memory(size * min(n, BLOCKED_SAMPLES), pairs)
    for each in map(as_rows, tables):
        base, device = resolve_base(str(model.base), model.device, each)
        plan = Plan(*each.shape, entropy=0, base=base, device=device, **shares)
        n_stored = None if each.csr is None else int(each.csr.nnz)
        together = min(effective_n_jobs(model.n_jobs), size)
        most = max(most, together * member_memory(plan, n_stored))
    return resident_memory() + 4 * n * size + most
