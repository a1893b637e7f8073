"""How many samples clusters share."""

from __future__ import annotations

from typing import Any

import numpy as np

from mdec.numerics.loops.jit import compiled


def count_overlaps(labels: Any, member: int, offsets: Any) -> Any:
    """Count the samples that each cluster of one member shares with every cluster."""
    n_own = offsets[member + 1] - offsets[member]
    counts = np.zeros((n_own, offsets[-1]), dtype=np.int64)
    _count_overlaps(labels, member, offsets, counts)
    return counts


@compiled()
def _count_overlaps(labels: Any, member: int, offsets: Any, counts: Any) -> None:
    n_samples, n_members = labels.shape
    for i in range(n_samples):
        own = labels[i, member]
        if own >= 0:
            for m in range(n_members):
                if labels[i, m] >= 0:
                    counts[own, offsets[m] + labels[i, m]] += 1
