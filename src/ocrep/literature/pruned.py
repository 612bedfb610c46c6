"""Pruned ELM: a regularization path on H, the model by BIC, units without weight removed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import enet_path, lars_path

from ocrep._choices import pick
from ocrep._features.random_layer import RandomLayer
from ocrep._linalg.factor import Factor
from ocrep.literature.network import fixed_seed
from ocrep.literature.units import SelectedUnits
from ocrep.rules.criteria import mean_log

N_PENALTIES = 100
# The path ends at this share of the penalty that removes everything.
LEAST_PENALTY = 1e-5


class PrunedELMRegressor(SelectedUnits):
    """An ELM whose units are pruned by the lasso or the elastic net, the model chosen by BIC.

    Reference: Martínez-Martínez, Escandell-Montero, Soria-Olivas, Martín-Guerrero, Magdalena-Benedito,
    Gómez-Sanchis, Neurocomputing 74 (2011). Weights along about 100 penalties, BIC = n·log(rss/n) + log(n)·dof, and the
    units whose weight is zero are removed from the layer.

    The publication leaves open, and here is chosen: the degrees of freedom (units with weight for the lasso, the
    trace of the smoother on those units otherwise); equal l₁ and l₂ parts in the elastic net; penalties evenly spaced
    in the logarithm down to 10⁻⁵ of the largest; no model that spends more than half of the rows, where BIC means
    nothing; a constant that is not penalised; units not standardised. With several targets a unit is kept or removed
    for all of them (the group lasso). The lasso of one target is exact (LARS); the others come from coordinate descent.

    Parameters
    ----------
    n_hidden : int, default=100
        Number of units before pruning.
    penalty : {"lasso", "elastic_net", "ridge"}, default="lasso"
        The path. "ridge" removes no unit that explains anything.
    activation, scale, random_state
        As in `PinvRegressor`.

    Attributes
    ----------
    n_hidden_ : int
        Number of units left.
    kept_ : ndarray
        Which of the drawn units they are.
    layer_ : RandomLayer
        The layer of the units left, and no others.
    penalties_, bic_ : ndarray
        The path's penalties and the BIC of each; the model is at the least.
    coef_, intercept_
        Weights of the units left, in scikit-learn's shapes.
    """

    def __init__(
        self,
        n_hidden: int = 100,
        *,
        penalty: str = "lasso",
        activation: Any = "sigmoid",
        input_scaling: Any = "minmax",
        random_state: Any = None,
    ) -> None:
        self.n_hidden = n_hidden
        self.penalty = penalty
        self.activation = activation
        self.input_scaling = input_scaling
        self.random_state = random_state

    def _select(self, X: np.ndarray, T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        path = pick("penalty", self.penalty, PATHS)
        seed = fixed_seed(self.random_state)
        layer = RandomLayer(
            self.n_hidden, activation=self.activation, input_scaling=self.input_scaling, random_state=seed
        ).fit(X)
        factor = Factor.of(layer.map_(X), T, intercept=True)
        self.penalties_, weights, dof = path(factor)
        means = factor.means()
        intercepts = means[factor.n_features :] - means[: factor.n_features] @ weights
        self.bic_ = bic(factor, weights, intercepts, dof)
        best = int(np.argmin(self.bic_))
        self.kept_ = np.flatnonzero(weights[best].any(axis=1))
        self.n_hidden_ = len(self.kept_)
        self.layer_ = layer.take(self.kept_)
        self.map_ = self.layer_.map_
        return weights[best][self.kept_], intercepts[best]


def bic(factor: Factor, weights: np.ndarray, intercepts: np.ndarray, dof: np.ndarray) -> np.ndarray:
    """n·log(rss/n) + log(n)·dof per target, for weights (penalties × M × Q); infinite where it means nothing.

    With as many parameters as rows the residual goes to nothing and its logarithm to −∞, whatever the data: models that
    spend more than half of the rows are not admitted.
    """
    rss = factor.squared_error_by_target(weights, intercepts)
    fit = mean_log(rss / factor.n, "bic") if rss.any() else 0.0  # a target of zeros is met by every model
    return np.where(2 * dof <= factor.n, factor.n * fit + np.log(factor.n) * dof, np.inf)


def ridge_path(factor: Factor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Penalties, weights and degrees of freedom of ridge regression."""
    spectrum = factor.spectrum()
    gammas = spectrum.largest**2 * np.logspace(np.log10(LEAST_PENALTY**2), 0, N_PENALTIES)
    return gammas, spectrum.weights(gammas), spectrum.dof(gammas)


def _sparse_path(factor: Factor, l1_ratio: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Penalties, weights and degrees of freedom of the elastic net, on the small triangular factor.

    It has the same inner products as H and T, so the path is the same, for penalties in units of its own rows.
    """
    M, R = factor.n_features, factor.centred()
    A, Z = np.asfortranarray(R[:, :M]), R[:, M:]
    most = np.linalg.norm(A.T @ Z, axis=1).max() / (l1_ratio * len(A)) if len(A) else 0.0  # removes every unit
    if most == 0.0:
        return np.ones(1), np.zeros((1, M, Z.shape[1])), np.zeros(1)
    penalties = most * np.logspace(0, np.log10(LEAST_PENALTY), N_PENALTIES)
    with warnings.catch_warnings():
        # Nearly equal units are dropped from the path of LARS with a warning each, and coordinate descent may stop
        # short at the smallest penalties.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        if l1_ratio == 1.0 and Z.shape[1] == 1:
            weights = _exact_lasso(A, Z[:, 0], penalties)
        else:
            target = Z[:, 0] if Z.shape[1] == 1 else Z
            _, weights, _ = enet_path(A, target, l1_ratio=l1_ratio, alphas=penalties, max_iter=5000)
    weights = np.moveaxis(weights.reshape(Z.shape[1], M, -1), -1, 0).transpose(0, 2, 1)
    l2 = penalties * (1.0 - l1_ratio) * len(A)
    return penalties, weights, np.array([_dof(factor, W, gamma) for W, gamma in zip(weights, l2, strict=True)])


def _exact_lasso(A: np.ndarray, z: np.ndarray, penalties: np.ndarray) -> np.ndarray:
    """The lasso's weights, M × penalties: its path is piecewise linear, and LARS gives the knots exactly."""
    knots, _, weights = lars_path(A, z, method="lasso", max_iter=10 * A.shape[1])
    return np.stack([np.interp(penalties, knots[::-1], unit[::-1]) for unit in weights])


def _dof(factor: Factor, W: np.ndarray, gamma: float) -> float:
    active = np.flatnonzero(W.any(axis=1))
    if not active.size or gamma == 0.0:
        return float(active.size)
    return float(factor.select(active).spectrum().dof(gamma))


def lasso_path(factor: Factor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The path of the lasso."""
    return _sparse_path(factor, 1.0)


def elastic_net_path(factor: Factor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The path of the elastic net with equal parts of both penalties."""
    return _sparse_path(factor, 0.5)


PATHS: dict[str, Callable[[Factor], tuple[np.ndarray, np.ndarray, np.ndarray]]] = {
    "lasso": lasso_path,
    "elastic_net": elastic_net_path,
    "ridge": ridge_path,
}
