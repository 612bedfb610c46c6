"""`Agreement`: how well predictions agree with targets, as sums that merge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class Agreement:
    """Sums over some rows, one entry per target."""

    weight: float
    mean: np.ndarray
    spread: np.ndarray
    """Σ w(y − mean)²."""
    error: np.ndarray
    """Σ w(y − prediction)², or the weight of wrong labels."""

    @classmethod
    def of(cls, y: np.ndarray, predicted: np.ndarray, weight: np.ndarray | None, *, labels: bool) -> Agreement:
        """Compare predictions with targets."""
        w = np.ones(len(y)) if weight is None else weight
        if labels:
            # Of several labels per row, all must be right.
            y = (y != predicted).reshape(len(y), -1).any(axis=1).astype(np.float64)
            predicted = np.zeros_like(y)
        y, predicted = (a.reshape(len(a), -1).astype(np.float64) for a in (y, predicted))
        total = float(w.sum())
        mean = w @ y / (total or 1.0)
        return cls(total, mean, w @ (y - mean) ** 2, w @ (y - predicted) ** 2)

    def merge(self, other: Agreement) -> Agreement:
        weight = self.weight + other.weight
        away, share = other.mean - self.mean, other.weight / (weight or 1.0)
        return Agreement(
            weight,
            self.mean + away * share,
            self.spread + other.spread + away**2 * (self.weight * share),
            self.error + other.error,
        )

    @property
    def accuracy(self) -> float:
        return float(1.0 - self.error[0] / self.weight)

    @property
    def r2(self) -> float:
        """R², averaged over targets; 1 or 0 for a constant target, as in scikit-learn."""
        constant = self.spread == 0.0
        ratio = self.error / np.where(constant, 1.0, self.spread)
        return float(np.mean(np.where(constant, np.where(self.error == 0.0, 1.0, 0.0), 1.0 - ratio)))
