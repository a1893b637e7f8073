"""The report of one clustering, a single HTML file."""

from mdec.report.compute import Description, RunNotes, describe_clustering
from mdec.report.page import render_report

__all__ = ["Description", "RunNotes", "describe_clustering", "render_report"]
