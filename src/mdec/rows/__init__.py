"""Where rows come from, and the maps and ordered sums over their blocks."""

from mdec.rows.blocks import Rows, as_rows
from mdec.rows.sources import RowSource, open_rows

__all__ = ["RowSource", "Rows", "as_rows", "open_rows"]
