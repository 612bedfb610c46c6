"""`HeldOut`: rows that a fit of other rows predicts, and the error of each target under many γ."""

from __future__ import annotations

from dataclasses import dataclass

from ocrep._linalg.arrays import Array, array_namespace
from ocrep._linalg.blocks import slices_of
from ocrep._linalg.spectrum import Spectrum


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
        xp, (n, p), Q = array_namespace(gamma), self.P.shape, self.T.shape[1]
        own, G = gamma.shape[1] > 1, gamma.shape[0]
        errors = []
        for some in slices_of(Q, G * max(n, p, 1)):
            UtT, T = self.spectrum.UtT[:, some], self.T[:, some]
            # Directions × γ × targets, so that all predictions are one product.
            gain = self.spectrum.gain(gamma[:, some] if own else gamma)
            X = xp.permute_dims(gain, (2, 0, 1)) * UtT[:, None, :]
            left = T[:, None, :] - xp.reshape(
                product(self.P, xp.reshape(X, (p, G * UtT.shape[1]))), (n, G, UtT.shape[1])
            )
            errors.append(xp.sum(left * left, axis=0))
        return xp.concat(errors, axis=1) + self.left**2


def product(P: Array, X: Array) -> Array:
    """PX of a real P, for a real or complex X."""
    xp = array_namespace(P)
    if X.dtype != xp.complex128:
        return xp.matmul(P, X)
    return xp.matmul(P, xp.real(X)) + 1j * xp.matmul(P, xp.imag(X))
