"""The target: what a survey tells of it, the task that follows, and its values as the estimators take them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ocrep._files.convert import ColumnKind, as_kind, coded_texts
from ocrep._files.formats import DataError
from ocrep._files.row_file import FileBlock
from ocrep._rows.checks import MANY_LABELS
from ocrep.tables.counting import Distinct

MOST_CLASSES = 1000
EXACT = 2**53  # above this, some integers are not a float64

Task = Literal["regression", "classification"]


@dataclass(slots=True)
class TargetSurvey:
    """The targets of some rows; those of parts merge."""

    total: float = 0.0
    """The sum of targets that are numbers."""
    values: Distinct = field(default_factory=Distinct)
    """The different numbers, or texts."""
    fraction: tuple[int, float] | None = None
    """Row and value of the first number that is not whole."""

    def add(self, values: np.ndarray, row_numbers: np.ndarray) -> None:
        """Add numbers of rows, none of them missing."""
        self.total += float(values.sum(dtype=np.float64))
        if self.fraction is None:
            odd = values != np.floor(values)
            if odd.any():
                first = int(odd.argmax())
                self.fraction = int(row_numbers[first]), float(values[first])
        if not self.values.more:
            found, places, counts = np.unique(values, return_index=True, return_counts=True)
            self.values.add(found.tolist(), counts, lambda: row_numbers[places])

    def merge(self, other: TargetSurvey) -> TargetSurvey:
        """The survey of the rows of both."""
        fractions = [found for found in (self.fraction, other.fraction) if found is not None]
        return TargetSurvey(
            self.total + other.total,
            self.values.merge(other.values),
            min(fractions, default=None),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """The column to learn: its kind, its task and, for a classification, the classes."""

    name: str
    kind: ColumnKind
    task: Task
    classes: np.ndarray | None = None

    @classmethod
    def of(cls, name: str, kind: ColumnKind, survey: TargetSurvey, n_rows: int, task: Task) -> Target:
        """Check that the target can be learned."""
        first = survey.values.in_order()[0]
        if task == "classification":
            return cls(name, kind, task, _classes(name, kind, survey, n_rows))
        if kind == "text":
            raise DataError(
                f"Column {name!r} holds text such as {first!r}, but a regression needs numbers: "
                "use --task classification, or another target."
            )
        if len(survey.values) == 1:
            raise DataError(f"Column {name!r} holds only one value, {first:g}: there is nothing to learn.")
        return cls(name, kind, task)

    def values(self, of: Callable[[np.ndarray], np.ndarray], block: FileBlock) -> np.ndarray:
        """The targets of the rows that `of` selects: float64 for regression; texts, booleans or integers as labels."""
        column = block.columns[self.name]
        if self.kind == "text":
            codes, words = coded_texts(column)
            return np.array(words, dtype=str)[of(codes)]
        found = of(as_kind(column, self.kind, self.name, block.start))
        if self.task == "regression":
            return found.astype(np.float64)
        return found.astype(bool if self.kind == "boolean" else np.int64)

    def codes(self, y: np.ndarray) -> np.ndarray:
        """The number of each row's class; 0 for all rows of a regression."""
        if self.classes is None:
            return np.zeros(len(y), dtype=np.intp)
        return np.minimum(np.searchsorted(self.classes, y), len(self.classes) - 1)

    def labels(self, survey: TargetSurvey) -> tuple[np.ndarray, np.ndarray]:
        """The classes that some rows hold, sorted, and the number of rows of each."""
        dtype: Any = {"text": str, "boolean": bool}.get(self.kind, np.int64)
        labels = np.array(list(survey.values.found)).astype(dtype)
        counts = np.array([count for count, _ in survey.values.found.values()])
        order = np.argsort(labels)
        return labels[order], counts[order]


def guess_task(kind: ColumnKind, survey: TargetSurvey, n_rows: int) -> tuple[Task, str]:
    """Return the task for a target without missing values, and the reason.

    Texts, categories and booleans are labels. Numbers are labels if all are integers, at most 20 are different, and
    there are five rows for each on average; otherwise they are quantities.
    """
    if kind != "number":
        return "classification", f"holds {'True and False' if kind == 'boolean' else 'text'}"
    if survey.fraction is not None:
        return "regression", "holds numbers that are not whole"
    different = survey.values
    if not different.more and len(different) <= MANY_LABELS and n_rows >= 5 * len(different):
        return "classification", f"holds {len(different)} different whole numbers"
    return "regression", f"holds {different.number} different numbers in {n_rows:,} rows"


def _classes(name: str, kind: ColumnKind, survey: TargetSurvey, n_rows: int) -> np.ndarray:
    different = survey.values
    first = different.in_order()[0]
    if kind == "number":
        _check_whole(name, survey)
        first = int(first)
    if len(different) < 2:
        label = bool(first) if kind == "boolean" else first
        raise DataError(f"Column {name!r} holds only one class, {label}: a classifier needs at least two.")
    if (
        different.more
        or len(different) > MOST_CLASSES
        or (len(different) > MANY_LABELS and len(different) > n_rows / 2)
    ):
        hint = "write numbers as 1234.5" if kind == "text" else "use --task regression"
        raise DataError(
            f"Column {name!r} has {different.number} different values in {n_rows:,} rows, such as {first!s}, "
            f"too many for classes: is it an id, or a quantity ({hint})?"
        )
    return Target(name, kind, "classification").labels(survey)[0]


def _check_whole(name: str, survey: TargetSurvey) -> None:
    if survey.fraction is not None:
        raise DataError(
            f"Column {name!r} holds {survey.fraction[1]:g}, but labels are whole numbers: use --task regression."
        )
    if max(map(abs, survey.values.found)) >= EXACT:
        raise DataError(
            f"Column {name!r} holds labels of 16 digits and more, which float64 cannot tell apart: write them as text."
        )
