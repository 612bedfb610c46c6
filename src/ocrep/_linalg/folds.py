"""Exact cross-validation without a second look at the rows: one factor per fold, merged in all but one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, reduce
from numbers import Integral
from typing import Any

import numpy as np

from ocrep._linalg.arrays import Array, array_namespace, take_rows
from ocrep._linalg.blocks import slices_of
from ocrep._linalg.factor import Factor
from ocrep._linalg.spectrum import Spectrum


@dataclass(frozen=True, slots=True)
class FoldPlan:
    """Which row falls into which fold: a seeded hash of the row's global index.

    So neither the cutting into blocks nor the order of merging matters, and rows sorted by class do not fall
    into one fold.
    """

    n_folds: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("n_folds", 2), ("seed", -math.inf)):
            value = getattr(self, name)
            if not (isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least):
                raise ValueError(f"{name}={value!r} must be a whole number" + (" ≥ 2." if name == "n_folds" else "."))
            object.__setattr__(self, name, int(value))

    def of_rows(self, start: int, n_rows: int) -> np.ndarray:
        """The folds of rows start, …, start + n_rows − 1, by the finaliser of splitmix64."""
        with np.errstate(over="ignore"):
            x = np.arange(start, start + n_rows, dtype=np.uint64) + np.uint64(1)
            x *= np.uint64(0x9E3779B97F4A7C15)
            x += np.uint64(self.seed % 2**64) * np.uint64(0xD1B54A32D192ED03)
            x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            x ^= x >> np.uint64(31)
        return (x % np.uint64(self.n_folds)).astype(np.intp)


def plan_of(store_folds: bool | int | FoldPlan) -> FoldPlan | None:
    """What `store_folds` means: False nothing, True three folds, a number that many, a plan itself."""
    if isinstance(store_folds, FoldPlan):
        return store_folds
    if isinstance(store_folds, bool | np.bool_):
        return FoldPlan() if store_folds else None
    return FoldPlan(store_folds) if store_folds else None


@dataclass(frozen=True, eq=False)
class FoldFactors:
    """One factor per fold; a fold without rows has none."""

    plan: FoldPlan
    factors: tuple[Factor | None, ...]
    n_read: int = 0
    """Rows seen, those of zero weight included: where the next block's global indices begin."""

    @classmethod
    def empty(cls, plan: FoldPlan) -> FoldFactors:
        """Folds that no row has reached yet."""
        return cls(plan, (None,) * plan.n_folds)

    def absorb(self, blocks: Iterable[tuple[Any, Any, Any]], *, intercept: bool) -> FoldFactors:
        """Add blocks `(H, T, sample_weight)`, each row to the factor of its fold."""
        factors, n_read = list(self.factors), self.n_read
        for H, T, weight in blocks:
            fold = self.plan.of_rows(n_read, H.shape[0])
            n_read += H.shape[0]
            for v in range(self.plan.n_folds):
                mine = np.flatnonzero(fold == v)
                if mine.size:
                    part = (
                        take_rows(H, mine),
                        take_rows(T, mine),
                        weight if weight is None else take_rows(weight, mine),
                    )
                    factors[v] = Factor.fold([part], intercept=intercept, start=factors[v])
        return FoldFactors(self.plan, tuple(factors), n_read)

    def merged(self) -> Factor:
        """The factor of all rows."""
        return reduce(Factor.merge, self._filled)

    def leading(self, n_features: int) -> FoldFactors:
        """The same folds for the first `n_features` features; the training factors are cut, not merged anew."""
        cut = FoldFactors(self.plan, tuple(f and f.leading(n_features) for f in self.factors), self.n_read)
        cut.__dict__["training"] = tuple(f.leading(n_features) for f in self.training)
        return cut

    @cached_property
    def training(self) -> tuple[Factor, ...]:
        """For each fold that can be held out, the factor of the others."""
        filled = self._filled
        return tuple(reduce(Factor.merge, filled[:v] + filled[v + 1 :]) for v in range(len(filled)) if len(filled) > 1)

    @cached_property
    def spectra(self) -> tuple[Spectrum, ...]:
        """The spectra of `training`."""
        return tuple(factor.spectrum() for factor in self.training)

    @property
    def n_targets(self) -> int:
        """Columns of T."""
        return self._filled[0].n_targets

    @property
    def weight_sums(self) -> tuple[float, ...]:
        """Total weight of each held-out fold."""
        return tuple(factor.weight_sum for factor in self._filled)

    def squared_errors(self, gamma: Array) -> Array:
        """Σ w‖t − prediction‖² over each held-out fold, folds × γ, as if the weights had been refitted without it.

        The rows of a fold enter only through its factor: ‖[1 | H | T]·[−b; −W; I]‖² = ‖R_v·[−b; −W; I]‖².
        """
        xp = array_namespace(gamma)
        entries = sum(self._filled[0].R.shape) * self.n_targets
        errors = []
        for fold, spectrum in self.held_out():
            parts = [gamma[part] for part in slices_of(gamma.shape[0], entries)]
            errors.append(xp.concat([fold.squared_error(spectrum.weights(g), spectrum.intercept(g)) for g in parts]))
        return xp.stack(errors)

    def held_out(self) -> Iterator[tuple[Factor, Spectrum]]:
        """Each fold with the spectrum of the others."""
        yield from zip(self._filled, self.spectra, strict=True)

    @property
    def filled(self) -> tuple[int, ...]:
        """The folds that hold rows."""
        return tuple(v for v, factor in enumerate(self.factors) if factor is not None and factor.n_rows)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out of pickles and copies what can be computed again."""
        return {"plan": self.plan, "factors": self.factors, "n_read": self.n_read}

    @property
    def usable(self) -> bool:
        """Whether at least two folds hold rows."""
        return len(self._filled) > 1

    @property
    def _filled(self) -> tuple[Factor, ...]:
        return tuple(factor for factor in self.factors if factor is not None and factor.n_rows)
