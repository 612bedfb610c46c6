"""Scores of predictions on held-out rows, added up block by block."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

NETWORK, LINEAR, BOOSTING = "network", "linear model", "gradient boosting"
MEAN, MAJORITY = "baseline (mean)", "baseline (majority class)"
MOST_ROWS = 50_000
"""The area under the ROC curve is that of so many rows at most, drawn at random."""
_LEAST = np.finfo(np.float64).tiny


@dataclass(slots=True)
class NumberScores:
    """Scores of a regression."""

    n: int = 0
    rss: float = 0.0
    absolute: float = 0.0
    """The sum of |y − prediction|."""
    mean: float = 0.0
    squares: float = 0.0
    """The sum of (y − mean)²."""
    low: float = np.inf
    high: float = -np.inf

    def add(self, y: np.ndarray, predicted: np.ndarray) -> None:
        """Add some rows."""
        wrong = y - predicted
        self.rss, self.absolute = self.rss + float(wrong @ wrong), self.absolute + float(np.abs(wrong).sum())
        # Means and squares of parts merge without the cancellation of Σy² − (Σy)²/n.
        mean, n = float(y.mean()), self.n + len(y)
        away = mean - self.mean
        self.squares += float(np.sum((y - mean) ** 2)) + away**2 * self.n * len(y) / n
        self.mean, self.n = self.mean + away * len(y) / n, n
        self.low, self.high = min(self.low, float(y.min())), max(self.high, float(y.max()))

    def values(self) -> dict[str, float]:
        """R², which is not a number where all targets are equal, RMSE and MAE."""
        r2 = 1.0 - self.rss / self.squares if self.low < self.high else float("nan")
        return {"r2": r2, "rmse": (self.rss / self.n) ** 0.5, "mae": self.absolute / self.n}


@dataclass(slots=True, eq=False)
class LabelScores:
    """Scores of a classification; a class that the model does not know counts as wrong, and has no log-loss."""

    classes: np.ndarray
    """All labels that rows may have, sorted."""
    known: np.ndarray
    """Those that the model knows, in the order of its probabilities."""
    confusion: np.ndarray = field(init=False)
    """Rows by true class (first axis) and predicted class (second axis)."""
    _loss: float = field(init=False, default=0.0)
    _n_loss: int = field(init=False, default=0)
    _sample: RowSample = field(init=False)

    def __post_init__(self) -> None:
        self.confusion = np.zeros((len(self.classes), len(self.classes)), dtype=np.int64)
        self._sample = RowSample(max(1, 2 * MOST_ROWS // max(2, len(self.known))))

    def add(self, y: np.ndarray, predicted: np.ndarray, probabilities: np.ndarray | None = None) -> None:
        """Add some rows; without probabilities there is neither log-loss nor the area under the ROC curve."""
        k = len(self.classes)
        true, told = np.searchsorted(self.classes, y), np.searchsorted(self.classes, predicted)
        self.confusion += np.bincount(true * k + told, minlength=k * k).reshape(k, k)
        if probabilities is None:
            return
        place = np.full(k, -1)
        place[np.searchsorted(self.classes, self.known)] = np.arange(len(self.known))
        mine = place[true]
        rows = np.flatnonzero(mine >= 0)
        self._loss -= float(np.log(np.maximum(probabilities[rows, mine[rows]], _LEAST)).sum())
        self._n_loss += len(rows)
        self._sample.add(np.column_stack([mine[rows], probabilities[rows]]))

    def values(self) -> dict[str, float]:
        """The share of misclassified rows, balanced accuracy, area under the ROC curve and log-loss; NaN if unknown."""
        right, n = self.confusion.diagonal(), self.confusion.sum(axis=1)
        found = n > 0
        return {
            "error": float(1.0 - right.sum() / n.sum()),
            "balanced_accuracy": float(np.mean(right[found] / n[found])),
            "roc_auc": _roc_auc(self._sample.rows(), len(self.known)),
            "log_loss": self._loss / self._n_loss if self._n_loss else float("nan"),
        }


class RowSample:
    """At most `size` rows of an array that comes in blocks, drawn at random with a fixed seed."""

    def __init__(self, size: int) -> None:
        self._size, self._random = size, np.random.default_rng(0)
        self._blocks: list[tuple[np.ndarray, Any]] = []

    def add(self, rows: Any) -> None:
        """Add rows; those that cannot be in the sample any more are let go."""
        self._blocks.append((self._random.random(len(rows)), rows))
        if sum(len(keys) for keys, _ in self._blocks) > 2 * self._size:
            self._cut()

    def rows(self) -> np.ndarray:
        """The sample, in the order of the rows."""
        if not self._blocks:
            return np.empty((0, 1))
        self._cut()
        return np.asarray(self._blocks[0][1])

    def _cut(self) -> None:
        keys, rows = (np.concatenate(parts) for parts in zip(*self._blocks, strict=True))
        kept = np.sort(np.argsort(keys)[: self._size])
        self._blocks = [(keys[kept], rows[kept])]


def _roc_auc(rows: np.ndarray, n_classes: int) -> float:
    """Of two classes that of the second; of more the mean of each against all others. NaN if none can be measured."""
    areas = []
    for number in range(n_classes) if n_classes > 2 else [1]:
        mine = rows[:, 0] == number
        if mine.any() and not mine.all():
            areas.append(float(roc_auc_score(mine, rows[:, 1 + number])))
    return float(np.mean(areas)) if areas else float("nan")
