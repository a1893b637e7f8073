"""Preparing values: what they are, and what is done to them first."""

from mdec.preparation.kinds import find_mixed_units, kind_of_values
from mdec.preparation.recipes import (
    DRAWN,
    KINDS,
    RECIPES,
    Preparation,
    Recipe,
    prepare,
)
from mdec.preparation.transformers import (
    ExpressionPreparation,
    MostVariable,
    SampleScaler,
    UnitScaler,
    VarianceStabilizer,
)

__all__ = [
    "DRAWN",
    "KINDS",
    "RECIPES",
    "ExpressionPreparation",
    "MostVariable",
    "Preparation",
    "Recipe",
    "SampleScaler",
    "UnitScaler",
    "VarianceStabilizer",
    "find_mixed_units",
    "kind_of_values",
    "prepare",
]
