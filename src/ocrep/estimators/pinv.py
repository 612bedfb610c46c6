"""`PinvRegressor` and `PinvClassifier`: one random hidden layer, output weights in closed form, γ by a rule."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

from ocrep._layers.random_layer import RandomLayer, check_size
from ocrep._linalg.arrays import Array
from ocrep.estimators.base import ClosedForm
from ocrep.estimators.classification import Classification
from ocrep.estimators.regression import Regression
from ocrep.rules import Rule

_LAYER = ("activation", "input_scaling", "weight_init", "weight_scale", "units_see", "direct_link", "random_state")
# So few random units cannot be expected to learn well, and scikit-learn's `poor_score` tag says so.
_FEW_UNITS = 16


class _Network(ClosedForm):
    """The parameters of a network that describe its hidden layer.

    Parameters
    ----------
    n_hidden : int or "auto", default=500
        Number of hidden units M; "auto" chooses it up to `max_hidden` by exact three-fold cross-validation.
    activation : str or callable, default="sigmoid"
        "sigmoid", "tanh", "relu", "sin", "gaussian", "laplace", "hardlimit", "identity", or a function of an array.
    input_scaling : "minmax", "squash", (low, high) or None, default="minmax"
        Scaling of each input to [−1, 1] by its range in training ("minmax") or by a given range. "squash" scales by the
        median and the quartiles and compresses what lies far outside, so that a few absurd values do no harm. None
        leaves inputs as they are.
    weight_init : {"uniform", "normal", "orthogonal", "pairs", "rows", "trees"}, default="uniform"
        Distribution of the input weights and biases: U(−1, 1), N(0, 1), or directions orthonormal in groups. "pairs"
        takes each unit from two training rows, and prefers pairs that are near in their inputs and far in their
        targets, as described in `RandomLayer`. They come from at most 10,000 rows; in `partial_fit`, and where rows can
        be read only once, from the first block. "rows" centres "gaussian" or "laplace" units on such rows, and "trees"
        makes units of the leaves of shallow trees that are grown on the targets of such rows.
    weight_scale : float or "inverse_sqrt", default=1.0
        Factor on input weights and biases; "inverse_sqrt" is 1/√M.
    units_see : int, default=None
        How many inputs each hidden unit sees, chosen at random; None means all.
    metric : {"diagonal", "full"} or None, default=None
        What the scaled inputs are multiplied by before the units see them, learned from the gradients of the network:
        a factor for each input ("diagonal"), so that inputs that do not matter fade, or a matrix ("full"), which also
        finds directions. It is learned on at most 10,000 rows; rules with folds learn it again without each fold.
    metric_rounds : int, default=2
        How often the layer is drawn again with the metric of the round before.
    direct_link : bool, default=True
        Whether the output also sees the scaled inputs.
    max_hidden : int, default=300
        The largest size that `n_hidden="auto"` considers; it searches from coarse to fine.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the hidden layer.
    gamma : str, Rule or float, default="ocrep_cv"
        A rule's name (`ocrep.rules.names()` lists them), a rule object such as `rules.OCReP(floor=0.0)`,
        or a number ≥ 0. "none" is the plain pseudoinverse.
    fit_intercept : bool, default=True
        Whether the output has an intercept, which is not penalized.

    Attributes
    ----------
    output_coef_ : ndarray of shape (n_features_out,) or (n_targets, n_features_out)
        Output weights W; with a direct link the weights of the inputs come first.
    n_hidden_ : int
        Number of hidden units.
    layer_ : RandomLayer
        The fitted hidden layer.
    metric_ : ndarray of shape (n_features_in_,) or (n_features_in_, n_features_in_)
        The learned metric, if one was asked for.
    """

    n_hidden: int | str
    max_hidden: int
    layer_: RandomLayer
    _weights_name = "output_coef_"

    def _layer(self) -> tuple[RandomLayer, bool]:
        auto = isinstance(self.n_hidden, str) and self.n_hidden == "auto"
        if isinstance(self.n_hidden, str) and not auto:
            raise ValueError(f"n_hidden={self.n_hidden!r} must be a whole number ≥ 1, or 'auto'.")
        size: Any = check_size("max_hidden", self.max_hidden) if auto else self.n_hidden
        return RandomLayer(size, **{name: getattr(self, name) for name in _LAYER}), auto

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        few = isinstance(self.n_hidden, Integral) and int(self.n_hidden) < _FEW_UNITS
        for task in (tags.classifier_tags, tags.regressor_tags):
            if task is not None:
                task.poor_score = few
        return tags


class PinvRegressor(_Network, Regression):
    """A network with one random hidden layer, trained in closed form for regression.

    H = φ(XC + b) with random C and b; the output weights minimise ‖HW − T‖² + γ‖W‖², and γ is chosen by a
    rule from one decomposition of H. The default rule takes the γ with the best conditioning among those whose error in
    exact cross-validation is within one standard error of the least. The network of the paper [1]_ is
    `PinvRegressor(200, gamma="ocrep", direct_link=False, fit_intercept=False)`: its rule makes the regularized problem
    as well conditioned as it can be, and its γ grows with the number of rows.

    See Also
    --------
    PinvRegressorCV : A stack of such networks with layers of different kinds.
    PinvClassifier : The same network for labels.
    TikhonovRegressor : The same output weights on features that you bring.

    Examples
    --------
    >>> from ocrep import PinvRegressor
    >>> from ocrep.datasets import load
    >>> X, y = load("housing", return_X_y=True)
    >>> model = PinvRegressor(n_hidden=100, random_state=0).fit(X, y)
    >>> bool(model.regularized_condition_number_ < model.condition_number_)
    True
    >>> model.with_gamma("ocrep").gamma_ > 0  # another rule, without the data
    True
    >>> later = PinvRegressor(n_hidden=100, input_scaling=(X.min(axis=0), X.max(axis=0)), random_state=0)
    >>> later.partial_fit(X[:400], y[:400]).partial_fit(X[400:], y[400:]).score(X, y) > 0.8
    True
    >>> sum(len(block) for block in model.predict_blocks([X[:400], X[400:]]))
    506
    >>> bool(abs(model.as_float32().predict(X) - model.predict(X)).max() < 1e-3)
    True
    """

    def __init__(
        self,
        n_hidden: int | str = 500,
        *,
        activation: str | Callable[[Array], Array] = "sigmoid",
        gamma: str | float | Rule = "ocrep_cv",
        input_scaling: Any = "minmax",
        weight_init: str = "uniform",
        weight_scale: float | str = 1.0,
        units_see: int | None = None,
        metric: str | None = None,
        metric_rounds: int = 2,
        direct_link: bool = True,
        fit_intercept: bool = True,
        max_hidden: int = 300,
        store_folds: bool | int = False,
        solver: str = "auto",
        calibrate: str | None = None,
        forgetting: float = 1.0,
        random_state: Any = None,
    ) -> None:
        self.n_hidden = n_hidden
        self.activation = activation
        self.gamma = gamma
        self.input_scaling = input_scaling
        self.weight_init = weight_init
        self.weight_scale = weight_scale
        self.units_see = units_see
        self.metric = metric
        self.metric_rounds = metric_rounds
        self.direct_link = direct_link
        self.fit_intercept = fit_intercept
        self.max_hidden = max_hidden
        self.store_folds = store_folds
        self.solver = solver
        self.calibrate = calibrate
        self.forgetting = forgetting
        self.random_state = random_state


class PinvClassifier(_Network, Classification):
    """A network with one random hidden layer, trained in closed form for classification.

    H = φ(XC + b) with random C and b; labels are coded ±1 in one column of T per class (in a single one for two
    classes), the output weights minimise ‖HW − T‖² + γ‖W‖², and γ is chosen by a rule from one decomposition of H.
    The default rule takes the γ with the best conditioning among those whose error in exact cross-validation is within
    one standard error of the least. The network of the paper [1]_ is
    `PinvClassifier(200, gamma="ocrep", direct_link=False, fit_intercept=False)`.

    See Also
    --------
    PinvClassifierCV : A stack of such networks with layers of different kinds.
    PinvRegressor : The same network for numbers.
    TikhonovClassifier : The same output weights on features that you bring.

    Examples
    --------
    >>> from ocrep import PinvClassifier
    >>> from ocrep.datasets import load
    >>> X, y = load("wine", return_X_y=True)
    >>> model = PinvClassifier(n_hidden=50, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    >>> model.decision_function(X).shape
    (178, 3)
    >>> model.with_gamma("gcv").score(X, y) > 0.95  # another rule, without the data
    True
    >>> sum(len(block) for block in model.predict_blocks([X[:90], X[90:]]))
    178
    >>> bool((model.as_float32().predict(X) == model.predict(X)).mean() > 0.99)
    True
    >>> PinvClassifier(50, input_scaling=(0.0, 1700.0)).partial_fit(X[:90], y[:90], classes=[0, 1, 2]).classes_
    array([0, 1, 2])
    """

    def __init__(
        self,
        n_hidden: int | str = 500,
        *,
        activation: str | Callable[[Array], Array] = "sigmoid",
        gamma: str | float | Rule = "ocrep_cv",
        input_scaling: Any = "minmax",
        weight_init: str = "uniform",
        weight_scale: float | str = 1.0,
        units_see: int | None = None,
        metric: str | None = None,
        metric_rounds: int = 2,
        direct_link: bool = True,
        fit_intercept: bool = True,
        max_hidden: int = 300,
        store_folds: bool | int = False,
        solver: str = "auto",
        calibrate: str | None = None,
        forgetting: float = 1.0,
        random_state: Any = None,
        class_weight: dict[Any, float] | str | None = None,
    ) -> None:
        self.n_hidden = n_hidden
        self.activation = activation
        self.gamma = gamma
        self.input_scaling = input_scaling
        self.weight_init = weight_init
        self.weight_scale = weight_scale
        self.units_see = units_see
        self.metric = metric
        self.metric_rounds = metric_rounds
        self.direct_link = direct_link
        self.fit_intercept = fit_intercept
        self.max_hidden = max_hidden
        self.store_folds = store_folds
        self.solver = solver
        self.calibrate = calibrate
        self.forgetting = forgetting
        self.random_state = random_state
        self.class_weight = class_weight
