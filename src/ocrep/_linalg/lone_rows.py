"""Rows of leverage near 1: leave-one-out refits without them, since 1 − h would be rounding noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ocrep._linalg.arrays import EPS, Array, array_namespace, as_columns, as_float64, device_of, take_rows, to_host
from ocrep._linalg.blocks import Encoded, RowBlocks
from ocrep._linalg.by_target import row_of
from ocrep._linalg.factor import Factor
from ocrep._linalg.held_out_rows import HeldOut
from ocrep._linalg.spectrum import Spectrum
from ocrep._linalg.uncertainty import variance_factor

# Above it, 1 − h and the residual keep nine digits.
_LEAST_LEFT = 1e-6
# A share of noise in U that costs leave-one-out errors no more than these digits.
_MOST_NOISE = 1e-9


def are_alone(spectrum: Spectrum, U: Array, outside: Array) -> Array:
    """Which rows nearly decide a direction alone, such as a sentinel of 10¹⁰, so that rounding hides what others say.

    Coordinates of a row c carry noise of ε‖c‖, and those of U = CVΣ⁻¹ noise of ε‖c‖/σ. Its share in the norm of UΣ⁻¹,
    the row of C⁺, is what errors of leave-one-out inherit. A row that decides a direction exactly alone has little.
    """
    xp = array_namespace(U)
    alone = outside < _LEAST_LEFT
    if not spectrum.rank or not bool(xp.any(alone)):
        return alone & False
    scaled = spectrum.smallest / spectrum.sigma
    own, noise = U * scaled, EPS * float(xp.linalg.vector_norm(scaled**2))
    sizes = xp.linalg.vector_norm(U / scaled, axis=1)  # ‖c‖/σ_p
    return alone & (noise * sizes > _MOST_NOISE * xp.linalg.vector_norm(own, axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class Refit:
    """A row, and the fit of the others."""

    spectrum: Spectrum
    row: Factor
    """The factor of this row, of the weight that is left out."""
    H: Array
    """Its features, 1 × M."""
    T: Array
    """Its targets."""
    weight: float
    """What is left out."""

    @property
    def held_out(self) -> HeldOut:
        return self.row.held_out(self.spectrum)

    def output(self, gamma: float | np.ndarray) -> Array:
        """What the fit of the others predicts, for each target."""
        xp, spectrum = array_namespace(self.H), self.spectrum
        P = spectrum.right.coordinates(self.H - spectrum.mean_H)
        gain = xp.matrix_transpose(spectrum.gain(row_of(spectrum, gamma)[0, :]))
        return spectrum.mean_T + xp.matmul(P, gain * spectrum.UtT)[0, :]

    def standardized_error(self, gamma: float | np.ndarray) -> Array:
        """The error of each target over its standard deviation in units of the noise."""
        factor = variance_factor(self.spectrum, self.H, gamma)[0, :]
        return (self.T - self.output(gamma)) / array_namespace(factor).sqrt(1.0 / self.weight + factor)


def refits(rows: RowBlocks, alone: Sequence[Array], *, intercept: bool, frequencies: bool) -> list[list[Refit]]:
    """For each block, the refits of its rows that are `alone`; at most as many as directions, in one more pass.

    With `frequencies`, one of the equal rows that a whole weight stands for is left out.
    """
    others: Factor | None = None
    lone: list[list[tuple[Array, Array, float]]] = []
    for block, flags in zip(rows.blocks(), alone, strict=True):
        rest, found = _parted(block, to_host(flags))
        others = Factor.fold([rest], intercept=intercept, start=others)
        lone.append(found)
    assert others is not None
    flat = [row for found in lone for row in found]
    fits = iter(list(_left_out(others, flat, intercept, frequencies)))
    return [[next(fits) for _ in found] for found in lone]


def _left_out(
    others: Factor, lone: Sequence[tuple[Array, Array, float]], intercept: bool, frequencies: bool
) -> Iterator[Refit]:
    for place, (H, T, weight) in enumerate(lone):
        out = 1.0 if frequencies else weight
        kept = [(h, t, w if k != place else weight - out) for k, (h, t, w) in enumerate(lone)]
        blocks = [(h, t, _weights(h, w)) for h, t, w in kept if w > 0.0]
        row = Factor.of(H, T, sample_weight=_weights(H, out), intercept=intercept)
        yield Refit(Factor.fold(blocks, start=others).spectrum(), row, H, T[0, :], out)


def _parted(block: Encoded, alone: np.ndarray) -> tuple[Encoded, list[tuple[Array, Array, float]]]:
    """The rows that are not alone, and those that are, each with its weight."""
    H, T, weight = block
    parts = [as_float64(H), as_columns(T), None if weight is None else as_float64(weight)]

    def some(index: np.ndarray) -> Encoded:
        chosen_H, chosen_T, w = (None if part is None else take_rows(part, index) for part in parts)
        return chosen_H, chosen_T, w

    single = (some(np.asarray([index])) for index in np.flatnonzero(alone))
    return some(np.flatnonzero(~alone)), [(h, t, 1.0 if w is None else float(w[0])) for h, t, w in single]


def _weights(H: Array, weight: float) -> Array:
    return array_namespace(H).full((1,), weight, dtype=H.dtype, device=device_of(H))
