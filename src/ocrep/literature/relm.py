"""RELM: γ and the number of hidden units by cross-validation, then, if asked, a second fit with robust weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin, is_classifier

from ocrep._features.parameters import check_size
from ocrep._training.hidden_size import at_size
from ocrep.estimators import PinvClassifier, PinvRegressor
from ocrep.literature.base import NetworkBased, NetworkClassifier
from ocrep.rules import KFold, Unregularized

# The quartiles of normal data are 1.349 standard deviations apart.
INTERQUARTILE = 2 * 0.6745
# The publication's weight function, after Suykens: 1 up to C1, then falling to the least weight at C2.
C1, C2, LEAST_WEIGHT = 2.5, 3.0, 1e-4


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
        if self.grid is None:
            raise ValueError("grid=None: give 'relm', another named grid, or numbers > 0.")
        rule = KFold(n_folds=self.n_folds, grid=self.grid, floor=0.0)
        sizes = self._sizes()
        largest = self._network(sizes[-1], seed, gamma=Unregularized(), store_folds=rule.n_folds).fit(X, y)
        # All sizes are read from the factor of the largest network.
        tried = [at_size(largest.factor_, largest.folds_, rule, size) for size in sizes]
        best = min(tried, key=lambda size: (size.cv_error, size.n_hidden))
        network = self._network(best.n_hidden, seed, gamma=best.gamma).fit(X, y)
        if self.weighted:
            self.robust_weights_ = robust_weights(self._residuals(network, X, y))
            network.fit(X, y, sample_weight=self.robust_weights_)
        return network

    def _sizes(self) -> list[int]:
        if not isinstance(self.n_hidden, str):
            return [check_size("n_hidden", self.n_hidden)]
        if self.n_hidden != "search":
            raise ValueError(f"n_hidden={self.n_hidden!r} must be a whole number ≥ 1, or 'search'.")
        step, most = check_size("step", self.step), check_size("max_hidden", self.max_hidden)
        return [*range(step, most + 1, step)] or [most]

    def _residuals(self, network: Any, X: Any, y: Any) -> np.ndarray:
        """Targets or ±1 codes minus the outputs of a fitted network, of shape (n_samples, n_outputs)."""
        if is_classifier(self):
            outputs, classes = network.decision_function(X), network.classes_
            coded = classes[1:] if outputs.ndim == 1 else classes
            targets = np.where(np.asarray(y).reshape(-1, 1) == coded, 1.0, -1.0)
        else:
            outputs, targets = network.predict(X), np.asarray(y, dtype=np.float64)
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
    """
