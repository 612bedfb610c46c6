"""What ELM and RELM share: each fits one `PinvRegressor` or `PinvClassifier` and predicts with it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ocrep._transaction import unchanged_on_error
from ocrep.estimators import PinvClassifier, PinvRegressor

_SHOWN = ("n_features_in_", "feature_names_in_", "classes_", "gamma_", "coef_", "intercept_", "n_hidden_", "layer_")


class NetworkBased(BaseEstimator, ABC):
    """An estimator that fits a network, stores it as `network_`, and copies its public attributes."""

    random_state: Any
    network_: Any
    _network_class: ClassVar[type[PinvRegressor] | type[PinvClassifier]]

    def fit(self, X: Any, y: Any) -> Self:
        """Train the network; if that fails, the estimator stays as it was.

        Sample weights are not supported, because the publications do not define them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Numbers for a regressor; labels of shape (n_samples,) for a classifier.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        with unchanged_on_error(self):
            self._check_targets(y)
            for name in [name for name in vars(self) if name.endswith("_")]:
                delattr(self, name)  # attributes of an earlier fit
            self.network_ = self._fit_network(X, y, fixed_seed(self.random_state))
            for name in _SHOWN:
                if hasattr(self.network_, name):  # some exist only for classifiers or named columns
                    setattr(self, name, getattr(self.network_, name))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predict with the trained network.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
            Predicted targets or labels.
        """
        check_is_fitted(self)
        return self.network_.predict(X)

    def _check_targets(self, y: Any) -> None:
        """Raise an error for targets of the wrong kind."""

    @abstractmethod
    def _fit_network(self, X: Any, y: Any, seed: int) -> PinvRegressor | PinvClassifier:
        """Train a network whose hidden layer is drawn with `seed`."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class NetworkRegressor(MultiOutputMixin, RegressorMixin, NetworkBased):
    """A regressor with a `PinvRegressor` inside."""

    _network_class = PinvRegressor

    def _check_targets(self, y: Any) -> None:
        check_not_labels(y, type(self).__name__)


class NetworkClassifier(ClassifierMixin, NetworkBased):
    """A classifier with a `PinvClassifier` inside."""

    _network_class = PinvClassifier

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the outputs of the network.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            One output for two classes, else one per class.
        """
        check_is_fitted(self)
        return self.network_.decision_function(X)


def fixed_seed(random_state: Any) -> int:
    """One seed for all networks of a fit, so that they share their hidden layer."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def check_not_labels(y: Any, method: str) -> None:
    """Raise an error if the targets of a method for regression are class labels."""
    values = np.asarray(y)
    labels = values.dtype.kind in "USb"
    if labels or (values.dtype.kind == "O" and any(isinstance(v, str | bytes | bool) for v in values.flat)):
        raise ValueError(
            f"{method} is a method for regression, and y holds class labels: "
            "use ELMClassifier, RELMClassifier or PinvClassifier."
        )
