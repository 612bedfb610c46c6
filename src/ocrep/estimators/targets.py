"""What is learned: numbers (regression) or labels coded as ±1 (classification)."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ocrep._linalg.arrays import Array, array_namespace, device_of
from ocrep._linalg.blocks import block_rows, row_slices
from ocrep._linalg.leave_one_out import Rows
from ocrep._rows.dask import is_dask
from ocrep._rows.device import beside, codes_of, distinct_labels, label_totals, lies_elsewhere
from ocrep._training.calibration import Calibrator
from ocrep._transaction import unchanged_on_error
from ocrep.estimators.base import ClosedForm


class Regression(MultiOutputMixin, RegressorMixin, ClosedForm):
    """Targets are numbers, one column or several."""

    _target_options: ClassVar[dict[str, bool]] = {"multi_output": True, "y_numeric": True}

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add rows to those already learned; the result is that of `fit` on all of them.

        With `input_scaling="minmax"` the input range is that of the first block, since later rows cannot be foreseen;
        give `input_scaling=(low, high)` to make the result independent of how the rows were divided.
        All parameters but `gamma` are those of the first call. Each call solves anew, so a few large blocks cost
        less than many small ones. If a call fails, the model is left as it was.
        """
        with unchanged_on_error(self):
            first = not hasattr(self, "factor_")
            self._check_parameters()
            self._check_streamed()
            X, y = self._check_rows(X, y, reset=first)
            y = self._learn_targets(y) if first else self._known_targets(y)
            self._absorb(X, y, self._row_weights(X, y, sample_weight))
            self._decide(rows=None)
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
            a row of weight 1, and knows nothing of the bias of a γ that is too large.

        Returns
        -------
        ndarray, or a pair of them with `return_std`
        """
        if is_dask(X):
            return self._predict_lazily(X, return_std)
        X = self._check_new_rows(X)
        outputs = self._outputs(X)
        predicted = outputs[:, 0] if self._one_dimensional else outputs
        if not return_std:
            return predicted
        return predicted, array_namespace(predicted).reshape(self._standard_deviations(X), predicted.shape)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R², averaged over targets; of Dask collections only sums are brought here."""
        return self._agreement(X, y, sample_weight).r2 if is_dask(X) else super().score(X, y, sample_weight)

    def _predict_lazily(self, X: Any, return_std: bool) -> Any:
        check_is_fitted(self)
        n_columns = None if self._one_dimensional else len(self.coef_)
        predicted = self._lazily("predict", X, n_columns=n_columns)
        return (predicted, self._lazily("standard deviations", X, n_columns=n_columns)) if return_std else predicted

    def _standard_deviations(self, X: Any) -> Array:
        xp = array_namespace(self.coef_)
        parts = row_slices(X.shape[0], block_rows(self.spectrum_.Vt.shape[1], X.shape[1]))
        features = (self._features(X[part, ...]) for part in parts)
        factor = xp.concat([self.spectrum_.variance_factor(H, self.gamma_) for H in features])
        noise = self.spectrum_.noise_variance(self.gamma_)
        return xp.astype(xp.sqrt(noise * (1.0 + factor[:, None])), X.dtype, copy=False)

    def _learn_targets(self, y: np.ndarray) -> np.ndarray:
        self._one_dimensional = y.ndim == 1
        return self._known_targets(y)

    def _known_targets(self, y: np.ndarray) -> np.ndarray:
        if isinstance(y, np.ndarray):
            assert_all_finite(y, input_name="y")  # objects such as None become NaN only after scikit-learn's own check
        return y

    def _encode(self, y: np.ndarray) -> np.ndarray:
        return array_namespace(y).reshape(y, (y.shape[0], -1))

    def _store_weights(self, weights: np.ndarray, intercept: np.ndarray) -> None:
        self.coef_ = weights[0, :] if self._one_dimensional else weights
        self.intercept_ = float(intercept[0]) if self._one_dimensional else intercept


def _calibrated(estimator: Any) -> bool:
    if estimator.calibrate is None:
        raise AttributeError("Probabilities need calibration: use calibrate='loo'.")
    return True


class Classification(ClassifierMixin, ClosedForm):
    """Targets are labels: ±1 one-hot, one column for two classes."""

    _labels_as_targets: ClassVar[bool] = True
    class_weight: dict[Any, float] | str | None
    calibrate: str | None
    classes_: np.ndarray
    calibrator_: Calibrator

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to those already learned; the result is that of `fit` on all of them.

        `classes`, all labels that will ever come, must be given with the first block.
        With `input_scaling="minmax"` the input range is that of the first block, since later rows cannot be foreseen;
        give `input_scaling=(low, high)` to make the result independent of how the rows were divided.
        All parameters but `gamma` are those of the first call. Each call solves anew, so a few large blocks cost
        less than many small ones. If a call fails, the model is left as it was.
        """
        with unchanged_on_error(self):
            first = not hasattr(self, "factor_")
            self._check_parameters()
            self._check_streamed()
            if self.calibrate is not None:
                raise ValueError("calibrate='loo' needs all rows at once: use fit, or set calibrate=None.")
            self._declare_classes(classes, first)
            X, y = self._check_rows(X, y, reset=first)
            y = self._known_targets(y)
            self._absorb(X, y, self._row_weights(X, y, sample_weight, streamed=True))
            self._decide(rows=None)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Give one score per class, or one in all for two classes (> 0: the second).

        These are the network's outputs, or with `calibrate="loo"` the logits of the probabilities: `predict` follows
        the scores, and so all three agree.
        """
        if is_dask(X):
            check_is_fitted(self)
            n_classes = len(self.classes_)
            return self._lazily("decision_function", X, n_columns=None if n_classes == 2 else n_classes)
        outputs = self._outputs(self._check_new_rows(X))
        scores = self._calibrator().scores(outputs) if self.calibrate is not None else outputs
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Predict the label with the largest output."""
        if is_dask(X):
            check_is_fitted(self)
            return self._lazily("predict", X, dtype=self.classes_.dtype)
        scores = self.decision_function(X)
        xp = array_namespace(scores)
        codes = xp.astype(scores > 0, xp.int64) if scores.ndim == 1 else xp.argmax(scores, axis=1)
        return xp.take(beside(self.classes_, scores), codes, axis=0)

    @available_if(_calibrated)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Give the probability of each class, (n_samples, n_classes); needs `calibrate="loo"`."""
        return np.exp(self.predict_log_proba(X))

    @available_if(_calibrated)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Give the logarithm of `predict_proba`."""
        if is_dask(X):
            self._calibrator()
            return self._lazily("predict_log_proba", X, n_columns=len(self.classes_))
        outputs = self._outputs(self._check_new_rows(X))
        return self._calibrator().log_probabilities(outputs)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows whose label is predicted; of Dask collections only sums are brought here."""
        return self._agreement(X, y, sample_weight).accuracy if is_dask(X) else super().score(X, y, sample_weight)

    def _calibrator(self) -> Calibrator:
        if not hasattr(self, "calibrator_"):
            raise NotFittedError(
                "This γ is not calibrated, and calibrating it needs the rows: call fit with this gamma and "
                "calibrate='loo', or set calibrate=None."
            )
        return self.calibrator_

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.calibrate not in (None, "loo"):
            raise ValueError(f"calibrate={self.calibrate!r} must be 'loo' or None.")

    def _decide(self, rows: Rows | None) -> None:
        super()._decide(rows)
        self.__dict__.pop("calibrator_", None)
        if self.calibrate is not None and lies_elsewhere(self.coef_):
            raise ValueError("calibrate='loo' works on NumPy arrays only: copy the rows to the host, or set None.")
        if self.calibrate is not None and rows is not None:
            self.calibrator_ = Calibrator.on_left_out_rows(self.spectrum_, rows, self.gamma_)

    def _learn_targets(self, y: np.ndarray) -> np.ndarray:
        self.classes_ = distinct_labels(y) if lies_elsewhere(y) else _distinct(_labels(y))
        _refuse_one_class(self.classes_, "y")
        return self._known_targets(y)

    def _encode(self, y: np.ndarray) -> np.ndarray:
        xp = array_namespace(y)
        n_classes = len(self.classes_)
        columns = xp.arange(1 if n_classes == 2 else 0, n_classes, dtype=y.dtype, device=device_of(y))
        return 2.0 * xp.astype(y[:, None] == columns, xp.float64) - 1.0

    def _store_weights(self, weights: np.ndarray, intercept: np.ndarray) -> None:
        self.coef_, self.intercept_ = weights, intercept

    def _row_weights(self, X: Any, y: np.ndarray, sample_weight: Any, *, streamed: bool = False) -> np.ndarray | None:
        weight = super()._row_weights(X, y, sample_weight)
        if self.class_weight is not None:
            by_row = array_namespace(y).take(beside(self._class_factors(y, weight, streamed), y), y, axis=0)
            weight = by_row if weight is None else weight * by_row
        if weight is not None and not streamed:
            counting = distinct_labels(y[weight > 0]) if lies_elsewhere(y) else np.unique(y[weight > 0])
            _refuse_one_class(self.classes_[counting], "The rows of positive weight")
        return weight

    def _class_factors(self, y: np.ndarray, weight: np.ndarray | None, streamed: bool) -> np.ndarray:
        """One factor per class; "balanced" makes the weights of all classes add up to the same."""
        if isinstance(self.class_weight, dict):
            return self._given_class_factors(self.class_weight)
        if self.class_weight != "balanced":
            raise ValueError(f"class_weight={self.class_weight!r} must be 'balanced', a dict, or None.")
        if streamed:
            raise ValueError(
                "class_weight='balanced' needs all rows at once: use fit, or give partial_fit a dict of weights."
            )
        if lies_elsewhere(y):
            totals = label_totals(y, weight, len(self.classes_))
        else:
            totals = np.bincount(y, weights=weight, minlength=len(self.classes_))
        return totals.sum() / (len(totals) * np.where(totals > 0, totals, np.inf))

    def _given_class_factors(self, given: dict[Any, float]) -> np.ndarray:
        labels = self.classes_.tolist()
        unknown = sorted(set(given) - set(labels), key=str)
        if unknown:
            raise ValueError(f"class_weight names classes that are not in y: {unknown}.")
        factors = np.array([float(given.get(label, 1.0)) for label in labels])
        if not (np.isfinite(factors) & (factors >= 0)).all():
            raise ValueError(f"class_weight={given} must hold finite numbers ≥ 0.")
        return factors

    def _declare_classes(self, classes: Any, first: bool) -> None:
        if classes is not None:
            classes = _distinct(np.asarray(list(classes)))
        if first:
            if classes is None:
                raise ValueError(
                    "partial_fit needs classes= with the first block: list all labels that will ever come."
                )
            _refuse_one_class(classes, "classes")
            self.classes_ = classes
        elif classes is not None and not np.array_equal(classes, self.classes_):
            raise ValueError(f"classes={classes.tolist()} differs from the first call's {self.classes_.tolist()}.")

    def _known_targets(self, y: np.ndarray) -> np.ndarray:
        if lies_elsewhere(y):
            codes, new = codes_of(y, self.classes_)
        else:
            labels = _labels(y)
            codes = np.searchsorted(self.classes_, labels).clip(max=len(self.classes_) - 1)
            new = np.unique(labels[self.classes_[codes] != labels])
        if len(new):
            raise ValueError(
                f"y holds labels that are not among the classes {self.classes_.tolist()}: {new.tolist()}. "
                "Give all labels as classes= in the first call to partial_fit, or fit anew."
            )
        return codes


def _distinct(labels: np.ndarray) -> np.ndarray:
    try:
        return np.unique(labels)
    except TypeError as error:
        raise ValueError(f"The labels are of several kinds and cannot be told apart by order ({error}).") from None


def _labels(y: np.ndarray) -> np.ndarray:
    check_classification_targets(y)
    return column_or_1d(y, warn=True)


def _refuse_one_class(classes: np.ndarray, where: str) -> None:
    if len(classes) < 2:
        raise ValueError(
            f"{where} holds only one class, {classes.tolist()}: a classifier needs rows of at least two classes."
        )
