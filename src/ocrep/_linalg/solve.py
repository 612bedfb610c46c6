"""The routes from rows to a factor: which one, and the one that a first block shows the way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any

from ocrep._linalg.arrays import Array, array_namespace, device_of
from ocrep._linalg.factor import Factor
from ocrep._linalg.gram import (
    REFINED_CONDITION,
    Blocks,
    Counting,
    Products,
    by_reflections,
    diagonal_ratio,
    gram_of_quotient,
    if_refined,
)
from ocrep._linalg.row_block import RowBlock
from ocrep._linalg.spectrum import Spectrum

ROUTES = ("auto", "gram", "qr")
# Rows like those of the first block leave κ(A·R₁⁻¹) near 1; up to here its Gram matrix costs σ_p at most 10⁻¹⁰.
ALIKE_CONDITION = 1e3


def factor_rows(blocks: Blocks, *, intercept: bool, route: str = "auto") -> tuple[Factor, Spectrum]:
    """Factor rows that can be read again, `blocks()` giving `(H, T, sample_weight)`; one pass if that is enough.

    1. The Gram matrix, if its own spectrum and residual prove γ right to 10⁻⁶ and the residual to 10⁻¹⁰·‖T‖.
    2. If already the first block shows that it will not: one pass over A·R₁⁻¹, R₁ from that block by reflections.
    3. If only the whole shows it: a second pass over A·R₁⁻¹, R₁ from the Gram matrix (Cholesky-QR with a shift).
    4. Beyond κ ≈ 10¹², or if the first block was not like the others: Householder reflections, block by block. Rows
       that make up a single block go there at once.
    """
    stream = blocks()
    head = [block for _, block in zip(range(2), stream, strict=False)]
    if route == "qr" or (route == "auto" and len(head) < 2):
        return by_reflections(chain(head, stream), intercept)
    products = Products.adding(None, head[0], intercept=intercept) if head else None
    if route == "auto" and products is not None and products.gram().hopeless:
        return _led_by_the_first(chain(head, stream), intercept) or by_reflections(blocks(), intercept)
    products = Products.of(chain(head[1:], stream), intercept=intercept, start=products)
    return products.gram().factored(blocks, route) or by_reflections(blocks(), intercept)


@dataclass(frozen=True, slots=True, eq=False)
class Led:
    """A factor in the making, the first block leading: R₁ of it, and the Gram matrix of A·R₁⁻¹ of the rows so far."""

    R1: Array
    G: Array
    counts: Factor

    @classmethod
    def adding(cls, so_far: Led | None, block: tuple[Any, ...], *, intercept: bool) -> Led | None:
        """Add a block `(H, T, sample_weight)`; None if a first block cannot lead."""
        rows = RowBlock.of(*block)
        if so_far is None:
            R1 = _leader(Factor.of(*block[:2], sample_weight=rows.weight, intercept=intercept))
            if R1 is None:
                return None
            so_far = cls(R1, 0.0 * R1, Factor.empty(rows, intercept))
        counts = so_far.counts.counting(rows)
        return cls(so_far.R1, gram_of_quotient([(rows, counts.shift)], so_far.R1, intercept, so_far.G), counts)

    def factored(self) -> tuple[Factor, Spectrum] | None:
        """R = R₂R₁, R₂ of the Gram matrix; None if that proves nothing."""
        xp, counts, G = array_namespace(self.R1), self.counts, self.G
        k = G.shape[0] - counts.n_targets
        lam = xp.linalg.eigvalsh(G[:k, :k])
        if not float(lam[0]) * ALIKE_CONDITION**2 > float(lam[-1]):
            return None
        return if_refined(counts, G, self.R1)


def _led_by_the_first(blocks: Iterable[tuple[Any, ...]], intercept: bool) -> tuple[Factor, Spectrum] | None:
    """R in one pass, R₁ of the first block leading; None if that proves nothing."""
    stream = iter(blocks)
    led = Led.adding(None, next(stream), intercept=intercept)
    if led is None:
        return None
    rows = Counting(stream, intercept, led.counts)
    G = gram_of_quotient(rows, led.R1, intercept, led.G)
    assert rows.counts is not None
    return Led(led.R1, G, rows.counts).factored()


def _leader(first: Factor) -> Array | None:
    """The first block's R, with targets left at their size: their own residual there may well be zero."""
    xp = array_namespace(first.R)
    k = first.n_features + int(first.intercept)
    features = first.R[: min(k, first.R.shape[0]), :]
    if features.shape[0] < k or not diagonal_ratio(features[:, :k]) < REFINED_CONDITION:
        return None
    targets = first.R[:, k:]
    size = xp.sqrt(xp.sum(targets * targets, axis=0))
    size = xp.where(size > 0.0, size, xp.ones_like(size))
    zeros = xp.zeros((first.n_targets, k), dtype=xp.float64, device=device_of(size))
    eye = xp.eye(first.n_targets, dtype=xp.float64, device=device_of(size))
    return xp.concat([features, xp.concat([zeros, size * eye], axis=1)])
