"""The one place that chooses a route from rows to a factor, and runs it with or without a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from itertools import chain
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from ocrep._linalg.arrays import Array
from ocrep._linalg.blocks import BLOCK_ENTRIES, Encoded, RowBlocks
from ocrep._linalg.counts import Counts
from ocrep._linalg.factor import Factor
from ocrep._linalg.folds import FoldFactors, FoldPlan
from ocrep._linalg.gram import GramSums, is_promising, proved, shifted_root
from ocrep._linalg.parallel import accumulate, worker_count
from ocrep._linalg.preconditioned import PreconditionedSums, are_alike, refined
from ocrep._linalg.spectrum import Spectrum

SOLVERS = ("auto", "gram", "qr")

# All workers together hold at most this much, about 380 MB, and each so many copies of its block.
WORKER_ENTRIES = 48 * 2**20
_COPIES = 5
# Beyond this many columns a block keeps all threads of BLAS busy by itself.
WIDEST_SHARED = 1024


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
Step = Callable[["Summary | None", Encoded], Summary]


class Checkpoint(Protocol):
    """Runs one pass over the rows so that it can be interrupted and continued."""

    @property
    def stage(self) -> type[Any] | None:
        """The kind of summary that was being accumulated when the fit was interrupted; None in a new fit."""

    def run(self, kind: type[Summary], step: Step[Summary], rows: RowBlocks) -> Summary:
        """Accumulate all rows, saving the summary now and then."""

    def save(self, summary: Mergeable) -> None:
        """Save the summary of all rows, so that a crash in the next pass does not cost this one."""


def solve(
    rows: RowBlocks, *, intercept: bool, solver: str = "auto", checkpoint: Checkpoint | None = None
) -> tuple[Factor, Spectrum | None]:
    """Factor rows by the fastest route that is right, with the spectrum if the route has to compute it.

    1. The Gram matrix, if its own spectrum and residual prove γ right to 10⁻⁶ and the residual to 10⁻¹⁰·‖T‖.
    2. If the first block already shows that it will not: one pass over A·R₁⁻¹, R₁ from that block by reflections.
    3. If only the whole shows it: a second pass over A·R₁⁻¹, R₁ from the Gram matrix (Cholesky-QR with a shift).
    4. Beyond κ ≈ 10¹², or if the first block was unlike the others: Householder reflections, block by block. Rows
       that make up a single block go there at once.

    `solver="gram"` takes route 1 or raises; `solver="qr"` takes route 4, the only one that reads rows just once.
    """
    run = _Run(rows, intercept, checkpoint)
    found = None
    if solver != "qr":
        start = run.start(solver)
        if isinstance(start, GramSums):
            found = run.by_gram(start, solver)
        elif start is not None:
            found = run.by_first_block(start)
    return found or (run.by_reflections(), None)


def solve_folds(
    rows: RowBlocks, plan: FoldPlan, *, intercept: bool, start: int = 0, checkpoint: Checkpoint | None = None
) -> FoldFactors:
    """One factor per fold, by reflections; `start` is the global number of the first row."""

    def step(so_far: FoldFactors | None, block: Encoded) -> FoldFactors:
        return (so_far or FoldFactors.empty(plan, start)).absorb([block], intercept=intercept)

    if checkpoint is not None:
        return checkpoint.run(FoldFactors, step, rows)
    (folds,) = accumulate(step, rows.blocks(), 1) or [_no_rows()]
    return folds


class _Run:
    """One attempt to factor the rows: the first block is read ahead, once, to see which route is promising."""

    def __init__(self, rows: RowBlocks, intercept: bool, checkpoint: Checkpoint | None) -> None:
        self._rows, self._intercept, self._checkpoint = rows, intercept, checkpoint
        self._ahead: Iterator[Any] | None = None
        self._first: Encoded | None = None

    def start(self, solver: str) -> GramSums | PreconditionedSums | None:
        """The summary of the first block on the route to take; None for reflections."""
        stage = None if self._checkpoint is None else self._checkpoint.stage
        if stage not in (None, GramSums, PreconditionedSums):
            return None
        stream = self._rows.read()
        head = [block for _, block in zip(range(2), stream, strict=False)]
        self._ahead = chain(head, stream)
        if not head or (solver == "auto" and len(head) < 2 and stage is None):
            return None
        self._first = self._rows.encode(head[0])
        gram = GramSums.of(self._first, intercept=self._intercept)
        if stage is GramSums or (stage is None and (solver == "gram" or is_promising(gram.matrix, gram.counts))):
            self._ahead = chain(head[1:], stream)
            return gram
        return PreconditionedSums.led_by(self._first, intercept=self._intercept)

    def by_gram(self, start: GramSums, solver: str) -> tuple[Factor, Spectrum] | None:
        """Route 1, or 3 where the sums prove too little."""
        while not start.counts.shift_known and self._checkpoint is None:
            # All workers need one shift, and the first rows that have weight give it.
            block = next(self._ahead or iter(()), None)
            if block is None:
                break
            start = start.add(self._rows.encode(block))
        empty = GramSums(None, start.counts.without_rows())
        gram = self._accumulate(GramSums, lambda so_far, block: (so_far or empty).add(block), start=start)
        if self._checkpoint is not None:
            self._checkpoint.save(gram)
        found = proved(gram)
        if found is None and solver == "gram":
            raise ValueError(
                "solver='gram' cannot promise γ to 1e-6 here: H is too ill conditioned, or the fit too close, for the "
                "products HᵀH and HᵀT alone. Use solver='auto', which then reads the rows again."
            )
        R1 = shifted_root(gram.matrix, gram.counts.n_targets) if found is None else None
        if R1 is None:
            return found
        return refined(self._preconditioned(R1, gram.counts, saved=False))

    def by_first_block(self, first: PreconditionedSums) -> tuple[Factor, Spectrum] | None:
        """Route 2: R₁ from the first block, one pass over all rows."""
        sums = self._preconditioned(first.R1, first.counts)
        return refined(sums) if are_alike(sums) else None

    def by_reflections(self) -> Factor:
        """Route 4: the slow one that is always right."""
        intercept = self._intercept
        return self._accumulate(Factor, lambda so_far, block: Factor.fold([block], intercept=intercept, start=so_far))

    def _preconditioned(self, R1: Array, counts: Counts, *, saved: bool = True) -> PreconditionedSums:
        empty = PreconditionedSums.about(R1, counts)
        return self._accumulate(PreconditionedSums, lambda so_far, block: (so_far or empty).add(block), saved=saved)

    def _accumulate(
        self, kind: type[Summary], step: Step[Summary], *, start: Summary | None = None, saved: bool = True
    ) -> Summary:
        """All rows in one summary; `step(None, block)` begins that of a worker, `start` that of the first."""
        blocks, self._ahead = self._rows.read() if self._ahead is None else self._ahead, None
        if self._checkpoint is not None and saved:
            return self._checkpoint.run(kind, step, self._rows)
        head = [block for _, block in zip(range(2), blocks, strict=False)]
        if len(head) == 1 and start is None:
            return step(None, self._rows.encode(head[0]))
        workers, blocks = self._workers(head), chain(head, blocks)
        found = accumulate(lambda so_far, block: step(so_far, self._rows.encode(block)), blocks, workers, start)
        return reduce(kind.merge, found) if found else _no_rows()

    def _workers(self, head: list[Any]) -> int:
        """How many workers the blocks are worth that begin like this."""
        if len(head) < 2:
            return 1
        if self._first is None:
            self._first = self._rows.encode(head[0])
        return workers_for(self._first[0])


def workers_for(H: Array) -> int:
    """How many blocks such as H are worked on at a time.

    One thread per block scales where several threads in one factorization do not. But wide blocks keep the threads of
    BLAS busy by themselves and would need M² numbers in every worker, and a GPU is one worker.
    """
    if not isinstance(H, np.ndarray) or H.shape[1] > WIDEST_SHARED:
        return 1
    return max(1, min(worker_count(), WORKER_ENTRIES // (_COPIES * max(BLOCK_ENTRIES, H.size))))


def _no_rows() -> Any:
    raise ValueError("There are no row blocks to factor: give at least one (H, T) pair.")
