"""The ensemble: what its members are drawn with, and their labels side by side."""

from mdec.ensemble.distributed import DistributedEnsemble
from mdec.ensemble.labels import Ensemble, membership
from mdec.ensemble.provenance import Failure, View

# What every step after generation takes: labels in this process or on Dask workers.
LabelBlocks = Ensemble | DistributedEnsemble

__all__ = [
    "DistributedEnsemble",
    "Ensemble",
    "Failure",
    "LabelBlocks",
    "View",
    "membership",
]
