"""The task that a target asks for, regression or classification, and the target's values in the form it needs."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ocrep._files.formats import DataError
from ocrep.analysis.compare import MANY_LABELS

Task = Literal["regression", "classification"]
MOST_CLASSES = 1000
EXACT = 2**53
"""Above this, some integers are not a float64."""


def guess_task(values: np.ndarray, kind: str) -> tuple[Task, str]:
    """Return the task for a target without missing values, and the reason.

    Texts, categories and booleans are labels. Numbers are labels if all are integers, at most 20 are different, and
    there are five rows for each on average; otherwise they are quantities.
    """
    if kind != "number":
        return "classification", f"holds {'True and False' if kind == 'boolean' else 'text'}"
    if not _all_integers(values):
        return "regression", "holds numbers that are not whole"
    n_different = len(np.unique(values))
    if n_different <= MANY_LABELS and len(values) >= 5 * n_different:
        return "classification", f"holds {n_different} different whole numbers"
    return "regression", f"holds {n_different} different numbers in {len(values):,} rows"


def target_values(values: np.ndarray, kind: str, task: Task, name: str) -> np.ndarray:
    """Return the target as the estimators take it: float64 for regression; texts, booleans or integers as labels."""
    if task == "regression":
        if kind == "text":
            raise DataError(
                f"Column {name!r} holds text such as {values[0]!r}, but a regression needs numbers: "
                "use --task classification, or another target."
            )
        if (values == values[0]).all():
            raise DataError(f"Column {name!r} holds only one value, {values[0]:g}: there is nothing to learn.")
        return values.astype(np.float64)
    labels = _labels(values, kind, name)
    classes = np.unique(labels)
    if len(classes) < 2:
        raise DataError(f"Column {name!r} holds only one class, {classes[0]}: a classifier needs at least two.")
    if len(classes) > MOST_CLASSES or (len(classes) > MANY_LABELS and len(classes) > len(labels) / 2):
        hint = "write numbers as 1234.5" if kind == "text" else "use --task regression"
        raise DataError(
            f"Column {name!r} has {len(classes):,} different values in {len(labels):,} rows, such as {labels[0]!s}, "
            f"too many for classes: is it an id, or a quantity ({hint})?"
        )
    return labels


def _labels(values: np.ndarray, kind: str, name: str) -> np.ndarray:
    if kind == "text":
        return values.astype(str)
    if kind == "boolean":
        return values.astype(bool)
    if not _all_integers(values):
        odd = values[values != np.floor(values)][0]
        raise DataError(f"Column {name!r} holds {odd:g}, but labels are whole numbers: use --task regression.")
    if np.abs(values).max() >= EXACT:
        raise DataError(
            f"Column {name!r} holds labels of 16 digits and more, which float64 cannot tell apart: write them as text."
        )
    return values.astype(np.int64)


def _all_integers(values: Any) -> bool:
    return bool((values == np.floor(values)).all())
