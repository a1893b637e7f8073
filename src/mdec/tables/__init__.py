"""Tables of samples by features: read from files, and results put back."""

from mdec.tables.containers import cluster_frame
from mdec.tables.reading import Table, read_table

__all__ = ["Table", "cluster_frame", "read_table"]
