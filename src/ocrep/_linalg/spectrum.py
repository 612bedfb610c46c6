"""`Spectrum`: the SVD of H seen through its targets; every quantity that depends on γ is read here."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ocrep._documentation import function_of_gamma
from ocrep._linalg.arrays import Array, array_namespace, device_of, matmul_each, to_host
from ocrep._linalg.counts import Counts


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """The output weights of one γ, and how well conditioned they are."""

    weights: Array
    """Wᵀ, targets × features."""
    intercept: Array
    singular_values: Array
    rank: int
    condition: float
    """μ(H)."""
    regularized_condition: Any
    """μ(H^reg): a number, or an array of one for each target if γ is."""


@runtime_checkable
class RightVectors(Protocol):
    """V of H = UΣVᵀ, which rows fewer than features never form unless asked."""

    @property
    def n_features(self) -> int:
        """Rows of V."""

    def transposed(self) -> Array:
        """Vᵀ, p × M."""

    def squared_columns(self, sigma: Array) -> Array:
        """The squared length of each column of H = UΣVᵀ."""

    def times(self, x: Array) -> Array:
        """V·x for x of shape (…, p, k)."""

    def coordinates(self, H: Array) -> Array:
        """H·V."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredVectors:
    """V as an array."""

    Vt: Array

    @property
    def n_features(self) -> int:
        return int(self.Vt.shape[1])

    def transposed(self) -> Array:
        return self.Vt

    def squared_columns(self, sigma: Array) -> Array:
        return array_namespace(sigma).sum((sigma[:, None] * self.Vt) ** 2, axis=0)

    def times(self, x: Array) -> Array:
        V = array_namespace(x).matrix_transpose(self.Vt)
        return V @ x if x.ndim == 2 else matmul_each(V, x)

    def coordinates(self, H: Array) -> Array:
        xp = array_namespace(H)
        return xp.matmul(H, xp.matrix_transpose(self.Vt))


@dataclass(frozen=True, slots=True, eq=False)
class LeftVectors:
    """U of H = UΣVᵀ with what leave-one-out needs to know of the same rows."""

    U: Array
    """n × p, one row for each training row of positive weight."""
    T: Array
    """The targets of the rows."""
    root_weight: Array
    """√w of the rows."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Spectrum:
    """H = U Σ Vᵀ restricted to its numerical rank p, and the targets T in the basis U (paper, eq. 12).

    With an intercept, H and T stand for the centred H and T. All methods take γ as a number or as a
    one-dimensional array; an array gives one result per γ along the first axis.

    Parameters
    ----------
    sigma : array of shape (p,)
        σ₁ ≥ … ≥ σ_p > 0, the singular values above the rank tolerance.
    right : RightVectors
        The right singular vectors V.
    UtT : array of shape (p, Q)
        UᵀT.
    residual : array of shape (Q,)
        ‖T − UUᵀT‖² for each target: what no weights can explain.
    n : int
        Observations: the rows of positive weight, or the sum of whole weights.
    n_rows : int
        Rows of positive weight.
    weight_sum : float
        The sum of the weights.
    discarded : array
        The singular values at or below the rank tolerance, which only pictures show.
    mean_H, mean_T : array
        Means of the features and of the targets; zeros without an intercept.
    intercept_fitted : bool
        Whether an intercept was fitted.
    left : LeftVectors or None
        The left singular vectors, where they came without another look at the rows.

    See Also
    --------
    Factor : Where a spectrum comes from.
    ocrep.rules.Rule : What chooses γ from it.

    Examples
    --------
    >>> import numpy as np
    >>> from ocrep import Factor
    >>> spectrum = Factor.of(np.diag([4.0, 1.0]), np.array([4.0, 1.0])).spectrum()
    >>> gamma = spectrum.largest * spectrum.smallest  # OCReP
    >>> float(spectrum.condition()), float(spectrum.condition(gamma))
    (4.0, 1.0)
    >>> spectrum.gain(gamma), spectrum.filter(gamma), spectrum.shrinkage(gamma)
    (array([0.2, 0.2]), array([0.8, 0.2]), array([0.2, 0.8]))
    >>> float(spectrum.dof(gamma)), float(spectrum.residual_dof(gamma))
    (1.0, 1.0)
    >>> spectrum.weights(gamma)[:, 0], spectrum.intercept(gamma)
    (array([0.8, 0.2]), array([0.]))
    >>> f"{spectrum.norm(gamma):.2f}, {spectrum.rss(gamma):.2f}, {spectrum.rss_by_target(gamma)[0]:.2f}"
    '0.82, 1.28, 1.28'
    """

    sigma: Array
    right: RightVectors
    UtT: Array
    residual: Array
    n: int
    n_rows: int
    weight_sum: float
    discarded: Array
    mean_H: Array
    mean_T: Array
    intercept_fitted: bool = False
    left: LeftVectors | None = None

    def __repr__(self) -> str:
        return (
            f"Spectrum(rank={self.rank}, n={self.n}, n_targets={self.UtT.shape[1]}, "
            f"largest={self.largest:.3g}, smallest={self.smallest:.3g}, intercept_fitted={self.intercept_fitted})"
        )

    @property
    def rank(self) -> int:
        """The numerical rank p."""
        return self.sigma.shape[0]

    @property
    def Vt(self) -> Array:  # noqa: N802 - the paper's symbol
        """Right singular vectors, p × M."""
        return self.right.transposed()

    @property
    def largest(self) -> float:
        """The largest singular value σ₁, or 0 when H is zero."""
        return float(self.sigma[0]) if self.rank else 0.0

    @property
    def smallest(self) -> float:
        """The smallest singular value σ_p, or 0 when H is zero."""
        return float(self.sigma[-1]) if self.rank else 0.0

    @property
    def singular_values(self) -> Array:
        """All singular values, those below the rank tolerance included."""
        return array_namespace(self.sigma).concat([self.sigma, self.discarded])

    @function_of_gamma("array of shape (…, p)", "One number for each direction.")
    def gain(self, gamma: float | Array) -> Array:
        """Gain D = σ/(σ² + γ), the singular values of H^reg (eq. 21), written so that σ² cannot underflow."""
        return 1.0 / (self.sigma + _per_direction(gamma, self.sigma) / self.sigma)

    @function_of_gamma("array of shape (…, p)", "One number for each direction.")
    def filter(self, gamma: float | Array) -> Array:
        """Part of each direction that the fit keeps, σ²/(σ² + γ)."""
        return self.sigma * self.gain(gamma)

    @function_of_gamma("array of shape (…, p)", "One number for each direction.")
    def shrinkage(self, gamma: float | Array) -> Array:
        """Part of each direction left in the residual, γ/(σ² + γ); 1 − filter would cancel."""
        return _per_direction(gamma, self.sigma) / self.sigma * self.gain(gamma)

    @function_of_gamma("array of shape (…)", "One number for each γ.")
    def dof(self, gamma: float | Array) -> Array:
        """Effective degrees of freedom: tr H(HᵀH + γI)⁻¹Hᵀ, the intercept not counted."""
        return array_namespace(self.sigma).sum(self.filter(gamma), axis=-1)

    @function_of_gamma("array of shape (…)", "One number for each γ.")
    def residual_dof(self, gamma: float | Array) -> Array:
        """Residual degrees of freedom, n − dof − intercept = tr(I − A(γ)), summed so that it keeps its digits."""
        free = self.n - self.rank - int(self.intercept_fitted)
        return free + array_namespace(self.sigma).sum(self.shrinkage(gamma), axis=-1)

    @function_of_gamma("array of shape (…, Q)", "One number for each target.")
    def rss_by_target(self, gamma: float | Array) -> Array:
        """Residual sum of squares ‖HW − T‖² for each target."""
        shrinkage = self.shrinkage(gamma)
        return array_namespace(shrinkage).matmul(shrinkage * shrinkage, self.UtT * self.UtT) + self.residual

    @function_of_gamma("array of shape (…)", "One number for each γ.")
    def rss(self, gamma: float | Array) -> Array:
        """Residual sum of squares ‖HW − T‖² over all targets."""
        xp = array_namespace(self.sigma)
        shrinkage = self.shrinkage(gamma)
        explained = xp.sum(self.UtT * self.UtT, axis=1)  # over targets first: γ × p × Q would be large
        return xp.matmul(shrinkage * shrinkage, explained) + xp.sum(self.residual)

    @function_of_gamma("array of shape (…)", "One number for each γ.")
    def norm(self, gamma: float | Array) -> Array:
        """Length of the weights, ‖W‖ (Frobenius)."""
        xp = array_namespace(self.sigma)
        return xp.sqrt(xp.matmul(self.gain(gamma) ** 2, xp.sum(self.UtT * self.UtT, axis=1)))

    @function_of_gamma("array of shape (…)", "One number for each γ.")
    def condition(self, gamma: float | Array = 0.0) -> Array:
        """Condition number μ(H^reg) = D_max/D_min (eq. 26); γ = 0 gives μ(H) = σ₁/σ_p; NaN when H is zero."""
        xp, gamma = array_namespace(self.sigma), _per_direction(gamma, self.sigma)
        if not self.rank:
            return gamma[..., 0] * math.nan
        # D rises up to σ = √γ and falls beyond: only the σ next to √γ and the two at the ends matter.
        rising = xp.flip(self.sigma)
        after = xp.reshape(xp.searchsorted(rising, xp.reshape(xp.sqrt(gamma), (-1,))), gamma.shape)
        last = self.rank - 1
        index = xp.concat([xp.clip(after - 1, 0, last), xp.clip(after, 0, last), 0 * after, 0 * after + last], axis=-1)
        sigma = xp.reshape(xp.take(rising, xp.reshape(index, (-1,))), index.shape)
        gains = 1.0 / (sigma + gamma / sigma)
        return xp.max(gains, axis=-1) / xp.min(gains, axis=-1)

    @function_of_gamma("array of shape (…, M, Q)", "The weights.")
    def weights(self, gamma: float | Array) -> Array:
        """Output weights Ŵ = V D UᵀT (eq. 20), M × Q."""
        return self.right.times(self.gain(gamma)[..., None] * self.UtT)

    @function_of_gamma("array of shape (…, Q)", "One number for each target.")
    def intercept(self, gamma: float | Array) -> Array:
        """The unpenalised constant that belongs to `weights(gamma)`; zeros without an intercept."""
        return self.mean_T - array_namespace(self.sigma).matmul(self.mean_H, self.weights(gamma))

    def solution(self, gamma: float | np.ndarray) -> Solution:
        """What a model of this γ consists of; an array holds one γ for each target."""
        xp = array_namespace(self.sigma)
        if isinstance(gamma, np.ndarray):
            gains = xp.matrix_transpose(self.gain(gamma))
            condition: Any = to_host(self.condition(gamma))
        else:
            gains, condition = self.gain(gamma)[:, None], float(self.condition(gamma))
        weights = self.right.times(gains * self.UtT)
        return Solution(
            weights=weights.T,
            intercept=self.mean_T - xp.matmul(self.mean_H, weights),
            singular_values=self.singular_values,
            rank=self.rank,
            condition=float(self.condition()),
            regularized_condition=condition,
        )


def spectrum_of(
    counts: Counts,
    mean: Array,
    *,
    sigma: Array,
    right: RightVectors,
    UtT: Array,
    residual: Array,
    discarded: Array,
    left: LeftVectors | None = None,
) -> Spectrum:
    """The spectrum made of an SVD, the counts of the rows and the means of [H | T]."""
    M = counts.n_features
    return Spectrum(
        sigma=sigma,
        right=right,
        UtT=UtT,
        residual=residual,
        n=counts.n,
        n_rows=counts.n_rows,
        weight_sum=counts.weight_sum,
        discarded=discarded,
        mean_H=mean[:M],
        mean_T=mean[M:],
        intercept_fitted=counts.intercept,
        left=left,
    )


def _per_direction(gamma: float | Array, sigma: Array) -> Array:
    """γ as an array that goes with one number per direction; complex γ stay complex."""
    xp = array_namespace(sigma)
    dtype = xp.complex128 if "complex" in str(getattr(gamma, "dtype", "")) else xp.float64
    return xp.asarray(gamma, dtype=dtype, device=device_of(sigma))[..., None]


def sizes_of(spectrum: Spectrum) -> dict[str, float]:
    """The largest singular value, target and unregularized weight: all 0 when H is zero."""
    xp = array_namespace(spectrum.sigma)
    targets = float(xp.max(xp.abs(spectrum.UtT))) if spectrum.rank else 0.0
    return {
        "features": spectrum.largest,
        "targets": targets,
        "weights": targets / spectrum.smallest if spectrum.rank else 0.0,
    }
