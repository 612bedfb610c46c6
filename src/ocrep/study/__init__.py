"""The paper's experiments, run for real beside the published numbers: `run` a protocol, `report` on a folder."""

from __future__ import annotations

from pathlib import Path

from ocrep.study.protocol import FULL, PROTOCOLS, QUICK, Protocol
from ocrep.study.runner import about, read, run


def report(folder: str | Path) -> Path:
    """Write report.md and the figures from the results of a folder, and give the report's path."""
    from ocrep.study.figures import draw_figures
    from ocrep.study.page import write_report

    folder = Path(folder)
    known, records = about(folder), read(folder)
    figures = draw_figures(records, folder)
    return write_report(folder, records, known["protocol"]["name"], missing=known["missing"], figures=figures)


__all__ = ["FULL", "PROTOCOLS", "QUICK", "Protocol", "about", "read", "report", "run"]
