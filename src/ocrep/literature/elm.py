"""ELM: a random hidden layer with a regularized output layer, its parameter C by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from ocrep._features.random_layer import check_size
from ocrep._linalg.arrays import Array
from ocrep.estimators import PinvClassifier, PinvRegressor
from ocrep.literature.network import NetworkBased, NetworkClassifier, NetworkRegressor
from ocrep.rules import Fixed, KFold, Rule, Unregularized
from ocrep.rules.search import check_grid


class _ELM(NetworkBased):
    """β = (I/C + HᵀH)⁻¹HᵀT, which is Tikhonov regularization with γ = 1/C."""

    _scoring: ClassVar[Literal["squared", "error"]]

    def __init__(
        self,
        n_hidden: int = 1000,
        *,
        C: str | float | Sequence[float] = "cv",
        regularized: bool = True,
        n_folds: int = 3,
        activation: str | Callable[[Array], Array] = "sigmoid",
        input_scaling: Any = "minmax",
        random_state: Any = None,
    ) -> None:
        self.n_hidden = n_hidden
        self.C = C
        self.regularized = regularized
        self.n_folds = n_folds
        self.activation = activation
        self.input_scaling = input_scaling
        self.random_state = random_state

    def _rule(self) -> Rule:
        if not self.regularized:
            return Unregularized()
        if isinstance(self.C, str) and self.C != "cv":
            raise ValueError(f"C={self.C!r} must be 'cv', a number > 0, or a grid of numbers > 0.")
        values = check_grid("elm" if isinstance(self.C, str) else np.ravel(self.C).tolist(), "C")
        assert values is not None
        if len(values) == 1:
            return Fixed(1.0 / values[0])
        return KFold(n_folds=self.n_folds, grid=tuple(1.0 / c for c in values), scoring=self._scoring, floor=0.0)

    def _fit_network(self, X: Any, y: Any, seed: int) -> PinvRegressor | PinvClassifier:
        network = self._network_class(
            check_size("n_hidden", self.n_hidden),
            gamma=self._rule(),
            activation=self.activation,
            input_scaling=self.input_scaling,
            random_state=seed,
        )
        network.fit(X, y)
        self.C_ = 1.0 / network.gamma_ if network.gamma_ else float("inf")
        return network


class ELMRegressor(_ELM, NetworkRegressor):
    """Extreme learning machine for regression, its parameter C by cross-validation.

    It minimises ‖β‖² + C·‖Hβ − T‖² over the output weights β of a random hidden layer. C is searched over
    2⁻²⁴, …, 2²⁵ with 1000 sigmoid units, as in the publication [1]_.

    Parameters
    ----------
    n_hidden : int, default=1000
        Number of hidden units.
    C : "cv", float or sequence of float, default="cv"
        "cv" searches 2⁻²⁴, …, 2²⁵ by cross-validation; a sequence is searched instead; a number is used as it is.
    regularized : bool, default=True
        False is the plain ELM, the pseudoinverse ("Sigm-unreg" in the OCReP paper).
    n_folds : int, default=3
        Number of folds of the cross-validation.
    activation : str or callable, default="sigmoid"
        "sigmoid", "tanh", "relu", "sin", "gaussian", "hardlimit", "identity", or a function of an array.
    input_scaling : "minmax", (low, high) or None, default="minmax"
        Scaling of the inputs to [−1, 1] by the training range or a given range; None leaves them as they are.
    random_state : int, RandomState instance or None, default=None
        Seed of the hidden layer.

    Attributes
    ----------
    C_ : float
        The chosen C, infinite without regularization.
    gamma_ : float
        1/C_.
    coef_ : ndarray of shape (n_hidden,) or (n_targets, n_hidden)
        Output weights β.
    intercept_ : float or ndarray of shape (n_targets,)
        0: the method has no intercept.
    n_hidden_ : int
        Number of hidden units.
    layer_ : RandomLayer
        The hidden layer.
    network_ : PinvRegressor
        The trained network.
    n_features_in_ : int
        Number of inputs.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the inputs, if X has names that are all strings.

    See Also
    --------
    ELMClassifier : The same method for classification.
    RELMRegressor : γ and the number of units by cross-validation.
    ocrep.PinvRegressor : The network with any rule for γ.

    Notes
    -----
    The publication leaves open the number of folds (three here, as in the OCReP paper) and the input range ([−1, 1] by
    the training rows here). No precision floor is applied to γ.

    References
    ----------
    .. [1] Huang, Zhou, Ding, Zhang, "Extreme learning machine for regression and multiclass classification",
       IEEE Transactions on Systems, Man, and Cybernetics B 42 (2012).
    """

    _scoring = "squared"


class ELMClassifier(_ELM, NetworkClassifier):
    """Extreme learning machine for classification, its parameter C by cross-validated accuracy.

    It minimises ‖β‖² + C·‖Hβ − T‖² over the output weights β of a random hidden layer, with labels coded ±1. C is
    searched over 2⁻²⁴, …, 2²⁵ with 1000 sigmoid units, as in the publication [1]_.

    Parameters
    ----------
    n_hidden : int, default=1000
        Number of hidden units.
    C : "cv", float or sequence of float, default="cv"
        "cv" searches 2⁻²⁴, …, 2²⁵ for the fewest misclassified rows in cross-validation, the largest C of equals; a
        sequence is searched instead; a number is used as it is.
    regularized : bool, default=True
        False is the plain ELM, the pseudoinverse ("Sigm-unreg" in the OCReP paper).
    n_folds : int, default=3
        Number of folds of the cross-validation.
    activation : str or callable, default="sigmoid"
        "sigmoid", "tanh", "relu", "sin", "gaussian", "hardlimit", "identity", or a function of an array.
    input_scaling : "minmax", (low, high) or None, default="minmax"
        Scaling of the inputs to [−1, 1] by the training range or a given range; None leaves them as they are.
    random_state : int, RandomState instance or None, default=None
        Seed of the hidden layer.

    Attributes
    ----------
    C_ : float
        The chosen C, infinite without regularization.
    gamma_ : float
        1/C_.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    coef_ : ndarray of shape (1, n_hidden) or (n_classes, n_hidden)
        Output weights β.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        0: the method has no intercept.
    n_hidden_ : int
        Number of hidden units.
    layer_ : RandomLayer
        The hidden layer.
    network_ : PinvClassifier
        The trained network.
    n_features_in_ : int
        Number of inputs.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the inputs, if X has names that are all strings.

    See Also
    --------
    ELMRegressor : The same method for regression.
    RELMClassifier : γ and the number of units by cross-validation.
    ocrep.PinvClassifier : The network with any rule for γ.

    Notes
    -----
    The publication leaves open the number of folds (three here, as in the OCReP paper) and the input range ([−1, 1] by
    the training rows here). No precision floor is applied to γ.

    References
    ----------
    .. [1] Huang, Zhou, Ding, Zhang, "Extreme learning machine for regression and multiclass classification",
       IEEE Transactions on Systems, Man, and Cybernetics B 42 (2012).
    """

    _scoring = "error"
