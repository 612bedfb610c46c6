"""`FoldPlan`: which row falls into which fold of cross-validation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from ocrep._errors import pick
from ocrep._linalg.arrays import Array, array_namespace, take_rows, to_host
from ocrep._linalg.row_hash import hash_sums, mixed, multipliers, seeded, upper_half

Split: TypeAlias = Literal["content", "groups", "blocks", "given"]
SPLITS: tuple[Split, ...] = get_args(Split)


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
        half = upper_half(hash_sums(X, multipliers(self.seed, X.shape[1])))
        return (half % np.uint64(self.n_folds)).astype(np.intp) if isinstance(half, np.ndarray) else half % self.n_folds


def fold_numbers(block: tuple[Any, ...], plan: FoldPlan) -> np.ndarray | Array:
    """The fold of each row of a block; the first array, the inputs, decides, or the last one says it."""
    return plan.of(block[0]) if plan.split == "content" else block[-1]


def split_by_fold(block: tuple[Any, ...], plan: FoldPlan) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """The rows of a block fold by fold; what is None stays None."""
    fold = fold_numbers(block, plan)
    xp = array_namespace(fold)
    order = xp.argsort(fold, stable=True)
    ordered = tuple(None if values is None else take_rows(values, order) for values in block)
    counts = np.bincount(to_host(fold), minlength=plan.n_folds)
    for v, stop in enumerate(np.cumsum(counts).tolist()):
        start = stop - int(counts[v])
        if stop > start:
            yield v, tuple(None if values is None else values[start:stop, ...] for values in ordered)
