"""ELM and RELM: a random hidden layer with a regularized output layer, fitted by a network of this package.

ELM minimises ‖β‖² + C·‖Hβ − T‖². The gradient is zero where (I/C + HᵀH)β = HᵀT, which is Tikhonov regularization with
γ = 1/C, so a `PinvRegressor` or `PinvClassifier` without direct link and intercept is the method, and a grid of C is a
grid of γ for its k-fold rule. One SVD per fold serves all C.

RELM minimises ‖β‖² + γ'·‖D(Hβ − T)‖² with D² = diag(w): γ = 1/γ', and a weight w multiplies its row by √w. The number
of units is searched too. Units are nested, so R of the first m units is the leading block of R of all, for the rows and
for each fold: one pass over the rows serves every size m, and each size costs SVDs of m × m matrices only.

The robust weights of the second fit are those of Suykens' weighted least squares: with the robust standard deviation
s = IQR/(2·0.6745), which for normal residuals is their standard deviation,

    w(e) = 1 for |e/s| ≤ c₁,  (c₂ − |e/s|)/(c₂ − c₁) for c₁ < |e/s| ≤ c₂,  10⁻⁴ beyond,  c₁ = 2.5, c₂ = 3.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin, is_classifier
from sklearn.utils.validation import check_is_fitted

from ocrep._layers.random_layer import check_size
from ocrep._linalg.arrays import Array
from ocrep._training.train import at_size
from ocrep.estimators.base import available_if, fit_silently
from ocrep.estimators.pinv import PinvClassifier, PinvRegressor
from ocrep.literature.base import Method
from ocrep.rules import Fixed, KFold, Rule, Unregularized
from ocrep.rules.search import check_grid

_COPIED = (
    "n_features_in_",
    "feature_names_in_",
    "classes_",
    "gamma_",
    "output_coef_",
    "intercept_",
    "n_hidden_",
    "layer_",
)
"""The attributes of the network that the estimator has too."""


class NetworkBased(Method):
    """An estimator that fits a network and copies its public attributes.

    Attributes
    ----------
    gamma_ : float
        The chosen γ.
    intercept_ : float or ndarray of shape (n_targets,)
        0: the method has no intercept.
    layer_ : RandomLayer
        The hidden layer.
    network_ : PinvRegressor or PinvClassifier
        The trained network.
    """

    network_: Any

    def _train(self, X: Any, y: Any) -> None:
        self.network_ = self._fit_network(X, y, self._seed())
        for name in _COPIED:
            if hasattr(self.network_, name):  # some exist only for classifiers or named columns
                setattr(self, name, getattr(self.network_, name))

    def _predict(self, X: Any) -> np.ndarray:
        return self.network_.predict(X)

    def _network(self, n_hidden: int, seed: int, **options: Any) -> PinvRegressor | PinvClassifier:
        """A network that is not fitted yet, with this estimator's scaling of the inputs."""
        kind = PinvClassifier if is_classifier(self) else PinvRegressor
        return kind(
            n_hidden,
            input_scaling=self.input_scaling,
            random_state=seed,
            direct_link=False,
            fit_intercept=False,
            **options,
        )

    @abstractmethod
    def _fit_network(self, X: Any, y: Any, seed: int) -> PinvRegressor | PinvClassifier:
        """Train a network whose hidden layer is drawn with `seed`."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _with_probabilities(model: Any) -> None:
    """Raise if the network has none, as that of an older file."""
    if "network_" in model.__dict__:
        model.network_.predict_proba  # noqa: B018 - which says why


class NetworkClassifier(ClassifierMixin, NetworkBased):
    """A classifier with a `PinvClassifier` inside.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    output_coef_ : ndarray of shape (1, n_hidden_) or (n_classes, n_hidden_)
        Output weights.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        0: the method has no intercept.
    """

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the outputs of the network.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            One output for two classes, else one per class.
        """
        check_is_fitted(self)
        return self.network_.decision_function(X)

    @available_if(_with_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Estimate the probability of each class, as `PinvClassifier` does without `calibrate`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        check_is_fitted(self)
        return self.network_.predict_proba(X)


# ------------------------------------------------------------------------------
# ELM.


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
        # The method is the published one: advice to choose γ by another rule would not help its user.
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
    >>> model.predict_proba(X).shape
    (150, 3)
    """


# ------------------------------------------------------------------------------
# RELM.


# The quartiles of normal data are 1.349 standard deviations apart.
INTERQUARTILE = 2 * 0.6745
# The weight is 1 up to C1 robust standard deviations, and falls to the least weight at C2.
C1 = 2.5
C2 = 3.0
LEAST_WEIGHT = 1e-4


class _RELM(NetworkBased):
    """The search over sizes and γ, and the robust second fit.

    Parameters
    ----------
    n_hidden : int or "search", default="search"
        Number of hidden units; "search" tries `step`, 2·`step`, … up to `max_hidden`.
    weighted : bool, default=False
        Whether to fit again with robust weights from the residuals of the first fit.
    max_hidden : int, default=200
        The largest size that "search" tries.
    step : int, default=5
        The difference between the sizes that "search" tries.
    grid : str or sequence of float, default="relm"
        The γ to try, or a name in `ocrep.rules.GRIDS`; "relm" is 2⁻⁵⁰, …, 2⁵⁰.
    n_folds : int, default=3
        Number of folds of the cross-validation.

    Attributes
    ----------
    robust_weights_ : ndarray of shape (n_samples,)
        The weights of the second fit; only if `weighted`.

    Notes
    -----
    The publication raises the number of units in steps of 5 and takes "nearly optimal" ones by cross-validation. It
    leaves open the largest number (200 here), the number of folds (three here), and the residual of a row with several
    targets or classes (its worst output here). The weights enter as D², as in the weighted least squares of Suykens
    from which they come. No precision floor is applied to γ.

    References
    ----------
    .. [1] Deng, Zheng, Chen, "Regularized extreme learning machine", IEEE Symposium on Computational Intelligence and
       Data Mining (2009).
    """

    def __init__(
        self,
        n_hidden: int | str = "search",
        *,
        weighted: bool = False,
        max_hidden: int = 200,
        step: int = 5,
        grid: str | Sequence[float] = "relm",
        n_folds: int = 3,
        input_scaling: Any = "minmax",
        random_state: Any = None,
    ) -> None:
        self.n_hidden = n_hidden
        self.weighted = weighted
        self.max_hidden = max_hidden
        self.step = step
        self.grid = grid
        self.n_folds = n_folds
        self.input_scaling = input_scaling
        self.random_state = random_state

    def _fit_network(self, X: Any, y: Any, seed: int) -> PinvRegressor | PinvClassifier:
        if self.grid is None:  # KFold would choose its own grid, which is not that of the publication
            raise ValueError("grid=None: give 'relm', another named grid, or numbers > 0.")
        rule = KFold(n_folds=self.n_folds, grid=self.grid, floor=0.0)
        sizes = self._sizes()
        largest = self._network(sizes[-1], seed, gamma=Unregularized(), store_folds=rule.n_folds).fit(X, y)
        # All sizes are read from the factor of the largest network.
        assert largest.folds_ is not None
        tried = {size: at_size(largest.factor_, largest.folds_, rule, size) for size in sizes}
        best = min(sizes, key=lambda size: (tried[size][1], size))  # of equals, the smaller network
        network = self._network(best, seed, gamma=tried[best][0]).fit(X, y)
        if self.weighted:
            self.robust_weights_ = robust_weights(self._residuals(network, X, y))
            network.fit(X, y, sample_weight=self.robust_weights_)
        return network

    def _sizes(self) -> list[int]:
        if not isinstance(self.n_hidden, str):
            return [check_size("n_hidden", self.n_hidden)]
        if self.n_hidden != "search":
            raise ValueError(f"n_hidden={self.n_hidden!r} must be a whole number ≥ 1, or 'search'.")
        step = check_size("step", self.step)
        most = check_size("max_hidden", self.max_hidden)
        return [*range(step, most + 1, step)] or [most]

    def _residuals(self, network: Any, X: Any, y: Any) -> np.ndarray:
        """Targets or ±1 codes minus the outputs of a fitted network, of shape (n_samples, n_outputs)."""
        if is_classifier(self):
            outputs = network.decision_function(X)
            coded = network.classes_[1:] if outputs.ndim == 1 else network.classes_
            targets = np.where(np.asarray(y).reshape(-1, 1) == coded, 1.0, -1.0)
        else:
            outputs = network.predict(X)
            targets = np.asarray(y, dtype=np.float64)
        return targets.reshape(len(outputs), -1) - outputs.reshape(len(outputs), -1)


def robust_weights(residuals: np.ndarray) -> np.ndarray:
    """Weights of rows by their residuals: 1 up to 2.5 robust standard deviations, 10⁻⁴ from 3 on, linear between.

    The robust standard deviation of a target is its interquartile range over 2·0.6745; a row counts by its worst
    target.
    """
    scale = np.diff(np.quantile(residuals, [0.25, 0.75], axis=0), axis=0) / INTERQUARTILE
    # A scale of zero means that half of the residuals are equal: then no row is an outlier by this measure.
    worst = (np.abs(residuals) / np.where(scale > 0, scale, np.inf)).max(axis=1)
    return np.clip((C2 - worst) / (C2 - C1), LEAST_WEIGHT, 1.0)


class RELMRegressor(MultiOutputMixin, RegressorMixin, _RELM):
    """Regularized ELM for regression, γ and the number of units by cross-validation.

    It minimises ‖β‖² + γ'·‖D(Hβ − T)‖² over the output weights β of a random hidden layer [1]_. Our γ is 1/γ'. D² holds
    robust weights of the rows if `weighted`, else it is the identity.

    See Also
    --------
    RELMClassifier : The same method for classification.
    ELMRegressor : A fixed number of units, and C = 1/γ by cross-validation.
    ocrep.PinvRegressor : The network with any rule for γ.

    Examples
    --------
    >>> from ocrep.datasets import load
    >>> from ocrep.literature import RELMRegressor
    >>> X, y = load("machine_cpu", return_X_y=True)
    >>> model = RELMRegressor(random_state=0).fit(X, y)
    >>> model.predict(X).shape
    (209,)
    """


class RELMClassifier(_RELM, NetworkClassifier):
    """Regularized ELM for classification, γ and the number of units by cross-validation.

    It minimises ‖β‖² + γ'·‖D(Hβ − T)‖² over the output weights β of a random hidden layer, with labels coded ±1 [1]_.
    Our γ is 1/γ'. D² holds robust weights of the rows if `weighted`, else it is the identity. The cross-validation
    minimises the squared error of the codes.

    See Also
    --------
    RELMRegressor : The same method for regression.
    ELMClassifier : A fixed number of units, and C = 1/γ by cross-validated accuracy.
    ocrep.PinvClassifier : The network with any rule for γ.

    Examples
    --------
    >>> from ocrep.datasets import load
    >>> from ocrep.literature import RELMClassifier
    >>> X, y = load("iris", return_X_y=True)
    >>> model = RELMClassifier(random_state=0).fit(X, y)
    >>> model.predict(X).shape
    (150,)
    >>> model.decision_function(X).shape
    (150, 3)
    >>> model.predict_proba(X).shape
    (150, 3)
    """
