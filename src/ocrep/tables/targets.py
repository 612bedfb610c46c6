"""The target of a table: its values as numbers or labels, its gaps, and what cannot be learned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas
import pyarrow
from pyarrow import types
from sklearn.utils import column_or_1d

from ocrep._files.convert import coded_texts, kind_of_type, numbers_of
from ocrep._files.formats import DataError
from ocrep._rows.checks import MANY_LABELS
from ocrep.tables.frames import of_pandas, whole_array

MOST_CLASSES = 1000


def target_of(y: Any, n_rows: int, *, labels: bool, drop_missing: bool) -> tuple[np.ndarray, np.ndarray]:
    """The values of a target, and the numbers of their rows: all, unless rows without a value are dropped.

    Labels keep their type: texts, booleans, whole numbers. Numbers are float64, also if they are written as text.
    """
    column = _column(y)
    if len(column) != n_rows:
        raise DataError(f"y has {len(column):,} values, but X has {n_rows:,} rows: give one for each row.")
    values = _labels(column) if labels else _numbers(column)
    rows = np.flatnonzero(~pandas.isna(values))
    if not len(rows):
        raise DataError("The target is empty: there is nothing to learn.")
    n_missing = n_rows - len(rows)
    if n_missing and not drop_missing:
        raise DataError(
            f"The target has no value in {n_missing:,} of {n_rows:,} rows: fill them in, or leave these rows out with "
            "drop_missing_target=True."
        )
    values = values[rows]
    if values.dtype == object:
        values = np.array(values.tolist())
    _check_labels(values) if labels else _check_numbers(values)
    return values, rows


def _column(y: Any) -> Any:
    """The target as an Arrow array."""
    if isinstance(y, pyarrow.Array | pyarrow.ChunkedArray):
        return whole_array(y)
    if hasattr(y, "to_arrow") and getattr(y, "ndim", 1) == 1:
        return whole_array(y.to_arrow())
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None.")
    if not isinstance(y, pandas.Series):
        y = np.asarray(y)
        if y.ndim > 1 and y.shape[1] > 1:
            raise DataError(f"y has the shape {y.shape}, but a table has one target: fit one model for each.")
        y = pandas.Series(column_or_1d(y, warn=True))
    return of_pandas("y", y)


def _numbers(column: Any) -> np.ndarray:
    kind = kind_of_type(column.type)
    if kind == "empty":
        return np.full(len(column), np.nan)
    if kind == "text" or types.is_dictionary(column.type):
        codes, texts = coded_texts(column)
        numbers = numbers_of(pyarrow.array(texts, pyarrow.string()))
        if numbers is None:
            word = next(text for text in texts if numbers_of(pyarrow.array([text])) is None)
            raise DataError(
                f"The target holds text such as {word[:80]!r}, but a regression needs numbers: use TableClassifier, or "
                "another target."
            )
        return np.append(numbers, np.nan)[codes]
    if kind not in ("number", "boolean"):
        raise DataError(f"The target holds {column.type}, but a regression needs numbers: choose another column.")
    return column.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False)


def _labels(column: Any) -> np.ndarray:
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = kind_of_type(column.type)
    if kind == "empty":
        return np.full(len(column), np.nan)
    if kind == "text":
        codes, texts = coded_texts(column)
        return np.array([*texts, None], dtype=object)[codes]
    if kind not in ("number", "boolean"):
        raise DataError(f"The target holds {column.type}, which cannot be labels: choose another column.")
    if types.is_decimal(column.type):
        column = column.cast(pyarrow.float64())
    if column.null_count:
        return np.array(column.to_pylist(), dtype=object)
    return column.to_numpy(zero_copy_only=False)


def _check_numbers(values: np.ndarray) -> None:
    if np.isinf(values).any():
        raise DataError("The target holds an infinite number: replace it, or leave it empty for a missing value.")
    if values.min() == values.max():
        raise DataError(f"The target holds only one value, {values[0]:g}: there is nothing to learn.")


def _check_labels(values: np.ndarray) -> None:
    if values.dtype.kind == "f" and np.any(values != np.floor(values)):
        odd = values[values != np.floor(values)][0]
        raise DataError(f"The target holds {odd:g}, but labels are not continuous: use TableRegressor.")
    classes = np.unique(values)
    if len(classes) < 2:
        raise DataError(f"The target holds only one class, {classes[0]}: a classifier needs at least two.")
    if len(classes) > MOST_CLASSES or (len(classes) > MANY_LABELS and len(classes) > len(values) / 2):
        hint = "" if values.dtype.kind == "U" else " Use TableRegressor for a quantity."
        raise DataError(
            f"The target has {len(classes):,} different values in {len(values):,} rows, such as {str(values[0])[:80]}, "
            f"too many for classes: it looks like an id or a quantity.{hint}"
        )
