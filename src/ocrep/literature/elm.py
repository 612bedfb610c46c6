"""ELM with a regularized output layer (Huang, Zhou, Ding, Zhang, IEEE Trans. SMC-B 42, 2012)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from ocrep._features.random_layer import check_size
from ocrep._linalg.arrays import Array
from ocrep.estimators.pinv import PinvClassifier, PinvRegressor
from ocrep.literature.network import NetworkBased, NetworkClassifier, NetworkRegressor
from ocrep.rules import Fixed, KFold, Rule, Unregularized
from ocrep.rules.search import check_grid


class _ELM(NetworkBased):
    """β = (I/C + HᵀH)⁻¹HᵀT, which is Tikhonov's with γ = 1/C."""

    n_hidden: int
    C: str | float | Sequence[float]
    regularized: bool
    n_folds: int
    activation: str | Callable[[Array], Array]
    input_scaling: Any
    _network_class: ClassVar[type[PinvRegressor] | type[PinvClassifier]]
    _scoring: ClassVar[Any] = "squared"

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
    """Extreme learning machine for regression, with its parameter C by cross-validation.

    The publication minimises ‖β‖² + C·‖Hβ − T‖² and searches C over 2⁻²⁴, …, 2²⁵ with 1000 sigmoid units. It leaves
    open the number of folds (three here, as in the OCReP paper) and the input range (here [−1, 1] by the training
    rows). No precision floor is applied: this is the method as published.

    Parameters
    ----------
    n_hidden : int, default=1000
        Number of hidden units.
    C : "cv", float or sequence of float, default="cv"
        "cv" searches 2⁻²⁴, …, 2²⁵; a number is taken as it is; a sequence is searched.
    regularized : bool, default=True
        False is the plain ELM, the pseudoinverse ("Sigm-unreg" in the OCReP paper).
    n_folds : int, default=3
        Folds of the cross-validation.
    activation, scale, random_state
        As in `PinvRegressor`.

    Attributes
    ----------
    C_ : float
        The chosen C, infinite without regularization.
    network_ : PinvRegressor
        The trained network; `gamma_` is 1/C_, and `coef_`, `intercept_`, `layer_`, `n_hidden_` are its own.
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


class ELMClassifier(_ELM, NetworkClassifier):
    """Extreme learning machine for classification, with its parameter C by cross-validated accuracy.

    As `ELMRegressor`; C has the fewest misclassified rows in cross-validation, the smallest γ of equals.

    Parameters
    ----------
    n_hidden, C, regularized, n_folds, activation, scale, random_state
        As in `ELMRegressor`.

    Attributes
    ----------
    C_ : float
        The chosen C, infinite without regularization.
    network_ : PinvClassifier
        The trained network.
    """

    _scoring: ClassVar[Any] = "error"

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
