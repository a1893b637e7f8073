"""Where rows come from, and the maps and ordered sums over their blocks."""

from mdec.rows.sources import RowSource, open_rows

__all__ = ["RowSource", "open_rows"]
