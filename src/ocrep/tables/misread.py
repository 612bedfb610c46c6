"""Texts that were meant to be numbers: which columns look so, and which options of the program would read them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow

from ocrep._files.convert import numbers_of
from ocrep._files.readers import PLAIN
from ocrep._files.reading import Reading
from ocrep.analysis.assessment import Advice
from ocrep.tables.frames import looks_like_date

_SAMPLE = 1000  # texts of a column that are looked at
_SIGNS = "$€£¥%"
# Matched without spaces and signs. No two parts can match the same character, so that long texts take linear time.
_NUMERAL = re.compile(r"[+-]?[.,']*\d[\d.,']*(e[+-]?\d+)?", re.IGNORECASE)
_AS_NOTHING = str.maketrans("", "", _SIGNS + " \u00a0\u202f\u2009")
# Decimal mark and mark between thousands; of marks that both read all texts, the first is named.
_MARKS = ((".", ""), (".", ","), (",", ""), (",", "."), (".", "'"), (".", " "), (",", " "))
_MOST_WORDS = 3  # as many different words may stand for a missing value


def looks_like_number(text: str) -> bool:
    """Whether a text is written with the digits and marks of a number."""
    return _NUMERAL.fullmatch(text.translate(_AS_NOTHING).strip()) is not None


def options_that_read(texts: Sequence[str], reading: Reading = PLAIN) -> dict[str, Any]:
    """The fields of `Reading` that must change so that all texts are numbers; empty if no change is enough."""
    more = (sign for sign in _SIGNS if sign not in reading.strip and any(sign in text for text in texts))
    signs = reading.strip + "".join(more)
    words = tuple(dict.fromkeys(text.strip() for text in texts if not any(map(str.isdigit, text))))
    if len(words) > _MOST_WORDS:
        return {}
    column = pyarrow.array(list(texts), pyarrow.string())
    for decimal, thousands in ((reading.decimal, reading.thousands), *_MARKS):
        try:
            other = Reading(decimal, thousands, signs, (*reading.na, *words), reading.encoding, reading.delimiter)
        except ValueError:  # a word or sign that is also a mark
            continue
        if numbers_of(other.column(column)) is not None:
            return other.differences(reading)
    return {}


def misread(name: str, texts: Sequence[str], codes: np.ndarray, reading: Reading = PLAIN) -> Advice | None:
    """Advice on a column of texts that mostly look like numbers, as 1,234 or 0,5 do, or a dash for a missing value.

    `codes` are the numbers of the rows' texts.
    """
    quotes = "" if reading.decimal == PLAIN.decimal else "'"  # `Reading` puts them around 1.5 if that is not a number
    sample = [text.strip(quotes) for text in texts[:_SAMPLE]]
    look_so = [looks_like_number(text) for text in sample]
    if 2 * sum(look_so) <= len(sample) or all(map(looks_like_date, sample)):
        return None
    read = (reading.column(pyarrow.array([text], pyarrow.string())) for text in sample)
    odd = next((i for i, text in enumerate(read) if numbers_of(text) is None), None)
    if odd is None:
        return None
    row = int(np.argmax(codes == odd)) + 1
    problem = f"Column {name!r} became text, because it holds {sample[odd]!r} in row {row:,}"
    return Advice(
        "near_numbers", problem, options_that_read(sample, reading), "write numbers as 1234.5, and leave gaps empty"
    )
