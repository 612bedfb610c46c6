"""Regression: targets are numbers, one column or several."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ocrep._errors import unchanged_on_error
from ocrep._linalg.arrays import array_namespace
from ocrep._rows.block import is_dask
from ocrep._training.calibration import LeftOutErrors, leverage_widths, network_outputs, standard_deviations
from ocrep._training.recipe import Learned
from ocrep._training.targets import Numbers
from ocrep.estimators.base import (
    DEVIATIONS,
    ClosedForm,
    available_block_by_block,
    available_if_calibrated,
    calibration_of,
    predict_lazily,
    score_lazily,
)


class Regression(MultiOutputMixin, RegressorMixin, ClosedForm):
    """What the regressors share.

    Parameters
    ----------
    calibrate : "loo" or None, default=None
        "loo" keeps how far off the network was at each training row had that row been left out, exactly and without
        refitting, and learns where such errors are large; `predict_interval` exists then. Of the rows themselves
        nothing is kept.

    Attributes
    ----------
    calibrator_ : LeftOutErrors
        The sizes of the leave-one-out errors and their scale, with `calibrate="loo"`.
    """

    _targets = Numbers
    calibrator_: LeftOutErrors

    @available_block_by_block
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

        Examples
        --------
        >>> from ocrep import TikhonovRegressor
        >>> model = TikhonovRegressor(gamma=0.0).partial_fit([[0.0], [1.0]], [1.0, 3.0])
        >>> model.partial_fit([[2.0]], [5.0]).predict([[3.0]]).round(6)
        array([7.])
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

        Examples
        --------
        >>> from ocrep import PinvRegressor
        >>> from ocrep.datasets import load
        >>> X, y = load("housing", return_X_y=True)
        >>> predicted, std = PinvRegressor(50, random_state=0).fit(X, y).predict(X[:3], return_std=True)
        >>> predicted.shape, std.shape
        ((3,), (3,))
        """
        if is_dask(X):
            return self._predict_lazily(X, return_std)
        X = self._check_new_rows(X, "predict")
        outputs = self._outputs(X)
        predicted = outputs[:, 0] if self._one_output else outputs
        if not return_std:
            return predicted
        deviations = standard_deviations(self._learned, self.spectrum_, self.gamma_, X)
        return predicted, array_namespace(predicted).reshape(deviations, predicted.shape)

    @available_if_calibrated("intervals")
    def predict_interval(self, X: Any, coverage: float = 0.9) -> Any:
        """Give an interval for each target that should hold it with the given probability; needs `calibrate="loo"`.

        The prediction plus and minus c·√(1 + v)·s. s is the scale of errors at the row, which ridge regression on the
        same features learned from the sizes of left-out errors; where held-out errors say that it tells nothing, it is
        the same everywhere. v = hᵀ(HᵀH + γI)⁻¹h is the variance that the weights pass on to the prediction, in units of
        the noise of a row of the mean weight; a stack does without it. c is the quantile of the left-out errors of the
        training rows, each over its own √(1 + v)·s, where s was learned without the row. With about as many features
        as rows (a leverage above 3/4), intervals are at least as wide as the errors as they are ask for.

        Weights say how much a row counts among the errors, and only their ratios matter. Intervals hold if the errors
        of new rows are of the kind of those of the training rows. The guarantee of jackknife+, which keeps one model
        per training row, is not claimed.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Inputs.
        coverage : float, default=0.9
            The probability, between 0 and 1.

        Returns
        -------
        ndarray of shape (n_samples, 2), or (n_samples, 2, n_targets) if y has two axes
            The lower and the upper ends.

        Examples
        --------
        >>> from ocrep import PinvRegressor
        >>> from ocrep.datasets import load
        >>> X, y = load("housing", return_X_y=True)
        >>> ends = PinvRegressor(50, calibrate="loo", random_state=0).fit(X, y).predict_interval(X, coverage=0.8)
        >>> bool(0.7 < ((ends[:, 0] < y) & (y < ends[:, 1])).mean() < 0.9)
        True
        """
        calibrator = calibration_of(self)
        errors, plain = calibrator.quantiles(coverage)
        if is_dask(X):
            raise TypeError("Intervals are for rows in memory, and X is a Dask collection: give one block at a time.")
        X = self._check_new_rows(X, "predict_interval")
        xp = array_namespace(self._output_weights)
        outputs = self._outputs(X)
        half = self._half_widths(X, errors, plain)
        scale = calibrator.scale
        if scale is not None:
            half = half * scale.of(network_outputs(self._learned, scale.coef, scale.intercept, X))
        ends = xp.stack([outputs - half, outputs + half], axis=1)
        return xp.astype(ends[:, :, 0] if self._one_output else ends, X.dtype, copy=False)

    def _half_widths(self, X: Any, errors: Any, plain: Any) -> Any:
        """Half the width of each interval where errors have the scale 1."""
        return leverage_widths(self._learned, self.spectrum_, self.gamma_, X, errors, plain)

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

        Examples
        --------
        >>> from ocrep import TikhonovRegressor
        >>> X, y = [[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]
        >>> round(TikhonovRegressor(gamma=0.0).fit(X, y).score(X, y), 6)
        1.0
        """
        if is_dask(X):
            return score_lazily(self, X, y, sample_weight, labels=False).r2
        return super().score(X, y, sample_weight)

    def _only_for_prediction(self) -> Self:
        small = super()._only_for_prediction()
        if hasattr(self, "calibrator_") and "spectrum_" in self.__dict__:
            small.spectrum_ = self.spectrum_  # by which the widths of intervals differ from row to row
        return small

    def _predict_lazily(self, X: Any, return_std: bool) -> Any:
        check_is_fitted(self)
        n_columns = None if self._one_output else len(self._output_weights)
        predicted = predict_lazily(self, X, "predict", n_columns=n_columns)
        return (predicted, predict_lazily(self, X, DEVIATIONS, n_columns=n_columns)) if return_std else predicted

    @property
    def _one_output(self) -> bool:
        return isinstance(self._learned.targets, Numbers) and self._learned.targets.one_dimensional

    def _store_weights(self, learned: Learned, weights: Any, intercept: Any) -> None:
        del learned
        one = self._one_output
        setattr(self, self._weights_name, weights[0, :] if one else weights)
        self.intercept_ = float(intercept[0]) if one else intercept
