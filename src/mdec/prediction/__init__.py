"""Clusters of new rows from a fitted ensemble."""

from mdec.prediction.asking import predict_base_clusters
from mdec.prediction.clusters import (
    held_new_rows,
    nearest_profiles,
    new_associations,
    placed,
)
from mdec.prediction.placement import JoinedPlacement, Placement

__all__ = [
    "JoinedPlacement",
    "Placement",
    "held_new_rows",
    "nearest_profiles",
    "new_associations",
    "placed",
    "predict_base_clusters",
]
