"""Rows, block by block: how they are encoded, cut, shared among workers and accumulated into one summary.

A summary of rows merges: that of all rows is the merge of those of any parts. So one function, `accumulate`, serves
rows in memory, files and Dask partitions:

    rows.accumulate(step, merge)      calls step(part) where each part lies, and merges what comes back
      step(part)                      reads the part block by block, shares its blocks among workers
        summary.add(block, chunks)    cuts a block by folds and into chunks, and adds each chunk
          chunks.in_workspace(chunk)  H, T and weights of some hundred or thousand rows, in memory that is used again

Reading is done by one thread; encoding and adding, which take nearly all the time, by all. H exists only for the chunks
that workers hold, so memory does not grow with the rows. Which chunk goes to which summary does not depend on timing:
the same number of workers gives the same bits.

A summary says what a worker holds while it adds rows: `n_matrices` matrices M × M, and `copies` copies of a chunk of H.
From these follow the size of chunks and the number of workers (`_linalg/parallel.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from itertools import chain, islice
from threading import local
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import numpy as np

from ocrep._linalg.counts import Encoded
from ocrep._linalg.parallel import (
    STATES_EACH,
    at_once,
    item_rows,
    items_waiting,
    worker_count,
    workers_for,
)
from ocrep._linalg.parallel import accumulate as share

if TYPE_CHECKING:
    from ocrep._rows.block import Block
    from ocrep._rows.memory import Rows

# With at most this many targets, room for them beside H costs little memory, and one product gives HᵀH and HᵀT.
_FEW_TARGETS = 8
# The first block of rows that lie in parts is looked for in one part, then in eight times as many, and so on.
_MORE_PARTS = 8


@dataclass(frozen=True, slots=True, eq=False)
class Encoder:
    """How checked rows become (H, T, weight): the one value that training hands down to linear algebra.

    It is small, and sent to every worker of a cluster.
    """

    code: Callable[[Block], Block]
    """Called once for each block as it is read: labels become class numbers; weights and folds become final."""
    encode: Callable[..., Encoded]
    """H, T and weights of coded rows: `encode(block)`, or `encode(block, out)` with memory in which H may lie."""
    block_size: int
    """Rows per block."""
    n_features: int | None
    """Columns of H, where H is on the host and workers may share its rows; None on a device."""
    n_targets: int = 1
    labels: bool = False
    """Whether T codes classes as ±1."""
    several: bool = False
    """Whether a row may have several labels, each in a column of its own."""


@dataclass(frozen=True, slots=True, eq=False)
class EncodedRows:
    """Rows with their encoder, for what must read the rows once more after the factors are known."""

    rows: Rows
    encoder: Encoder

    @property
    def labels(self) -> bool:
        """Whether T codes classes as ±1."""
        return self.encoder.labels

    @property
    def several(self) -> bool:
        """Whether a row may have several labels."""
        return self.encoder.several

    def read(self) -> Iterator[Block]:
        """All rows from the beginning, coded but not encoded."""
        return self.rows.blocks(self.encoder.code, self.encoder.block_size)

    def encode(self, block: Block) -> Encoded:
        """H, T and weights of coded rows."""
        return self.encoder.encode(block)

    def blocks(self) -> Iterator[Encoded]:
        """All rows as blocks (H, T, weight)."""
        return map(self.encoder.encode, self.read())


class Summary(Protocol):
    """What is accumulated over rows; an object without rows is where each worker begins."""

    @property
    def n_matrices(self) -> int:
        """Matrices of the size of HᵀH that it holds."""

    @property
    def copies(self) -> int:
        """Copies of a chunk of H that a worker holds while it adds one."""

    @property
    def merges_in_pairs(self) -> bool:
        """Whether merging takes so long that workers share it."""

    def chunk_size(self, encoder: Encoder, workers: int) -> int:
        """Rows that each of some workers adds at a time."""

    def add(self, block: Block, chunks: ChunkEncoder) -> Self:
        """The summary with the rows of one more block; this object is not used again."""

    def merge(self, other: Self) -> Self:
        """The summary of the rows of both."""


class Checkpoint(Protocol):
    """Accumulates rows so that it can be interrupted and continued."""

    @property
    def stage(self) -> str | None:
        """The route that was being accumulated when the fit was interrupted; None in a new fit."""

    def run(self, start: Any, chunks: ChunkEncoder) -> Any:
        """Accumulate all rows, saving the summary now and then."""

    def save(self, summary: Any) -> None:
        """Save the summary of all rows, so that a crash later does not cost this reading of the rows."""


AnySummary = TypeVar("AnySummary", bound=Summary)


class ChunkEncoder:
    """Encodes chunks of rows in memory that each thread uses again: new memory costs more than a tanh."""

    def __init__(self, encoder: Encoder, size: int | None) -> None:
        self.encoder = encoder
        self.size = size
        """Rows of a chunk at most; None for whole blocks, on a device."""
        self._beside = 1 + encoder.n_targets if encoder.n_targets <= _FEW_TARGETS else 0
        self._own = local()

    def cut(self, block: Block) -> Iterator[Block]:
        """A block in chunks."""
        return iter([block]) if self.size is None else cut(block, self.size)

    def in_workspace(self, chunk: Block) -> tuple[Encoded, np.ndarray | None]:
        """A chunk in the memory of this thread, and that memory, with room for a column of ones and a few targets."""
        width = self.encoder.n_features
        if self.size is None or width is None:
            return self.encoder.encode(chunk), None
        n_rows = len(chunk)
        if not hasattr(self._own, "workspace") or len(self._own.workspace) < n_rows:
            self._own.workspace = np.empty((min(self.size, 2 * n_rows), width + self._beside))
        return self.encoder.encode(chunk, self._own.workspace[:, :width]), self._own.workspace

    def in_new_memory(self, chunk: Block) -> Encoded:
        """A chunk in memory of its own, for rows that are kept."""
        return self.encoder.encode(chunk)


def cut(block: Block, size: int) -> Iterator[Block]:
    """A block in even pieces of at most `size` rows."""
    n_rows = len(block)
    if n_rows <= size:
        yield block
        return
    even = math.ceil(n_rows / math.ceil(n_rows / size))
    for start in range(0, n_rows, even):
        yield block[start : start + even]


def accumulate(rows: Rows, encoder: Encoder, start: AnySummary, opened: Iterator[Block] | None = None) -> AnySummary:
    """The summary of all rows, wherever they lie; `opened` are all blocks of rows whose reading has begun."""
    step = partial(accumulate_part, encoder, start, opened=opened)
    return rows.accumulate(step, type(start).merge)


def accumulate_part(
    encoder: Encoder, start: AnySummary, part: Rows, *, opened: Iterator[Block] | None = None
) -> AnySummary:
    """The summary of rows that are read here, merged from those of the workers."""
    blocks = part.blocks(encoder.code, encoder.block_size) if opened is None else opened
    first = list(islice(blocks, 2))
    if not first:
        raise ValueError("There are no row blocks to factor: give at least one (H, T) pair.")
    if len(first) == 1:  # too little to share
        return start.add(first[0], ChunkEncoder(encoder, _chunk_size(start, encoder, 1)))
    n_rows = len(first[0])
    workers = _workers(start, encoder, n_rows)
    chunk_size = _chunk_size(start, encoder, workers)
    chunks = ChunkEncoder(encoder, chunk_size)

    def step(so_far: AnySummary | None, block: Block) -> AnySummary:
        return (start if so_far is None else so_far).add(block, chunks)

    blocks = chain(first, blocks)
    if workers == 1:
        return _merged(share(step, blocks, 1))
    # A worker takes so many rows at a time that each fold gets about one chunk; if the number of all rows is known, all
    # workers get equal shares. Rows in memory are then cut anew, since slices cost nothing.
    size = item_rows(min(chunk_size or 1, n_rows), workers, start.n_matrices, part.n_in_memory)
    if part.n_in_memory is not None:
        items = part.blocks(encoder.code, size)
    else:
        items = chain.from_iterable(cut(block, size) for block in blocks)
    waiting = items_waiting(workers, size, first[0].X.shape[1])
    # Where a summary is one matrix, a second one for each worker lets others help a slow one.
    states_each = STATES_EACH if start.n_matrices == 1 and not start.merges_in_pairs else 1
    return _merged(share(step, items, workers, waiting=waiting, states_each=states_each))


def first_block(rows: Rows, encoder: Encoder) -> tuple[Block | None, bool, Iterator[Block] | None]:
    """A first block with a row that counts, whether it holds all rows, and all blocks if reading has begun.

    None where no row counts.
    """
    if not rows.local:
        return *_first_of_parts(rows, encoder), None
    stream = rows.blocks(encoder.code, encoder.block_size)
    ahead = list(islice(stream, 2))
    alone = len(ahead) < 2
    for block in ahead:
        if block.counts:
            return block, alone, chain(ahead, stream)
    # Too many blocks without weight to keep: the rows are read from the beginning again.
    return next((block for block in stream if block.counts), None), alone, None


def _first_of_parts(rows: Rows, encoder: Encoder) -> tuple[Block | None, bool]:
    """Rows of the first parts, of more of them until there are as many as features."""
    n_features = encoder.n_features or 0
    n_parts = 1
    while True:
        step = partial(_first_of_part, encoder)
        block = rows.accumulate(step, partial(_first_rows, encoder.block_size), n_parts=n_parts)
        n_rows = 0 if block is None else len(block)
        if n_rows >= n_features or n_parts >= rows.n_parts:
            return block, rows.n_parts == 1 and n_rows < encoder.block_size
        n_parts *= _MORE_PARTS


def _first_of_part(encoder: Encoder, part: Rows) -> Block | None:
    return next((block for block in part.blocks(encoder.code, encoder.block_size) if block.counts), None)


def _first_rows(size: int, one: Block, other: Block) -> Block:
    """The rows of both, but no more than `size`."""
    wanted = size - len(one)
    return one if wanted <= 0 else one.joined(other[:wanted])


def _workers(start: Summary, encoder: Encoder, n_rows: int) -> int:
    """One on a device, else as many as there are and memory allows, for blocks of `n_rows` rows."""
    if encoder.n_features is None:
        return 1
    size = start.chunk_size(encoder, worker_count())
    return workers_for(encoder.n_features, start.copies * min(size, n_rows), start.n_matrices)


def _chunk_size(start: Summary, encoder: Encoder, workers: int) -> int | None:
    return None if encoder.n_features is None else start.chunk_size(encoder, workers)


def _merged(found: list[AnySummary]) -> AnySummary:
    """The summary of all workers: sums one after the other, triangles in pairs, since they take time to merge."""
    merge = type(found[0]).merge
    while len(found) > 1 and found[0].merges_in_pairs:
        found = at_once(partial(reduce, merge), [found[i : i + 2] for i in range(0, len(found), 2)])
    return reduce(merge, found)
