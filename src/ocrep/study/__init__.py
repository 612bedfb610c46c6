"""The paper's experiments run again and compared with its published numbers: `run` a protocol, then `report` on it."""

from ocrep.study.page import report
from ocrep.study.protocol import FULL, PROTOCOLS, QUICK, Protocol
from ocrep.study.runner import about, read, run

__all__ = ["FULL", "PROTOCOLS", "QUICK", "Protocol", "about", "read", "report", "run"]
