"""`FoldPlan`: which row falls into which fold of cross-validation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from array_api_compat import is_torch_namespace
from scipy import sparse

from ocrep._errors import pick
from ocrep._linalg.arrays import Array, array_namespace, device_of, take_rows, to_host
from ocrep._linalg.blocks import row_slices
from ocrep._linalg.counts import PIECE_ENTRIES

Split: TypeAlias = Literal["content", "groups", "blocks", "given"]
SPLITS: tuple[Split, ...] = get_args(Split)
_SPREAD = np.uint64(0xD1B54A32D192ED03)


@dataclass(frozen=True, slots=True)
class FoldPlan:
    """Which row falls into which fold.

    "content": a seeded hash of the row's inputs. So order and cutting into blocks do not matter, rows on other machines
    need no numbers, a weight equals repetition, and duplicates share a fold: a row is never judged by its own twin.
    "groups": the rank of a seeded hash of the row's group. "blocks": the number of the row. "given": the group is the
    fold.
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

    def divides_as(self, other: FoldPlan) -> bool:
        """Whether rows divided by the other plan are divided as this one says; given folds are as many as there are."""
        return self == (replace(other, n_folds=self.n_folds) if self.split == "given" else other)

    def of_row_numbers(self, numbers: np.ndarray, n_rows: int | None) -> np.ndarray:
        """The fold of the rows of these numbers, out of `n_rows` where no length of blocks is given."""
        if self.block_length is not None:
            return numbers // self.block_length % self.n_folds
        assert n_rows is not None
        return numbers * self.n_folds // n_rows

    def ordered(self, keys: np.ndarray) -> np.ndarray:
        """Keys of groups in an order of their own: as they are where they are the folds, else a seeded hash of them."""
        with np.errstate(over="ignore"):
            return keys if self.split == "given" else _mixed(keys + np.uint64(self.seed % 2**64) * _SPREAD)

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

        Σ_j f(x_j)·m_j modulo 2⁶⁴ with odd random m_j and f(0) = 0, so that sparse rows need not be filled, then the
        finaliser of splitmix64. Numbers count as float64, and −0 as 0.
        """
        multipliers = _multipliers(self.seed, X.shape[1])
        if sparse.issparse(X):
            X = X.tocsr()
            if not X.has_canonical_format:  # entries of one place must be added up before they are hashed
                X = X.copy()
                X.sum_duplicates()
            parts = _bits(np.asarray(X.data, dtype=np.float64)) * multipliers[X.indices]
            starts, filled = X.indptr[:-1], np.diff(X.indptr) > 0
            sums = np.zeros(X.shape[0], dtype=np.uint64)
            if len(parts):
                sums[filled] = np.add.reduceat(parts, starts[filled])
            return _fold_of(sums, self.n_folds)
        if is_torch_namespace(array_namespace(X)) and X.is_cuda:
            return _on_gpu(X, multipliers, self.n_folds)
        X = to_host(X)
        sums = np.empty(X.shape[0], dtype=np.uint64)
        for rows in row_slices(X.shape[0], max(1, PIECE_ENTRIES // max(1, X.shape[1]))):
            sums[rows] = _bits(np.asarray(X[rows], dtype=np.float64)) @ multipliers
        return _fold_of(sums, self.n_folds)


def _multipliers(seed: int, n_columns: int) -> np.ndarray:
    """One odd number of 64 bits per column."""
    with np.errstate(over="ignore"):
        start = np.uint64(seed % 2**64) * _SPREAD
        x = start + np.arange(1, n_columns + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        return _mixed(x) | np.uint64(1)


def _bits(values: np.ndarray) -> np.ndarray:
    bits = (values + 0.0).view(np.uint64)  # −0 + 0 = 0
    bits ^= bits >> np.uint64(32)
    return bits


def _mixed(x: np.ndarray) -> np.ndarray:
    """The finaliser of splitmix64."""
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _fold_of(sums: np.ndarray, n_folds: int) -> np.ndarray:
    return ((_mixed(sums) >> np.uint64(32)) % np.uint64(n_folds)).astype(np.intp)


def _on_gpu(X: Array, multipliers: np.ndarray, n_folds: int) -> Array:
    """The same with torch's signed integers, whose products wrap around as unsigned ones do."""
    xp = array_namespace(X)

    def shifted(x: Array, by: int) -> Array:
        return (x >> by) & ((1 << (64 - by)) - 1)

    x = xp.astype(X, xp.float64) + 0.0
    bits = x.view(xp.int64)
    bits = bits ^ shifted(bits, 32)
    x = xp.sum(bits * xp.asarray(multipliers.view(np.int64), device=device_of(X)), axis=1)
    for by, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ shifted(x, by)) * (factor - (1 << 64))
    return shifted(x ^ shifted(x, 31), 32) % n_folds


def split_by_fold(block: tuple[Any, ...], plan: FoldPlan) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """The rows of a block fold by fold; the first array, the inputs, decides, or the last one says it.

    What is None stays None.
    """
    fold = plan.of(block[0]) if plan.split == "content" else block[-1]
    xp = array_namespace(fold)
    order = xp.argsort(fold, stable=True)
    ordered = tuple(None if values is None else take_rows(values, order) for values in block)
    counts = np.bincount(to_host(fold), minlength=plan.n_folds)
    for v, stop in enumerate(np.cumsum(counts).tolist()):
        start = stop - int(counts[v])
        if stop > start:
            yield v, tuple(None if values is None else values[start:stop, ...] for values in ordered)
