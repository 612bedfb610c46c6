"""What the methods share: their contract, and a regressor on selected units of several kinds."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin, is_regressor
from sklearn.utils.validation import check_is_fitted, validate_data

from ocrep._documentation import shown_in_short
from ocrep._errors import unchanged_on_error
from ocrep._layers.hidden_map import HiddenMap
from ocrep._layers.random_layer import random_numbers
from ocrep.estimators.summary import Model


class Method(Model):
    """A method of the literature.

    Parameters
    ----------
    activation : str or callable, default="sigmoid"
        "sigmoid", "tanh", "relu", "sin", "gaussian", "laplace", "hardlimit", "identity", or a function of an array.
    input_scaling : "minmax", "squash", (low, high) or None, default="minmax"
        Scaling of the inputs to [−1, 1] by the training range or a given range; None leaves them as they are.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the hidden layer.

    Attributes
    ----------
    n_hidden_ : int
        Number of hidden units.
    output_coef_ : ndarray of shape (n_hidden_,) or (n_targets, n_hidden_)
        Output weights.
    intercept_ : float or ndarray of shape (n_targets,)
        The constant.
    n_features_in_ : int
        Number of inputs.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the inputs, if X has names that are all strings.
    """

    input_scaling: Any
    random_state: Any

    def fit(self, X: Any, y: Any) -> Self:
        """Train; if that fails, the estimator stays as it was.

        Sample weights are not supported, because the publications do not define them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training inputs; only ELM and RELM take sparse ones.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Numbers for a regressor; labels of shape (n_samples,) for a classifier.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        with unchanged_on_error(self):
            if is_regressor(self):
                _check_not_labels(y, type(self).__name__)
            for name in [name for name in vars(self) if name.endswith("_")]:
                delattr(self, name)  # attributes of an earlier fit
            self._train(X, y)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predict targets in the shape that they had in training, or labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Inputs; only ELM and RELM take sparse ones.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
            Predicted targets or labels.
        """
        check_is_fitted(self)
        return self._predict(X)

    @abstractmethod
    def _train(self, X: Any, y: Any) -> None:
        """Set the attributes of a fitted estimator."""

    @abstractmethod
    def _predict(self, X: Any) -> np.ndarray: ...

    def _seed(self) -> int:
        """One seed for all layers of a fit."""
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(random_numbers(self.random_state).randint(2**31 - 1))


def _check_not_labels(y: Any, method: str) -> None:
    """Raise if y holds texts or booleans, which would otherwise be converted to numbers, or fail without a hint."""
    values = np.asarray(y)
    kind = values.dtype.kind
    if kind in "USb" or (kind == "O" and any(isinstance(value, str | bytes | bool) for value in values.flat)):
        raise ValueError(
            f"{method} is a method for regression, and y holds class labels: "
            "use ELMClassifier, RELMClassifier or PinvClassifier."
        )


# ------------------------------------------------------------------------------
# What the methods that select hidden units share: candidates of several kinds, and a regressor on some of them.


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

    __repr__ = shown_in_short

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """The units' outputs, of shape (n_samples, n_units)."""
        linear = self.maps[0].scaled(X)[:, self.inputs]
        return np.hstack([linear, *(part(X) for part in self.maps)])

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of linear units, then of each map's units."""
        return (len(self.inputs), *(part.biases.shape[0] for part in self.maps))

    def take(self, units: np.ndarray) -> MixedMap:
        """The map of some units only, given by their increasing numbers."""
        # Units are numbered through all kinds: cut the numbers where a kind ends, and count each from its start.
        starts = np.cumsum((0, *self.sizes))
        parts = np.split(units, np.searchsorted(units, starts[1:-1]))
        linear, *hidden = (part - start for part, start in zip(parts, starts[:-1], strict=True))
        maps = tuple(part.take(kept) for part, kept in zip(self.maps, hidden, strict=True))
        return replace(self, inputs=self.inputs[linear], maps=maps)


class SelectedUnits(MultiOutputMixin, RegressorMixin, Method):
    """A regressor on some of its candidate units: `map_` maps inputs to them, `output_coef_` holds their weights."""

    map_: Any

    def _train(self, X: Any, y: Any) -> None:
        X, y = validate_data(self, X, y, multi_output=True, y_numeric=True, dtype=np.float64, ensure_min_samples=2)
        weights, intercept = self._select(X, y.reshape(len(y), -1).astype(np.float64))
        single = y.ndim == 1
        self.output_coef_ = weights[:, 0] if single else weights.T
        self.intercept_ = float(intercept[0]) if single else intercept

    def _predict(self, X: Any) -> np.ndarray:
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return self.map_(X) @ self.output_coef_.T + self.intercept_

    @abstractmethod
    def _select(self, X: np.ndarray, T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Set `map_` and `n_hidden_`; return weights (n_units, n_targets) and intercepts of the selected units."""
