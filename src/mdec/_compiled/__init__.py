"""Loops that NumPy cannot express, compiled on first use and cached on disk.

Every function works on plain contiguous arrays, releases the interpreter lock and
knows nothing of clustering ensembles. The package is imported where it is used, so
that ``import mdec`` neither loads nor runs the compiler.
"""

from mdec._compiled._elkan import elkan, greedy_start
from mdec._compiled._kmeans import kmeans_plus_plus, lloyd
from mdec._compiled._linkage import (
    average_linkage,
    condensed_products,
    count_overlaps,
    factored_linkage,
)
from mdec._compiled._selection import (
    finish_scan,
    keep_largest,
    mean_of_smallest,
    scan_tile,
)
from mdec._compiled._sparse import csr_step, mirror_pairs, pair_distances

__all__ = [
    "average_linkage",
    "condensed_products",
    "count_overlaps",
    "csr_step",
    "elkan",
    "factored_linkage",
    "finish_scan",
    "greedy_start",
    "keep_largest",
    "kmeans_plus_plus",
    "lloyd",
    "mean_of_smallest",
    "mirror_pairs",
    "pair_distances",
    "scan_tile",
]
