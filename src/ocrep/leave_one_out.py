"""Exact leave-one-out from the spectrum and one more pass over the rows; never an N × N matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ocrep.kernels import Array, array_namespace, as_float64, device_of
from ocrep.spectrum import Spectrum


@dataclass(frozen=True, slots=True)
class Rows:
    """The training rows, to be read again from the beginning: `blocks()` gives `(H, T, sample_weight)` blocks."""

    blocks: Callable[[], Iterator[tuple[Any, Any, Any]]]
    labels: bool = False
    """Whether T codes classes as ±1."""


def press(spectrum: Spectrum, rows: Rows, gamma: Array) -> Array:
    """PRESS(γ) = Σ w‖t_i − prediction without row i‖² for each γ of an array, in one pass."""
    xp = array_namespace(spectrum.sigma)
    total = 0.0 * gamma
    for H, T, weight in rows.blocks():
        block = _Block.of(spectrum, H, T, weight)
        for q in range(block.T.shape[1]):
            # residual and 1 − leverage, rows × γ
            error = block.residual(gamma, q) / block.leverage_left(gamma)
            total = total + xp.sum(error * error, axis=0)
    return total


def left_out_outputs(spectrum: Spectrum, rows: Rows, gamma: float) -> Iterator[Array]:
    """The network's output for each row had it been left out of training, block by block, (rows, Q)."""
    xp = array_namespace(spectrum.sigma)
    one = xp.asarray([gamma], dtype=xp.float64, device=device_of(spectrum.sigma))
    for H, T, weight in rows.blocks():
        block = _Block.of(spectrum, H, T, weight)
        T = _columns(T)
        left = block.leverage_left(one)
        # Rows of zero weight take no part in training: their own prediction is the left-out one.
        scale = block.root_weight
        errors = xp.concat([block.residual(one, q) / left for q in range(T.shape[1])], axis=1)
        safe = xp.where(scale > 0.0, scale, xp.ones_like(scale))
        plain = T - xp.matmul(_columns(H), spectrum.weights(gamma)) - spectrum.intercept(gamma)
        yield T - xp.where((scale > 0.0)[:, None], errors / safe[:, None], plain)


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """Rows of U, with what lies outside its range: U = √w (H − mean) V / σ."""

    U: Array
    T: Array
    """√w (T − mean)."""
    spectrum: Spectrum
    root_weight: Array
    outside: Array
    """1 − Σ u² − the intercept's leverage: what is left of 1 at γ = 0."""
    unexplained: Array
    """√w (T − mean) − U UᵀT."""

    @classmethod
    def of(cls, spectrum: Spectrum, H: Any, T: Any, weight: Any) -> _Block:
        H, T = as_float64(H), _columns(T)
        xp = array_namespace(H)
        root = xp.ones((H.shape[0],), dtype=xp.float64, device=device_of(H)) if weight is None else xp.sqrt(weight)
        U = xp.matmul(root[:, None] * (H - spectrum.mean_H), xp.matrix_transpose(spectrum.Vt)) / spectrum.sigma
        T = root[:, None] * (T - spectrum.mean_T)
        outside = 1.0 - xp.sum(U * U, axis=1)
        if spectrum.intercept_fitted:
            outside = outside - root * root / spectrum.weight_sum
        unexplained = T - xp.matmul(U, spectrum.UtT)
        if spectrum.rank + int(spectrum.intercept_fitted) >= spectrum.n_rows:
            # As many directions as rows: nothing lies outside, and rounding must not pretend that it does.
            outside, unexplained = 0.0 * outside, 0.0 * unexplained
        zero = xp.zeros((), dtype=xp.float64, device=device_of(H))
        return cls(U, T, spectrum, root, xp.maximum(outside, zero), unexplained)

    def residual(self, gamma: Array, target: int) -> Array:
        """√w (t − prediction) for each row and γ, from the shrinkages."""
        xp = array_namespace(self.U)
        shrunk = self.spectrum.shrinkage(gamma) * self.spectrum.UtT[:, target]
        return self.unexplained[:, target][:, None] + xp.matmul(self.U, xp.matrix_transpose(shrunk))

    def leverage_left(self, gamma: Array) -> Array:
        """1 − h_i(γ) for each row and γ, from the shrinkages so that it keeps its digits."""
        xp = array_namespace(self.U)
        left = self.outside[:, None] + xp.matmul(self.U * self.U, xp.matrix_transpose(self.spectrum.shrinkage(gamma)))
        # A row that alone decides a direction has 1 − h = 0 = its residual: its error without it is unknown, and
        # the smallest positive number keeps it from being NaN.
        tiny = xp.asarray(xp.finfo(xp.float64).smallest_normal, dtype=xp.float64, device=device_of(left))
        return xp.maximum(left, tiny)


def _columns(T: Any) -> Array:
    T = as_float64(T)
    return T[:, None] if T.ndim == 1 else T
