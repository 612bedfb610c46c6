"""What the methods built on one network share: they fit a `PinvRegressor` or `PinvClassifier` and speak for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ocrep._transaction import unchanged_on_error
from ocrep.estimators.pinv import PinvClassifier, PinvRegressor

_SHOWN = ("n_features_in_", "feature_names_in_", "classes_", "gamma_", "coef_", "intercept_", "n_hidden_", "layer_")


class NetworkBased(BaseEstimator, ABC):
    """Fits a network, keeps it as `network_`, and shows its attributes as its own."""

    random_state: Any

    def fit(self, X: Any, y: Any) -> Self:
        """Train; if it fails, the estimator is left as it was.

        The publications know no sample weights, and neither does this.
        """
        with unchanged_on_error(self):
            self._check_targets(y)
            for name in [name for name in vars(self) if name.endswith("_")]:
                delattr(self, name)  # what an earlier fit left
            seed = fixed_seed(self.random_state)
            self.network_ = self._fit_network(X, y, seed)
            for name in _SHOWN:
                if hasattr(self.network_, name):
                    setattr(self, name, getattr(self.network_, name))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predict with the trained network."""
        check_is_fitted(self)
        return self.network_.predict(X)

    def _check_targets(self, y: Any) -> None:
        """A place to refuse targets that the method is not made for."""

    @abstractmethod
    def _fit_network(self, X: Any, y: Any, seed: int) -> PinvRegressor | PinvClassifier:
        """Train a network whose hidden layer is that of `seed`."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class NetworkRegressor(MultiOutputMixin, RegressorMixin, NetworkBased):
    """A regressor that speaks for its network."""

    _network_class = PinvRegressor

    def _check_targets(self, y: Any) -> None:
        refuse_labels(self, y)


class NetworkClassifier(ClassifierMixin, NetworkBased):
    """A classifier that speaks for its network."""

    _network_class = PinvClassifier

    def decision_function(self, X: Any) -> np.ndarray:
        """Give the network's outputs."""
        check_is_fitted(self)
        return self.network_.decision_function(X)


def fixed_seed(random_state: Any) -> int:
    """One seed for all networks of a fit, so that they share their hidden layer."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def refuse_labels(estimator: Any, y: Any) -> None:
    """Say that a method for regression cannot take class labels."""
    values = np.asarray(y)
    labels = values.dtype.kind in "USb"
    if labels or (values.dtype.kind == "O" and any(isinstance(v, str | bytes | bool) for v in values.flat)):
        raise ValueError(
            f"{type(estimator).__name__} is a method for regression, and y holds class labels: "
            "use ELMClassifier, RELMClassifier or PinvClassifier."
        )
