"""`HeldOut`: rows that a fit of other rows predicts, and the error of each target under many γ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ocrep._linalg.arrays import EPS, Array, array_namespace, take_rows, to_host
from ocrep._linalg.blocks import slices_of
from ocrep._linalg.spectrum import Spectrum

# Fewer γ, targets, rows or directions are predicted one by one.
_FEW = 16
# Coefficients that change by less than this are told by few combinations of them, right to 10⁻¹¹ of each.
_RANGE, _NEGLIGIBLE = 100.0, 64.0 * EPS


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

    def squared_errors(self, gamma: Array) -> Array:
        """Σ w(t − prediction)² of each target, γ × targets; γ has the shape (G, 1), or (G, Q) for one each."""
        return squared_errors(self.P, self.spectrum.UtT, self.T, gamma, self.spectrum.gain) + self.left**2


def squared_errors(P: Array, Z: Array, T: Array, gamma: Array, gain: Callable[[Array], Array]) -> Array:
    """Σ (t − P·(gain(γ)∘z))² over the rows for each target, γ × targets; γ as above.

    `gain` gives p numbers for each γ, which fall as γ grows. Many γ for many targets cost as many products as it takes
    to tell their gains: those of γ far below or above all eigenvalues hardly differ.
    """
    xp = array_namespace(P)
    if gamma.shape[1] > 1 or min(gamma.shape[0], T.shape[1], *P.shape) < _FEW or gamma.dtype == xp.complex128:
        return _one_by_one(P, Z, T, gamma, gain)
    order = np.argsort(to_host(gamma[:, 0]), kind="stable")
    errors = [
        _by_combinations(P, Z, T, weights, combinations)
        for weights, combinations in _told_by_few(gain(take_rows(gamma, order)[:, 0]))
    ]
    return take_rows(xp.concat(errors), np.argsort(order, kind="stable"))


def _one_by_one(P: Array, Z: Array, T: Array, gamma: Array, gain: Callable[[Array], Array]) -> Array:
    xp, (n, p), (G, own) = array_namespace(P), P.shape, gamma.shape
    errors = []
    for some in slices_of(T.shape[1], G * max(n, p, 1)):
        # Directions × γ × targets, so that all predictions are one product.
        gains = gain(gamma[:, some] if own > 1 else gamma)
        X = xp.permute_dims(gains, (2, 0, 1)) * Z[:, None, some]
        left = T[:, None, some] - xp.reshape(_product(P, xp.reshape(X, (p, G * X.shape[2]))), (n, G, X.shape[2]))
        errors.append(xp.sum(left * left, axis=0))
    return xp.concat(errors, axis=1)


def _told_by_few(gains: Array) -> Iterator[tuple[Array, Array]]:
    """Factors (g × r) and (r × p) of the rows of gains, as many at a time as lie within the range."""
    xp, G = array_namespace(gains), gains.shape[0]
    largest = to_host(xp.max(gains / gains[-1:, :], axis=1))
    start = 0
    while start < G:
        stop = start + int(np.searchsorted(-largest[start:], -largest[start] / _RANGE, side="right"))
        first = gains[start, :]
        U, sizes, Vt = xp.linalg.svd(gains[start:stop, :] / first, full_matrices=False)
        r = int(np.sum(to_host(sizes) > _NEGLIGIBLE * float(sizes[0])))
        yield U[:, :r] * sizes[:r], Vt[:r, :] * first
        start = stop


def _by_combinations(P: Array, Z: Array, T: Array, weights: Array, combinations: Array) -> Array:
    """The errors for gains that are `weights` (g × r) times `combinations` (r × p)."""
    xp, (n, p), (g, r) = array_namespace(P), P.shape, weights.shape
    total: Array = 0.0
    for rows in slices_of(n, r * p):
        # Combinations × rows, so that all predictions of some targets are one product.
        scaled = xp.reshape(combinations[:, None, :] * P[None, rows, :], (-1, p))
        height, errors = scaled.shape[0] // r, []
        for some in slices_of(T.shape[1], max(g, r) * height):
            predicted = xp.matmul(weights, xp.reshape(xp.matmul(scaled, Z[:, some]), (r, -1)))
            left = T[None, rows, some] - xp.reshape(predicted, (g, height, -1))
            errors.append(xp.sum(left * left, axis=1))
        total = total + xp.concat(errors, axis=1)
    return total


def _product(P: Array, X: Array) -> Array:
    """PX of a real P, for a real or complex X."""
    xp = array_namespace(P)
    if X.dtype != xp.complex128:
        return xp.matmul(P, X)
    return xp.matmul(P, xp.real(X)) + 1j * xp.matmul(P, xp.imag(X))
