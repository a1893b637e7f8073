"""The heavy steps on a GPU, for many members at a time.

The only package that imports PyTorch, and it is itself imported only where a device
was asked for. What it offers are the steps that the CPU has as compiled loops: nearest
neighbours, products with sparse graphs, small factorisations, k-means, linkage. All of
it also runs on PyTorch's own CPU device.
"""

from mdec.engines.tensors.consensus import (
    GramOperator,
    LabelRows,
    average_linkage,
    count_overlaps,
)
from mdec.engines.tensors.device import (
    budget,
    find_device,
    fits,
    side_by_side,
    with_less_memory,
)
from mdec.engines.tensors.landmarks import cluster_by_landmarks, landmark_bytes
from mdec.engines.tensors.members import Data, cluster_batch, member_bytes
from mdec.engines.tensors.prediction import RowSearch, VotingLandmarks

__all__ = [
    "Data",
    "GramOperator",
    "LabelRows",
    "RowSearch",
    "VotingLandmarks",
    "average_linkage",
    "budget",
    "cluster_batch",
    "cluster_by_landmarks",
    "count_overlaps",
    "find_device",
    "fits",
    "landmark_bytes",
    "member_bytes",
    "side_by_side",
    "with_less_memory",
]
