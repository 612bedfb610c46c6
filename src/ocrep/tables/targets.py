"""The target of a table: its values as numbers or labels, its gaps, and what cannot be learned."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas
import pyarrow
from pyarrow import types
from sklearn.utils import column_or_1d

from ocrep._files.convert import coded_texts, kind_of_type, numbers_of
from ocrep._files.formats import DataError
from ocrep._linalg.arrays import SMALLEST
from ocrep._rows.checks import MANY_LABELS
from ocrep.tables.frames import of_pandas, whole_array, without_mask

MOST_CLASSES = 1000


def guess_task(y: Any) -> tuple[Literal["regression", "classification"], str]:
    """The task for a target, and the reason.

    Texts, categories and booleans are labels. Numbers are labels if all are whole, at most 20 are different, and there
    are five rows for each on average; otherwise they are quantities.
    """
    column = _column(y)
    if types.is_dictionary(column.type):
        return "classification", "categories"
    if kind_of_type(column.type) == "text":
        codes, texts = coded_texts(column)
        values = numbers_of(pyarrow.array(texts, pyarrow.string()))
        if values is None:
            return "classification", "text"
        numbers = np.append(values, np.nan)[codes]
    elif kind_of_type(column.type) == "number":
        numbers = column.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False)
    else:
        return "classification", "True and False" if types.is_boolean(column.type) else str(column.type)
    numbers = numbers[~np.isnan(numbers)]
    different = len(np.unique(numbers))
    if np.any(numbers != np.floor(numbers)):
        return "regression", "numbers that are not whole"
    if different <= MANY_LABELS and len(numbers) >= 5 * different:
        return "classification", f"{different} different whole numbers"
    return "regression", f"{different:,} different numbers"


def target_of(
    y: Any, n_rows: int, *, labels: bool, drop_missing: bool, name: str = "", whole: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """The values of a target, and the numbers of their rows: all, unless rows without a value are dropped.

    Labels keep their type: texts, booleans, whole numbers. Numbers are float64, also if they are written as text. Only
    of a `whole` table can it be said that there is nothing to learn. The `name` of the target is for errors.
    """
    target = f"The target {name!r}" if name else "The target"
    column = _column(y)
    if len(column) != n_rows:
        raise DataError(f"y has {len(column):,} values, but X has {n_rows:,} rows: give one for each row.")
    values = _labels(column, target) if labels else _numbers(column, target)
    rows = np.flatnonzero(~pandas.isna(values))
    if not len(rows) and whole:
        raise DataError(f"{target} is empty: there is nothing to learn.")
    n_missing = n_rows - len(rows)
    if n_missing and not drop_missing:
        raise DataError(
            f"{target} has no value in {n_missing:,} of {n_rows:,} rows: fill them in, or leave these rows out with "
            "drop_missing_target=True."
        )
    values = values[rows]
    if values.dtype == object:
        values = np.array(values.tolist())
    if not labels and np.isinf(values).any():
        raise DataError(f"{target} holds an infinite number: replace it, or leave it empty for a missing value.")
    if whole:
        _check_labels(values, target) if labels else _check_numbers(values, target)
    return values, rows


def _column(y: Any) -> Any:
    """The target as an Arrow array."""
    y = y.to_arrow() if hasattr(y, "to_arrow") else y
    if isinstance(y, pyarrow.Table | pyarrow.RecordBatch):
        if y.num_columns != 1:
            raise _several_targets(y.shape)
        y = y.column(0)
    if isinstance(y, pyarrow.Array | pyarrow.ChunkedArray):
        return whole_array(y)
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None.")
    if not isinstance(y, pandas.Series):
        y = np.asarray(without_mask(y))
        if y.ndim > 1 and y.shape[1] > 1:
            raise _several_targets(y.shape)
        y = pandas.Series(column_or_1d(y, warn=True))
    return of_pandas("y", y)


def _several_targets(shape: tuple[int, ...]) -> DataError:
    return DataError(f"y has the shape {shape}, but a table has one target: fit one model for each.")


def _numbers(column: Any, target: str) -> np.ndarray:
    kind = kind_of_type(column.type)
    if kind == "empty":
        return np.full(len(column), np.nan)
    if kind == "text" or types.is_dictionary(column.type):
        codes, texts = coded_texts(column)
        numbers = numbers_of(pyarrow.array(texts, pyarrow.string()))
        if numbers is None:
            word = next(text for text in texts if numbers_of(pyarrow.array([text])) is None)
            raise DataError(
                f"{target} holds text such as {word[:80]!r}, but a regression needs numbers: use TableClassifier, or "
                "another target."
            )
        return np.append(numbers, np.nan)[codes]
    if kind not in ("number", "boolean"):
        raise DataError(f"{target} holds {column.type}, but a regression needs numbers: choose another column.")
    return column.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False)


def _labels(column: Any, target: str) -> np.ndarray:
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = kind_of_type(column.type)
    if kind == "empty":
        return np.full(len(column), np.nan)
    if kind == "text":
        codes, texts = coded_texts(column)
        return np.array([*texts, None], dtype=object)[codes]
    if kind not in ("number", "boolean"):
        raise DataError(f"{target} holds {column.type}, which cannot be labels: choose another column.")
    if types.is_decimal(column.type):
        column = column.cast(pyarrow.float64())
    if column.null_count:
        return np.array(column.to_pylist(), dtype=object)
    return column.to_numpy(zero_copy_only=False)


def _check_numbers(values: np.ndarray, target: str) -> None:
    if values.min() == values.max():
        raise DataError(f"{target} holds only one value, {values[0]:g}: there is nothing to learn.")
    if values.max() / 2.0 - values.min() / 2.0 < SMALLEST:
        raise DataError(f"{target} varies by less than {SMALLEST:.0e}, which float64 cannot square: rescale it.")


def _check_labels(values: np.ndarray, target: str) -> None:
    if values.dtype.kind == "f" and np.any(values != np.floor(values)):
        odd = values[values != np.floor(values)][0]
        raise DataError(f"{target} holds {odd:g}, but labels are not continuous: use TableRegressor.")
    classes = np.unique(values)
    if len(classes) < 2:
        raise DataError(f"{target} holds only one class, {classes[0]}: a classifier needs at least two.")
    if len(classes) > MOST_CLASSES or (len(classes) > MANY_LABELS and len(classes) > len(values) / 2):
        hint = "" if values.dtype.kind == "U" else " Use TableRegressor for a quantity."
        raise DataError(
            f"{target} has {len(classes):,} different values in {len(values):,} rows, such as {str(values[0])[:80]}, "
            f"too many for classes: it looks like an id or a quantity.{hint}"
        )
