"""How many clusters: criteria, a null reference, and a rule that suggests a number."""

from mdec.selection.null import NullReference
from mdec.selection.rule import Candidate, KSelection, select_n_clusters

__all__ = ["Candidate", "KSelection", "NullReference", "select_n_clusters"]
