"""What an Arrow column holds, and its values as numbers, booleans or texts for a model."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pyarrow
import pyarrow.compute as pc
from pyarrow import types

from ocrep._files.formats import DataError

ColumnKind = Literal["number", "boolean", "text", "date", "empty", "other"]

MISSING_WORDS = ("", "#N/A", "#N/A N/A", "#NA", "N/A", "NA", "NULL", "NaN", "-NaN", "n/a", "nan", "-nan", "null")
TRUE_WORDS, FALSE_WORDS = ("True", "TRUE", "true", "1"), ("False", "FALSE", "false", "0")


def kind_of(column: Any) -> ColumnKind:
    """What a column holds, by its Arrow type."""
    tests: tuple[tuple[ColumnKind, tuple[Any, ...]], ...] = (
        ("empty", (types.is_null,)),
        ("boolean", (types.is_boolean,)),
        ("number", (types.is_integer, types.is_floating, types.is_decimal)),
        ("text", (types.is_string, types.is_large_string, types.is_string_view, types.is_dictionary)),
        ("date", (types.is_temporal,)),
    )
    kind: ColumnKind = next((kind for kind, checks in tests if any(check(column.type) for check in checks)), "other")
    return "empty" if kind != "other" and column.null_count == len(column) else kind


def raw_bytes() -> tuple[Any, ...]:
    """The types in which Arrow gives text that is not UTF-8."""
    return pyarrow.binary(), pyarrow.large_binary()


def as_kind(column: Any, kind: str, name: str, start: int) -> np.ndarray:
    """A column's values: floats (NaN where missing) for numbers and booleans, objects for texts.

    `name` and `start` (the rows before this column's first) are for the sentence about a value of another kind.
    """
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if kind_of(column) == "date" or types.is_nested(column.type):
        held = "dates or times" if types.is_temporal(column.type) else "lists"
        raise DataError(f"Column {name!r} must hold a {kind} in each row, as in training, but it holds {held}.")
    return {"number": _numbers, "boolean": _booleans, "text": _texts}[kind](column, name, start)


def _numbers(column: Any, name: str, start: int) -> np.ndarray:
    if _is_text(column):
        return _parsed(column, name, start)
    narrow = types.is_float16(column.type) or types.is_float32(column.type)
    values = column.cast(pyarrow.float32() if narrow else pyarrow.float64(), safe=False).to_numpy()
    return _finite(values, name, start)


def _parsed(column: Any, name: str, start: int) -> np.ndarray:
    """Numbers from their texts."""
    words = _without_missing(pc.utf8_trim_whitespace(column))
    try:
        return _finite(words.cast(pyarrow.float64()).to_numpy(), name, start)
    except pyarrow.ArrowInvalid:
        for row, word in enumerate(words.to_pylist(), start + 1):
            if word is not None and not _is_number(word):
                raise DataError(
                    f"Column {name!r} must hold numbers, as in training, but row {row} holds {word!r}."
                ) from None
        raise  # pragma: no cover - Arrow and we disagree on what a number is


def _is_number(word: str) -> bool:
    try:
        pyarrow.scalar(word).cast(pyarrow.float64())
    except pyarrow.ArrowInvalid:
        return False
    return True


def _finite(values: np.ndarray, name: str, start: int) -> np.ndarray:
    # The sum is finite if all are, or if NaN stands for a missing value: only then is each looked at.
    with np.errstate(over="ignore", invalid="ignore"):
        suspect = not np.isfinite(values.sum(dtype=np.float64))
    if suspect:
        infinite = np.flatnonzero(np.isinf(values))
        if len(infinite):
            raise DataError(
                f"Column {name!r} holds an infinite number in row {start + int(infinite[0]) + 1}: "
                "replace it, or leave it empty for a missing value."
            )
    return values


def _booleans(column: Any, name: str, start: int) -> np.ndarray:
    """0 and 1; float32 holds them exactly and widens no column beside them."""
    if types.is_boolean(column.type):
        return column.cast(pyarrow.float32()).to_numpy()
    words = _without_missing(pc.utf8_trim_whitespace(column.cast(pyarrow.string())))
    true, false = (pc.is_in(words, pyarrow.array(known)) for known in (TRUE_WORDS, FALSE_WORDS))
    known = pc.or_(true, false).to_numpy() | words.is_null().to_numpy()
    if not known.all():
        row = int(np.flatnonzero(~known)[0])
        raise DataError(
            f"Column {name!r} must hold True or False, as in training, but row {start + row + 1} holds "
            f"{words[row].as_py()!r}."
        )
    values = true.to_numpy().astype(np.float32)
    values[words.is_null().to_numpy()] = np.nan
    return values


def _texts(column: Any, name: str, start: int) -> np.ndarray:
    """Equal texts are one object, so a million rows of ten categories need a million pointers and ten texts."""
    words = _without_missing(column.cast(pyarrow.large_string()))
    coded = words.combine_chunks().dictionary_encode()
    known = np.array([*coded.dictionary.to_pylist(), np.nan], dtype=object)
    return known[coded.indices.fill_null(len(known) - 1).to_numpy(zero_copy_only=False)]


def _without_missing(words: Any) -> Any:
    missing = pc.is_in(words, pyarrow.array(MISSING_WORDS, type=words.type))
    return pc.if_else(missing, pyarrow.scalar(None, type=words.type), words)


def _is_text(column: Any) -> bool:
    return types.is_string(column.type) or types.is_large_string(column.type) or types.is_string_view(column.type)
