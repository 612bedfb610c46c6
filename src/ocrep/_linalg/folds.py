"""Which fold of cross-validation a row falls into: `FoldPlan`, and the hash of rows behind it.

Each row belongs to one fold, decided by the row itself: by a seeded hash of its inputs ("content"), of its group, or by
its number. The hash of a row is Σ_j f(x_j)·m_j modulo 2⁶⁴, with odd multipliers m_j from the seed and f the bits of the
float64 x_j, mixed; the finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014) makes a sum even, and its upper half
modulo k is the fold. A sum does not depend on the order of the columns' reading, f(0) = 0 leaves out what a sparse row
leaves out, and integers wrap around in the same way on every machine and device: so a row falls into the same fold
wherever and in whichever block it is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, get_args

import numpy as np
from array_api_compat import is_torch_namespace
from scipy import sparse

from ocrep._errors import pick
from ocrep._linalg.arrays import Array, array_namespace, device_of, to_host
from ocrep._linalg.parallel import PIECE_ENTRIES, row_slices

if TYPE_CHECKING:
    from ocrep._rows.block import Block

# ------------------------------------------------------------------------------
# A seeded hash of the numbers in each row: the same for every library, order and cutting, and for sparse rows.


def seeded(seed: int) -> np.ndarray:
    """The start of a seed's numbers; as an array, since sums of NumPy's scalars warn when they wrap around."""
    return np.array([seed % 2**64], dtype=np.uint64) * np.uint64(0xD1B54A32D192ED03)


def multipliers(seed: int, n_columns: int) -> np.ndarray:
    """One odd number of 64 bits per column."""
    x = seeded(seed) + np.arange(1, n_columns + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return mixed(x) | np.uint64(1)


def hash_sums(X: Any, factors: np.ndarray) -> np.ndarray | Array:
    """Σ_j f(x_j)·m_j modulo 2⁶⁴ for each row of X: an array of any library, or a sparse matrix.

    f(0) = 0, so that sparse rows need not be filled. Numbers count as float64, and −0 as 0. The sums of a torch tensor
    on a GPU stay there, as signed integers.
    """
    if sparse.issparse(X):
        X = X.tocsr()
        if not X.has_canonical_format:  # entries of one place must be added up before they are hashed
            X = X.copy()
            X.sum_duplicates()
        parts = _bits(np.asarray(X.data, dtype=np.float64)) * factors[X.indices]
        sums = np.zeros(X.shape[0], dtype=np.uint64)
        if len(parts):
            # `reduceat` gives the next row's first entry for an empty row, so empty rows are left at 0.
            filled = np.diff(X.indptr) > 0
            sums[filled] = np.add.reduceat(parts, X.indptr[:-1][filled])
        return sums
    xp = array_namespace(X)
    if is_torch_namespace(xp) and X.is_cuda:
        bits = (xp.astype(X, xp.float64) + 0.0).view(xp.int64)
        bits = bits ^ _shifted(bits, 32)
        return xp.sum(bits * xp.asarray(factors.view(np.int64), device=device_of(X)), axis=1)
    X = to_host(X)
    sums = np.empty(X.shape[0], dtype=np.uint64)
    for rows in row_slices(X.shape[0], max(1, PIECE_ENTRIES // max(1, X.shape[1]))):
        sums[rows] = _bits(np.asarray(X[rows], dtype=np.float64)) @ factors
    return sums


def mixed(x: np.ndarray) -> np.ndarray:
    """The finaliser of splitmix64: each bit of x changes each bit of the result with a chance of about one half."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _mixed_on_device(x: Array) -> Array:
    """The upper 32 bits of `mixed`, for the signed integers of a device."""
    for by, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ _shifted(x, by)) * (factor - (1 << 64))  # signed products wrap around as unsigned ones do
    return _shifted(x ^ _shifted(x, 31), 32)


def _shifted(x: Array, by: int) -> Array:
    """x >> by for signed integers, as if they were unsigned."""
    return (x >> by) & ((1 << (64 - by)) - 1)


def _bits(values: np.ndarray) -> np.ndarray:
    """f(x): the bits of x, the upper half mixed into the lower, where the bits of short numbers are zero."""
    bits = (values + 0.0).view(np.uint64)  # −0 + 0 = 0
    bits ^= bits >> np.uint64(32)
    return bits


# ------------------------------------------------------------------------------
# `FoldPlan`: which row falls into which fold of cross-validation.


Split: TypeAlias = Literal["content", "groups", "blocks", "given"]
SPLITS: tuple[Split, ...] = get_args(Split)


@dataclass(frozen=True, slots=True)
class FoldPlan:
    """Which row falls into which fold.

    "content": a seeded hash of the row's inputs. So order and cutting into blocks do not matter, rows on other machines
    need no numbers, a weight equals repetition, and duplicates share a fold: a row is never judged by its own twin.
    "groups": the rank of a seeded hash of the row's group. "blocks": the row number, in blocks of consecutive rows.
    "given": the group is the fold.
    """

    n_folds: int = 3
    seed: int = 0
    split: Split = "content"
    block_length: int | None = None
    """Consecutive rows of a block; None makes one block of each fold."""

    def __post_init__(self) -> None:
        pick("split", self.split, dict.fromkeys(SPLITS))
        if self.block_length is not None and self.split != "blocks":
            raise ValueError(f"block_length={self.block_length!r} is for split='blocks', not for {self.split!r}.")
        for name, least in (("n_folds", 2), ("seed", -math.inf), ("block_length", 1)):
            value = getattr(self, name)
            if name == "block_length" and value is None:
                continue
            if not (isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least):
                raise ValueError(f"{name}={value!r} must be a whole number{'' if name == 'seed' else f' ≥ {least}'}.")
            object.__setattr__(self, name, int(value))

    def __repr__(self) -> str:
        names = ["n_folds", "seed"]
        names += ["split"] * (self.split != "content") + ["block_length"] * (self.block_length is not None)
        return f"FoldPlan({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    @property
    def reads_groups(self) -> bool:
        return self.split in ("groups", "given")

    def of_row_numbers(self, numbers: np.ndarray, n_rows: int | None) -> np.ndarray:
        """The fold of rows by their numbers; without a length of blocks, each fold is a block of all `n_rows` rows."""
        if self.block_length is not None:
            return numbers // self.block_length % self.n_folds
        assert n_rows is not None
        return numbers * self.n_folds // n_rows

    def ordered(self, keys: np.ndarray) -> np.ndarray:
        """What groups are sorted by: a seeded hash of their keys, or the keys themselves where they are the folds."""
        return keys if self.split == "given" else mixed(keys + seeded(self.seed))

    def of_groups(self, keys: np.ndarray, known: np.ndarray | None) -> np.ndarray:
        """The fold of the rows with these keys of groups.

        The `known` groups, sorted as `ordered` says, take turns, so that each fold gets as many; None if not all are
        known, and then the hash itself decides.
        """
        ordered = self.ordered(keys)
        if known is None:
            return (ordered >> np.uint64(32)).astype(np.intp) % self.n_folds
        return np.searchsorted(known, ordered) % self.n_folds

    def of(self, X: Any) -> np.ndarray | Array:
        """The fold of each row of X: an array of any library, or a sparse matrix.

        The hash is `hash_sums` and the finaliser of splitmix64.
        """
        sums = hash_sums(X, multipliers(self.seed, X.shape[1]))
        if not isinstance(sums, np.ndarray):
            return _mixed_on_device(sums) % self.n_folds
        return ((mixed(sums) >> np.uint64(32)) % np.uint64(self.n_folds)).astype(np.intp)


def fold_numbers(block: Block, plan: FoldPlan) -> np.ndarray | Array:
    """The fold of each row of a coded block: the block says it, or its inputs decide."""
    if block.fold is not None:
        return block.fold
    assert plan.split == "content", "rows of groups are coded with their folds"
    return plan.of(block.X)


def split_by_fold(block: Block, plan: FoldPlan | None) -> Iterator[tuple[int, Block]]:
    """The rows of a block fold by fold; without a plan, all of them as one."""
    if plan is None:
        yield 0, block
        return
    fold = fold_numbers(block, plan)
    # Sorted once and sliced, which takes less time than one selection of rows per fold.
    ordered = block.take(array_namespace(fold).argsort(fold, stable=True))
    counts = np.bincount(to_host(fold), minlength=plan.n_folds)
    for v, stop in enumerate(np.cumsum(counts).tolist()):
        start = stop - int(counts[v])
        if stop > start:
            yield v, ordered[start:stop]


# ------------------------------------------------------------------------------

Summary = TypeVar("Summary")


def without_each(summaries: Sequence[Summary], merge: Callable[[Summary, Summary], Summary]) -> list[Summary]:
    """For each of two or more summaries the merge of all others: added up, since a difference would lose digits.

    What comes before each and what comes after are running merges, so that the price is linear in their number.
    """
    before = list(accumulate(summaries[:-1], merge))
    after = list(accumulate(summaries[:0:-1], merge))[::-1]
    return [after[0], *map(merge, before, after[1:]), before[-1]]
