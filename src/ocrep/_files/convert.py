"""The kind of values in an Arrow column, and the values as NumPy arrays of numbers, booleans or texts."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pyarrow
import pyarrow.compute as pc
from pyarrow import types

from ocrep._files.formats import DataError

ColumnKind = Literal["number", "boolean", "text", "date", "empty", "other"]

_MISSING_WORDS = ("", "#N/A", "#N/A N/A", "#NA", "N/A", "NA", "NULL", "NaN", "-NaN", "n/a", "nan", "-nan", "null")
_TRUE_WORDS, _FALSE_WORDS = ("True", "TRUE", "true", "1"), ("False", "FALSE", "false", "0")
_TESTS: dict[ColumnKind, tuple[Any, ...]] = {
    "empty": (types.is_null,),
    "boolean": (types.is_boolean,),
    "number": (types.is_integer, types.is_floating, types.is_decimal),
    "text": (types.is_string, types.is_large_string, types.is_string_view),
    "date": (types.is_temporal,),
}


def kind_of_type(arrow_type: Any) -> ColumnKind:
    """Return the kind of values that an Arrow type stands for; dictionaries are "other"."""
    return next((kind for kind, tests in _TESTS.items() if any(test(arrow_type) for test in tests)), "other")


def kind_of(column: Any) -> ColumnKind:
    """Return the kind of a column; categories are texts, and a column of missing values is empty."""
    kind = "text" if types.is_dictionary(column.type) else kind_of_type(column.type)
    return "empty" if kind != "other" and column.null_count == len(column) else kind


def as_kind(column: Any, kind: str, name: str, start: int) -> np.ndarray:
    """Return a column's values: floats (NaN where missing) for numbers and booleans, objects for texts.

    `name` and `start`, the number of rows before the column's first, are for the error about a value of another kind.
    """
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if kind_of(column) == "date" or types.is_nested(column.type):
        held = "dates or times" if types.is_temporal(column.type) else "lists"
        raise DataError(f"Column {name!r} must hold a {kind} in each row, as in training, but it holds {held}.")
    return {"number": _numbers, "boolean": _booleans, "text": _texts}[kind](column, name, start)


def _numbers(column: Any, name: str, start: int) -> np.ndarray:
    narrow = types.is_float16(column.type) or types.is_float32(column.type)
    if kind_of_type(column.type) == "text":
        column = _without_missing(pc.utf8_trim_whitespace(column))
    try:
        values = column.cast(pyarrow.float32() if narrow else pyarrow.float64(), safe=False).to_numpy()
    except pyarrow.ArrowInvalid:
        found = enumerate(column.to_pylist(), start + 1)
        row, word = next((row, word) for row, word in found if word is not None and not _is_number(word))
        raise DataError(f"Column {name!r} must hold numbers, as in training, but row {row} holds {word!r}.") from None
    # A finite sum proves that all values are finite; only otherwise is each looked at.
    with np.errstate(over="ignore", invalid="ignore"):
        infinite: Any = () if np.isfinite(values.sum(dtype=np.float64)) else np.flatnonzero(np.isinf(values))
    if len(infinite):
        raise DataError(
            f"Column {name!r} holds an infinite number in row {start + int(infinite[0]) + 1}: "
            "replace it, or leave it empty for a missing value."
        )
    return values


def _is_number(word: str) -> bool:
    try:
        pyarrow.scalar(word).cast(pyarrow.float64())
    except pyarrow.ArrowInvalid:
        return False
    return True


def _booleans(column: Any, name: str, start: int) -> np.ndarray:
    """Return 0 and 1 as float32, which is exact and does not widen other float32 columns."""
    if types.is_boolean(column.type):
        return column.cast(pyarrow.float32()).to_numpy()
    words = _without_missing(pc.utf8_trim_whitespace(column.cast(pyarrow.string())))
    places = pc.index_in(words, pyarrow.array([*_FALSE_WORDS, *_TRUE_WORDS]))
    unknown = np.flatnonzero(pc.and_(places.is_null(), words.is_valid()))
    if len(unknown):
        row, word = start + int(unknown[0]) + 1, words[int(unknown[0])].as_py()
        raise DataError(f"Column {name!r} must hold True or False, as in training, but row {row} holds {word!r}.")
    # The words for False come first, so the quotient of integers is 0 or 1.
    return pc.divide(places, len(_FALSE_WORDS)).cast(pyarrow.float32()).to_numpy()


def _texts(column: Any, name: str, start: int) -> np.ndarray:
    """Return texts as objects, equal ones as the same object: a million rows of ten categories hold ten strings."""
    # Combined first: before version 23, Arrow cannot join what `if_else` gives for chunks that are slices.
    words = _without_missing(column.cast(pyarrow.large_string()).combine_chunks())
    coded = words.dictionary_encode()
    known = np.array([*coded.dictionary.to_pylist(), np.nan], dtype=object)
    return known[coded.indices.fill_null(len(known) - 1).to_numpy(zero_copy_only=False)]


def _without_missing(words: Any) -> Any:
    missing = pc.is_in(words, pyarrow.array(_MISSING_WORDS, type=words.type))
    return pc.if_else(missing, pyarrow.scalar(None, type=words.type), words)
