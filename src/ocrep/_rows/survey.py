"""`Survey`: what must be known of all rows before the first is mapped; surveys of parts merge into one of the whole."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from ocrep._features.random_layer import Range, observed_range
from ocrep._rows.scan.source import shown


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """Ranges, labels and shapes of some rows."""

    n_rows: int
    """All rows, those of zero weight included."""
    weight_sum: float
    low: np.ndarray
    """The least value of each input among rows of positive weight, ∞ if there is none."""
    high: np.ndarray
    dtype: np.dtype
    """float32 if every row is, else float64."""
    labels: np.ndarray | None = None
    """The distinct labels, sorted, if they were asked for."""
    totals: np.ndarray | None = None
    """The weight of all rows of each label."""
    one_dimensional: bool = True
    """Whether y has one axis."""
    columns: tuple[str, ...] | None = None
    """The inputs' names, if they have any."""

    @classmethod
    def of(cls, X: Any, y: Any, weight: Any = None, *, labels: bool, columns: tuple[str, ...] | None = None) -> Survey:
        """Look at checked rows: X a matrix, y an array, weight one number ≥ 0 per row or None; any may have no rows."""
        y = np.asarray(y)
        weight = None if weight is None else np.asarray(weight, dtype=np.float64)
        known, totals = _labels_of(y, weight) if labels else (None, None)
        low, high = observed_range(X, weight) if X.shape[0] else _no_range(X.shape[1])
        return cls(
            n_rows=X.shape[0],
            weight_sum=float(X.shape[0] if weight is None else weight.sum()),
            low=low,
            high=high,
            dtype=np.dtype(np.float32 if X.dtype == np.float32 else np.float64),
            labels=known,
            totals=totals,
            one_dimensional=y.ndim == 1,
            columns=columns,
        )

    @classmethod
    def merged(cls, surveys: Any) -> Survey:
        """The survey of all rows from those of their parts, of which there must be at least one."""
        return reduce(cls.merge, surveys)

    @property
    def range(self) -> Range:
        """The inputs' range, as `RandomLayer.draw` asks for it."""
        return self.low, self.high

    @property
    def n_inputs(self) -> int:
        """Columns of X."""
        return len(self.low)

    def merge(self, other: Survey) -> Survey:
        """The survey of the rows of both; parts without rows say nothing of types and labels."""
        self._check_same_columns(other)
        if not (self.n_rows and other.n_rows):
            return self if self.n_rows else other
        labels, totals = self._merged_labels(other)
        return Survey(
            n_rows=self.n_rows + other.n_rows,
            weight_sum=self.weight_sum + other.weight_sum,
            low=np.minimum(self.low, other.low),
            high=np.maximum(self.high, other.high),
            dtype=np.promote_types(self.dtype, other.dtype),
            labels=labels,
            totals=totals,
            one_dimensional=self.one_dimensional,
            columns=self.columns,
        )

    def _merged_labels(self, other: Survey) -> tuple[np.ndarray | None, np.ndarray | None]:
        if self.labels is None or other.labels is None:
            return None, None
        if _is_text(self.labels) != _is_text(other.labels):
            raise ValueError(
                "The labels are texts in some rows and numbers in others, "
                f"such as {self.labels[0]!r} and {other.labels[0]!r}: make them all the same."
            )
        labels, index = np.unique(np.concatenate([self.labels, other.labels]), return_inverse=True)
        return labels, np.bincount(index, weights=np.concatenate([self.totals, other.totals]))

    def _check_same_columns(self, other: Survey) -> None:
        if self.columns != other.columns:
            raise ValueError(f"Some rows have the columns {shown(self.columns)}, and others {shown(other.columns)}.")
        if self.n_inputs != other.n_inputs:
            raise ValueError(f"Some rows have {self.n_inputs} inputs, and others {other.n_inputs}.")
        if self.n_rows and other.n_rows and self.one_dimensional != other.one_dimensional:
            raise ValueError("y has one axis for some rows and two for others: make them all the same.")


def _labels_of(y: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    y = y.reshape(-1)
    try:
        labels, index = np.unique(y, return_inverse=True)
    except TypeError as error:
        raise ValueError(f"The labels are of several kinds and cannot be told apart by order ({error}).") from None
    return labels, np.bincount(index, weights=weight, minlength=len(labels)).astype(np.float64)


def _is_text(labels: np.ndarray) -> bool:
    return labels.dtype.kind not in "biuf"


def _no_range(n_inputs: int) -> Range:
    return np.full(n_inputs, np.inf), np.full(n_inputs, -np.inf)
