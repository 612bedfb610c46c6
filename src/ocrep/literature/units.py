"""What the methods that select hidden units share: candidates of several kinds, and a regressor on some of them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import validate_data

from ocrep._features.hidden_map import HiddenMap
from ocrep.literature.base import Method


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MixedMap:
    """X ↦ H of linear units (scaled inputs) followed by the units of several hidden maps.

    Attributes
    ----------
    inputs : ndarray of int
        The inputs that are linear units.
    maps : tuple of HiddenMap
        The maps of the other units; the first one's scaling holds for the linear units too.
    """

    inputs: np.ndarray
    maps: tuple[HiddenMap, ...]

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """The units' outputs, of shape (n_samples, n_units)."""
        first = self.maps[0]
        linear = ((X - first.center) * first.scale)[:, self.inputs]
        return np.hstack([linear, *(part(X) for part in self.maps)])

    def __repr__(self) -> str:
        linear, *hidden = self.sizes
        return f"MixedMap({linear} linear and {' + '.join(map(str, hidden))} hidden units)"

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of linear units, then of each map's units."""
        return (len(self.inputs), *(part.biases.shape[0] for part in self.maps))

    def take(self, units: np.ndarray) -> MixedMap:
        """The map of some units only, given by their increasing numbers."""
        starts = np.cumsum((0, *self.sizes))
        parts = np.split(units, np.searchsorted(units, starts[1:-1]))
        linear, *hidden = (part - start for part, start in zip(parts, starts[:-1], strict=True))
        maps = tuple(part.take(kept) for part, kept in zip(self.maps, hidden, strict=True))
        return replace(self, inputs=self.inputs[linear], maps=maps)


class SelectedUnits(MultiOutputMixin, RegressorMixin, Method):
    """A regressor on some of its candidate units: `map_` maps inputs to them, and `coef_` holds their weights."""

    map_: Any

    def _train(self, X: Any, y: Any) -> None:
        X, y = validate_data(self, X, y, multi_output=True, y_numeric=True, dtype=np.float64, ensure_min_samples=2)
        weights, intercept = self._select(X, y.reshape(len(y), -1).astype(np.float64))
        one = y.ndim == 1
        self.coef_ = weights[:, 0] if one else weights.T
        self.intercept_ = float(intercept[0]) if one else intercept

    def _predict(self, X: Any) -> np.ndarray:
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return self.map_(X) @ self.coef_.T + self.intercept_

    @abstractmethod
    def _select(self, X: np.ndarray, T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Set `map_` and `n_hidden_`; return weights (n_units, n_targets) and intercepts of the selected units."""
