"""The paper's experiments run again and compared with its published numbers: `run` a protocol, then `report` on it."""

from ocrep.study.page import report
from ocrep.study.protocol import FULL, PROTOCOLS, QUICK, Protocol
from ocrep.study.runner import run
from ocrep.study.store import about, load_study, publish

__all__ = ["FULL", "PROTOCOLS", "QUICK", "Protocol", "about", "load_study", "publish", "report", "run"]
