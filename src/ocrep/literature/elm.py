"""ELM: a random hidden layer with a regularized output layer, its parameter C by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin, is_classifier

from ocrep._features.parameters import check_size
from ocrep._linalg.arrays import Array
from ocrep.estimators import PinvClassifier, PinvRegressor
from ocrep.estimators.base import fit_silently
from ocrep.literature.base import NetworkBased, NetworkClassifier
from ocrep.rules import Fixed, KFold, Rule, Unregularized
from ocrep.rules.search import check_grid


class _ELM(NetworkBased):
    """β = (I/C + HᵀH)⁻¹HᵀT, which is Tikhonov regularization with γ = 1/C.

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

    Attributes
    ----------
    C_ : float
        The chosen C, infinite without regularization.
    gamma_ : float
        1/C_.

    Notes
    -----
    The publication leaves open the number of folds (three here, as in the OCReP paper) and the input range ([−1, 1] by
    the training rows here). No precision floor is applied to γ.

    References
    ----------
    .. [1] Huang, Zhou, Ding, Zhang, "Extreme learning machine for regression and multiclass classification",
       IEEE Transactions on Systems, Man, and Cybernetics B 42 (2012).
    """

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
        grid = tuple(1.0 / c for c in values)
        return KFold(n_folds=self.n_folds, grid=grid, scoring="error" if is_classifier(self) else "squared", floor=0.0)

    def _fit_network(self, X: Any, y: Any, seed: int) -> PinvRegressor | PinvClassifier:
        n_hidden = check_size("n_hidden", self.n_hidden)
        network = self._network(n_hidden, seed, gamma=self._rule(), activation=self.activation)
        fit_silently(network, X, y)
        self.C_ = 1.0 / network.gamma_ if network.gamma_ else float("inf")
        return network


class ELMRegressor(MultiOutputMixin, RegressorMixin, _ELM):
    """Extreme learning machine for regression, its parameter C by cross-validation.

    It minimises ‖β‖² + C·‖Hβ − T‖² over the output weights β of a random hidden layer. C is searched over
    2⁻²⁴, …, 2²⁵ with 1000 sigmoid units, as in the publication [1]_.

    See Also
    --------
    ELMClassifier : The same method for classification.
    RELMRegressor : γ and the number of units by cross-validation.
    ocrep.PinvRegressor : The network with any rule for γ.

    Examples
    --------
    >>> from ocrep.datasets import load
    >>> from ocrep.literature import ELMRegressor
    >>> X, y = load("machine_cpu", return_X_y=True)
    >>> model = ELMRegressor(100, random_state=0).fit(X, y)
    >>> model.predict(X).shape
    (209,)
    """


class ELMClassifier(_ELM, NetworkClassifier):
    """Extreme learning machine for classification, its parameter C by cross-validated accuracy.

    It minimises ‖β‖² + C·‖Hβ − T‖² over the output weights β of a random hidden layer, with labels coded ±1. C is
    searched over 2⁻²⁴, …, 2²⁵ with 1000 sigmoid units, as in the publication [1]_.

    Parameters
    ----------
    C : "cv", float or sequence of float, default="cv"
        "cv" searches 2⁻²⁴, …, 2²⁵ for the fewest misclassified rows in cross-validation, the largest C of equals; a
        sequence is searched instead; a number is used as it is.

    See Also
    --------
    ELMRegressor : The same method for regression.
    RELMClassifier : γ and the number of units by cross-validation.
    ocrep.PinvClassifier : The network with any rule for γ.

    Examples
    --------
    >>> from ocrep.datasets import load
    >>> from ocrep.literature import ELMClassifier
    >>> X, y = load("iris", return_X_y=True)
    >>> model = ELMClassifier(100, random_state=0).fit(X, y)
    >>> model.predict(X).shape
    (150,)
    >>> model.decision_function(X).shape
    (150, 3)
    """
