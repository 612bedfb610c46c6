"""Gram matrices: HᵀH and HᵀT of the rows, trusted only as far as they prove themselves.

`GramSums`. With A = √w·[1 | H − s] and T about the same shift, AᵀA, AᵀT and Σt² are sums over rows: the cheapest thing
to do with them (nM² flops, all of it one matrix product), and they merge by addition. Cholesky's factor of AᵀA is R.
What it costs: forming AᵀA moves it by ε·σ₁², an eigenvalue σ_p² by as much, and so σ_p by the relative error ε·κ²/2.

What `proved` proves, from the eigenvalues λ and vectors V of the centred matrix alone:
- γ = σ₁σ_p to 10⁻⁶: λ_p·(5·10⁴)² > λ₁ + (what centring subtracted), since rounding is relative to what was summed.
- ‖r‖ to 10⁻¹⁰·‖T‖. rss = ‖t‖²(1 − Σz²) with z = Σ⁻¹Vᵀ·(HᵀT)/‖t‖. An error E of HᵀH moves the rss by wᵀEw, w the
  least-squares weights; the entries of E are nearly independent and of size ε·σ₁²/M, so ‖E‖ is about 2√M of them. As
  d‖r‖ = d(rss)/2‖r‖, an error e of the rss (in units of ‖t‖²) must obey e ≤ 2·10⁻¹⁰·√(1 − Σz²), and a share of the
  variance below 10⁻⁴ is never read off that difference. With folds, the same is asked of every fold's complement.

`PreconditionedSums`. With a triangle R₁ that is nearly the factor of A, Y = A·R₁⁻¹ is nearly orthogonal, κ(Y) is small,
and its Gram matrix loses nothing: R = R₂R₁ with R₂ from YᵀY. This is Cholesky QR with preconditioning (Fukaya, Kannan,
Nakatsukasa, Yamamoto, Yanagisawa, SIAM J. Sci. Comput. 42, 2020), good up to κ(A) ≈ 10¹². R₁ comes from the first block
by reflections, if all rows are like it (`are_alike`: κ(Y) < 10³), or from a Gram matrix that proved too little, shifted
so that rounding does not make it indefinite (`shifted_root`). Substitution adds nM² flops. Targets take part: what R₁
leaves of each of them is divided by its size, so that YᵀY gives the residual too, and `_residual_is_certain` bounds its
error.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import iadd
from typing import TypeAlias

import numpy as np

from ocrep._linalg.arrays import EPS, Array, array_namespace, cholesky, device_of, times_inverse
from ocrep._linalg.factor import Factor
from ocrep._linalg.rows import Counts, Encoded
from ocrep._linalg.spectrum import Spectrum, StoredVectors, spectrum_of
from ocrep._linalg.triangle import (
    RESIDUAL_SHARE,
    Products,
    Triangle,
    diagonal_ratio,
    least_squares_weights,
    root,
    rounding_over_eps,
    transposed_root,
)

# Squaring H costs σ_p a relative error of about ε·κ²/2: 3·10⁻⁷ at this κ, so that γ = σ₁σ_p is right to 10⁻⁶.
PROVED_CONDITION = 5e4
# ‖r‖ may be wrong by this much of ‖T‖.
RESIDUAL_ERROR = 1e-10
# A·R₁⁻¹ with an R₁ from a shifted Cholesky is as good as reflections up to this κ(A).
REFINED_CONDITION = 1e12
# Rows like the rows of the first block leave κ(A·R₁⁻¹) near 1; up to here its Gram matrix costs σ_p at most 10⁻¹⁰.
ALIKE_CONDITION = 1e3

GramArrays: TypeAlias = tuple[Array, Array, Array, Array]


@dataclass(frozen=True, slots=True, eq=False)
class GramSums:
    """HᵀH, Hᵀ[1 | T], 1ᵀ[1 | T] and Σt² of the rows so far, about the shift of their counts."""

    sums: GramArrays | None
    counts: Counts

    @classmethod
    def of(cls, block: Encoded, *, intercept: bool) -> GramSums:
        """The sums of a first block, whose mean becomes the shift."""
        return cls(None, Counts.none(Encoded.of(*block), intercept)).add(block)

    def add(self, block: Encoded, scratch: np.ndarray | None = None) -> GramSums:
        """The sums with one more block; arrays that this object holds may be changed in place, and `scratch` too."""
        rows = Encoded.of(*block)
        # Rows that are not finite make the sums NaN, and the reflections that are then tried say so.
        with np.errstate(invalid="ignore", over="ignore"):
            counts = self.counts.add(rows)
            H, rest = rows.parts(counts.shift, counts.intercept, scratch)
            products = _products(H, rest, int(counts.intercept), scratch)
            if self.sums is None:
                return GramSums(products, counts)
            sums = tuple(map(iadd, self.sums, products))  # in place where the library can
        return GramSums(sums, counts)

    def merge(self, other: GramSums) -> GramSums:
        """The sums over the rows of both, which must be about the same shift."""
        counts = self.counts.merge(other.counts)
        if self.sums is None or other.sums is None:
            return GramSums(self.sums if other.sums is None else other.sums, counts)
        with np.errstate(invalid="ignore", over="ignore"):
            a = self.sums
            b = other.sums
            return GramSums((a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]), counts)

    @property
    def products(self) -> Products:
        """The products of F = [1 | H] and T."""
        assert self.sums is not None
        HH, Hb, of_ones, squares = self.sums
        if not self.counts.intercept:
            return Products(HH, Hb, squares)
        xp = array_namespace(HH)
        upper = xp.concat([of_ones[:, :1], xp.matrix_transpose(Hb[:, :1])], axis=1)
        FF = xp.concat([upper, xp.concat([Hb[:, :1], HH], axis=1)])
        return Products(FF, xp.concat([of_ones[:, 1:], Hb[:, 1:]]), squares)

    def factor(self) -> Factor | None:
        """The factor by Cholesky, not proved to be right; None where the matrix is not positive definite."""
        products = self.products
        triangle = root(products) if products.representable else None
        return None if triangle is None else Factor(triangle, self.counts)

    def to_arrays(self) -> dict[str, np.ndarray]:
        return {**{f"sum{i}": np.asarray(s) for i, s in enumerate(self.sums or ())}, **self.counts.to_arrays()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> GramSums:
        sums = (arrays["sum0"], arrays["sum1"], arrays["sum2"], arrays["sum3"]) if "sum0" in arrays else None
        return cls(sums, Counts.from_arrays(arrays))


def proved(gram: GramSums) -> tuple[Factor, Spectrum] | None:
    """The factor and the spectrum by Cholesky and eigenvalues, or None if squaring may have cost too much."""
    products = gram.products
    counts = gram.counts
    if not is_promising(products, counts):
        return None
    xp = array_namespace(products.FF)
    M = counts.n_features
    about_mean, of_mean = _centred(products, int(counts.intercept))
    lam, V = xp.linalg.eigh(about_mean.FF)
    # Rounding is relative to what was summed, the part of the mean included.
    scale = float(lam[-1]) + float(xp.sum(of_mean[:M]))
    if not float(lam[0]) * PROVED_CONDITION**2 > scale:
        return None
    sigma = xp.flip(xp.sqrt(lam))
    Vt = xp.flip(xp.matrix_transpose(V), axis=0)
    total = about_mean.TT
    # Squares that sum to 0 may still be of targets that are not 0: nothing is divided by them.
    size = xp.sqrt(xp.where(total > 0.0, total, xp.ones_like(total)))
    z = xp.matmul(Vt, about_mean.FT) / sigma[:, None] / size
    unexplained = 1.0 - xp.sum(z * z, axis=0)
    # wᵀEw as above, and the rounding of Σt² and of what centring subtracted, all in units of ‖t‖².
    moved = scale * min(1.0, 2.0 / M**0.5) * xp.sum((z / sigma[:, None]) ** 2, axis=0)
    error = EPS * (moved + 1.0 + of_mean[M:] / size / size)
    certain = (error <= 2.0 * RESIDUAL_ERROR * xp.sqrt(xp.abs(unexplained))) & (unexplained >= RESIDUAL_SHARE)
    triangle = root(products)
    if triangle is None or not bool(xp.all(certain)):
        return None
    factor = Factor(triangle, counts)
    spectrum = spectrum_of(
        counts,
        factor.means(),
        sigma=sigma,
        right=StoredVectors(Vt),
        UtT=z * size,
        residual=total * unexplained,
        discarded=sigma[:0],
    )
    return factor, spectrum


def is_promising(products: Products, counts: Counts) -> bool:
    """Whether a proof is worth trying: eigenvalues take long, and κ ≥ the ratio of Cholesky's diagonal entries."""
    if not products.representable:
        return False
    first = int(counts.intercept)
    R = cholesky(products.FF)
    return R is not None and diagonal_ratio(R[first:, first:]) < PROVED_CONDITION


def shifted_root(products: Products) -> Triangle | None:
    """Cholesky's R of FᵀF scaled to ones on the diagonal and shifted by k·ε·trace, scaled back; targets at their size.

    The shift keeps rounding from making the matrix indefinite, and F·R⁻¹ is still well enough conditioned
    that its own Gram matrix loses nothing (Fukaya et al., 2020). None where no such R exists.
    """
    if not products.representable:
        return None
    xp = array_namespace(products.FF)
    d = products.squares**0.5
    k = d.shape[0]  # also the trace of the scaled matrix
    eye = xp.eye(k, dtype=xp.float64, device=device_of(d))
    R = cholesky(products.FF / d / d[:, None] + k * EPS * k * eye)
    if R is None:
        return None
    size = xp.where(products.TT > 0.0, products.TT**0.5, xp.ones_like(products.TT))
    return Triangle(R * d, xp.matrix_transpose(transposed_root(products.FT / d[:, None], R)), size)


def _centred(products: Products, first: int) -> tuple[Products, Array]:
    """The products about the mean, and the squares of the part that was subtracted, of features and targets."""
    if not first:
        return products, array_namespace(products.FF).concat([0.0 * products.squares, 0.0 * products.TT])
    FF = products.FF
    FT = products.FT
    # One step of Cholesky's algorithm, which eliminates the column of ones: FF[0, 0] = Σw.
    H = FF[0, 1:] / FF[0, 0] ** 0.5
    T = FT[0, :] / FF[0, 0] ** 0.5
    about = Products(FF[1:, 1:] - H * H[:, None], FT[1:, :] - H[:, None] * T, products.TT - T * T)
    return about, array_namespace(FF).concat([H * H, T * T])


def _products(H: Array, rest: Array, first: int, scratch: np.ndarray | None) -> GramArrays:
    """HᵀH, Hᵀ[1 | T], 1ᵀ[1 | T] and the squares of T, where `rest` is [1 | T] and the ones are its first columns.

    Where H lies in `scratch` with room next to it, one product gives all, and H is read once.
    """
    n, M = H.shape
    width = M + rest.shape[1]
    if scratch is not None and width <= scratch.shape[1] and np.may_share_memory(H, scratch):
        A = scratch[:n, :width]
        A[:, M:] = rest
        P = A.T @ A
        return P[:M, :M], P[:M, M:], P[M : M + first, M:], np.diagonal(P)[M + first :].copy()
    xp = array_namespace(H)
    Ht = xp.matrix_transpose(H)
    ones = rest[:, :first]
    T = rest[:, first:]
    return xp.matmul(Ht, H), xp.matmul(Ht, rest), xp.matmul(xp.matrix_transpose(ones), rest), xp.sum(T * T, axis=0)


# ------------------------------------------------------------------------------
# `PreconditionedSums`: the Gram matrix of A·R₁⁻¹, good to κ ≈ 10¹² where R₁ is nearly the factor of A.


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
        """The sums of no rows yet, with R₁ of a first block by reflections; None if R₁ is too ill conditioned."""
        first = Factor.fold([block], intercept=intercept)
        triangle = first.triangle
        n_rows, k = triangle.R.shape
        if n_rows < k or not diagonal_ratio(triangle.R) < REFINED_CONDITION:
            return None
        xp = array_namespace(triangle.R)
        # Targets keep their size: their residual in the first block may well be zero, and nothing can be divided by it.
        size = xp.sqrt(xp.sum(triangle.QtT**2, axis=0) + triangle.left**2)
        R1 = Triangle(triangle.R, triangle.QtT, xp.where(size > 0.0, size, xp.ones_like(size)))
        return cls.about(R1, first.counts)

    def add(self, block: Encoded, scratch: np.ndarray | None = None) -> PreconditionedSums:
        """The sums with one more block; `scratch` is memory for its features, in which they may lie."""
        R1 = self.R1
        counts = self.counts
        rows = Encoded.of(*block)
        F, T = rows.design(counts.shift, counts.intercept, scratch)
        xp = array_namespace(F)
        # Without weights and intercept F is H itself, which may be a user's array.
        may_overwrite = F is not rows.H or (scratch is not None and np.shares_memory(F, scratch))
        F = times_inverse(F if may_overwrite else xp.asarray(F, copy=True), R1.R)
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
    """Whether A·R₁⁻¹ is well conditioned, that is, all rows are like the first block, which gave R₁."""
    lam = array_namespace(sums.products.FF).linalg.eigvalsh(sums.products.FF)
    return float(lam[0]) * ALIKE_CONDITION**2 > float(lam[-1])


def _residual_is_certain(sums: PreconditionedSums, R2: Triangle) -> bool:
    """Whether ‖r‖ is right to 10⁻¹⁰·‖T‖, or as right as by reflections, although it is a difference in YᵀY.

    A good R₁ explains nearly all of the targets, and then nothing is lost. After a first block with targets
    unlike the others, nearly nothing may be explained.
    """
    R = R2.times(sums.R1)
    xp = array_namespace(R.R)
    first = int(sums.counts.intercept)
    # In units in which no square over- or underflows.
    unit = xp.max(xp.abs(R.R), axis=0)
    unit = xp.where(unit > 0.0, unit, xp.ones_like(unit))
    unit_T = xp.max(xp.abs(R.QtT), axis=0)
    unit_T = xp.where(unit_T > R.left, unit_T, R.left)
    unit_T = xp.where(unit_T > 0.0, unit_T, xp.ones_like(unit_T))
    features = R.R / unit
    targets = R.QtT / unit_T
    left = R.left / unit_T
    rounding = rounding_over_eps(sums.products, R2.R, xp.matrix_transpose(R2.QtT))
    error = EPS * rounding * (sums.R1.left / unit_T) ** 2
    # Reflections, too, move each column by ε of its size.
    weights = least_squares_weights(features, xp.matrix_transpose(targets))
    unavoidable = EPS * xp.sqrt(xp.matmul(weights**2, xp.sum(features**2, axis=0)))
    residual = left**2
    total = residual + xp.sum(targets[first:, :] ** 2, axis=0)
    allowed = RESIDUAL_ERROR * xp.sqrt(total) + unavoidable
    return bool(xp.all(xp.sqrt(residual + error) - xp.sqrt(residual) <= allowed))
