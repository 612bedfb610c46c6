"""Dates as numbers: year, month, day of the week and age in days; and `DateParts`, a transformer that computes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

PARTS = ("year", "month", "weekday", "age")
_THURSDAY = 3  # the first of January 1970


def days_since_1970(moments: np.ndarray) -> np.ndarray:
    """Days, with the time as a fraction; NaN where a moment is missing (NaT)."""
    values = moments.astype("M8[us]").astype(np.int64) / 86_400e6
    return np.where(np.isnat(moments), np.nan, values)


def date_part(days: np.ndarray, part: str, latest: float) -> np.ndarray:
    """One part of dates, none of them missing; the age is the number of days before `latest`."""
    if part == "age":
        return latest - days
    whole = np.floor(days).astype(np.int64)
    if part == "weekday":
        return (whole + _THURSDAY) % 7.0
    months = whole.astype("M8[D]").astype("M8[M]").astype(np.int64)
    return months // 12 + 1970.0 if part == "year" else months % 12 + 1.0


class DateParts(TransformerMixin, BaseEstimator):
    """Year, month, day of the week (Monday is 0) and age in days of each column of dates.

    Parameters
    ----------
    medians : list of float
        Days since 1970 that stand for a missing date, one for each column.
    latest : list of float
        The day from which ages are counted back, one for each column.
    parts : list of list of str
        Which of "year", "month", "weekday" and "age" are computed, one list for each column.
    """

    def __init__(self, medians: Sequence[float], latest: Sequence[float], parts: Sequence[Sequence[str]]) -> None:
        self.medians = medians
        self.latest = latest
        self.parts = parts

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the names of the columns; all else is given."""
        self.n_features_in_ = X.shape[1]
        self.feature_names_in_ = np.asarray(list(X.columns), dtype=object)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Compute the parts, one column after the other; dates are moments of pandas, polars or NumPy, or ISO texts."""
        check_is_fitted(self)
        found = []
        for name, median, latest, parts in zip(X.columns, self.medians, self.latest, self.parts, strict=True):
            days = days_since_1970(_moments(X[name]))
            days = np.where(np.isnan(days), median, days)
            found += [date_part(days, part, latest) for part in parts]
        return np.column_stack(found) if found else np.empty((len(X), 0))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the columns with those of their parts."""
        names = zip(self.feature_names_in_, self.parts, strict=True)
        return np.asarray([f"{name}_{part}" for name, parts in names for part in parts], dtype=object)


def _moments(column: Any) -> np.ndarray:
    values = np.asarray(column)
    if values.dtype.kind == "M":
        return values
    import pandas

    # Texts and moments with a time zone; both count in UTC, as in files.
    moments = pandas.to_datetime(pandas.Series(values, dtype=object), utc=True, format="ISO8601")
    return moments.dt.tz_localize(None).to_numpy(dtype="M8[us]")


# ------------------------------------------------------------------------------
# `FrameInputs`: a transformer that gives the columns of any data frame the kinds they had in training.


class FrameInputs(TransformerMixin, BaseEstimator):
    """Columns of a pandas, polars or Arrow table as a pandas frame of floats, moments and texts, NaN where missing.

    Parameters
    ----------
    kinds : dict
        The columns that are inputs, in order, each with "number", "boolean", "text", "date", "day-first date" or
        "month-first date".
    """

    def __init__(self, kinds: Mapping[str, str]) -> None:
        self.kinds = kinds

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Learn nothing: all is given."""
        self.feature_names_in_ = np.asarray(list(self.kinds), dtype=object)
        self.n_features_in_ = len(self.kinds)
        return self

    def transform(self, X: Any) -> Any:
        """Select and convert the columns; raises a `DataError`, a `ValueError`, that names a value of another kind."""
        check_is_fitted(self)
        import pandas

        from ocrep._files.convert import as_kind
        from ocrep._files.formats import check_columns
        from ocrep._files.readers import as_table

        table = as_table(X)
        check_columns("The frame", self.kinds, table.column_names)
        arrays = {name: as_kind(table[name].combine_chunks(), kind, name, 0) for name, kind in self.kinds.items()}
        # With an explicit dtype pandas keeps the objects; otherwise it would copy them to a string type.
        return pandas.DataFrame({name: pandas.Series(values, dtype=values.dtype) for name, values in arrays.items()})

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the columns."""
        return self.feature_names_in_
