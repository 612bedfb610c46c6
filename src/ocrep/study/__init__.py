"""The paper's experiments run again and compared with its published numbers: `run` a protocol, then `report` on it."""

from __future__ import annotations

from pathlib import Path

from ocrep.study.protocol import FULL, PROTOCOLS, QUICK, Protocol
from ocrep.study.runner import about, read, run


def report(folder: str | Path) -> Path:
    """Write report.md and the figures into a folder with results, and return the path of the report."""
    from ocrep.study.figures import draw_figures
    from ocrep.study.page import report_text

    folder = Path(folder)
    known, records = about(folder), read(folder)
    figures = draw_figures(records, folder)
    text = report_text(records, known["protocol"]["name"], missing=known["missing"], figures=figures)
    path = folder / "report.md"
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


__all__ = ["FULL", "PROTOCOLS", "QUICK", "Protocol", "about", "read", "report", "run"]
