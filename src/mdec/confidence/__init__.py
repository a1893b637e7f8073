"""How firmly the ensemble holds each sample in its consensus cluster."""

from mdec.confidence.samples import (
    AMBIGUOUS,
    ambiguous_samples,
    associations,
    cluster_consensus,
    cluster_support,
    confidence,
    firm_labels,
    held_samples,
    item_consensus,
    memberships,
    second_choice,
    view_associations,
)

__all__ = [
    "AMBIGUOUS",
    "ambiguous_samples",
    "associations",
    "cluster_consensus",
    "cluster_support",
    "confidence",
    "firm_labels",
    "held_samples",
    "item_consensus",
    "memberships",
    "second_choice",
    "view_associations",
]
