"""Passes over all rows: what one accumulates, and how workers here share it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from threading import local
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np

from ocrep._linalg.arrays import array_namespace
from ocrep._linalg.factor import Factor
from ocrep._linalg.folds import FoldFactors, FoldPlan, split_by_fold
from ocrep._linalg.gram import FoldGrams, FoldPreconditioned
from ocrep._linalg.parallel import (
    STATES_EACH,
    Encoded,
    RowBlocks,
    accumulate,
    at_once,
    chunk_rows,
    item_rows,
    items_waiting,
    room,
    worker_count,
    workers_for,
)

# Beside the features, so many targets cost little memory.
_FEW_TARGETS = 8


class Mergeable(Protocol):
    """A summary of rows: those of parts merge into that of the whole."""

    def merge(self, other: Self) -> Self:
        """The summary of the rows of both."""


class Stored(Mergeable, Protocol):
    """A summary that a checkpoint can save."""

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The summary as NumPy arrays."""

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Self:
        """The summary that `to_arrays` wrote."""


Summary = TypeVar("Summary", bound=Mergeable)
AllSums = TypeVar("AllSums", FoldGrams, FoldPreconditioned)
Step = Callable[["Summary | None", Any], Summary]


class Work(Protocol[Summary]):
    """What one pass accumulates; small, and sent to every worker, here or elsewhere."""

    @property
    def kind(self) -> type[Summary]:
        """The kind of summary."""

    @property
    def copies(self) -> int:
        """How many copies of the rows that it works on a worker holds."""

    @property
    def n_held(self) -> int:
        """How many matrices of the size of HᵀH a summary holds."""

    def height(self, rows: RowBlocks, workers: int = 1) -> int | None:
        """How many rows each of so many workers works on at a time; None for all of a block."""

    def step(self, rows: RowBlocks, workers: int = 1) -> Step[Summary]:
        """A function that adds a block as it was read to a summary; `None` begins one."""


class Checkpoint(Protocol):
    """Runs one pass over the rows so that it can be interrupted and continued."""

    @property
    def stage(self) -> type[Any] | None:
        """The kind of summary that was being accumulated when the fit was interrupted; None in a new fit."""

    def run(self, kind: type[Any], step: Step[Any]) -> Any:
        """Accumulate all rows in a summary that can be stored, saving it now and then."""

    def save(self, summary: Stored) -> None:
        """Save the summary of all rows, so that a crash in the next pass does not cost this one."""


class Passes(Protocol):
    """Rows of which summaries can be accumulated as often as one is needed, wherever they lie."""

    @property
    def checkpoint(self) -> Checkpoint | None:
        """What saves the passes, if anything does."""

    @property
    def n_features(self) -> int | None:
        """Columns of H, where H is on the host."""

    def head(self) -> tuple[Any, bool]:
        """A first block as it was read, of which a row counts, and whether it is all; None where no row counts."""

    def encode(self, block: Any) -> Encoded:
        """A block as it was read, as `(H, T, sample_weight)`."""

    def accumulate(self, work: Work[Summary], *, saved: bool = True) -> Summary:
        """All rows in one summary."""


@dataclass(slots=True, eq=False)
class LocalPasses:
    """Passes over rows that are read here, and shared among workers."""

    rows: RowBlocks
    checkpoint: Checkpoint | None = None
    _ahead: Iterator[Any] | None = None
    """Rows from the beginning that were read ahead."""

    @property
    def n_features(self) -> int | None:
        return self.rows.n_features

    def encode(self, block: Any) -> Encoded:
        return self.rows.encode(block)

    def head(self) -> tuple[Any, bool]:
        """The first block that counts; the two blocks read ahead are kept for the next pass."""
        stream = self.rows.read()
        ahead = [block for _, block in zip(range(2), stream, strict=False)]
        self._ahead = chain(ahead, stream)
        for number, block in enumerate(chain(ahead, stream)):
            if number == 2:
                self._ahead = None  # too many to keep: the next pass reads them again
            if counts(block):
                return block, len(ahead) < 2
        return None, True

    def accumulate(self, work: Work[Summary], *, saved: bool = True) -> Summary:
        """All rows in one summary, merged from those of the workers."""
        blocks, self._ahead = self.rows.read() if self._ahead is None else self._ahead, None
        if self.checkpoint is not None and saved:
            return self.checkpoint.run(work.kind, work.step(self.rows))
        head = [block for _, block in zip(range(2), blocks, strict=False)]
        if not head:
            raise ValueError("There are no row blocks to factor: give at least one (H, T) pair.")
        first, rows = head[0][0], self.rows
        if len(head) == 1:
            return work.step(rows)(None, head[0])
        workers = self._workers(work, first.shape[0])
        if workers == 1:
            return _merged(work.kind, accumulate(work.step(rows), chain(head, blocks), 1))
        height = min(work.height(rows, workers) or 1, first.shape[0])
        each = item_rows(height, workers, work.n_held, rows.n_rows)
        items: Iterator[Any]
        if rows.read_by is None:
            items = chain.from_iterable(chunks(raw, each) for raw in chain(head, blocks))
        else:
            items = rows.read_by(each)
        waiting = items_waiting(workers, each, first.shape[1])
        each_worker = STATES_EACH if work.n_held == 1 and work.kind in (FoldGrams, FoldPreconditioned) else 1
        step = work.step(rows, workers)
        return _merged(work.kind, accumulate(step, items, workers, waiting=waiting, states_each=each_worker))

    def _workers(self, work: Work[Summary], n_rows: int) -> int:
        """One on a device, else as many as there are and memory allows, for blocks of so many rows."""
        width, height = self.rows.n_features, work.height(self.rows, worker_count())
        if width is None or height is None:
            return 1
        return workers_for(width, work.copies * min(height, n_rows), work.n_held)


def _merged(kind: type[Summary], found: list[Summary]) -> Summary:
    """The summary of all workers: sums one after the other, but triangles in pairs, since they take time to merge."""
    merge: Callable[[Summary, Summary], Summary] = kind.merge
    while len(found) > 1 and kind in (Factor, FoldFactors):
        pairs = [found[i : i + 2] for i in range(0, len(found), 2)]
        found = at_once(lambda pair: reduce(merge, pair), pairs)
    return reduce(merge, found)


@dataclass(frozen=True, slots=True, eq=False)
class SumsWork(Generic[AllSums]):
    """The sums of each fold, or of all rows as the only one."""

    kind: type[AllSums]
    empty: Any
    """The sums of no rows, about the shift of all."""
    plan: FoldPlan | None

    @property
    def copies(self) -> int:
        # Gram matrices need none besides the features; what is preconditioned is written behind a column of ones.
        return 1 if self.kind is FoldGrams else 2 + int(self.empty.counts.intercept)

    @property
    def n_held(self) -> int:
        return 1 if self.plan is None else self.plan.n_folds

    def height(self, rows: RowBlocks, workers: int = 1) -> int | None:
        if rows.n_features is None:
            return None
        # Many targets at a time would need more memory than they save time.
        width = max(rows.n_features, rows.n_targets // 8)
        return chunk_rows(width, workers, copies=self.copies, n_held=self.n_held)

    def step(self, rows: RowBlocks, workers: int = 1) -> Step[AllSums]:
        height = self.height(rows, workers)
        encoded = encoder(rows, height)

        def step(so_far: AllSums | None, raw: Any) -> AllSums:
            sums: list[Any] = list(so_far.sums) if so_far else [self.empty] * self.n_held
            for v, mine in split_by_fold(raw, self.plan) if self.plan else ((0, raw),):
                for chunk in chunks(mine, height):
                    sums[v] = sums[v].add(*encoded(chunk))
            return self.kind(tuple(sums))

        return step


@dataclass(frozen=True, slots=True, eq=False)
class FactorWork:
    """The factor of all rows by reflections."""

    intercept: bool
    kind = Factor
    copies = 2
    n_held = 1

    def height(self, rows: RowBlocks, workers: int = 1) -> int | None:
        return rows.n_features and reflected_rows(rows.n_features, workers, copies=self.copies)

    def step(self, rows: RowBlocks, workers: int = 1) -> Step[Factor]:
        height = self.height(rows, workers)
        encoded = encoder(rows, height)

        def step(so_far: Factor | None, raw: Any) -> Factor:
            for chunk in chunks(raw, height):
                # Rows fewer than features are kept, so they must not lie in memory that is used again.
                few = chunk[0].shape[0] < (rows.n_features or 0)
                block, scratch = (rows.encode(chunk), None) if few else encoded(chunk)
                so_far = Factor.fold([block], intercept=self.intercept, start=so_far, scratch=scratch)
            assert so_far is not None, "A block is at least one chunk."
            return so_far

        return step


@dataclass(frozen=True, slots=True, eq=False)
class FoldFactorsWork:
    """The factor of each fold by reflections."""

    intercept: bool
    plan: FoldPlan
    kind = FoldFactors
    copies = 3

    @property
    def n_held(self) -> int:
        return self.plan.n_folds

    def height(self, rows: RowBlocks, workers: int = 1) -> int | None:
        return rows.n_features and reflected_rows(rows.n_features, workers, copies=self.copies, n_held=self.n_held)

    def step(self, rows: RowBlocks, workers: int = 1) -> Step[FoldFactors]:
        def step(so_far: FoldFactors | None, raw: Any) -> FoldFactors:
            return (so_far or FoldFactors.empty(self.plan)).absorb([raw], intercept=self.intercept, encode=rows.encode)

        return step


def reflected_rows(width: int, workers: int = 1, *, copies: int = 1, n_held: int = 1) -> int:
    """How many rows of `width` features a worker reduces by reflections at a time.

    Each time R is triangularized again: four rows per column add a sixth to the work. With fewer, the calls of BLAS are
    so small that workers wait for each other in its allocation of memory.
    """
    most = 4 * width
    return most if workers == 1 else max(width, min(most, room(width, workers, copies, n_held) // max(1, width)))


def encoder(rows: RowBlocks, height: int | None) -> Callable[[Any], tuple[Encoded, np.ndarray | None]]:
    """Encodes chunks of at most `height` rows, and gives with them memory for features that a worker uses again.

    The features may lie in it, with room for a column of ones and few targets beside them. New memory costs more than
    a tanh.
    """
    width = rows.n_features
    if height is None or width is None:
        return lambda chunk: (rows.encode(chunk), None)
    own, beside = local(), 1 + rows.n_targets if rows.n_targets <= _FEW_TARGETS else 0

    def encoded(chunk: Any) -> tuple[Encoded, np.ndarray]:
        n_rows = chunk[0].shape[0]
        if not hasattr(own, "workspace") or len(own.workspace) < n_rows:
            own.workspace = np.empty((min(height, 2 * n_rows), width + beside))
        return rows.encode(chunk, own.workspace[:, :width]), own.workspace

    return encoded


def counts(block: tuple[Any, ...]) -> bool:
    """Whether a row of a block `(X, y, sample_weight)` has a positive weight."""
    weight = block[2] if len(block) > 2 else None
    if weight is None:
        return bool(block[0].shape[0])
    return bool(array_namespace(weight).any(weight > 0.0))


def chunks(block: tuple[Any, ...], height: int | None) -> Iterator[tuple[Any, ...]]:
    """A block in even pieces of at most `height` rows; None leaves it whole."""
    n_rows = block[0].shape[0]
    if height is None or n_rows <= height:
        yield block
        return
    even = math.ceil(n_rows / math.ceil(n_rows / height))
    for start in range(0, n_rows, even):
        yield tuple(None if values is None else values[start : start + even, ...] for values in block)
