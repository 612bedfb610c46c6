"""Pruned ELM: output weights along a regularization path, the model by BIC, and units without weight removed.

The elastic net minimises ‖t − Hβ‖²/(2n) + α·(ρ‖β‖₁ + (1 − ρ)‖β‖²/2), with ρ = 1 for the lasso; the ridge path is that
of Tikhonov regularization. Each depends on H and T only through inner products of their centred columns, which the
centred triangular factor has too: RᵀR = HᵀH, Rᵀ(QᵀT) = HᵀT. So a path is computed on R, at a cost that does
not grow with the rows; n in the formula is then the number of rows of R, and α is larger in proportion.

The least α that removes every unit is max|Hᵀt|/(ρ·n), from the condition that 0 is in the subgradient at β = 0; with
several targets (the group lasso), the length of each unit's row of HᵀT takes the place of the absolute value. The path
of the lasso is piecewise linear in α, so LARS gives its knots exactly, and weights between them are interpolated.

The model of the path has the least BIC = n·log(rss/n) + log(n)·dof. The degrees of freedom are the number of units with
weight for the lasso (Zou, Hastie, Tibshirani, 2007), and the trace of the smoother on these units with the l₂ part γ of
the penalty, Σ σ²/(σ² + γ), otherwise.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import enet_path, lars_path

from ocrep._errors import pick
from ocrep._layers.random_layer import RandomLayer
from ocrep._linalg.factor import Factor
from ocrep.literature.base import SelectedUnits
from ocrep.rules.criteria import log_or_nan

N_PENALTIES = 100
# The path ends at this share of the smallest penalty that removes every unit.
LEAST_PENALTY = 1e-5

# Penalties, weights (n_penalties, n_units, n_targets), and the degrees of freedom of each model.
Path: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]


class PrunedELMRegressor(SelectedUnits):
    """An ELM whose units are pruned by the lasso or the elastic net, the model chosen by BIC.

    Output weights are computed along 100 penalties. The model with the least BIC = n·log(rss/n) + log(n)·dof is chosen,
    and the units whose weight is zero are removed from the layer [1]_.

    Parameters
    ----------
    n_hidden : int, default=100
        Number of units before pruning.
    penalty : {"lasso", "elastic_net", "ridge"}, default="lasso"
        The penalty of the path. "ridge" removes only units that explain nothing.

    Attributes
    ----------
    n_hidden_ : int
        Number of units after pruning.
    kept_ : ndarray of shape (n_hidden_,)
        Their numbers among the drawn units.
    layer_ : RandomLayer
        The layer of the kept units.
    map_ : HiddenMap
        The map from inputs to the kept units.
    penalties_ : ndarray of shape (n_penalties,)
        The penalties of the path.
    bic_ : ndarray of shape (n_penalties,)
        The BIC of each model of the path.

    See Also
    --------
    TROPELMRegressor : Units ranked by LARS and selected by leave-one-out.
    ocrep.PinvRegressor : All units, with any rule for γ.

    Notes
    -----
    The publication leaves open, and this implementation chooses: the degrees of freedom (the number of units with
    weight for the lasso, else the trace of the smoother on those units); equal l₁ and l₂ parts in the elastic net;
    penalties evenly spaced in the logarithm down to 10⁻⁵ of the largest; only models with at most half as many degrees
    of freedom as rows, because BIC loses its meaning beyond; an intercept without penalty; units without
    standardisation. With several targets a unit is kept or removed for all of them (the group lasso). The lasso of one
    target is exact (LARS); the group lasso and the elastic net use coordinate descent.

    References
    ----------
    .. [1] Martínez-Martínez, Escandell-Montero, Soria-Olivas, Martín-Guerrero, Magdalena-Benedito, Gómez-Sanchis,
       "Regularized extreme learning machine for regression problems", Neurocomputing 74 (2011).

    Examples
    --------
    >>> from ocrep.datasets import load
    >>> from ocrep.literature import PrunedELMRegressor
    >>> X, y = load("machine_cpu", return_X_y=True)
    >>> model = PrunedELMRegressor(30, random_state=0).fit(X, y)
    >>> model.predict(X).shape
    (209,)
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
        layer = RandomLayer(
            self.n_hidden,
            activation=self.activation,
            input_scaling=self.input_scaling,
            random_state=self._seed(),
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
    """n·log(rss/n) + log(n)·dof, averaged over targets, for weights of shape (penalties, M, Q).

    With as many parameters as rows the residual goes to 0 and its logarithm to −∞, whatever the data. So BIC is set to
    infinity for models with more degrees of freedom than half of the rows.
    """
    n = factor.counts.n
    rss = factor.squared_error_by_target(weights, intercepts)
    fit = np.nanmean(log_or_nan(rss / n), axis=1) if rss.any() else 0.0  # every model fits a target of zeros
    return np.where(2 * dof <= n, n * fit + np.log(n) * dof, np.inf)


def _ridge_path(factor: Factor) -> Path:
    spectrum = factor.spectrum()
    # γ is compared with σ² and not with σ, so the same range of penalties is its square in γ.
    gammas = spectrum.largest**2 * np.logspace(np.log10(LEAST_PENALTY**2), 0, N_PENALTIES)
    return gammas, spectrum.weights(gammas), spectrum.dof(gammas)


def _sparse_path(factor: Factor, l1_ratio: float) -> Path:
    """The path of the elastic net on the triangular factor; penalties are per row of the factor."""
    M = factor.n_features
    centred = factor.centred()
    A = np.asfortranarray(centred.R)
    Z = centred.QtT
    most = np.linalg.norm(A.T @ Z, axis=1).max() / (l1_ratio * len(A)) if len(A) else 0.0  # removes every unit
    if most == 0.0:  # a target without signal: the model is its mean
        return np.ones(1), np.zeros((1, M, Z.shape[1])), np.zeros(1)
    penalties = most * np.logspace(0, np.log10(LEAST_PENALTY), N_PENALTIES)
    with warnings.catch_warnings():
        # Nearly equal units are dropped from the path of LARS with a warning each, and coordinate descent may stop
        # short at the smallest penalties.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        if l1_ratio == 1.0 and Z.shape[1] == 1:  # exact: the path is piecewise linear, and LARS gives its knots
            knots, _, steps = lars_path(A, Z[:, 0], method="lasso", max_iter=10 * M)
            weights = np.stack([np.interp(penalties, knots[::-1], unit[::-1]) for unit in steps])
        else:
            target = Z[:, 0] if Z.shape[1] == 1 else Z
            _, weights, _ = enet_path(A, target, l1_ratio=l1_ratio, alphas=penalties, max_iter=5000)
    weights = np.moveaxis(weights.reshape(Z.shape[1], M, -1), -1, 0).transpose(0, 2, 1)
    l2 = penalties * (1.0 - l1_ratio) * len(A)
    return penalties, weights, np.array([_dof(factor, W, gamma) for W, gamma in zip(weights, l2, strict=True)])


def _dof(factor: Factor, W: np.ndarray, gamma: float) -> float:
    """Degrees of freedom of the weights W, with γ the l₂ part of their penalty."""
    active = np.flatnonzero(W.any(axis=1))
    if not active.size or gamma == 0.0:
        return float(active.size)
    return float(factor.select(active).spectrum().dof(gamma))


PATHS: dict[str, Callable[[Factor], Path]] = {
    "lasso": partial(_sparse_path, l1_ratio=1.0),
    "elastic_net": partial(_sparse_path, l1_ratio=0.5),
    "ridge": _ridge_path,
}
