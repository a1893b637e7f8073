"""The report of one clustering, a single HTML file."""

from mdec.report.clustering.compute import describe_clustering
from mdec.report.clustering.described import Description
from mdec.report.clustering.render import render_report

__all__ = ["Description", "describe_clustering", "render_report"]
