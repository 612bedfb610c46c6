"""A page on a model: `examine` or `diagnose` computes the numbers, and `write_report` makes one page of them."""

from ocrep.report.diagnosis import Diagnosis, diagnose
from ocrep.report.examination import Examination, examine
from ocrep.report.page import write_report

__all__ = ["Diagnosis", "Examination", "diagnose", "examine", "write_report"]
