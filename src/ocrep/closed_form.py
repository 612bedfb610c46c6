"""What all estimators share: rows → features → factor → spectrum → rule → weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from ocrep import rules
from ocrep.blocks import block_rows, row_blocks, row_slices
from ocrep.choices import pick
from ocrep.factor import Factor
from ocrep.layer import check_weights

# Today there is one route; "auto" leaves the choice to the library.
FACTOR_ROUTES = ("auto", "qr")
_INPUTS: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}


class ClosedForm(BaseEstimator, ABC):
    """Training and prediction; subclasses say what the features are and what the targets are."""

    gamma: str | float | rules.Rule
    fit_intercept: bool
    factor: str
    _target_options: ClassVar[dict[str, bool]] = {}

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on all rows; the features are formed block by block and never held whole.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,), or (n_samples, n_targets) for regression
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights ≥ 0; whole weights are the same as repeated rows.

        Returns
        -------
        self
            The fitted estimator. If `fit` fails, it is left as it was.
        """
        with unchanged_on_error(self):
            self.__dict__.pop("factor_", None)
            X, y = self._check_rows(X, y, reset=True)
            y = self._learn_targets(y)
            self._absorb(X, y, self._row_weights(X, y, sample_weight))
        return self

    def with_gamma(self, gamma: str | float | rules.Rule) -> Self:
        """Give the same network under another rule, from the stored factor, without the data.

        This model stays as it is; a new one is returned.
        """
        check_is_fitted(self)
        other = copy(self)
        other.gamma = gamma
        other._choose()
        return other

    def _absorb(self, X: Any, y: np.ndarray, weight: np.ndarray | None) -> None:
        """Merge checked rows into the factor, or begin one, and solve anew."""
        pick("factor", self.factor, dict.fromkeys(FACTOR_ROUTES))
        start = getattr(self, "factor_", None)
        if start is None:
            self._begin_features(X, weight)
        rows = block_rows(self._features(X[:1]).shape[1] + self._encode(y[:1]).shape[1])
        blocks = ((self._features(x), self._encode(t), w) for x, t, w in row_blocks(X, y, weight, rows))
        self.factor_ = Factor.fold(blocks, intercept=self.fit_intercept, start=start)
        self.spectrum_ = self.factor_.spectrum()
        self._choose()

    def _choose(self) -> None:
        """Choose γ, and read off the spectrum all that depends on it."""
        spectrum = self.spectrum_
        self.choice_ = rules.resolve(self.gamma).choose(spectrum)
        self.gamma_ = self.choice_.gamma
        self.singular_values_ = spectrum.singular_values
        self.rank_ = spectrum.rank
        self.condition_number_ = float(spectrum.condition())
        self.regularized_condition_number_ = float(spectrum.condition(self.gamma_))
        self._store_weights(spectrum.weights(self.gamma_).T, spectrum.intercept(self.gamma_))

    def _outputs(self, X: Any) -> np.ndarray:
        """HW + b, (n_samples, n_targets), block by block, in the precision of X."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, **_INPUTS)
        weights = np.atleast_2d(self.coef_).T
        outputs = np.empty((X.shape[0], weights.shape[1]), dtype=X.dtype)
        for part in row_slices(X.shape[0], block_rows(weights.shape[0])):
            outputs[part] = self._features(X[part]) @ weights + self.intercept_
        return outputs

    def _check_rows(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, np.ndarray]:
        return validate_data(self, X, y, reset=reset, **_INPUTS, **self._target_options)

    def _row_weights(self, X: Any, y: np.ndarray, sample_weight: Any) -> np.ndarray | None:
        return check_weights(sample_weight, X)

    @abstractmethod
    def _begin_features(self, X: Any, weight: np.ndarray | None) -> None:
        """Fix the map from inputs to features."""

    @abstractmethod
    def _features(self, X: Any) -> np.ndarray:
        """Map checked rows to features."""

    @abstractmethod
    def _learn_targets(self, y: Any) -> np.ndarray:
        """Learn what the targets are, and give y in the form that `_encode` takes."""

    @abstractmethod
    def _encode(self, y: np.ndarray) -> np.ndarray:
        """Turn checked targets into T, (n_samples, n_targets)."""

    @abstractmethod
    def _store_weights(self, weights: np.ndarray, intercept: np.ndarray) -> None:
        """Store W (n_targets, n_features) and b in scikit-learn's shapes."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[None]:
    """Undo every attribute set inside if it fails: nothing fitted is ever changed in place."""
    before = dict(estimator.__dict__)
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise
