"""Texts that were meant to be numbers or dates: which of them look so, and which options would read them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow

from ocrep._files.convert import numbers_of
from ocrep._files.readers import PLAIN
from ocrep._files.reading import Reading

_SIGNS = "$€£¥%"
# Matched without spaces and signs. No two parts can match the same character, so that long texts take linear time.
_NUMERAL = re.compile(r"[+-]?[.,']*\d[\d.,']*(e[+-]?\d+)?", re.IGNORECASE)
_DATE = re.compile(
    r"(\d\d?/\d\d?/(\d{4}|\d\d)|\d\d?[.-]\d\d?[.-]\d{4}|\d\d\.\d\d\.\d\d|\d{4}[/.]\d\d?[/.]\d\d?)( \d.*)?", re.ASCII
)
_AS_NOTHING = str.maketrans("", "", _SIGNS + " \u00a0\u202f\u2009")
# Decimal mark and mark between thousands; of marks that both read all texts, the first is named.
_MARKS = ((".", ""), (".", ","), (",", ""), (",", "."), (".", "'"), (".", " "), (",", " "))
_MOST_WORDS = 3  # as many different words may stand for a missing value


def looks_like_number(text: str) -> bool:
    """Whether a text is written with the digits and marks of a number."""
    return _NUMERAL.fullmatch(text.translate(_AS_NOTHING).strip()) is not None


def looks_like_date(text: str) -> bool:
    """Whether a text is written as a date, but not as in ISO 8601."""
    return _DATE.fullmatch(text.strip()) is not None


def options_that_read(texts: Sequence[str], reading: Reading = PLAIN) -> dict[str, Any]:
    """The fields of `Reading` under which all texts are numbers, besides those given; empty if there are none."""
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
