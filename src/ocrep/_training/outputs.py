"""What a trained network says of new rows: HW + b and its standard deviation, block by block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ocrep._linalg.arrays import Array, array_namespace
from ocrep._linalg.blocks import row_slices
from ocrep._linalg.parallel import on_chunks
from ocrep._linalg.spectrum import Spectrum
from ocrep._linalg.uncertainty import noise_variance, variance_factor
from ocrep._training.learned import Learned, block_rows


def network_outputs(learned: Learned, coef: Array, intercept: Any, X: Any) -> Array:
    """HW + b, (n_samples, n_targets), in the precision of X."""
    xp = array_namespace(coef)
    weights = xp.reshape(coef, (-1, coef.shape[-1])).T

    def answer(part: slice, workspace: np.ndarray | None = None) -> Array:
        H = learned.features(X[part, ...], workspace)
        # Features of one's own may come in another precision than the weights have.
        common = xp.result_type(H.dtype, weights.dtype)
        product = xp.astype(H, common, copy=False) @ xp.astype(weights, common, copy=False)
        return xp.astype(product + intercept, X.dtype, copy=False)

    if not isinstance(coef, np.ndarray):
        height = block_rows(weights.shape[0], X.shape[1], on_device=True)
        return xp.concat([answer(part) for part in row_slices(X.shape[0], height)])
    outputs = np.empty((X.shape[0], weights.shape[1]), dtype=X.dtype)

    def worker(height: int) -> Callable[[slice], None]:
        workspace = np.empty((height, weights.shape[0]), dtype=coef.dtype)

        def fill(part: slice) -> None:
            outputs[part] = answer(part, workspace)

        return fill

    on_chunks(worker, X.shape[0], X.shape[1] + weights.shape[0])
    return outputs


def standard_deviations(learned: Learned, spectrum: Spectrum, gamma: float | np.ndarray, X: Any) -> Array:
    """The standard deviation of each prediction, (n_samples, n_targets): of the noise and of the weights."""
    xp = array_namespace(spectrum.sigma)
    noise = noise_variance(spectrum, gamma)
    return xp.astype(xp.sqrt(noise * _variances(learned, spectrum, gamma, X)), X.dtype, copy=False)


def interval_widths(learned: Learned, spectrum: Spectrum, gamma: float | np.ndarray, X: Any, errors: Array) -> Array:
    """Half the width of each interval, (n_samples, n_targets), of errors in units of their standard deviation."""
    xp = array_namespace(spectrum.sigma)
    return xp.astype(errors * xp.sqrt(_variances(learned, spectrum, gamma, X)), X.dtype, copy=False)


def _variances(learned: Learned, spectrum: Spectrum, gamma: float | np.ndarray, X: Any) -> Array:
    """The variance of each prediction's error in units of that of the noise, (n_samples, 1), or one per target's γ."""
    parts = row_slices(X.shape[0], block_rows(learned.n_features, X.shape[1]))
    factors = [variance_factor(spectrum, learned.features(X[part, ...]), gamma) for part in parts]
    return 1.0 + array_namespace(spectrum.sigma).concat(factors)
