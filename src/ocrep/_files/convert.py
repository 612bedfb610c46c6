"""The kind of values in an Arrow column, and the values as NumPy arrays of numbers, booleans or texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import pyarrow
import pyarrow.compute as pc
from pyarrow import types

from ocrep._files.formats import DataError

DateKind = Literal["date", "day-first date", "month-first date"]
ColumnKind = Literal["number", "boolean", "text", DateKind, "time", "empty", "other"]
DATE_KINDS: tuple[DateKind, ...] = get_args(DateKind)

# How codes begin that would lose their zeros as numbers: 007, but not 0 and 0.5.
LEADING_ZERO = r"^\s*[+-]?0\d"
# What Arrow takes for a missing value in a CSV file, and more ways to write NaN.
_NOT_A_NUMBER = tuple(sign + word for sign in ("", "-") for word in ("nan", "NaN", "NAN", "Nan"))
_OTHERS = ("#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "1.#IND", "1.#QNAN", "N/A", "NA", "NULL", "n/a", "null")
MISSING_WORDS = ("", *_OTHERS, *_NOT_A_NUMBER)
_FLOATS = (pyarrow.float64(), pyarrow.float32())
_TRUE_WORDS = ("True", "TRUE", "true", "1")
_FALSE_WORDS = ("False", "FALSE", "false", "0")
# Dates as texts, and what makes them dates as in ISO 8601 once single digits have a 0 before them. RE2 is linear.
_ISO = r"^\d{4}-\d\d-\d\d(?:[ T]\d\d(?::\d\d){0,2}(?:\.\d+)?(?:Z|[+-]\d\d(?::?\d\d)?)?)?$"
_DAY_AND_MONTH = r"^(\d\d?)[/.-](\d\d?)[/.-](\d{4})( \d\d?:\d\d?(?::\d\d?)?(?: ?[AaPp][Mm])?)?$"
_FORMS = {
    "date": (r"^(\d{4})[/.-](\d\d?)[/.-](\d\d?)([ T].*)?$", r"\1-\2-\3\4"),
    "day-first date": (_DAY_AND_MONTH, r"\3-\2-\1\4"),
    "month-first date": (_DAY_AND_MONTH, r"\3-\1-\2\4"),
}
# A digit after a point may be a fraction of a second, or the end of a version such as 2024.1.3.
_SINGLE_DIGIT = {"date": r"([^.\d])(\d)\b", "day-first date": r"\b()(\d)\b", "month-first date": r"\b()(\d)\b"}
# Hours with AM and PM are those from 1 to 12; twelve more are added after noon.
_WITHOUT_AM_PM = {
    r"(?i)([ T])12(:[\d:.]+) ?[ap]m$": r"\100\2",
    r"(?i)([ T])(0[1-9]|1[01])(:[\d:.]+) ?[ap]m$": r"\1\2\3",
}
# Months with English names, in full or by three letters: 5 Apr 2023, 05-APR-2023, Wed, April 5th, 2023, with times.
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_ENDINGS = ("uary", "ruary", "ch", "il", "", "e", "y", "ust", "t(?:ember)?|tember", "ober", "ember", "ember")
_MONTH = "|".join(f"{month}(?:{ending})?" for month, ending in zip(_MONTHS, _ENDINGS, strict=True))
_MONTH = rf"(?P<month>{_MONTH})\.?"
_WEEKDAY = r"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?\.?,? )?"
_DAY = r"(?P<day>\d\d?)(?:st|nd|rd|th)?"
_YEAR_AND_TIME = r"(?P<year>\d{4})(?:,?[ T](?P<time>\d.*))?$"
_NAMED_MONTHS = (
    rf"(?i)^{_WEEKDAY}{_DAY}[ ./-]?{_MONTH}(?:, ?|[ ./-])?{_YEAR_AND_TIME}",
    rf"(?i)^{_WEEKDAY}{_MONTH}[ ./-]?{_DAY}(?:, ?|[ ./-]){_YEAR_AND_TIME}",
)
_TIME = r"(?i)^(?P<hour>\d\d?):(?P<minute>\d\d)(?::(?P<second>\d\d(?:\.\d+)?))? ?(?P<half>[ap]m)?$"
_FEW = 20  # texts that are looked at first, because most columns of texts hold no dates
_WITH_ZONE = {r"^(\d{4}-\d\d-\d\d)$": r"\1 00:00Z", r"^(\d{4}-\d\d-\d\d[ T][\d:.]+)$": r"\1Z"}
_EXAMPLE = {"date": "2026-01-31", "day-first date": "31/01/2026", "month-first date": "01/31/2026"}
_TESTS: dict[ColumnKind, tuple[Any, ...]] = {
    "empty": (types.is_null,),
    "boolean": (types.is_boolean,),
    "number": (types.is_integer, types.is_floating, types.is_decimal),
    "text": (types.is_string, types.is_large_string, types.is_string_view),
    "date": (types.is_date, types.is_timestamp),
    "time": (types.is_temporal,),
}


def kind_of_type(arrow_type: Any) -> ColumnKind:
    """Return the kind of values that an Arrow type stands for; dictionaries are "other"."""
    return next((kind for kind, tests in _TESTS.items() if any(test(arrow_type) for test in tests)), "other")


def declared_kind(arrow_type: Any) -> ColumnKind:
    """Return the kind of values that a file's type stands for; categories are texts."""
    return "text" if types.is_dictionary(arrow_type) else kind_of_type(arrow_type)


def as_kind(column: Any, kind: str, name: str, start: int) -> np.ndarray:
    """Return a column's values: floats (NaN where missing) for numbers and booleans, objects for texts, `M8` for dates.

    `name` and `start`, the number of rows before the column's first, are for the error about a value of another kind,
    or an infinite number.
    """
    if kind == "number":
        return _checked(_numbers(column, name, start), name, start)
    if kind in DATE_KINDS:
        return _dates(column, kind, name, start)
    return _booleans(column, name, start) if kind == "boolean" else _texts(column, name, start)


def coded_texts(column: Any) -> tuple[np.ndarray, list[str]]:
    """Return the number of each text and the texts; equal texts have equal numbers, and a missing one the last number.

    That number is the number of texts, so that a list of what the texts mean has one more entry for a missing one.
    """
    if not types.is_dictionary(column.type):
        is_text = types.is_string(column.type) or types.is_large_string(column.type)
        column = (column if is_text else column.cast(pyarrow.large_string())).dictionary_encode()
    words = column.dictionary.cast(pyarrow.large_string())
    missing = _without_missing(words).is_null().to_numpy(zero_copy_only=False)
    indices = column.indices
    if indices.type != pyarrow.int32():
        indices = indices.cast(pyarrow.int64())  # fewer bits might not hold one number more
    codes = (indices.fill_null(len(words)) if column.null_count else indices).to_numpy(zero_copy_only=False)
    if missing.any():
        codes = np.append(np.where(missing, len(words), np.arange(len(words))), len(words))[codes]
    return codes, words.to_pylist()


def numbers_of(words: Any) -> np.ndarray | None:
    """Return texts as float64, NaN where one is missing; None if one of them is not a number."""
    words = pc.utf8_trim_whitespace(_without_missing(words))
    try:
        numbers = words.cast(pyarrow.float64())
    except pyarrow.ArrowInvalid:
        return None
    values = numbers.to_numpy(zero_copy_only=False)
    return values if np.count_nonzero(np.isnan(values)) == numbers.null_count else None


def booleans_of(words: Any) -> np.ndarray | None:
    """Return texts as 0 and 1, NaN where one is missing; None if one of them is neither True nor False.

    float32 is exact, and does not widen other columns of float32.
    """
    words = pc.utf8_trim_whitespace(_without_missing(words))
    places = pc.index_in(words, pyarrow.array([*_FALSE_WORDS, *_TRUE_WORDS], type=words.type))
    if places.null_count > words.null_count:
        return None
    # The words for False come first, so the quotient of integers is 0 or 1.
    return pc.divide(places, len(_FALSE_WORDS)).cast(pyarrow.float32()).to_numpy(zero_copy_only=False)


def dates_of(words: Any, kind: str = "date") -> np.ndarray | None:
    """Return texts as moments in UTC, NaT where one is missing; None if one of them is not a date of this kind.

    A "date" is one as in ISO 8601, with slashes or points, such as 2024/12/31, or with the name of the month, such as
    31 Dec 2024; in the others the year comes last, such as 31.12.2024. Times may have AM or PM. Each text is read for
    itself, whatever the others are.
    """
    words = pc.utf8_trim_whitespace(_without_missing(words))
    form, iso = _FORMS[kind]
    if kind == "date" and not _all_match(words, form):
        if not _all_match(_with_month_numbers(words[:_FEW]), form):
            return None
        words = _with_month_numbers(words)
    if not _all_match(words, form):
        return None
    afternoon: Any = False
    if not _all_match(words, _ISO):
        afternoon = pc.match_substring_regex(words, r"[Pp][Mm]$").fill_null(False).to_numpy(zero_copy_only=False)
        words = _replaced(words, {_SINGLE_DIGIT[kind]: r"\10\2", form: iso, **_WITHOUT_AM_PM})
    found = _moments(words)
    return None if found is None else found + np.timedelta64(12, "h") * afternoon


def hours_of(words: Any) -> np.ndarray | None:
    """Return times of a day, such as 09:30, 17:05:30 or 1:30 PM, in hours; None if a text is not one."""
    words = pc.utf8_trim_whitespace(_without_missing(words))
    parts = pc.extract_regex(words, _TIME)
    if parts.null_count > words.null_count:
        return None
    numbers = pc.struct_field(parts, [1]), pc.struct_field(parts, [0]), pc.struct_field(parts, [2])
    minute, hour, second = (
        pc.replace_substring_regex(part, "^$", "0").cast(pyarrow.float64()).to_numpy(zero_copy_only=False)
        for part in numbers
    )
    half = pc.utf8_lower(pc.struct_field(parts, [3])).fill_null("").to_numpy(zero_copy_only=False)
    halved = half != ""
    if np.any(halved & ~((hour >= 1) & (hour <= 12))):
        return None
    return np.where(halved, hour % 12, hour) + 12.0 * (half == "pm") + minute / 60.0 + second / 3600.0


def first_other(words: Any, understand: Callable[[Any], Any]) -> tuple[int, str]:
    """Return place and text of the first one that is not understood; there must be one."""
    texts = enumerate(words.to_pylist())
    return next(
        (place, text) for place, text in texts if text is not None and understand(pyarrow.array([text])) is None
    )


def _numbers(column: Any, name: str, start: int) -> np.ndarray:
    if column.type in _FLOATS:  # as most columns are: no need to ask further
        return column.to_numpy(zero_copy_only=False)
    column = _plain(column, "number", name)
    if kind_of_type(column.type) != "text":
        number = pyarrow.float32() if types.is_float16(column.type) else pyarrow.float64()
        return column.cast(number, safe=False).to_numpy(zero_copy_only=False)
    values = numbers_of(column)
    if values is None:
        place, word = first_other(column, numbers_of)
        row = start + place + 1
        raise DataError(f"Column {name!r} must hold numbers, as in training, but row {row} holds {word!r}.")
    return values


def _plain(column: Any, kind: str, name: str) -> Any:
    """Return a column as it is without categories; raise if it holds dates, times or lists."""
    if types.is_temporal(column.type) or types.is_nested(column.type):
        held = "dates or times" if types.is_temporal(column.type) else "lists"
        raise DataError(f"Column {name!r} must hold a {kind} in each row, as in training, but it holds {held}.")
    return column.cast(column.type.value_type) if types.is_dictionary(column.type) else column


def _checked(values: np.ndarray, name: str, start: int) -> np.ndarray:
    """Return numbers none of which is infinite."""
    # A finite sum proves that all values are finite; only otherwise is each looked at.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):
            return values
    infinite = np.isinf(values)
    if infinite.any():
        row = start + int(infinite.argmax()) + 1
        raise DataError(
            f"Column {name!r} holds an infinite number in row {row}: replace it, or leave it empty for a missing value."
        )
    return values


def _booleans(column: Any, name: str, start: int) -> np.ndarray:
    column = _plain(column, "boolean", name)
    if types.is_boolean(column.type):
        return column.cast(pyarrow.float32()).to_numpy(zero_copy_only=False)
    words = column.cast(pyarrow.string())
    values = booleans_of(words)
    if values is None:
        place, word = first_other(words, booleans_of)
        row = start + place + 1
        raise DataError(f"Column {name!r} must hold True or False, as in training, but row {row} holds {word!r}.")
    return values


def _dates(column: Any, kind: str, name: str, start: int) -> np.ndarray:
    if types.is_dictionary(column.type) and types.is_temporal(column.type.value_type):
        column = column.dictionary_decode()
    if types.is_date(column.type) or types.is_timestamp(column.type):
        return column.cast(pyarrow.timestamp("us", getattr(column.type, "tz", None)), safe=False).to_numpy(
            zero_copy_only=False
        )
    if types.is_null(column.type):
        return np.full(len(column), "NaT", dtype="M8[us]")
    if declared_kind(column.type) != "text":
        raise DataError(f"Column {name!r} must hold dates, as in training, but it holds {column.type}.")
    codes, words = coded_texts(column)
    found = dates_of(pyarrow.array(words, pyarrow.string()), kind)
    if found is None:
        place, word = first_other(pyarrow.array(words, pyarrow.string()), partial(dates_of, kind=kind))
        row = start + int((codes == place).argmax()) + 1
        raise DataError(f"Column {name!r} must hold dates such as {_EXAMPLE[kind]}, but row {row} holds {word!r}.")
    return np.append(found, np.datetime64("NaT", "us"))[codes]


def _moments(words: Any) -> np.ndarray | None:
    """Return texts as in ISO 8601 as moments in UTC, which is the zone of those without one; None if one is another."""
    for zone in (None, "UTC"):
        try:
            moments = (_replaced(words, _WITH_ZONE) if zone else words).cast(pyarrow.timestamp("us", zone))
        except pyarrow.ArrowInvalid:
            continue
        return moments.cast(pyarrow.timestamp("us")).to_numpy(zero_copy_only=False)
    return None


def _with_month_numbers(words: Any) -> Any:
    """Return dates in which months have names as in ISO 8601, and other texts as they are."""
    for form in _NAMED_MONTHS:
        parts = pc.extract_regex(words, form)
        named = parts.is_valid()
        part = {parts.type.field(i).name: pc.struct_field(parts, [i]).filter(named) for i in range(len(parts.type))}
        letters = pc.utf8_lower(pc.utf8_slice_codeunits(part["month"], 0, 3))
        month = pc.add(pc.index_in(letters, pyarrow.array(_MONTHS, type=words.type)), 1).cast(words.type)
        day, month = (pc.utf8_lpad(digits, 2, "0") for digits in (part["day"], month))
        hyphen, space = (pyarrow.scalar(mark, type=words.type) for mark in "- ")
        dates = pc.binary_join_element_wise(part["year"], month, day, hyphen)
        dates = pc.utf8_rtrim_whitespace(pc.binary_join_element_wise(dates, part["time"], space))
        words = pc.replace_with_mask(words, named, dates)
    return words


def _all_match(words: Any, pattern: str) -> bool:
    """Return whether all texts that are not missing match."""
    return pc.all(pc.match_substring_regex(words, pattern), min_count=0).as_py() is not False


def _replaced(words: Any, patterns: Mapping[str, str]) -> Any:
    """Return texts with one pattern after the other replaced."""
    for pattern, by in patterns.items():
        words = pc.replace_substring_regex(words, pattern, by)
    return words


def _texts(column: Any, name: str, start: int) -> np.ndarray:
    """Return texts as objects, equal ones as the same object: a million rows of ten categories hold ten strings."""
    codes, words = coded_texts(column if types.is_dictionary(column.type) else _plain(column, "text", name))
    return np.array([*words, np.nan], dtype=object)[codes]


def _without_missing(words: Any) -> Any:
    """Return texts, null where one stands for a missing value."""
    missing = pc.is_in(words, pyarrow.array(MISSING_WORDS, type=words.type))
    # `if_else` with null reads other bytes of a slice, up to pyarrow 19.
    return pc.replace_with_mask(words, missing, pyarrow.scalar(None, type=words.type))
