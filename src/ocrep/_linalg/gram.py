"""The fast route to a factor: the Gram matrix of the rows, trusted only as far as it proves itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from ocrep._linalg.arrays import (
    EPS,
    SMALLEST,
    Array,
    array_namespace,
    cholesky,
    device_of,
    times_inverse,
)
from ocrep._linalg.blocks import BLOCK_ENTRIES
from ocrep._linalg.factor import Factor
from ocrep._linalg.parallel import in_lanes, thread_count
from ocrep._linalg.row_block import RowBlock
from ocrep._linalg.spectrum import Spectrum
from ocrep._linalg.triangular_root import doubt_over_eps, least_squares_weights, root

# Squaring H costs σ_p a relative error of about ε·κ²/2: 3·10⁻⁷ at this κ, so that γ = σ₁σ_p is right to 10⁻⁶.
PROVED_CONDITION = 5e4
# One pass of Cholesky-QR with the shift below is as good as reflections up to here.
REFINED_CONDITION = 1e12
# ‖r‖ may be wrong by this much of ‖T‖, and rss = ‖T‖² − … is not read off a difference smaller than that.
RESIDUAL_ERROR, RESIDUAL_LEFT = 1e-10, 1e-4

# All lanes together hold at most this much, about 380 MB, and each so many copies of its block.
LANE_ENTRIES = 48 * 2**20
_COPIES = 5
# Beyond this many columns a block keeps all threads of BLAS busy by itself.
WIDEST_LANE = 1024

Blocks = Callable[[], Iterator[tuple[Any, ...]]]
Sums: TypeAlias = tuple[Array, Array, Array]


def by_reflections(blocks: Iterable[tuple[Any, ...]], intercept: bool) -> tuple[Factor, Spectrum]:
    """The slow route that is always right, on several lanes that are merged in the end."""

    def absorb(so_far: Factor | None, block: tuple[Any, ...]) -> Factor:
        return Factor.fold([block], intercept=intercept, start=so_far)

    blocks, lanes = lanes_for(blocks)
    found = in_lanes(absorb, blocks, lanes)
    if not found:
        raise no_blocks()
    factor = reduce(Factor.merge, found)
    return factor, factor.spectrum()


def no_blocks() -> ValueError:
    """What to raise when there is nothing to factor."""
    return ValueError("There are no row blocks to factor: give at least one (H, T) pair.")


def lanes_for(blocks: Iterable[tuple[Any, ...]]) -> tuple[Iterator[tuple[Any, ...]], int]:
    """The blocks, and how many had better be worked on at a time.

    One thread per block scales where several threads in one factorization do not; but wide blocks keep the threads of
    BLAS busy by themselves, and would need M² numbers in every lane, and a GPU is one lane.
    """
    stream = iter(blocks)
    first = next(stream, None)
    if first is None:
        return iter(()), 1
    return chain([first], stream), _lanes(first[0])


def _lanes(array: Array) -> int:
    if not isinstance(array, np.ndarray) or array.shape[1] > WIDEST_LANE:
        return 1
    return max(1, min(thread_count(), LANE_ENTRIES // (_COPIES * max(BLOCK_ENTRIES, array.size))))


@dataclass(frozen=True, slots=True, eq=False)
class Gram:
    """AᵀA of A = √w·[1 | H − s | T − s], with the counts and the shift of a factor that has no R yet."""

    matrix: Array
    counts: Factor

    @classmethod
    def of(cls, blocks: Iterable[tuple[Any, ...]], *, intercept: bool) -> Gram:
        """Accumulate row blocks, one product HᵀH each."""
        return Products.of(blocks, intercept=intercept).gram()

    def factored(self, blocks: Blocks, route: str) -> tuple[Factor, Spectrum] | None:
        """The factor if this matrix proves itself, or else by one more pass; None if that is not enough either."""
        proved = self.proved()
        if proved is None and route == "gram":
            raise ValueError(
                "solver='gram' cannot promise γ to 1e-6 here: H is too ill conditioned, or the fit too close, for the "
                "products HᵀH and HᵀT alone. Use solver='auto', which then reads the rows again."
            )
        return proved or self.refined(blocks())

    def proved(self) -> tuple[Factor, Spectrum] | None:
        """The factor and the spectrum by Cholesky and eigenvalues, or None if squaring may have cost too much."""
        if self.hopeless:
            return None
        xp = array_namespace(self.matrix)
        M, first = self.counts.n_features, int(self.counts.intercept)
        G, of_mean = _centred(self.matrix, first)
        lam, V = xp.linalg.eigh(G[:M, :M])
        # Rounding is relative to what was summed, the part of the mean included.
        scale = float(lam[-1]) + float(xp.sum(of_mean[:M]))
        if not float(lam[0]) * PROVED_CONDITION**2 > scale:
            return None
        sigma, Vt = xp.flip(xp.sqrt(lam)), xp.flip(xp.matrix_transpose(V), axis=0)
        total = xp.linalg.diagonal(G)[M:]
        size = xp.sqrt(xp.where(total > 0.0, total, xp.ones_like(total)))
        z = xp.matmul(Vt, G[:M, M:]) / sigma[:, None] / size
        left = 1.0 - xp.sum(z * z, axis=0)
        # An error E of HᵀH moves the rss by wᵀEw, w the unregularized weights. Its entries are nearly independent
        # and of size ε·σ₁²/M, so that ‖E‖ is about 2√M of them. All this in units of ‖T‖².
        moved = scale * min(1.0, 2.0 / M**0.5) * xp.sum((z / sigma[:, None]) ** 2, axis=0)
        error = EPS * (moved + 1.0 + of_mean[M:] / size / size)
        certain = (error <= 2.0 * RESIDUAL_ERROR * xp.sqrt(xp.abs(left))) & (left >= RESIDUAL_LEFT)
        R = root(self.matrix, self.counts.n_targets)
        if R is None or not bool(xp.all(certain | (total == 0.0))):
            return None
        factor = replace(self.counts, R=R)
        return factor, factor.with_svd(sigma, Vt, z * size, total * left, discarded=sigma[:0])

    def refined(self, blocks: Iterable[tuple[Any, ...]]) -> tuple[Factor, Spectrum] | None:
        """R = R₂R₁ from one more pass, R₁ of this matrix and R₂ of the rows of A·R₁⁻¹; None beyond κ ≈ 10¹²."""
        R1 = self._shifted_root() if self._representable else None
        if R1 is None:
            return None
        counts = self.counts
        rows = ((RowBlock.of(*block), counts.shift) for block in blocks)
        return if_refined(counts, gram_of_quotient(rows, R1, counts.intercept), R1)

    @property
    def hopeless(self) -> bool:
        """Whether it is clear without eigenvalues that nothing will be proved: κ ≥ the ratio of diagonal entries."""
        if not self._representable:
            return True
        M, first = self.counts.n_features, int(self.counts.intercept)
        R = cholesky(self.matrix[: first + M, : first + M])
        return R is None or not diagonal_ratio(R[first:, first:]) < PROVED_CONDITION

    def _shifted_root(self) -> Array | None:
        """Cholesky's R of the matrix scaled to ones on the diagonal and shifted by k·ε·trace, scaled back.

        The shift keeps rounding from making the matrix indefinite, and A·R₁⁻¹ is still well enough conditioned
        that its own Gram matrix loses nothing (Fukaya et al., 2020).
        """
        xp = array_namespace(self.matrix)
        k = self.matrix.shape[0]
        d = xp.sqrt(xp.linalg.diagonal(self.matrix))
        d = xp.where(d > 0.0, d, xp.ones_like(d))  # a target that is zero
        eye = xp.eye(k, dtype=xp.float64, device=device_of(d))
        R = cholesky(self.matrix / d / d[:, None] + k * EPS * k * eye)
        return None if R is None else R * d

    @property
    def _representable(self) -> bool:
        """Whether no square over- or underflowed, and no feature is zero."""
        xp = array_namespace(self.matrix)
        squares = xp.linalg.diagonal(self.matrix)
        features = squares[: squares.shape[0] - self.counts.n_targets]
        finite = bool(xp.all(xp.isfinite(self.matrix))) and bool(xp.all(squares < 1.0 / SMALLEST**2))
        return finite and bool(xp.all(features > SMALLEST**2))


class Counting:
    """Blocks as checked rows with the shift they are taken about; `counts` is that of the rows that went by."""

    def __init__(self, blocks: Iterable[tuple[Any, ...]], intercept: bool, counts: Factor | None = None) -> None:
        self._blocks, self._intercept, self.counts = blocks, intercept, counts

    def __iter__(self) -> Iterator[tuple[RowBlock, Array]]:
        for block in self._blocks:
            rows = RowBlock.of(*block)
            counts = Factor.empty(rows, self._intercept) if self.counts is None else self.counts
            with np.errstate(invalid="ignore", over="ignore"):
                self.counts = counts.counting(rows)
            yield rows, self.counts.shift


@dataclass(frozen=True, slots=True, eq=False)
class Products:
    """A Gram matrix in the making: HᵀH, Hᵀ[1 | T] and [1 | T]ᵀ[1 | T] of the rows so far, and their counts."""

    sums: Sums
    counts: Factor

    @classmethod
    def of(cls, blocks: Iterable[tuple[Any, ...]], *, intercept: bool, start: Products | None = None) -> Products:
        """Add up all blocks, on several lanes, to what `start` holds."""
        blocks, lanes = lanes_for(blocks)
        rows = Counting(blocks, intercept, None if start is None else start.counts)

        def add(sums: Sums | None, item: tuple[RowBlock, Array]) -> Sums:
            return _add(sums, item, intercept)

        found = in_lanes(add, rows, lanes, None if start is None else start.sums)
        if rows.counts is None:
            raise no_blocks()
        with np.errstate(invalid="ignore", over="ignore"):
            return cls(reduce(_sum, found), rows.counts)

    @classmethod
    def adding(cls, so_far: Products | None, block: tuple[Any, ...], *, intercept: bool) -> Products:
        """Add a block `(H, T, sample_weight)` to the sums so far, which are changed in place."""
        rows = Counting([block], intercept, None if so_far is None else so_far.counts)
        (item,) = rows
        assert rows.counts is not None
        return cls(_add(None if so_far is None else so_far.sums, item, intercept), rows.counts)

    def gram(self) -> Gram:
        """The matrix, now that all rows are in it."""
        return Gram(_assembled(*self.sums, first=int(self.counts.intercept)), self.counts)


def gram_of_quotient(
    rows: Iterable[tuple[RowBlock, Array]], R: Array, intercept: bool, start: Array | None = None
) -> Array:
    """YᵀY of Y = A·R⁻¹, for rows with the shift they are taken about, on several lanes; added to `start`."""
    xp = array_namespace(R)

    def add(G: Array | None, item: tuple[RowBlock, Array]) -> Array:
        Y = times_inverse(item[0].design(item[1], intercept), R)
        product = xp.matmul(xp.matrix_transpose(Y), Y)
        return product if G is None else G + product

    return reduce(lambda one, other: one + other, in_lanes(add, rows, _lanes(R), start))


def _sum(one: Sums, other: Sums) -> Sums:
    return (one[0] + other[0], one[1] + other[1], one[2] + other[2])


def _add(sums: Sums | None, item: tuple[RowBlock, Array], intercept: bool) -> Sums:
    """HᵀH, Hᵀ[1 | T] and [1 | T]ᵀ[1 | T] of rows about a shift, added to what is there in place."""
    rows, shift = item
    xp = array_namespace(shift)
    # Rows that are not finite make the sums NaN, and the reflections that are then tried say so.
    with np.errstate(invalid="ignore", over="ignore"):
        H, beside = rows.parts(shift, intercept)
        products = tuple(xp.matmul(xp.matrix_transpose(a), b) for a, b in ((H, H), (H, beside), (beside, beside)))
        if sums is None:
            return products
        for total, product in zip(sums, products, strict=True):
            total += product
    return sums


def _assembled(HH: Array, Hb: Array, bb: Array, *, first: int) -> Array:
    """The products in the order of [1 | H | T]."""
    xp = array_namespace(HH)
    bH = xp.matrix_transpose(Hb)
    upper = xp.concat([bb[:first, :first], bH[:first, :], bb[:first, first:]], axis=1)
    middle = xp.concat([Hb[:, :first], HH, Hb[:, first:]], axis=1)
    lower = xp.concat([bb[first:, :first], bH[first:, :], bb[first:, first:]], axis=1)
    return xp.concat([upper, middle, lower])


def _centred(G: Array, first: int) -> tuple[Array, Array]:
    """The Gram matrix about the mean, and the diagonal of what was taken away."""
    if not first:
        return G, 0.0 * G[0, :]
    away = G[0, 1:] / G[0, 0] ** 0.5
    return G[1:, 1:] - away * away[:, None], away * away


def if_refined(counts: Factor, G: Array, R1: Array) -> tuple[Factor, Spectrum] | None:
    """R = R₂R₁, R₂ of the Gram matrix G of A·R₁⁻¹; None where that may cost more than is allowed."""
    R2 = root(G, counts.n_targets)
    if R2 is None or not _residual_is_certain(G, R2, R1, counts):
        return None
    factor = replace(counts, R=array_namespace(R1).matmul(R2, R1))
    spectrum = factor.spectrum()
    good = spectrum.rank == factor.n_features and float(spectrum.condition()) <= REFINED_CONDITION
    return (factor, spectrum) if good else None


def _residual_is_certain(G: Array, R2: Array, R1: Array, counts: Factor) -> bool:
    """Whether ‖r‖ is right to 10⁻¹⁰·‖T‖, or as reflections would have it, although it is read off G = YᵀY, Y = A·R₁⁻¹.

    R₁ leaves little of the targets in Y if it is good, and then nothing is lost; but after a first block whose
    targets were not like those of the others nearly all may be left.
    """
    xp = array_namespace(G)
    k, first = G.shape[0] - counts.n_targets, int(counts.intercept)
    R = xp.matmul(R2, R1)
    # In units in which no square over- or underflows.
    unit = xp.max(xp.abs(R), axis=0)
    unit = xp.where(unit > 0.0, unit, xp.ones_like(unit))
    R, R1 = R / unit, R1 / unit
    doubt = doubt_over_eps(G, R2[:k, :k], xp.matrix_transpose(R2[:k, k:]))
    error = EPS * xp.matmul(xp.sqrt(doubt), xp.abs(R1[k:, k:])) ** 2
    # Reflections, too, move each column by ε of its size.
    weights = least_squares_weights(R[:k, :k], xp.matrix_transpose(R[:k, k:]))
    unavoidable = EPS * xp.sqrt(xp.matmul(weights**2, xp.sum(R[:, :k] ** 2, axis=0)))
    left, size = (xp.sum(R[start:, k:] ** 2, axis=0) for start in (k, first))
    allowed = RESIDUAL_ERROR * xp.sqrt(size) + unavoidable
    return bool(xp.all(xp.sqrt(left + error) - xp.sqrt(left) <= allowed))


def diagonal_ratio(R: Array) -> float:
    """Of the largest to the smallest entry: a lower bound of the condition number of a triangle."""
    xp = array_namespace(R)
    entries = xp.abs(xp.linalg.diagonal(R))
    least = float(xp.min(entries))
    return float(xp.max(entries)) / least if least > 0.0 else float("inf")
