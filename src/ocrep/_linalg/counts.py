"""`Counts`: all that training must know about rows besides their factor: how many, how heavy, about which shift."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ocrep._linalg.arrays import Array
from ocrep._linalg.blocks import RowBlock


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Rows of √w·[1 | H − s | T − s] as numbers; the counts of all rows are the merge of those of any parts.

    The shift s is the mean of the first rows seen, and zero without an intercept. It changes nothing in exact
    arithmetic, but a column such as 10⁶ ± 1 would otherwise lose six digits before it is centred.
    """

    shift: Array
    """One number per column of [H | T]."""
    n_targets: int
    intercept: bool
    n_rows: int = 0
    """Rows of positive weight."""
    weight_sum: float = 0.0
    whole_weights: bool = True
    """Whether every weight was a whole number."""
    shift_known: bool = False
    """Whether the shift is final; until a row of positive weight gives it, it is zero."""

    @classmethod
    def none(cls, rows: RowBlock, intercept: bool) -> Counts:
        """Before any row has been counted, for columns such as these."""
        return cls(rows.zeros(), rows.T.shape[1], intercept, shift_known=not intercept)

    def add(self, rows: RowBlock) -> Counts:
        """Count more rows; the first that have weight give the shift."""
        self.check_columns(rows.H.shape[1], rows.T.shape[1])
        return replace(
            self,
            shift=self.shift if self.shift_known else rows.mean(),
            n_rows=self.n_rows + rows.n_positive,
            weight_sum=self.weight_sum + rows.weight_sum,
            whole_weights=self.whole_weights and rows.whole_weights,
            shift_known=self.shift_known or rows.weight_sum > 0.0,
        )

    def merge(self, other: Counts) -> Counts:
        """The counts of the rows of both, about the shift of the first that has any."""
        self.check_columns(other.n_features, other.n_targets)
        if self.intercept != other.intercept:
            raise ValueError("One factor has an intercept and the other does not: they cannot be merged.")
        return replace(
            self if self.shift_known else other,
            n_rows=self.n_rows + other.n_rows,
            weight_sum=self.weight_sum + other.weight_sum,
            whole_weights=self.whole_weights and other.whole_weights,
        )

    def without_rows(self) -> Counts:
        """The same columns about the same shift, before any row has been counted."""
        return Counts(self.shift, self.n_targets, self.intercept, shift_known=self.shift_known)

    def about(self, shift: Array) -> Counts:
        """The same rows about another shift."""
        return replace(self, shift=shift)

    @property
    def n_features(self) -> int:
        """Columns of H."""
        return self.shift.shape[0] - self.n_targets

    @property
    def n(self) -> int:
        """Observations: rows of positive weight, each counted as often as its weight says if all are whole.

        Whole weights are frequencies, so weights and repeated rows give the same answer under every rule. Other
        weights only say how precise a row is, and rescaling them must not change the count.
        """
        return round(self.weight_sum) if self.whole_weights else self.n_rows

    def check_columns(self, n_features: int, n_targets: int) -> None:
        """Raise unless rows have as many features and targets as those before."""
        if (n_features, n_targets) != (self.n_features, self.n_targets):
            raise ValueError(
                f"These rows have {n_features} features and {n_targets} targets, but the factor has "
                f"{self.n_features} and {self.n_targets}: all blocks must have the same columns."
            )

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The counts as NumPy arrays, for a checkpoint."""
        counts = (self.n_targets, self.intercept, self.n_rows, self.whole_weights, self.shift_known)
        return {
            "shift": np.asarray(self.shift),
            "counts": np.asarray(counts, dtype=np.int64),
            "weight_sum": np.asarray(self.weight_sum),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Counts:
        """The counts that `to_arrays` wrote."""
        n_targets, intercept, n_rows, whole, known = (int(count) for count in arrays["counts"])
        weight_sum = float(arrays["weight_sum"])
        return cls(arrays["shift"], n_targets, bool(intercept), n_rows, weight_sum, bool(whole), bool(known))
