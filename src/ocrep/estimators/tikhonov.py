"""`TikhonovRegressor` and `TikhonovClassifier`: output weights in closed form on the features you bring."""

from __future__ import annotations

from typing import Any

from ocrep.estimators.classification import Classification
from ocrep.estimators.regression import Regression


class TikhonovRegressor(Regression):
    """Tikhonov (ridge) regression on the features you bring, with γ chosen by a rule.

    The weights minimise ‖HW − T‖² + γ‖W‖² with H = X, and γ is chosen from one decomposition of H, as in [1]_.

    Parameters
    ----------
    gamma : str, Rule, float or array-like of shape (n_targets,), default="kfold"
        A rule's name (`ocrep.rules.names()` lists them), a rule object such as `rules.OCReP(floor=0.0)`,
        a number ≥ 0, or one for each target. "none" is the plain pseudoinverse.
    fit_intercept : bool, default=True
        Whether the output has an intercept, which is not penalized.
    gamma_per_target : bool, default=False
        Whether the rule chooses a γ for each target, as if it were the only one; `gamma_` is then an array. Rules that
        do not read the targets, such as "ocrep", give all targets the same γ.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        The weights W of the features, in scikit-learn's shape.

    See Also
    --------
    TikhonovClassifier : The same for labels.
    PinvRegressor : The same on the units of a random hidden layer.

    Examples
    --------
    >>> from ocrep import TikhonovRegressor
    >>> TikhonovRegressor(gamma=0.0).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).predict([[3.0]]).round(6)
    array([7.])
    >>> from ocrep.datasets import load
    >>> X, y = load("housing", return_X_y=True)
    >>> model = TikhonovRegressor(store_folds=True).fit(X, y)
    >>> model.with_gamma("kfold").gamma_ == model.gamma_  # a rule, without the data
    True
    >>> sum(len(block) for block in model.predict_blocks([X[:400], X[400:]]))
    506
    >>> bool(abs(model.as_float32().predict(X) - model.predict(X)).max() < 1e-2)
    True
    """

    def __init__(
        self,
        gamma: Any = "kfold",
        *,
        fit_intercept: bool = True,
        gamma_per_target: bool = False,
        store_folds: bool | int = False,
        solver: str = "auto",
        calibrate: str | None = None,
        forgetting: float = 1.0,
    ) -> None:
        self.gamma = gamma
        self.fit_intercept = fit_intercept
        self.gamma_per_target = gamma_per_target
        self.store_folds = store_folds
        self.solver = solver
        self.calibrate = calibrate
        self.forgetting = forgetting


class TikhonovClassifier(Classification):
    """Tikhonov (ridge) classification on the features you bring, with γ chosen by a rule.

    Labels are coded ±1; the weights minimise ‖HW − T‖² + γ‖W‖² with H = X, and γ is chosen from one decomposition of
    H, as in [1]_.

    Parameters
    ----------
    gamma : str, Rule, float or array-like of shape (n_targets,), default="kfold"
        A rule's name (`ocrep.rules.names()` lists them), a rule object such as `rules.OCReP(floor=0.0)`,
        a number ≥ 0, or one for each target. "none" is the plain pseudoinverse.
    fit_intercept : bool, default=True
        Whether the output has an intercept, which is not penalized.
    gamma_per_target : bool, default=False
        Whether the rule chooses a γ for each target, as if it were the only one; `gamma_` is then an array. Rules that
        do not read the targets, such as "ocrep", give all targets the same γ.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        The weights W of the features, in scikit-learn's shape.

    See Also
    --------
    TikhonovRegressor : The same for numbers.
    PinvClassifier : The same on the units of a random hidden layer.

    Examples
    --------
    >>> from ocrep import TikhonovClassifier
    >>> model = TikhonovClassifier().fit([[0.0], [1.0], [2.0], [3.0]], list("aabb"))
    >>> model.predict([[0.4], [2.6]])
    array(['a', 'b'], dtype='<U1')
    >>> model.with_gamma("gcv").predict([[0.4], [2.6]])  # another rule, without the data
    array(['a', 'b'], dtype='<U1')
    >>> for block in model.predict_blocks([[[0.4], [0.6]], [[2.6]]]):
    ...     print(block)
    ['a' 'a']
    ['b']
    >>> model.as_float32().coef_.dtype
    dtype('float32')
    """

    def __init__(
        self,
        gamma: Any = "kfold",
        *,
        fit_intercept: bool = True,
        gamma_per_target: bool = False,
        store_folds: bool | int = False,
        solver: str = "auto",
        calibrate: str | None = None,
        forgetting: float = 1.0,
        class_weight: dict[Any, float] | str | None = None,
    ) -> None:
        self.gamma = gamma
        self.fit_intercept = fit_intercept
        self.gamma_per_target = gamma_per_target
        self.store_folds = store_folds
        self.solver = solver
        self.calibrate = calibrate
        self.forgetting = forgetting
        self.class_weight = class_weight
