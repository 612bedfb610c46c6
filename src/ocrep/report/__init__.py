"""A network under many γ: `diagnose` computes the numbers, `write_report` makes one interactive page of them."""

from ocrep.report.diagnosis import Diagnosis, diagnose
from ocrep.report.goodness import Goodness
from ocrep.report.page import write_report
from ocrep.report.table import Table
from ocrep.report.verdict import Facts, Finding, RuleLine, Verdict, judge

__all__ = [
    "Diagnosis",
    "Facts",
    "Finding",
    "Goodness",
    "RuleLine",
    "Table",
    "Verdict",
    "diagnose",
    "judge",
    "write_report",
]
