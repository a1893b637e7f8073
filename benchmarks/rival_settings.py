"""What rival-settings.toml cannot say: settings that follow from the data."""

from __future__ import annotations

import math
from typing import Any

from mdec.baselines import (
    BASELINES,
    GENERATION,
    generate_kmeans_ensemble,
    generate_stratified_ensemble,
)
from mdec.ensemble import Ensemble

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
    random_state: int,
    **options: Any,
) -> Any:
    """Apply a rival to base clusterings of K to sqrt(N) clusters, or of K only."""
    high = n_clusters if only else max(n_clusters, math.ceil(math.sqrt(len(X))))
    ensemble = GENERATORS[GENERATION[name]](
        X, base_n_clusters_range=(n_clusters, high), random_state=random_state
    )
    return BASELINES[name](ensemble, n_clusters, random_state=random_state, **options)
