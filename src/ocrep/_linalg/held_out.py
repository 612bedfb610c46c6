"""Held-out errors at the chosen γ: whether Gram matrices prove them, and a pass over the rows where they do not.

Let C be the features of all rows but one fold, about their mean, W = (CᵀC + γI)⁻¹CᵀT the weights fitted to them, and
e(W) = ‖T_v − H_vW − b‖² the error on the fold v. Gram matrices are rounded: with E in CᵀC and d in CᵀT, both about ε
of what was summed, the weights are wrong by (CᵀC + γI)⁻¹(d − EW), and so the error by

    2·gᵀ(CᵀC + γI)⁻¹(d − EW),  g = H_vᵀ(T_v − H_vW − b),

besides the rounding of e itself, which is a quadratic form of the fold's own Gram matrix. With u = (CᵀC + γI)⁻¹g this
is at most 2‖u‖(‖E‖‖W‖ + ‖d‖): `are_proved` compares this bound with 10⁻¹⁰ of the squares of the held-out targets.

Where the bound is larger, one pass over the rows computes the residuals R = T − HW of the weights of every fold. Then
(CᵀC + γI)⁻¹(CᵀR − γW) is the step of iterative refinement, which gives back what squaring lost, and the error after
the step s is e − 2gᵀs, since s² does not matter. γ is an array here: one for all targets, or one for each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ocrep._linalg.arrays import EPS, Array, array_namespace, device_of
from ocrep._linalg.factor import Factor
from ocrep._linalg.fold_factors import FoldFactors, held_out
from ocrep._linalg.folds import FoldPlan, fold_numbers
from ocrep._linalg.parallel import chunk_rows
from ocrep._linalg.rows import ChunkEncoder, Encoded, Encoder, cut, summarize
from ocrep._linalg.solve import Route
from ocrep._linalg.spectrum import Spectrum, row_of, summed_as

if TYPE_CHECKING:
    from ocrep._rows.block import Block
    from ocrep._rows.memory import Rows

# Errors are right to this much of the squares of the held-out targets.
HELD_OUT_ERROR = 1e-10
# Gram matrices are wrong by about ε of what was summed, and by less than this wherever 50 digits said how much.
_SUM_ROUNDING = 4.0 * EPS


def errors_from_rows(folds: FoldFactors, gamma: float | np.ndarray, rows: Rows, encoder: Encoder) -> list[Array]:
    """Σ w(t − prediction)² of each target over each held-out fold, as if the weights had been refitted without it.

    All factors must be about one shift, as those from Gram matrices are.
    """
    fits = [_FoldFit.of(fold, spectrum, gamma) for fold, spectrum in held_out(folds)]
    sums = summarize(rows, encoder, HeldOutSums.of_no_rows(folds, fits))
    return [fit.corrected(sums, number) for number, fit in enumerate(fits)]


def are_proved(folds: FoldFactors, gamma: float | np.ndarray, route: Route) -> bool:
    """Whether the errors that the factors give are right to 10⁻¹⁰ of the squares of the held-out targets.

    With reflections nothing is squared, and nothing must be proved. With a γ for each target, each is proved by itself.
    """
    if route == "reflections":
        return True
    if route == "refined":  # as with reflections, the error grows with κ, and not with its square
        least = float(np.min(gamma))
        return all(10.0 * EPS * _condition(spectrum, least) <= HELD_OUT_ERROR for spectrum in folds.spectra)
    for fold, spectrum in held_out(folds):
        fit = _FoldFit.of(fold, spectrum, gamma)
        rounding = summed_as(fit.gamma, fit.rounding())
        size = summed_as(fit.gamma, fit.size())
        if not bool(array_namespace(size).all(rounding <= HELD_OUT_ERROR * size)):
            return False
    return True


def _condition(spectrum: Spectrum, gamma: float) -> float:
    """√((σ₁² + γ)/(σ_p² + γ))."""
    return math.sqrt((spectrum.largest**2 + gamma) / (spectrum.smallest**2 + gamma))


@dataclass(frozen=True, slots=True, eq=False)
class _FoldFit:
    """Weights fitted without one fold, as B = [b; W] of √w·[1 | H − s] about the shift s of its factor."""

    fold: Factor
    spectrum: Spectrum
    gamma: Array
    """One for all targets, (1,), or one for each, (Q,)."""
    B: Array
    away: Array
    """The mean of the features without the fold, about the shift."""

    @classmethod
    def of(cls, fold: Factor, spectrum: Spectrum, gamma: float | np.ndarray) -> _FoldFit:
        W, intercept = spectrum.solution(gamma)
        own = row_of(spectrum, gamma)[0, :]
        shift_H = fold.counts.shift[: fold.n_features]
        if not fold.counts.intercept:
            return cls(fold, spectrum, own, W, 0.0 * shift_H)
        xp = array_namespace(W)
        constant = intercept - fold.counts.shift[fold.n_features :] + xp.matmul(shift_H, W)
        return cls(fold, spectrum, own, xp.concat([constant[None, :], W]), spectrum.mean_H - shift_H)

    @property
    def _first(self) -> int:
        return int(self.fold.counts.intercept)

    def _solved(self, gradient: Array) -> Array:
        """(CᵀC + γ)⁻¹ of Cᵀr, C the features about their mean, for a gradient [1 | H − s]ᵀr."""
        xp = array_namespace(gradient)
        right = self.spectrum.right
        centred = gradient[self._first :, :] - self.away[:, None] * (gradient[0, :] if self._first else 0.0)
        coordinates = right.coordinates(xp.matrix_transpose(centred))
        damped = coordinates * (self.spectrum.gain(self.gamma) / self.spectrum.sigma)
        return right.times(xp.matrix_transpose(damped))

    def size(self) -> Array:
        """Σ w(t − mean)² of each target over the fold, the mean without it."""
        return self.fold.squared_error_by_target(0.0 * self.B[self._first :, :], self.spectrum.mean_T)

    def rounding(self) -> Array:
        """How wrong the error of each target over this fold may be because Gram matrices were rounded."""
        xp = array_namespace(self.B)
        spectrum = self.spectrum
        own = self.fold.triangle
        W = self.B[self._first :, :]
        left = own.QtT - xp.matmul(own.R, self.B)
        u = self._solved(xp.matmul(xp.matrix_transpose(own.R), left))
        of_mean = spectrum.weight_sum * self._first
        scale = spectrum.largest**2 + of_mean * float(xp.sum(self.away**2))
        away_T = spectrum.mean_T - self.fold.counts.shift[self.fold.n_features :]
        targets = xp.sqrt(xp.sum(spectrum.UtT**2, axis=0) + spectrum.residual + of_mean * away_T**2)
        lengths, weights = (xp.sqrt(xp.sum(part * part, axis=0)) for part in (u, W))
        moved = 2.0 * lengths * (scale * weights + scale**0.5 * targets)
        read = xp.sum(own.R**2) * xp.sum(self.B**2, axis=0) + xp.sum(own.QtT**2, axis=0) + own.left**2
        return _SUM_ROUNDING * (moved + read)

    def corrected(self, sums: HeldOutSums, number: int) -> Array:
        """The error of each target after one step of refinement, whose gradient comes from the rows."""
        xp = array_namespace(self.B)
        n_targets = self.B.shape[1]
        mine = slice(number * n_targets, (number + 1) * n_targets)
        others = sums.others[:, mine]
        own = sums.own[:, mine]
        penalty = self.gamma * self.B[self._first :, :]
        step = self._solved(xp.concat([others[: self._first, :], others[self._first :, :] - penalty]))
        if self._first:
            constant = others[0, :] / self.spectrum.weight_sum - xp.matmul(self.away, step)
            step = xp.concat([constant[None, :], step])
        # The step is at most 10⁻⁶ of the weights, and its square does not matter.
        return sums.errors[mine] - 2.0 * xp.sum(step * own, axis=0)


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutSums:
    """Residuals r of the weights of every fold, summed over rows; sums over parts of the rows add up."""

    plan: FoldPlan
    filled: tuple[int, ...]
    """The folds that have weights."""
    shift: Array
    intercept: bool
    B: Array
    """The weights of all folds next to each other."""
    errors: Any = 0.0
    """Σ r² over the rows of the fold that the weights were fitted without, one for each fold and target."""
    own: Any = 0.0
    """[1 | H − s]ᵀr over the same rows."""
    others: Any = 0.0
    """[1 | H − s]ᵀr over the rows that the weights were fitted to."""

    n_matrices: ClassVar[int] = 1
    copies: ClassVar[int] = 3
    merges_in_pairs: ClassVar[bool] = False

    @classmethod
    def of_no_rows(cls, folds: FoldFactors, fits: list[_FoldFit]) -> HeldOutSums:
        """Where each worker begins."""
        counts = fits[0].fold.counts
        B = array_namespace(fits[0].B).concat([fit.B for fit in fits], axis=1)
        return cls(folds.plan, folds.filled, counts.shift, counts.intercept, B)

    def chunk_size(self, encoder: Encoder, workers: int) -> int | None:
        if encoder.n_features is None:
            return None
        width = max(encoder.n_features, self.B.shape[1])
        return chunk_rows(width, workers, copies=self.copies, n_held=self.n_matrices)

    def add(self, block: Block, chunks: ChunkEncoder) -> HeldOutSums:
        sums = self
        for chunk in cut(block, chunks.size):
            encoded, scratch = chunks.in_workspace(chunk)
            sums = sums._plus(*self._of(Encoded.of(*encoded), fold_numbers(chunk, self.plan), scratch))
        return sums

    def merge(self, other: HeldOutSums) -> HeldOutSums:
        return self._plus(other.errors, other.own, other.others)

    def _plus(self, errors: Any, own: Any, others: Any) -> HeldOutSums:
        return replace(self, errors=self.errors + errors, own=self.own + own, others=self.others + others)

    def _of(self, rows: Encoded, fold: Array, scratch: np.ndarray | None) -> tuple[Array, Array, Array]:
        """The three sums over some rows."""
        F, T = rows.design(self.shift, self.intercept, scratch)
        xp, place, k = array_namespace(F), device_of(F), len(self.filled)
        numbers = xp.asarray(self.filled, device=place)
        held_out = xp.asarray(fold, dtype=numbers.dtype, device=place)[:, None] == numbers
        left = xp.concat([T] * k, axis=1) - xp.matmul(F, self.B)
        own = xp.reshape(left, (-1, k, T.shape[1])) * xp.astype(held_out, xp.float64)[:, :, None]
        own = xp.reshape(own, left.shape)
        Ft = xp.matrix_transpose(F)
        return xp.sum(own * own, axis=0), xp.matmul(Ft, own), xp.matmul(Ft, left - own)
