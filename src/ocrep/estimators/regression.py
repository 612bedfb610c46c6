"""Regression: targets are numbers, one column or several."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ocrep._errors import unchanged_on_error
from ocrep._linalg.arrays import array_namespace
from ocrep._rows.dask import is_dask
from ocrep._training.outputs import standard_deviations
from ocrep._training.targets import Numbers
from ocrep._training.train import Training
from ocrep.estimators.base import ClosedForm
from ocrep.estimators.lazy import DEVIATIONS, predict_lazily, score_lazily


class Regression(MultiOutputMixin, RegressorMixin, ClosedForm):
    """What the regressors share."""

    _targets = Numbers

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Add rows to those already learned; the result is that of `fit` on all of them.

        With `input_scaling="minmax"` the input range is that of the first block, since later rows cannot be foreseen;
        give `input_scaling=(low, high)` to make the result independent of how the rows were divided.
        All parameters but `gamma` are those of the first call. Each call solves anew, so a few large blocks cost
        less than many small ones.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights ≥ 0.
        groups : array-like of shape (n_samples,), default=None
            The group of each row, for rules that divide rows by groups; see `fit`.

        Returns
        -------
        self
            The fitted estimator. If a call fails, it is left as it was.
        """
        with unchanged_on_error(self):
            self._extend(self._recipe(), X, y, sample_weight, groups)
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict the targets, in the shape of training.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Inputs.
        return_std : bool, default=False
            Whether to give the standard deviation of each prediction too: of the noise, estimated by
            rss/(n − dof), and of the weights under the prior that γ stands for, as in `BayesianRidge`. It holds for
            a row of weight 1, and does not include the bias of a γ that is too large.

        Returns
        -------
        ndarray, or a pair of them with `return_std`
            Predictions, and their standard deviations.
        """
        if is_dask(X):
            return self._predict_lazily(X, return_std)
        X = self._check_new_rows(X)
        outputs = self._outputs(X)
        predicted = outputs[:, 0] if self._one_dimensional else outputs
        if not return_std:
            return predicted
        deviations = standard_deviations(self._learned, self.spectrum_, self.gamma_, X)
        return predicted, array_namespace(predicted).reshape(deviations, predicted.shape)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R², averaged over targets; of Dask collections only sums are brought here.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            True targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights ≥ 0.

        Returns
        -------
        float
            The coefficient of determination.
        """
        if is_dask(X):
            return score_lazily(self, X, y, sample_weight, labels=False).r2
        return super().score(X, y, sample_weight)

    def _predict_lazily(self, X: Any, return_std: bool) -> Any:
        check_is_fitted(self)
        n_columns = None if self._one_dimensional else len(self.coef_)
        predicted = predict_lazily(self, X, "predict", n_columns=n_columns)
        return (predicted, predict_lazily(self, X, DEVIATIONS, n_columns=n_columns)) if return_std else predicted

    @property
    def _one_dimensional(self) -> bool:
        return isinstance(self._learned.targets, Numbers) and self._learned.targets.one_dimensional

    def _store_outputs(self, training: Training) -> None:
        weights, intercept = training.solution.weights, training.solution.intercept
        one = self._one_dimensional
        self.coef_ = weights[0, :] if one else weights
        self.intercept_ = float(intercept[0]) if one else intercept
