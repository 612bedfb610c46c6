"""Rows of high leverage: their leave-one-out errors from a fit of the other rows, since 1 − h would be rounding noise.

Let B hold m such rows, about the means of the other rows, with targets t and weights w, and let f be what the fit of
the others predicts for them. Seen from that fit, their errors r = t − f have the covariance

    K = diag(1/w) + B(HᵀH + γI)⁻¹Bᵀ + 1/Σw

in units of the noise, with H and Σw of the others and the last term only with an intercept. With α = K⁻¹r, the fit of
all rows has the residuals αᵢ/wᵢ and the leverages 1 − hᵢ = (K⁻¹)ᵢᵢ/wᵢ at these rows, and leaving row i out gives the
error αᵢ/(K⁻¹)ᵢᵢ. So one more factorization serves all m rows, and nothing is refitted for each of them. What B has
outside the row space of H counts with 1/γ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ocrep._linalg.arrays import EPS, SMALLEST, Array, array_namespace, cholesky, device_of, times_inverse, to_host
from ocrep._linalg.spectrum import Spectrum
from ocrep._linalg.svd import rank_tolerance

# Above it, 1 − h and the residual keep nine digits.
_LEAST_LEFT = 1e-6
MOST_NOISE = 1e-9
"""A share of noise that costs leave-one-out errors no more than these digits."""
# The rounding error of 1 − Σu².
_ROUNDING = 4.0 * EPS
# The largest ratio to √γ whose square, times those of the data, is still in the range of float64.
_FARTHEST = 1e120
# K comes from products only if they cost no more than these digits.
_MOST_LOST = 1e-10


def noise_of(spectrum: Spectrum, U: Array, outside: Array, gamma: float) -> Array:
    """The share of rounding noise in the leave-one-out errors of rows of leverage near 1 at γ; 0 for all other rows.

    Such a row nearly decides a direction alone, as a sentinel of 10¹⁰ does, or the only row of a category. Coordinates
    of a row c carry noise of ε‖c‖, and those of U = CVΣ⁻¹ noise of ε‖c‖/σ. Its share in the norm of the row of
    U(Σ² + γ)^−½ is what errors of leave-one-out inherit. And what `outside`, 1 − Σu², tells of the other rows has noise
    of a few ε, which counts beside 1 − h.
    """
    xp = array_namespace(U)
    high = outside < _LEAST_LEFT
    if not spectrum.rank or not bool(xp.any(high)):
        return 0.0 * outside
    scaled = spectrum.smallest / xp.sqrt(spectrum.sigma**2 + gamma)
    own = xp.linalg.vector_norm(U * scaled, axis=1)
    sizes = xp.linalg.vector_norm(U * spectrum.sigma, axis=1) / spectrum.smallest
    noise = EPS * float(xp.linalg.vector_norm(scaled * (spectrum.smallest / spectrum.sigma))) * sizes
    left = xp.where(outside > 0.0, outside, 0.0 * outside) + xp.sum(U * U * spectrum.shrinkage(gamma), axis=1)
    # A row of zeros has nothing that could be noise.
    noise = xp.where(own > 0.0, noise / xp.where(own > 0.0, own, xp.ones_like(own)), 0.0 * own)
    return xp.where(high, noise + _ROUNDING / (left + _ROUNDING), 0.0 * own)


@dataclass(frozen=True, slots=True, eq=False)
class HighLeverage:
    """Rows of high leverage as the fit of the others sees them."""

    spectrum: Spectrum
    """That of the other rows."""
    inside: Array
    """B in the right singular vectors of the others, m × p."""
    outside: Array
    """B outside their row space, in coordinates of its own."""
    outside_products: Array
    """The inner products of its rows, which are the same for all γ."""
    T: Array
    weight: Array
    left_out: Array
    """The weight that is left out of each row: all of it, or 1 of rows that whole weights repeat."""

    @classmethod
    def of(cls, others: Spectrum, H: Array, T: Array, weight: Array, *, one: bool) -> HighLeverage:
        """Rows of features H; with `one`, one of the equal rows that a whole weight stands for is left out."""
        xp, B = array_namespace(H), H - others.mean_H
        inside = others.right.coordinates(B)
        outside = B[:, :0]
        if others.rank < B.shape[1]:
            rest = B - xp.matrix_transpose(others.right.times(xp.matrix_transpose(inside)))
            sizes, noise = (xp.linalg.vector_norm(A, axis=1, keepdims=True) for A in (rest, B))
            rest = xp.where(sizes > B.shape[1] * EPS * noise, rest, 0.0 * rest)
            outside = xp.matrix_transpose(xp.linalg.qr(xp.matrix_transpose(rest), mode="reduced")[1])
        products = xp.matmul(outside, xp.matrix_transpose(outside))
        return cls(others, inside, outside, products, T, weight, xp.ones_like(weight) if one else weight)

    def squared_errors(self, gamma: Array) -> Array:
        """Σ w(t − left-out prediction)² over the rows, γ × targets; γ has the shape (G, 1), or (G, Q)."""
        xp = array_namespace(gamma)
        return xp.stack([xp.sum(self.weight[:, None] * self.errors(row) ** 2, axis=0) for row in to_host(gamma)])

    def errors(self, gamma: np.ndarray) -> Array:
        """The errors of rows left out, m × targets, under one γ for all targets or one for each."""
        return self._for_each(gamma, lambda alpha, left: alpha / (self.weight[:, None] * left))

    def standardized_errors(self, gamma: np.ndarray) -> Array:
        """The same over their standard deviation in units of the noise."""
        scale = (array_namespace(self.weight).sqrt(self.left_out) / self.weight)[:, None]
        return self._for_each(gamma, lambda alpha, left: scale * alpha / left**0.5)

    def _for_each(self, gamma: np.ndarray, error: Callable[[Array, Array], Array]) -> Array:
        xp = array_namespace(self.T)
        found: dict[float, Array] = {}
        for value in gamma.tolist():  # each γ is solved for once, for all its targets
            if value not in found:
                found[value] = error(*self._alpha_and_left(value))
        if len(gamma) == 1:
            return found[gamma.tolist()[0]]
        return xp.stack([found[value][:, q] for q, value in enumerate(gamma.tolist())], axis=1)

    def _alpha_and_left(self, gamma: float) -> tuple[Array, Array]:
        """α, m × targets, and 1 − h of the weight that is left out, m × 1."""
        xp, others, weight = array_namespace(self.T), self.spectrum, self.weight
        r = self.T - others.mean_T - xp.matmul(self.inside, others.gain(gamma)[:, None] * others.UtT)
        scale, Z, diagonal = self._inverse_root(gamma)
        alpha = xp.matmul(Z, xp.matmul(xp.matrix_transpose(Z), r / scale[:, None])) / scale[:, None]
        left = (weight - self.left_out) / weight + self.left_out * (diagonal / scale**2) / weight**2
        return alpha, left[:, None]

    def _inverse_root(self, gamma: float) -> tuple[Array, Array, Array]:
        """d and Z of K⁻¹ = d⁻¹ZZᵀd⁻¹, and the diagonal of ZZᵀ, with d so that d⁻¹Kd⁻¹ has a diagonal of ones.

        K from products loses as many digits as its condition number has; where these are too many, a root of K does
        not need the products.
        """
        xp, others, m = array_namespace(self.T), self.spectrum, self.T.shape[0]
        root_gamma, inside = self._root_gamma(gamma), self.inside / xp.sqrt(others.sigma**2 + gamma)
        K = xp.matmul(inside, xp.matrix_transpose(inside)) + self.outside_products / root_gamma**2
        K = K + 1.0 / others.weight_sum if others.intercept_fitted else K
        own = xp.eye(m, dtype=xp.float64, device=device_of(K)) / xp.sqrt(self.weight)
        K = K + own * own
        scale = xp.sqrt(xp.linalg.diagonal(K))
        R = cholesky(K / scale / scale[:, None])
        if R is not None:
            Z, diagonal = _inverted(R)
            # κ is at most the largest eigenvalue, which is at most m, times the trace of the inverse.
            if EPS * m * float(xp.sum(diagonal)) <= _MOST_LOST:
                return scale, Z, diagonal
        ones = xp.ones_like(scale)[:, None] / others.weight_sum**0.5
        Y = xp.concat([inside, self.outside / root_gamma, own, *([ones] if others.intercept_fitted else [])], axis=1)
        R = xp.linalg.qr(xp.matrix_transpose(Y / scale[:, None]), mode="reduced")[1]
        return scale, *_inverted(R)

    def _root_gamma(self, gamma: float) -> float:
        """√γ, but for γ = 0 its limit: a number far below what the rank tolerance lets pass."""
        others, xp = self.spectrum, array_namespace(self.T)
        size = float(xp.max(xp.linalg.diagonal(self.outside_products))) ** 0.5
        if gamma > 0.0:
            return max(gamma**0.5, size / _FARTHEST)
        return max(1e-3 * rank_tolerance(others.right.n_features, max(others.largest, size)), SMALLEST)


def _inverted(R: Array) -> tuple[Array, Array]:
    """R⁻¹ by substitution, and the diagonal of (RᵀR)⁻¹, for which it is needed."""
    xp = array_namespace(R)
    Z = times_inverse(xp.eye(R.shape[0], dtype=xp.float64, device=device_of(R)), R)
    return Z, xp.sum(Z * Z, axis=1)
