"""`Spectrum`: the SVD of H as its targets see it; everything that depends on γ is read off it.

With H = UΣVᵀ of numerical rank p, about the means if there is an intercept, and z = UᵀT, the fit of min ‖HW − T‖² +
γ‖W‖² is diagonal. For each direction j it has the

    gain       D = σ/(σ² + γ), the singular values of H^reg = (HᵀH + γI)⁻¹Hᵀ,
    filter     f = σ²/(σ² + γ) = σ·D, the part of z that is fitted,
    shrinkage  r = γ/(σ² + γ) = (γ/σ)·D, the part of z that is left,

and so W = V(D∘z), ‖HW − T‖² = Σ_j r_j²z_j² + ‖T − UUᵀT‖², tr H·H^reg = Σ_j f_j, and μ(H^reg) = max D/min D. Each γ
costs O(p) for each target, whatever the number of rows. D is computed as 1/(σ + γ/σ), in which σ² cannot underflow,
and r never as 1 − f, which cancels where γ is small.

γ is an array whose last axis goes with the targets: one γ for all of them, (…, 1), or one for each, (…, Q). Only
users give and get numbers. γ may be complex: a complex step gives derivatives by γ (`ocrep.rules.search`).

Rows that were not in the fit enter by their inner products with V: with X about the means of the fit and P = XV,
their predictions are P(D∘z). G values of γ for Q targets take G·Q products of P with a vector; but D falls smoothly
in γ, and all D of a range of γ are combinations of a few, so that a few products with a matrix are enough
(`squared_errors`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ocrep._documentation import function_of_gamma
from ocrep._linalg.arrays import (
    EPS,
    Array,
    array_namespace,
    device_of,
    matmul_each,
    take_columns,
    take_rows,
    to_host,
)
from ocrep._linalg.parallel import slices_of

if TYPE_CHECKING:
    from ocrep._linalg.rows import Counts
    from ocrep._linalg.wide import RowVectors


# V of H = UΣVᵀ, which rows fewer than features never form unless asked.
RightVectors: TypeAlias = "StoredVectors | RowVectors"


@dataclass(frozen=True, slots=True, eq=False)
class StoredVectors:
    """V as an array; `RowVectors` has the same methods."""

    Vt: Array

    @property
    def n_features(self) -> int:
        """Rows of V."""
        return int(self.Vt.shape[1])

    def transposed(self) -> Array:
        """Vᵀ, p × M."""
        return self.Vt

    def squared_columns(self, sigma: Array) -> Array:
        """The squared length of each column of H = UΣVᵀ."""
        return array_namespace(sigma).sum((sigma[:, None] * self.Vt) ** 2, axis=0)

    def times(self, x: Array) -> Array:
        """V·x for x of shape (…, p, k)."""
        V = array_namespace(x).matrix_transpose(self.Vt)
        return V @ x if x.ndim == 2 else matmul_each(V, x)

    def coordinates(self, H: Array) -> Array:
        """H·V."""
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
    one-dimensional array; an array gives one result per γ along the first axis. Quantities of each direction or of H
    take γ of any shape, and `rss_by_target` also γ of shape (n_gammas, Q), which has one for each target.

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
            f"Spectrum(rank={self.rank}, n={self.n}, n_targets={self.n_targets}, "
            f"largest={self.largest:.3g}, smallest={self.smallest:.3g}, intercept_fitted={self.intercept_fitted})"
        )

    @property
    def rank(self) -> int:
        """The numerical rank p."""
        return self.sigma.shape[0]

    @property
    def n_targets(self) -> int:
        """The number of targets Q."""
        return self.UtT.shape[1]

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
        return 1.0 / (self.sigma + _as_array(gamma, self.sigma)[..., None] / self.sigma)

    @function_of_gamma("array of shape (…, p)", "One number for each direction.")
    def filter(self, gamma: float | Array) -> Array:
        """Part of each direction that the fit keeps, σ²/(σ² + γ)."""
        return self.sigma * self.gain(gamma)

    @function_of_gamma("array of shape (…, p)", "One number for each direction.")
    def shrinkage(self, gamma: float | Array) -> Array:
        """Part of each direction left in the residual, γ/(σ² + γ); 1 − filter would cancel."""
        return _as_array(gamma, self.sigma)[..., None] / self.sigma * self.gain(gamma)

    @function_of_gamma("array of shape (…)", "One number for each γ.")
    def dof(self, gamma: float | Array) -> Array:
        """Effective degrees of freedom: tr H(HᵀH + γI)⁻¹Hᵀ, the intercept not counted."""
        return direction_sums(self, gamma, lambda f, _: f)

    @function_of_gamma("array of shape (…)", "One number for each γ.")
    def residual_dof(self, gamma: float | Array) -> Array:
        """Residual degrees of freedom, n − dof − intercept = tr(I − A(γ)), summed so that it keeps its digits."""
        free = self.n - self.rank - int(self.intercept_fitted)
        return free + direction_sums(self, gamma, lambda _, r: r)

    @function_of_gamma("array of shape (…, Q)", "One number for each target.")
    def rss_by_target(self, gamma: float | Array) -> Array:
        """Residual sum of squares ‖HW − T‖² for each target."""
        gamma = _as_array(gamma, self.sigma)
        gamma = gamma if gamma.ndim == 2 else gamma[..., None]
        return direction_sums(self, gamma, lambda _, r: r * r, self.UtT * self.UtT) + self.residual

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
        xp = array_namespace(self.sigma)
        gamma = _as_array(gamma, self.sigma)[..., None]
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

    def solution(self, gamma: float | np.ndarray) -> tuple[Array, Array]:
        """The output weights W, features × targets, and the constants; an array holds one γ for each target."""
        xp = array_namespace(self.sigma)
        W = self.right.times(xp.matrix_transpose(self.gain(row_of(self, gamma)[0, :])) * self.UtT)
        return W, self.mean_T - xp.matmul(self.mean_H, W)


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


def _as_array(gamma: float | Array, sigma: Array) -> Array:
    """γ in the library and on the device of σ; complex γ stay complex."""
    xp = array_namespace(sigma)
    dtype = xp.complex128 if "complex" in str(getattr(gamma, "dtype", "")) else xp.float64
    return xp.asarray(gamma, dtype=dtype, device=device_of(sigma))


# ------------------------------------------------------------------------------
# γ as an array: one for all targets, or one for each.


def row_of(spectrum: Spectrum, gamma: float | np.ndarray) -> Array:
    """One γ for all targets, (1, 1), or one for each, (1, Q), in the library of the spectrum."""
    return array_namespace(spectrum.sigma).reshape(_as_array(gamma, spectrum.sigma), (1, -1))


def summed_as(gamma: Any, values: Array) -> Array:
    """What is known of each target (the last axis), as γ is: added up where all targets share one γ."""
    shared = gamma.shape[-1] == 1
    return array_namespace(values).sum(values, axis=-1, keepdims=True) if shared else values


def direction_sums(
    spectrum: Spectrum, gamma: float | Array, factor: Callable[[Array, Array], Array], values: Array | None = None
) -> Array:
    """Σ_j factor(f_j, r_j)·v_jq with the filter f and the shrinkage r; γ may be complex.

    With `values` v, p × Q, γ has the shape (…, 1) or (…, Q), and the result (…, Q). Without, v is 1, γ has any shape,
    and the result has the same.
    """
    gamma = _as_array(gamma, spectrum.sigma)
    xp = array_namespace(gamma)

    def factors(gamma: Array) -> Array:
        gains = spectrum.gain(gamma)  # once for the filter and the shrinkage
        return factor(spectrum.sigma * gains, gamma[..., None] / spectrum.sigma * gains)

    if gamma.ndim < 2 and values is None:
        return xp.sum(factors(gamma), axis=-1)
    if gamma.shape[-1] == 1:
        shared = factors(gamma[..., 0])
        if values is None:
            return xp.sum(shared, axis=-1)[..., None]
        return xp.matmul(shared, xp.astype(values, shared.dtype, copy=False))
    parts = []
    # γ × targets × directions may be too large for memory: some targets at a time.
    for some in slices_of(gamma.shape[-1], math.prod(gamma.shape[:-1]) * max(spectrum.rank, 1)):
        own = factors(gamma[..., some])
        parts.append(xp.sum(own if values is None else own * xp.matrix_transpose(values[:, some]), axis=-1))
    return xp.concat(parts, axis=-1)


def of_targets(spectrum: Spectrum, targets: Any) -> Spectrum:
    """The same features with some of the targets, by a slice or their numbers; nothing is factored anew."""
    left = spectrum.left
    return replace(
        spectrum,
        UtT=take_columns(spectrum.UtT, targets),
        residual=take_columns(spectrum.residual, targets),
        mean_T=take_columns(spectrum.mean_T, targets),
        left=left and replace(left, T=take_columns(left.T, targets)),
    )


def pooled(spectrum: Spectrum) -> Spectrum:
    """One target with the sums of squares of all: under one γ, their rss and ‖W‖ are its own."""
    xp = array_namespace(spectrum.UtT)
    return replace(
        spectrum,
        UtT=xp.sqrt(xp.sum(spectrum.UtT**2, axis=1))[:, None],
        residual=xp.sum(spectrum.residual)[None],
        mean_T=0.0 * spectrum.mean_T[:1],
        left=None,
    )


# ------------------------------------------------------------------------------
# How far a prediction may be off: the noise as a fit sees it, and what the weights pass on of it.


def noise_variance(spectrum: Spectrum, gamma: float | np.ndarray) -> Array:
    """rss(γ)/(n − dof(γ) − intercept) for each target: the variance of the noise as this fit sees it.

    Infinite where no degree of freedom remains, since the rows then say nothing about the noise. An array holds one γ
    for each target.
    """
    row = row_of(spectrum, gamma)
    dof = spectrum.residual_dof(row)
    squares = spectrum.rss_by_target(row)
    xp = array_namespace(dof)
    return xp.where(dof > 0.0, squares / xp.where(dof > 0.0, dof, xp.ones_like(dof)), xp.inf)[0, :]


def variance_factor(spectrum: Spectrum, H: Array, gamma: float | np.ndarray) -> Array:
    """hᵀ(HᵀH + γI)⁻¹h for each new row h (about the mean, plus 1/Σw with an intercept), rows × γ.

    Times the noise variance, it is the variance that the weights pass on to the prediction. Directions outside
    the row space of H count with 1/γ; without regularization nothing is known about them, and they are omitted.
    """
    xp = array_namespace(H)
    row = row_of(spectrum, gamma)
    H = H - spectrum.mean_H
    inside = spectrum.right.coordinates(H)
    factor = xp.matmul(inside * inside, xp.matrix_transpose(spectrum.gain(row[0, :]) / spectrum.sigma))
    if bool(xp.any(row > 0.0)) and spectrum.rank < H.shape[1]:
        outside = H - xp.matrix_transpose(spectrum.right.times(xp.matrix_transpose(inside)))
        inverse = xp.where(row > 0.0, 1.0 / xp.where(row > 0.0, row, xp.ones_like(row)), xp.zeros_like(row))
        factor = factor + xp.sum(outside * outside, axis=1)[:, None] * inverse
    return factor + (1.0 / spectrum.weight_sum if spectrum.intercept_fitted else 0.0)


# ------------------------------------------------------------------------------
# `HeldOut`: rows that a fit of other rows predicts, and the error of each target under many γ.


# With fewer γ, targets, rows or directions, the gains of each γ are multiplied by themselves.
_FEW = 16
# Gains that differ by less than this factor are combinations of a few of them, right to 10⁻¹¹ of each.
_RANGE = 100.0
_NEGLIGIBLE = 64.0 * EPS


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """Rows held out, about the means of the rows that were not, or a triangle with the same inner products."""

    spectrum: Spectrum
    """The spectrum of the rows that were not held out."""
    P: Array
    """The features in its right singular vectors, rows × p."""
    T: Array
    """The targets, rows × Q."""
    left: Array
    """The length of what no weights explain of each target."""

    def squared_errors(self, gamma: Array, targets: np.ndarray | None = None) -> Array:
        """Σ w(t − prediction)² of each target, or of some by their numbers, γ × targets.

        γ has the shape (G, 1), or (G, targets) for one each.
        """
        known = self.spectrum.UtT, self.T, self.left
        Z, T, left = known if targets is None else (take_columns(part, targets) for part in known)
        return squared_errors(self.P, Z, T, gamma, self.spectrum.gain) + left**2


def squared_errors(P: Array, Z: Array, T: Array, gamma: Array, gain: Callable[[Array], Array]) -> Array:
    """Σ (t − P·(gain(γ)∘z))² over the rows for each target, γ × targets; γ has the shape (G, 1) or (G, targets).

    `gain` gives p numbers for each γ, which fall as γ grows. Where many γ are shared by many targets, products are
    formed only for as many combinations as the gains need: far below or above all eigenvalues, they hardly differ.
    """
    xp = array_namespace(P)
    n, p = P.shape
    G, own = gamma.shape
    if own == 1 and min(G, T.shape[1], n, p) >= _FEW and gamma.dtype != xp.complex128:
        order = np.argsort(to_host(gamma[:, 0]), kind="stable")
        combined = [
            _by_combinations(P, Z, T, weights, combinations)
            for weights, combinations in _low_rank_factors(gain(take_rows(gamma, order)[:, 0]))
        ]
        return take_rows(xp.concat(combined), np.argsort(order, kind="stable"))
    errors = []
    for some in slices_of(T.shape[1], G * max(n, p, 1)):
        # Directions × γ × targets, so that all predictions are one product.
        gains = gain(gamma[:, some] if own > 1 else gamma)
        X = xp.permute_dims(gains, (2, 0, 1)) * Z[:, None, some]
        n_targets = X.shape[2]
        X = xp.reshape(X, (p, G * n_targets))
        # P is real: a complex X takes two products of real matrices.
        if X.dtype == xp.complex128:
            predicted = xp.matmul(P, xp.real(X)) + 1j * xp.matmul(P, xp.imag(X))
        else:
            predicted = xp.matmul(P, X)
        error = T[:, None, some] - xp.reshape(predicted, (n, G, n_targets))
        errors.append(xp.sum(error * error, axis=0))
    return xp.concat(errors, axis=1)


def _low_rank_factors(gains: Array) -> Iterator[tuple[Array, Array]]:
    """Factors (g × r) and (r × p) of the gains, for as many γ at a time as lie within the range; γ increases."""
    xp = array_namespace(gains)
    largest = to_host(xp.max(gains / gains[-1:, :], axis=1))
    start = 0
    while start < gains.shape[0]:
        stop = start + int(np.searchsorted(-largest[start:], -largest[start] / _RANGE, side="right"))
        first = gains[start, :]
        U, sizes, Vt = xp.linalg.svd(gains[start:stop, :] / first, full_matrices=False)
        r = int(np.sum(to_host(sizes) > _NEGLIGIBLE * float(sizes[0])))
        yield U[:, :r] * sizes[:r], Vt[:r, :] * first
        start = stop


def _by_combinations(P: Array, Z: Array, T: Array, weights: Array, combinations: Array) -> Array:
    """The errors for gains that are `weights` (g × r) times `combinations` (r × p)."""
    xp = array_namespace(P)
    n, p = P.shape
    g, r = weights.shape
    total: Array = 0.0
    for rows in slices_of(n, r * p):
        # Combinations × rows, so that all predictions of some targets are one product.
        scaled = xp.reshape(combinations[:, None, :] * P[None, rows, :], (-1, p))
        n_rows = scaled.shape[0] // r
        errors = []
        for some in slices_of(T.shape[1], max(g, r) * n_rows):
            predicted = xp.matmul(weights, xp.reshape(xp.matmul(scaled, Z[:, some]), (r, -1)))
            error = T[None, rows, some] - xp.reshape(predicted, (g, n_rows, -1))
            errors.append(xp.sum(error * error, axis=1))
        total = total + xp.concat(errors, axis=1)
    return total
