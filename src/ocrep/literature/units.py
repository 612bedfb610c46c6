"""What the methods that select units share: candidate units of several kinds, and the checks of a regression."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ocrep._features.hidden_map import HiddenMap
from ocrep._transaction import unchanged_on_error
from ocrep.literature.network import refuse_labels


@dataclass(frozen=True, slots=True, eq=False)
class MixedMap:
    """Linear units (scaled inputs) followed by the units of several hidden maps."""

    inputs: np.ndarray
    maps: tuple[HiddenMap, ...]

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """The units' outputs, (n_samples, n_units)."""
        first = self.maps[0]
        linear = ((X - first.center) * first.scale)[:, self.inputs]
        return np.hstack([linear, *(part(X) for part in self.maps)])

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many units of each kind."""
        return (len(self.inputs), *(part.biases.shape[0] for part in self.maps))

    def take(self, units: np.ndarray) -> MixedMap:
        """Only these units, in increasing order: the others are really gone."""
        ends = np.cumsum(self.sizes)
        parts = [
            units[(units >= end - size) & (units < end)] - (end - size)
            for size, end in zip(self.sizes, ends, strict=True)
        ]
        maps = tuple(part.take(kept) for part, kept in zip(self.maps, parts[1:], strict=True))
        return replace(self, inputs=self.inputs[parts[0]], maps=maps)


class SelectedUnits(MultiOutputMixin, RegressorMixin, BaseEstimator, ABC):
    """A regressor that keeps some of its candidate units: `map_` has no others, `coef_` their weights."""

    map_: Any
    n_hidden_: int

    def fit(self, X: Any, y: Any) -> Self:
        """Select units and train; if it fails, the estimator is left as it was.

        The publication knows no sample weights, and neither does this.
        """
        with unchanged_on_error(self):
            refuse_labels(self, y)
            X, y = validate_data(self, X, y, multi_output=True, y_numeric=True, dtype=np.float64, ensure_min_samples=2)
            weights, intercept = self._select(X, y.reshape(len(y), -1).astype(np.float64))
            one = y.ndim == 1
            self.coef_ = weights[:, 0] if one else weights.T
            self.intercept_ = float(intercept[0]) if one else intercept
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predict the targets, in the shape of training."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return self.map_(X) @ self.coef_.T + self.intercept_

    @abstractmethod
    def _select(self, X: np.ndarray, T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Set `map_` and `n_hidden_`, and give the weights (n_units, n_targets) and constants of the kept units."""
