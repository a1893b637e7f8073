"""Studies as data: plan them, run them into records, summarise the records."""

from mdec.experiments.plan import plan_groups
from mdec.experiments.published import published_table
from mdec.experiments.records import Store, read_records
from mdec.experiments.run import Progress, run_study
from mdec.experiments.study import Study, read_study, study_names
from mdec.experiments.summary import ScoreTable, score_table

__all__ = [
    "Progress",
    "ScoreTable",
    "Store",
    "Study",
    "plan_groups",
    "published_table",
    "read_records",
    "read_study",
    "run_study",
    "score_table",
    "study_names",
]
