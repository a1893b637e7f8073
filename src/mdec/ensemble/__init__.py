"""The ensemble: what its members are drawn with, and their labels side by side."""

from mdec.ensemble.labels import Ensemble, Failure, LabelBlocks, membership

__all__ = ["Ensemble", "Failure", "LabelBlocks", "membership"]
