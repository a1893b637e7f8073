"""Preparing values: what they are, and what is done to them first."""

from mdec.preparation.kinds import kind_of_values
from mdec.preparation.transformers import (
    ExpressionPreparation,
    MostVariable,
    SampleScaler,
    UnitScaler,
    VarianceStabilizer,
)
from mdec.preparation.units import find_mixed_units

__all__ = [
    "ExpressionPreparation",
    "MostVariable",
    "SampleScaler",
    "UnitScaler",
    "VarianceStabilizer",
    "find_mixed_units",
    "kind_of_values",
]
