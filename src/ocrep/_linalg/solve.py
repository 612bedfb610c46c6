"""Choose the route from rows to factors (Gram matrix, preconditioned, reflections), and run it."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from ocrep._linalg.counts import Counts
from ocrep._linalg.factor import Factor
from ocrep._linalg.folds import FoldFactors, FoldPlan, known_folds
from ocrep._linalg.gram import (
    FoldGrams,
    FoldPreconditioned,
    FoldSums,
    GramSums,
    PreconditionedSums,
    Sums,
    are_alike,
    is_promising,
    proved,
    refined,
    shifted_root,
)
from ocrep._linalg.held_out import Route
from ocrep._linalg.parallel import at_once, one_blas_thread
from ocrep._linalg.passes import FactorWork, FoldFactorsWork, Passes, SumsWork, Work, counts
from ocrep._linalg.spectrum import Spectrum
from ocrep._linalg.triangle import Triangle

SOLVERS = ("auto", "gram", "qr")

# So many folds would need as many eigenvalue problems for their proofs, and most hold too few rows for one.
MANY_FOLDS = 20
# So many rows per feature show whether the Gram matrix is promising.
_FEW_ROWS = 2
# Factors of so few features are made as fast by one thread as by several.
_NARROW = 512


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """The factor of the rows and, if they were asked for, one per fold."""

    whole: Factor | None
    """The factor of all rows, where it is not simply the merge of the folds'."""
    folds: FoldFactors | None = None
    spectrum: Spectrum | None = None
    """The spectrum of the factor, where the route had to compute it."""
    route: Route = "reflections"
    """Which route gave the factors."""

    @property
    def factor(self) -> Factor:
        """The factor of all rows."""
        if self.whole is not None:
            return self.whole
        assert self.folds is not None
        return self.folds.merged()


def solve(passes: Passes, *, intercept: bool, solver: str = "auto", folds: FoldPlan | None = None) -> Solved:
    """Factor rows, and each of their folds, by the fastest route that is right.

    1. Gram matrices, if their own spectra and residuals prove γ right to 10⁻⁶ and the residuals to 10⁻¹⁰·‖T‖.
    2. If the first block already shows that they will not: one pass over A·R₁⁻¹, R₁ from that block by reflections.
    3. If only the whole shows it: a second pass over A·R₁⁻¹, R₁ from the Gram matrix (Cholesky-QR with a shift).
    4. Beyond κ ≈ 10¹², or if the first block was unlike the others: Householder reflections, block by block. Rows
       that make up a single block go there at once.

    With folds, each row belongs to one of them, so their matrices cost as much as one; the proofs must hold for every
    fold's complement too. `solver="gram"` takes route 1 or raises; `solver="qr"` takes route 4, the only one that reads
    rows just once.
    """
    run = _Run(passes, intercept, folds)
    found = None
    if solver != "qr":
        start = run.start(solver)
        if isinstance(start, GramSums):
            found = run.by_gram(start, solver)
        elif start is not None:
            found = run.by_first_block(start)
    return found or run.by_reflections()


def reflections(intercept: bool, plan: FoldPlan | None) -> FactorWork | FoldFactorsWork:
    """What reflections accumulate: the one route whose summaries of parts need no second look at the rows."""
    return FactorWork(intercept) if plan is None else FoldFactorsWork(intercept, plan)


def of_reflections(summary: Factor | FoldFactors) -> Solved:
    """What reflections have found, from the summary of all rows."""
    return Solved(summary) if isinstance(summary, Factor) else Solved(None, summary)


class _Run:
    """One attempt to factor the rows: a first block shows which route is promising."""

    def __init__(self, passes: Passes, intercept: bool, plan: FoldPlan | None) -> None:
        self._passes, self._intercept, self._plan = passes, intercept, plan

    def start(self, solver: str) -> GramSums | PreconditionedSums | None:
        """The summary of the first rows on the route to take; None for reflections."""
        checkpoint = self._passes.checkpoint
        stage = None if checkpoint is None else checkpoint.stage
        many = self._plan is not None and self._plan.n_folds > MANY_FOLDS
        if stage not in (None, FoldGrams, FoldPreconditioned) or many:
            return None
        block, alone = self._passes.head()
        if block is None or (solver == "auto" and alone and stage is None):
            return None
        with self._few_threads():
            return self._first(block, alone, solver, stage)

    def _few_threads(self) -> AbstractContextManager[None]:
        """BLAS on one thread where the problems are small."""
        return one_blas_thread() if (self._passes.n_features or math.inf) <= _NARROW else nullcontext()

    def _first(
        self, block: tuple[Any, ...], alone: bool, solver: str, stage: type[Any] | None
    ) -> GramSums | PreconditionedSums | None:
        first = self._passes.encode(self._few_rows(block))
        if solver == "gram" and alone and first[0].shape[0] < first[0].shape[1]:
            raise ValueError(
                f"solver='gram' cannot promise γ to 1e-6 here: {first[0].shape[0]} rows are fewer than "
                f"{first[0].shape[1]} features, and HᵀH is singular. Use solver='auto', which then uses HHᵀ."
            )
        gram = GramSums.of(first, intercept=self._intercept)
        if stage is FoldGrams or (stage is None and (solver == "gram" or is_promising(gram.products, gram.counts))):
            return gram
        return PreconditionedSums.from_first_block(self._passes.encode(block), intercept=self._intercept)

    def _few_rows(self, block: tuple[Any, ...]) -> tuple[Any, ...]:
        """Enough rows of a first block to see whether the Gram matrix is promising; nobody shares this work."""
        width = self._passes.n_features
        few = block if width is None else tuple(None if v is None else v[: _FEW_ROWS * width, ...] for v in block)
        return few if counts(few) else block

    def by_gram(self, first: GramSums, solver: str) -> Solved | None:
        """Route 1, or 3 where the sums prove too little."""
        work = SumsWork(FoldGrams, GramSums(None, first.counts.without_rows()), self._plan)
        grams = self._passes.accumulate(work)
        if self._passes.checkpoint is not None:
            self._passes.checkpoint.save(grams)
        found = self._solved(grams, proved, "gram")
        if found is None and solver == "gram":
            raise ValueError(
                "solver='gram' cannot promise γ to 1e-6 here: H is too ill conditioned, or the fit too close, for the "
                "products HᵀH and HᵀT alone. Use solver='auto', which then reads the rows again."
            )
        total = grams.total()
        R1 = shifted_root(total.products) if found is None else None
        return found if R1 is None else self._preconditioned(R1, total.counts, saved=False)

    def by_first_block(self, first: PreconditionedSums) -> Solved | None:
        """Route 2: R₁ from the first block, one pass over all rows."""
        return self._preconditioned(first.R1, first.counts, alike=True)

    def by_reflections(self) -> Solved:
        """Route 4: the slow one that is always right."""
        work: Work[Any] = reflections(self._intercept, self._plan)
        return of_reflections(self._passes.accumulate(work))

    def _preconditioned(
        self, R1: Triangle, counts: Counts, *, alike: bool = False, saved: bool = True
    ) -> Solved | None:
        work = SumsWork(FoldPreconditioned, PreconditionedSums.about(R1, counts), self._plan)
        sums = self._passes.accumulate(work, saved=saved)
        judged = [sums.total(), *(sums.filled() if self._plan else ())]
        if (alike or self._plan) and not all(map(are_alike, judged)):
            return None
        return self._solved(sums, refined, "refined")

    def _solved(
        self, sums: FoldSums[Sums], proof: Callable[[Sums], tuple[Factor, Spectrum] | None], route: Route
    ) -> Solved | None:
        """The factors of all rows, of each fold and of its complement; None unless all of them prove themselves."""
        if self._plan is None:
            with self._few_threads():
                found = proof(sums.total())
            return None if found is None else Solved(found[0], None, found[1], route)
        n_filled = len(sums.filled())
        if n_filled < 2:
            return None
        tried: list[Any] = [sums.total(), *sums.complements()]
        calls: list[Callable[[], Any]] = [partial(proof, some) for some in tried]
        whole, *rest = at_once(lambda call: call(), [*calls, *(some.factor for some in sums.filled())])
        known = [found for found in rest[:n_filled] if found is not None]
        own = iter(rest[n_filled:])
        factors = tuple(next(own) if some.counts.n_rows else None for some in sums.sums)
        if whole is None or len(known) < n_filled or any(found is None for found in rest[n_filled:]):
            return None
        n_read = sum(s.counts.n_seen for s in sums.sums)
        return Solved(whole[0], known_folds(self._plan, factors, n_read, known), whole[1], route)
