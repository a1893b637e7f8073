"""Loops that NumPy cannot express, compiled on first use and cached on disk.

Every function works on plain contiguous arrays, releases the interpreter lock and
knows nothing of clustering ensembles. The package is imported where it is used, so
that ``import mdec`` neither loads nor runs the compiler.
"""

from mdec.numerics.loops.csr import csr_distances, csr_products
from mdec.numerics.loops.dense import (
    fill_lost,
    largest_both_ways,
    mean_of_nearest,
    products_to_distances,
    upper_triangle,
)
from mdec.numerics.loops.elkan import elkan, greedy_start
from mdec.numerics.loops.factored import factored_linkage
from mdec.numerics.loops.kmeans import kmeans_plus_plus, lloyd
from mdec.numerics.loops.landmarks import (
    add_shared,
    embed_rows,
    group_sums,
    nearest_column,
    order_by_distance,
    smallest_columns,
)
from mdec.numerics.loops.linkage import average_linkage, linkage_of_products
from mdec.numerics.loops.mutual import merge_mutual
from mdec.numerics.loops.overlaps import count_overlaps
from mdec.numerics.loops.products import (
    divide_by_products,
    triangle_of_matrix,
    triangle_of_products,
)
from mdec.numerics.loops.selection import (
    exponents,
    finish_scan,
    keep_largest,
    nearest_entries,
    scan_tile,
)
from mdec.numerics.loops.sparse import (
    components,
    csr_chebyshev,
    mirror_pairs,
    pair_distances,
)
from mdec.numerics.loops.triangle import triangle_entries

__all__ = [
    "add_shared",
    "average_linkage",
    "components",
    "count_overlaps",
    "csr_chebyshev",
    "csr_distances",
    "csr_products",
    "divide_by_products",
    "elkan",
    "embed_rows",
    "exponents",
    "factored_linkage",
    "fill_lost",
    "finish_scan",
    "greedy_start",
    "group_sums",
    "keep_largest",
    "kmeans_plus_plus",
    "largest_both_ways",
    "linkage_of_products",
    "lloyd",
    "mean_of_nearest",
    "merge_mutual",
    "mirror_pairs",
    "nearest_column",
    "nearest_entries",
    "order_by_distance",
    "pair_distances",
    "products_to_distances",
    "scan_tile",
    "smallest_columns",
    "triangle_entries",
    "triangle_of_matrix",
    "triangle_of_products",
    "upper_triangle",
]
