"""Where rows come from, and the maps and ordered sums over their blocks."""

from mdec.rows.blocks import Rows, opened
from mdec.rows.sources import RowSource, open_rows

__all__ = ["RowSource", "Rows", "open_rows", "opened"]
