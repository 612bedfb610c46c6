"""Exact leave-one-out from the spectrum and, where its left vectors are not known, one more pass over the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ocrep._linalg.arrays import EPS, Array, array_namespace, as_columns, as_float64, device_of, to_host
from ocrep._linalg.blocks import Encoded, RowBlocks, slices_of
from ocrep._linalg.by_target import row_of
from ocrep._linalg.lone_rows import Refit, are_alone, refits
from ocrep._linalg.spectrum import Spectrum


def press(spectrum: Spectrum, rows: RowBlocks, gamma: Array) -> Array:
    """PRESS(γ) = Σ w‖t_i − prediction without row i‖² for each γ of an array, in one pass over the training rows."""
    return array_namespace(gamma).sum(press_by_target(spectrum, rows, gamma[:, None]), axis=1)


def press_by_target(spectrum: Spectrum, rows: RowBlocks, gamma: Array) -> Array:
    """The same for each target, γ × targets; γ has the shape (G, 1), or (G, Q) for one each."""
    total: Any = 0.0
    for block, refitted, _ in _blocks(spectrum, rows):
        total = total + block.squared_errors(gamma)
        for fit in refitted:
            total = total + fit.held_out.squared_errors(gamma)
    return total


def left_out_outputs(
    spectrum: Spectrum, rows: RowBlocks, gamma: float | np.ndarray
) -> Iterator[tuple[Array, Array, Array | None]]:
    """The network's output for each row had it been left out of training, with its T and weight, block by block.

    Whole weights are frequencies: one of the equal rows that a weight stands for is left out. An array holds one γ for
    each target.
    """
    xp, row, solution = array_namespace(spectrum.sigma), row_of(spectrum, gamma), spectrum.solution(gamma)
    for block, refitted, (H, T, weight) in _blocks(spectrum, rows, read=True, one=True):
        T = as_columns(T)
        left = block.leverage_left(row)
        if block.frequencies:
            left = block.with_twins(left, row)
        errors = (block.residual(row) / left)[:, 0, :]
        # Rows of zero weight take no part in training: their own prediction is the left-out one.
        counts = (block.root_weight > 0.0)[:, None]
        root = xp.where(counts, block.root_weight[:, None], xp.ones_like(errors[:, :1]))
        plain = T - xp.matmul(as_columns(H), xp.matrix_transpose(solution.weights)) - solution.intercept
        outputs = T - xp.where(counts, errors / root, plain)
        yield _with(outputs, block.alone, [fit.output(gamma) for fit in refitted]), T, weight


def left_out_errors(spectrum: Spectrum, rows: RowBlocks, gamma: float | np.ndarray) -> Iterator[tuple[Array, Array]]:
    """The error at each row of positive weight had it been left out, over its standard deviation in units of the noise.

    Without row i, hᵀ(HᵀH + γI)⁻¹h is h_i/(1 − h_i)/w, and a new row of weight w has noise 1/w. So the deviation is
    1/√(w(1 − h_i)), and the result √w·residual/√(1 − h_i), for each target. Of rows that whole weights repeat, one is
    left out, and with the errors comes how often each stands for an equal one.
    """
    xp, row = array_namespace(spectrum.sigma), row_of(spectrum, gamma)
    for block, refitted, _ in _blocks(spectrum, rows, one=True):
        left, root = block.leverage_left(row), block.root_weight
        root = xp.where(root > 0.0, root, xp.ones_like(root))
        times = xp.round(root * root) if block.frequencies else xp.ones_like(root)
        if block.frequencies:
            left = block.with_twins(left, row) * root[:, None, None] ** 2
        # The rows inside have residual and 1 − h over γ: of the ratio, √γ is missing.
        scale = xp.where(block.inside[:, :, None], row**0.5, xp.ones_like(row)) / xp.sqrt(left)
        (counts,) = xp.nonzero(block.root_weight > 0.0)
        errors = (block.residual(row) * scale)[:, 0, :]
        errors = _with(errors, block.alone, [fit.standardized_error(gamma) for fit in refitted])
        yield xp.take(errors, counts, axis=0), xp.take(times, counts, axis=0)


def _blocks(
    spectrum: Spectrum, rows: RowBlocks, *, read: bool = False, one: bool = False
) -> Iterator[tuple[_Block, Sequence[Refit], Encoded]]:
    """All rows, of which those of zero weight may be missing, and the refits of those that are alone.

    The rows are read only if their U is not known, or to `read` them too. With `one`, whole weights are frequencies.
    """
    left = spectrum.left
    if left is not None and not read:
        yield _Block.known(spectrum, left.U, left.T, left.root_weight), (), (None, left.T, None)
        return
    refitted: list[list[Refit]] | None = None
    for place, encoded in enumerate(rows.blocks()):
        block = _Block.of(spectrum, *encoded)
        if refitted is None and bool(array_namespace(block.U).any(block.alone)):
            again = (_Block.of(spectrum, *each) for each in rows.blocks())
            alone, frequencies = zip(*((each.alone, each.frequencies) for each in again), strict=True)
            refitted = refits(rows, alone, intercept=spectrum.intercept_fitted, frequencies=one and all(frequencies))
        yield block, refitted[place] if refitted else (), encoded


def _with(values: Array, alone: Array, found: Sequence[Array]) -> Array:
    """The same values, with those found by refits in the rows that are alone."""
    if not found:
        return values
    xp, fits = array_namespace(values), iter(found)
    return xp.stack([next(fits) if mine else values[i, :] for i, mine in enumerate(to_host(alone))])


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
    alone: Array
    """Which rows are refitted, because rounding hides what the others say about them."""

    @classmethod
    def of(cls, spectrum: Spectrum, H: Any, T: Any, weight: Any) -> _Block:
        H, T = as_float64(H), as_columns(T)
        xp = array_namespace(H)
        root = xp.ones((H.shape[0],), dtype=xp.float64, device=device_of(H)) if weight is None else xp.sqrt(weight)
        U = spectrum.right.coordinates(root[:, None] * (H - spectrum.mean_H)) / spectrum.sigma
        if spectrum.left is not None:  # without the rounding of σ₁/σ_p that coordinates bring
            U = _nearest(U, spectrum.left.U)
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
        # With as many directions as rows, all 1 − h go with γ, and their sums have no part that cancels.
        alone = are_alone(spectrum, U, outside) & (root > 0.0) & (not full and spectrum.left is None)
        return cls(U, spectrum, root, inside[:, None], outside, unexplained, alone)

    @property
    def frequencies(self) -> bool:
        """Whether all weights, those of other blocks too, are whole: so often was each row seen."""
        xp, weight = array_namespace(self.U), self.root_weight**2
        whole = xp.abs(weight - xp.round(weight)) <= 4.0 * EPS * weight
        return self.spectrum.n == self.spectrum.weight_sum and bool(xp.all(whole))

    def squared_errors(self, gamma: Array) -> Array:
        """Σ w(t − left-out prediction)² over the rows that are not alone, γ × targets."""
        xp, entries, own = array_namespace(self.U), max(*self.U.shape, 1), gamma.shape[1] > 1
        found, alone = [], self.alone[:, None, None]
        for some in slices_of(gamma.shape[0], entries):
            errors = []
            for targets in slices_of(self.unexplained.shape[1], gamma[some, :].shape[0] * entries):
                each = gamma[some, targets] if own else gamma[some, :]
                error = self.residual(each, targets) / self.leverage_left(each)
                error = xp.where(alone, xp.zeros_like(error), error)
                errors.append(xp.sum(error * error, axis=0))
            found.append(xp.concat(errors, axis=1))
        return xp.concat(found)

    def residual(self, gamma: Array, targets: slice = slice(None)) -> Array:
        """√w (t − prediction), rows × γ × targets; over γ for the rows inside."""
        return self._with_limit(gamma, self.U, self.spectrum.UtT[:, targets], self.unexplained[:, targets])

    def leverage_left(self, gamma: Array) -> Array:
        """1 − h_i(γ), rows × γ × columns of γ, summed from positive parts; over γ for the rows inside."""
        xp = array_namespace(self.U)
        ones = xp.ones_like(self.spectrum.sigma)[:, None]
        left = self._with_limit(gamma, self.U * self.U, ones, self.outside[:, None])
        return xp.where(left > 0.0, left, xp.ones_like(left))  # a row of zeros inside: its residual is 0 too

    def with_twins(self, left: Array, gamma: Array) -> Array:
        """1 − h_i/w_i of 1 − h_i: what is left if one of w_i equal rows leaves; over γ for the rows inside."""
        xp = array_namespace(left)
        weight = xp.where(self.root_weight > 0.0, self.root_weight**2, xp.ones_like(self.root_weight))[:, None, None]
        twins = weight - 1.0
        several = twins > 0.5
        inverse = xp.where(gamma > 0.0, 1.0 / xp.where(gamma > 0.0, gamma, xp.ones_like(gamma)), xp.inf)
        over_gamma = xp.where(several, twins, xp.ones_like(twins)) * inverse
        return (left + xp.where(self.inside[:, :, None] & several, over_gamma, twins)) / weight

    def _with_limit(self, gamma: Array, rows: Array, z: Array, rest: Array) -> Array:
        """rest + rows·(shrinkage·z), or rows·(shrinkage·z/γ) for the rows inside; rows × γ × targets."""
        xp, spectrum, inside = array_namespace(rows), self.spectrum, self.inside[:, :, None]

        def times(factors: Array) -> Array:
            X = xp.permute_dims(factors, (2, 0, 1)) * z[:, None, :]
            product = xp.matmul(rows, xp.reshape(X, (X.shape[0], X.shape[1] * X.shape[2])))
            return xp.reshape(product, (rows.shape[0], *X.shape[1:]))

        limit = times(spectrum.gain(gamma) / spectrum.sigma) if bool(xp.any(inside)) else None
        if limit is not None and bool(xp.all(inside)):
            return limit
        usual = rest[:, None, :] + times(spectrum.shrinkage(gamma))
        return usual if limit is None else xp.where(inside, limit, usual)


def _nearest(U: Array, known: Array) -> Array:
    """For each row the nearest of the known rows, whose order may differ."""
    xp = array_namespace(U)
    if not known.shape[0]:
        return U
    squares = xp.sum(known * known, axis=1)
    near = xp.argmin(squares[None, :] - 2.0 * xp.matmul(U, xp.matrix_transpose(known)), axis=1)
    counts = xp.any(U != 0.0, axis=1)[:, None]
    return xp.where(counts, xp.take(known, near, axis=0), U)
