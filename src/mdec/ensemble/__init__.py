"""The ensemble: what its members are drawn with, and their labels side by side."""

from mdec.ensemble.labels import Ensemble, LabelBlocks, membership
from mdec.ensemble.provenance import Failure, View

__all__ = ["Ensemble", "Failure", "LabelBlocks", "View", "membership"]
