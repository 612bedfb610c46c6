"""Sums over the directions of H for each target, under one γ for all targets or one for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ocrep._linalg.arrays import Array, array_namespace, device_of
from ocrep._linalg.blocks import slices_of
from ocrep._linalg.spectrum import Spectrum


def row_of(spectrum: Spectrum, gamma: float | np.ndarray) -> Array:
    """One γ for all targets, (1, 1), or one for each, (1, Q), in the library of the spectrum."""
    xp = array_namespace(spectrum.sigma)
    return xp.reshape(xp.asarray(gamma, dtype=xp.float64, device=device_of(spectrum.sigma)), (1, -1))


def direction_sums(
    spectrum: Spectrum, gamma: Array, weighting: Callable[[Array, Array], Array], values: Array | None = None
) -> Array:
    """Σ_j weighting(f_j, r_j)·v_jq with f = σ²/(σ² + γ) and r = γ/(σ² + γ).

    γ has the shape (G, 1), the same for all targets, or (G, Q). `values` is p × Q, or None for ones. γ may be complex.
    """
    xp = array_namespace(gamma)

    def weights(gamma: Array) -> Array:
        return weighting(spectrum.filter(gamma), spectrum.shrinkage(gamma))

    if gamma.shape[1] == 1:
        w = weights(gamma[:, 0])
        return xp.sum(w, axis=1)[:, None] if values is None else xp.matmul(w, xp.astype(values, w.dtype, copy=False))
    parts = []
    for some in slices_of(gamma.shape[1], gamma.shape[0] * max(spectrum.rank, 1)):
        w = weights(gamma[:, some])
        parts.append(xp.sum(w if values is None else w * xp.matrix_transpose(values[:, some]), axis=-1))
    return xp.concat(parts, axis=1)


def rss(spectrum: Spectrum, gamma: Array) -> Array:
    """‖HW − T‖² of each target, γ × targets."""
    return direction_sums(spectrum, gamma, lambda _, r: r * r, spectrum.UtT**2) + spectrum.residual


def dof(spectrum: Spectrum, gamma: Array) -> Array:
    """Effective degrees of freedom without the intercept, in the shape of γ."""
    return direction_sums(spectrum, gamma, lambda f, _: f)


def residual_dof(spectrum: Spectrum, gamma: Array) -> Array:
    """n − dof − intercept in the shape of γ, summed from the shrinkages so that it keeps its digits."""
    free = spectrum.n - spectrum.rank - int(spectrum.intercept_fitted)
    return free + direction_sums(spectrum, gamma, lambda _, r: r)


def pooled(spectrum: Spectrum) -> Spectrum:
    """One target with the sums of squares of all: under one γ, their rss and ‖W‖ are its own."""
    xp = array_namespace(spectrum.UtT)
    UtT, residual = xp.sqrt(xp.sum(spectrum.UtT**2, axis=1))[:, None], xp.sum(spectrum.residual)[None]
    return replace(spectrum, UtT=UtT, residual=residual, mean_T=0.0 * spectrum.mean_T[:1], left=None)
