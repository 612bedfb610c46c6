"""Exact cross-validation without a second look at the rows: one factor per fold, merged in all but one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property, reduce
from numbers import Integral
from typing import Any

import numpy as np

from ocrep._linalg.arrays import Array, array_namespace, take_rows
from ocrep._linalg.blocks import Encoded, slices_of
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


@dataclass(frozen=True, eq=False, repr=False)
class FoldFactors:
    """One factor per fold; a fold without rows has None."""

    plan: FoldPlan
    factors: tuple[Factor | None, ...]
    n_read: int = 0
    """Rows seen, those of zero weight included."""
    start: int = 0
    """The global number of the first row."""

    @classmethod
    def empty(cls, plan: FoldPlan, start: int = 0) -> FoldFactors:
        """Folds that no row has reached yet."""
        return cls(plan, (None,) * plan.n_folds, start=start)

    def __repr__(self) -> str:
        return f"FoldFactors(n_folds={self.plan.n_folds}, seed={self.plan.seed}, n_rows={self.n_read})"

    def absorb(self, blocks: Iterable[Encoded], *, intercept: bool) -> FoldFactors:
        """Add blocks `(H, T, sample_weight)`, each row to the factor of its fold."""
        factors, n_read = list(self.factors), self.n_read
        for block in blocks:
            n_rows = block[0].shape[0]
            fold = self.plan.of_rows(self.start + n_read, n_rows)
            n_read += n_rows
            for v in range(self.plan.n_folds):
                mine = np.flatnonzero(fold == v)
                if mine.size:
                    part = tuple(None if values is None else take_rows(values, mine) for values in block)
                    factors[v] = Factor.fold([part], intercept=intercept, start=factors[v])
        return FoldFactors(self.plan, tuple(factors), n_read, self.start)

    def merge(self, other: FoldFactors) -> FoldFactors:
        """The factors of the rows of both, fold by fold."""
        factors = tuple(a.merge(b) if a and b else a or b for a, b in zip(self.factors, other.factors, strict=True))
        return FoldFactors(self.plan, factors, self.n_read + other.n_read, min(self.start, other.start))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The factors as NumPy arrays, for a checkpoint."""
        named = {
            f"fold{v}.{name}": array for v, f in enumerate(self.factors) if f for name, array in f.to_arrays().items()
        }
        return {"plan": np.array([self.plan.n_folds, self.plan.seed, self.n_read, self.start]), **named}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> FoldFactors:
        """The factors that `to_arrays` wrote."""
        n_folds, seed, n_read, start = (int(value) for value in arrays["plan"])
        factors = []
        for v in range(n_folds):
            prefix = f"fold{v}."
            mine = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
            factors.append(Factor.from_arrays(mine) if mine else None)
        return cls(FoldPlan(n_folds, seed), tuple(factors), n_read, start)

    def merged(self) -> Factor:
        """The factor of all rows."""
        return reduce(Factor.merge, self._filled)

    def leading(self, n_features: int) -> FoldFactors:
        """The same folds for the first `n_features` features; the training factors are cut, not merged anew."""
        cut = replace(self, factors=tuple(f and f.leading(n_features) for f in self.factors))
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
        return self._filled[0].counts.n_targets

    @property
    def weight_sums(self) -> tuple[float, ...]:
        """Total weight of each held-out fold."""
        return tuple(factor.counts.weight_sum for factor in self._filled)

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
        return tuple(v for v, factor in enumerate(self.factors) if factor is not None and factor.counts.n_rows)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out of pickles and copies what can be computed again."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def usable(self) -> bool:
        """Whether at least two folds hold rows."""
        return len(self._filled) > 1

    @property
    def _filled(self) -> tuple[Factor, ...]:
        return tuple(factor for factor in self.factors if factor is not None and factor.counts.n_rows)
