"""What the features are: the units of a random hidden layer, or the inputs themselves."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from numbers import Integral
from typing import Any, Self

import numpy as np
from scipy import sparse

from ocrep import rules
from ocrep._features.random_layer import RandomLayer, Range, check_size
from ocrep._linalg.arrays import array_namespace
from ocrep._linalg.folds import FoldFactors, FoldPlan
from ocrep._training.hidden_size import choose_size
from ocrep.estimators.base import ClosedForm

_LAYER_PARAMETERS = (
    "n_hidden",
    "activation",
    "input_scaling",
    "weight_init",
    "weight_scale",
    "direct_link",
    "random_state",
)
# So few random units cannot promise a reasonable score on any problem: scikit-learn's `poor_score` tag says so.
_FEW_UNITS = 16


class HiddenUnits(ClosedForm):
    """Features are the units of a random layer."""

    n_hidden: int | str
    max_hidden: int
    layer_: RandomLayer

    def _begin_on_rows(self, X: Any, weight: Any) -> None:
        super()._begin_on_rows(X, weight)
        self.layer_.map_ = self.layer_.map_.beside(X)

    def _begin_features(self, n_inputs: int, dtype: Any, observe: Callable[[], Range]) -> None:
        layer = RandomLayer(**{name: getattr(self, name) for name in _LAYER_PARAMETERS})
        if self._auto:
            layer.set_params(n_hidden=check_size("max_hidden", self.max_hidden)).refuse_unnested()
        elif isinstance(self.n_hidden, str):
            raise ValueError(f"n_hidden={self.n_hidden!r} must be a whole number ≥ 1, or 'auto'.")
        for known in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, known):
                setattr(layer, known, getattr(self, known))
        self.layer_ = layer.draw(n_inputs, dtype, observe)
        self.n_hidden_ = self.layer_.weights_.shape[1]

    def _features(self, X: Any, out: np.ndarray | None = None) -> np.ndarray:
        return self.layer_.map_(X, out)

    def as_float32(self) -> Self:  # noqa: D102 - said by the base class
        other = super().as_float32()
        other.layer_ = copy(self.layer_)
        other.layer_.map_ = self.layer_.map_.astype(array_namespace(self.coef_).float32)
        return other

    @property
    def _auto(self) -> bool:
        return isinstance(self.n_hidden, str) and self.n_hidden == "auto"

    def _begin_folds(self) -> FoldFactors | None:
        return super()._begin_folds() or (FoldFactors.empty(FoldPlan()) if self._auto else None)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self._auto and rules.resolve(self.gamma).needs == "rows":
            raise ValueError(
                f"n_hidden='auto' chooses the size from factors alone, and gamma={self.gamma!r} reads rows: "
                "use 'kfold', 'gcv' or 'ocrep', or give a number of units."
            )

    def _check_streamed(self) -> None:
        if self._auto and not hasattr(self, "factor_"):
            raise ValueError(
                "n_hidden='auto' needs all rows at once to choose the size: use fit first, or give a number."
            )

    def _settle_size(self) -> None:
        """Choose the number of units along the nested path, and cut layer and factors down to it."""
        if not self._auto:
            return
        factor, folds = self.factor_, self.folds_
        assert folds is not None
        n_fixed = factor.n_features - self.n_hidden_
        self.n_hidden_ = choose_size(factor, folds, rules.resolve(self.gamma), n_fixed=n_fixed)
        self.layer_ = self.layer_.take(slice(self.n_hidden_))
        self.factor_ = factor.leading(n_fixed + self.n_hidden_)
        self.folds_ = folds.leading(n_fixed + self.n_hidden_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        few = isinstance(self.n_hidden, Integral) and int(self.n_hidden) < _FEW_UNITS
        for task in (tags.classifier_tags, tags.regressor_tags):
            if task is not None:
                task.poor_score = few
        return tags


class OwnFeatures(ClosedForm):
    """Features are the inputs themselves."""

    def _begin_features(self, n_inputs: int, dtype: Any, observe: Callable[[], Range]) -> None:
        pass

    def _features(self, X: Any, out: np.ndarray | None = None) -> np.ndarray:
        return X.toarray() if sparse.issparse(X) else X
