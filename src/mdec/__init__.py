"""Multidiversified ensemble clustering of high-dimensional data."""

from mdec.ensemble import Ensemble
from mdec.estimator import MDEC
from mdec.generation import generate_ensemble

__all__ = ["MDEC", "Ensemble", "__version__", "generate_ensemble"]

__version__ = "0.1.0"
