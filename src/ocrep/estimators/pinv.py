"""The public estimators: a random hidden layer, or the user's own features, under a rule for γ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ocrep._linalg.arrays import Array
from ocrep._linalg.folds import FoldPlan
from ocrep.estimators.features import HiddenUnits, OwnFeatures
from ocrep.estimators.targets import Classification, Regression
from ocrep.rules import Rule


class PinvRegressor(HiddenUnits, Regression):
    """A network with one random hidden layer, trained in closed form for regression.

    H = φ(XC + b) with random C and b; the output weights minimise ‖HW − T‖² + γ‖W‖², and γ is chosen by a
    rule from one decomposition of H. The default rule, OCReP, makes the regularized problem as well
    conditioned as it can be.

    Parameters
    ----------
    n_hidden : int or "auto", default=200
        Number of hidden units M; "auto" chooses it up to `max_hidden` by exact three-fold cross-validation.
    activation : str or callable, default="sigmoid"
        "sigmoid", "tanh", "relu", "sin", "gaussian", "hardlimit", "identity", or a function of an array.
    gamma : str, Rule or float, default="ocrep"
        A rule's name (`ocrep.rules.names()` lists them), a rule object such as `rules.OCReP(floor=0.0)`,
        or a number ≥ 0. "none" is the plain pseudoinverse.
    input_scaling : "minmax", (low, high) or None, default="minmax"
        Input scaling to [−1, 1] by the training range or a given range; see `RandomLayer`.
    weight_init : {"uniform", "normal", "orthogonal"}, default="uniform"
        Distribution of the input weights and biases.
    weight_scale : float or "inverse_sqrt", default=1.0
        Factor on input weights and biases.
    direct_link : bool, default=False
        Whether the output also sees the scaled inputs.
    fit_intercept : bool, default=False
        Whether the output has a constant that is not penalised. The paper has none; use True for targets whose mean
        is far from zero compared with their spread.
    max_hidden : int, default=300
        The largest size that `n_hidden="auto"` considers; above 300 it searches from coarse to fine.
    store_folds : bool or int, default=False
        Whether to keep one factor per fold (True: three folds), so that `with_gamma("kfold")` and
        `with_gamma("ocrep_cv")` work later.
    solver : {"auto", "gram", "qr"}, default="auto"
        How `fit` computes the triangular factor when no folds are asked for. "auto": by HᵀH where that proves γ right
        to 10⁻⁶, else by one more pass over the rows, else by Householder reflections, which small data take at once.
        "gram": by HᵀH or not at all. "qr": by reflections, as `partial_fit` and folds always do.
    random_state : int, RandomState instance or None, default=None
        Seed of the hidden layer.

    Attributes
    ----------
    gamma_ : float
        The chosen γ.
    choice_ : rules.Choice
        The rule, γ, the searched curve if any, and whether the optimum sits at an edge of the search.
    coef_ : ndarray of shape (n_features_out,) or (n_targets, n_features_out)
        Output weights W, in scikit-learn's shape; with a direct link the inputs come first.
    intercept_ : float or ndarray of shape (n_targets,)
        The constant, 0 without an intercept.
    n_hidden_ : int
        Number of hidden units.
    layer_ : RandomLayer
        The fitted hidden layer.
    factor_ : Factor
        The triangular factor of the rows; `partial_fit` goes on from it.
    folds_ : FoldFactors or None
        One factor per fold, if the rule reads them, `store_folds` asks for them, or `n_hidden="auto"` used them.
    spectrum_ : Spectrum
        Singular values and all that depends on γ.
    singular_values_ : ndarray
        Singular values of H (of the centred H with an intercept).
    rank_ : int
        Numerical rank p of H.
    condition_number_ : float
        μ(H) = σ₁/σ_p.
    regularized_condition_number_ : float
        μ(H^reg) under the chosen γ.

    Examples
    --------
    >>> from ocrep import PinvRegressor
    >>> from ocrep.datasets import load
    >>> X, y = load("housing", return_X_y=True)
    >>> model = PinvRegressor(n_hidden=100, random_state=0).fit(X, y)
    >>> bool(model.regularized_condition_number_ < model.condition_number_)
    True
    """

    def __init__(
        self,
        n_hidden: int | str = 200,
        *,
        activation: str | Callable[[Array], Array] = "sigmoid",
        gamma: str | float | Rule = "ocrep",
        input_scaling: Any = "minmax",
        weight_init: str = "uniform",
        weight_scale: float | str = 1.0,
        direct_link: bool = False,
        fit_intercept: bool = False,
        max_hidden: int = 300,
        store_folds: bool | int | FoldPlan = False,
        solver: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_hidden = n_hidden
        self.activation = activation
        self.gamma = gamma
        self.input_scaling = input_scaling
        self.weight_init = weight_init
        self.weight_scale = weight_scale
        self.direct_link = direct_link
        self.fit_intercept = fit_intercept
        self.max_hidden = max_hidden
        self.store_folds = store_folds
        self.solver = solver
        self.random_state = random_state


class PinvClassifier(HiddenUnits, Classification):
    """A network with one random hidden layer, trained in closed form for classification.

    Labels are coded ±1, one column per class (one in all for two classes); otherwise as `PinvRegressor`.

    Parameters
    ----------
    n_hidden, activation, gamma, input_scaling, weight_init, weight_scale, direct_link, fit_intercept, max_hidden, \
store_folds, solver, random_state
        As in `PinvRegressor`.
    class_weight : dict, "balanced" or None, default=None
        Factor on the weight of each class's rows; "balanced" makes all classes weigh the same.
    calibrate : "loo" or None, default=None
        "loo" fits a softmax (logistic for two classes) on the exact leave-one-out outputs, so that no data is held
        out and nothing refitted; `predict_proba` exists then, and `predict` and `decision_function` follow it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    coef_ : ndarray of shape (1, n_features_out) or (n_classes, n_features_out)
        Output weights.
    gamma_, choice_, intercept_, n_hidden_, layer_, factor_, spectrum_, singular_values_, rank_, \
condition_number_, regularized_condition_number_
        As in `PinvRegressor`.

    Examples
    --------
    >>> from ocrep import PinvClassifier
    >>> from ocrep.datasets import load
    >>> X, y = load("wine", return_X_y=True)
    >>> PinvClassifier(n_hidden=50, random_state=0).fit(X, y).score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        n_hidden: int | str = 200,
        *,
        activation: str | Callable[[Array], Array] = "sigmoid",
        gamma: str | float | Rule = "ocrep",
        input_scaling: Any = "minmax",
        weight_init: str = "uniform",
        weight_scale: float | str = 1.0,
        direct_link: bool = False,
        fit_intercept: bool = False,
        max_hidden: int = 300,
        store_folds: bool | int | FoldPlan = False,
        solver: str = "auto",
        random_state: Any = None,
        class_weight: dict[Any, float] | str | None = None,
        calibrate: str | None = None,
    ) -> None:
        self.n_hidden = n_hidden
        self.activation = activation
        self.gamma = gamma
        self.input_scaling = input_scaling
        self.weight_init = weight_init
        self.weight_scale = weight_scale
        self.direct_link = direct_link
        self.fit_intercept = fit_intercept
        self.max_hidden = max_hidden
        self.store_folds = store_folds
        self.solver = solver
        self.random_state = random_state
        self.class_weight = class_weight
        self.calibrate = calibrate


class TikhonovRegressor(OwnFeatures, Regression):
    """Tikhonov (ridge) regression on the features you bring, with γ chosen by a rule.

    Parameters
    ----------
    gamma : str, Rule or float, default="gcv"
        A rule's name (`ocrep.rules.names()` lists them), a rule object, or a number ≥ 0.
    fit_intercept : bool, default=True
        Whether to add a constant that is not penalised.
    store_folds : bool or int, default=False
        Whether to keep one factor per fold (True: three folds), so that `with_gamma("kfold")` and
        `with_gamma("ocrep_cv")` work later.
    solver : {"auto", "gram", "qr"}, default="auto"
        How `fit` computes the triangular factor when no folds are asked for. "auto": by HᵀH where that proves γ right
        to 10⁻⁶, else by one more pass over the rows, else by Householder reflections, which small data take at once.
        "gram": by HᵀH or not at all. "qr": by reflections, as `partial_fit` and folds always do.

    Attributes
    ----------
    gamma_, choice_, coef_, intercept_, factor_, spectrum_, singular_values_, rank_, condition_number_, \
regularized_condition_number_
        As in `PinvRegressor`, with X in the place of H.

    Examples
    --------
    >>> from ocrep import TikhonovRegressor
    >>> TikhonovRegressor(gamma=0.0).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).predict([[3.0]]).round(6)
    array([7.])
    """

    def __init__(
        self,
        gamma: str | float | Rule = "gcv",
        *,
        fit_intercept: bool = True,
        store_folds: bool | int | FoldPlan = False,
        solver: str = "auto",
    ) -> None:
        self.gamma = gamma
        self.fit_intercept = fit_intercept
        self.store_folds = store_folds
        self.solver = solver


class TikhonovClassifier(OwnFeatures, Classification):
    """Tikhonov (ridge) classification on the features you bring, with γ chosen by a rule.

    Parameters
    ----------
    gamma, fit_intercept, store_folds, solver
        As in `TikhonovRegressor`.
    class_weight : dict, "balanced" or None, default=None
        Factor on the weight of each class's rows; "balanced" makes all classes weigh the same.
    calibrate : "loo" or None, default=None
        "loo" fits a softmax (logistic for two classes) on the exact leave-one-out outputs, so that no data is held
        out and nothing refitted; `predict_proba` exists then, and `predict` and `decision_function` follow it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    gamma_, choice_, coef_, intercept_, factor_, spectrum_, singular_values_, rank_, condition_number_, \
regularized_condition_number_
        As in `PinvClassifier`, with X in the place of H.

    Examples
    --------
    >>> from ocrep import TikhonovClassifier
    >>> TikhonovClassifier().fit([[0.0], [1.0], [2.0], [3.0]], list("aabb")).predict([[0.4], [2.6]])
    array(['a', 'b'], dtype='<U1')
    """

    def __init__(
        self,
        gamma: str | float | Rule = "gcv",
        *,
        fit_intercept: bool = True,
        store_folds: bool | int | FoldPlan = False,
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
