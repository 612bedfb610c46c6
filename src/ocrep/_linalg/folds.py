"""Exact cross-validation without a second look at the rows: one factor per fold, merged in all but one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property, reduce
from itertools import accumulate
from numbers import Integral
from typing import Any

import numpy as np
from array_api_compat import is_torch_namespace
from scipy import sparse

from ocrep._linalg.arrays import Array, array_namespace, device_of, take_rows, to_host
from ocrep._linalg.blocks import Encoded, row_slices, slices_of
from ocrep._linalg.counts import PIECE_ENTRIES
from ocrep._linalg.factor import Factor
from ocrep._linalg.spectrum import Spectrum
from ocrep._linalg.wide import WideFolds


@dataclass(frozen=True, slots=True)
class FoldPlan:
    """Which row falls into which fold: a seeded hash of the row's inputs.

    So order and cutting into blocks do not matter, rows on other machines need no numbers, a weight equals repetition,
    and duplicates share a fold: a row is never judged by its own twin.
    """

    n_folds: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("n_folds", 2), ("seed", -math.inf)):
            value = getattr(self, name)
            if not (isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least):
                raise ValueError(f"{name}={value!r} must be a whole number" + (" ≥ 2." if name == "n_folds" else "."))
            object.__setattr__(self, name, int(value))

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
        start = np.uint64(seed % 2**64) * np.uint64(0xD1B54A32D192ED03)
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
    """The rows of a block `(X, …)` fold by fold; the first array decides, and None stays None."""
    fold = plan.of(block[0])
    xp = array_namespace(fold)
    order = xp.argsort(fold, stable=True)
    ordered = tuple(None if values is None else take_rows(values, order) for values in block)
    counts = np.bincount(to_host(fold), minlength=plan.n_folds)
    for v, stop in enumerate(np.cumsum(counts).tolist()):
        start = stop - int(counts[v])
        if stop > start:
            yield v, tuple(None if values is None else values[start:stop, ...] for values in ordered)


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
        return {"plan": np.array([self.plan.n_folds, self.plan.seed, self.n_read]), **named}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> FoldFactors:
        n_folds, seed, n_read = (int(value) for value in arrays["plan"])
        factors = []
        for v in range(n_folds):
            prefix = f"fold{v}."
            mine = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
            factors.append(Factor.from_arrays(mine) if mine else None)
        return cls(FoldPlan(n_folds, seed), tuple(factors), n_read)

    def merged(self) -> Factor:
        if "_merged" not in self.__dict__:
            self.__dict__["_merged"] = reduce(Factor.merge, self._filled)
        return self.__dict__["_merged"]

    @cached_property
    def _wide(self) -> WideFolds | None:
        """The folds in as many dimensions as rows, where all rows together are fewer than the features."""
        problem = self.merged().problem if len(self._filled) > 1 else None
        return None if problem is None else WideFolds(problem, [(f.rows, f.counts) for f in self._filled if f.rows])

    def leading(self, n_features: int) -> FoldFactors:
        """The same folds for the first `n_features` features; the training factors are cut, not merged anew."""
        cut = replace(self, factors=tuple(f and f.leading(n_features) for f in self.factors))
        cut.__dict__["training"] = tuple(f.leading(n_features) for f in self.training)
        return cut

    @cached_property
    def training(self) -> tuple[Factor, ...]:
        """For each fold that can be held out, the factor of the others."""
        filled = self._filled
        if len(filled) < 2:
            return ()
        before, after = list(accumulate(filled, Factor.merge)), list(accumulate(filled[::-1], Factor.merge))[::-1]
        middle = (before[v - 1].merge(after[v + 1]) for v in range(1, len(filled) - 1))
        return (after[1], *middle, before[-2])

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

    def squared_errors(self, gamma: Array) -> Array:
        """Σ w‖t − prediction‖² over each held-out fold, folds × γ, as if the weights had been refitted without it.

        The rows of a fold enter only through its factor: ‖[1 | H | T]·[−b; −W; I]‖² = ‖R_v·[−b; −W; I]‖².
        """
        if self._wide:
            return self._wide.squared_errors(gamma)
        xp = array_namespace(gamma)
        entries = 2 * self._filled[0].n_features * self.n_targets
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
        return tuple(v for v, factor in enumerate(self.factors) if factor is not None and factor.counts.n_rows)

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def _filled(self) -> tuple[Factor, ...]:
        return tuple(factor for factor in self.factors if factor is not None and factor.counts.n_rows)


def known_folds(
    plan: FoldPlan, factors: tuple[Factor | None, ...], n_read: int, training: Iterable[tuple[Factor, Spectrum]]
) -> FoldFactors:
    """Folds whose training factors and spectra were computed on the way."""
    folds = FoldFactors(plan, factors, n_read)
    folds.__dict__["training"], folds.__dict__["spectra"] = map(tuple, zip(*training, strict=True))
    return folds
