"""`TikhonovRegressor` and `TikhonovClassifier`: output weights in closed form on the features you bring."""

from __future__ import annotations

from typing import Any

from ocrep.estimators.classification import Classification
from ocrep.estimators.documentation import documented
from ocrep.estimators.regression import Regression
from ocrep.rules import Rule

_PARAMETERS = ("gamma", "fit_intercept", "store_folds", "solver")


@documented(
    _PARAMETERS,
    gamma='"gcv"',
    intercept=True,
    see_also="""
        TikhonovClassifier : The same for labels.
        PinvRegressor : The same on the units of a random hidden layer.""",
)
class TikhonovRegressor(Regression):
    """Tikhonov (ridge) regression on the features you bring, with γ chosen by a rule.

    The weights minimise ‖HW − T‖² + γ‖W‖² with H = X, and γ is chosen from one decomposition of H, as in [1]_.
    ---
    >>> from ocrep import TikhonovRegressor
    >>> TikhonovRegressor(gamma=0.0).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).predict([[3.0]]).round(6)
    array([7.])
    """

    def __init__(
        self,
        gamma: str | float | Rule = "gcv",
        *,
        fit_intercept: bool = True,
        store_folds: bool | int = False,
        solver: str = "auto",
    ) -> None:
        self.gamma = gamma
        self.fit_intercept = fit_intercept
        self.store_folds = store_folds
        self.solver = solver


@documented(
    (*_PARAMETERS, "class_weight", "calibrate"),
    gamma='"gcv"',
    intercept=True,
    see_also="""
        TikhonovRegressor : The same for numbers.
        PinvClassifier : The same on the units of a random hidden layer.""",
)
class TikhonovClassifier(Classification):
    """Tikhonov (ridge) classification on the features you bring, with γ chosen by a rule.

    Labels are coded ±1; the weights minimise ‖HW − T‖² + γ‖W‖² with H = X, and γ is chosen from one decomposition of
    H, as in [1]_.
    ---
    >>> from ocrep import TikhonovClassifier
    >>> TikhonovClassifier().fit([[0.0], [1.0], [2.0], [3.0]], list("aabb")).predict([[0.4], [2.6]])
    array(['a', 'b'], dtype='<U1')
    """

    def __init__(
        self,
        gamma: str | float | Rule = "gcv",
        *,
        fit_intercept: bool = True,
        store_folds: bool | int = False,
        solver: str = "auto",
        class_weight: dict[Any, float] | str | None = None,
        calibrate: str | None = None,
    ) -> None:
        self.gamma = gamma
        self.fit_intercept = fit_intercept
        self.store_folds = store_folds
        self.solver = solver
        self.class_weight = class_weight
        self.calibrate = calibrate
