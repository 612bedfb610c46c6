"""How far a prediction may be off: the noise as a fit sees it, and what the weights pass on of it."""

from __future__ import annotations

import numpy as np

from ocrep._linalg.arrays import Array, array_namespace
from ocrep._linalg.by_target import residual_dof, row_of, rss
from ocrep._linalg.spectrum import Spectrum


def noise_variance(spectrum: Spectrum, gamma: float | np.ndarray) -> Array:
    """rss(γ)/(n − dof(γ) − intercept) for each target: the variance of the noise as this fit sees it.

    Infinite where no degree of freedom remains, since the rows then say nothing about the noise. An array holds one γ
    for each target.
    """
    row = row_of(spectrum, gamma)
    dof, squares = residual_dof(spectrum, row), rss(spectrum, row)
    xp = array_namespace(dof)
    return xp.where(dof > 0.0, squares / xp.where(dof > 0.0, dof, xp.ones_like(dof)), xp.inf)[0, :]


def variance_factor(spectrum: Spectrum, H: Array, gamma: float | np.ndarray) -> Array:
    """hᵀ(HᵀH + γI)⁻¹h for each new row h (about the mean, plus 1/Σw with an intercept), rows × γ.

    Times the noise variance, it is the variance that the weights pass on to the prediction. Directions outside
    the row space of H count with 1/γ; without regularization nothing is known about them, and they are omitted.
    """
    xp, row = array_namespace(H), row_of(spectrum, gamma)
    H = H - spectrum.mean_H
    inside = spectrum.right.coordinates(H)
    factor = xp.matmul(inside * inside, xp.matrix_transpose(spectrum.gain(row[0, :]) / spectrum.sigma))
    if bool(xp.any(row > 0.0)) and spectrum.rank < H.shape[1]:
        outside = H - xp.matrix_transpose(spectrum.right.times(xp.matrix_transpose(inside)))
        inverse = xp.where(row > 0.0, 1.0 / xp.where(row > 0.0, row, xp.ones_like(row)), xp.zeros_like(row))
        factor = factor + xp.sum(outside * outside, axis=1)[:, None] * inverse
    return factor + (1.0 / spectrum.weight_sum if spectrum.intercept_fitted else 0.0)
