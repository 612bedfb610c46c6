"""Encoded rows [H | T]: how they are counted, cut into chunks, shared among workers and summarized.

Everything is computed from the rows of A = √w·[1 | H − s | T − s]. AᵀA is then Σ w·aaᵀ, so a row of weight w counts as
w equal rows, and the column of ones (√w, once it is weighted) gives the intercept: behind it, a factor R of A holds the
factor of the data about their weighted mean,

    Σ w(x − x̄)(x − x̄)ᵀ = Σ w(x − s)(x − s)ᵀ − Σw·(x̄ − s)(x̄ − s)ᵀ   for every shift s.

In exact arithmetic s changes nothing. In floating point the two terms on the right cancel, and what is lost is ε·(|x̄ −
s|/spread)²: a column such as 10⁶ ± 1 about s = 0 would lose twelve digits of its variance in a Gram matrix, and six of
its own in a triangle. So s is the mean of the first rows that have weight: near enough to the mean of all, and known
before the other rows are read, so that sums of folds and workers are about one shift and simply add up (Chan, Golub,
LeVeque, The American Statistician 37, 1983). Without an intercept nothing is centred, and s = 0.

`Counts` also says how many observations n the rows are, which the criteria for γ need. Whole weights are frequencies: n
= Σw, so that weights and repeated rows give the same answer under every rule but leave-one-out, which leaves out whole
rows. Other weights only say how precise a row is, and rescaling them must not change n: the rows of positive weight are
counted.

Counts merge: the counts of all rows are the sum of the counts of any parts, about the shift of the first that has one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import chain, islice
from threading import local
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from array_api_compat import is_array_api_obj

from ocrep._linalg.arrays import SMALLEST, Array, array_namespace, as_float64, device_of
from ocrep._linalg.parallel import (
    PIECE_ENTRIES,
    STATES_EACH,
    at_once,
    item_rows,
    items_waiting,
    row_slices,
    share_items,
    worker_count,
    workers_for,
)

if TYPE_CHECKING:
    from ocrep._rows.block import Block
    from ocrep._rows.memory import Rows

# With at most this many targets, room for them beside H costs little memory, and one product gives HᵀH and HᵀT.
_FEW_TARGETS = 8
# The first block of rows that lie in parts is looked for in one part, then in eight times as many, and so on.
_MORE_PARTS = 8


# ------------------------------------------------------------------------------
# `Encoded`, a block of rows, and `Counts`.


class Encoded(NamedTuple):
    """Features H, targets T and weights of some rows; `of` checks what comes from elsewhere."""

    H: Array
    """Once checked, float64, or float32 with fewer rows than columns: such rows are kept, and converted where used."""
    T: Array
    weight: Array | None = None

    @classmethod
    def of(cls, H: Any, T: Any, sample_weight: Any = None) -> Encoded:
        """Check shapes and weights; T of shape (n,) becomes one column."""
        if not (is_array_api_obj(H) and H.dtype == array_namespace(H).float32):
            H = as_float64(H)
        T = as_float64(T)
        T = T[:, None] if T.ndim == 1 else T
        if H.ndim != 2 or T.ndim != 2 or H.shape[0] != T.shape[0]:
            raise ValueError(
                f"H must be rows × features and T rows × targets with as many rows; got shapes {H.shape} and {T.shape}."
            )
        n_rows, n_features = H.shape
        weight = None if sample_weight is None else as_float64(sample_weight)
        if weight is not None:
            if weight.shape != (n_rows,):
                raise ValueError(f"sample_weight must have one entry per row, shape ({n_rows},); got {weight.shape}.")
            # Written so that NaN fails too.
            if not bool(array_namespace(weight).all((weight >= 0.0) & (weight < 1.0 / SMALLEST))):
                raise ValueError(
                    "sample_weight holds negative, NaN or infinite entries: weights must be ≥ 0 and below 1e145."
                )
        return cls(H if n_rows < n_features else as_float64(H), T, weight)

    def mean(self, weight_sum: float) -> Array:
        """Weighted column means of [H | T]; the weights sum to `weight_sum` > 0."""
        xp = array_namespace(self.H)
        if self.weight is None and self.H.dtype == xp.float64:
            return xp.concat([xp.mean(part, axis=0) for part in (self.H, self.T)])
        # Divided by their sum before they multiply H, so that large weights do not overflow.
        weight = xp.ones_like(self.T[:, 0]) if self.weight is None else self.weight
        return xp.concat([averages(weight / weight_sum, part) for part in (self.H, self.T)])

    def parts(self, shift: Array, intercept: bool, scratch: np.ndarray | None = None) -> tuple[Array, Array]:
        """√w·(H − s) and √w·[1 | T − s]; without an intercept √w·H and √w·T, copied only if there are weights.

        On the host a copy of H may be written into the first rows and columns of `scratch`; H itself may lie there.
        """
        H = self.H
        rest = self.T
        xp = array_namespace(H)
        n_rows, M = H.shape
        # New memory for each chunk would cost more than the subtraction itself.
        place = None if scratch is None else scratch[:n_rows, :M]
        if intercept:
            ones = xp.ones((n_rows, 1), dtype=xp.float64, device=device_of(H))
            H = as_float64(H) - shift[:M] if place is None else np.subtract(H, shift[:M], out=place)
            rest = xp.concat([ones, rest - shift[M:]], axis=1)
        if self.weight is None:
            return as_float64(H), rest
        root = xp.sqrt(self.weight)[:, None]
        H = root * as_float64(H) if place is None else np.multiply(root, H, out=place)
        return H, root * rest

    def design(self, shift: Array, intercept: bool, scratch: np.ndarray | None = None) -> tuple[Array, Array]:
        """√w·[1 | H − s] and √w·(T − s), copied only if there is an intercept or weights; `scratch` as for `parts`."""
        H, rest = self.parts(shift, intercept, scratch)
        if not intercept:
            return H, rest
        return array_namespace(H).concat([rest[:, :1], H], axis=1), rest[:, 1:]

    def outputs(self, W: Array, b: Array) -> Array:
        """HW + b."""
        return array_namespace(W).matmul(as_float64(self.H), W) + b

    def squared_error(self, W: Array, b: Array) -> float:
        """Σw‖t − hW − b‖² over the rows and targets."""
        errors = (self.T - self.outputs(W, b)) ** 2
        return float(array_namespace(errors).sum(errors if self.weight is None else self.weight @ errors))


def averages(weights: Array, H: Array) -> Array:
    """weights·H in float64, for one row of weights or several, without a float64 copy of all H."""
    xp = array_namespace(H)
    if H.dtype == xp.float64:
        return xp.matmul(weights, H)
    total = xp.zeros((*weights.shape[:-1], H.shape[1]), dtype=xp.float64, device=device_of(H))
    for rows in row_slices(H.shape[0], max(1, PIECE_ENTRIES // H.shape[1])):
        total = total + xp.matmul(weights[..., rows], as_float64(H[rows, :]))
    return total


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Rows of √w·[1 | H − s | T − s] as numbers; the counts of all rows are the merge of the counts of any parts."""

    shift: Array
    """One number per column of [H | T]: the mean of the first rows that have weight; zero without an intercept."""
    n_targets: int
    intercept: bool
    n_rows: int = 0
    """Rows of positive weight."""
    weight_sum: float = 0.0
    whole_weights: bool = True
    """Whether every weight was a whole number."""
    n_seen: int = 0
    """All rows, with the rows of zero weight."""
    shift_known: bool = False
    """Whether the shift is final; until a row of positive weight gives it, it is zero."""

    @classmethod
    def none(cls, rows: Encoded, intercept: bool) -> Counts:
        """Before any row has been counted, for columns such as these."""
        xp = array_namespace(rows.H)
        n_targets = rows.T.shape[1]
        zeros = xp.zeros((rows.H.shape[1] + n_targets,), dtype=xp.float64, device=device_of(rows.H))
        return cls(zeros, n_targets, intercept, shift_known=not intercept)

    def add(self, rows: Encoded) -> Counts:
        """Count more rows; the first that have weight give the shift."""
        self.check_columns(rows.H.shape[1], rows.T.shape[1])
        n_rows = rows.H.shape[0]
        weight_sum = float(n_rows)
        whole = True
        if rows.weight is not None:
            xp = array_namespace(rows.weight)
            n_rows = int(xp.sum(xp.astype(rows.weight > 0, xp.int64)))
            weight_sum = float(xp.sum(rows.weight))
            # Beyond 2³¹ every float64 is nearly a whole number, and none is a frequency.
            whole = bool(xp.all((rows.weight == xp.floor(rows.weight)) & (rows.weight < 2.0**31)))
        shift_known = self.shift_known or weight_sum > 0.0
        return Counts(
            rows.mean(weight_sum) if shift_known and not self.shift_known else self.shift,
            self.n_targets,
            self.intercept,
            self.n_rows + n_rows,
            self.weight_sum + weight_sum,
            self.whole_weights and whole,
            self.n_seen + rows.H.shape[0],
            shift_known,
        )

    def merge(self, other: Counts) -> Counts:
        """The counts of the rows of both, about the shift of the first that has any."""
        self.check_columns(other.n_features, other.n_targets)
        if self.intercept != other.intercept:
            raise ValueError("One factor has an intercept and the other does not: they cannot be merged.")
        return replace(
            self if self.shift_known else other,
            n_rows=self.n_rows + other.n_rows,
            weight_sum=self.weight_sum + other.weight_sum,
            whole_weights=self.whole_weights and other.whole_weights,
            n_seen=self.n_seen + other.n_seen,
        )

    def without_rows(self) -> Counts:
        """The same columns about the same shift, before any row has been counted."""
        return Counts(self.shift, self.n_targets, self.intercept, shift_known=self.shift_known)

    def about(self, shift: Array) -> Counts:
        """The same counts about another shift, or for some of the columns."""
        return replace(self, shift=shift)

    @property
    def n_features(self) -> int:
        return self.shift.shape[0] - self.n_targets

    @property
    def n(self) -> int:
        """Observations: Σw where all weights are whole, else the rows of positive weight."""
        return round(self.weight_sum) if self.whole_weights else self.n_rows

    def check_columns(self, n_features: int, n_targets: int) -> None:
        """Raise unless rows have as many features and targets as the rows before."""
        if (n_features, n_targets) != (self.n_features, self.n_targets):
            raise ValueError(
                f"These rows have {n_features} features and {n_targets} targets, but the factor has "
                f"{self.n_features} and {self.n_targets}: all blocks must have the same columns."
            )

    def to_arrays(self) -> dict[str, np.ndarray]:
        counts = (self.n_targets, self.intercept, self.n_rows, self.whole_weights, self.n_seen, self.shift_known)
        return {
            "shift": np.asarray(self.shift),
            "counts": np.asarray(counts, dtype=np.int64),
            "weight_sum": np.asarray(self.weight_sum),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Counts:
        n_targets, intercept, n_rows, whole, n_seen, known = (int(count) for count in arrays["counts"])
        weight_sum = float(arrays["weight_sum"])
        return cls(arrays["shift"], n_targets, bool(intercept), n_rows, weight_sum, bool(whole), n_seen, bool(known))


# ------------------------------------------------------------------------------
# From rows to a summary.
#
# A summary of rows merges: that of all rows is the merge of those of any parts. So one function, `summarize`, serves
# rows in memory, files and Dask partitions:
#
#     rows.accumulate(step, merge)      calls step(part) where each part lies, and merges what comes back
#       step(part)                      reads the part block by block, shares its blocks among workers
#         summary.add(block, chunks)    cuts a block by folds and into chunks, and adds each chunk
#           chunks.in_workspace(chunk)  H, T and weights of some hundred or thousand rows, in memory that is used again
#
# Reading is done by one thread; encoding and adding, which take nearly all the time, by all. H exists only for the
# chunks that workers hold, so memory does not grow with the rows. Which chunk goes to which summary does not depend on
# timing: the same number of workers gives the same bits.
#
# A summary says what a worker holds while it adds rows: `n_matrices` matrices M × M, and `copies` copies of a chunk of
# H. From these follow the size of chunks and the number of workers (`_linalg/parallel.py`).


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

    def read(self) -> Iterator[Block]:
        """All rows from the beginning, coded but not encoded."""
        return self.rows.blocks(self.encoder.code, self.encoder.block_size)

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

    def chunk_size(self, encoder: Encoder, workers: int) -> int | None:
        """Rows that each of some workers adds at a time; None for whole blocks, on a device."""

    def add(self, block: Block, chunks: ChunkEncoder) -> Self:
        """The summary with the rows of one more block; this object is not used again."""

    def merge(self, other: Self) -> Self:
        """The summary of the rows of both."""


AnySummary = TypeVar("AnySummary", bound=Summary)


class ChunkEncoder:
    """Encodes chunks of rows in memory that each thread uses again: new memory costs more than a tanh."""

    def __init__(self, encoder: Encoder, size: int | None) -> None:
        self.encoder = encoder
        self.size = size
        """Rows of a chunk at most; None for whole blocks, on a device."""
        self._beside = 1 + encoder.n_targets if encoder.n_targets <= _FEW_TARGETS else 0
        self._own = local()

    def in_workspace(self, chunk: Block) -> tuple[Encoded, np.ndarray | None]:
        """A chunk in the memory of this thread, and that memory, with room for a column of ones and a few targets."""
        width = self.encoder.n_features
        if self.size is None or width is None:
            return self.encoder.encode(chunk), None
        n_rows = len(chunk)
        if not hasattr(self._own, "workspace") or len(self._own.workspace) < n_rows:
            self._own.workspace = np.empty((min(self.size, 2 * n_rows), width + self._beside))
        return self.encoder.encode(chunk, self._own.workspace[:, :width]), self._own.workspace


def cut(block: Block, size: int | None) -> Iterator[Block]:
    """A block in even pieces of at most `size` rows, or as it is."""
    n_rows = len(block)
    if size is None or n_rows <= size:
        yield block
        return
    even = math.ceil(n_rows / math.ceil(n_rows / size))
    for start in range(0, n_rows, even):
        yield block[start : start + even]


def summarize(rows: Rows, encoder: Encoder, start: AnySummary, opened: Iterator[Block] | None = None) -> AnySummary:
    """The summary of all rows, wherever they lie; `opened` are all blocks of rows whose reading has begun."""
    step = partial(summarize_part, encoder, start, opened=opened)
    return rows.accumulate(step, type(start).merge)


def summarize_part(
    encoder: Encoder, start: AnySummary, part: Rows, *, opened: Iterator[Block] | None = None
) -> AnySummary:
    """The summary of rows that are read here, merged from those of the workers."""
    blocks = part.blocks(encoder.code, encoder.block_size) if opened is None else opened
    first = list(islice(blocks, 2))
    if not first:
        raise ValueError("There are no row blocks to factor: give at least one (H, T) pair.")
    if len(first) == 1:  # too little to share
        return start.add(first[0], ChunkEncoder(encoder, start.chunk_size(encoder, 1)))
    n_rows, n_inputs = len(first[0]), first[0].X.shape[1]
    most = start.chunk_size(encoder, worker_count())
    workers = 1  # on a device
    if encoder.n_features is not None and most is not None:
        workers = workers_for(encoder.n_features, start.copies * min(most, n_rows), start.n_matrices)
    chunk_size = start.chunk_size(encoder, workers)
    chunks = ChunkEncoder(encoder, chunk_size)

    def step(so_far: AnySummary | None, block: Block) -> AnySummary:
        return (start if so_far is None else so_far).add(block, chunks)

    blocks = chain(first, blocks)
    del first  # or these blocks would be held until the last one
    if workers == 1:
        return _merged(share_items(step, blocks, 1))
    # A worker takes so many rows at a time that each fold gets about one chunk; if the number of all rows is known, all
    # workers get equal shares. Rows in memory are then cut anew, since slices cost nothing.
    size = item_rows(min(chunk_size or 1, n_rows), workers, start.n_matrices, part.n_in_memory)
    if part.n_in_memory is not None:
        items = part.blocks(encoder.code, size)
    else:
        items = chain.from_iterable(cut(block, size) for block in blocks)
    waiting = items_waiting(workers, size, n_inputs)
    # Where a summary is one matrix, a second one for each worker lets others help a slow one.
    states_each = STATES_EACH if start.n_matrices == 1 and not start.merges_in_pairs else 1
    return _merged(share_items(step, items, workers, waiting=waiting, states_each=states_each))


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


def _merged(found: list[AnySummary]) -> AnySummary:
    """The summary of all workers: sums one after the other, triangles in pairs, since they take time to merge."""
    merge = type(found[0]).merge
    while len(found) > 1 and found[0].merges_in_pairs:
        found = at_once(partial(reduce, merge), [found[i : i + 2] for i in range(0, len(found), 2)])
    return reduce(merge, found)
