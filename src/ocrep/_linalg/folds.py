"""Exact cross-validation without a second look at the rows: one factor per fold, merged in all but one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, reduce
from itertools import accumulate
from typing import Any

import numpy as np

from ocrep._linalg.arrays import Array, array_namespace
from ocrep._linalg.blocks import Encoded
from ocrep._linalg.factor import Factor
from ocrep._linalg.fold_plan import SPLITS, FoldPlan, split_by_fold
from ocrep._linalg.held_out_rows import HeldOut
from ocrep._linalg.parallel import Item, Result, at_once
from ocrep._linalg.spectrum import Spectrum
from ocrep._linalg.wide import WideFolds

# So many products for each fold are worth a thread.
_MANY_PRODUCTS = 2**24


@dataclass(frozen=True, eq=False, repr=False)
class FoldFactors:
    """One factor per fold; a fold without rows has None."""

    plan: FoldPlan
    factors: tuple[Factor | None, ...]
    n_read: int = 0
    """Rows seen, those of zero weight included."""

    @classmethod
    def empty(cls, plan: FoldPlan) -> FoldFactors:
        """Folds that no row has reached yet."""
        return cls(plan, (None,) * plan.n_folds)

    def __repr__(self) -> str:
        return f"FoldFactors(n_folds={self.plan.n_folds}, seed={self.plan.seed}, n_rows={self.n_read})"

    def absorb(
        self, blocks: Iterable[Any], *, intercept: bool, encode: Callable[[Any], Encoded] | None = None
    ) -> FoldFactors:
        """Add blocks of rows, each row to the factor of its fold.

        `encode` turns a block as it was read, with inputs first, into `(H, T, sample_weight)`.
        """
        factors, n_read = list(self.factors), self.n_read
        for block in blocks:
            n_read += block[0].shape[0]
            for v, mine in split_by_fold(block, self.plan):
                part = mine if encode is None else encode(mine)
                factors[v] = Factor.fold([part], intercept=intercept, start=factors[v], copy=False)
        return FoldFactors(self.plan, tuple(factors), n_read)

    def merge(self, other: FoldFactors) -> FoldFactors:
        factors = tuple(a.merge(b) if a and b else a or b for a, b in zip(self.factors, other.factors, strict=True))
        return FoldFactors(self.plan, factors, self.n_read + other.n_read)

    def to_arrays(self) -> dict[str, np.ndarray]:
        named = {
            f"fold{v}.{name}": array for v, f in enumerate(self.factors) if f for name, array in f.to_arrays().items()
        }
        plan = self.plan
        numbers = (plan.n_folds, plan.seed, SPLITS.index(plan.split), plan.block_length or 0, self.n_read)
        return {"plan": np.array(numbers), **named}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> FoldFactors:
        n_folds, seed, split, length, n_read = (int(value) for value in arrays["plan"])
        factors = []
        for v in range(n_folds):
            prefix = f"fold{v}."
            mine = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
            factors.append(Factor.from_arrays(mine) if mine else None)
        return cls(FoldPlan(n_folds, seed, SPLITS[split], length or None), tuple(factors), n_read)

    def merged(self) -> Factor:
        if "_merged" not in self.__dict__:
            # Without a row of positive weight, the factors still say how many rows were seen.
            self.__dict__["_merged"] = reduce(Factor.merge, self._filled or tuple(filter(None, self.factors)))
        return self.__dict__["_merged"]

    @cached_property
    def _wide(self) -> WideFolds | None:
        """The folds in as many dimensions as rows, where all rows together are fewer than the features."""
        kept = [(factor.rows, factor.counts) for factor in self._filled if factor.rows]
        n_rows = sum(rows.n_rows for rows, _ in kept)
        if not len(self._filled) == len(kept) > 1 or n_rows >= self._filled[0].n_features:
            return None
        problem = self.merged().problem
        return None if problem is None else WideFolds(problem, kept)

    def leading(self, n_features: int) -> FoldFactors:
        """The same folds for the first `n_features` features; the training factors are cut, not merged anew."""
        cut = replace(self, factors=tuple(f and f.leading(n_features) for f in self.factors))
        cut.__dict__["_whole"] = self
        return cut

    @cached_property
    def training(self) -> tuple[Factor, ...]:
        """For each fold that can be held out, the factor of the others."""
        filled, whole = self._filled, self.__dict__.get("_whole")
        if len(filled) < 2:
            return ()
        if whole is not None:
            return tuple(factor.leading(filled[0].n_features) for factor in whole.training)
        before = list(accumulate(filled[:-1], Factor.merge))
        after = list(accumulate(filled[:0:-1], Factor.merge))[::-1]
        middle = (a.merge(b) for a, b in zip(before, after[1:], strict=False))
        return (after[0], *middle, before[-1])

    @cached_property
    def spectra(self) -> tuple[Spectrum, ...]:
        if self._wide:
            return tuple(fit.spectrum for fit in self._wide.fits)
        return tuple(factor.spectrum() for factor in self.training)

    @property
    def n_targets(self) -> int:
        return self._filled[0].counts.n_targets

    @property
    def weight_sums(self) -> tuple[float, ...]:
        """Total weight of each held-out fold."""
        return tuple(factor.counts.weight_sum for factor in self._filled)

    @cached_property
    def fits(self) -> tuple[HeldOut, ...]:
        """Each fold as the others predict it: its rows enter only through their inner products."""
        if self._wide:
            return tuple(self._wide.fits)
        pairs, one = list(held_out(self)), self._filled[0]
        return _for_each(lambda pair: pair[0].held_out(pair[1]), pairs, one, one.n_features)

    def squared_errors(self, gamma: Array) -> Array:
        """Σ w‖t − prediction‖² over each held-out fold, folds × γ, as if the weights had been refitted without it."""
        xp = array_namespace(gamma)
        columns = gamma.shape[0] * self.n_targets

        def errors(fit: HeldOut) -> Array:
            return xp.sum(fit.squared_errors(gamma[:, None]), axis=1)

        return xp.stack(_for_each(errors, self.fits, self._filled[0], columns))

    @property
    def filled(self) -> tuple[int, ...]:
        return tuple(v for v, factor in enumerate(self.factors) if factor is not None and factor.counts.n_rows)

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def _filled(self) -> tuple[Factor, ...]:
        return tuple(factor for factor in self.factors if factor is not None and factor.counts.n_rows)


def _for_each(
    function: Callable[[Item], Result], items: Sequence[Item], like: Factor, columns: int
) -> tuple[Result, ...]:
    """function(item) of each fold's item, on threads if so many columns times a matrix M × M are worth them."""
    large = isinstance(like.counts.shift, np.ndarray) and columns * like.n_features**2 > _MANY_PRODUCTS
    return tuple(at_once(function, items) if large else map(function, items))


def held_out(folds: FoldFactors) -> Iterator[tuple[Factor, Spectrum]]:
    """Each fold that holds rows, with the spectrum of the others."""
    yield from zip((folds.factors[v] for v in folds.filled), folds.spectra, strict=True)


def known_folds(
    plan: FoldPlan, factors: tuple[Factor | None, ...], n_read: int, training: Iterable[tuple[Factor, Spectrum]]
) -> FoldFactors:
    """Folds whose training factors and spectra were computed on the way."""
    folds = FoldFactors(plan, factors, n_read)
    folds.__dict__["training"], folds.__dict__["spectra"] = map(tuple, zip(*training, strict=True))
    return folds
