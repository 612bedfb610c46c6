"""Errors on held-out rows, added up block by block, beside those of a baseline that knows only training targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(slots=True)
class SquaredErrors:
    """The errors of a regression."""

    baseline: float
    """The mean of the training targets."""
    n: int = 0
    rss: float = 0.0
    total: float = 0.0
    """The sum of y − baseline."""
    squares: float = 0.0
    """The sum of (y − baseline)²."""
    low: float = np.inf
    high: float = -np.inf

    def add(self, y: np.ndarray, predicted: np.ndarray) -> None:
        """Add some rows."""
        self.n += len(y)
        away = y - self.baseline
        self.rss += float(np.sum((y - predicted) ** 2))
        self.total, self.squares = self.total + float(away.sum()), self.squares + float(away @ away)
        self.low, self.high = min(self.low, float(y.min())), max(self.high, float(y.max()))

    def errors(self) -> dict[str, float]:
        """RMSE, R², which is not a number where all targets are equal, and the RMSE of the mean."""
        spread = self.squares - self.total**2 / self.n
        r2 = 1.0 - self.rss / spread if self.low < self.high else float("nan")
        return {"rmse": float(np.sqrt(self.rss / self.n)), "r2": r2, "baseline_rmse": (self.squares / self.n) ** 0.5}


@dataclass(slots=True)
class WrongLabels:
    """The errors of a classification."""

    baseline: Any
    """The most frequent class of the training rows."""
    n: int = 0
    n_wrong: int = 0
    n_other: int = 0
    """Rows of another class than the most frequent one."""

    def add(self, y: np.ndarray, predicted: np.ndarray) -> None:
        """Add some rows."""
        self.n += len(y)
        self.n_wrong += int(np.sum(predicted != y))
        self.n_other += int(np.sum(y != self.baseline))

    def errors(self) -> dict[str, float]:
        """The share of misclassified rows, and that of the most frequent class."""
        return {"error": self.n_wrong / self.n, "baseline_error": self.n_other / self.n}
