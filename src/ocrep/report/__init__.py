"""One problem looked at under every γ, as plain numbers and as one self-contained interactive page."""

from ocrep.report.diagnosis import Diagnosis, diagnose
from ocrep.report.page import write_report
from ocrep.report.verdict import Facts, Finding, RuleLine, Verdict, judge

__all__ = ["Diagnosis", "Facts", "Finding", "RuleLine", "Verdict", "diagnose", "judge", "write_report"]
