"""Choose the route from rows to factors (Gram matrix, preconditioned, reflections), and run it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from threading import local
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from ocrep._linalg.blocks import Encoded, RowBlocks
from ocrep._linalg.counts import Counts
from ocrep._linalg.factor import Factor
from ocrep._linalg.fold_plan import FoldPlan, split_by_fold
from ocrep._linalg.fold_sums import FoldGrams, FoldPreconditioned, FoldSums, Sums
from ocrep._linalg.folds import FoldFactors, known_folds
from ocrep._linalg.gram import GramSums, is_promising, proved, shifted_root
from ocrep._linalg.parallel import accumulate, at_once, worker_count
from ocrep._linalg.preconditioned import PreconditionedSums, are_alike, refined
from ocrep._linalg.spectrum import Spectrum
from ocrep._linalg.triangle import Triangle

SOLVERS = ("auto", "gram", "qr")

# All workers together hold at most this much, about 370 MB; each holds so many copies of the rows it works on, by sums
# and by reflections.
WORKER_ENTRIES = 44 * 2**20
_COPIES_SUMS, _COPIES_QR = 3, 5
# Beyond this many columns a block keeps all threads of BLAS busy by itself.
WIDEST_SHARED = 1024
# 5 MB of float64: so many features of a block are formed at a time. More would leave the caches, and fewer would cost
# more in calls, for which workers wait for each other.
CHUNK_ENTRIES = 5 * 2**17
# Reflections work on so many rows per column at a time: each time R is triangularized again, which adds a third.
_ROWS_PER_COLUMN = 2
# So many folds would need as many eigenvalue problems for their proofs, and most hold too few rows for one.
MANY_FOLDS = 20


class Mergeable(Protocol):
    """A summary of rows: those of parts merge into that of the whole."""

    def merge(self, other: Self) -> Self:
        """The summary of the rows of both."""

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The summary as NumPy arrays."""

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Self:
        """The summary that `to_arrays` wrote."""


Summary = TypeVar("Summary", bound=Mergeable)
AllSums = TypeVar("AllSums", FoldGrams, FoldPreconditioned)
Step = Callable[["Summary | None", Any], Summary]


class Checkpoint(Protocol):
    """Runs one pass over the rows so that it can be interrupted and continued."""

    @property
    def stage(self) -> type[Any] | None:
        """The kind of summary that was being accumulated when the fit was interrupted; None in a new fit."""

    def run(self, kind: type[Summary], step: Step[Summary]) -> Summary:
        """Accumulate all rows as they are read, saving the summary now and then."""

    def save(self, summary: Mergeable) -> None:
        """Save the summary of all rows, so that a crash in the next pass does not cost this one."""


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """The factor of the rows and, if they were asked for, one per fold; solutions of parts merge."""

    factor: Factor
    folds: FoldFactors | None = None
    spectrum: Spectrum | None = None
    """The spectrum of the factor, where the route had to compute it."""

    def merge(self, other: Solved) -> Solved:
        folds = None if self.folds is None or other.folds is None else self.folds.merge(other.folds)
        return Solved(self.factor.merge(other.factor), folds)


def solve(
    rows: RowBlocks,
    *,
    intercept: bool,
    solver: str = "auto",
    folds: FoldPlan | None = None,
    checkpoint: Checkpoint | None = None,
) -> Solved:
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
    run = _Run(rows, intercept, folds, checkpoint)
    found = None
    if solver != "qr":
        start = run.start(solver)
        if isinstance(start, GramSums):
            found = run.by_gram(start, solver)
        elif start is not None:
            found = run.by_first_block(start)
    return found or run.by_reflections()


class _Run:
    """One attempt to factor the rows: the first block is read ahead, once, to see which route is promising."""

    def __init__(self, rows: RowBlocks, intercept: bool, plan: FoldPlan | None, checkpoint: Checkpoint | None) -> None:
        self._rows, self._intercept, self._plan, self._checkpoint = rows, intercept, plan, checkpoint
        self._ahead: Iterator[Any] | None = None
        self._own = local()

    def start(self, solver: str) -> GramSums | PreconditionedSums | None:
        """The summary of the first block on the route to take; None for reflections."""
        stage = None if self._checkpoint is None else self._checkpoint.stage
        many = self._plan is not None and self._plan.n_folds > MANY_FOLDS
        if stage not in (None, FoldGrams, FoldPreconditioned) or many:
            return None
        stream = self._rows.read()
        head = [block for _, block in zip(range(2), stream, strict=False)]
        self._ahead = chain(head, stream)
        if not head or (solver == "auto" and len(head) < 2 and stage is None):
            return None
        first = self._rows.encode(head[0])
        if solver == "gram" and len(head) < 2 and first[0].shape[0] < first[0].shape[1]:
            raise ValueError(
                f"solver='gram' cannot promise γ to 1e-6 here: {first[0].shape[0]} rows are fewer than "
                f"{first[0].shape[1]} features, and HᵀH is singular. Use solver='auto', which then uses HHᵀ."
            )
        gram = GramSums.of(first, intercept=self._intercept)
        if solver == "gram" and not gram.counts.shift_known:
            # All workers need one shift, and the first rows that have weight give it: look for them, then begin anew.
            for block in self._ahead:
                gram = gram.add(self._rows.encode(block))
                if gram.counts.shift_known:
                    break
            self._ahead = None
        if stage is FoldGrams or (stage is None and (solver == "gram" or is_promising(gram.products, gram.counts))):
            return gram
        return PreconditionedSums.from_first_block(first, intercept=self._intercept)

    def by_gram(self, first: GramSums, solver: str) -> Solved | None:
        """Route 1, or 3 where the sums prove too little."""
        grams = self._sums(FoldGrams, GramSums(None, first.counts.without_rows()))
        if self._checkpoint is not None:
            self._checkpoint.save(grams)
        found = self._solved(grams, proved)
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
        intercept, encode, plan = self._intercept, self._rows.encode, self._plan

        def factored(so_far: Factor | None, raw: Any) -> Factor:
            for chunk in _chunks(raw, self._height(_ROWS_PER_COLUMN)):
                so_far = Factor.fold([encode(chunk)], intercept=intercept, start=so_far)
            return so_far or _no_rows()

        if plan is None:
            return Solved(self._accumulate(Factor, factored))

        def step(so_far: FoldFactors | None, raw: Any) -> FoldFactors:
            return (so_far or FoldFactors.empty(plan)).absorb([raw], intercept=intercept, encode=encode)

        folds = self._accumulate(FoldFactors, step)
        return Solved(folds.merged(), folds)

    def _preconditioned(
        self, R1: Triangle, counts: Counts, *, alike: bool = False, saved: bool = True
    ) -> Solved | None:
        sums = self._sums(FoldPreconditioned, PreconditionedSums.about(R1, counts), saved=saved)
        judged = [sums.total(), *(sums.filled() if self._plan else ())]
        if (alike or self._plan) and not all(map(are_alike, judged)):
            return None
        return self._solved(sums, refined)

    def _solved(self, sums: FoldSums[Sums], proof: Callable[[Sums], tuple[Factor, Spectrum] | None]) -> Solved | None:
        """The factors of all rows, of each fold and of its complement; None unless all of them prove themselves."""
        if self._plan is None:
            found = proof(sums.total())
            return None if found is None else Solved(found[0], spectrum=found[1])
        n_filled = len(sums.filled())
        if n_filled < 2:
            return None
        tried: list[Any] = [sums.total(), *sums.complements()]
        whole, *training = at_once(proof, tried)
        known = [found for found in training if found is not None]
        factors = tuple(s.factor() if s.counts.n_rows else None for s in sums.sums)
        if whole is None or len(known) < n_filled or sum(f is not None for f in factors) < n_filled:
            return None
        n_read = sum(s.counts.n_seen for s in sums.sums)
        return Solved(whole[0], known_folds(self._plan, factors, n_read, known), whole[1])

    def _sums(self, kind: Callable[[tuple[Sums, ...]], AllSums], empty: Sums, *, saved: bool = True) -> AllSums:
        """The sums of each fold, or of all rows as the only one."""
        plan, height = self._plan, self._height()

        def step(so_far: AllSums | None, raw: Any) -> AllSums:
            sums: list[Any] = list(so_far.sums) if so_far else [empty] * (plan.n_folds if plan else 1)
            for v, mine in split_by_fold(raw, plan) if plan else ((0, raw),):
                for chunk in _chunks(mine, height):
                    sums[v] = sums[v].add(self._encoded(chunk, height))
            return kind(tuple(sums))

        return self._accumulate(kind, step, saved=saved)

    def _accumulate(self, kind: Any, step: Step[Summary], *, saved: bool = True) -> Summary:
        """All rows in one summary; `step(None, raw)` begins that of a worker."""
        blocks, self._ahead = self._rows.read() if self._ahead is None else self._ahead, None
        if self._checkpoint is not None and saved:
            return self._checkpoint.run(kind, step)
        head = [block for _, block in zip(range(2), blocks, strict=False)]
        if len(head) == 1:
            return step(None, head[0])
        workers, width, height = 1, self._rows.n_features, 1
        if head and width is not None:
            sums = issubclass(kind, FoldSums)
            height = min(self._height(None if sums else _ROWS_PER_COLUMN) or 1, head[0][0].shape[0])
            held = 1 if self._plan is None else self._plan.n_folds
            workers = workers_for(width, (_COPIES_SUMS if sums else _COPIES_QR) * height, held)
        items = chain(head, blocks)
        if workers > 1 and self._plan is None:  # small items, so that all workers have as many to do
            items = chain.from_iterable(_chunks(raw, height) for raw in items)
        found = accumulate(step, items, workers)
        while len(found) > 1:  # in pairs, since triangles take time to merge
            pairs = [found[i : i + 2] for i in range(0, len(found), 2)]
            found = at_once(lambda pair: reduce(kind.merge, pair), pairs)
        return found[0] if found else _no_rows()

    def _encoded(self, chunk: Any, height: int | None) -> Encoded:
        """A chunk with its features in memory that a worker uses again and again: new memory costs more than a tanh."""
        if height is None:
            return self._rows.encode(chunk)
        if not hasattr(self._own, "workspace"):
            self._own.workspace = np.empty((height, self._rows.n_features))
        return self._rows.encode(chunk, self._own.workspace)

    def _height(self, rows_per_column: int | None = None) -> int | None:
        """How many rows are worked on at a time; None for all of a block."""
        width = self._rows.n_features
        if width is None:
            return None
        # Many targets at a time would need more memory than they save time.
        widest = max(width, self._rows.n_targets // 8)
        return max(1, CHUNK_ENTRIES // widest) if rows_per_column is None else rows_per_column * width


def _chunks(block: tuple[Any, ...], height: int | None) -> Iterator[tuple[Any, ...]]:
    """A block in even pieces of at most `height` rows; None leaves it whole."""
    n_rows = block[0].shape[0]
    if height is None or n_rows <= height:
        yield block
        return
    even = math.ceil(n_rows / math.ceil(n_rows / height))
    for start in range(0, n_rows, even):
        yield tuple(None if values is None else values[start : start + even, ...] for values in block)


def workers_for(n_features: int, n_rows: int, n_held: int = 1) -> int:
    """How many workers may hold `n_rows` rows of H, copies included, and `n_held` matrices M × M each.

    One thread per block scales where several threads in one factorization do not. But wide blocks keep the threads of
    BLAS busy by themselves, and a GPU is one worker.
    """
    if n_features > WIDEST_SHARED:
        return 1
    entries = n_rows * n_features + (n_held + 1) * n_features**2
    return max(1, min(worker_count(), WORKER_ENTRIES // entries))


def _no_rows() -> Any:
    raise ValueError("There are no row blocks to factor: give at least one (H, T) pair.")
