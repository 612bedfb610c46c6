"""`PreconditionedSums`: the Gram matrix of A·R₁⁻¹, good to κ ≈ 10¹² where R₁ is nearly the factor of A."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ocrep._linalg.arrays import EPS, Array, array_namespace, device_of, times_inverse
from ocrep._linalg.blocks import Encoded
from ocrep._linalg.counts import Counts, RowBlock
from ocrep._linalg.factor import Factor
from ocrep._linalg.gram import RESIDUAL_ERROR
from ocrep._linalg.spectrum import Spectrum
from ocrep._linalg.triangular_root import diagonal_ratio, least_squares_weights, root, rounding_over_eps

# One pass with an R₁ from a shifted Cholesky is as good as reflections up to here.
REFINED_CONDITION = 1e12
# Rows like those of the first block leave κ(A·R₁⁻¹) near 1; up to here its Gram matrix costs σ_p at most 10⁻¹⁰.
ALIKE_CONDITION = 1e3


@dataclass(frozen=True, slots=True, eq=False)
class PreconditionedSums:
    """YᵀY of Y = A·R₁⁻¹, A = √w·[1 | H − s | T − s], over the rows so far."""

    R1: Array
    G: Array
    counts: Counts

    @classmethod
    def about(cls, R1: Array, counts: Counts) -> PreconditionedSums:
        """The sums of no rows yet, about the shift of these counts."""
        return cls(R1, 0.0 * R1, counts.without_rows())

    @classmethod
    def from_first_block(cls, block: Encoded, *, intercept: bool) -> PreconditionedSums | None:
        """The sums of a first block, whose own R by reflections is R₁; None if that R is too ill conditioned."""
        rows = RowBlock.of(*block)
        R1 = _first_factor(Factor.fold([block], intercept=intercept))
        return None if R1 is None else cls.about(R1, Counts.none(rows, intercept).add(rows)).add(block)

    def add(self, block: Encoded) -> PreconditionedSums:
        xp, rows, counts = array_namespace(self.R1), RowBlock.of(*block), self.counts
        Y = times_inverse(rows.design(counts.shift, counts.intercept), self.R1)
        product = xp.matmul(xp.matrix_transpose(Y), Y)
        if counts.n_seen:
            product += self.G
        return PreconditionedSums(self.R1, product, counts.add(rows))

    def merge(self, other: PreconditionedSums) -> PreconditionedSums:
        """The sums over the rows of both, which must share R₁ and the shift."""
        return PreconditionedSums(self.R1, self.G + other.G, self.counts.merge(other.counts))

    def factor(self) -> Factor | None:
        """R = R₂R₁, R₂ of the Gram matrix, not proved to be right; None where that is not positive definite."""
        R2 = root(self.G, self.counts.n_targets)
        return None if R2 is None else Factor(array_namespace(self.R1).matmul(R2, self.R1), self.counts)

    def to_arrays(self) -> dict[str, np.ndarray]:
        return {"R1": np.asarray(self.R1), "G": np.asarray(self.G), **self.counts.to_arrays()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> PreconditionedSums:
        return cls(arrays["R1"], arrays["G"], Counts.from_arrays(arrays))


def refined(sums: PreconditionedSums) -> tuple[Factor, Spectrum] | None:
    """R = R₂R₁, R₂ of the Gram matrix of A·R₁⁻¹; None where that may cost more than is allowed."""
    counts = sums.counts
    R2 = root(sums.G, counts.n_targets)
    if R2 is None or not _residual_is_certain(sums, R2):
        return None
    factor = Factor(array_namespace(sums.R1).matmul(R2, sums.R1), counts)
    spectrum = factor.spectrum()
    good = spectrum.rank == factor.n_features and float(spectrum.condition()) <= REFINED_CONDITION
    return (factor, spectrum) if good else None


def are_alike(sums: PreconditionedSums) -> bool:
    """Whether all rows were so much like the first block, which gave R₁, that A·R₁⁻¹ is well conditioned."""
    xp = array_namespace(sums.G)
    k = sums.G.shape[0] - sums.counts.n_targets
    lam = xp.linalg.eigvalsh(sums.G[:k, :k])
    return float(lam[0]) * ALIKE_CONDITION**2 > float(lam[-1])


def _residual_is_certain(sums: PreconditionedSums, R2: Array) -> bool:
    """Whether ‖r‖ is right to 10⁻¹⁰·‖T‖, or as right as by reflections, although it is read off YᵀY.

    A good R₁ explains nearly all of the targets, and then nothing is lost. After a first block with targets
    unlike the others, nearly nothing may be explained.
    """
    G, R1, counts = sums.G, sums.R1, sums.counts
    xp = array_namespace(G)
    k, first = G.shape[0] - counts.n_targets, int(counts.intercept)
    R = xp.matmul(R2, R1)
    # In units in which no square over- or underflows.
    unit = xp.max(xp.abs(R), axis=0)
    unit = xp.where(unit > 0.0, unit, xp.ones_like(unit))
    R, R1 = R / unit, R1 / unit
    rounding = rounding_over_eps(G, R2[:k, :k], xp.matrix_transpose(R2[:k, k:]))
    error = EPS * xp.matmul(xp.sqrt(rounding), xp.abs(R1[k:, k:])) ** 2
    # Reflections, too, move each column by ε of its size.
    weights = least_squares_weights(R[:k, :k], xp.matrix_transpose(R[:k, k:]))
    unavoidable = EPS * xp.sqrt(xp.matmul(weights**2, xp.sum(R[:, :k] ** 2, axis=0)))
    residual, size = (xp.sum(R[start:, k:] ** 2, axis=0) for start in (k, first))
    allowed = RESIDUAL_ERROR * xp.sqrt(size) + unavoidable
    return bool(xp.all(xp.sqrt(residual + error) - xp.sqrt(residual) <= allowed))


def _first_factor(first: Factor) -> Array | None:
    """The R of a first block with its targets kept at their size: their own residual there may well be zero."""
    xp, counts = array_namespace(first.R), first.counts
    k = counts.n_features + int(counts.intercept)
    features = first.R[: min(k, first.R.shape[0]), :]
    if features.shape[0] < k or not diagonal_ratio(features[:, :k]) < REFINED_CONDITION:
        return None
    targets = first.R[:, k:]
    size = xp.sqrt(xp.sum(targets * targets, axis=0))
    size = xp.where(size > 0.0, size, xp.ones_like(size))
    zeros = xp.zeros((counts.n_targets, k), dtype=xp.float64, device=device_of(size))
    eye = xp.eye(counts.n_targets, dtype=xp.float64, device=device_of(size))
    return xp.concat([features, xp.concat([zeros, size * eye], axis=1)])
