"""`PreconditionedSums`: the Gram matrix of A·R₁⁻¹, good to κ ≈ 10¹² where R₁ is nearly the factor of A."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ocrep._linalg.arrays import EPS, array_namespace, times_inverse
from ocrep._linalg.blocks import Encoded
from ocrep._linalg.counts import Counts, RowBlock
from ocrep._linalg.factor import Factor
from ocrep._linalg.gram import RESIDUAL_ERROR
from ocrep._linalg.spectrum import Spectrum
from ocrep._linalg.triangle import Triangle
from ocrep._linalg.triangular_root import Products, diagonal_ratio, least_squares_weights, root, rounding_over_eps

# One pass with an R₁ from a shifted Cholesky is as good as reflections up to here.
REFINED_CONDITION = 1e12
# Rows like those of the first block leave κ(A·R₁⁻¹) near 1; up to here its Gram matrix costs σ_p at most 10⁻¹⁰.
ALIKE_CONDITION = 1e3


@dataclass(frozen=True, slots=True, eq=False)
class PreconditionedSums:
    """The products of Y = A·R₁⁻¹, A = √w·[1 | H − s | T − s], over the rows so far.

    R₁ is diagonal for the targets: Y holds what R₁ leaves of each of them, over its size.
    """

    R1: Triangle
    products: Products
    counts: Counts

    @classmethod
    def about(cls, R1: Triangle, counts: Counts) -> PreconditionedSums:
        """The sums of no rows yet, about the shift of these counts."""
        return cls(R1, Products(0.0 * R1.R, 0.0 * R1.QtT, 0.0 * R1.left), counts.without_rows())

    @classmethod
    def from_first_block(cls, block: Encoded, *, intercept: bool) -> PreconditionedSums | None:
        """The sums of no rows yet, R₁ that of a first block by reflections; None if that is too ill conditioned."""
        first = Factor.fold([block], intercept=intercept)
        R1 = _first_triangle(first)
        return None if R1 is None else cls.about(R1, first.counts)

    def add(self, block: Encoded, scratch: np.ndarray | None = None) -> PreconditionedSums:
        """The sums with one more block; `scratch` is memory for its features, in which they may lie."""
        R1, rows, counts = self.R1, RowBlock.of(*block), self.counts
        F, T = rows.design(counts.shift, counts.intercept, scratch)
        xp = array_namespace(F)
        ours = F is not rows.H or (scratch is not None and np.shares_memory(F, scratch))
        F = times_inverse(F if ours else xp.asarray(F, copy=True), R1.R)
        T = (T - xp.matmul(F, R1.QtT)) / R1.left
        return PreconditionedSums(R1, self.products.merge(Products.of(F, T)), counts.add(rows))

    def merge(self, other: PreconditionedSums) -> PreconditionedSums:
        """The sums over the rows of both, which must share R₁ and the shift."""
        return PreconditionedSums(self.R1, self.products.merge(other.products), self.counts.merge(other.counts))

    def factor(self) -> Factor | None:
        """R = R₂R₁, R₂ of the products, not proved to be right; None where they are not positive definite."""
        R2 = root(self.products)
        return None if R2 is None else Factor(R2.times(self.R1), self.counts)

    def to_arrays(self) -> dict[str, np.ndarray]:
        return {**self.R1.to_arrays(), **self.products.to_arrays(), **self.counts.to_arrays()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> PreconditionedSums:
        return cls(Triangle.from_arrays(arrays), Products.from_arrays(arrays), Counts.from_arrays(arrays))


def refined(sums: PreconditionedSums) -> tuple[Factor, Spectrum] | None:
    """R = R₂R₁, R₂ of the products of A·R₁⁻¹; None where that may cost more than is allowed."""
    R2 = root(sums.products)
    if R2 is None or not _residual_is_certain(sums, R2):
        return None
    factor = Factor(R2.times(sums.R1), sums.counts)
    spectrum = factor.spectrum()
    good = spectrum.rank == factor.n_features and float(spectrum.condition()) <= REFINED_CONDITION
    return (factor, spectrum) if good else None


def are_alike(sums: PreconditionedSums) -> bool:
    """Whether all rows were so much like the first block, which gave R₁, that A·R₁⁻¹ is well conditioned."""
    lam = array_namespace(sums.products.FF).linalg.eigvalsh(sums.products.FF)
    return float(lam[0]) * ALIKE_CONDITION**2 > float(lam[-1])


def _residual_is_certain(sums: PreconditionedSums, R2: Triangle) -> bool:
    """Whether ‖r‖ is right to 10⁻¹⁰·‖T‖, or as right as by reflections, although it is read off YᵀY.

    A good R₁ explains nearly all of the targets, and then nothing is lost. After a first block with targets
    unlike the others, nearly nothing may be explained.
    """
    R = R2.times(sums.R1)
    xp, first = array_namespace(R.R), int(sums.counts.intercept)
    # In units in which no square over- or underflows.
    unit, of_target = (xp.max(xp.abs(part), axis=0) for part in (R.R, R.QtT))
    of_target = xp.where(of_target > R.left, of_target, R.left)
    unit, of_target = (xp.where(u > 0.0, u, xp.ones_like(u)) for u in (unit, of_target))
    features, targets, left = R.R / unit, R.QtT / of_target, R.left / of_target
    rounding = rounding_over_eps(sums.products, R2.R, xp.matrix_transpose(R2.QtT))
    error = EPS * rounding * (sums.R1.left / of_target) ** 2
    # Reflections, too, move each column by ε of its size.
    weights = least_squares_weights(features, xp.matrix_transpose(targets))
    unavoidable = EPS * xp.sqrt(xp.matmul(weights**2, xp.sum(features**2, axis=0)))
    residual = left**2
    total = residual + xp.sum(targets[first:, :] ** 2, axis=0)
    allowed = RESIDUAL_ERROR * xp.sqrt(total) + unavoidable
    return bool(xp.all(xp.sqrt(residual + error) - xp.sqrt(residual) <= allowed))


def _first_triangle(first: Factor) -> Triangle | None:
    """The R of a first block with its targets kept at their size: their own residual there may well be zero."""
    triangle, (rows, k) = first.triangle, first.triangle.R.shape
    if rows < k or not diagonal_ratio(triangle.R) < REFINED_CONDITION:
        return None
    xp = array_namespace(triangle.R)
    size = xp.sqrt(xp.sum(triangle.QtT**2, axis=0) + triangle.left**2)
    return Triangle(triangle.R, triangle.QtT, xp.where(size > 0.0, size, xp.ones_like(size)))
