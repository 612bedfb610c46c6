"""`solve`: from rows to their triangular factor, and one for each fold, by the fastest route that is right.

Let A = √w·[1 | H − s | T − s]. Three routes lead to R with RᵀR = AᵀA:

1. "gram": R is Cholesky's factor of AᵀA. Forming AᵀA is the cheapest thing that can be done with all rows, but it
   squares the condition number: σ_p is right to about ε·κ²/2. The route is taken only if its own spectrum proves γ
   right to 10⁻⁶ and residuals to 10⁻¹⁰·‖T‖ (`gram.proved`), that is, up to κ ≈ 5·10⁴.
2. "refined": with R₁ of the first block by reflections, A·R₁⁻¹ is well conditioned if the other rows are like the
   first; then R = R₂R₁, R₂ from the Gram matrix of A·R₁⁻¹, loses nothing up to κ ≈ 10¹². Where route 1 was tried and
   proved too little, the rows are read a second time, and R₁ is the shifted Cholesky factor of that Gram matrix (Fukaya
   et al., 2020).
3. "reflections": Householder QR of each block on top of the R so far: slower, and always right. Rows that are a single
   block take it at once. It needs the rows only once, so `partial_fit`, streams and parts take it, and so do more than
   `MANY_FOLDS` folds. Rows fewer than features are kept as they are, and solved by HHᵀ (`wide.py`).

A few rows of the first block show which route is promising. With folds, each row belongs to one of them, so their
matrices cost as much as one; the proofs must then hold for every fold's complement too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from ocrep._linalg.factor import Factor
from ocrep._linalg.fold_factors import FoldFactors, known_folds
from ocrep._linalg.folds import FoldPlan, split_by_fold, without_each
from ocrep._linalg.gram import (
    GramSums,
    PreconditionedSums,
    are_alike,
    is_promising,
    proved,
    refined,
    shifted_root,
)
from ocrep._linalg.parallel import at_once, chunk_rows, one_blas_thread, room
from ocrep._linalg.rows import ChunkEncoder, Encoded, Encoder, cut, first_block, summarize
from ocrep._linalg.spectrum import Spectrum

if TYPE_CHECKING:
    from ocrep._rows.block import Block
    from ocrep._rows.memory import Rows
    from ocrep._training.checkpoint import FileCheckpoint

SOLVERS = ("auto", "gram", "qr")
Route: TypeAlias = Literal["gram", "refined", "reflections"]
"""How factors came about: by Cholesky of Gram matrices, of Gram matrices of preconditioned rows, or by reflections."""

# More folds than this would need as many eigenvalue problems for their proofs, and most hold too few rows for one.
MANY_FOLDS = 20
# Two rows per feature show whether the Gram matrix is promising.
_FEW_ROWS = 2
# Factors of at most this many features are made as fast by one thread as by several.
_NARROW = 512


@dataclass(frozen=True, eq=False)
class Factored:
    """The factors of all rows and, if they were asked for, of each fold; all that depends on γ follows from them."""

    whole: Factor | None
    """The factor of all rows, where it is not simply the merge of the folds'."""
    folds: FoldFactors | None = None
    known_spectrum: Spectrum | None = None
    """The spectrum of the factor, where the route had to compute it."""
    route: Route = "reflections"
    """Which route gave the factors."""

    @cached_property
    def factor(self) -> Factor:
        """The factor of all rows."""
        if self.whole is not None:
            return self.whole
        assert self.folds is not None
        return self.folds.merged()

    @cached_property
    def spectrum(self) -> Spectrum:
        """The spectrum of the factor."""
        return self.factor.spectrum() if self.known_spectrum is None else self.known_spectrum


@dataclass(frozen=True, slots=True, eq=False)
class ByFold:
    """What one reading of the rows accumulates: a summary for each fold, or a single one without folds.

    The summaries of a route are all of one kind: `GramSums`, `PreconditionedSums` (both about one shift) or `Factor`.
    """

    route: Route
    intercept: bool
    plan: FoldPlan | None
    summaries: tuple[Any, ...]
    """One for each fold; a fold without rows has sums of no rows, or None in the place of a factor."""
    n_read: int = 0
    """Rows seen, those of zero weight included."""

    @classmethod
    def of_sums(cls, empty: GramSums | PreconditionedSums, plan: FoldPlan | None) -> ByFold:
        """Sums of no rows."""
        route: Route = "gram" if isinstance(empty, GramSums) else "refined"
        return cls(route, empty.counts.intercept, plan, (empty,) * (1 if plan is None else plan.n_folds))

    @classmethod
    def reflections(cls, intercept: bool, plan: FoldPlan | None) -> ByFold:
        """Factors of no rows."""
        return cls("reflections", intercept, plan, (None,) * (1 if plan is None else plan.n_folds))

    @property
    def n_matrices(self) -> int:
        return len(self.summaries)

    @property
    def copies(self) -> int:
        if self.route == "gram":  # products need no copy of the features
            return 1
        if self.route == "refined":  # what is preconditioned is written behind a column of ones
            return 2 + int(self.intercept)
        return 2 if self.plan is None else 3

    @property
    def merges_in_pairs(self) -> bool:
        return self.route == "reflections"

    def chunk_size(self, encoder: Encoder, workers: int) -> int | None:
        width = encoder.n_features
        if width is None:
            return None
        if self.route != "reflections":
            # Many targets at a time would need more memory than they save time.
            wide = max(width, encoder.n_targets // 8)
            return chunk_rows(wide, workers, copies=self.copies, n_held=self.n_matrices)
        # Each time R is triangularized again: four rows per column add a sixth to the work. With fewer, the calls of
        # BLAS are so small that workers wait for each other in its allocation of memory.
        most = 4 * width
        if workers == 1:
            return most
        return max(width, min(most, room(width, workers, self.copies, self.n_matrices) // max(1, width)))

    def add(self, block: Block, chunks: ChunkEncoder) -> ByFold:
        summaries = list(self.summaries)
        for v, rows in split_by_fold(block, self.plan):
            for chunk in cut(rows, chunks.size):
                so_far = summaries[v]
                if self.route != "reflections":
                    summaries[v] = so_far.add(*chunks.in_workspace(chunk))
                elif len(chunk) < (chunks.encoder.n_features or 0):
                    # Rows fewer than features are kept as they are, so they must not lie in memory that is used again.
                    # The rows of a fold were copied when they were cut out; without folds H may be a view of a user's
                    # array.
                    kept = chunks.encoder.encode(chunk)
                    copy = self.plan is None
                    summaries[v] = Factor.fold([kept], intercept=self.intercept, start=so_far, copy=copy)
                else:
                    encoded, scratch = chunks.in_workspace(chunk)
                    summaries[v] = Factor.fold([encoded], intercept=self.intercept, start=so_far, scratch=scratch)
        return replace(self, summaries=tuple(summaries), n_read=self.n_read + len(block))

    def merge(self, other: ByFold) -> ByFold:
        pairs = zip(self.summaries, other.summaries, strict=True)
        merged = tuple(b if a is None else a if b is None else a.merge(b) for a, b in pairs)
        return replace(self, summaries=merged, n_read=self.n_read + other.n_read)

    def total(self) -> Any:
        """The summary of all rows."""
        return reduce(_merge, self.summaries)

    def filled(self) -> list[Any]:
        """The sums of the folds that hold rows of positive weight."""
        return [sums for sums in self.summaries if sums.counts.n_rows]

    def complements(self) -> list[Any]:
        """For each of two or more filled folds, the sums of all others."""
        return without_each(self.filled(), _merge)

    def factored(self) -> Factored:
        """The factors by reflections."""
        if self.plan is None:
            return Factored(self.summaries[0])
        return Factored(None, FoldFactors(self.plan, self.summaries, self.n_read))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The summaries as plain arrays, for checkpoints."""
        named = {
            f"{v}.{name}": array
            for v, summary in enumerate(self.summaries)
            if summary is not None
            for name, array in summary.to_arrays().items()
        }
        return {"n_read": np.array(self.n_read), **named}

    def with_arrays(self, arrays: dict[str, np.ndarray]) -> ByFold:
        """The same with the summaries that `to_arrays` wrote."""
        kinds: dict[str, Any] = {"gram": GramSums, "refined": PreconditionedSums, "reflections": Factor}
        kind = kinds[self.route]
        parts: dict[int, dict[str, np.ndarray]] = {}
        for key, array in arrays.items():
            number, found, name = key.partition(".")
            if found:
                parts.setdefault(int(number), {})[name] = array
        summaries = (kind.from_arrays(parts[v]) if v in parts else None for v in range(len(self.summaries)))
        return replace(self, summaries=tuple(summaries), n_read=int(arrays["n_read"]))


def solve(
    rows: Rows,
    encoder: Encoder,
    plan: FoldPlan | None = None,
    *,
    intercept: bool,
    solver: str = "auto",
    checkpoint: FileCheckpoint | None = None,
) -> Factored:
    """Factor rows, and each of their folds.

    `solver="gram"` takes route 1 or raises; `solver="qr"` takes route 3. A fit that is continued takes the route
    that its checkpoint was saved on.
    """
    stage = None if checkpoint is None else checkpoint.stage
    few_threads = one_blas_thread if (encoder.n_features or math.inf) <= _NARROW else nullcontext
    if solver == "gram" and plan is not None and plan.n_folds > MANY_FOLDS:
        raise ValueError(
            f"solver='gram' proves γ for at most {MANY_FOLDS} folds, and there are {plan.n_folds}: use fewer folds, or "
            "solver='auto', which then uses reflections."
        )
    block, alone, blocks = None, True, None
    if solver != "qr" and stage != "reflections" and (plan is None or plan.n_folds <= MANY_FOLDS):
        block, alone, blocks = first_block(rows, encoder)

    def read(start: ByFold, *, saved: bool = True) -> ByFold:
        """The summaries of all rows. The first reading goes on with the blocks that were opened for the first one."""
        nonlocal blocks
        opened, blocks = blocks, None
        if checkpoint is not None and saved:
            return checkpoint.run(start, ChunkEncoder(encoder, start.chunk_size(encoder, 1)))
        return summarize(rows, encoder, start, opened)

    start = None
    # Rows that are a single block take reflections at once, unless a user insists.
    if block is not None and (not alone or solver == "gram" or stage is not None):
        with few_threads():
            start = _start(block, alone, encoder, intercept, solver, stage)

    of_first_block = isinstance(start, PreconditionedSums)
    if isinstance(start, GramSums):
        grams = read(ByFold.of_sums(start, plan))
        if checkpoint is not None:
            checkpoint.save(grams)
        found = _factored(grams, proved, few_threads)
        if found is not None:
            return found
        if solver == "gram":
            raise ValueError(
                "solver='gram' cannot promise γ to 1e-6 here: H is too ill conditioned, or the fit too close, "
                "for the products HᵀH and HᵀT alone. Use solver='auto', which then reads the rows again."
            )
        total = grams.total()
        R1 = shifted_root(total.products)
        start = None if R1 is None else PreconditionedSums.about(R1, total.counts)

    if start is not None:
        # R₁ of the Gram matrix comes after a reading that was saved already.
        sums = read(ByFold.of_sums(start, plan), saved=of_first_block)
        # R₁ of all rows fits all rows. R₁ of the first block may not, and R₁ of either may not fit a single fold.
        judged = [sums.total()] if of_first_block or plan is not None else []
        judged += [] if plan is None else sums.filled()
        if all(map(are_alike, judged)):
            found = _factored(sums, refined, few_threads)
            if found is not None:
                return found

    return read(ByFold.reflections(intercept, plan)).factored()


def _start(
    block: Block, alone: bool, encoder: Encoder, intercept: bool, solver: str, stage: str | None
) -> GramSums | PreconditionedSums | None:
    """Sums of no rows for the route that the first block calls for; None for reflections."""
    few = block
    if encoder.n_features is not None:
        few = block[: _FEW_ROWS * encoder.n_features]
        few = few if few.counts else block
    first: Encoded = encoder.encode(few)
    n_rows, n_features = first.H.shape
    if solver == "gram" and alone and n_rows < n_features:
        raise ValueError(
            f"solver='gram' cannot promise γ to 1e-6 here: {n_rows} rows are fewer than {n_features} features, and HᵀH "
            "is singular. Use solver='auto', which then uses HHᵀ."
        )
    gram = GramSums.of(first, intercept=intercept)
    if stage == "gram" or (stage is None and (solver == "gram" or is_promising(gram.products, gram.counts))):
        return GramSums(None, gram.counts.without_rows())
    return PreconditionedSums.from_first_block(encoder.encode(block), intercept=intercept)


def _factored(
    sums: ByFold,
    proof: Callable[[Any], tuple[Factor, Spectrum] | None],
    few_threads: Callable[[], AbstractContextManager[None]],
) -> Factored | None:
    """The factors of all rows, of each fold and of its complement; None unless all of them prove themselves."""
    if sums.plan is None:
        with few_threads():
            found = proof(sums.total())
        return None if found is None else Factored(found[0], None, found[1], sums.route)
    filled = sums.filled()
    if len(filled) < 2:
        return None
    proofs: list[Callable[[], Any]] = [partial(proof, some) for some in (sums.total(), *sums.complements())]
    # All of them in one call, so that no worker waits between the proofs and the factors of the folds.
    whole, *rest = at_once(lambda call: call(), [*proofs, *(some.factor for some in filled)])
    if whole is None or any(found is None for found in rest):
        return None
    complements = rest[: len(filled)]
    of_filled = iter(rest[len(filled) :])
    factors = tuple(next(of_filled) if some.counts.n_rows else None for some in sums.summaries)
    folds = known_folds(FoldFactors(sums.plan, factors, sums.n_read), complements)
    return Factored(whole[0], folds, whole[1], sums.route)


def _merge(one: Any, other: Any) -> Any:
    return one.merge(other)
