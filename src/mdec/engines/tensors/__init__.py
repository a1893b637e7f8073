"""The heavy steps on a graphics card, for many members at a time.

The only package that imports PyTorch, and it is itself imported only where a device
was asked for. What it offers are the steps that the CPU has as compiled loops: nearest
neighbours, products with sparse graphs, small factorisations, k-means, linkage. All of
it also runs on PyTorch's own CPU device.
"""

from mdec.engines.tensors.device import budget, find_device, fits, with_less_memory
from mdec.engines.tensors.eigen import GramOperator
from mdec.engines.tensors.linkage import average_linkage, count_overlaps
from mdec.engines.tensors.members import Data, Task, base_labels, member_bytes

__all__ = [
    "Data",
    "GramOperator",
    "Task",
    "average_linkage",
    "base_labels",
    "budget",
    "count_overlaps",
    "find_device",
    "fits",
    "member_bytes",
    "with_less_memory",
]
