"""Text columns that probably should be numbers: those with 1,234 or 0,5, or with a dash for a missing value."""

from __future__ import annotations

import re
from typing import Any

from ocrep._files.frames import Table

_SAMPLE = 1000
_NUMERAL = re.compile(r"\s*[+-]?[\d.,' ]*\d[\d.,' ]*(e[+-]?\d+)?\s*%?\s*", re.IGNORECASE)


def near_numbers(table: Table) -> dict[str, str]:
    """Return the text columns that mostly look like numbers, each with its first text that cannot be parsed."""
    texts = (name for name, kind in table.kinds.items() if kind == "text")
    found = {name: _first_unparsed(table.frame[name]) for name in texts}
    return {name: where for name, where in found.items() if where}


def _first_unparsed(column: Any) -> str:
    different = column.dropna().unique()
    sample = different[:_SAMPLE]
    if 2 * sum(_NUMERAL.fullmatch(text) is not None for text in sample) <= len(sample):
        return ""
    odd = next((text for text in different if not _is_number(text)), None)
    # The index counts the file's rows, also after rows without a target were dropped.
    return "" if odd is None else f"{odd!r} in row {column.index[(column == odd).to_numpy().argmax()] + 1:,}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
