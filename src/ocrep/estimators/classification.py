"""Classification: targets are labels, coded ±1; one column for two classes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ocrep._errors import unchanged_on_error
from ocrep._linalg.arrays import array_namespace, to_device_of
from ocrep._rows.block import is_dask
from ocrep._rows.survey import distinct
from ocrep._training.calibration import Calibrator, LabelCalibrator
from ocrep._training.recipe import Learned
from ocrep._training.targets import Indicators, Labels, check_more_than_one
from ocrep.estimators.base import (
    ClosedForm,
    available_block_by_block,
    available_with_probabilities,
    calibration_of,
    predict_lazily,
    score_lazily,
)


class Classification(ClassifierMixin, ClosedForm):
    """What the classifiers share: labels, one per row, or a column of 0 and 1 for each label of rows that have several.

    Parameters
    ----------
    class_weight : dict, "balanced" or None, default=None
        Factor on the weight of each class's rows; "balanced" makes all classes weigh the same.
    calibrate : "loo" or None, default=None
        How outputs become probabilities. None: the softmax (logistic for two classes, and for each of several labels)
        of the outputs times one factor, which changes no label; held-out outputs of up to 2,000 training rows show it,
        or where rows are not in memory (files, streams, Dask, `partial_fit`) their squared error alone, which is
        coarser. "loo": fitted with constants on the exact leave-one-out outputs of all rows; `predict` and
        `decision_function` follow the probabilities then.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels; their numbers 0, 1, … if rows may have several.
    multilabel_ : bool
        Whether rows may have several labels, each in a column of y.
    calibrator_ : Calibrator or LabelCalibrator
        The map from outputs to probabilities.
    """

    class_weight: dict[Any, float] | str | None
    classes_: np.ndarray
    calibrator_: Calibrator | LabelCalibrator

    @available_block_by_block
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Add rows to those already learned; the result is that of `fit` on all of them.

        With `input_scaling="minmax"` the input range is that of the first block, since later rows cannot be foreseen;
        give `input_scaling=(low, high)` to make the result independent of how the rows were divided.
        All parameters but `gamma` are those of the first call. Each call solves anew, so a few large blocks cost
        less than many small ones.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,), or (n_samples, n_labels)
            Labels, or indicators of several labels.
        classes : array-like, default=None
            All labels that will ever come; needed with the first block, unless y holds indicators.
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
        >>> from ocrep import TikhonovClassifier
        >>> model = TikhonovClassifier().partial_fit([[0.0], [1.0]], ["a", "a"], classes=["a", "b"])
        >>> model.partial_fit([[2.0], [3.0]], ["b", "b"]).predict([[0.4], [2.6]])
        array(['a', 'b'], dtype='<U1')
        """
        with unchanged_on_error(self):
            targets = Labels(self.class_weight, classes=self._all_classes(classes, y))
            self._extend(self._recipe(targets), X, y, sample_weight, groups)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Give one score per class, or a single one for two classes (> 0: the second).

        These are the network's outputs, or with `calibrate="loo"` the logits of the probabilities: `predict` follows
        the scores, and so all three agree.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            The scores; several labels have one each (> 0: the row has it).

        Examples
        --------
        >>> from ocrep import TikhonovClassifier
        >>> model = TikhonovClassifier().fit([[0.0], [1.0], [2.0], [3.0]], list("aabb"))
        >>> model.decision_function([[0.4], [2.6]]) > 0
        array([False,  True])
        """
        if is_dask(X):
            check_is_fitted(self)
            n_columns = None if self._one_output else len(self.classes_)
            return predict_lazily(self, X, "decision_function", n_columns=n_columns)
        return self._scores(X, "decision_function")

    def predict(self, X: Any) -> np.ndarray:
        """Predict the label with the largest score, or every label with a score above 0 if rows may have several.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_labels)
            Labels, or indicators of several labels.

        Examples
        --------
        >>> from ocrep import TikhonovClassifier
        >>> X = [[0.0], [1.0], [2.0], [3.0]]
        >>> TikhonovClassifier().fit(X, list("aabb")).predict([[0.4], [2.6]])
        array(['a', 'b'], dtype='<U1')
        >>> TikhonovClassifier().fit(X, [[1, 0], [1, 0], [0, 1], [0, 1]]).predict([[0.4], [2.6]])  # several labels
        array([[1, 0],
               [0, 1]])
        """
        if is_dask(X):
            check_is_fitted(self)
            n_columns = len(self.classes_) if self.multilabel_ else None
            return predict_lazily(self, X, "predict", dtype=self.classes_.dtype, n_columns=n_columns)
        scores = self._scores(X, "predict")
        xp = array_namespace(scores)
        if self.multilabel_:
            return xp.astype(scores > 0, xp.int64)
        codes = xp.astype(scores > 0, xp.int64) if scores.ndim == 1 else xp.argmax(scores, axis=1)
        return xp.take(to_device_of(scores, self.classes_), codes, axis=0)

    @available_with_probabilities
    def predict_proba(self, X: Any) -> np.ndarray:
        """Give the probability of each class, or of each of several labels.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities.

        Examples
        --------
        >>> from ocrep import PinvClassifier
        >>> from ocrep.datasets import load
        >>> X, y = load("wine", return_X_y=True)
        >>> probabilities = PinvClassifier(50, random_state=0).fit(X, y).predict_proba(X)
        >>> probabilities.shape, probabilities.sum(axis=1).round(6).max().item()
        ((178, 3), 1.0)
        """
        if is_dask(X):
            return np.exp(self.predict_log_proba(X))
        logarithms = self._log_probabilities(X, "predict_proba")
        return array_namespace(logarithms).exp(logarithms)

    @available_with_probabilities
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Give the logarithm of `predict_proba`.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Logarithms of probabilities.

        Examples
        --------
        >>> from ocrep import TikhonovClassifier
        >>> model = TikhonovClassifier().fit([[0.0], [1.0], [2.0], [3.0]], list("aabb"))
        >>> model.predict_log_proba([[0.4], [2.6]]).shape
        (2, 2)
        """
        if is_dask(X):
            calibration_of(self)
            return predict_lazily(self, X, "predict_log_proba", n_columns=len(self.classes_))
        return self._log_probabilities(X, "predict_log_proba")

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows whose label is predicted, or all of several; of Dask collections only sums come here.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,)
            True labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights ≥ 0.

        Returns
        -------
        float
            The accuracy.

        Examples
        --------
        >>> from ocrep import TikhonovClassifier
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], list("aabb")
        >>> TikhonovClassifier().fit(X, y).score(X, y)
        1.0
        """
        if is_dask(X):
            return score_lazily(self, X, y, sample_weight, labels=True).accuracy
        return super().score(X, y, sample_weight)

    def _scores(self, X: Any, method: str) -> Any:
        outputs = self._outputs(self._check_new_rows(X, method))
        scores = calibration_of(self).scores(outputs) if self._calibrates else outputs
        return scores[:, 0] if self._one_output else scores

    def _log_probabilities(self, X: Any, method: str) -> Any:
        outputs = self._outputs(self._check_new_rows(X, method))
        return calibration_of(self).log_probabilities(outputs)

    def _targets(self) -> Labels:
        return Labels(self.class_weight)

    @property
    def multilabel_(self) -> bool:
        """Whether rows may have several labels."""
        check_is_fitted(self)
        return self._learned.targets.several

    @property
    def _one_output(self) -> bool:
        return len(self.classes_) == 2 and not self.multilabel_

    @property
    def _score_weights(self) -> Any:
        W = super()._score_weights
        if not self._calibrates:
            return W
        return calibration_of(self).weights_of_scores(array_namespace(W).astype(W, array_namespace(W).float64))

    def _all_classes(self, classes: Any, y: Any) -> np.ndarray | None:
        """The classes of `partial_fit`: given with the first block, and the same ever after; None for indicators."""
        given = None if classes is None else distinct(np.asarray(list(classes)))
        if self._is_trained:
            if given is not None and not np.array_equal(given, self.classes_):
                raise ValueError(f"classes={given.tolist()} differs from the first call's {self.classes_.tolist()}.")
            return self.classes_
        if given is None and len(np.shape(y)) == 2 and np.shape(y)[1] > 1:
            return None
        if given is None:
            raise ValueError("partial_fit needs classes= with the first block: list all labels that will ever come.")
        check_more_than_one("classes", given)
        return given

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def _store_weights(self, learned: Learned, weights: Any, intercept: Any) -> None:
        targets = learned.targets
        assert isinstance(targets, Labels | Indicators)
        assert targets.classes is not None
        self.classes_ = targets.classes
        setattr(self, self._weights_name, weights)
        self.intercept_ = intercept
