"""Preparing expression values: what they are, and what is done to them first."""

from mdec.preparation.kinds import KINDS, kind_of_layer, kind_of_values
from mdec.preparation.recipes import (
    DRAWN,
    RECIPES,
    Draw,
    Preparation,
    Recipe,
    Versions,
    draw_preparation,
    learn_preparation,
    prepared,
)
from mdec.preparation.steps import (
    centered,
    feature_spreads,
    leading_features,
    sample_totals,
    scaled_to_spread,
    scaled_to_total,
    stabilized,
    variance_order,
)
from mdec.preparation.transformers import (
    ExpressionPreparation,
    MostVariable,
    SampleScaler,
    VarianceStabilizer,
)

__all__ = [
    "DRAWN",
    "KINDS",
    "RECIPES",
    "Draw",
    "ExpressionPreparation",
    "MostVariable",
    "Preparation",
    "Recipe",
    "SampleScaler",
    "VarianceStabilizer",
    "Versions",
    "centered",
    "draw_preparation",
    "feature_spreads",
    "kind_of_layer",
    "kind_of_values",
    "leading_features",
    "learn_preparation",
    "prepared",
    "sample_totals",
    "scaled_to_spread",
    "scaled_to_total",
    "stabilized",
    "variance_order",
]
