"""How numbers, names and tables are written in the report."""

from __future__ import annotations

import math
from collections.abc import Iterable

NONE = "–"
NAMES = {
    "ocrep": "OCReP",
    "cv": "CV",
    "gcv": "GCV",
    "gcv_lambda": "GCV, γ = λ",
    "unregularized": "unregularized",
    "ocrep_floor": "OCReP, default floor",
    "ocrep_full": "OCReP, p = min(N, M)",
    "ocrep_cv": "ocrep_cv",
    "kibria": "Kibria",
    "hoerl_kennard": "Hoerl-Kennard",
    "elm": "ELM",
    "relm": "RELM",
    "trop_elm": "TROP-ELM",
    "pruned_elm": "pruned ELM",
    "ocrep/unregularized": "μ(H^reg)/μ(H⁺)",
    "ocrep/cv": "μ(H^reg)/μ(H^CV)",
}
UNITS = {"delta_ailerons": 1e-4}  # as in the paper


def number(value: float | None, digits: int = 4) -> str:
    """Format a number with fixed significant digits; None and NaN become a dash."""
    return NONE if value is None or math.isnan(value) else f"{value:.{digits}g}"


def in_unit(data: str, value: float | None, digits: int = 4) -> str:
    """Format an error; those of Delta Ailerons are in 10⁻⁴."""
    return number(None if value is None else value / UNITS.get(data, 1.0), digits)


def title(data: str) -> str:
    """Return the name of a data set as the paper writes it."""
    return data.replace("_", " ").title()


def table(header: str, rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table; `header` has its columns separated by " | "."""
    cells = [[cell.replace("|", r"\|") for cell in row] for row in rows]
    lines = [[header], ["---"] * (header.count(" | ") + 1), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def bullets(sentences: Iterable[str]) -> str:
    """Return a Markdown list."""
    return "\n".join(f"- {sentence}" for sentence in sentences)


def listed(names: Iterable[str]) -> str:
    """Return names as "a, b and c"."""
    *first, last = [*names] or [""]
    return f"{', '.join(first)} and {last}" if first else last


def yes(answer: bool | None) -> str:
    """Return "yes", "no" or a dash."""
    return NONE if answer is None else "yes" if answer else "no"


def plural(count: int, noun: str) -> str:
    """Return a count with its noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
