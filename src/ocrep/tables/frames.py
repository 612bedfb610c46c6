"""Data frames of any library as Arrow columns, what kind of values each column holds, and these values as NumPy arrays.

A frame of pandas, polars or Arrow becomes a `Frame`: named Arrow columns. `kind_of` looks at all values of a column
once, in training; `values_of` reads a column of that kind then and later, whatever library or type it comes in:

    number, boolean        float64, NaN in gaps
    duration               seconds
    date, time             days since 1970, and hours since midnight
    rank                   the place of an ordered category, from 0
    text                   `Words`: the different texts, and for each row the number of its text

Dates written as text are read by the rules of `_files/convert.py`: 2024-12-31 and 31 Dec 2024 always, 31/12/2024 where
the order of day and month is certain.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pandas
import pyarrow
import pyarrow.compute as pc
from pyarrow import types
from sklearn.utils import check_array

from ocrep._files.convert import (
    DATE_KINDS,
    LEADING_ZERO,
    DateKind,
    as_kind,
    booleans_of,
    coded_texts,
    dates_of,
    first_other,
    hours_of,
    kind_of_type,
    numbers_of,
)
from ocrep._files.formats import DataError, nearest
from ocrep._rows.block import is_dask

Kind: TypeAlias = Literal["number", "boolean", "duration", "time", "rank", "text", DateKind, "empty", "other"]

# What looks like dates, whether or not all of a column can be read: also years of two digits after a month's name.
_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d.*")
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
_DATE = re.compile(
    r"(\d\d?/\d\d?/(\d{4}|\d\d)|\d\d?[.-]\d\d?[.-]\d{4}|\d\d\.\d\d\.\d\d|\d{4}[/.]\d\d?[/.]\d\d?)( \d.*)?", re.ASCII
)
_NAMED_MONTH = re.compile(
    rf"(?:[a-z]{{3,9}},? )?(?:\d\d?[ ./-]?{_MONTH}|{_MONTH} \d\d?(?=\D)),?[ ./'-]?(?:\d{{4}}|\d\d)(?:\D.*)?",
    re.IGNORECASE,
)
_LOOKED_AT = 1000  # texts that are looked at before they are said to be dates of no known form


class Words(NamedTuple):
    """The texts of a column."""

    codes: np.ndarray
    """For each row the number of its text; that of a gap is the number of texts."""
    texts: list[str]

    def counts(self, weight: np.ndarray) -> np.ndarray:
        """The rows of each text, counted by their weights, and last those of gaps."""
        return np.bincount(self.codes, weight, len(self.texts) + 1)

    def some(self, rows: np.ndarray) -> Words:
        """Some of the rows, with the texts that occur in them."""
        codes = self.codes[rows]
        used = np.unique(codes)
        used = used[used < len(self.texts)]
        places = np.full(len(self.texts) + 1, len(used))
        places[used] = np.arange(len(used))
        return Words(places[codes], [self.texts[number] for number in used.tolist()])


Values: TypeAlias = np.ndarray | Words


def is_missing(values: Values) -> np.ndarray:
    """Which rows have a gap."""
    return values.codes == len(values.texts) if isinstance(values, Words) else np.isnan(values)


def some_rows(values: Values, rows: np.ndarray) -> Values:
    """The values of some rows."""
    return values.some(rows) if isinstance(values, Words) else values[rows]


# ------------------------------------------------------------------------------
# Frames


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """Named columns as Arrow arrays."""

    columns: dict[str, Any]
    n_rows: int
    named: bool
    """Whether the columns have names of their own, and not those of their places."""

    @classmethod
    def of(cls, X: Any) -> Frame:
        """The columns of a frame of pandas, polars or Arrow, or of an array with two axes."""
        if isinstance(X, Frame):
            return X
        if is_dask(X):
            raise TypeError("X is a Dask collection, and a table is coded in memory: give X.compute().")
        if isinstance(X, pyarrow.Table | pyarrow.RecordBatch) or hasattr(X, "to_arrow"):
            table = X if isinstance(X, pyarrow.Table | pyarrow.RecordBatch) else X.to_arrow()
            _check_names(table.schema.names)
            columns = {name: whole_array(table[name]) for name in table.schema.names}
            return cls(columns, table.num_rows, named=True)
        named = hasattr(X, "iloc") and hasattr(X, "columns")
        frame = X if named else _frame_of_array(X)
        _check_names([str(name) for name in frame.columns])
        columns = {str(name): of_pandas(str(name), frame.iloc[:, i]) for i, name in enumerate(frame.columns)}
        return cls(columns, len(frame), named)

    def take(self, rows: np.ndarray) -> Frame:
        """Some of the rows, by their numbers."""
        numbers = pyarrow.array(rows)
        return Frame({name: column.take(numbers) for name, column in self.columns.items()}, len(rows), self.named)

    def renamed(self, names: list[str], estimator: str, *, of_array: bool = False) -> Frame:
        """Columns without names of their own under those of training, by their places.

        If training was on an array, there are no names to go by, whatever these columns are called.
        """
        by_name = self.named and not (of_array and set(names).isdisjoint(self.columns))
        if by_name or list(self.columns) == names:
            return self
        if len(self.columns) != len(names):
            has = f"X has {len(self.columns)} features"
            raise DataError(f"{has}, but {estimator} is expecting {len(names)} features as input.")
        if self.named:
            without = f"X has feature names, but {estimator} was fitted without feature names"
            warnings.warn(f"{without}: columns are taken by their places.", stacklevel=5)
        return Frame(dict(zip(names, self.columns.values(), strict=True)), self.n_rows, named=True)

    def column(self, name: str) -> Any:
        """A column by its name."""
        if name not in self.columns:
            raise DataError(f"X has no column {name!r}, which the model needs: {nearest(name, list(self.columns))}")
        return self.columns[name]


def _frame_of_array(X: Any) -> Any:
    if not (hasattr(X, "__array__") or hasattr(X, "toarray") or isinstance(X, list | tuple)):
        raise TypeError(
            f"X must be a pandas or polars data frame, an Arrow table, or an array with rows and columns, not "
            f"{type(X).__name__}."
        )
    array = check_array(without_mask(X), dtype=None, ensure_all_finite=False)
    return pandas.DataFrame(array, columns=[f"x{i}" for i in range(array.shape[1])])


def without_mask(values: Any) -> Any:
    """Masked entries as gaps, which NumPy would read as numbers."""
    if not (isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values)):
        return values
    times = values.dtype.kind in "mM"  # those of nanoseconds would become integers
    found = values.data.astype(values.dtype if times else object)
    found[np.ma.getmaskarray(values)] = "NaT" if times else None
    return found


def _check_names(names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DataError(f"X has two columns named {name!r}: rename one of them.")
        seen.add(name)
    if not names:
        raise DataError("X has no columns.")


def of_pandas(name: str, series: Any) -> Any:
    """A column of pandas as an Arrow array; categories that are not text, such as intervals, become text."""
    dtype = series.dtype
    if isinstance(dtype, pandas.PeriodDtype):
        series = series.dt.to_timestamp()
    elif isinstance(dtype, pandas.SparseDtype):
        series = series.sparse.to_dense()
    elif isinstance(dtype, np.dtype) and not dtype.isnative:  # bytes in the order of other machines, as in FITS files
        series = series.astype(dtype.newbyteorder("="))
    elif isinstance(dtype, pandas.CategoricalDtype) and isinstance(dtype.categories.dtype, pandas.IntervalDtype):
        series = series.cat.rename_categories([str(interval) for interval in dtype.categories])
    try:
        return whole_array(pyarrow.Array.from_pandas(series))
    except (pyarrow.ArrowException, TypeError, ValueError, OverflowError) as error:
        kinds: dict[str, int] = {}
        for row, value in enumerate(series):
            if not (pandas.api.types.is_scalar(value) and pandas.isna(value)):
                plain = value.item() if isinstance(value, np.generic) else value
                kinds.setdefault(type(plain).__name__, row)
        (first, _), *others = kinds.items()
        if not others:
            raise DataError(
                f"Column {name!r} holds values that are not understood ({error}): make them numbers or text, or leave "
                f"the column out with ignore=[{name!r}]."
            ) from error
        raise DataError(
            f"Column {name!r} holds values of several types, {first} and in row {others[0][1] + 1} {others[0][0]}: "
            f"make all of them numbers or all of them text, or leave the column out with ignore=[{name!r}]."
        ) from error


def whole_array(column: Any) -> Any:
    """A column as one array, of types that all versions of Arrow compute with; categories of dates are dates."""
    if isinstance(column, pyarrow.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks()
    if types.is_dictionary(column.type) and types.is_temporal(column.type.value_type):
        # As texts they would depend on the unit of time, and on how a CSV file writes them.
        column = column.dictionary_decode()
    if isinstance(column.type, pyarrow.BaseExtensionType):
        column = column.storage
    return column.cast(pyarrow.large_string()) if types.is_string_view(column.type) else column


# ------------------------------------------------------------------------------
# Kinds


def kind_of(column: Any, name: str, order: str | None = None) -> Kind:
    """The kind of a column's values; `order` is "day-first" or "month-first" where the texts leave that open."""
    column_type = column.type
    if column.null_count == len(column):
        return "empty"
    if types.is_dictionary(column_type):
        if not _is_plain(column_type.value_type):
            return "other"
        return "rank" if column_type.ordered else "text"
    if types.is_duration(column_type):
        return "duration"
    kind = kind_of_type(column_type)
    if kind != "text":
        if kind == "number" and is_missing(values_of(column, "number", name)).all():
            return "empty"
        return kind
    codes, texts = coded_texts(column)
    words = pyarrow.array([texts[number] for number in np.unique(codes[codes < len(texts)]).tolist()], pyarrow.string())
    return _kind_of_texts(words, name, order)


def _is_plain(column_type: Any) -> bool:
    return kind_of_type(column_type) in ("text", "number", "boolean", "date")


def _kind_of_texts(words: Any, name: str, order: str | None) -> Kind:
    """The kind of different texts, none of them missing."""
    if not len(words):
        return "empty"
    # 007 is a code: as a number it would be the same as 7.
    if numbers_of(words) is not None and not pc.any(pc.match_substring_regex(words, LEADING_ZERO)).as_py():
        return "number"
    if booleans_of(words) is not None:
        return "boolean"
    if hours_of(words) is not None:
        return "time"
    orders = [kind for kind in DATE_KINDS if dates_of(words, kind) is not None]
    if len(orders) == 1:
        return orders[0]
    if orders:
        asked = [kind for kind in orders if order is not None and kind.startswith(order)]
        if asked:
            return asked[0]
        raise DataError(
            f"Column {name!r} holds dates such as {words[0].as_py()!r}, in which the order of day and month is not "
            f"certain: write YYYY-MM-DD, or set dates='day-first' or dates='month-first'."
        )
    if all(_looks_like_any_date(text.strip()) for text in words[:_LOOKED_AT].to_pylist()):
        # For each way of reading dates a text that it does not fit: if there are two, they contradict each other.
        odd = dict.fromkeys(first_other(words, partial(dates_of, kind=kind))[1] for kind in DATE_KINDS)
        raise DataError(
            f"Column {name!r} holds dates that are not all of one known form, such as {' and '.join(map(repr, odd))}: "
            f"write all of them as YYYY-MM-DD, or leave the column out with ignore=[{name!r}]."
        )
    return "text"


def looks_like_date(text: str) -> bool:
    """Whether a text is written as a date, but not as in ISO 8601."""
    return _DATE.fullmatch(text.strip()) is not None


def _looks_like_any_date(text: str) -> bool:
    """Whether a text is written as dates are, also if it cannot be read as one."""
    return bool(_ISO_DATE.fullmatch(text) or looks_like_date(text) or _NAMED_MONTH.fullmatch(text))


# ------------------------------------------------------------------------------
# Values


def values_of(column: Any, kind: Kind, name: str, ranks: list[str] | None = None, start: int = 0) -> Values:
    """The values of a column, read as the kind that it had in training; `ranks` are the ordered categories.

    `start` is the number of rows before these, for the error about a value of another kind.
    """
    if types.is_null(column.type) or (kind != "text" and column.null_count == len(column)):
        return Words(np.zeros(len(column), dtype=np.intp), []) if kind == "text" else np.full(len(column), np.nan)
    if kind in DATE_KINDS:
        return _days_since_1970(as_kind(column, kind, name, start))
    if kind == "duration":
        return _seconds(column, name)
    if kind == "time":
        return _hours(column, name)
    if kind in ("number", "boolean"):
        return as_kind(column, kind, name, start).astype(np.float64, copy=False)
    words = _words(column, name)
    if kind == "text":
        return words
    assert ranks is not None
    rank_of = {text: float(rank) for rank, text in enumerate(ranks)}
    return np.array([*(rank_of.get(text, np.nan) for text in words.texts), np.nan])[words.codes]


def categories_of(column: Any) -> list[str]:
    """The categories of a column of ordered ones, in their order."""
    return [str(text) for text in column.dictionary.cast(pyarrow.large_string()).to_pylist()]


def _words(column: Any, name: str) -> Words:
    held = column.type.value_type if types.is_dictionary(column.type) else column.type
    if not _is_plain(held):
        raise DataError(f"Column {name!r} must hold text in each row, as in training, but it holds {held}.")
    codes, texts = coded_texts(column)
    return Words(codes.astype(np.intp, copy=False), texts)


def _days_since_1970(moments: np.ndarray) -> np.ndarray:
    """Days, with the time as a fraction; NaN where a moment is missing (NaT)."""
    values = moments.astype("M8[us]").astype(np.int64) / 86_400e6
    return np.where(np.isnat(moments), np.nan, values)


def _seconds(column: Any, name: str) -> np.ndarray:
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if types.is_string(column.type) or types.is_large_string(column.type):  # as CSV files hold durations
        try:
            if pc.any(pc.match_substring_regex(column, r"^[\s\d.+-]+$")).as_py():
                raise ValueError("a number has no unit")
            column = pyarrow.array(pandas.to_timedelta(column.to_pandas()))
        except ValueError as error:
            raise DataError(
                f"Column {name!r} must hold durations, as in training, such as '1 days 02:30:00' ({error})."
            ) from error
    if not types.is_duration(column.type):
        raise DataError(f"Column {name!r} must hold durations, as in training, but it holds {column.type}.")
    return _floats(column.cast(pyarrow.duration("us"), safe=False)) / 1e6


def _hours(column: Any, name: str) -> np.ndarray:
    if types.is_time(column.type):
        return _floats(column.cast(pyarrow.time64("us"), safe=False)) / 3600e6
    words = _words(column, name)
    texts = pyarrow.array(words.texts, pyarrow.string())
    hours = hours_of(texts)
    if hours is None:
        place, text = first_other(texts, hours_of)
        row = int((words.codes == place).argmax()) + 1
        raise DataError(f"Column {name!r} must hold times of a day such as 09:30, but row {row} holds {text!r}.")
    return np.append(hours, np.nan)[words.codes]


def _floats(column: Any) -> np.ndarray:
    numbers = column.cast(pyarrow.int64())
    return numbers.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False)
