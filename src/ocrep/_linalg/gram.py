"""`GramSums`: HᵀH and HᵀT of the rows, trusted only as far as they prove themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ocrep._linalg.arrays import EPS, SMALLEST, Array, array_namespace, cholesky, device_of
from ocrep._linalg.blocks import Encoded
from ocrep._linalg.counts import Counts, RowBlock
from ocrep._linalg.factor import Factor
from ocrep._linalg.spectrum import Spectrum, StoredVectors, spectrum_of
from ocrep._linalg.triangular_root import diagonal_ratio, root

# Squaring H costs σ_p a relative error of about ε·κ²/2: 3·10⁻⁷ at this κ, so that γ = σ₁σ_p is right to 10⁻⁶.
PROVED_CONDITION = 5e4
# ‖r‖ may be wrong by this much of ‖T‖, and rss = ‖T‖² − … is not read off a difference smaller than that.
RESIDUAL_ERROR, RESIDUAL_SHARE = 1e-10, 1e-4

Sums: TypeAlias = tuple[Array, Array, Array]


@dataclass(frozen=True, slots=True, eq=False)
class GramSums:
    """HᵀH, Hᵀ[1 | T] and [1 | T]ᵀ[1 | T] of the rows so far, about the shift of their counts."""

    sums: Sums | None
    counts: Counts

    @classmethod
    def of(cls, block: Encoded, *, intercept: bool) -> GramSums:
        """The sums of a first block, whose mean becomes the shift."""
        return cls(None, Counts.none(RowBlock.of(*block), intercept)).add(block)

    def add(self, block: Encoded) -> GramSums:
        """The sums with one more block; arrays that this object holds are changed in place."""
        rows = RowBlock.of(*block)
        # Rows that are not finite make the sums NaN, and the reflections that are then tried say so.
        with np.errstate(invalid="ignore", over="ignore"):
            counts = self.counts.add(rows)
            H, rest = rows.parts(counts.shift, counts.intercept)
            xp = array_namespace(H)
            products = tuple(xp.matmul(xp.matrix_transpose(a), b) for a, b in ((H, H), (H, rest), (rest, rest)))
            if self.sums is None:
                return GramSums(products, counts)
            for total, product in zip(self.sums, products, strict=True):
                total += product
        return GramSums(self.sums, counts)

    def merge(self, other: GramSums) -> GramSums:
        """The sums over the rows of both, which must be about the same shift."""
        counts = self.counts.merge(other.counts)
        if self.sums is None or other.sums is None:
            return GramSums(self.sums if other.sums is None else other.sums, counts)
        with np.errstate(invalid="ignore", over="ignore"):
            a, b = self.sums, other.sums
            return GramSums((a[0] + b[0], a[1] + b[1], a[2] + b[2]), counts)

    @property
    def matrix(self) -> Array:
        """The products in the order of [1 | H | T]."""
        assert self.sums is not None
        HH, Hb, bb = self.sums
        first = int(self.counts.intercept)
        xp = array_namespace(HH)
        bH = xp.matrix_transpose(Hb)
        upper = xp.concat([bb[:first, :first], bH[:first, :], bb[:first, first:]], axis=1)
        middle = xp.concat([Hb[:, :first], HH, Hb[:, first:]], axis=1)
        lower = xp.concat([bb[first:, :first], bH[first:, :], bb[first:, first:]], axis=1)
        return xp.concat([upper, middle, lower])

    def factor(self) -> Factor | None:
        """The factor by Cholesky, not proved to be right; None where the matrix is not positive definite."""
        matrix = self.matrix
        R = root(matrix, self.counts.n_targets) if is_representable(matrix, self.counts.n_targets) else None
        return None if R is None else Factor(R, self.counts)

    def to_arrays(self) -> dict[str, np.ndarray]:
        return {**{f"sum{i}": np.asarray(s) for i, s in enumerate(self.sums or ())}, **self.counts.to_arrays()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> GramSums:
        sums = (arrays["sum0"], arrays["sum1"], arrays["sum2"]) if "sum0" in arrays else None
        return cls(sums, Counts.from_arrays(arrays))


def proved(gram: GramSums) -> tuple[Factor, Spectrum] | None:
    """The factor and the spectrum by Cholesky and eigenvalues, or None if squaring may have cost too much."""
    matrix, counts = gram.matrix, gram.counts
    if not is_promising(matrix, counts):
        return None
    xp = array_namespace(matrix)
    M = counts.n_features
    G, of_mean = _centred(matrix, int(counts.intercept))
    lam, V = xp.linalg.eigh(G[:M, :M])
    # Rounding is relative to what was summed, the part of the mean included.
    scale = float(lam[-1]) + float(xp.sum(of_mean[:M]))
    if not float(lam[0]) * PROVED_CONDITION**2 > scale:
        return None
    sigma, Vt = xp.flip(xp.sqrt(lam)), xp.flip(xp.matrix_transpose(V), axis=0)
    total = xp.linalg.diagonal(G)[M:]
    size = xp.sqrt(xp.where(total > 0.0, total, xp.ones_like(total)))
    z = xp.matmul(Vt, G[:M, M:]) / sigma[:, None] / size
    unexplained = 1.0 - xp.sum(z * z, axis=0)
    # An error E of HᵀH moves the rss by wᵀEw, w the unregularized weights. Its entries are nearly independent
    # and of size ε·σ₁²/M, so that ‖E‖ is about 2√M of them. All this in units of ‖T‖².
    moved = scale * min(1.0, 2.0 / M**0.5) * xp.sum((z / sigma[:, None]) ** 2, axis=0)
    error = EPS * (moved + 1.0 + of_mean[M:] / size / size)
    certain = (error <= 2.0 * RESIDUAL_ERROR * xp.sqrt(xp.abs(unexplained))) & (unexplained >= RESIDUAL_SHARE)
    R = root(matrix, counts.n_targets)
    if R is None or not bool(xp.all(certain | (total == 0.0))):
        return None
    factor, parts = Factor(R, counts), {"sigma": sigma, "right": StoredVectors(Vt), "UtT": z * size}
    return factor, spectrum_of(counts, factor.means(), **parts, residual=total * unexplained, discarded=sigma[:0])


def is_promising(matrix: Array, counts: Counts) -> bool:
    """Whether a proof is worth trying: eigenvalues are dear, and κ ≥ the ratio of Cholesky's diagonal entries."""
    if not is_representable(matrix, counts.n_targets):
        return False
    M, first = counts.n_features, int(counts.intercept)
    R = cholesky(matrix[: first + M, : first + M])
    return R is not None and diagonal_ratio(R[first:, first:]) < PROVED_CONDITION


def is_representable(matrix: Array, n_targets: int) -> bool:
    """Whether no square over- or underflowed, and no feature is zero."""
    xp = array_namespace(matrix)
    squares = xp.linalg.diagonal(matrix)
    features = squares[: squares.shape[0] - n_targets]
    finite = bool(xp.all(xp.isfinite(matrix))) and bool(xp.all(squares < 1.0 / SMALLEST**2))
    return finite and bool(xp.all(features > SMALLEST**2))


def shifted_root(matrix: Array, n_targets: int) -> Array | None:
    """Cholesky's R of the matrix scaled to ones on the diagonal and shifted by k·ε·trace, scaled back.

    The shift keeps rounding from making the matrix indefinite, and A·R⁻¹ is still well enough conditioned
    that its own Gram matrix loses nothing (Fukaya et al., 2020). None where no such R exists.
    """
    if not is_representable(matrix, n_targets):
        return None
    xp = array_namespace(matrix)
    k = matrix.shape[0]
    d = xp.sqrt(xp.linalg.diagonal(matrix))
    d = xp.where(d > 0.0, d, xp.ones_like(d))  # a target that is zero
    eye = xp.eye(k, dtype=xp.float64, device=device_of(d))
    R = cholesky(matrix / d / d[:, None] + k * EPS * k * eye)
    return None if R is None else R * d


def _centred(G: Array, first: int) -> tuple[Array, Array]:
    """The Gram matrix about the mean, and the diagonal of the part that was subtracted."""
    if not first:
        return G, 0.0 * G[0, :]
    mean = G[0, 1:] / G[0, 0] ** 0.5
    return G[1:, 1:] - mean * mean[:, None], mean * mean
