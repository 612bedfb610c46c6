"""How far a prediction may be off: the noise as a fit sees it, and what the weights pass on of it."""

from __future__ import annotations

from ocrep._linalg.arrays import Array, array_namespace
from ocrep._linalg.spectrum import Spectrum


def noise_variance(spectrum: Spectrum, gamma: float | Array) -> Array:
    """rss(γ)/(n − dof(γ) − intercept) for each target: the variance of the noise as this fit sees it.

    Infinite where no degree of freedom remains, since the rows then say nothing about the noise.
    """
    dof = spectrum.residual_dof(gamma)[..., None]
    xp = array_namespace(dof)
    return xp.where(dof > 0.0, spectrum.rss_by_target(gamma) / xp.where(dof > 0.0, dof, xp.ones_like(dof)), xp.inf)


def variance_factor(spectrum: Spectrum, H: Array, gamma: float) -> Array:
    """hᵀ(HᵀH + γI)⁻¹h for each new row h (about the mean, plus 1/Σw with an intercept).

    Times the noise variance, it is the variance that the weights pass on to the prediction. Directions outside
    the row space of H count with 1/γ; without regularization nothing is known about them, and they are omitted.
    """
    xp = array_namespace(H)
    H = H - spectrum.mean_H
    inside = spectrum.right.coordinates(H)
    factor = xp.sum(inside * inside * (spectrum.gain(gamma) / spectrum.sigma), axis=1)
    if gamma > 0.0 and spectrum.rank < H.shape[1]:
        outside = H - xp.matrix_transpose(spectrum.right.times(xp.matrix_transpose(inside)))
        factor = factor + xp.sum(outside * outside, axis=1) / gamma
    return factor + (1.0 / spectrum.weight_sum if spectrum.intercept_fitted else 0.0)
