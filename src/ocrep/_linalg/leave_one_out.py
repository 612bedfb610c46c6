"""Exact leave-one-out from the spectrum and, where its left vectors are not known, one more pass over the rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ocrep._linalg.arrays import EPS, Array, array_namespace, as_float64, device_of
from ocrep._linalg.blocks import RowBlocks, slices_of
from ocrep._linalg.spectrum import Spectrum


def press(spectrum: Spectrum, rows: RowBlocks, gamma: Array) -> Array:
    """PRESS(γ) = Σ w‖t_i − prediction without row i‖² for each γ of an array, in one pass over the training rows."""
    xp, total = array_namespace(spectrum.sigma), 0.0 * gamma
    for block in _blocks(spectrum, rows):
        parts = [block.squared_errors(gamma[part]) for part in slices_of(gamma.shape[0], block.U.shape[0])]
        total = total + xp.concat(parts)
    return total


def left_out_outputs(spectrum: Spectrum, rows: RowBlocks, gamma: float) -> Iterator[tuple[Array, Array, Array | None]]:
    """The network's output for each row had it been left out of training, with its T and weight, block by block.

    Whole weights are frequencies: one of the equal rows that a weight stands for is left out.
    """
    xp = array_namespace(spectrum.sigma)
    one = xp.asarray([gamma], dtype=xp.float64, device=device_of(spectrum.sigma))
    for H, T, weight in rows.blocks():
        block = _Block.of(spectrum, H, T, weight)
        T = _columns(T)
        left = block.leverage_left(one)
        if block.frequencies:
            left = block.with_twins(left, gamma)
        errors = xp.concat([block.residual(one, q) / left for q in range(T.shape[1])], axis=1)
        # Rows of zero weight take no part in training: their own prediction is the left-out one.
        counts = (block.root_weight > 0.0)[:, None]
        root = xp.where(counts, block.root_weight[:, None], xp.ones_like(errors[:, :1]))
        plain = T - xp.matmul(_columns(H), spectrum.weights(gamma)) - spectrum.intercept(gamma)
        yield T - xp.where(counts, errors / root, plain), T, weight


def left_out_errors(spectrum: Spectrum, rows: RowBlocks, gamma: float) -> Iterator[tuple[Array, Array]]:
    """The error at each row of positive weight had it been left out, over its standard deviation in units of the noise.

    Without row i, hᵀ(HᵀH + γI)⁻¹h is h_i/(1 − h_i)/w, and a new row of weight w has noise 1/w. So the deviation is
    1/√(w(1 − h_i)), and the result √w·residual/√(1 − h_i), for each target. Of rows that whole weights repeat, one is
    left out, and with the errors comes how often each stands for an equal one.
    """
    xp = array_namespace(spectrum.sigma)
    one = xp.asarray([gamma], dtype=xp.float64, device=device_of(spectrum.sigma))
    for block in _blocks(spectrum, rows):
        left, root = block.leverage_left(one), block.root_weight
        root = xp.where(root > 0.0, root, xp.ones_like(root))
        times = xp.round(root * root) if block.frequencies else xp.ones_like(root)
        if block.frequencies:
            left = block.with_twins(left, gamma) * root[:, None] ** 2
        # The rows inside have residual and 1 − h over γ: of the ratio, √γ is missing.
        scale = xp.where(block.inside, one**0.5, xp.ones_like(one)) / xp.sqrt(left)
        errors = xp.concat([block.residual(one, q) * scale for q in range(block.unexplained.shape[1])], axis=1)
        (counts,) = xp.nonzero(block.root_weight > 0.0)
        yield xp.take(errors, counts, axis=0), xp.take(times, counts, axis=0)


def _blocks(spectrum: Spectrum, rows: RowBlocks) -> Iterator[_Block]:
    """All rows, of which those of zero weight may be missing; they are read only if their U is not known."""
    left = spectrum.left
    if left is not None:
        yield _Block.known(spectrum, left.U, left.T, left.root_weight)
    else:
        yield from (_Block.of(spectrum, *block) for block in rows.blocks())


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """Rows of U = √w (H − mean) V / σ, with what lies outside its range.

    A row is `inside` when nothing of it does: with as many directions as rows, or when it alone decides a direction.
    There 1 − h and the residual both go with γ, and their ratio has a limit as γ → 0, which is kept by dividing γ
    out of both: γ/(σ² + γ) becomes 1/(σ² + γ).
    """

    U: Array
    spectrum: Spectrum
    root_weight: Array
    inside: Array
    outside: Array
    """1 − Σ u² − the intercept's leverage: what is left of 1 at γ = 0."""
    unexplained: Array
    """√w (T − mean) − U UᵀT."""

    @classmethod
    def of(cls, spectrum: Spectrum, H: Any, T: Any, weight: Any) -> _Block:
        H, T = as_float64(H), _columns(T)
        xp = array_namespace(H)
        root = xp.ones((H.shape[0],), dtype=xp.float64, device=device_of(H)) if weight is None else xp.sqrt(weight)
        U = spectrum.right.coordinates(root[:, None] * (H - spectrum.mean_H)) / spectrum.sigma
        return cls.known(spectrum, U, T, root)

    @classmethod
    def known(cls, spectrum: Spectrum, U: Array, T: Array, root: Array) -> _Block:
        """The block of rows whose U is known."""
        xp = array_namespace(U)
        outside = 1.0 - xp.sum(U * U, axis=1)
        if spectrum.intercept_fitted:
            outside = outside - root * root / spectrum.weight_sum
        unexplained = root[:, None] * (T - spectrum.mean_T) - xp.matmul(U, spectrum.UtT)
        # Rounding must not pretend that something lies outside.
        full = spectrum.rank + int(spectrum.intercept_fitted) >= spectrum.n_rows
        inside = outside <= (xp.inf if full else 64.0 * EPS * max(spectrum.rank, 1))
        inside = inside & (root > 0.0)
        return cls(U, spectrum, root, inside[:, None], outside, unexplained)

    @property
    def frequencies(self) -> bool:
        """Whether all weights, those of other blocks too, are whole: so often was each row seen."""
        xp, weight = array_namespace(self.U), self.root_weight**2
        whole = xp.abs(weight - xp.round(weight)) <= 4.0 * EPS * weight
        return self.spectrum.n == self.spectrum.weight_sum and bool(xp.all(whole))

    def squared_errors(self, gamma: Array) -> Array:
        """Σ w‖t − left-out prediction‖² over the rows, for each γ."""
        xp = array_namespace(self.U)
        left = self.leverage_left(gamma)
        total = 0.0 * gamma
        for q in range(self.unexplained.shape[1]):
            error = self.residual(gamma, q) / left
            total = total + xp.sum(error * error, axis=0)
        return total

    def residual(self, gamma: Array, target: int) -> Array:
        """√w (t − prediction) for each row and γ; over γ for the rows inside."""
        z = self.spectrum.UtT[:, target]
        return self._with_limit(gamma, self.U, z, self.unexplained[:, target])

    def leverage_left(self, gamma: Array) -> Array:
        """1 − h_i(γ) for each row and γ, summed from positive parts; over γ for the rows inside."""
        left = self._with_limit(gamma, self.U * self.U, None, self.outside)
        xp = array_namespace(left)
        return xp.where(left > 0.0, left, xp.ones_like(left))  # a row of zeros inside: its residual is 0 too

    def with_twins(self, left: Array, gamma: float) -> Array:
        """1 − h_i/w_i of 1 − h_i: what is left if one of w_i equal rows leaves; over γ for the rows inside."""
        xp = array_namespace(left)
        weight = xp.where(self.root_weight > 0.0, self.root_weight**2, xp.ones_like(self.root_weight))[:, None]
        twins = weight - 1.0
        several = twins > 0.5
        over_gamma = xp.where(several, twins, xp.ones_like(twins)) * (1.0 / gamma if gamma > 0.0 else xp.inf)
        return (left + xp.where(self.inside & several, over_gamma, twins)) / weight

    def _with_limit(self, gamma: Array, rows: Array, z: Array | None, rest: Array) -> Array:
        """rest + rows·(shrinkage·z), or rows·(shrinkage·z/γ) for the rows inside."""
        xp = array_namespace(rows)
        shrinkage, over_gamma = self.spectrum.shrinkage(gamma), self.spectrum.gain(gamma) / self.spectrum.sigma
        if z is not None:
            shrinkage, over_gamma = shrinkage * z, over_gamma * z
        limit = xp.matmul(rows, xp.matrix_transpose(over_gamma)) if bool(xp.any(self.inside)) else None
        if limit is not None and bool(xp.all(self.inside)):
            return limit
        usual = rest[:, None] + xp.matmul(rows, xp.matrix_transpose(shrinkage))
        return usual if limit is None else xp.where(self.inside, limit, usual)


def _columns(T: Any) -> Array:
    T = as_float64(T)
    return T[:, None] if T.ndim == 1 else T
