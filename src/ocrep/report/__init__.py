"""A network under many γ: `diagnose` computes the numbers, `write_report` makes one interactive page of them."""

from ocrep.report.diagnosis import Diagnosis, diagnose
from ocrep.report.page import write_report

__all__ = ["Diagnosis", "diagnose", "write_report"]
