"""Text columns that were probably meant to hold numbers: 1,234 or 0,5, or a dash where a value is missing."""

from __future__ import annotations

import re
from typing import Any

from ocrep._files.frames import Table

_LOOKED_AT = 1000
_NUMERAL = re.compile(r"\s*[+-]?[\d.,' ]*\d[\d.,' ]*(e[+-]?\d+)?\s*%?\s*", re.IGNORECASE)


def near_numbers(table: Table) -> dict[str, str]:
    """Columns of text, most of which looks like numbers, with the first text that is none and its row."""
    texts = (name for name, kind in table.kinds.items() if kind == "text")
    found = {name: _first_odd(table.frame[name]) for name in texts}
    return {name: where for name, where in found.items() if where}


def _first_odd(column: Any) -> str:
    different = column.dropna().unique()
    looked_at = different[:_LOOKED_AT]
    if 2 * sum(_NUMERAL.fullmatch(text) is not None for text in looked_at) <= len(looked_at):
        return ""
    odd = next((text for text in different if not _is_number(text)), None)
    # The index still counts the file's rows, also where some without a target were left out.
    return "" if odd is None else f"{odd!r} in row {column.index[(column == odd).to_numpy().argmax()] + 1:,}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
