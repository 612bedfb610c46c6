"""RELM, regularized and robust (Deng, Zheng, Chen, IEEE Symposium on Computational Intelligence, 2009)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ocrep._features.random_layer import check_size
from ocrep._training.hidden_size import at_size
from ocrep.estimators.pinv import PinvClassifier, PinvRegressor
from ocrep.literature.network import NetworkBased, NetworkClassifier, NetworkRegressor
from ocrep.rules import KFold, Unregularized
from ocrep.rules.search import check_grid

# Normal data have 1.349 standard deviations between their quartiles.
QUARTILES_APART = 2 * 0.6745
# The publication's weight function, after Suykens: 1 up to c₁, falling to almost nothing at c₂.
C1, C2, ALMOST_NOTHING = 2.5, 3.0, 1e-4


class _RELM(NetworkBased):
    """γ and the number of hidden units by cross-validation, then, if asked, once more with robust weights."""

    n_hidden: int | str
    weighted: bool
    max_hidden: int
    step: int
    grid: str | Sequence[float]
    n_folds: int
    input_scaling: Any
    _network_class: ClassVar[type[PinvRegressor] | type[PinvClassifier]]

    def _fit_network(self, X: Any, y: Any, seed: int) -> PinvRegressor | PinvClassifier:
        n_hidden, gamma = self._search(X, y, seed)
        network = self._network(n_hidden, gamma, seed).fit(X, y)
        if not self.weighted:
            return network
        self.robust_weights_ = robust_weights(_residuals(network, X, y))
        return self._network(n_hidden, gamma, seed).fit(X, y, sample_weight=self.robust_weights_)

    def _search(self, X: Any, y: Any, seed: int) -> tuple[int, float]:
        """The size and the γ with the least cross-validation error, all sizes from one factor."""
        if self.grid is None:
            raise ValueError("grid=None: give 'relm', another named grid, or numbers > 0.")
        rule = KFold(n_folds=self.n_folds, grid=check_grid(self.grid, "grid"), floor=0.0)
        if isinstance(self.n_hidden, str):
            if self.n_hidden != "search":
                raise ValueError(f"n_hidden={self.n_hidden!r} must be a whole number ≥ 1, or 'search'.")
            step = check_size("step", self.step)
            sizes = [*range(step, check_size("max_hidden", self.max_hidden) + 1, step)] or [self.max_hidden]
        else:
            sizes = [check_size("n_hidden", self.n_hidden)]
        whole = self._network(sizes[-1], Unregularized(), seed, store_folds=rule.folds)
        whole.fit(X, y)
        tried = [at_size(whole.factor_, whole.folds_, rule, size) for size in sizes]
        best = min(tried, key=lambda size: (size.cv_error, size.n_hidden))
        return best.n_hidden, best.gamma

    def _network(self, n_hidden: int, gamma: Any, seed: int, **options: Any) -> PinvRegressor | PinvClassifier:
        return self._network_class(
            n_hidden, gamma=gamma, input_scaling=self.input_scaling, random_state=seed, **options
        )


def robust_weights(residuals: np.ndarray) -> np.ndarray:
    """1 for ordinary residuals, falling to 10⁻⁴ for those beyond three robust standard deviations.

    The scale of each target is its interquartile range over 2·0.6745; a row counts by its worst target.
    """
    quartiles = np.quantile(residuals, [0.25, 0.75], axis=0)
    scale = (quartiles[1] - quartiles[0]) / QUARTILES_APART
    # A scale of zero means that half of the residuals are the same: then nothing is an outlier by this measure.
    relative = np.abs(residuals) / np.where(scale > 0, scale, np.inf)
    worst = relative.max(axis=1)
    return np.clip((C2 - worst) / (C2 - C1), ALMOST_NOTHING, 1.0)


def _residuals(network: PinvRegressor | PinvClassifier, X: Any, y: Any) -> np.ndarray:
    weights = np.atleast_2d(network.coef_).T
    return np.concatenate([T - H @ weights - network.intercept_ for H, T, _ in network.rows(X, y).blocks()])


class RELMRegressor(_RELM, NetworkRegressor):
    """Regularized ELM for regression, γ over 2⁻⁵⁰, …, 2⁵⁰ and the number of units by cross-validation.

    The publication minimises ‖β‖² + γ·‖D(Hβ − T)‖²; its γ is the inverse of ours, and here D² holds the robust weights,
    as in the weighted least squares of Suykens from which they come. It raises the number of units in
    steps of 5 and takes "nearly optimal" ones by cross-validation. It leaves open the largest number (200 here), the
    folds (three here), and what a residual is for several targets (here a row counts by its worst target). No precision
    floor is applied: this is the method as published.

    Parameters
    ----------
    n_hidden : int or "search", default="search"
        Number of hidden units; "search" tries `step`, 2·`step`, … up to `max_hidden`.
    weighted : bool, default=False
        Whether to fit again with robust weights from the residuals of the first fit.
    max_hidden, step : int, default=200 and 5
        The sizes that "search" tries.
    grid : str or sequence of float, default="relm"
        The γ to try; "relm" is 2⁻⁵⁰, …, 2⁵⁰.
    n_folds : int, default=3
        Folds of the cross-validation.
    scale, random_state
        As in `PinvRegressor`.

    Attributes
    ----------
    network_ : PinvRegressor
        The trained network; `gamma_`, `coef_`, `intercept_`, `layer_`, `n_hidden_` are its own.
    robust_weights_ : ndarray of shape (n_samples,)
        The weights of the second fit, if `weighted`.
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


class RELMClassifier(_RELM, NetworkClassifier):
    """Regularized ELM for classification; labels are coded ±1 and the squared error is cross-validated.

    Parameters
    ----------
    n_hidden, weighted, max_hidden, step, grid, n_folds, scale, random_state
        As in `RELMRegressor`.

    Attributes
    ----------
    network_ : PinvClassifier
        The trained network.
    robust_weights_ : ndarray of shape (n_samples,)
        The weights of the second fit, if `weighted`.
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
