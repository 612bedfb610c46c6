"""`FoldGrams` and `FoldPreconditioned`: the sums of each fold, or of all rows as the only one; they merge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from ocrep._linalg.gram import GramSums
from ocrep._linalg.preconditioned import PreconditionedSums

Sums = TypeVar("Sums", GramSums, PreconditionedSums)


@dataclass(frozen=True, eq=False)
class FoldSums(Generic[Sums]):
    """One summary per fold, all about the same shift."""

    sums: tuple[Sums, ...]
    kind: ClassVar[type[Any]]

    def merge(self, other: Self) -> Self:
        return type(self)(tuple(a.merge(b) for a, b in zip(self.sums, other.sums, strict=True)))

    def total(self) -> Sums:
        return reduce(self.kind.merge, self.sums)

    def filled(self) -> list[Sums]:
        """The sums of the folds that hold rows of positive weight."""
        return [sums for sums in self.sums if sums.counts.n_rows]

    def complements(self) -> list[Sums]:
        """For each of two or more filled folds, the sums of all others: added up, since a difference would lose digits.

        The sums of the folds before it and of those behind it merge, so that the price is linear in the folds.
        """
        filled = self.filled()
        merge: Callable[[Any, Any], Any] = self.kind.merge
        before: list[Any] = list(accumulate(filled[:-1], merge))
        behind: list[Any] = list(accumulate(filled[:0:-1], lambda a, b: merge(b, a)))[::-1]
        return [behind[0], *(merge(a, b) for a, b in zip(before, behind[1:], strict=False)), before[-1]]

    def to_arrays(self) -> dict[str, np.ndarray]:
        return {f"{v}.{name}": array for v, sums in enumerate(self.sums) for name, array in sums.to_arrays().items()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Self:
        parts: dict[int, dict[str, np.ndarray]] = {}
        for key, array in arrays.items():
            v, _, name = key.partition(".")
            parts.setdefault(int(v), {})[name] = array
        return cls(tuple(cls.kind.from_arrays(parts[v]) for v in sorted(parts)))


class FoldGrams(FoldSums[GramSums]):
    """The Gram matrix of each fold."""

    kind = GramSums


class FoldPreconditioned(FoldSums[PreconditionedSums]):
    """The Gram matrix of A·R₁⁻¹ of each fold."""

    kind = PreconditionedSums
